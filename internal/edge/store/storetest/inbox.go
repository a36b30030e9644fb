package storetest

import (
	"fmt"

	"goclaw"
)

// family is a parent run under way and n workers of it, under way too.
func (w *world) family(n int) (parent goclaw.Run, children []goclaw.Run) {
	w.Helper()
	parent = w.begin(w.turn("parent", "a"), "o")
	for i := range n {
		children = append(children, w.begin(w.spawn(fmt.Sprintf("c%d", i), parent), "o"))
	}
	return parent, children
}

func testInbox(w *world) {
	parent, children := w.family(3)
	other := goclaw.MainKey("b")
	w.announce(children[1], "i1")
	w.announce(children[0], "i0")
	children[2].Requester = other
	w.announce(children[2], "i2")
	w.same("items of the parent", w.pendingIDs(parent.Session), []string{"i1", "i0"})
	w.same("items of another", w.pendingIDs(other), []string{"i2"})
	w.same("all items", w.pendingIDs(goclaw.SessionKey{}), []string{"i1", "i0", "i2"})
	w.same("items of nobody", w.pendingIDs(goclaw.MainKey("c")), []string(nil))
}

func testConsume(w *world) {
	ctx := w.Context()
	parent, children := w.family(3)
	for i, c := range children {
		w.announce(c, fmt.Sprintf("i%d", i))
	}
	take := func(seq int, items ...string) error {
		b := w.batch(seq, 1)
		b.Consume = items
		return w.Append(ctx, parent.Fence(), b)
	}
	w.ok(take(0, "i0"))
	for item, want := range map[string]error{"i0": goclaw.ErrConsumed, "nowhere": goclaw.ErrConsumed} {
		late := w.turn("late-"+item, "a")
		late.Waiting = item
		_, _, err := w.Accept(w.Context(), late)
		w.fails("a run for "+item, err, want)
	}
	inTime := w.turn("in-time", "a")
	inTime.Waiting = "i1"
	w.accept(inTime)
	w.fails("a taken item", take(1, "i0"), goclaw.ErrConsumed)
	w.fails("a taken item among others", take(1, "i1", "i0"), goclaw.ErrConsumed)
	w.fails("the same item twice", take(1, "i1", "i1"), goclaw.ErrConsumed)
	w.fails("an unknown item", take(1, "i1", "none"), goclaw.ErrNotFound)
	w.same("pending", w.pendingIDs(parent.Session), []string{"i1", "i2"})
	if n := len(w.events("parent")); n != 1 {
		w.Fatalf("%d events, want 1: refused batches left some", n)
	}
	w.ok(w.End(ctx, parent.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now, Consume: []string{"i2", "i1"}}}))
	w.same("pending", w.pendingIDs(parent.Session), []string(nil))
}

func testGroupOpen(w *world) {
	parent, children := w.family(3)
	each := w.spawn("each", parent)
	each.Run.Announce = goclaw.AnnounceEach
	w.accept(each)
	isOpen := func(want bool, why string) {
		w.Helper()
		items, err := w.Pending(w.Context(), parent.Session)
		w.ok(err)
		for _, i := range items {
			if i.GroupOpen != want {
				w.Fatalf("%s: group of %s open: %v", why, i.ID, i.GroupOpen)
			}
		}
	}
	w.announce(children[0], "i0")
	isOpen(true, "the parent runs")
	w.end(parent)
	isOpen(true, "siblings run")
	w.announce(children[1], "i1")
	w.ok(w.Release(w.Context(), "o", w.now))
	isOpen(true, "a sibling is interrupted")
	w.claims(w.request("o", 1), "c2+")
	w.announce(w.find("c2"), "i2")
	isOpen(false, "all siblings that announce together have ended")

	lone := w.begin(w.turn("lone", "b"), "o")
	lone.Requester, lone.Parent = parent.Session, ""
	w.accept(w.turn("busy", "b"))
	w.announce(lone, "i3")
	isOpen(false, "an item without a group")
}

func testTidyDelete(w *world) {
	ctx := w.Context()
	parent := w.begin(w.turn("parent", "a"), "o")
	begin := func(id string, cleanup goclaw.Cleanup) goclaw.Run {
		a := w.spawn(id, parent)
		a.Run.Cleanup = cleanup
		run := w.begin(a, "o")
		w.ok(w.Append(ctx, run.Fence(), w.batch(0, 2)))
		return run
	}
	announced, silent, kept := begin("announced", goclaw.CleanupDelete), begin("silent", goclaw.CleanupDelete), begin("kept", goclaw.CleanupKeep)
	tidies := func(want int, why string) {
		w.Helper()
		w.now++
		n, err := w.Tidy(ctx, w.now, 0)
		w.ok(err)
		if n != want {
			w.Fatalf("%s: Tidy changed %d sessions, want %d", why, n, want)
		}
	}
	tidies(0, "nothing has ended")
	w.announce(announced, "i1")
	tidies(0, "the announcement is pending")
	w.end(kept)
	w.end(silent)
	tidies(1, "one that announces nothing has ended")
	w.ok(w.Append(ctx, parent.Fence(), goclaw.Batch{Now: w.now, Consume: []string{"i1"}}))
	tidies(1, "the announcement was consumed")
	tidies(0, "all is done")

	head, err := w.Session(ctx, announced.Session)
	w.ok(err)
	if head.DeletedAt != w.now-1 || head.ArchivedAt != 0 {
		w.Fatalf("deleted at %d, archived at %d; want deleted at %d", head.DeletedAt, head.ArchivedAt, w.now-1)
	}
	w.same("events of a deleted transcript", w.events("announced"), []goclaw.Event(nil))
	w.same("events that are kept", len(w.events("kept")), 2)
	if r := w.find("announced"); r.State != goclaw.StateCompleted {
		w.Fatalf("the run's row is %s", r.State)
	}
	logs, err := w.History(ctx, announced.Session, 0)
	w.ok(err)
	if len(logs) != 1 || logs[0].Events != nil {
		w.Fatalf("history of a deleted transcript: %+v", logs)
	}

	// A new run revives the session, and its own cleanup applies to it.
	again := w.spawn("again", parent)
	again.Run.Session, again.Run.Cleanup = announced.Session, goclaw.CleanupDelete
	run := w.begin(again, "o")
	if head, err = w.Session(ctx, announced.Session); err != nil || head.DeletedAt != 0 {
		w.Fatalf("deleted at %d with a new run, error %v", head.DeletedAt, err)
	}
	w.end(run)
	tidies(1, "the new run has ended")
}

