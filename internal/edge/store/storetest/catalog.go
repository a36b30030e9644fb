package storetest

import (
	"context"
	"errors"
	"strings"

	"goclaw"
)

func testFind(w *world) {
	ctx := w.Context()
	for _, id := range []string{"abcd", "abcd1234", "abcd1299", "éééé1", "zz%_zz", "zz", "zzzzzz"} {
		w.accept(w.turn(id, "a"))
	}
	found := map[string]string{"abcd": "abcd", "abcd1234": "abcd1234", "abcd123": "abcd1234", "éééé": "éééé1", "zz": "zz", "zz%_": "zz%_zz", "zzzz": "zzzzzz"}
	for id, want := range found {
		if got := w.find(id).ID; got != want {
			w.Errorf("Run(%q) found %s, want %s", id, got, want)
		}
	}
	for _, id := range []string{"", "abc", "ab", "abce", "abcd12345", "ABCD", "zz_z", "none"} {
		_, err := w.Run(ctx, id)
		w.fails("Run("+id+")", err, goclaw.ErrNotFound)
	}
	_, err := w.Run(ctx, "abcd12")
	if err == nil || errors.Is(err, goclaw.ErrNotFound) || !strings.Contains(err.Error(), "2 runs") {
		w.Fatalf("Run of an ambiguous prefix: %v; want how many there are", err)
	}
}

// testRunsOfTree lists the runs of one tree, its root among them.
func testRunsOfTree(w *world) {
	top := w.begin(w.turn("top", "a"), "o")
	w.accept(spread(w.spawn("t1", top), "top"))
	w.accept(spread(w.turn("news", "a"), "top"))
	w.accept(spread(w.spawn("t2", top), "other"))
	w.accept(w.turn("b1", "b"))
	w.end(top)
	for _, tt := range []struct {
		filter goclaw.RunFilter
		want   string
	}{
		{goclaw.RunFilter{Root: "top"}, "news t1 top"},
		{goclaw.RunFilter{Root: "top", Limit: 1}, "news"},
		{goclaw.RunFilter{Root: "top", Active: true}, "news t1"},
		{goclaw.RunFilter{Root: "top", Ended: true}, "top"},
		{goclaw.RunFilter{Root: "top", Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}}, "t1"},
		{goclaw.RunFilter{Root: "top", Session: top.Session}, "news top"},
		{goclaw.RunFilter{Root: "t1"}, ""},
		{goclaw.RunFilter{Root: "b1"}, "b1"},
	} {
		runs, err := w.Runs(w.Context(), tt.filter)
		w.ok(err)
		if got := strings.Join(ids(runs), " "); got != tt.want {
			w.Errorf("Runs(%+v) = %q, want %q", tt.filter, got, tt.want)
		}
	}
}

func testRuns(w *world) {
	parent, _ := w.family(3)
	w.accept(w.turn("b1", "b"))
	w.end(w.find("c1"))
	w.end(w.find("c0"))
	tests := []struct {
		filter goclaw.RunFilter
		want   string
	}{
		{goclaw.RunFilter{}, "b1 c2 c1 c0 parent"},
		{goclaw.RunFilter{Limit: 2}, "b1 c2"},
		{goclaw.RunFilter{Session: goclaw.MainKey("a")}, "parent"},
		{goclaw.RunFilter{Before: w.find("c1").Ordinal}, "c0 parent"},
		{goclaw.RunFilter{Before: w.find("c2").Ordinal, Requester: parent.Session, Limit: 1}, "c1"},
		{goclaw.RunFilter{Requester: parent.Session}, "c2 c1 c0"},
		{goclaw.RunFilter{Parent: "parent", Limit: 1}, "c2"},
		{goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerUser, goclaw.TriggerCron}}, "b1 parent"},
		{goclaw.RunFilter{Active: true}, "b1 c2 parent"},
		{goclaw.RunFilter{Ended: true}, "c1 c0"},
		{goclaw.RunFilter{Active: true, Ended: true}, ""},
		{goclaw.RunFilter{After: w.find("c0").Ordinal}, "b1 c2 c1"},
		{goclaw.RunFilter{After: w.find("c0").Ordinal, Ended: true, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}}, "c1"},
		{goclaw.RunFilter{Requester: parent.Session, Parent: "parent", Ended: true, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}}, "c1 c0"},
		{goclaw.RunFilter{Parent: "none"}, ""},
	}
	for _, tt := range tests {
		runs, err := w.Runs(w.Context(), tt.filter)
		w.ok(err)
		if got := strings.Join(ids(runs), " "); got != tt.want {
			w.Errorf("Runs(%+v) = %q, want %q", tt.filter, got, tt.want)
		}
	}
}

