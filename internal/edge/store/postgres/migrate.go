package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationLock is the advisory lock under which one process at a time
// migrates ("GoCl").
const migrationLock = 0x476f436c

// migrate checks whose database this is and applies the migrations that it
// lacks.
func (s *Store) migrate(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := s.inspect(ctx, conn.Conn()); err != nil {
		return err
	}
	version, err := s.version(ctx, conn.Conn(), len(files))
	if err != nil || version == len(files) {
		return err
	}
	return s.upgrade(ctx, files)
}

// upgrade applies what is missing in one transaction, while no other process
// does. It may take its time.
func (s *Store) upgrade(ctx context.Context, files []string) error {
	config := s.listen.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // it had a connection's time
	defer func() { _ = conn.Close(ctx) }()
	// A transaction that began before it had the lock could miss what its last
	// holder has made.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		version, err := s.version(ctx, conn, len(files))
		if err != nil {
			return err
		}
		for i := version; i < len(files); i++ {
			if err := s.apply(ctx, tx, files[i], i+1); err != nil {
				return fmt.Errorf("%s: %w", files[i], err)
			}
		}
		return nil
	})
}

// inspect refuses servers that can't do what is needed, and warns of one that
// may lose what it has acknowledged.
func (s *Store) inspect(ctx context.Context, conn *pgx.Conn) error {
	var version int
	var encoding, fsync, commit string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
		current_setting('fsync'), current_setting('synchronous_commit')`).Scan(&version, &encoding, &fsync, &commit)
	if err != nil {
		return err
	}
	if version < oldestServer {
		return fmt.Errorf("%s has version %d; at least %d is needed", s.where, version/10000, oldestServer/10000)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%s has the encoding %s; create the database with ENCODING 'UTF8'", s.where, encoding)
	}
	if fsync != "on" || commit == "off" {
		s.log.WarnContext(ctx, "the database may lose what it has acknowledged when its host fails",
			"database", s.where, "fsync", fsync, "synchronous_commit", commit)
	}
	return nil
}

// version is the schema's version, 0 if there is none yet.
func (s *Store) version(ctx context.Context, conn *pgx.Conn, newest int) (version int, err error) {
	var ours, taken bool
	err = conn.QueryRow(ctx, `SELECT coalesce(bool_or(relname = 'goclaw_schema'), false), coalesce(bool_or(relname IN ('runs', 'sessions')), false)
		FROM pg_class WHERE relkind IN ('r', 'p', 'v') AND pg_table_is_visible(oid)`).Scan(&ours, &taken)
	if err != nil {
		return 0, err
	}
	if !ours {
		if taken {
			return 0, fmt.Errorf("%s has tables of another program; nothing was changed: use a database or schema of its own", s.where)
		}
		return 0, nil
	}
	if err := conn.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM goclaw_schema`).Scan(&version); err != nil {
		return 0, err
	}
	if version > newest {
		return 0, fmt.Errorf("%s has schema version %d, but this goclaw knows only up to %d: use a newer goclaw; nothing was changed", s.where, version, newest)
	}
	return version, nil
}

func (s *Store) apply(ctx context.Context, tx pgx.Tx, file string, version int) error {
	text, err := migrationFiles.ReadFile(file)
	if err != nil {
		return err
	}
	if version == 1 {
		if _, err := tx.Exec(ctx, `CREATE TABLE goclaw_schema (version bigint NOT NULL)`); err != nil {
			return err
		}
	}
	// Only the simple protocol takes many statements at once.
	_, err = tx.Conn().PgConn().Exec(ctx, string(text)).ReadAll()
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO goclaw_schema VALUES ($1)`, version)
	}
	if err == nil {
		s.log.InfoContext(ctx, "store migrated", "database", s.where, "version", version)
	}
	return err
}

// errSlow is the cause of a call's end that took too long.
var errSlow = errors.New("no answer within " + timeout.String() + "; check the server and the network")

// bounded gives a call the longest time that it may take.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, errSlow)
}
