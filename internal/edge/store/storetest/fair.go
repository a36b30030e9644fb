package storetest

import (
	"fmt"
	"slices"

	"goclaw"
)

// queue accepts n workers of the agent in the lane of parent's session.
func (w *world) queue(prefix string, n int, parent goclaw.Run, agent string) {
	w.Helper()
	for i := range n {
		a := w.spawn(fmt.Sprintf("%s%03d", prefix, i), parent)
		a.Run.Session.Agent = agent
		w.accept(a)
	}
}

func testAcceptTree(w *world) {
	ctx := w.Context()
	top := w.begin(w.turn("top", "a"), "o")
	if top.Root != "top" || top.Lane != top.Session {
		w.Fatalf("a turn has root %q and lane %q; want itself and its session", top.Root, top.Lane)
	}
	spawn := func(id string, parent goclaw.Run, children int) error {
		a := w.spawn(id, parent)
		a.Run.Root, a.Run.Lane = parent.Root, parent.Lane
		a.MaxTreeRuns, a.MaxChildren = 3, children
		_, _, err := w.Accept(ctx, a)
		return err
	}
	w.ok(spawn("c0", top, 0))
	c0 := w.claims(w.request("o", 9), "c0")[0].Run
	w.ok(spawn("c1", c0, 0))
	c1 := w.find("c1")
	if c1.Root != "top" || c1.Lane != top.Session {
		w.Fatalf("a grandchild has root %q and lane %q; want its tree's", c1.Root, c1.Lane)
	}
	// Neither turns of the tree nor other trees count; ended runs do.
	news := w.turn("news", "a")
	news.Run.Root = "top"
	w.accept(news)
	w.end(c0)
	other := w.begin(w.turn("other", "b"), "o")
	w.accept(w.spawn("x", other))
	w.ok(spawn("c2", top, 0))
	w.fails("the fourth run of a tree", spawn("c3", top, 0), goclaw.ErrTreeFull)
	w.fails("the fourth run, and the second child", spawn("c3", top, 1), goclaw.ErrTooManyChildren)
	w.ok(spawn("x2", other, 0))
	_, err := w.Session(ctx, goclaw.SubagentKey("a", "c3"))
	w.fails("the session of a refused run", err, goclaw.ErrNotFound)

	if x := w.find("x"); x.Root != "x" || x.Lane != other.Session {
		w.Fatalf("a worker without root and lane has %q and %q; want itself and its requester", x.Root, x.Lane)
	}
}

// testClaimFair: a lane with two hundred workers must not keep another's only
// one waiting.
func testClaimFair(w *world) {
	many, one := w.begin(w.turn("many", "a"), "o"), w.begin(w.turn("one", "b"), "o")
	w.queue("m", 200, many, "a")
	four := w.request("o", 64)
	four.MaxWorkers = 4
	w.claims(four, "m000", "m001", "m002", "m003")
	w.queue("s", 1, one, "b")
	w.claims(four)
	w.end(w.find("m000"))
	w.claims(four, "s000")
	w.end(w.find("m001"))
	w.claims(four, "m004")
	w.end(w.find("s000"))
	w.queue("t", 2, one, "b")
	w.claims(four, "t000")
	w.end(w.find("m002"))
	w.end(w.find("m003"))
	w.claims(four, "m005", "t001") // alike, so the older one first
}

func testClaimRoundRobin(w *world) {
	a, b, c := w.begin(w.turn("a", "a"), "o"), w.begin(w.turn("b", "b"), "o"), w.begin(w.turn("c", "c"), "o")
	w.queue("a", 4, a, "a")
	w.queue("b", 3, b, "b")
	w.queue("c", 2, c, "c")
	w.claims(w.request("o", 5), "a000", "b000", "c000", "a001", "b001")
	// What others run counts; of lanes alike the older run goes first.
	w.claims(w.request("o2", 2), "c001", "a002")
	w.end(w.find("b000"))
	w.end(w.find("b001"))
	w.claims(w.request("o2", 9), "b002", "a003")
}

