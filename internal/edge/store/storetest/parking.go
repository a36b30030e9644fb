package storetest

import (
	"goclaw"
)

func testPostpone(w *world) {
	ctx := w.Context()
	parent, children := w.family(3)
	for i, id := range []string{"i0", "i1", "i2"} {
		w.announce(children[i], id)
	}
	w.ok(w.Append(ctx, parent.Fence(), goclaw.Batch{Now: w.now, Consume: []string{"i2"}}))
	later := goclaw.Return{Why: "no provider", NextAt: w.now + 60}
	w.ok(w.Postpone(ctx, []string{"i1", "i2", "none", "i1"}, later, w.now))
	items, err := w.Pending(ctx, parent.Session)
	w.ok(err)
	if len(items) != 2 || items[0].Attempts != 0 || items[1].Attempts != 1 || items[1].NextAt != w.now+60 || items[1].Error != "no provider" {
		w.Fatalf("pending: %+v; want i0, and i1 after one attempt", items)
	}
	w.now++
	w.ok(w.Postpone(ctx, []string{"i1"}, goclaw.Return{Why: "given up", Parked: true}, w.now))
	w.ok(w.Postpone(ctx, []string{"i1"}, later, w.now)) // parked: left alone
	w.same("pending", w.pendingIDs(parent.Session), []string{"i0"})
	parked := func(want ...goclaw.Parked) {
		w.Helper()
		got, err := w.Parked(ctx)
		w.ok(err)
		w.same("parked", got, want)
	}
	parked(goclaw.Parked{ID: "i1", Kind: "announcement", Session: parent.Session, Run: "c1", Text: "[Subagent] Complete.",
		Attempts: 2, Error: "given up", ParkedAt: w.now})

	// Nobody takes what is parked.
	late := w.turn("late", "b")
	late.Waiting = "i1"
	_, _, err = w.Accept(ctx, late)
	w.fails("a run for a parked item", err, goclaw.ErrConsumed)
	w.fails("a parked item", w.Append(ctx, parent.Fence(), goclaw.Batch{Consume: []string{"i1"}}), goclaw.ErrConsumed)

	for _, id := range []string{"i0", "i2", "none"} {
		w.fails("Unpark of "+id, w.Unpark(ctx, id, w.now), goclaw.ErrNotFound)
		w.fails("Dismiss of "+id, w.Dismiss(ctx, id, w.now), goclaw.ErrNotFound)
	}
	w.now++
	w.ok(w.Unpark(ctx, "i1", w.now))
	items, err = w.Pending(ctx, parent.Session)
	w.ok(err)
	w.same("unparked", items[1], goclaw.InboxItem{ID: "i1", Kind: goclaw.ItemAnnouncement, Session: parent.Session, Source: "c1", Group: "parent",
		Mode: goclaw.AnnounceTogether, Text: "[Subagent] Complete.", CreatedAt: start, GroupOpen: true, NextAt: w.now})
	parked()
	w.ok(w.Postpone(ctx, []string{"i0", "i1"}, goclaw.Return{Parked: true}, w.now))
	w.ok(w.Dismiss(ctx, "i0", w.now))
	w.fails("a second Dismiss", w.Dismiss(ctx, "i0", w.now), goclaw.ErrNotFound)
	w.fails("Unpark after Dismiss", w.Unpark(ctx, "i0", w.now), goclaw.ErrNotFound)
	w.same("pending", w.pendingIDs(parent.Session), []string(nil))
	w.fails("a dismissed item", w.Append(ctx, parent.Fence(), goclaw.Batch{Consume: []string{"i0"}}), goclaw.ErrConsumed)
}

func testParkedReplies(w *world) {
	ctx := w.Context()
	parent, children := w.family(1)
	w.announce(children[0], "item")
	for _, id := range []string{"r1", "r2"} {
		run := w.begin(w.turn("run-"+id, "b"), "o")
		w.ok(w.End(ctx, run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now},
			Outbox: &goclaw.Outbound{ID: id, Session: run.Session, Run: run.ID, Text: "text " + id}}))
	}
	due := func(want ...string) {
		w.Helper()
		rows, err := w.Outbox(ctx, w.now, 0)
		w.ok(err)
		var got []string
		for _, o := range rows {
			got = append(got, o.ID)
		}
		w.same("due", got, want)
	}
	w.take("r1", w.now, true)
	w.ok(w.MarkOutbox(ctx, "r1", "parked", w.now+1, "the service is down"))
	w.ok(w.MarkOutbox(ctx, "r2", "parked", w.now+3, ""))
	w.ok(w.Postpone(ctx, []string{"item"}, goclaw.Return{Parked: true}, w.now+2))
	due()
	got, err := w.Parked(ctx)
	w.ok(err)
	session := goclaw.MainKey("b")
	w.same("parked", got, []goclaw.Parked{
		{ID: "r1", Kind: "reply", Session: session, Run: "run-r1", Text: "text r1", Attempts: 1, Error: "the service is down", ParkedAt: w.now + 1},
		{ID: "item", Kind: "announcement", Session: parent.Session, Run: "c0", Text: "[Subagent] Complete.", Attempts: 1, ParkedAt: w.now + 2},
		{ID: "r2", Kind: "reply", Session: session, Run: "run-r2", Text: "text r2", ParkedAt: w.now + 3},
	})
	w.now += 5
	w.ok(w.Dismiss(ctx, "r2", w.now))
	due()
	w.fails("Unpark after Dismiss", w.Unpark(ctx, "r2", w.now), goclaw.ErrNotFound)
	w.take("r2", w.now, false)
	w.fails("MarkOutbox after Dismiss", w.MarkOutbox(ctx, "r2", "pending", w.now, ""), goclaw.ErrNotFound)
	w.ok(w.Unpark(ctx, "r1", w.now))
	w.fails("a second Unpark", w.Unpark(ctx, "r1", w.now), goclaw.ErrNotFound)
	due("r1")
	rows, err := w.Outbox(ctx, w.now, 0)
	w.ok(err)
	w.same("unparked", rows[0], goclaw.Outbound{ID: "r1", Session: session, Run: "run-r1", Text: "text r1", State: "pending", NextAt: w.now, CreatedAt: start})
	w.refused("a mark that only Dismiss makes", w.MarkOutbox(ctx, "r1", "dismissed", w.now, ""))
}

