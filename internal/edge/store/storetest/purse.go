package storetest

import (
	"goclaw"
)

const today = "2026-03-01"

// reply is a batch that records one model call after the first n events of a
// run.
func (w *world) reply(n int, tokens int64, cost float64) goclaw.Batch {
	u := goclaw.Usage{Input: tokens - 1, Output: 1, CacheRead: 1}
	if cost >= 0 {
		u.CostUSD = &cost
	}
	return goclaw.Batch{Now: w.now, Day: today, Events: []goclaw.Event{
		{Seq: n, Kind: goclaw.EventModel, At: w.now, Model: &goclaw.ModelEvent{Model: "as served", Usage: u, TookMs: 1500}},
	}}
}

// reserve holds tokens for the run's next call within the limits of its tree.
func (w *world) reserve(r goclaw.Run, tokens int64, tree goclaw.Limits) *goclaw.Shortage {
	w.Helper()
	short, err := w.Reserve(w.Context(), r.Fence(), goclaw.Reservation{
		Tokens: tokens, USD: float64(tokens) / 1000, Tree: tree, Date: today, Now: w.now,
	})
	w.ok(err)
	return short
}

// tree is a turn and n workers of its tree, all under way.
func (w *world) tree(top string, n int) []goclaw.Run {
	w.Helper()
	runs := []goclaw.Run{w.begin(w.turn(top, "a"), "o")}
	for i := range n {
		a := w.spawn(top+string(rune('0'+i)), runs[0])
		a.Run.Root = top
		runs = append(runs, w.begin(a, "o"))
	}
	return runs
}

func testReserve(w *world) {
	ctx := w.Context()
	tree := w.tree("t", 2)
	limits := goclaw.Limits{Tokens: 1000}
	held := func(run int, tokens int64, want *goclaw.Shortage) {
		w.Helper()
		w.same("shortage", w.reserve(tree[run], tokens, limits), want)
	}
	short := func(spent, held, need float64) *goclaw.Shortage {
		return &goclaw.Shortage{Scope: "tree", What: "tokens", Limit: 1000, Spent: spent, Held: held, Need: need}
	}
	held(0, 600, nil)
	held(1, 401, short(0, 600, 401))
	held(1, 400, nil)
	held(2, 1, short(0, 1000, 1))
	// A reservation takes the place of the run's last; where it is refused,
	// nothing is held.
	held(0, 500, nil)
	held(2, 100, nil)
	held(2, 101, short(0, 900, 101))
	held(1, 500, nil)
	held(1, 501, short(0, 500, 501))
	held(2, 500, nil)

	// A recorded call gives back what was held for it.
	w.ok(w.Append(ctx, tree[0].Fence(), w.reply(0, 50, -1)))
	held(0, 451, short(50, 500, 451))
	held(0, 450, nil)
	w.ok(w.End(ctx, tree[2].Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: w.reply(0, 30, -1)}))
	held(1, 471, short(80, 450, 471))
	held(1, 470, nil)

	// What happens to other trees does not matter, nor does a stale owner.
	other := w.begin(w.turn("other", "b"), "o")
	w.same("shortage", w.reserve(other, 1000, limits), nilShortage)
	stale := tree[0].Fence()
	stale.Epoch++
	_, err := w.Reserve(ctx, stale, goclaw.Reservation{Tokens: 1, Now: w.now})
	w.fails("Reserve with a stale fence", err, goclaw.ErrFenced)
	held(1, 471, short(80, 450, 471))
}

var nilShortage *goclaw.Shortage

