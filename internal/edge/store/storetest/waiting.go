package storetest

import (
	"fmt"

	"goclaw"
)

// suspend lets r wait for its workers, or for a message, with nothing pending.
func (w *world) suspend(r goclaw.Run, until goclaw.Millis) {
	w.Helper()
	w.ok(w.Suspend(w.Context(), r.Fence(), goclaw.Suspension{Batch: goclaw.Batch{Now: w.now}, For: goclaw.WaitWorkers, Until: until}))
}

// wakesAt fails unless run waits and wakes at that moment.
func (w *world) wakesAt(run string, at goclaw.Millis, why string) {
	w.Helper()
	if r := w.find(run); r.State != goclaw.StateWaiting || r.WakeAt != at {
		w.Fatalf("%s: run %s is %s and wakes at %d; want waiting, %d", why, run, r.State, r.WakeAt, at)
	}
}

func testSuspend(w *world) {
	ctx := w.Context()
	parent, _ := w.family(1)
	w.accept(w.turn("next", "a"))
	usage := goclaw.Usage{Input: 3}
	b := w.batch(0, 2)
	b.Usage = &usage
	w.ok(w.Suspend(ctx, parent.Fence(), goclaw.Suspension{Batch: b, For: goclaw.WaitWorkers, Until: w.now + 50}))
	want := parent
	want.State, want.Owner, want.WaitsFor, want.WakeAt, want.Usage = goclaw.StateWaiting, "", goclaw.WaitWorkers, w.now+50, usage
	w.same("suspended", w.find("parent"), want)
	w.same("events", w.events("parent"), b.Events)
	active, queued, err := w.Counts(ctx)
	w.ok(err)
	w.same("active and queued", []int{active, queued}, []int{2, 1})
	pulse, err := w.Heartbeat(ctx, goclaw.Heartbeat{Owner: "o", Now: w.now, Lease: lease})
	w.ok(err)
	w.same("held", pulse.Held, map[string]int64{"c0": 1})

	// Nobody's run is written by nobody, and nobody's death takes it over.
	w.fails("Append while it waits", w.Append(ctx, parent.Fence(), w.batch(2, 1)), goclaw.ErrFenced)
	w.fails("a second Suspend", w.Suspend(ctx, parent.Fence(), goclaw.Suspension{For: goclaw.WaitWorkers, Until: 1}), goclaw.ErrFenced)
	w.ok(w.Release(ctx, "o", w.now))
	dead := w.request("o2", 9)
	dead.DeadOwners = true
	w.claims(dead, "c0+")
}

func testSuspendWoken(w *world) {
	ctx := w.Context()
	parent, children := w.family(2)
	w.announce(children[0], "i0")
	suspend := func(s goclaw.Suspension) error {
		s.Batch.Events = w.batch(len(w.events("parent")), 1).Events
		s.Batch.Now = w.now
		return w.Suspend(ctx, parent.Fence(), s)
	}
	refuses := func(what string, s goclaw.Suspension) {
		w.Helper()
		w.fails(what, suspend(s), goclaw.ErrWoken)
		if got := w.find("parent"); got.State != goclaw.StateRunning || got.Owner != "o" {
			w.Fatalf("%s: the run is %s of %q", what, got.State, got.Owner)
		}
		w.same("events", w.events("parent"), []goclaw.Event(nil))
		w.same("pending", w.pendingIDs(parent.Session), []string{"i0"})
	}
	workers := goclaw.Suspension{For: goclaw.WaitWorkers}
	refuses("an item that was not seen", workers)
	seen := workers
	seen.Seen = 2
	refuses("an item that is gone", seen)
	taken := workers
	taken.Seen, taken.Consume = 1, []string{"i0"}
	refuses("an item that it takes itself", taken)

	w.end(children[1])
	seen.Seen = 1
	refuses("no worker left", seen)
	// With a limit it waits for a message. What it takes is not pending then.
	taken.Seen, taken.Until = 0, w.now+9
	w.ok(suspend(taken))
	w.wakesAt("parent", w.now+9, "suspended with a limit")
	w.same("pending", w.pendingIDs(parent.Session), []string(nil))

	// Who is to be cancelled does not wait for long.
	other := w.begin(w.turn("other", "b"), "o")
	_, err := w.Cancel(ctx, goclaw.Cancellation{Run: "other", Now: w.now})
	w.ok(err)
	w.ok(w.Suspend(ctx, other.Fence(), goclaw.Suspension{For: goclaw.WaitPerson, Batch: w.batch(0, 1)}))
	w.claims(w.request("o", 9), "other")
}

