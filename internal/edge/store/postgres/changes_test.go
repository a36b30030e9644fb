package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
)

// within fails the test if nothing comes for so long that nothing will.
func within(t *testing.T, changes <-chan string) string {
	t.Helper()
	select {
	case run, ok := <-changes:
		if !ok {
			t.Fatal("the changes have ended")
		}
		return run
	case <-time.After(30 * time.Second):
		t.Fatal("no change was told")
	}
	return ""
}

// until reads changes up to one of them.
func until(t *testing.T, changes <-chan string, want string) {
	t.Helper()
	for within(t, changes) != want {
		continue
	}
}

// TestChanges tells another store of what may be ready, whoever did it.
func TestChanges(t *testing.T) {
	at := database(t)
	s, other := open(t, at, postgres.Options{}), open(t, at, postgres.Options{})
	changes := other.Changes()
	if run := within(t, changes); run != "" {
		t.Fatalf("the first change is %q, want to look at everything", run)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	accept := func(id string) {
		t.Helper()
		_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: turn(id)})
		must(err)
		until(t, changes, id)
	}
	claim := func() goclaw.Run {
		t.Helper()
		claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: time.Hour, Max: 1})
		if err != nil || len(claimed) != 1 {
			t.Fatalf("claimed %d, error %v", len(claimed), err)
		}
		return claimed[0].Run
	}
	suspend := func(r goclaw.Run, until goclaw.Millis) {
		t.Helper()
		must(s.Suspend(ctx, r.Fence(), goclaw.Suspension{Batch: goclaw.Batch{Now: 5}, For: goclaw.WaitPerson, Until: until}))
	}
	accept("strange \x00 name")
	run := claim()
	suspend(run, 0)
	_, err := s.Resume(ctx, run.ID, 1)
	must(err)
	until(t, changes, run.ID)
	run = claim()
	suspend(run, 1) // is over already
	until(t, changes, run.ID)
	run = claim()
	must(s.Post(ctx, run.ID, goclaw.InboxItem{ID: "i", CreatedAt: 1}))
	until(t, changes, run.ID)
	must(s.Redirect(ctx, "i", goclaw.MainKey("a")))
	until(t, changes, "")
	must(s.SetPause(ctx, goclaw.Pause{At: 1}))
	until(t, changes, "")
	_, err = s.Cancel(ctx, goclaw.Cancellation{Run: run.ID, Now: 1})
	must(err)
	until(t, changes, run.ID)
	must(s.Postpone(ctx, []string{"i"}, goclaw.Return{Parked: true}, 1))
	must(s.Unpark(ctx, "i", 1))
	until(t, changes, "")
	must(s.Release(ctx, "o", 1))
	until(t, changes, "")
	must(s.End(ctx, claim().Fence(), goclaw.Ending{State: goclaw.StateCancelled}))
	until(t, changes, run.ID)
	j, err := s.PutCronJob(ctx, goclaw.CronJob{ID: "j", Agent: "a", Enabled: true, Next: 1})
	must(err)
	until(t, changes, "")
	_, _, err = s.FireCronJob(ctx, firing(j, "fired"))
	must(err)
	until(t, changes, "fired")
	must(s.RemoveCronJob(ctx, "j"))
	until(t, changes, "")
}

// TestChangesCoalesce lets a reader be slow: what finds no room becomes one
// word to look at everything.
func TestChangesCoalesce(t *testing.T) {
	at := database(t)
	s, other := open(t, at, postgres.Options{}), open(t, at, postgres.Options{})
	changes := other.Changes()
	within(t, changes)
	const runs = 300
	for i := range runs {
		if _, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: turn(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, changes, "")
	if _, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: turn("last")}); err != nil {
		t.Fatal(err)
	}
	for {
		if run := within(t, changes); run == "last" || run == "" {
			break
		}
	}
}

// TestChangesReconnect breaks the listening connection: the next one begins
// with a word to look at everything.
func TestChangesReconnect(t *testing.T) {
	at := database(t)
	p, behind := through(t, at)
	s, other := open(t, at, postgres.Options{}), open(t, behind, postgres.Options{})
	changes := other.Changes()
	for range 2 {
		within(t, changes)
		p.cut()
	}
	until(t, changes, "")
	if _, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: turn("r")}); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "r")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for range changes {
		continue // up to its end
	}
}

// TestTwoStores lets two processes, so to say, claim at once, of which each
// wakes the other: no run is claimed twice, and all limits hold between them.
func TestTwoStores(t *testing.T) {
	const runs, owners, most = 60, 4, 3
	at := database(t)
	dropGuards(t, at)
	first := open(t, at, postgres.Options{})
	for i := range runs {
		r := turn(fmt.Sprintf("r%02d", i))
		r.Trigger, r.Lane = goclaw.TriggerSpawn, goclaw.APIKey("a", fmt.Sprint(i%7))
		r.Session = goclaw.SubagentKey("a", r.ID)
		if _, _, err := first.Accept(t.Context(), goclaw.Acceptance{Run: r}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	running, ended := 0, map[string]int{}
	var group sync.WaitGroup
	for i := range owners {
		s := first
		if i%2 == 1 {
			s = open(t, at, postgres.Options{})
		}
		group.Go(func() {
			for {
				claimed, err := s.Claim(t.Context(), goclaw.ClaimRequest{
					Owner: fmt.Sprintf("o%d", i), Now: 1, Lease: time.Hour, Max: 2, MaxWorkers: most,
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if running += len(claimed); running > most {
					t.Errorf("%d run at once, at most %d may", running, most)
				}
				over := len(ended) == runs
				mu.Unlock()
				if over {
					return
				}
				for _, one := range claimed {
					mu.Lock()
					ended[one.Run.ID]++
					running-- // before the end, so that the count is never too high
					mu.Unlock()
					if err := s.End(t.Context(), one.Run.Fence(), goclaw.Ending{State: goclaw.StateCompleted}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	for id, n := range ended {
		if n != 1 {
			t.Errorf("run %s was claimed %d times", id, n)
		}
	}
}