func testCounts(w *world) {
	counts := func(wantActive, wantQueued int) {
		w.Helper()
		active, queued, err := w.Counts(w.Context())
		w.ok(err)
		if active != wantActive || queued != wantQueued {
			w.Fatalf("%d active, %d queued; want %d and %d", active, queued, wantActive, wantQueued)
		}
	}
	counts(0, 0)
	w.family(2)
	w.accept(w.turn("late", "a"))
	counts(3, 1)
	w.end(w.find("c0"))
	counts(2, 1)
	w.ok(w.Release(w.Context(), "o", w.now))
	counts(2, 1)
}

func testHistory(w *world) {
	ctx := w.Context()
	logs, err := w.History(ctx, goclaw.MainKey("none"), 0)
	w.ok(err)
	w.same("history of nothing", logs, []goclaw.RunLog(nil))
	var want []goclaw.RunLog
	for i, id := range []string{"r1", "r2", "r3"} {
		a := w.turn(id, "a")
		a.Run.Context, a.Run.Profile.Tools = "context of "+id, []string{id}
		run := w.begin(a, "o")
		b := w.batch(0, 12*i) // none, 12 and 24: also seqs of two digits
		w.ok(w.Append(ctx, run.Fence(), b))
		w.end(run)
		want = append(want, goclaw.RunLog{Run: w.find(id), Events: b.Events})
		w.begin(w.turn("other"+id, "b"), "o")
		w.end(w.find("other" + id))
	}
	queued := w.accept(w.turn("r4", "a"))
	want = append(want, goclaw.RunLog{Run: queued})
	logs, err = w.History(ctx, goclaw.MainKey("a"), 0)
	w.ok(err)
	w.same("history", logs, want)
	logs, err = w.History(ctx, goclaw.MainKey("a"), queued.Ordinal)
	w.ok(err)
	w.same("history before the fourth", logs, want[:3])
	logs, err = w.History(ctx, goclaw.MainKey("a"), want[0].Run.Ordinal)
	w.ok(err)
	w.same("history before the first", logs, []goclaw.RunLog(nil))
}

func testHistoryReset(w *world) {
	ctx := w.Context()
	key := goclaw.MainKey("a")
	reset := func() {
		w.Helper()
		w.ok(w.ChangeSession(ctx, key, goclaw.SessionChange{Reset: true}, w.now))
	}
	history := func(want ...string) {
		w.Helper()
		logs, err := w.History(ctx, key, 0)
		w.ok(err)
		var got []string
		for _, l := range logs {
			got = append(got, l.Run.ID)
		}
		w.same("history", got, want)
	}
	reset()
	w.accept(w.turn("r1", "a"))
	w.accept(w.turn("elsewhere", "b"))
	history("r1")
	reset()
	history()
	head, err := w.Session(ctx, key)
	w.ok(err)
	if head.ResetAt != w.find("r1").Ordinal {
		w.Fatalf("reset at %d, want the last run's ordinal", head.ResetAt)
	}
	w.accept(w.turn("r2", "a"))
	history("r2")
	w.same("runs are kept", len(w.events("r1")), 0)
	w.find("r1")
}