// testSuspendDeadline: a deadline wakes whoever waits, whatever for.
func testSuspendDeadline(w *world) {
	for i, until := range []goclaw.Millis{0, 50, 500} {
		r := w.turn(fmt.Sprintf("r%d", i), fmt.Sprintf("a%d", i))
		r.Run.Profile.TimeoutMs, r.Run.Profile.Until = 1000, w.now+100
		run := w.begin(r, "o")
		if run.Deadline != w.now+100 {
			w.Fatalf("the deadline is %d, want %d", run.Deadline, w.now+100)
		}
		s := goclaw.Suspension{For: goclaw.WaitPerson}
		if until != 0 {
			s.Until = w.now + until
		}
		w.ok(w.Suspend(w.Context(), run.Fence(), s))
		w.wakesAt(run.ID, []goclaw.Millis{w.now + 100, w.now + 50, w.now + 100}[i], "suspended with a deadline")
	}
}

// testSuspendForCaller: only results wake a run that waits for its caller.
func testSuspendForCaller(w *world) {
	run := w.begin(w.turn("asks", "a"), "o")
	w.ok(w.Suspend(w.Context(), run.Fence(), goclaw.Suspension{For: goclaw.WaitCaller, Until: w.now + 100, Batch: goclaw.Batch{Now: w.now}}))
	w.ok(w.Post(w.Context(), "asks", goclaw.InboxItem{ID: "m", Kind: goclaw.ItemSteer, CreatedAt: w.now}))
	w.wakesAt("asks", w.now+100, "a message")
	w.ok(w.Post(w.Context(), "asks", goclaw.InboxItem{ID: "r", Kind: goclaw.ItemResults, CreatedAt: w.now + 1}))
	w.wakesAt("asks", w.now+1, "a result")
}

// testWakeTogether: only who is announced together with the one that ends is
// waited for.
func testWakeTogether(w *world) {
	lead := w.begin(w.turn("lead", "a"), "o")
	var workers []goclaw.Run
	for i, mode := range []goclaw.AnnounceMode{goclaw.AnnounceTogether, goclaw.AnnounceTogether, goclaw.AnnounceEach, goclaw.AnnounceNone} {
		a := w.spawn(fmt.Sprintf("w%d", i), lead)
		a.Run.Announce = mode
		workers = append(workers, w.begin(a, "o"))
	}
	w.suspend(lead, 0)
	ends := func(r goclaw.Run, together bool) {
		w.ok(w.End(w.Context(), r.Fence(), goclaw.Ending{
			State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now},
			Wake: &goclaw.Wake{Last: w.now + 1, Next: w.now + 100, Together: together},
		}))
	}
	ends(workers[0], true)
	w.wakesAt("lead", w.now+100, "a sibling of its group is left")
	w.now += 10
	ends(workers[1], true)
	w.wakesAt("lead", w.now+1, "the last of its group")
}

// testEndCascade: who ends so takes all below along, in whatever state.
func testEndCascade(w *world) {
	lead := w.begin(w.turn("lead", "a"), "o")
	mid := w.begin(w.spawn("mid", lead), "o")
	leaf := w.begin(w.spawn("leaf", mid), "o")
	w.accept(w.spawn("queued", mid))
	w.begin(w.turn("other", "b"), "o")
	w.end(leaf)
	w.accept(w.spawn("below", leaf))
	w.ok(w.End(w.Context(), mid.Fence(), goclaw.Ending{
		State: goclaw.StateCancelled, Batch: goclaw.Batch{Now: w.now}, Cascade: "why",
	}))
	for id, want := range map[string]string{"lead": "", "mid": "", "leaf": "", "queued": "why", "below": "why", "other": ""} {
		if r := w.find(id); r.CancelWhy != want || (r.CancelAt != 0) != (want != "") {
			w.Fatalf("%s is to be cancelled at %d because %q; want %q", id, r.CancelAt, r.CancelWhy, want)
		}
	}
}

