package storetest

import (
	"bytes"
	"encoding/json"

	"goclaw"
)

func testAppend(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	cost := 0.25
	usage := goclaw.Usage{Input: 10, Output: 2, CacheRead: 4, CacheWrite: 1, CostUSD: &cost}
	first := w.batch(0, 2)
	first.Usage = &usage
	w.ok(w.Append(ctx, run.Fence(), first))
	w.ok(w.Append(ctx, run.Fence(), w.batch(2, 1)))
	w.same("events", w.events("r"), w.batch(0, 3).Events)
	w.same("usage", w.find("r").Usage, usage)
	unpriced := goclaw.Usage{Input: 20, Output: 3}
	w.ok(w.Append(ctx, run.Fence(), goclaw.Batch{Usage: &unpriced, Now: w.now}))
	w.same("usage", w.find("r").Usage, unpriced)

	timeless := w.batch(3, 1)
	timeless.Events[0].At = 0
	w.ok(w.Append(ctx, run.Fence(), timeless))
	if at := w.events("r")[3].At; at != w.now {
		w.Fatalf("an event without a time has %d, want the batch's %d", at, w.now)
	}
	w.same("events of no run", w.events("none"), []goclaw.Event(nil))
}

func testAppendAtomic(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	w.ok(w.Append(ctx, run.Fence(), w.batch(0, 2)))
	before := w.find("r")

	content := blob("content")
	usage := goclaw.Usage{Input: 1}
	bad := map[string]goclaw.Batch{
		"a gap":           w.batch(3, 1),
		"a repeat":        w.batch(1, 1),
		"a gap within":    {Events: []goclaw.Event{result(2, w.now), result(4, w.now)}},
		"an unknown item": {Events: []goclaw.Event{result(2, w.now)}, Consume: []string{"none"}},
		"a wrong hash":    {Events: []goclaw.Event{result(2, w.now)}, Blobs: []goclaw.Blob{{SHA256: content.SHA256, Data: []byte("other")}}},
	}
	for what, b := range bad {
		b.Now, b.Usage, b.Blobs = w.now, &usage, append(b.Blobs, content)
		w.refused(what, w.Append(ctx, run.Fence(), b))
	}
	w.same("events", w.events("r"), w.batch(0, 2).Events)
	w.same("run", w.find("r"), before)
	_, err := w.Blob(ctx, content.SHA256)
	w.fails("blob of a refused batch", err, goclaw.ErrNotFound)
}

func testAppendFenced(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	w.accept(w.turn("queued", "a"))
	fences := map[string]goclaw.Fence{
		"an old epoch": {Run: "r", Epoch: 0, Owner: "o"},
		"a new epoch":  {Run: "r", Epoch: 2, Owner: "o"},
		"an owner":     {Run: "r", Epoch: 1, Owner: "other"},
		"no run":       {Run: "none", Epoch: 1, Owner: "o"},
		"a queued run": {Run: "queued"},
	}
	for what, f := range fences {
		w.fails("Append with "+what, w.Append(ctx, f, w.batch(0, 1)), goclaw.ErrFenced)
	}
	w.end(run)
	w.fails("Append after the end", w.Append(ctx, run.Fence(), w.batch(0, 1)), goclaw.ErrFenced)
	w.same("events", w.events("r"), []goclaw.Event(nil))
}

func testBlobs(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	one, empty := blob("one\x00two"), blob("")
	w.ok(w.Append(ctx, run.Fence(), goclaw.Batch{Now: w.now, Blobs: []goclaw.Blob{one, one, {SHA256: empty.SHA256}}}))
	w.ok(w.Append(ctx, run.Fence(), goclaw.Batch{Now: w.now, Blobs: []goclaw.Blob{one}}))
	for _, b := range []goclaw.Blob{one, empty} {
		got, err := w.Blob(ctx, b.SHA256)
		w.ok(err)
		if !bytes.Equal(got, b.Data) {
			w.Fatalf("blob is %q, want %q", got, b.Data)
		}
	}
	_, err := w.Blob(ctx, blob("none").SHA256)
	w.fails("Blob that was never stored", err, goclaw.ErrNotFound)
}