func testReserveLost(w *world) {
	ctx := w.Context()
	tree := w.tree("t", 2)
	limits := goclaw.Limits{Tokens: 1000}
	same := func(run int, tokens int64, want *goclaw.Shortage) {
		w.Helper()
		w.same("shortage", w.reserve(tree[run], tokens, limits), want)
	}
	short := func(spent, held, need float64) *goclaw.Shortage {
		return &goclaw.Shortage{Scope: "tree", What: "tokens", Limit: 1000, Spent: spent, Held: held, Need: need}
	}
	lost := func(want int64) {
		w.Helper()
		rows, err := w.Usage(ctx, goclaw.UsageQuery{})
		w.ok(err)
		if len(rows) != 1 || rows[0].Lost != want {
			w.Fatalf("usage %+v; want %d lost", rows, want)
		}
	}
	// A call that may have been billed, though its reply is not on record. It
	// stays lost even where the next one finds no room.
	same(0, 300, nil)
	again := goclaw.Reservation{Tokens: 800, Spent: true, Tree: limits, Now: w.now}
	got, err := w.Reserve(ctx, tree[0].Fence(), again)
	w.ok(err)
	w.same("shortage", got, short(300, 0, 800))
	lost(300)
	got, err = w.Reserve(ctx, tree[0].Fence(), again)
	w.ok(err)
	w.same("shortage", got, short(300, 0, 800))
	lost(300)

	// A takeover, and the end of a run.
	same(1, 100, nil)
	same(2, 10, nil)
	w.ok(w.End(ctx, tree[2].Fence(), goclaw.Ending{State: goclaw.StateFailed, Batch: goclaw.Batch{Now: w.now}}))
	lost(310)
	w.ok(w.Release(ctx, "o", w.now))
	for _, one := range w.claims(w.request("o2", 9), "t+", "t0+") {
		tree[1] = one.Run
	}
	lost(410)
	same(1, 591, short(410, 0, 591))
	same(1, 590, nil)
	w.ok(w.Append(ctx, tree[1].Fence(), w.reply(0, 7, -1)))
	lost(410)
	same(1, 584, short(417, 0, 584))
}

func testReserveLimits(w *world) {
	ctx := w.Context()
	run := w.begin(w.turn("r", "a"), "o")
	w.ok(w.Append(ctx, run.Fence(), w.reply(0, 100, 0.5)))
	w.ok(w.Append(ctx, run.Fence(), w.reply(1, 100, -1)))
	yesterday := w.reply(2, 100, 0.25)
	yesterday.Day = "2026-02-28"
	w.ok(w.Append(ctx, run.Fence(), yesterday))
	elsewhere := w.begin(w.turn("b", "b"), "o")
	w.ok(w.Append(ctx, elsewhere.Fence(), w.reply(0, 1000, 8)))
	other := w.begin(spread(w.spawn("other", run), "r"), "o")
	if short := w.reserve(other, 40, goclaw.Limits{}); short != nil {
		w.Fatalf("without limits there is a shortage: %+v", short)
	}
	need := goclaw.Reservation{Tokens: 60, USD: 0.25, Date: today, Now: w.now}
	tests := []struct {
		tree, day goclaw.Limits
		want      *goclaw.Shortage
	}{
		{goclaw.Limits{}, goclaw.Limits{}, nil},
		{goclaw.Limits{Tokens: 400, USD: 1.04, Steps: 5, Seconds: 1}, goclaw.Limits{Tokens: 300, USD: 0.79, Steps: 4, Seconds: 3}, nil},
		{goclaw.Limits{Tokens: 399, USD: 1, Steps: 1}, goclaw.Limits{Tokens: 1}, &goclaw.Shortage{Scope: "tree", What: "tokens", Limit: 399, Spent: 300, Held: 40, Need: 60}},
		{goclaw.Limits{USD: 1, Steps: 1}, goclaw.Limits{Tokens: 1}, &goclaw.Shortage{Scope: "tree", What: "usd", Limit: 1, Spent: 0.75, Held: 0.04, Need: 0.25}},
		{goclaw.Limits{Steps: 4}, goclaw.Limits{Tokens: 1}, &goclaw.Shortage{Scope: "tree", What: "steps", Limit: 4, Spent: 3, Held: 1, Need: 1}},
		{goclaw.Limits{Tokens: 400}, goclaw.Limits{Tokens: 299, USD: 0.1}, &goclaw.Shortage{Scope: "day", What: "tokens", Limit: 299, Spent: 200, Held: 40, Need: 60}},
		{goclaw.Limits{}, goclaw.Limits{USD: 0.75, Steps: 1}, &goclaw.Shortage{Scope: "day", What: "usd", Limit: 0.75, Spent: 0.5, Held: 0.04, Need: 0.25}},
		{goclaw.Limits{}, goclaw.Limits{Steps: 3, Seconds: 1}, &goclaw.Shortage{Scope: "day", What: "steps", Limit: 3, Spent: 2, Held: 1, Need: 1}},
		{goclaw.Limits{}, goclaw.Limits{Seconds: 2}, &goclaw.Shortage{Scope: "day", What: "seconds", Limit: 2, Spent: 3}},
	}
	for _, tt := range tests {
		r := need
		r.Tree, r.Day = tt.tree, tt.day
		got, err := w.Reserve(ctx, run.Fence(), r)
		w.ok(err)
		w.same("shortage", got, tt.want)
	}
	tomorrow := need
	tomorrow.Day, tomorrow.Date = goclaw.Limits{Tokens: 60, USD: 0.25, Steps: 1}, "2026-03-02"
	got, err := w.Reserve(ctx, run.Fence(), tomorrow)
	w.ok(err)
	w.same("shortage", got, nilShortage)
}