func testSuspendRefuses(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	waits := goclaw.Suspension{For: goclaw.WaitPerson, Batch: w.batch(0, 1)}
	stale := run.Fence()
	stale.Epoch++
	w.fails("a stale fence", w.Suspend(ctx, stale, waits), goclaw.ErrFenced)
	for what, change := range map[string]func(*goclaw.Suspension){
		"an unknown reason": func(s *goclaw.Suspension) { s.For = "godot" },
		"no reason":         func(s *goclaw.Suspension) { s.For = "" },
		"a gap":             func(s *goclaw.Suspension) { s.Batch = w.batch(1, 1) },
		"an unknown item":   func(s *goclaw.Suspension) { s.Consume = []string{"none"} },
	} {
		bad := waits
		change(&bad)
		w.refused(what, w.Suspend(ctx, run.Fence(), bad))
	}
	w.same("run", w.find("r"), run)
	w.same("events", w.events("r"), []goclaw.Event(nil))
}

func testClaimWaiting(w *world) {
	a := w.turn("parent", "a")
	a.Run.Profile.TimeoutMs = 1000
	parent := w.begin(a, "o")
	w.begin(w.spawn("c0", parent), "o")
	w.suspend(parent, w.now+50)
	w.accept(w.turn("next", "a")) // of the same session: it stays behind
	w.now += 49
	w.claims(w.request("o2", 9))
	w.now++
	got := w.claims(w.request("o2", 9), "parent")[0]
	want := parent
	want.Epoch, want.Owner = 2, "o2"
	w.same("claimed", got, goclaw.Claimed{Run: want})
	w.fails("its old owner's Append", w.Append(w.Context(), parent.Fence(), w.batch(0, 1)), goclaw.ErrFenced)
	w.ok(w.Append(w.Context(), want.Fence(), w.batch(0, 1)))

	// A run without a moment waits until something wakes it, or cancels it.
	w.suspend(want, 0)
	w.now = w.now.Add(100 * lease)
	cancelled := w.request("o3", 9)
	cancelled.OnlyCancelled = true
	w.claims(cancelled)
	_, err := w.Cancel(w.Context(), goclaw.Cancellation{Run: "parent", Now: w.now})
	w.ok(err)
	again := w.claims(cancelled, "parent")[0]
	if again.TakeOver || again.Released || again.Run.Epoch != 3 || again.Run.WaitsFor != "" || again.Run.WakeAt != 0 {
		w.Fatalf("a cancelled waiting run was claimed as %+v", again)
	}
	w.end(again.Run)
	w.claims(w.request("o3", 9), "c0+", "next")
}

// testWaitingHoldsNoSlot: an orchestrator that waits for its worker must not
// keep it from running.
func testWaitingHoldsNoSlot(w *world) {
	top := w.begin(w.turn("top", "a"), "o")
	w.accept(w.spawn("middle", top))
	one := w.request("o", 9)
	one.MaxWorkers = 1
	middle := w.claims(one, "middle")[0].Run
	w.accept(w.spawn("leaf", middle))
	w.claims(one)
	w.suspend(middle, 0)
	leaf := w.claims(one, "leaf")[0].Run
	w.ok(w.End(w.Context(), leaf.Fence(), goclaw.Ending{
		State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now}, Wake: &goclaw.Wake{Last: w.now + 5},
	}))
	w.accept(w.spawn("younger", top))
	w.now += 5
	one.Now = w.now
	w.claims(one, "middle")
	w.claims(one)
	w.end(w.find("middle"))
	w.claims(one, "younger")
}

