package storetest

import (
	"fmt"

	"goclaw"
)

func testClaimStarts(w *world) {
	a := w.turn("r1", "a")
	a.Run.Profile.TimeoutMs = 1000
	want := w.accept(a)
	w.claims(w.request("o1", 0))
	w.now += 7
	got := w.claims(w.request("o1", 9), "r1")[0].Run
	want.State, want.Epoch, want.Owner, want.StartedAt, want.Deadline = goclaw.StateRunning, 1, "o1", w.now, w.now+1000
	w.same("claimed", got, want)
	w.same("stored", w.find("r1"), want)
	w.claims(w.request("o2", 9))

	// A takeover keeps start and deadline.
	w.now = w.now.Add(lease)
	got = w.claims(w.request("o2", 9), "r1+")[0].Run
	want.Epoch, want.Owner = 2, "o2"
	w.same("taken over", got, want)

	b := w.begin(w.turn("r2", "b"), "o2")
	if b.Deadline != 0 {
		w.Fatalf("a run without a timeout has deadline %d", b.Deadline)
	}
}

func testClaimSession(w *world) {
	for _, id := range []string{"a1", "a2", "a3"} {
		w.accept(w.turn(id, "a"))
	}
	w.accept(w.turn("b1", "b"))
	w.claims(w.request("o", 9), "a1", "b1")
	w.claims(w.request("o", 9))
	w.end(w.find("a1"))
	w.claims(w.request("o", 9), "a2")
	w.ok(w.Release(w.Context(), "o", w.now))
	w.claims(w.request("o", 9), "a2+", "b1+")
	w.end(w.find("a2"))
	w.end(w.find("b1"))
	w.claims(w.request("o", 9), "a3")
	w.end(w.find("a3"))
	w.accept(w.turn("a4", "a"))
	w.claims(w.request("o", 9), "a4")
}

func testClaimWorkers(w *world) {
	parent := w.begin(w.turn("parent", "a"), "o")
	for i := range 4 {
		w.accept(w.spawn(fmt.Sprintf("c%d", i), parent))
	}
	w.accept(w.turn("late", "b"))
	c := w.request("o", 9)
	c.MaxWorkers = 2
	w.claims(c, "late", "c0", "c1")
	w.claims(c)
	// Another owner's workers count, and withdrawn ones too.
	other := c
	other.Owner = "o2"
	w.claims(other)
	_, err := w.Cancel(w.Context(), goclaw.Cancellation{Run: "c3", Now: w.now})
	w.ok(err)
	w.claims(other, "c3")
	w.end(w.find("c0"))
	w.claims(other)
	w.end(w.find("c3"))
	w.claims(other, "c2")
	// Those that were let go do not count until they are taken over.
	w.ok(w.Release(w.Context(), "o", w.now))
	w.accept(w.spawn("c4", parent))
	one := other
	one.Max = 1
	w.claims(one, "parent+")
	w.claims(one, "c1+")
	w.claims(other, "late+")
}

func testClaimWithdrawn(w *world) {
	parent := w.begin(w.turn("a1", "a"), "o")
	w.accept(w.turn("b1", "b"))
	w.accept(w.turn("a2", "a"))
	w.accept(w.spawn("c1", parent))
	for _, id := range []string{"a2", "c1"} {
		_, err := w.Cancel(w.Context(), goclaw.Cancellation{Run: id, Now: w.now})
		w.ok(err)
	}
	w.ok(w.Release(w.Context(), "o", w.now))
	c := w.request("o2", 9)
	c.MaxWorkers = 1
	w.claims(c, "a2", "c1", "a1+", "b1")
}

func testClaimOnlyCancelled(w *world) {
	w.begin(w.turn("a1", "a"), "o")
	w.begin(w.turn("b1", "b"), "o")
	w.accept(w.turn("c1", "c"))
	w.accept(w.turn("d1", "d"))
	for _, id := range []string{"b1", "d1"} {
		_, err := w.Cancel(w.Context(), goclaw.Cancellation{Run: id, Now: w.now})
		w.ok(err)
	}
	w.ok(w.Release(w.Context(), "o", w.now))
	c := w.request("o", 9)
	c.OnlyCancelled = true
	w.claims(c, "d1", "b1+")
	w.claims(c)
	w.claims(w.request("o", 9), "a1+", "c1")
}