func testSessions(w *world) {
	ctx := w.Context()
	text := func(s string) *string { return &s }
	key := goclaw.APIKey("a", "me: you")
	w.ok(w.ChangeSession(ctx, key, goclaw.SessionChange{Model: text("m")}, start))
	w.ok(w.ChangeSession(ctx, key, goclaw.SessionChange{Thinking: text("high")}, start+9))
	want := goclaw.Session{Key: key, Agent: "a", CreatedAt: start, UpdatedAt: start + 9, Model: "m", Thinking: "high"}
	got, err := w.Session(ctx, key)
	w.ok(err)
	w.same("session", got, want)
	w.ok(w.ChangeSession(ctx, key, goclaw.SessionChange{Model: text("")}, start+3))
	want.Model = ""
	w.refused("a bad key", w.ChangeSession(ctx, goclaw.SessionKey{Agent: "a", Kind: goclaw.KindCron}, goclaw.SessionChange{}, start))

	for _, agent := range []string{"y", "x", "z"} {
		w.accept(w.turn(agent, agent))
	}
	all, err := w.AllSessions(ctx)
	w.ok(err)
	head := func(agent string) goclaw.Session {
		return goclaw.Session{Key: goclaw.MainKey(agent), Agent: agent, CreatedAt: start, UpdatedAt: start, Turns: 1}
	}
	w.same("all sessions", all, []goclaw.Session{want, head("x"), head("y"), head("z")})
}

func testNothingShared(w *world) {
	ctx := w.Context()
	cost := 1.0
	a := w.turn("r", "a")
	a.Run.Profile.Tools = []string{"read"}
	run := w.begin(a, "o")
	b := goclaw.Batch{Now: w.now, Usage: &goclaw.Usage{Input: 1, CostUSD: &cost}, Blobs: []goclaw.Blob{blob("data")},
		Events: []goclaw.Event{{Kind: goclaw.EventIntent, Intent: &goclaw.IntentEvent{Calls: []goclaw.Intent{{Name: "read"}}}}}}
	w.ok(w.Append(ctx, run.Fence(), b))
	scribble := func() {
		a.Run.Profile.Tools[0], b.Events[0].Intent.Calls[0].Name, cost, b.Blobs[0].Data[0] = "x", "x", 9, 'x'
		stored := w.find("r")
		stored.Profile.Tools[0], *stored.Usage.CostUSD = "x", 9
		run.Profile.Tools[0] = "x"
		w.events("r")[0].Intent.Calls[0].Name = "x"
		data, err := w.Blob(ctx, blob("data").SHA256)
		w.ok(err)
		data[0] = 'x'
	}
	scribble()
	stored := w.find("r")
	data, err := w.Blob(ctx, blob("data").SHA256)
	w.ok(err)
	w.same("tool, call, cost and data",
		[]any{stored.Profile.Tools[0], w.events("r")[0].Intent.Calls[0].Name, *stored.Usage.CostUSD, string(data)},
		[]any{"read", "read", 1.0, "data"})
}

func testEnded(w *world) {
	dead, cancel := context.WithCancel(w.Context())
	cancel()
	_, _, err := w.Accept(dead, w.turn("r", "a"))
	w.fails("Accept with an ended context", err, context.Canceled)
	_, err = w.Claim(dead, w.request("o", 1))
	w.fails("Claim with an ended context", err, context.Canceled)
	_, err = w.Runs(dead, goclaw.RunFilter{})
	w.fails("Runs with an ended context", err, context.Canceled)
	_, err = w.Run(w.Context(), "r")
	w.fails("the run that was not accepted", err, goclaw.ErrNotFound)

	w.ok(w.Close())
	w.ok(w.Close())
	_, _, err = w.Accept(w.Context(), w.turn("r", "a"))
	w.refused("Accept after Close", err)
	_, err = w.Runs(w.Context(), goclaw.RunFilter{})
	w.refused("Runs after Close", err)
}
