package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/postgres/pgtest"
)

// server is shared by all tests that do not stop it; nil if there is none.
var server *pgtest.Server

var databases atomic.Int64

// template is a database with the schema and nothing in it.
const template = "goclaw_template"

func TestMain(m *testing.M) {
	// Each random comparison takes processes of the server and hundreds of round
	// trips; -rapid.checks=N makes more of them.
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	ctx := context.Background()
	s, err := pgtest.Start(ctx, "", "fsync=off", "synchronous_commit=on", "autovacuum=off")
	switch {
	case errors.Is(err, pgtest.ErrNoServer):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	default:
		server = s
		if err := prepare(ctx, s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			_ = s.Stop()
			os.Exit(1)
		}
	}
	code := m.Run()
	if server != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepare(ctx context.Context, s *pgtest.Server) error {
	if err := s.CreateDatabase(ctx, template, ""); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, s.URL(template), postgres.Options{})
	if err != nil {
		return err
	}
	return store.Close()
}

// database makes a database of the test's own, with the schema, and returns its
// URL. It is gone when the test ends.
func database(t *testing.T) string {
	t.Helper()
	if server == nil {
		t.Skip(pgtest.ErrNoServer)
	}
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := server.CreateDatabase(t.Context(), name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return server.URL(name)
}

// wipe empties a database of everything but its schema, which is faster than to
// make another.
func wipe(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `
		DELETE FROM events; DELETE FROM inbox; DELETE FROM outbox; DELETE FROM artifacts; DELETE FROM blobs; DELETE FROM calls;
		DELETE FROM holds; DELETE FROM rates; DELETE FROM control; DELETE FROM cron_jobs; DELETE FROM firings; DELETE FROM processes; DELETE FROM runs; DELETE FROM sessions;
		SELECT setval('runs_ordinal_seq', 1, false), setval('inbox_n_seq', 1, false), setval('outbox_n_seq', 1, false),
			setval('firings_n_seq', 1, false)`)
	return errors.Join(err, conn.Close(ctx))
}

// open opens a store until the test ends.
func open(t *testing.T, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
