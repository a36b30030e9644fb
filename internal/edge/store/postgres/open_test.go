package postgres_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/postgres/pgtest"
)

// TestOpenRefuses opens what can't be a store: the error says in one line what
// is wrong, and never the password.
func TestOpenRefuses(t *testing.T) {
	at := database(t)
	newer, foreign := database(t), database(t)
	query(t, newer, "INSERT INTO goclaw_schema VALUES (999)")
	query(t, foreign, "DROP TABLE goclaw_schema")
	n := databases.Add(1)
	latin, stranger := fmt.Sprintf("latin_%d", n), fmt.Sprintf("stranger_%d", n)
	all := server.URL("postgres")
	query(t, all, "CREATE DATABASE "+latin+" TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
	query(t, all, "CREATE ROLE "+stranger+" LOGIN")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, url, want string }{
		{"no URL", "postgres://me:secret@host:port/db", "the database URL can't be read; want postgres://"},
		{"nonsense", "secret", "the database URL can't be read"},
		{"a bad pool", at + "&pool_max_conns=secret", "the database URL can't be read"},
		{"nobody there", "postgres://me:secret@" + closed.Addr().String() + "/db", "can't be reached: connection refused; check that it runs"},
		{"no such host", "postgres://me:secret@host.invalid/db", "can't be reached"},
		{"no such database", server.URL("none"), "has no such database; create it"},
		{"no such user", strings.Replace(at, "postgres@", "nobody-here:secret@", 1), `refuses user "nobody-here"; check user and password`},
		{"no rights", strings.Replace(all, "postgres@", stranger+":secret@", 1), "does not allow user"},
		{"a newer schema", newer, "has schema version 999, but this goclaw knows only up to 2: use a newer goclaw; nothing was changed"},
		{"tables of another", foreign, "has tables of another program; nothing was changed"},
		{"another encoding", server.URL(latin), "has the encoding LATIN1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), tt.url, postgres.Options{})
			if err == nil {
				t.Fatal("it was opened")
			}
			text := err.Error()
			if !strings.Contains(text, tt.want) || strings.Contains(text, "secret") || strings.Contains(text, "\n") {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// TestOpenTogether lets many processes, so to say, find an empty database.
func TestOpenTogether(t *testing.T) {
	if server == nil {
		t.Skip(pgtest.ErrNoServer)
	}
	name := fmt.Sprintf("together_%d", databases.Add(1))
	if err := server.CreateDatabase(t.Context(), name, ""); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			s, err := postgres.Open(t.Context(), server.URL(name), postgres.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := query(t, server.URL(name), "SELECT string_agg(version::text, ' ' ORDER BY version) FROM goclaw_schema"); n != "1 2" {
		t.Errorf("migrations %s were recorded", n)
	}
}

// TestReadOnly writes to a server that takes no writes, as a standby.
func TestReadOnly(t *testing.T) {
	at := database(t)
	query(t, at, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
	s := open(t, at, postgres.Options{})
	_, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: turn("r")})
	if err == nil || !strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("got error %v", err)
	}
	if _, err := s.Runs(t.Context(), goclaw.RunFilter{}); err != nil {
		t.Error(err)
	}
}

// TestSearchPath keeps two stores in two schemas of one database.
func TestSearchPath(t *testing.T) {
	at := database(t)
	query(t, at, "CREATE SCHEMA second")
	one, two := open(t, at, postgres.Options{}), open(t, at+"&search_path=second", postgres.Options{})
	if _, _, err := one.Accept(t.Context(), goclaw.Acceptance{Run: turn("r")}); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Run(t.Context(), "r"); !errors.Is(err, goclaw.ErrNotFound) {
		t.Errorf("the other store has it: error %v", err)
	}
}

// TestServerTime gives hosts clocks that are wrong by years: leases go by the
// database's.
func TestServerTime(t *testing.T) {
	at := database(t)
	s := open(t, at, postgres.Options{ServerTime: true})
	ctx := t.Context()
	if _, _, err := s.Accept(ctx, goclaw.Acceptance{Run: turn("r")}); err != nil {
		t.Fatal(err)
	}
	const past, future = 1, goclaw.Millis(9_000_000_000_000)
	claim := func(owner string, now goclaw.Millis, lease time.Duration) int {
		t.Helper()
		claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: owner, Now: now, Lease: lease, Max: 9})
		if err != nil {
			t.Fatal(err)
		}
		return len(claimed)
	}
	if claim("slow", past, time.Hour) != 1 || claim("fast", future, time.Hour) != 0 {
		t.Fatal("a lease was judged by a host's clock")
	}
	if _, err := s.Tidy(ctx, future, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Heartbeat(ctx, goclaw.Heartbeat{Owner: "slow", Now: future, Lease: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	for claim("fast", past, time.Hour) == 0 { // until a millisecond has passed
		if ctx.Err() != nil {
			t.Fatal("a lease that is over was not taken")
		}
	}

	// A provider's allowance fills by the same clock, and what is told fits the
	// asker's.
	rate := goclaw.RateRequest{Name: "p", RequestsPerMinute: 1, Now: past}
	if again, err := s.TakeRate(ctx, rate); err != nil || again != 0 {
		t.Fatalf("again at %d, error %v", again, err)
	}
	rate.Now = future
	again, err := s.TakeRate(ctx, rate)
	if err != nil || again <= future || again > future.Add(time.Minute) {
		t.Fatalf("again at %d, error %v; want within a minute of %d", again, err, future)
	}
}

// TestMigrate opens a database of the first schema.
func TestMigrate(t *testing.T) {
	if server == nil {
		t.Skip(pgtest.ErrNoServer)
	}
	name := fmt.Sprintf("old_%d", databases.Add(1))
	if err := server.CreateDatabase(t.Context(), name, ""); err != nil {
		t.Fatal(err)
	}
	at := server.URL(name)
	first, err := os.ReadFile(filepath.Join("migrations", "0001_init.sql"))
	if err != nil {
		t.Fatal(err)
	}
	old := "CREATE TABLE goclaw_schema (version bigint NOT NULL); INSERT INTO goclaw_schema VALUES (1);" + string(first) + `
		INSERT INTO sessions (key, agent, worker, created_at, updated_at, turns) VALUES ('agent:a:main', 'a', false, 1, 1, 1);
		INSERT INTO runs (id, session_key, trigger, requester_key, parent, depth, root, lane, agent, label, task, context, profile, cleanup, announce,
			created_at, idempotent, head) VALUES ('old-run', 'agent:a:main', 'cron', '', '', 0, 'old-run', 'agent:a:main', 'a', '', 'old', '', '{}', '', '', 1, '', true)`
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.PgConn().Exec(t.Context(), old).ReadAll()
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	s := open(t, at, postgres.Options{})
	run, err := s.Run(t.Context(), "old-run")
	if err != nil || run.Task != "old" {
		t.Errorf("run %+v, error %v", run, err)
	}
	if _, err := s.PutCronJob(t.Context(), goclaw.CronJob{ID: "j", Agent: "a"}); err != nil {
		t.Error(err)
	}
	// A run of the crontab in a main session is none of the workers.
	if n := query(t, at, "SELECT count(*)::text FROM subagent_runs"); n != "0" {
		t.Errorf("%s are shown with the workers", n)
	}
}
