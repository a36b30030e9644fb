package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/postgres/pgtest"
)

// ownServer is a server that a test may stop.
func ownServer(t *testing.T) *pgtest.Server {
	t.Helper()
	if server == nil {
		t.Skip(pgtest.ErrNoServer)
	}
	own, err := pgtest.Start(t.Context(), "", "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	return own
}

// counter counts what goroutines do, and lets others wait for it.
type counter struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
}

func newCounter() *counter {
	c := &counter{}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.cond.Broadcast()
}

// after returns the count that is n away.
func (c *counter) after(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n + n
}

// reach waits until the count is n.
func (c *counter) reach(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n < n {
		c.cond.Wait()
	}
}

// crew accepts runs and takes them through their lives while the server comes
// and goes, and makes every call again that failed.
type crew struct {
	*testing.T
	store    *postgres.Store
	down     sync.RWMutex // held while the server is down: who failed waits for it
	done     *counter
	failed   *counter
	mu       sync.Mutex
	accepted []string
}

// persist calls f until it succeeds, or loses its claim.
func (c *crew) persist(f func() error) error {
	for {
		err := f()
		if err == nil || errors.Is(err, goclaw.ErrFenced) || c.Context().Err() != nil {
			return err
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "PostgreSQL at 127.0.0.1") {
			c.Errorf("unclear error: %v", err)
			return err
		}
		c.failed.add()
		c.down.RLock()
		c.down.RUnlock() //nolint:staticcheck // waits for the server
	}
}

func (c *crew) work(owner string, stop <-chan struct{}) error {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		id := fmt.Sprintf("run-%s-%04d", owner, n)
		err := c.persist(func() error {
			_, _, err := c.store.Accept(c.Context(), goclaw.Acceptance{Run: turn(id), Key: id})
			return err
		})
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.accepted = append(c.accepted, id)
		c.mu.Unlock()
		if _, err := c.runAll(owner); err != nil {
			return err
		}
	}
}

// runAll claims what there is and ends it.
func (c *crew) runAll(owner string) (n int, err error) {
	var claimed []goclaw.Claimed
	err = c.persist(func() (err error) {
		claimed, err = c.store.Claim(c.Context(), goclaw.ClaimRequest{Owner: owner, Now: 1, Lease: time.Hour, Max: 3})
		return err
	})
	for _, one := range claimed {
		f := one.Run.Fence()
		if err == nil {
			err = c.persist(func() error {
				return c.store.Append(c.Context(), f, goclaw.Batch{Now: 2, Events: []goclaw.Event{{Kind: goclaw.EventPrompt}}})
			})
		}
		if err == nil {
			err = c.persist(func() error {
				return c.store.End(c.Context(), f, goclaw.Ending{State: goclaw.StateCompleted,
					Batch:    goclaw.Batch{Now: 3, Events: []goclaw.Event{{Seq: 1, Kind: goclaw.EventEnd}}},
					Announce: &goclaw.InboxItem{ID: f.Run, Session: goclaw.MainKey("a"), Source: f.Run}})
			})
		}
		if err == nil {
			c.done.add()
		}
	}
	return len(claimed), err
}

