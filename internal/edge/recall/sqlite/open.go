package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
	_ "modernc.org/sqlite/vec" // vec_distance_cosine
)

//go:embed schema.sql
var schema string

const (
	applicationID = 0x476f436d // GoCm
	version       = 2          // of schema.sql and of how terms are made; another one begins anew
	busyTimeoutMs = 5000
)

// Index is the index in one file.
type Index struct {
	path string
	log  *slog.Logger

	mu sync.Mutex
	db *sql.DB // nil until it is needed
}

// New returns the index in the file at path, which is made when it is first
// needed. log may be nil.
func New(path string, log *slog.Logger) *Index {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Index{path: path, log: log}
}

// Vectors says who compares vectors.
func (x *Index) Vectors() string { return "sqlite-vec" }

// Close releases the file.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	err := x.db.Close()
	x.db = nil
	return err
}

// open returns the database, opening it if it is not.
func (x *Index) open(ctx context.Context) (*sql.DB, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != nil {
		return x.db, nil
	}
	db, err := x.connect(ctx)
	if damaged(err) {
		x.log.Warn("the index of memory is damaged and is made anew", "file", x.path, "err", err)
		if err := x.remove(); err != nil {
			return nil, fmt.Errorf("index of memory: %w", err)
		}
		db, err = x.connect(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("index of memory %s: %w", x.path, err)
	}
	x.db = db
	return db, nil
}

// discard removes the file of a database that is damaged, unless somebody did.
func (x *Index) discard(db *sql.DB, why error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != db {
		return nil
	}
	x.log.Warn("the index of memory is damaged and is made anew", "file", x.path, "err", why)
	x.db = nil
	return errors.Join(db.Close(), x.remove())
}

func damaged(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && (e.Code()&0xff == codes.SQLITE_CORRUPT || e.Code()&0xff == codes.SQLITE_NOTADB)
}

// remove deletes the file and its journals.
func (x *Index) remove() error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (x *Index) connect(ctx context.Context) (_ *sql.DB, err error) {
	f, err := os.OpenFile(x.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(x.path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeoutMs), "foreign_keys(1)", "temp_store(memory)", "synchronous(NORMAL)",
		"recursive_triggers(1)", "cache_size(-1024)",
	}}
	name := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(abs), RawQuery: q.Encode()}
	connector, err := driver.NewConnector(name.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(1)
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	return db, settle(ctx, db)
}

// settle makes the tables, unless they are there in the form of this version.
func settle(ctx context.Context, db *sql.DB) (err error) {
	app, have, tables, err := inspect(ctx, db)
	if err != nil {
		return err
	}
	if tables > 0 && app != applicationID {
		return errors.New("is a database of another program; it was left as it is: move it away")
	}
	if tables > 0 && have == version {
		return nil
	}
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rollback(tx)) }()
	// Another process may have been faster.
	if app, have, tables, err = inspect(ctx, tx); err != nil || tables > 0 && app == applicationID && have == version {
		return err
	}
	drop := ""
	if tables > 0 {
		drop = "DROP TABLE IF EXISTS vocabulary; DROP TABLE IF EXISTS fts; DROP TABLE IF EXISTS chunk; DROP TABLE IF EXISTS doc; DROP TABLE IF EXISTS vector; DROP TABLE IF EXISTS mark;\n"
	}
	stamp := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version)
	if _, err := tx.ExecContext(ctx, drop+schema+stamp); err != nil {
		return err
	}
	return tx.Commit()
}

// querier is a database or a transaction in it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func inspect(ctx context.Context, db querier) (app, have, tables int, err error) {
	err = db.QueryRowContext(ctx, "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)").
		Scan(&app, &have, &tables)
	return app, have, tables, err
}

// rollback ends a transaction that was not committed.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}
