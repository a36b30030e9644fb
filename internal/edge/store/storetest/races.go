package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"goclaw"
)

// races runs f and g at the same time, many times over, each time on what
// prepare made.
func races(n int, prepare func(i int), f, g func(i int), settle func(i int)) {
	for i := range n {
		prepare(i)
		together(2, func(who int) {
			if who == 0 {
				f(i)
			} else {
				g(i)
			}
		})
		settle(i)
	}
}

const rounds = 25

// testRaceSuspendPost: a message comes while a run goes to sleep. Either the
// run notices, or the message wakes it.
func testRaceSuspendPost(w *world) {
	var run goclaw.Run
	var slept, posted error
	races(rounds, func(i int) {
		run = w.begin(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)), "o")
	}, func(int) {
		slept = w.Suspend(w.Context(), run.Fence(), goclaw.Suspension{For: goclaw.WaitWorkers, Until: w.now + 1e6, Batch: goclaw.Batch{Now: w.now}})
	}, func(i int) {
		posted = w.Post(w.Context(), run.ID, goclaw.InboxItem{ID: fmt.Sprintf("p%02d", i), CreatedAt: w.now})
	}, func(int) {
		w.ok(posted)
		if slept == nil {
			w.wakesAt(run.ID, w.now, "a message came while it fell asleep")
			return
		}
		w.fails("Suspend", slept, goclaw.ErrWoken)
		w.same("run", w.find(run.ID), run)
	})
}

// testRaceSuspendEnd: the last worker ends while its parent goes to sleep.
func testRaceSuspendEnd(w *world) {
	var parent, child goclaw.Run
	var slept, ended error
	races(rounds, func(i int) {
		parent = w.begin(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)), "o")
		child = w.begin(w.spawn(fmt.Sprintf("c%02d", i), parent), "o")
	}, func(int) {
		slept = w.Suspend(w.Context(), parent.Fence(), goclaw.Suspension{For: goclaw.WaitWorkers, Batch: goclaw.Batch{Now: w.now}})
	}, func(int) {
		ended = w.End(w.Context(), child.Fence(), goclaw.Ending{
			State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now}, Wake: &goclaw.Wake{Last: w.now + 1},
		})
	}, func(int) {
		w.ok(ended)
		if slept == nil {
			w.wakesAt(parent.ID, w.now+1, "its last worker ended while it fell asleep")
			return
		}
		w.fails("Suspend", slept, goclaw.ErrWoken)
	})
}

// testRaceLastWorkers: a parent's two last workers end at the same time. One
// of them is the last.
func testRaceLastWorkers(w *world) {
	var parent goclaw.Run
	var children [2]goclaw.Run
	var errs [2]error
	end := func(which int) func(int) {
		return func(int) {
			errs[which] = w.End(w.Context(), children[which].Fence(), goclaw.Ending{
				State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now}, Wake: &goclaw.Wake{Last: w.now + 1},
			})
		}
	}
	races(rounds, func(i int) {
		parent = w.begin(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)), "o")
		for j := range children {
			children[j] = w.begin(w.spawn(fmt.Sprintf("c%02d-%d", i, j), parent), "o")
		}
		w.suspend(parent, 0)
	}, end(0), end(1), func(int) {
		w.ok(errors.Join(errs[:]...))
		w.wakesAt(parent.ID, w.now+1, "both its workers have ended")
	})
}

// testRaceEndPost: a message comes while a run ends. It is never accepted for
// a run that ended without it.
func testRaceEndPost(w *world) {
	var run goclaw.Run
	var ended, posted error
	races(rounds, func(i int) {
		run = w.begin(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)), "o")
	}, func(int) {
		ended = w.End(w.Context(), run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, IfQuiet: true, Batch: goclaw.Batch{Now: w.now}})
	}, func(i int) {
		posted = w.Post(w.Context(), run.ID, goclaw.InboxItem{ID: fmt.Sprintf("p%02d", i), CreatedAt: w.now})
	}, func(int) {
		switch {
		case ended == nil:
			w.fails("Post to a run that ended", posted, goclaw.ErrEnded)
		default:
			w.ok(posted)
			w.fails("End of a run that was told something", ended, goclaw.ErrWoken)
		}
	})
}

