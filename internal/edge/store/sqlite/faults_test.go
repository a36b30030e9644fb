package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store"
)

func openHere(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "goclaw.db"), Options{})
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

// pragma sets something on the writing connection while the writer is idle.
func pragma(t *testing.T, s *Store, text string) {
	t.Helper()
	if _, err := s.conn.ExecContext(t.Context(), "PRAGMA "+text); err != nil {
		t.Fatal(err)
	}
}

func acceptLong(ctx context.Context, s *Store, id string) error {
	_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: goclaw.MainKey("a"), Trigger: goclaw.TriggerUser, Task: strings.Repeat("long ", 10_000), State: goclaw.StateQueued,
	}})
	return err
}

// TestFaults makes writes fail for want of space or permission: the error says
// so, nothing is written, reading goes on, and so does writing afterwards.
func TestFaults(t *testing.T) {
	tests := []struct{ name, fault, cure, want string }{
		{"a full disk", "max_page_count = 60", "max_page_count = 100000", "is full"},
		{"a file that cannot be written", "query_only = 1", "query_only = 0", "cannot be written"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := openHere(t)
			ctx := t.Context()
			if err := acceptLong(ctx, s, "before"); err != nil {
				t.Fatal(err)
			}
			pragma(t, s, tt.fault)
			var mu sync.Mutex
			answered := map[string]error{}
			var group sync.WaitGroup
			for i := range 30 {
				group.Go(func() {
					id := fmt.Sprintf("during-%02d", i) // none the beginning of another
					err := acceptLong(ctx, s, id)
					mu.Lock()
					defer mu.Unlock()
					answered[id] = err
				})
			}
			group.Wait()
			failed := 0
			for id, err := range answered {
				_, missing := s.Run(ctx, id)
				if (err == nil) != (missing == nil) {
					t.Errorf("%s was answered %v, but reading it gives %v", id, err, missing)
				}
				if err == nil {
					continue
				}
				failed++
				if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.path) {
					t.Errorf("error %q does not say that %s %s", err, s.path, tt.want)
				}
			}
			if failed == 0 {
				t.Error("no write failed")
			}
			pragma(t, s, tt.cure)
			if err := acceptLong(ctx, s, "after"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Run(ctx, "before"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPlans asks SQLite how it runs every statement that the engine's loop
// uses: none may walk over a table that grows with the past.
func TestPlans(t *testing.T) {
	s := openHere(t)
	ctx := t.Context()
	life(t, s)
	var queries []string
	err := s.write(ctx, "collect", func(ctx context.Context, tx *tx) error {
		for q := range tx.stmts {
			queries = append(queries, q)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for q := range s.reads {
		queries = append(queries, q)
	}
	if len(queries) < 30 {
		t.Fatalf("only %d statements were collected", len(queries))
	}
	// These partial indexes hold only what can be taken, is open or is to be
	// tidied; the tables hold processes and materialised results.
	fine := regexp.MustCompile(`USING (COVERING )?INDEX (runs_(released|withdrawn|waiting|ready_turns|ready_workers|running|busy|untidied|open|scheduled)|inbox_(pending|parked)|outbox_(open|parked)|sessions_stale)$|` +
		`^SCAN (processes|tree|head|\(subquery-\d+\)|CONSTANT ROW|SUBQUERY \d+)$`)
	for _, q := range queries {
		if !regexp.MustCompile(`^\s*(SELECT|UPDATE|INSERT|DELETE|WITH)`).MatchString(q) {
			continue
		}
		err := s.write(ctx, "explain", func(ctx context.Context, tx *tx) error {
			return tx.query(ctx, func(rows *sql.Rows) error {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					return err
				}
				if strings.HasPrefix(step, "SCAN ") && !fine.MatchString(step) {
					t.Errorf("%s\n\tin %s", step, q)
				}
				return nil
			}, "EXPLAIN QUERY PLAN "+q, make([]any, parameters(q))...)
		})
		if err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// parameters is how many values q takes.
func parameters(q string) int {
	numbered := regexp.MustCompile(`\?(\d+)`).FindAllStringSubmatch(q, -1)
	if len(numbered) == 0 {
		return strings.Count(q, "?")
	}
	most := 0
	for _, m := range numbered {
		var n int
		_, _ = fmt.Sscan(m[1], &n)
		most = max(most, n)
	}
	return most
}

// life does once whatever the engine and the gateway do all the time.
func life(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	key := goclaw.MainKey("a")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var fence goclaw.Fence
	for _, id := range []string{"r1", "r2"} {
		a := goclaw.Acceptance{Run: goclaw.Run{ID: id, Session: key, Requester: goclaw.MainKey("boss"), Trigger: goclaw.TriggerSpawn, State: goclaw.StateQueued},
			Key: id, MaxChildren: 5, MaxTreeRuns: 5, Coalesce: id == "r2"}
		_, _, err := s.Accept(ctx, a)
		check(err)
		if id == "r1" {
			claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Max: 9, MaxWorkers: 1, Now: 1, Lease: 1e12})
			check(err)
			fence = claimed[0].Run.Fence()
			check(s.Append(ctx, fence, goclaw.Batch{Now: 1, Events: []goclaw.Event{{Kind: goclaw.EventPrompt}}}))
		}
	}
	check(s.End(ctx, fence, goclaw.Ending{
		State: goclaw.StateCompleted,
		Batch: goclaw.Batch{Now: 1, Usage: &goclaw.Usage{}, Blobs: []goclaw.Blob{{SHA256: store.ContentSHA(nil)}},
			Events:    []goclaw.Event{{Seq: 1, Kind: goclaw.EventEnd}},
			Artifacts: []goclaw.ArtifactData{{Name: "whole"}}},
		Announce: &goclaw.InboxItem{ID: "i", Session: key, Source: "r1", Group: "r0"},
		Outbox:   &goclaw.Outbound{ID: "o", Session: key, Run: "r1"},
		IfQuiet:  true, Wake: &goclaw.Wake{Last: 1}, Return: &goclaw.Return{},
	}))
	claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Max: 9, Now: 1, Lease: 1e12})
	check(err)
	fence = claimed[0].Run.Fence()
	_, err = s.Pending(ctx, key)
	check(err)
	_, err = s.Pending(ctx, goclaw.SessionKey{})
	check(err)
	_, err = s.Outbox(ctx, 1, 9)
	check(err)
	_, err = s.TakeOutbox(ctx, "o", 1, 1)
	check(err)
	check(s.MarkOutbox(ctx, "o", "sent", 1, ""))
	check(s.Append(ctx, fence, goclaw.Batch{Now: 1, Consume: []string{"i"}}))
	check(s.Post(ctx, "r2", goclaw.InboxItem{ID: "p", CreatedAt: 1}))
	check(s.Redirect(ctx, "p", key))
	check(s.Postpone(ctx, []string{"p"}, goclaw.Return{Parked: true}, 1))
	_, err = s.Parked(ctx)
	check(err)
	check(s.Unpark(ctx, "p", 1))
	_, err = s.Queue(ctx)
	check(err)
	limits := goclaw.Limits{Tokens: 1e6}
	_, err = s.Reserve(ctx, fence, goclaw.Reservation{Tokens: 1, Tree: limits, Day: limits, Date: "2026-01-01", Spent: true, Now: 1})
	check(err)
	reply := goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{}}
	takeover := goclaw.Event{Seq: 1, Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{}}
	check(s.Append(ctx, fence, goclaw.Batch{Now: 1, Events: []goclaw.Event{reply, takeover}}))
	rate := goclaw.RateRequest{Name: "p", RequestsPerMinute: 9, TokensPerMinute: 9, Tokens: 1, Now: 1}
	_, err = s.TakeRate(ctx, rate)
	check(err)
	check(s.GiveRate(ctx, rate))
	_, err = s.Paused(ctx)
	check(err)
	check(s.Suspend(ctx, fence, goclaw.Suspension{For: goclaw.WaitPerson, Until: 9, Seen: 1}))
	_, err = s.Resume(ctx, "r2", 1)
	check(err)
	claimed, err = s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Max: 9, Now: 1, Lease: 1e12})
	check(err)
	fence = claimed[0].Run.Fence()
	check(s.Append(ctx, fence, goclaw.Batch{Now: 1, Artifacts: []goclaw.ArtifactData{{Name: "n"}}}))
	_, err = s.Heartbeat(ctx, goclaw.Heartbeat{Owner: "o", Now: 1, Lease: 1e12})
	check(err)
	_, err = s.Cancel(ctx, goclaw.Cancellation{Run: "r2", Now: 1, Cascade: true})
	check(err)
	check(s.Release(ctx, "o", 1))
	_, err = s.Tidy(ctx, 1, 1)
	check(err)
	check(s.ChangeSession(ctx, key, goclaw.SessionChange{Reset: true}, 1))
	_, err = s.History(ctx, key, 0)
	check(err)
	_, err = s.Session(ctx, key)
	check(err)
	_, err = s.Events(ctx, "r1")
	check(err)
	_, err = s.Run(ctx, "r1")
	check(err)
	for _, f := range []goclaw.RunFilter{{Active: true}, {Session: key}, {Requester: key, Active: true}, {Parent: "r1"}} {
		_, err = s.Runs(ctx, f)
		check(err)
	}
	for _, f := range []goclaw.ArtifactFilter{{Run: "r1"}, {Session: key, Name: "n"}, {Root: "r0"}} {
		_, err = s.ArtifactsOf(ctx, f)
		check(err)
	}
	_, _, err = s.Counts(ctx)
	check(err)
	j, err := s.PutCronJob(ctx, goclaw.CronJob{ID: "j", Agent: "a", Enabled: true, Next: 5})
	check(err)
	_, _, err = s.DueCronJobs(ctx, 9)
	check(err)
	_, err = s.CronJob(ctx, "j")
	check(err)
	_, _, err = s.FireCronJob(ctx, goclaw.CronFire{Job: j, Firing: goclaw.Firing{Job: "j", Due: 5}, IfQuiet: true, Alone: true, MaxActive: 9,
		Run: &goclaw.Acceptance{Key: "cron", Run: goclaw.Run{ID: "c1", Session: j.Key(), Trigger: goclaw.TriggerCron, State: goclaw.StateQueued}}})
	check(err)
	_, err = s.Firings(ctx, "j", 5)
	check(err)
	_, err = s.Runs(ctx, goclaw.RunFilter{Root: "r1"})
	check(err)
	check(s.RemoveCronJob(ctx, "j"))
}
