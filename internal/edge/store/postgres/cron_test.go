package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
)

// firer fires a job whenever it is due, as a gateway does, and makes every call
// again that failed.
type firer struct {
	*crew // shared; its store is not used
	store *postgres.Store
	name  string
	tried int
}

// next decides about the next due time, unless another does.
func (f *firer) next() error {
	var jobs []goclaw.CronJob
	err := f.persist(func() (err error) {
		jobs, _, err = f.store.DueCronJobs(f.Context(), 1<<40)
		return err
	})
	if err != nil || len(jobs) != 1 {
		return errors.Join(err, fmt.Errorf("%d jobs are due", len(jobs)))
	}
	j := jobs[0]
	f.tried++
	fire := firing(j, fmt.Sprintf("run-%s-%d", f.name, f.tried))
	fire.Firing.Due, fire.Next = j.Next, j.Next+1
	fire.Run.Key = fmt.Sprint("cron/j/", j.Next) // as the crontab's runtime has it
	return f.persist(func() error {
		_, _, err := f.store.FireCronJob(f.Context(), fire)
		if errors.Is(err, goclaw.ErrChanged) {
			return nil
		}
		if err == nil {
			f.done.add()
		}
		return err
	})
}

// TestFiringRestart fires one job from several gateways at once while the
// server is stopped, in order and as in a crash: every due time is decided once,
// as one run, and none is left out. No index hides a double.
func TestFiringRestart(t *testing.T) {
	const firers = 6
	own := ownServer(t)
	at := own.URL("postgres")
	first := open(t, at, postgres.Options{})
	dropGuards(t, at)
	if _, err := first.PutCronJob(t.Context(), goclaw.CronJob{ID: "j", Agent: "a", Enabled: true, Next: 1}); err != nil {
		t.Fatal(err)
	}
	c := &crew{T: t, done: newCounter(), failed: newCounter()}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range firers {
		f := &firer{crew: c, store: first, name: fmt.Sprint("g", i)}
		if i%2 == 1 {
			f.store = open(t, at, postgres.Options{})
		}
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f.next(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, end := range []func() error{own.Halt, own.Kill} {
		c.done.reach(c.done.after(30))
		c.down.Lock()
		all := c.failed.after(firers)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		c.failed.reach(all)
		if err := own.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.down.Unlock()
	}
	c.done.reach(c.done.after(30))
	close(stop)
	group.Wait()
	checkFirings(t, first)
}

// checkFirings sees that every due time of the job j before its next was
// decided once, each with a run of its own.
func checkFirings(t *testing.T, s *postgres.Store) {
	t.Helper()
	j, err := s.CronJob(t.Context(), "j")
	if err != nil {
		t.Fatal(err)
	}
	firings, err := s.Firings(t.Context(), "j", 0)
	if err != nil || len(firings) != int(j.Next)-1 || j.Revision != int64(j.Next) {
		t.Fatalf("%d firings, next due %d, revision %d, error %v", len(firings), j.Next, j.Revision, err)
	}
	started := map[string]bool{}
	for i, f := range firings {
		if f.Due != j.Next-1-goclaw.Millis(i) || started[f.Run] || f.State != goclaw.StateQueued {
			t.Errorf("firing %+v", f)
		}
		started[f.Run] = true
	}
	runs, err := s.Runs(t.Context(), goclaw.RunFilter{})
	if err != nil || len(runs) != len(firings) {
		t.Errorf("%d runs for %d firings, error %v", len(runs), len(firings), err)
	}
}

// TestFiringTogether lets eight gateways fire the same due time at the same
// instant: one does, and the others hear that it was done.
func TestFiringTogether(t *testing.T) {
	const gateways, times = 8, 15
	at := database(t)
	dropGuards(t, at)
	var stores []*postgres.Store
	for range gateways {
		stores = append(stores, open(t, at+"&pool_max_conns=2", postgres.Options{}))
	}
	j, err := stores[0].PutCronJob(t.Context(), goclaw.CronJob{ID: "j", Agent: "a", Enabled: true, Next: 1})
	if err != nil {
		t.Fatal(err)
	}
	for n := range times {
		var group sync.WaitGroup
		won := make([]bool, gateways)
		ready := make(chan struct{})
		for i, s := range stores {
			f := firing(j, fmt.Sprintf("run-%02d-%d", n, i))
			f.Run.Key, f.Firing.Due, f.Next = "", j.Next, j.Next+1
			group.Go(func() {
				<-ready
				_, _, err := s.FireCronJob(t.Context(), f)
				won[i] = err == nil
				if err != nil && !errors.Is(err, goclaw.ErrChanged) {
					t.Error(err)
				}
			})
		}
		close(ready)
		group.Wait()
		winners := 0
		for _, w := range won {
			if w {
				winners++
			}
		}
		if winners != 1 {
			t.Fatalf("%d gateways fired, want 1", winners)
		}
		if j, err = stores[n%gateways].CronJob(t.Context(), "j"); err != nil {
			t.Fatal(err)
		}
	}
	checkFirings(t, stores[0])
}
