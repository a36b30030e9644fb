package storetest

import (
	"errors"
	"fmt"
	"sync"

	"goclaw"
)

// together calls f(0) … f(n-1) at the same time and waits for all.
func together(n int, f func(i int)) {
	var group sync.WaitGroup
	ready := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-ready
			f(i)
		})
	}
	close(ready)
	group.Wait()
}

func testConcurrentClaims(w *world) {
	const sessions, claimers = 40, 8
	for i := range sessions {
		w.accept(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)))
	}
	var mu sync.Mutex
	owners := map[string]string{}
	together(claimers, func(i int) {
		owner := fmt.Sprintf("o%d", i)
		for {
			claimed, err := w.Claim(w.Context(), w.request(owner, 3))
			if err != nil {
				w.Errorf("Claim: %v", err)
			}
			if len(claimed) == 0 {
				return
			}
			mu.Lock()
			for _, one := range claimed {
				if other, taken := owners[one.Run.ID]; taken {
					w.Errorf("run %s was claimed by %s and %s", one.Run.ID, other, owner)
				}
				owners[one.Run.ID] = owner
			}
			mu.Unlock()
		}
	})
	if len(owners) != sessions {
		w.Fatalf("%d runs were claimed, want %d", len(owners), sessions)
	}
	for id, owner := range owners {
		if r := w.find(id); r.Owner != owner || r.Epoch != 1 {
			w.Errorf("run %s: owner %s, epoch %d; want %s, 1", id, r.Owner, r.Epoch, owner)
		}
	}
}

func testConcurrentChildren(w *world) {
	parent := w.begin(w.turn("parent", "a"), "o")
	fence := parent.Fence()
	var mu sync.Mutex
	accepted := 0
	together(50, func(i int) {
		a := w.spawn(fmt.Sprintf("c%02d", i), parent)
		a.MaxChildren, a.ParentFence = 5, &fence
		_, created, err := w.Accept(w.Context(), a)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && created:
			accepted++
		case !errors.Is(err, goclaw.ErrTooManyChildren):
			w.Errorf("Accept: created %v, error %v", created, err)
		}
	})
	runs, err := w.Runs(w.Context(), goclaw.RunFilter{Parent: "parent"})
	w.ok(err)
	if accepted != 5 || len(runs) != 5 {
		w.Fatalf("%d accepted, %d stored; want 5", accepted, len(runs))
	}
}

func testConcurrentKey(w *world) {
	var mu sync.Mutex
	created := 0
	seen := map[string]bool{}
	together(20, func(i int) {
		a := w.turn(fmt.Sprintf("r%02d", i), "a")
		a.Key = "same"
		run, isNew, err := w.Accept(w.Context(), a)
		if err != nil {
			w.Errorf("Accept: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen[run.ID] = true
		if isNew {
			created++
		}
	})
	if created != 1 || len(seen) != 1 {
		w.Fatalf("%d runs were created, %d seen; want 1", created, len(seen))
	}
}

func testConcurrentConsume(w *world) {
	_, children := w.family(1)
	w.announce(children[0], "item")
	var takers []goclaw.Run
	for i := range 10 {
		takers = append(takers, w.begin(w.turn(fmt.Sprintf("t%d", i), fmt.Sprintf("b%d", i)), "o"))
	}
	var mu sync.Mutex
	var winners []string
	together(len(takers), func(i int) {
		b := w.batch(0, 1)
		b.Consume = []string{"item"}
		err := w.Append(w.Context(), takers[i].Fence(), b)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			winners = append(winners, takers[i].ID)
		case !errors.Is(err, goclaw.ErrConsumed):
			w.Errorf("Append: %v", err)
		}
	})
	if len(winners) != 1 {
		w.Fatalf("the item was consumed by %v", winners)
	}
	for _, t := range takers {
		if n := len(w.events(t.ID)); (n == 1) != (t.ID == winners[0]) {
			w.Errorf("run %s has %d events; %s won", t.ID, n, winners[0])
		}
	}
}

// testConcurrentZombie lets an owner that lost its lease write on while
// another takes the run over: of its writes exactly those before the takeover
// are there, and nothing of an end.
func testConcurrentZombie(w *world) {
	zombie := w.begin(w.turn("r", "a"), "zombie")
	w.now = w.now.Add(lease)
	wrote := 0
	var taken []goclaw.Claimed
	together(2, func(i int) {
		if i == 1 {
			var err error
			if taken, err = w.Claim(w.Context(), w.request("heir", 1)); err != nil {
				w.Errorf("Claim: %v", err)
			}
			return
		}
		for wrote < 10_000 {
			err := w.Append(w.Context(), zombie.Fence(), w.batch(wrote, 1))
			if errors.Is(err, goclaw.ErrFenced) {
				return
			}
			if err != nil {
				w.Errorf("Append: %v", err)
				return
			}
			wrote++
		}
	})
	if len(taken) != 1 || !taken[0].TakeOver {
		w.Fatalf("the heir claimed %+v", taken)
	}
	w.fails("the zombie's End", w.End(w.Context(), zombie.Fence(), goclaw.Ending{
		State: goclaw.StateCompleted, Batch: w.batch(wrote, 1), Announce: &goclaw.InboxItem{ID: "i", Session: zombie.Session, Source: "r"},
	}), goclaw.ErrFenced)
	w.same("events", len(w.events("r")), wrote)
	w.same("inbox", w.pendingIDs(goclaw.SessionKey{}), []string(nil))
	w.ok(w.Append(w.Context(), taken[0].Run.Fence(), w.batch(wrote, 1)))
	w.end(taken[0].Run)
}
