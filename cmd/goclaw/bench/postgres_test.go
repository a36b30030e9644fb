package bench

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/edge/store/postgres/pgtest"
)

func TestClusterCounts(t *testing.T) {
	c, err := startCluster(t.Context())
	if errors.Is(err, pgtest.ErrNoServer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	before, err := c.spent(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), c.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)", "SELECT n FROM t", "INSERT INTO t VALUES (2)"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := c.spent(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	if got := after.writes - before.writes; got != 3 {
		t.Errorf("%d transactions wrote; want 3", got)
	}
	if c.traced && after.statements <= before.statements {
		t.Errorf("statements took %s, then %s", before.statements, after.statements)
	}
	if after.cpu < before.cpu {
		t.Errorf("the server used %s, then %s", before.cpu, after.cpu)
	}
}