// spread puts an acceptance into a tree.
func spread(a goclaw.Acceptance, root string) goclaw.Acceptance {
	a.Run.Root = root
	return a
}

func testUsage(w *world) {
	ctx := w.Context()
	cost := func(usd float64) *float64 { return &usd }
	top := w.begin(w.turn("top", "a"), "o")
	child := spread(w.spawn("child", top), "top")
	child.Run.Profile.Model, child.Run.Profile.Definition = "p/small", "planner"
	worker := w.begin(child, "o")
	lone := w.begin(w.turn("lone", "b"), "o")
	usage := func(q goclaw.UsageQuery, want ...goclaw.UsageRow) {
		w.Helper()
		got, err := w.Usage(ctx, q)
		w.ok(err)
		w.same("usage", got, want)
	}
	usage(goclaw.UsageQuery{}, goclaw.UsageRow{})
	usage(goclaw.UsageQuery{By: []string{"agent"}})

	w.ok(w.Append(ctx, top.Fence(), w.reply(0, 10, 0.5)))
	w.ok(w.Append(ctx, top.Fence(), w.reply(1, 10, 0.25)))
	w.ok(w.Append(ctx, worker.Fence(), w.reply(0, 100, -1)))
	later := w.reply(1, 1, 0)
	later.Day = "2026-03-02"
	w.ok(w.Append(ctx, worker.Fence(), later))
	w.ok(w.Append(ctx, lone.Fence(), w.reply(0, 50, -1)))
	w.reserve(worker, 7, goclaw.Limits{})
	w.reserve(lone, 9, goclaw.Limits{}) // under way: not lost
	w.ok(w.End(ctx, worker.Fence(), goclaw.Ending{State: goclaw.StateFailed, Batch: goclaw.Batch{Now: w.now}}))

	sum := func(row goclaw.UsageRow, calls, tokens int64, usd *float64, unpriced, lost int64) goclaw.UsageRow {
		row.Calls, row.TookMs, row.Unpriced, row.Lost = calls, calls*1500, unpriced, lost
		row.Usage = goclaw.Usage{Input: tokens - calls, Output: calls, CacheRead: calls, CostUSD: usd}
		return row
	}
	usage(goclaw.UsageQuery{}, sum(goclaw.UsageRow{}, 5, 171, cost(0.75), 2, 7))
	usage(goclaw.UsageQuery{By: []string{"agent"}},
		sum(goclaw.UsageRow{Agent: "a"}, 4, 121, cost(0.75), 1, 7), sum(goclaw.UsageRow{Agent: "b"}, 1, 50, nil, 1, 0))
	usage(goclaw.UsageQuery{By: []string{"model", "definition"}, Agent: "a"},
		sum(goclaw.UsageRow{Model: "p/small", Definition: "planner"}, 2, 101, cost(0), 1, 7), sum(goclaw.UsageRow{}, 2, 20, cost(0.75), 0, 0))
	usage(goclaw.UsageQuery{By: []string{"trigger"}},
		sum(goclaw.UsageRow{Trigger: goclaw.TriggerSpawn}, 2, 101, cost(0), 1, 7), sum(goclaw.UsageRow{Trigger: goclaw.TriggerUser}, 3, 70, cost(0.75), 1, 0))
	usage(goclaw.UsageQuery{By: []string{"day"}},
		sum(goclaw.UsageRow{Day: today}, 4, 170, cost(0.75), 2, 7), sum(goclaw.UsageRow{Day: "2026-03-02"}, 1, 1, cost(0), 0, 0))
	usage(goclaw.UsageQuery{By: []string{"tree", "run"}, Until: today},
		sum(goclaw.UsageRow{Tree: "top", Run: "child"}, 1, 100, nil, 1, 7),
		sum(goclaw.UsageRow{Tree: "lone", Run: "lone"}, 1, 50, nil, 1, 0),
		sum(goclaw.UsageRow{Tree: "top", Run: "top"}, 2, 20, cost(0.75), 0, 0))
	usage(goclaw.UsageQuery{Since: "2026-03-02", Tree: "top"}, sum(goclaw.UsageRow{}, 1, 1, cost(0), 0, 0))
	usage(goclaw.UsageQuery{By: []string{"run"}, Tree: "none"})
	_, err := w.Usage(ctx, goclaw.UsageQuery{By: []string{"weather"}})
	if !goclaw.IsBadRequest(err) {
		w.Fatalf("usage by something that there is not: %v", err)
	}

	// What was used stays known when the record is removed.
	secret := w.turn("secret", "c")
	secret.Run.Cleanup = goclaw.CleanupDelete
	run := w.begin(secret, "o")
	w.ok(w.End(ctx, run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: w.reply(0, 3, 1)}))
	_, err = w.Tidy(ctx, w.now, 0)
	w.ok(err)
	usage(goclaw.UsageQuery{Agent: "c"}, sum(goclaw.UsageRow{}, 1, 3, cost(1), 0, 0))
}

