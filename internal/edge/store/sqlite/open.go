package sqlite

import (
	"context"
	"database/sql"
	"embed"
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
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"goclaw/internal/edge/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks our files ("GoCl"); the first migration sets it.
const applicationID = 0x476f436c

const (
	busyTimeoutMs = 10_000 // how long another process may hold the write lock
	readers       = 4      // connections for reading
)

// Options of Open; the zero value is ready for use.
type Options struct {
	// Hook, if set, is called with "commit.before" and "commit.after" around
	// every COMMIT that holds writes, from the writer's goroutine. Crash tests
	// end the process there.
	Hook func(point string)

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
	log  *slog.Logger

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
	s, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, path string, o Options) (_ *Store, err error) {
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
		path: path, hook: o.Hook, log: o.Logger,
		reads: map[string]*sql.Stmt{},
		queue: make(chan *write), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if s.hook == nil {
		s.hook = func(string) {}
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

// migrate checks whose file this is and applies the migrations that it lacks,
// each with its version in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return err
	}
	version, err := s.inspect(ctx, len(files))
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
	for i := version; i < len(files); i++ {
		if err := s.apply(ctx, files[i], i+1); err != nil {
			return fmt.Errorf("%s: %w", files[i], err)
		}
	}
	return nil
}

// inspect returns the file's schema version, without changing the file.
func (s *Store) inspect(ctx context.Context, newest int) (version int, err error) {
	var app, tables int
	if err := s.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	if err := s.conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, err
	}
	if err := s.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return 0, err
	}
	switch {
	case tables == 0 && version == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("%s is a database of another program; it was left as it is: move it away or use another path", s.path)
	case version > newest:
		return 0, fmt.Errorf("%s has schema version %d, but this goclaw knows only up to %d: use a newer goclaw; nothing was changed", s.path, version, newest)
	}
	return version, nil
}

// apply brings the schema to version, unless another process has just done so.
func (s *Store) apply(ctx context.Context, file string, version int) (err error) {
	text, err := migrationFiles.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// An error here only says that SQLite has rolled back already.
			_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	var have int
	if err := s.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	if have < version {
		if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("%s\nPRAGMA user_version = %d", text, version)); err != nil {
			return err
		}
		s.log.InfoContext(ctx, "store migrated", "path", s.path, "version", version)
	}
	_, err = s.conn.ExecContext(ctx, "COMMIT")
	return err
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
