package pgtest_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"goclaw/internal/edge/store/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServer makes databases, kills and stops the server, and finds what was
// committed.
func TestServer(t *testing.T) {
	ctx := t.Context()
	s, err := pgtest.Start(ctx, "", "fsync=off")
	if errors.Is(err, pgtest.ErrNoServer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.CreateDatabase(ctx, "a", ""); err != nil {
		t.Fatal(err)
	}
	exec(t, s.URL("a"), "CREATE TABLE t (n int)")
	for _, end := range []func() error{s.Kill, s.Halt} {
		exec(t, s.URL("a"), "INSERT INTO t VALUES (1)")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if conn, err := pgx.Connect(ctx, s.URL("a")); err == nil {
			_ = conn.Close(ctx)
			t.Fatal("the server still answers")
		}
		if err := s.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CreateDatabase(ctx, "b c", "a"); err != nil {
		t.Fatal(err)
	}
	exec(t, s.URL("b c"), "DO $$ BEGIN ASSERT (SELECT count(*) FROM t) = 2; END $$")
}

func exec(t *testing.T, url, text string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), text)
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}