// testRaceClaimCancel: a waiting run is claimed once, whether because it wakes
// or because it is to be cancelled.
func testRaceClaimCancel(w *world) {
	var run goclaw.Run
	var claimed, withdrawn []goclaw.Claimed
	var claimErr, cancelErr, withdrawErr error
	races(rounds, func(i int) {
		run = w.begin(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)), "o")
		w.suspend(run, w.now)
	}, func(int) {
		claimed, claimErr = w.Claim(w.Context(), w.request("o1", 9))
	}, func(int) {
		_, cancelErr = w.Cancel(w.Context(), goclaw.Cancellation{Run: run.ID, Now: w.now})
		c := w.request("o2", 9)
		c.OnlyCancelled = true
		withdrawn, withdrawErr = w.Claim(w.Context(), c)
	}, func(int) {
		w.ok(errors.Join(claimErr, cancelErr, withdrawErr))
		if len(claimed)+len(withdrawn) != 1 {
			w.Fatalf("run %s was claimed %d times by one owner, %d times by the other", run.ID, len(claimed), len(withdrawn))
		}
		if r := w.find(run.ID); r.Epoch != 2 || r.State != goclaw.StateRunning || r.CancelAt == 0 {
			w.Fatalf("run after all: %+v", r)
		}
	})
}

// testRaceZombie: an owner that lost its run, and the one that has it now, end
// or suspend it at the same time: only the heir does.
func testRaceZombie(w *world) {
	var zombie, heir goclaw.Run
	errs := map[string]error{}
	var mu sync.Mutex
	write := func(r goclaw.Run, i int) {
		var err error
		if i%2 == 0 {
			err = w.End(w.Context(), r.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Result: r.Owner, Batch: goclaw.Batch{Now: w.now}})
		} else {
			err = w.Suspend(w.Context(), r.Fence(), goclaw.Suspension{For: goclaw.WaitPerson, Batch: goclaw.Batch{Now: w.now}})
		}
		mu.Lock()
		defer mu.Unlock()
		errs[r.Owner] = err
	}
	races(rounds, func(i int) {
		zombie = w.begin(w.turn(fmt.Sprintf("r%02d", i), fmt.Sprintf("a%02d", i)), "zombie")
		w.now = w.now.Add(lease)
		heir = w.claims(w.request("heir", 1), zombie.ID+"+")[0].Run
	}, func(i int) { write(zombie, i) }, func(i int) { write(heir, i) }, func(int) {
		w.fails("the zombie's write", errs["zombie"], goclaw.ErrFenced)
		w.ok(errs["heir"])
		if r := w.find(zombie.ID); r.Result == "zombie" || r.Owner != "" {
			w.Fatalf("run after all: %+v", r)
		}
	})
}

// testRaceDecision: of two people who decide about a parked delivery, one does.
func testRaceDecision(w *world) {
	run := w.begin(w.turn("r", "a"), "o")
	var item string
	var unparked, dismissed error
	races(rounds, func(i int) {
		item = fmt.Sprintf("p%02d", i)
		w.ok(w.Post(w.Context(), "r", goclaw.InboxItem{ID: item, CreatedAt: w.now}))
		w.ok(w.Postpone(w.Context(), []string{item}, goclaw.Return{Parked: true}, w.now))
	}, func(int) {
		unparked = w.Unpark(w.Context(), item, w.now)
	}, func(int) {
		dismissed = w.Dismiss(w.Context(), item, w.now)
	}, func(int) {
		late := unparked
		if unparked == nil {
			late = dismissed
			w.ok(w.Append(w.Context(), run.Fence(), goclaw.Batch{Now: w.now, Consume: []string{item}}))
		} else {
			w.ok(dismissed)
		}
		w.fails("the second decision", late, goclaw.ErrNotFound)
		w.same("pending", w.pendingIDs(goclaw.SessionKey{}), []string(nil))
	})
}

func testConcurrentPost(w *world) {
	w.begin(w.turn("r", "a"), "o")
	together(10, func(int) {
		if err := w.Post(w.Context(), "r", goclaw.InboxItem{ID: "same", CreatedAt: w.now}); err != nil {
			w.Errorf("Post: %v", err)
		}
	})
	w.same("pending", w.pendingIDs(goclaw.SessionKey{}), []string{"same"})
}