func testWake(w *world) {
	ctx := w.Context()
	parent, children := w.family(4)
	w.suspend(parent, 0)
	end := func(child int, wake *goclaw.Wake, want goclaw.Millis, why string) {
		w.Helper()
		w.ok(w.End(ctx, children[child].Fence(), goclaw.Ending{
			State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now}, Wake: wake,
		}))
		w.wakesAt("parent", want, why)
	}
	end(0, &goclaw.Wake{Last: w.now}, 0, "others are left, and this one alone does not wake")
	end(1, &goclaw.Wake{Last: w.now, Next: w.now + 70}, w.now+70, "others are left")
	end(2, &goclaw.Wake{Last: w.now, Next: w.now + 80}, w.now+70, "it wakes earlier already")
	end(3, &goclaw.Wake{Last: w.now + 2, Next: w.now + 1}, w.now+2, "the last")
	w.now += 2
	parent = w.claims(w.request("o", 1), "parent")[0].Run

	// One that waits for a person is not woken, nor one that runs.
	lone := w.begin(w.spawn("lone", parent), "o")
	w.ok(w.Suspend(ctx, parent.Fence(), goclaw.Suspension{For: goclaw.WaitPerson, Batch: goclaw.Batch{Now: w.now}}))
	w.ok(w.End(ctx, lone.Fence(), goclaw.Ending{State: goclaw.StateFailed, Batch: goclaw.Batch{Now: w.now}, Wake: &goclaw.Wake{Last: w.now}}))
	w.wakesAt("parent", 0, "it waits for a person")
	busy := w.begin(w.turn("busy", "b"), "o")
	last := w.begin(w.spawn("last", busy), "o")
	w.ok(w.End(ctx, last.Fence(), goclaw.Ending{State: goclaw.StateFailed, Batch: goclaw.Batch{Now: w.now}, Wake: &goclaw.Wake{Last: w.now}}))
	w.same("a parent that runs", w.find("busy"), busy)
	w.refused("an ending that wakes at no time", w.End(ctx, busy.Fence(), goclaw.Ending{State: goclaw.StateFailed, Wake: &goclaw.Wake{}}))
}

func testPost(w *world) {
	ctx := w.Context()
	parent, children := w.family(1)
	worker := children[0]
	item := goclaw.InboxItem{ID: "p1", Source: "who", Text: "go left", CreatedAt: w.now}
	w.ok(w.Post(ctx, "c0", item))
	want := item
	want.Kind, want.Session = goclaw.ItemSteer, worker.Session
	items, err := w.Pending(ctx, worker.Session)
	w.ok(err)
	w.same("pending", items, []goclaw.InboxItem{want})
	item.Text = "go right"
	w.ok(w.Post(ctx, "c0", item))
	items, err = w.Pending(ctx, worker.Session)
	w.ok(err)
	w.same("pending after a repeat", items, []goclaw.InboxItem{want})
	w.same("the run", w.find("c0"), worker)

	// It wakes a run that waits for its workers, not one that waits for a person.
	w.suspend(parent, w.now+100)
	w.ok(w.Post(ctx, "parent", goclaw.InboxItem{ID: "p2", CreatedAt: w.now + 3}))
	w.wakesAt("parent", w.now+3, "a message")
	w.ok(w.Post(ctx, "parent", goclaw.InboxItem{ID: "p3", CreatedAt: w.now + 5}))
	w.wakesAt("parent", w.now+3, "another message")
	w.ok(w.Suspend(ctx, worker.Fence(), goclaw.Suspension{For: goclaw.WaitPerson, Seen: 1, Batch: goclaw.Batch{Now: w.now}}))
	w.ok(w.Post(ctx, "c0", goclaw.InboxItem{ID: "p4", CreatedAt: w.now}))
	w.wakesAt("c0", 0, "a message to one that waits for a person")

	w.fails("Post to nobody", w.Post(ctx, "none", goclaw.InboxItem{ID: "p5", CreatedAt: 1}), goclaw.ErrNotFound)
	for what, bad := range map[string]goclaw.InboxItem{
		"no id": {CreatedAt: 1}, "no time": {ID: "p5"}, "another session": {ID: "p5", CreatedAt: 1, Session: parent.Session},
	} {
		w.refused(what, w.Post(ctx, "c0", bad))
	}
	_, err = w.Cancel(ctx, goclaw.Cancellation{Run: "c0", Now: w.now})
	w.ok(err)
	w.fails("Post to a cancelled run", w.Post(ctx, "c0", goclaw.InboxItem{ID: "p5", CreatedAt: 1}), goclaw.ErrEnded)
	w.ok(w.Post(ctx, "c0", item)) // known: that it arrived stays true
	w.end(w.claims(w.request("o", 1), "c0")[0].Run)
	w.fails("Post to an ended run", w.Post(ctx, "c0", goclaw.InboxItem{ID: "p5", CreatedAt: 1}), goclaw.ErrEnded)
	w.same("pending", w.pendingIDs(worker.Session), []string{"p1", "p4"})
}

