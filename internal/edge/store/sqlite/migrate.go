package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks our files ("GoCl"); the first migration sets it.
const applicationID = 0x476f436c

// copiesKept is how many copies from before migrations stay beside the file.
const copiesKept = 3

// Migration tells that Open has brought a file's schema up to date.
type Migration struct {
	Path     string
	From, To int
	Copy     string // the file as it was before
}

// settle migrates as soon as the file is free: a process that closes it as the
// last one locks it for a moment in which SQLite does not heed its own busy
// timeout.
func (s *Store) settle(ctx context.Context) error {
	for began := time.Now(); ; {
		err := s.migrate(ctx)
		var e *driver.Error
		if !errors.As(err, &e) || e.Code()&0xff != codes.SQLITE_BUSY || time.Since(began) > busyTimeoutMs*time.Millisecond {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// migrate checks whose file this is and applies the migrations that it lacks.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Glob(s.migrations, "*.sql")
	if err != nil {
		return err
	}
	version, err := s.inspect(ctx, s.conn, len(files))
	if err != nil {
		return err
	}
	var mode string
	if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("%s: SQLite cannot keep a write-ahead log there (journal mode %s); use a local disk", s.path, mode)
	}
	if version == len(files) {
		return nil
	}
	done, err := s.upgrade(ctx, files)
	if err != nil || done.Copy == "" {
		return err
	}
	s.tell(done)
	if err := s.prune(); err != nil {
		s.log.WarnContext(ctx, "old copies of the database could not be removed", "path", s.path, "error", err)
	}
	return nil
}

// inspect returns the file's schema version, without changing the file.
func (s *Store) inspect(ctx context.Context, conn rower, newest int) (version int, err error) {
	// One statement reads one state: another process may be at its migration.
	var app, tables int
	err = conn.QueryRowContext(ctx, `SELECT v.user_version, a.application_id, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_user_version v, pragma_application_id a`).Scan(&version, &app, &tables)
	if err != nil {
		return 0, err
	}
	switch {
	case tables == 0 && version == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("%s is a database of another program; it was left as it is: move it away or use another path", s.path)
	case version > newest:
		return 0, s.newer(version, newest)
	}
	return version, nil
}

func (s *Store) newer(version, newest int) error {
	return fmt.Errorf("%s has schema version %d, but this goclaw knows only up to %d: use a newer goclaw; nothing was changed", s.path, version, newest)
}

// upgrade applies what is missing, unless another process has just done so: all
// of it in one transaction, after the file was copied. Nobody writes from before
// the copy until after the last migration.
func (s *Store) upgrade(ctx context.Context, files []string) (done Migration, err error) {
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return done, err
	}
	defer func() {
		if err != nil {
			// An error here only says that SQLite has rolled back already.
			_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	done = Migration{Path: s.path, To: len(files)}
	if err := s.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&done.From); err != nil {
		return done, err
	}
	switch {
	case done.From > len(files):
		return done, s.newer(done.From, len(files))
	case done.From == len(files):
		_, err = s.conn.ExecContext(ctx, "ROLLBACK")
		return done, err
	case done.From > 0:
		if done.Copy, err = s.keep(ctx, done.From+1); err != nil {
			return done, fmt.Errorf("%s can't be copied, which is done before its schema changes; nothing was changed: %w", s.path, err)
		}
		s.hook("migrate.copied")
	}
	for _, file := range files[done.From:] {
		text, err := fs.ReadFile(s.migrations, file)
		if err != nil {
			return done, err
		}
		if _, err := s.conn.ExecContext(ctx, string(text)); err != nil {
			return done, fmt.Errorf("%s: migration %s failed; nothing was changed: %w", s.path, file, err)
		}
	}
	if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", done.To)); err != nil {
		return done, err
	}
	s.hook("migrate.before")
	if _, err := s.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return done, err
	}
	s.hook("migrate.after")
	s.log.InfoContext(ctx, "store migrated", "path", s.path, "from", done.From, "version", done.To, "copy", done.Copy)
	return done, nil
}

// keep copies the file as it is before the migration to version, and returns
// the copy's path. One that is there already is of an attempt that failed.
func (s *Store) keep(ctx context.Context, version int) (string, error) {
	kept := fmt.Sprintf("%s.before-%04d", s.path, version)
	made := kept + ".new"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// The writer's connection is inside of a transaction.
	db, err := s.pool(1)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }() // it only reads
	if err := vacuumInto(ctx, db, made); err != nil {
		return "", errors.Join(err, os.Remove(made))
	}
	if err := os.Rename(made, kept); err != nil {
		return "", err
	}
	return kept, syncFile(filepath.Dir(kept))
}

// prune removes all copies but the last few.
func (s *Store) prune() error {
	dir, name := filepath.Split(s.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var copies []string
	for _, e := range entries {
		suffix, ours := strings.CutPrefix(e.Name(), name)
		if ok, _ := filepath.Match(".before-[0-9][0-9][0-9][0-9]", suffix); ours && ok {
			copies = append(copies, e.Name())
		}
	}
	slices.Sort(copies)
	for _, old := range copies[:max(0, len(copies)-copiesKept)] {
		if err := os.Remove(filepath.Join(dir, old)); err != nil {
			return err
		}
	}
	return nil
}