func testRedirect(w *world) {
	ctx := w.Context()
	parent, children := w.family(3)
	for i, id := range []string{"i0", "i1", "i2"} {
		w.announce(children[i], id)
	}
	w.ok(w.Append(ctx, parent.Fence(), goclaw.Batch{Now: w.now, Consume: []string{"i1"}}))
	w.ok(w.Postpone(ctx, []string{"i2"}, goclaw.Return{Parked: true}, w.now))
	to := goclaw.MainKey("b")
	for _, id := range []string{"i0", "i1", "i2", "none"} {
		w.ok(w.Redirect(ctx, id, to))
	}
	w.same("items of the new session", w.pendingIDs(to), []string{"i0"})
	w.same("items of the old session", w.pendingIDs(parent.Session), []string(nil))
	w.refused("a session without a key", w.Redirect(ctx, "i0", goclaw.SessionKey{}))
	w.ok(w.Unpark(ctx, "i2", w.now))
	w.same("what was parked", w.pendingIDs(parent.Session), []string{"i2"})
}

// testGroupOfWorkers: a worker takes announcements between its steps, so it
// does not hold those of its own workers back while it is under way.
func testGroupOfWorkers(w *world) {
	top := w.begin(w.turn("top", "a"), "o")
	middle := w.begin(w.spawn("middle", top), "o")
	leaves := []goclaw.Run{w.begin(w.spawn("l0", middle), "o"), w.begin(w.spawn("l1", middle), "o")}
	isOpen := func(want bool, why string) {
		w.Helper()
		items, err := w.Pending(w.Context(), middle.Session)
		w.ok(err)
		if len(items) == 0 || items[0].GroupOpen != want {
			w.Fatalf("%s: %+v; want open %v", why, items, want)
		}
	}
	w.announce(leaves[0], "i0")
	isOpen(true, "a sibling is under way")
	w.suspend(leaves[1], w.now+1)
	isOpen(true, "a sibling waits")
	w.now++
	w.announce(w.claims(w.request("o", 9), "l1")[0].Run, "i1")
	isOpen(false, "only the worker that spawned them is under way")
}

// testTidyParked: a worker's record stays while its announcement can still be
// delivered.
func testTidyParked(w *world) {
	ctx := w.Context()
	parent := w.begin(w.turn("parent", "a"), "o")
	a := w.spawn("c0", parent)
	a.Run.Cleanup = goclaw.CleanupDelete
	run := w.begin(a, "o")
	w.ok(w.Append(ctx, run.Fence(), w.batch(0, 1)))
	w.announce(run, "item")
	w.ok(w.Postpone(ctx, []string{"item"}, goclaw.Return{Parked: true}, w.now))
	tidied := func(want int, why string) {
		w.Helper()
		n, err := w.Tidy(ctx, w.now, 0)
		w.ok(err)
		if n != want {
			w.Fatalf("%s: Tidy changed %d sessions, want %d", why, n, want)
		}
	}
	tidied(0, "its announcement is parked")
	w.ok(w.Dismiss(ctx, "item", w.now))
	tidied(1, "its announcement was dismissed")
	w.same("events", w.events("c0"), []goclaw.Event(nil))
}

// testTidyRead: a record that was read before it is removed is gone all the
// same.
func testTidyRead(w *world) {
	ctx := w.Context()
	begin := func(id string, cleanup goclaw.Cleanup) goclaw.Run {
		a := w.turn(id, "a")
		a.Run.Cleanup = cleanup
		run := w.begin(a, "o")
		w.ok(w.Append(ctx, run.Fence(), w.batch(0, 2)))
		return run
	}
	history := func(want ...int) {
		w.Helper()
		logs, err := w.History(ctx, goclaw.MainKey("a"), 0)
		w.ok(err)
		var got []int
		for _, l := range logs {
			got = append(got, len(l.Events))
		}
		w.same("events of the runs", got, want)
	}
	w.end(begin("kept", ""))
	w.end(begin("secret", goclaw.CleanupDelete))
	w.end(begin("after", ""))
	history(2, 2, 2)
	_, err := w.Tidy(ctx, w.now, 0)
	w.ok(err)
	history(2, 0, 2)
	w.end(begin("later", ""))
	history(2, 0, 2, 2)
}