func testClaimLimits(w *world) {
	a, b := w.begin(w.turn("a", "a"), "o"), w.begin(w.turn("b", "b"), "o")
	w.queue("a", 3, a, "a")
	w.queue("x", 3, a, "x") // workers of another agent in the lane of a
	w.queue("b", 2, b, "b")
	w.queue("y", 2, b, "x")
	c := w.request("o", 9)
	c.MaxPerLane = 2
	w.claims(c, "a000", "b000", "a001", "b001")
	w.claims(c)

	// A run whose agent may not run more lets those behind it pass.
	c.MaxPerLane, c.MaxPerAgent = 4, map[string]int{"x": 1, "a": 2}
	w.claims(c, "x000")
	w.claims(c)
	w.end(w.find("x000"))
	w.end(w.find("b000"))
	w.claims(c, "y000")
	w.end(w.find("a000"))
	w.claims(c, "a002")
	// Withdrawn runs are claimed whatever limits, and count.
	_, err := w.Cancel(w.Context(), goclaw.Cancellation{Run: "x001", Now: w.now})
	w.ok(err)
	w.claims(c, "x001")
	w.end(w.find("y000"))
	w.claims(c)
	w.end(w.find("x001"))
	w.claims(c, "y001")
}

// testClaimTurnsBefore: fresh turns are left to those who accepted them, for a
// while.
func testClaimTurnsBefore(w *world) {
	requester := w.begin(w.turn("a", "a"), "o")
	w.accept(w.turn("fresh", "b"))
	w.accept(w.spawn("worker", requester))
	c := w.request("o2", 9)
	c.TurnsBefore = w.now
	w.claims(c, "worker")
	c.TurnsBefore++
	w.claims(c, "fresh")
}

// testClaimWoken: runs that wake compete with queued ones like any other.
func testClaimWoken(w *world) {
	a, b := w.begin(w.turn("a", "a"), "o"), w.begin(w.turn("b", "b"), "o")
	w.queue("a", 3, a, "a")
	w.queue("b", 1, b, "b")
	for _, one := range w.claims(w.request("o", 3), "a000", "b000", "a001") {
		w.suspend(one.Run, w.now+10)
	}
	w.suspend(a, w.now+10)
	w.now += 10
	w.claims(w.request("o", 9), "a", "a000", "b000", "a001", "a002")
}

func testClaimTakenOver(w *world) {
	w.begin(w.turn("lost", "b"), "o2")
	w.begin(w.turn("let-go", "a"), "o1")
	w.ok(w.Release(w.Context(), "o1", w.now))
	w.accept(w.turn("new", "c"))
	dead := w.request("o3", 9)
	dead.DeadOwners = true
	got := map[string][2]bool{}
	for _, one := range w.claim(dead) {
		got[one.Run.ID] = [2]bool{one.TakeOver, one.Released}
	}
	w.same("taken over and released", got, map[string][2]bool{"let-go": {true, true}, "lost": {true, false}, "new": {false, false}})
	w.now = w.now.Add(lease)
	for _, one := range w.claims(w.request("o4", 9), "lost+", "let-go+", "new+") {
		if one.Released {
			w.Errorf("run %s of an owner whose lease ended counts as released", one.Run.ID)
		}
	}
}

func testQueue(w *world) {
	ctx := w.Context()
	queue := func(want ...string) {
		w.Helper()
		got, err := w.Queue(ctx)
		w.ok(err)
		w.same("queue", got, want)
	}
	queue()
	a, b := w.begin(w.turn("a", "a"), "o"), w.begin(w.turn("b", "b"), "o")
	w.accept(w.turn("a2", "a"))
	w.queue("a", 4, a, "a")
	w.queue("b", 2, b, "b")
	second := w.spawn("second", a) // in a session that is busy
	second.Run.Session = goclaw.SubagentKey("a", "a003")
	w.accept(second)
	queue("a000", "b000", "a001", "b001", "a002", "a003")
	w.claims(w.request("o", 2), "a000", "b000")
	w.claims(w.request("o", 1), "a001")
	queue("b001", "a002", "a003")
	_, err := w.Cancel(ctx, goclaw.Cancellation{Run: "a002", Now: w.now})
	w.ok(err)
	queue("b001", "a003")
	// In this order they are claimed.
	order, err := w.Queue(ctx)
	w.ok(err)
	order = append([]string{"a002"}, order...) // which is withdrawn
	w.claims(w.request("o", 9), slices.Clone(order)...)
	queue()
}