func testResume(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	_, err := w.Resume(ctx, "r", w.now)
	w.fails("Resume of a run under way", err, goclaw.ErrNotFound)
	_, err = w.Resume(ctx, "none", w.now)
	w.fails("Resume of nothing", err, goclaw.ErrNotFound)
	w.ok(w.Suspend(ctx, run.Fence(), goclaw.Suspension{For: goclaw.WaitPerson, Until: w.now + 100}))
	w.now += 4
	resumed, err := w.Resume(ctx, "r", w.now)
	w.ok(err)
	if resumed.ID != "r" || resumed.State != goclaw.StateWaiting || resumed.WakeAt != w.now {
		w.Fatalf("resumed run: %+v", resumed)
	}
	w.same("stored", w.find("r"), resumed)
	w.now += 4
	_, err = w.Resume(ctx, "r", w.now)
	w.ok(err)
	w.wakesAt("r", w.now-4, "resumed twice")
	run = w.claims(w.request("o", 1), "r")[0].Run
	_, err = w.Resume(ctx, "r", w.now)
	w.fails("Resume of a run that was claimed", err, goclaw.ErrNotFound)
	w.suspend(run, w.now+100)
	_, err = w.Resume(ctx, "r", w.now)
	w.ok(err)
	w.wakesAt("r", w.now, "resumed while it waits for workers")
}

func testEndIfQuiet(w *world) {
	ctx := w.Context()
	parent, children := w.family(2)
	w.announce(children[0], "i0")
	quietly := func(consume ...string) error {
		return w.End(ctx, parent.Fence(), goclaw.Ending{
			State: goclaw.StateCompleted, IfQuiet: true, Batch: goclaw.Batch{Now: w.now, Events: w.batch(0, 1).Events, Consume: consume},
			Announce: &goclaw.InboxItem{ID: "mine", Session: goclaw.MainKey("b"), Source: "parent"},
		})
	}
	w.fails("End with a worker and an item", quietly(), goclaw.ErrWoken)
	w.fails("End with a worker", quietly("i0"), goclaw.ErrWoken)
	w.end(children[1])
	w.fails("End with an item", quietly(), goclaw.ErrWoken)
	w.same("run", w.find("parent"), parent)
	w.same("events", w.events("parent"), []goclaw.Event(nil))
	w.same("inbox", w.pendingIDs(goclaw.SessionKey{}), []string{"i0"})
	// Neither another's items nor parked ones are in the way.
	other := w.begin(w.turn("other", "c"), "o")
	w.ok(w.Post(ctx, "other", goclaw.InboxItem{ID: "others", CreatedAt: w.now}))
	w.ok(w.Post(ctx, "parent", goclaw.InboxItem{ID: "parked", CreatedAt: w.now}))
	w.ok(w.Postpone(ctx, []string{"parked"}, goclaw.Return{Parked: true}, w.now))
	w.ok(quietly("i0"))
	w.same("inbox", w.pendingIDs(goclaw.SessionKey{}), []string{"others", "mine"})
	w.end(other)
}