func testEventFields(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	cost := 0.5
	reply := goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
		{Kind: goclaw.PartThinking, Text: "hm <b>", Opaque: "sig", Provider: "p"},
		{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: "c", Name: "exec", Arguments: `{"broken": `}},
	}}
	events := []goclaw.Event{
		{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{PromptSHA: "s", Input: goclaw.Text(goclaw.RoleUser, "hi\u2028"), Inbox: []string{"i"}}},
		{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{
			Message: reply, Stop: goclaw.StopTools, Usage: goclaw.Usage{Input: 1 << 40, CostUSD: &cost}, Model: "m", TookMs: 3, Tries: 2,
		}},
		{Kind: goclaw.EventIntent, Intent: &goclaw.IntentEvent{Calls: []goclaw.Intent{{CallID: "c", Name: "exec"}}}},
		{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{CallID: "c", Name: "exec", Content: "a\x00b\x1b[0m", IsError: true}},
		{Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{Owner: "o", Uncertain: []string{"c"}, ModelCallLost: true}},
		{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateFailed, Error: "e", Silent: true}},
	}
	for i := range events {
		events[i].Seq, events[i].At = i, w.now+goclaw.Millis(i)
	}
	w.ok(w.Append(ctx, run.Fence(), goclaw.Batch{Events: events, Now: w.now}))
	w.same("events", w.events("r"), events)
	want, err := json.Marshal(events)
	w.ok(err)
	got, err := json.Marshal(w.events("r"))
	w.ok(err)
	w.same("their JSON", string(got), string(want))
}

func testEnd(w *world) {
	ctx := w.Context()
	parent := w.begin(w.turn("parent", "a"), "o")
	want := w.begin(w.spawn("child", parent), "o")
	w.now += 100
	cost := 1.5
	ending := goclaw.Ending{
		Batch:  goclaw.Batch{Events: []goclaw.Event{result(0, w.now)}, Usage: &goclaw.Usage{Input: 3, CostUSD: &cost}, Blobs: []goclaw.Blob{blob("b")}, Now: w.now},
		State:  goclaw.StateTimeout,
		Result: "half",
		Error:  "too slow",
		Announce: &goclaw.InboxItem{
			ID: "i1", Session: parent.Session, Source: "child", Group: "parent", Mode: goclaw.AnnounceTogether, Text: "Timed out",
		},
		Outbox: &goclaw.Outbound{ID: "o1", Session: parent.Session, Run: "child", Text: "out", NextAt: w.now + 1},
	}
	w.ok(w.End(ctx, want.Fence(), ending))
	want.State, want.Result, want.Error, want.Usage, want.FinishedAt, want.Owner = goclaw.StateTimeout, "half", "too slow", *ending.Usage, w.now, ""
	w.same("run", w.find("child"), want)
	w.same("events", w.events("child"), ending.Events)
	items, err := w.Pending(ctx, parent.Session)
	w.ok(err)
	item := *ending.Announce
	item.CreatedAt, item.GroupOpen, item.Kind = w.now, true, goclaw.ItemAnnouncement
	w.same("inbox", items, []goclaw.InboxItem{item})
	due, err := w.Outbox(ctx, w.now+1, 0)
	w.ok(err)
	out := *ending.Outbox
	out.CreatedAt, out.State = w.now, "pending"
	w.same("outbox", due, []goclaw.Outbound{out})
	head, err := w.Session(ctx, want.Session)
	w.ok(err)
	if head.UpdatedAt != w.now {
		w.Fatalf("session updated at %d, want the end at %d", head.UpdatedAt, w.now)
	}
}

func testEndFenced(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	e := goclaw.Ending{State: goclaw.StateFailed, Batch: w.batch(0, 1), Announce: &goclaw.InboxItem{ID: "i", Session: run.Session, Source: "r"}}
	w.fails("End with an old epoch", w.End(ctx, goclaw.Fence{Run: "r", Epoch: 0, Owner: "o"}, e), goclaw.ErrFenced)
	w.end(run)
	w.fails("second End", w.End(ctx, run.Fence(), e), goclaw.ErrFenced)
	if r := w.find("r"); r.State != goclaw.StateCompleted || r.Result != "did r" {
		w.Fatalf("a fenced end changed the run: %s, %q", r.State, r.Result)
	}
	w.same("inbox", w.pendingIDs(goclaw.SessionKey{}), []string(nil))
	w.same("events", w.events("r"), []goclaw.Event(nil))
}

func testEndRefuses(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	item := goclaw.InboxItem{ID: "i", Session: run.Session, Source: "r"}
	foreign, nameless := item, item
	foreign.Source, nameless.ID = "other", ""
	bad := map[string]goclaw.Ending{
		"a state that is no end":    {State: goclaw.StateInterrupted, Announce: &item},
		"another's announcement":    {State: goclaw.StateFailed, Announce: &foreign},
		"an item without id":        {State: goclaw.StateFailed, Announce: &nameless},
		"a reply of another run":    {State: goclaw.StateFailed, Outbox: &goclaw.Outbound{ID: "x", Session: run.Session, Run: "other"}},
		"a gap":                     {State: goclaw.StateFailed, Announce: &item, Batch: w.batch(1, 1)},
		"an item that is not there": {State: goclaw.StateFailed, Announce: &item, Batch: goclaw.Batch{Consume: []string{"none"}}},
	}
	for what, e := range bad {
		w.refused(what, w.End(ctx, run.Fence(), e))
	}
	w.same("run", w.find("r"), run)
	w.same("inbox", w.pendingIDs(goclaw.SessionKey{}), []string(nil))
	w.end(run)
}
