package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql

	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/postgres/pgtest"
	"goclaw/internal/edge/store/sqlite"
)

// records are a round's database. No constraint in it hides a double.
type records interface {
	env() []string                          // tells the program where it is
	held(pid int) ([]string, error)         // the runs that a process has under way
	open(context.Context) (database, error) // once all processes have stopped
	look(string) (rows []string, err error) // likewise; the only column of a query
	sound() error                           // likewise; whether it is undamaged
	close() error
}

// stock makes databases.
type stock interface {
	// fresh makes one for the processes of which one's home is given.
	fresh(ctx context.Context, home string) (records, error)
}

// unguard makes plain indexes of the unique ones, which would hide a double.
// guards selects their names and the statements that made them. Primary keys
// stay: they number rows, or name what is there once whoever asks.
func unguard(ctx context.Context, db *sql.DB, guards string) error {
	found, err := column(ctx, db, guards)
	if err != nil {
		return err
	}
	if len(found) < 5 { // of ids, of requests, of numbers of events
		return fmt.Errorf("only %d unique indexes are there: %v", len(found), found)
	}
	for _, guard := range found {
		name, made, _ := strings.Cut(guard, " ")
		for _, statement := range []string{"DROP INDEX " + name, strings.Replace(made, "UNIQUE", "", 1)} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
	}
	left, err := column(ctx, db, guards)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("unique indexes are left: %v", left)
	}
	return err
}

const (
	sqliteGuards = `SELECT name || ' ' || sql FROM sqlite_master WHERE type = 'index' AND sql LIKE 'CREATE UNIQUE INDEX %'`

	postgresGuards = `SELECT indexname || ' ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
		AND indexdef LIKE 'CREATE UNIQUE INDEX %' AND indexname NOT IN (SELECT conname FROM pg_constraint)`
)

// schema lets the program make its tables.
func schema(t *testing.T, home string, env ...string) {
	t.Helper()
	if out, err := program(t, home, env, "sessions").CombinedOutput(); err != nil {
		t.Fatalf("goclaw sessions: %v\n%s", err, out)
	}
}

func column(ctx context.Context, db *sql.DB, query string, params ...any) (values []string, err error) {
	rows, err := db.QueryContext(ctx, query, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// heldBy selects the runs of a process: owners are HOST/PID/….
const heldBy = `SELECT id FROM runs WHERE state = 'running' AND owner LIKE '%/' || $1 || '/%'`

// sqliteStock copies one file.
type sqliteStock struct{ template string }

func stockSQLite(t *testing.T) stock {
	t.Helper()
	home := filepath.Join(t.TempDir(), "template")
	schema(t, home)
	file := filepath.Join(home, "goclaw.db")
	db, err := sql.Open("sqlite", file)
	if err == nil {
		err = errors.Join(unguard(t.Context(), db, sqliteGuards), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return sqliteStock{file}
}

func (s sqliteStock) fresh(_ context.Context, home string) (records, error) {
	file := filepath.Join(home, "goclaw.db")
	return sqliteRecords{file}, copyFile(s.template, file)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

type sqliteRecords struct{ file string }

func (r sqliteRecords) env() []string { return nil }
func (r sqliteRecords) close() error  { return nil }

// held looks at a copy: whoever opens the file of a process that died repairs
// it, and that is for the next process to do.
func (r sqliteRecords) held(pid int) (ids []string, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(r.file), "copy-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "goclaw.db")
	if err := errors.Join(copyFile(r.file, file), copyFile(r.file+"-wal", file+"-wal")); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return column(context.Background(), db, heldBy, fmt.Sprint(pid))
}

func (r sqliteRecords) open(ctx context.Context) (database, error) {
	return sqlite.Open(ctx, r.file, sqlite.Options{})
}

func (r sqliteRecords) look(query string) (rows []string, err error) {
	db, err := sql.Open("sqlite", r.file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return column(context.Background(), db, query)
}

func (r sqliteRecords) sound() error {
	said, err := r.look("PRAGMA integrity_check")
	if err == nil && !slices.Equal(said, []string{"ok"}) {
		err = errors.New(strings.Join(said, "; "))
	}
	return err
}

// postgresStock copies databases of a private server.
type postgresStock struct {
	server *pgtest.Server
	made   *atomic.Int64
}

// template is the name of a database with the schema and without guards.
const template = "template_goclaw"

func stockPostgres(t *testing.T) postgresStock {
	t.Helper()
	server, err := pgtest.Start(t.Context(), "", "fsync=off")
	if errors.Is(err, pgtest.ErrNoServer) {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := server.CreateDatabase(t.Context(), template, ""); err != nil {
		t.Fatal(err)
	}
	schema(t, filepath.Join(t.TempDir(), "home"), "GOCLAW_DATABASE_URL="+server.URL(template))
	db, err := sql.Open("pgx", server.URL(template))
	if err == nil {
		err = errors.Join(unguard(t.Context(), db, postgresGuards), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return postgresStock{server, &atomic.Int64{}}
}

func (s postgresStock) fresh(ctx context.Context, _ string) (records, error) {
	name := fmt.Sprintf("round_%d", s.made.Add(1))
	if err := s.server.CreateDatabase(ctx, name, template); err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", s.server.URL(name))
	if err != nil {
		return nil, err
	}
	return postgresRecords{s.server.URL(name), db}, nil
}

type postgresRecords struct {
	url string
	db  *sql.DB
}

func (r postgresRecords) env() []string { return []string{"GOCLAW_DATABASE_URL=" + r.url} }
func (r postgresRecords) sound() error  { return nil } // the check reads all of it
func (r postgresRecords) close() error  { return r.db.Close() }

func (r postgresRecords) held(pid int) ([]string, error) {
	return column(context.Background(), r.db, heldBy, fmt.Sprint(pid))
}

func (r postgresRecords) open(ctx context.Context) (database, error) {
	return postgres.Open(ctx, r.url, postgres.Options{})
}

func (r postgresRecords) look(query string) ([]string, error) {
	return column(context.Background(), r.db, query)
}