func testClaimLease(w *world) {
	run := w.begin(w.turn("a1", "a"), "o1")
	w.now = w.now.Add(lease) - 1
	w.claims(w.request("o2", 9))
	_, err := w.Heartbeat(w.Context(), goclaw.Heartbeat{Owner: "o1", Now: w.now, Lease: lease})
	w.ok(err)
	w.now = w.now.Add(lease) - 1
	w.claims(w.request("o2", 9))
	w.now++
	if got := w.find("a1"); got.State != goclaw.StateRunning || got.Owner != "o1" {
		w.Fatalf("an expired lease changed the run by itself: %s of %s", got.State, got.Owner)
	}
	taken := w.claims(w.request("o2", 9), "a1+")[0].Run
	if taken.Epoch != run.Epoch+1 {
		w.Fatalf("epoch %d after a takeover of epoch %d", taken.Epoch, run.Epoch)
	}
	pulse, err := w.Heartbeat(w.Context(), goclaw.Heartbeat{Owner: "o1", Now: w.now, Lease: lease})
	w.ok(err)
	w.same("held after the loss", pulse, goclaw.Pulse{Held: map[string]int64{}})

	// An owner that slept through its own lease goes on with its runs, unless
	// another took them.
	w.now = w.now.Add(lease)
	w.claims(w.request("o2", 9))
	w.ok(w.Append(w.Context(), taken.Fence(), goclaw.Batch{Now: w.now}))
	w.claims(w.request("o1", 9), "a1+")
}

func testClaimDeadOwners(w *world) {
	w.begin(w.turn("a1", "a"), "o1")
	w.begin(w.turn("b1", "b"), "o2")
	w.accept(w.turn("a2", "a"))
	w.claims(w.request("o2", 9))
	c := w.request("o2", 9)
	c.DeadOwners = true
	w.claims(c, "a1+")
	w.claims(c)
}

func testClaimReleased(w *world) {
	run := w.begin(w.turn("a1", "a"), "o1")
	w.begin(w.turn("b1", "b"), "o2")
	w.ok(w.Release(w.Context(), "o1", w.now))
	w.ok(w.Release(w.Context(), "nobody", w.now))
	got := w.find("a1")
	if got.State != goclaw.StateInterrupted || got.Owner != "" || got.Epoch != 1 {
		w.Fatalf("released run: %s of %q, epoch %d", got.State, got.Owner, got.Epoch)
	}
	w.fails("Append after Release", w.Append(w.Context(), run.Fence(), w.batch(0, 1)), goclaw.ErrFenced)
	w.claims(w.request("o1", 9), "a1+")
}

func testClaimMax(w *world) {
	for i := range 5 {
		w.accept(w.turn("r"+string(rune('0'+i)), string(rune('a'+i))))
	}
	w.claims(w.request("o", 2), "r0", "r1")
	w.claims(w.request("o", -1))
	w.ok(w.Release(w.Context(), "o", w.now))
	w.claims(w.request("o", 3), "r0+", "r1+", "r2")
}

func testClaimOrder(w *world) {
	// Turns go before workers: they are not limited, and people wait for them.
	parent := w.begin(w.turn("p", "p"), "o")
	w.accept(w.turn("t1", "a"))
	w.accept(w.spawn("w1", parent))
	w.accept(w.turn("t2", "b"))
	w.accept(w.spawn("w2", parent))
	w.accept(w.turn("t3", "c"))
	c := w.request("o", 4)
	c.MaxWorkers = 1
	w.claims(c, "t1", "t2", "t3", "w1")
	w.claims(w.request("o", 1), "w2")
}

func testHeartbeat(w *world) {
	ctx := w.Context()
	w.begin(w.turn("a1", "a"), "o1")
	w.begin(w.turn("b1", "b"), "o1")
	w.begin(w.turn("c1", "c"), "o2")
	w.accept(w.turn("a2", "a"))
	_, err := w.Cancel(ctx, goclaw.Cancellation{Run: "b1", Now: w.now})
	w.ok(err)
	pulse, err := w.Heartbeat(ctx, goclaw.Heartbeat{Owner: "o1", Now: w.now, Lease: lease})
	w.ok(err)
	w.same("pulse", pulse, goclaw.Pulse{Held: map[string]int64{"a1": 1, "b1": 1}, Cancelled: []string{"b1"}})
	w.end(w.find("a1"))
	pulse, err = w.Heartbeat(ctx, goclaw.Heartbeat{Owner: "o1", Now: w.now, Lease: lease})
	w.ok(err)
	w.same("pulse", pulse.Held, map[string]int64{"b1": 1})
}
