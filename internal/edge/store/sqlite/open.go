package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	driver "modernc.org/sqlite"

	"goclaw/internal/edge/store"
)

const (
	busyTimeoutMs = 10_000 // how long another process may hold the write lock
	readers       = 4      // connections for reading
)

// Options of Open; the zero value is ready for use.
type Options struct {
	// Hook, if set, is called with "commit.before" and "commit.after" around
	// every COMMIT that holds writes, from the writer's goroutine, and with
	// "migrate.copied", "migrate.before" and "migrate.after" by Open. Crash tests
	// end the process there.
	Hook func(point string)

	// Migrated, if set, is called by Open when it has brought the schema of a
	// file that held one already up to date.
	Migrated func(Migration)

	// Logger gets migrations and lost transactions; nil discards.
	Logger *slog.Logger

	// Sync is SQLite's synchronous setting: FULL (the default), NORMAL, EXTRA
	// or OFF. Only FULL and EXTRA keep the promise of surviving power loss.
	Sync string
}

// Store is the SQLite store. It is safe for concurrent use; Close ends it.
type Store struct {
	path string
	hook func(string)
	tell func(Migration)
	log  *slog.Logger

	migrations fs.FS

	writerDB *sql.DB // one connection, held by conn
	conn     *sql.Conn
	readerDB *sql.DB

	mu    sync.Mutex
	reads map[string]*sql.Stmt // by query text

	transcripts store.Transcripts

	queue   chan *write   // unbuffered: what waits here has not started
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when the writer has ended
	commits atomic.Int64

	writerErr error // set before done is closed
	closeOnce sync.Once
	closeErr  error
}

// Open opens the database file at path, creating it with mode 0600 if it does
// not exist, and brings its schema up to date. Its folder must exist. The
// values of ctx accompany the store's writer; its end matters to Open only.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	migrations, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, path, o, migrations)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, path string, o Options, migrations fs.FS) (_ *Store, err error) {
	syncMode := strings.ToUpper(o.Sync)
	switch syncMode {
	case "":
		syncMode = "FULL"
	case "OFF", "NORMAL", "FULL", "EXTRA":
	default:
		return nil, fmt.Errorf("sync %q: want FULL, EXTRA, NORMAL or OFF", o.Sync)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, hook: o.Hook, tell: o.Migrated, log: o.Logger, migrations: migrations,
		reads: map[string]*sql.Stmt{},
		queue: make(chan *write), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if s.hook == nil {
		s.hook = func(string) {}
	}
	if s.tell == nil {
		s.tell = func(Migration) {}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.closePools()
			err = s.explain(err)
		}
	}()
	// WAL is not part of the connection string: a foreign file must not even
	// have its journal mode changed.
	if s.writerDB, err = s.pool(1, "synchronous("+syncMode+")", "foreign_keys(1)"); err != nil {
		return nil, err
	}
	if s.conn, err = s.writerDB.Conn(ctx); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if s.readerDB, err = s.pool(readers, "query_only(1)"); err != nil {
		return nil, err
	}
	go s.run(context.WithoutCancel(ctx))
	return s, nil
}

// createFile makes an empty file that only its owner may read. SQLite gives
// its journal files the same mode.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; create the folder %s first", err, filepath.Dir(path))
	}
	return err
}

func (s *Store) pool(size int, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeoutMs),
		"temp_store(memory)", // a process that is killed must leave no file behind, not even for a moment
	}, pragmas...)}
	name := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}
	connector, err := driver.NewConnector(name.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// Commits returns how many transactions that hold writes were committed.
func (s *Store) Commits() int64 { return s.commits.Load() }

// Close waits for the writes that have started, refuses those that have not,
// and closes the file. Closing again returns the same result.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.quit)
		<-s.done
		if err := errors.Join(s.writerErr, s.closePools()); err != nil {
			s.closeErr = fmt.Errorf("close store: %w", err)
		}
	})
	return s.closeErr
}

// closePools closes the writer last: it then writes the log back and removes
// it.
func (s *Store) closePools() error {
	var errs []error
	if s.readerDB != nil {
		errs = append(errs, s.readerDB.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writerDB != nil {
		errs = append(errs, s.writerDB.Close())
	}
	return errors.Join(errs...)
}
