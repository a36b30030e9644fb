package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// rower asks for one row.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Snapshot writes the database at path, as it is at one moment and whoever uses
// it meanwhile, to a new file, and returns its schema's version. It migrates
// nothing; a database that this version does not know is refused.
func Snapshot(ctx context.Context, path, to string) (version int, err error) {
	version, err = look(ctx, path, func(db *sql.DB) error { return vacuumInto(ctx, db, to) })
	if err != nil {
		return 0, fmt.Errorf("copy database: %w", err)
	}
	return version, nil
}

// Check reads the whole database at path and returns its schema's version. A
// database that is damaged, or that this version does not know, is refused.
func Check(ctx context.Context, path string) (version int, err error) {
	version, err = look(ctx, path, func(db *sql.DB) error {
		var found string
		err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found)
		if err == nil && found != "ok" {
			err = fmt.Errorf("%s is damaged: %s", path, found)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("check database: %w", err)
	}
	return version, nil
}

// look calls do with a connection to one of our databases.
func look(ctx context.Context, path string, do func(*sql.DB) error) (version int, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return 0, err
	}
	if _, err := os.Stat(path); err != nil {
		return 0, err // SQLite would make one
	}
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	s := &Store{path: path}
	db, err := s.pool(1)
	if err != nil {
		return 0, err
	}
	if version, err = s.inspect(ctx, db, len(files)); err == nil {
		err = do(db)
	}
	return version, s.explain(errors.Join(err, db.Close()))
}

// vacuumInto writes what db holds to a new file, for its owner only, and waits
// until the disk has it.
func vacuumInto(ctx context.Context, db *sql.DB, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	return syncFile(to)
}

// syncFile waits until the disk has a file, or a folder's entries.
func syncFile(path string) error {
	how := os.O_RDWR
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if runtime.GOOS == "windows" {
			return nil // it can't, and need not
		}
		how = os.O_RDONLY
	}
	f, err := os.OpenFile(path, how, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