func testRate(w *world) {
	ctx := w.Context()
	r := goclaw.RateRequest{Name: "p", RequestsPerMinute: 2, TokensPerMinute: 6000, Tokens: 1000}
	take := func(tokens int64, want goclaw.Millis) {
		w.Helper()
		r.Tokens, r.Now = tokens, w.now
		again, err := w.TakeRate(ctx, r)
		w.ok(err)
		if again != want {
			w.Fatalf("TakeRate(%d tokens) says %d after now, want %d", tokens, again-w.now, want-w.now)
		}
	}
	take(1000, 0)
	take(1000, 0)
	take(1000, w.now+30_000) // a third request
	take(1000, w.now+30_000) // asking costs nothing
	w.now += 29_999
	take(1000, w.now+1)
	w.now++
	take(5000, 0) // 4000 left and 3000 filled, of which there is room for 2000
	w.now += 30_000
	take(5000, w.now+10_000) // 1000 left and 3000 filled
	w.now += 10_000
	take(5000, 0)
	// More than there ever is waits for a full bucket, and leaves a debt.
	w.now += 60_000
	take(9000, 0)
	w.now += 60_000
	take(3001, w.now+10) // a tenth of a token a millisecond
	w.now += 10
	take(3001, 0)

	// What was not used comes back, what was used beyond goes.
	give := func(tokens int64) {
		w.Helper()
		r.Tokens, r.Now = tokens, w.now
		w.ok(w.GiveRate(ctx, r))
	}
	w.now += 30_000
	give(2000)
	take(5001, w.now+10)
	give(-1000)
	take(5000, w.now+10_000)
	give(1_000_000)
	take(6000, 0)

	// Other providers have their own, and some have none.
	other := goclaw.RateRequest{Name: "q", TokensPerMinute: 100, Tokens: 100, Now: w.now}
	for _, want := range []goclaw.Millis{0, w.now + 60_000} {
		again, err := w.TakeRate(ctx, other)
		w.ok(err)
		w.same("when to ask again", again, want)
	}
	for range 3 {
		again, err := w.TakeRate(ctx, goclaw.RateRequest{Name: "free", Tokens: 1 << 40, Now: w.now})
		w.ok(err)
		w.same("when to ask again", again, goclaw.Millis(0))
	}
	w.ok(w.GiveRate(ctx, goclaw.RateRequest{Name: "unknown", TokensPerMinute: 5, Tokens: 5, Now: w.now}))
	// A clock behind the others' fills nothing.
	other.Now -= 50_000
	again, err := w.TakeRate(ctx, other)
	w.ok(err)
	w.same("when to ask again", again, w.now+60_000)
}

func testPause(w *world) {
	ctx := w.Context()
	paused := func(want goclaw.Pause) {
		w.Helper()
		got, err := w.Paused(ctx)
		w.ok(err)
		w.same("pause", got, want)
	}
	paused(goclaw.Pause{})
	w.ok(w.SetPause(ctx, goclaw.Pause{At: w.now, Why: "too dear"}))
	paused(goclaw.Pause{At: w.now, Why: "too dear"})
	w.ok(w.SetPause(ctx, goclaw.Pause{At: w.now + 1}))
	paused(goclaw.Pause{At: w.now + 1})
	w.ok(w.SetPause(ctx, goclaw.Pause{}))
	paused(goclaw.Pause{})
}
