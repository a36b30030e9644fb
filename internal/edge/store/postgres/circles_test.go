package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
)

// TestNoCircles does to a family of runs, at the same time, all that locks more
// than one row: no two transactions wait for each other.
func TestNoCircles(t *testing.T) {
	const rounds, workers = 40, 3
	at := database(t)
	s := open(t, at+"&pool_max_conns=12", postgres.Options{})
	for round := range rounds {
		f := newFamily(t, s, round, workers)
		var group sync.WaitGroup
		ready := make(chan struct{})
		for _, act := range f.acts() {
			group.Go(func() {
				<-ready
				if err := act(); err != nil && !errors.Is(err, goclaw.ErrFenced) && !errors.Is(err, goclaw.ErrWoken) && !errors.Is(err, goclaw.ErrEnded) {
					t.Error(err)
				}
			})
		}
		close(ready)
		group.Wait()
		if err := s.Release(t.Context(), "o", 9); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := query(t, at, "SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()"); n != "0" {
		t.Errorf("%s circles had to be broken", n)
	}
}

// family is a run of a user, its workers, and a worker of each, all under way,
// and another turn that follows in the user's session.
type family struct {
	*testing.T
	store *postgres.Store
	round int
	lead  goclaw.Run
	mids  []goclaw.Run
	leafs []goclaw.Run
}

func newFamily(t *testing.T, s *postgres.Store, round, workers int) *family {
	f := &family{T: t, store: s, round: round}
	name := fmt.Sprintf("%02d", round)
	f.lead = f.begin(turn("lead-" + name))
	for i := range workers {
		f.mids = append(f.mids, f.begin(f.worker(f.lead, fmt.Sprintf("mid-%s-%d", name, i))))
		f.leafs = append(f.leafs, f.begin(f.worker(f.mids[i], fmt.Sprintf("leaf-%s-%d", name, i))))
	}
	next := turn("next-" + name)
	next.Session = f.lead.Session
	if _, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: next}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *family) worker(parent goclaw.Run, id string) goclaw.Run {
	r := turn(id)
	r.Trigger, r.Parent, r.Requester, r.Root, r.Session = goclaw.TriggerSpawn, parent.ID, parent.Session, f.lead.ID, goclaw.SubagentKey("a", id)
	return r
}

func (f *family) begin(r goclaw.Run) goclaw.Run {
	f.Helper()
	if _, _, err := f.store.Accept(f.Context(), goclaw.Acceptance{Run: r}); err != nil {
		f.Fatal(err)
	}
	claimed, err := f.store.Claim(f.Context(), goclaw.ClaimRequest{Owner: "o", Now: 1, Lease: time.Hour, Max: 10_000})
	if err != nil {
		f.Fatal(err)
	}
	for _, one := range claimed {
		if one.Run.ID == r.ID {
			return one.Run
		}
	}
	f.Fatalf("run %s was not claimed", r.ID)
	return r
}

// acts are what happens at once.
func (f *family) acts() (acts []func() error) {
	ctx, s := f.Context(), f.store
	add := func(act func() error) { acts = append(acts, act) }
	end := func(r goclaw.Run, cascade string) {
		add(func() error {
			return s.End(ctx, r.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 5}, Cascade: cascade,
				Wake: &goclaw.Wake{Last: 6, Next: 7}, Announce: &goclaw.InboxItem{ID: "item-" + r.ID, Session: r.Requester, Source: r.ID}})
		})
	}
	for i, mid := range f.mids {
		end(f.leafs[i], "")
		if i > 0 {
			end(mid, "it has ended")
		}
		add(func() error {
			return s.Post(ctx, mid.ID, goclaw.InboxItem{ID: "post-" + mid.ID, CreatedAt: 5})
		})
		fence := mid.Fence()
		add(func() error {
			_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: f.worker(mid, "late-"+mid.ID), ParentFence: &fence, MaxChildren: 9, MaxTreeRuns: 99})
			return err
		})
	}
	add(func() error {
		return s.Suspend(ctx, f.lead.Fence(), goclaw.Suspension{For: goclaw.WaitWorkers, Batch: goclaw.Batch{Now: 5}})
	})
	add(func() error {
		return s.Suspend(ctx, f.mids[0].Fence(), goclaw.Suspension{For: goclaw.WaitWorkers, Batch: goclaw.Batch{Now: 5}})
	})
	add(func() error {
		_, err := s.Cancel(ctx, goclaw.Cancellation{Run: f.lead.ID, Now: 5, Cascade: true})
		return err
	})
	add(func() error {
		r := turn(fmt.Sprintf("more-%02d", f.round))
		r.Session = f.lead.Session
		_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: r})
		return err
	})
	add(func() error {
		_, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 8, Lease: time.Hour, Max: 9})
		return err
	})
	add(func() error {
		_, err := s.Tidy(ctx, 8, 0)
		return err
	})
	return acts
}