// testConcurrentSenders: of several that want to send one reply, one may.
func testConcurrentSenders(w *world) {
	run := w.begin(w.turn("r", "a"), "o")
	w.ok(w.End(w.Context(), run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now},
		Outbox: &goclaw.Outbound{ID: "reply", Session: run.Session, Run: run.ID, Text: "text"}}))
	for try := 1; try <= 5; try++ {
		var got atomic.Int64
		together(8, func(int) {
			taken, err := w.TakeOutbox(w.Context(), "reply", w.now, w.now+10)
			if err != nil {
				w.Errorf("TakeOutbox: %v", err)
			}
			if taken {
				got.Add(1)
			}
		})
		w.now += 10
		due, err := w.Outbox(w.Context(), w.now, 0)
		w.ok(err)
		if got.Load() != 1 || len(due) != 1 || due[0].Attempts != try {
			w.Fatalf("%d took the reply, want 1; then due: %+v", got.Load(), due)
		}
	}
}

// testConcurrentReserve: twenty workers of a tree may never hold more than the
// tree may spend.
func testConcurrentReserve(w *world) {
	const workers, each, limit = 20, 150, 1000
	tree := w.tree("t", workers)[1:]
	limits := goclaw.Limits{Tokens: limit, USD: 1, Steps: workers * 9}
	var held atomic.Int64
	reserve := func(r goclaw.Run, spent bool) bool {
		short, err := w.Reserve(w.Context(), r.Fence(), goclaw.Reservation{
			Tokens: each, USD: 0.15, Tree: limits, Day: limits, Date: today, Spent: spent, Now: w.now,
		})
		if err != nil {
			w.Errorf("Reserve: %v", err)
		}
		return err == nil && short == nil
	}
	together(workers, func(i int) {
		if reserve(tree[i], false) {
			held.Add(1)
		}
	})
	if held.Load() != limit/each {
		w.Fatalf("%d of %d workers hold %d tokens each; the limit of %d has room for %d", held.Load(), workers, each, limit, limit/each)
	}
	// They go on until nothing is left: of what each call held, it used half.
	together(workers, func(i int) {
		for n := 0; n < 100 && reserve(tree[i], n > 0 && i%5 == 0); n++ {
			if i%5 == 0 {
				continue // its calls are lost
			}
			if err := w.Append(w.Context(), tree[i].Fence(), w.reply(n, each/2, 0.075)); err != nil {
				w.Errorf("Append: %v", err)
				return
			}
		}
	})
	rows, err := w.Usage(w.Context(), goclaw.UsageQuery{Tree: "t"})
	w.ok(err)
	if used := rows[0].Usage.Input + rows[0].Usage.Output + rows[0].Lost; used > limit || used == 0 {
		w.Fatalf("the tree used %d tokens (%d of them lost), its limit is %d", used, rows[0].Lost, limit)
	}
}

func testConcurrentRate(w *world) {
	var taken atomic.Int64
	together(30, func(int) {
		again, err := w.TakeRate(w.Context(), goclaw.RateRequest{Name: "p", RequestsPerMinute: 10, TokensPerMinute: 1000, Tokens: 50, Now: w.now})
		if err != nil {
			w.Errorf("TakeRate: %v", err)
		}
		if again == 0 {
			taken.Add(1)
		}
	})
	if taken.Load() != 10 {
		w.Fatalf("%d requests were let through, want 10", taken.Load())
	}
}

// testConcurrentLimits: what eight claimers take together stays within the
// limits.
func testConcurrentLimits(w *world) {
	a, b := w.begin(w.turn("a", "a"), "o"), w.begin(w.turn("b", "b"), "o")
	w.queue("a", 30, a, "a")
	w.queue("b", 30, b, "b")
	together(8, func(i int) {
		c := w.request(fmt.Sprintf("o%d", i), 2)
		c.MaxWorkers, c.MaxPerLane, c.MaxPerAgent = 9, 6, map[string]int{"b": 4}
		for {
			claimed, err := w.Claim(w.Context(), c)
			if err != nil {
				w.Errorf("Claim: %v", err)
			}
			if len(claimed) == 0 {
				return
			}
		}
	})
	runs, err := w.Runs(w.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	w.ok(err)
	running := map[string]int{}
	for _, r := range runs {
		if r.State == goclaw.StateRunning {
			running[r.Session.Agent]++
		}
	}
	if running["a"] != 5 || running["b"] != 4 {
		w.Fatalf("running: %v; want 5 of a and 4 of b", running)
	}
}