func testReturn(w *world) {
	ctx := w.Context()
	parent, children := w.family(3)
	for i, id := range []string{"i0", "i1", "i2"} {
		w.announce(children[i], id)
	}
	take := func(run goclaw.Run, items ...string) {
		w.Helper()
		w.ok(w.Append(ctx, run.Fence(), goclaw.Batch{Now: w.now, Consume: items}))
	}
	take(w.begin(w.turn("other", "b"), "o"), "i2")
	take(parent, "i0")
	end := func(run goclaw.Run, r goclaw.Return, consume ...string) {
		w.Helper()
		w.ok(w.End(ctx, run.Fence(), goclaw.Ending{State: goclaw.StateFailed, Return: &r, Batch: goclaw.Batch{Now: w.now, Consume: consume}}))
	}
	end(parent, goclaw.Return{Why: "no provider", NextAt: w.now + 60}, "i1")
	items, err := w.Pending(ctx, parent.Session)
	w.ok(err)
	for i, it := range items {
		w.same("returned", it, goclaw.InboxItem{
			ID: []string{"i0", "i1"}[i], Kind: goclaw.ItemAnnouncement, Session: parent.Session, Source: []string{"c0", "c1"}[i], Group: "parent",
			Mode: goclaw.AnnounceTogether, Text: "[Subagent] Complete.", CreatedAt: w.now, Attempts: 1, NextAt: w.now + 60, Error: "no provider",
		})
	}
	w.same("pending", w.pendingIDs(goclaw.SessionKey{}), []string{"i0", "i1"})

	again := w.begin(w.turn("again", "a"), "o")
	take(again, "i0")
	w.now++
	end(again, goclaw.Return{Why: "still none", Parked: true})
	w.same("pending", w.pendingIDs(parent.Session), []string{"i1"})
	parked, err := w.Parked(ctx)
	w.ok(err)
	w.same("parked", parked, []goclaw.Parked{{
		ID: "i0", Kind: "announcement", Session: parent.Session, Run: "c0", Text: "[Subagent] Complete.",
		Attempts: 2, Error: "still none", ParkedAt: w.now,
	}})
}

func testRecovery(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o1")
	w.ok(w.Append(ctx, run.Fence(), w.batch(0, 2)))
	w.ok(w.Release(ctx, "o1", w.now))
	w.now += 7
	run = w.claims(w.request("o2", 1), "r+")[0].Run
	if run.Recovery != nil {
		w.Fatalf("a takeover that is not on record yet: %+v", run.Recovery)
	}
	resumed := goclaw.Event{Seq: 2, Kind: goclaw.EventResumed, At: w.now - 1, Resumed: &goclaw.ResumedEvent{
		Owner: "o2", Step: 2, Planned: true, Uncertain: []string{"call 4", "call 3", "gone"},
	}}
	b := goclaw.Batch{Now: w.now, Events: []goclaw.Event{resumed, result(3, w.now), result(4, w.now), result(5, w.now)}}
	b.Events[1].Result.Name, b.Events[2].Result.Name = "exec", "write"
	w.ok(w.Append(ctx, run.Fence(), b))
	want := &goclaw.Recovery{Times: 1, At: w.now - 1, Step: 2, Uncertain: []string{"exec", "write"}, Planned: true}
	w.same("recovery", w.find("r").Recovery, want)

	// The last one counts, and whatever batch tells of it.
	w.now = w.now.Add(lease)
	run = w.claims(w.request("o3", 1), "r+")[0].Run
	w.same("recovery of a claimed run", run.Recovery, want)
	w.ok(w.Suspend(ctx, run.Fence(), goclaw.Suspension{For: goclaw.WaitPerson, Batch: goclaw.Batch{Now: w.now, Events: []goclaw.Event{
		{Seq: 6, Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{Step: 5}},
	}}}))
	w.same("recovery", w.find("r").Recovery, &goclaw.Recovery{Times: 2, At: w.now, Step: 5})
	other := w.begin(w.turn("other", "b"), "o3")
	if other.Recovery != nil {
		w.Fatalf("a run that was never taken over has %+v", other.Recovery)
	}
}