// TestRestart stops the server in the middle of work, once in order and once as
// in a crash, and starts it again: every call is answered, what was accepted is
// there and has ended once, and the work goes on. No index hides a double.
func TestRestart(t *testing.T) {
	const workers = 6
	own := ownServer(t)
	s := open(t, own.URL("postgres"), postgres.Options{})
	dropGuards(t, own.URL("postgres"))
	c := &crew{T: t, store: s, done: newCounter(), failed: newCounter()}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			if err := c.work(fmt.Sprintf("o%d", i), stop); err != nil {
				t.Error(err)
			}
		})
	}
	for _, end := range []func() error{own.Halt, own.Kill} {
		c.done.reach(c.done.after(20))
		c.down.Lock()
		all := c.failed.after(workers)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		c.failed.reach(all)
		if _, err := s.Runs(t.Context(), goclaw.RunFilter{}); err == nil || !strings.Contains(err.Error(), "can't be reached") {
			t.Errorf("reading from a stopped server: error %v", err)
		}
		if err := own.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.down.Unlock()
	}
	c.done.reach(c.done.after(20))
	close(stop)
	group.Wait()
	for i := range workers {
		for n := 1; n > 0; {
			var err error
			if n, err = c.runAll(fmt.Sprintf("o%d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.check()
}

// check sees that every accepted run is there once, has ended once and was
// announced once.
func (c *crew) check() {
	c.Helper()
	ctx := c.Context()
	runs, err := c.store.Runs(ctx, goclaw.RunFilter{})
	if err != nil {
		c.Fatal(err)
	}
	items, err := c.store.Pending(ctx, goclaw.SessionKey{})
	if err != nil {
		c.Fatal(err)
	}
	if len(runs) != len(c.accepted) || len(items) != len(c.accepted) {
		c.Errorf("%d runs were accepted, %d are stored, %d announced", len(c.accepted), len(runs), len(items))
	}
	found, told := map[string]goclaw.Run{}, map[string]bool{}
	for _, r := range runs {
		found[r.ID] = r
	}
	for _, i := range items {
		told[i.Source] = true
	}
	for _, id := range c.accepted {
		events, err := c.store.Events(ctx, id)
		if r := found[id]; err != nil || r.State != goclaw.StateCompleted || !told[id] || len(events) != 2 {
			c.Errorf("run %s is %q with %d events, told %v, error %v", id, r.State, len(events), told[id], err)
		}
	}
}

// dropGuards replaces the unique indexes that could hide a double.
func dropGuards(t *testing.T, url string) {
	t.Helper()
	for _, guard := range []string{"runs_id ON runs (id)", "runs_idempotent ON runs (idempotent)", "events_seq ON events (run_id, seq)",
		"inbox_id ON inbox (id)", "outbox_id ON outbox (id)", "firings_due ON firings (job, due)"} {
		name, _, _ := strings.Cut(guard, " ")
		query(t, url, "DROP INDEX IF EXISTS "+name)
		query(t, url, "CREATE INDEX "+guard)
	}
	left := query(t, url, `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
		WHERE indisunique AND NOT indisprimary AND relnamespace = 'public'::regnamespace`)
	if left != "" {
		t.Fatalf("these unique indexes are left: %s", left)
	}
}

// query runs one statement on a connection of its own and returns the first
// column of its first row, if it has one.
func query(t *testing.T, url, text string, args ...any) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() {
		err = rows.Scan(&answer)
	}
	rows.Close()
	if err := errors.Join(err, rows.Err(), conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestFrozen stops a process, so to say, in the middle of a transaction: what
// it has locked is free for others soon, and it carries on when it wakes.
func TestFrozen(t *testing.T) {
	at := database(t)
	frozen, thaw := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := open(t, at, postgres.Options{Hook: func(point string) {
		if point == "commit.before" {
			once.Do(func() {
				close(frozen)
				<-thaw
			})
		}
	}})
	other := open(t, at, postgres.Options{})
	accept := func(s *postgres.Store, id string) error {
		r := turn(id)
		r.Session = goclaw.MainKey("a")
		_, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: r})
		return err
	}
	var group sync.WaitGroup
	group.Go(func() {
		if err := accept(s, "first"); err != nil { // holds the session's lock
			t.Error(err)
		}
	})
	<-frozen
	if err := accept(other, "second"); err != nil {
		t.Error(err)
	}
	close(thaw)
	group.Wait()
	runs, err := other.Runs(t.Context(), goclaw.RunFilter{})
	if err != nil || len(runs) != 2 || runs[0].ID != "first" || runs[1].ID != "second" {
		t.Errorf("runs %v, error %v", runs, err)
	}
}

// TestSilent lets the network swallow everything: a call ends with its context,
// and the next one that gets through finds a new connection.
func TestSilent(t *testing.T) {
	p, behind := through(t, database(t))
	s := open(t, behind, postgres.Options{})
	p.lose.Store(silence)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Runs(ctx, goclaw.RunFilter{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
	p.lose.Store(nothing)
	if _, err := s.Runs(t.Context(), goclaw.RunFilter{}); err != nil {
		t.Error(err)
	}
	p.cut() // what was swallowed is waited for by Close
}

// TestSlow holds a lock for longer than a statement may take.
func TestSlow(t *testing.T) {
	at := database(t)
	s := open(t, at+"&statement_timeout=100", postgres.Options{})
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Accept(t.Context(), goclaw.Acceptance{Run: turn("r")})
	if err == nil || !strings.Contains(err.Error(), "gave up") {
		t.Fatalf("got error %v", err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: turn("r")}); err != nil {
		t.Fatal(err)
	}
}

// TestCancelled ends a call's context while it waits: it returns at once, and
// its connection is used again.
func TestCancelled(t *testing.T) {
	at := database(t)
	s := open(t, at+"&pool_max_conns=1", postgres.Options{})
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	backend := query(t, at, backends)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		_, err := s.Runs(ctx, goclaw.RunFilter{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
	})
	for query(t, at, `SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == "0" {
		if t.Context().Err() != nil {
			t.Fatal("nothing waits for the lock")
		}
	}
	cancel()
	group.Wait()
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs(t.Context(), goclaw.RunFilter{}); err != nil {
		t.Error(err)
	}
	if now := query(t, at, backends); now != backend {
		t.Errorf("connections %s before, %s after", backend, now)
	}
}

const backends = `SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity
	WHERE datname = current_database() AND application_name = 'goclaw'`
