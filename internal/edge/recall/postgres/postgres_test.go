package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/recall/postgres"
	"goclaw/internal/edge/recall/recalltest"
	"goclaw/internal/edge/store/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgres(t *testing.T) {
	s, err := pgtest.Start(t.Context(), "", "fsync=off")
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
	n := 0
	database := func(t *testing.T) string {
		n++
		name := fmt.Sprint("memory", n)
		if err := s.CreateDatabase(t.Context(), name, ""); err != nil {
			t.Fatal(err)
		}
		return s.URL(name)
	}
	open := func(t *testing.T, url string) *postgres.Index {
		x := postgres.New(url, nil)
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	}
	t.Run("suite", func(t *testing.T) {
		recalltest.Run(t, func(t *testing.T) (recalltest.Index, func() recalltest.Index) {
			url := database(t)
			return open(t, url), func() recalltest.Index { return open(t, url) }
		})
	})
	t.Run("version", func(t *testing.T) { version(t, database(t), open) })
	if _, err := postgres.New("postgres://u:hunter2@%zz", nil).Count(t.Context(), "main", ""); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an address that can't be read: %v", err)
	}
}

// Tables of another version are made anew; who compares vectors is said.
func version(t *testing.T, url string, open func(*testing.T, string) *postgres.Index) {
	ctx := t.Context()
	x := open(t, url)
	if err := x.Put(ctx, goclaw.MemoryDoc{Agent: "main", Source: goclaw.MemoryFiles, Path: "a.md"}, []goclaw.MemoryChunk{{ID: "a", Text: "zero \x00 byte"}}); err != nil {
		t.Fatal(err)
	}
	want := "goclaw, one by one: the database has no extension pgvector"
	if got := x.Vectors(); got != "pgvector" && (got != want || os.Getenv("GOCLAW_PGVECTOR") == "required") {
		t.Error(got)
	}
	if s, err := open(t, url).Count(ctx, "main", ""); err != nil || s.Files != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, `UPDATE memory_mark SET value = 77 WHERE name = 'version'`); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if s, err := open(t, url).Count(ctx, "main", ""); err != nil || s.Files != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