func testTidyArchive(w *world) {
	ctx := w.Context()
	parent, children := w.family(2)
	waiting := w.spawn("waiting", parent)
	waiting.Run.Cleanup = goclaw.CleanupDelete
	w.announce(w.begin(waiting, "o"), "i")
	cron := w.turn("cron", "a")
	cron.Run.Session, cron.Run.Trigger = goclaw.CronKey("a", "job"), goclaw.TriggerCron
	w.end(w.begin(cron, "o"))
	w.ok(w.ChangeSession(ctx, goclaw.SubagentKey("a", "empty"), goclaw.SessionChange{}, w.now))
	ended := w.now
	w.end(children[0])
	w.end(parent)
	w.now += 1000
	archive := func(before goclaw.Millis, want int) {
		w.Helper()
		n, err := w.Tidy(ctx, w.now, before)
		w.ok(err)
		if n != want {
			w.Fatalf("Tidy(before %d) changed %d sessions, want %d", before, n, want)
		}
	}
	archive(ended, 0)
	archive(ended+1, 2)
	archive(ended+1, 0)
	want := map[string]bool{"agent:a:subagent:c0": true, "agent:a:cron:job": true}
	heads, err := w.AllSessions(ctx)
	w.ok(err)
	for _, head := range heads {
		if got := head.ArchivedAt == w.now; got != want[head.Key.String()] || head.DeletedAt != 0 {
			w.Fatalf("session %s: archived at %d, deleted at %d", head.Key, head.ArchivedAt, head.DeletedAt)
		}
	}
	cron.Run.ID = "cron2"
	w.accept(cron)
	head, err := w.Session(ctx, cron.Run.Session)
	w.ok(err)
	if head.ArchivedAt != 0 || head.Turns != 2 {
		w.Fatalf("a session with a new run: archived at %d, %d turns", head.ArchivedAt, head.Turns)
	}
}

func testOutbox(w *world) {
	ctx := w.Context()
	post := func(id, agent string, next goclaw.Millis) {
		w.Helper()
		run := w.begin(w.turn("run-"+id, agent), "o")
		w.ok(w.End(ctx, run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now},
			Outbox: &goclaw.Outbound{ID: id, Session: run.Session, Run: run.ID, Text: "text " + id, NextAt: next}}))
	}
	due := func(limit int, want ...string) []goclaw.Outbound {
		w.Helper()
		rows, err := w.Outbox(ctx, w.now, limit)
		w.ok(err)
		var got []string
		for _, o := range rows {
			got = append(got, o.ID)
		}
		w.same("due", got, want)
		return rows
	}
	mark := func(id, state string, next goclaw.Millis, text string) {
		w.Helper()
		w.ok(w.MarkOutbox(ctx, id, state, next, text))
	}
	post("a1", "a", 0)
	post("a2", "a", 0)
	post("b1", "b", 0)
	post("c1", "c", w.now+5)
	due(0, "a1", "b1")
	due(1, "a1")
	w.take("a1", w.now+10, true)
	w.take("a1", w.now+10, false)
	due(0, "b1")
	mark("b1", "sent", 0, "")
	w.take("b1", w.now+10, false)
	w.take("c1", w.now+10, false)
	w.take("none", w.now+10, false)
	w.now += 5
	due(0, "c1")
	w.now += 5
	got := due(0, "a1", "c1")[0]
	if got.State != "sending" || got.Attempts != 1 {
		w.Fatalf("state %s after %d attempts", got.State, got.Attempts)
	}
	mark("a1", "pending", w.now, "no network")
	if got = due(0, "a1", "c1")[0]; got.State != "pending" || got.Error != "no network" {
		w.Fatalf("state %s, error %q", got.State, got.Error)
	}
	w.take("a1", w.now, true)
	w.take("a1", w.now, true) // its time is over: whoever had it is gone
	got = due(0, "a1", "c1")[0]
	w.same("row", got, goclaw.Outbound{ID: "a1", Session: goclaw.MainKey("a"), Run: "run-a1", Text: "text a1",
		State: "sending", Attempts: 3, NextAt: w.now, CreatedAt: start})
	mark("a1", "parked", 0, "gave up")
	w.take("a1", w.now, false)
	due(0, "a2", "c1")
	w.fails("unknown reply", w.MarkOutbox(ctx, "none", "sent", 0, ""), goclaw.ErrNotFound)
	for _, state := range []string{"lost", "sending"} {
		w.refused("a state that is no mark", w.MarkOutbox(ctx, "a2", state, 0, ""))
	}
}

// take takes a reply now, until a time, and compares whether it got it.
func (w *world) take(id string, until goclaw.Millis, want bool) {
	w.Helper()
	got, err := w.TakeOutbox(w.Context(), id, w.now, until)
	w.ok(err)
	if got != want {
		w.Fatalf("TakeOutbox of %s: %v, want %v", id, got, want)
	}
}
