package storetest

import (
	"slices"

	"pgregory.net/rapid"

	"goclaw"
)

// item is mostly one of the last few.
func (p *pair) item(rt *rapid.T) string {
	return rapid.SampledFrom(append([]string{"none"}, p.items[max(0, len(p.items)-4):]...)).Draw(rt, "item")
}

func (p *pair) day(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"", "2026-03-01", "2026-03-02"}).Draw(rt, "day")
}

// soon is a moment around now, or none.
func (p *pair) soon(rt *rapid.T) goclaw.Millis {
	if rapid.IntRange(0, 3).Draw(rt, "ever") == 0 {
		return 0
	}
	return p.now + goclaw.Millis(rapid.IntRange(-1, 1500).Draw(rt, "soon"))
}

func (p *pair) failure(rt *rapid.T) goclaw.Return {
	return goclaw.Return{Why: "why", NextAt: p.soon(rt), Parked: rapid.Bool().Draw(rt, "parked")}
}

// reply is a model's, with costs and times whose sums are exact.
func (p *pair) reply(rt *rapid.T) *goclaw.ModelEvent {
	m := &goclaw.ModelEvent{
		Usage:  goclaw.Usage{Input: int64(rapid.IntRange(0, 90).Draw(rt, "input")), Output: 3, CacheRead: 2, CacheWrite: 1},
		TookMs: 125 * int64(rapid.IntRange(0, 9).Draw(rt, "took")),
	}
	if quarters := rapid.IntRange(-1, 9).Draw(rt, "quarters"); quarters >= 0 {
		cost := float64(quarters) / 4
		m.Usage.CostUSD = &cost
	}
	return m
}

func (p *pair) suspend(rt *rapid.T) {
	f := p.fence(rt)
	w := goclaw.Suspension{
		Batch: p.batch(rt, f.Run), Until: p.soon(rt),
		For: rapid.SampledFrom([]goclaw.WaitReason{goclaw.WaitWorkers, goclaw.WaitWorkers, goclaw.WaitPerson, goclaw.WaitCaller, "else"}).Draw(rt, "for"),
	}
	// Mostly it has seen what is there.
	if run, err := p.Model.Run(p.ctx, f.Run); err == nil {
		items, err := p.Model.Pending(p.ctx, run.Session)
		if err != nil {
			rt.Fatal(err)
		}
		for _, it := range items {
			if !slices.Contains(w.Consume, it.ID) {
				w.Seen++
			}
		}
	}
	if rapid.IntRange(0, 3).Draw(rt, "surprised") == 0 {
		w.Seen++
	}
	_ = bothDo(p, "Suspend", func(s Store) error { return s.Suspend(p.ctx, f, w) })
}

func (p *pair) post(rt *rapid.T) {
	run, item := p.runID(rt), goclaw.InboxItem{ID: p.id("item"), Text: "left", CreatedAt: p.now}
	item.Kind = rapid.SampledFrom([]goclaw.InboxKind{"", goclaw.ItemSteer, goclaw.ItemResults}).Draw(rt, "kind")
	if rapid.IntRange(0, 9).Draw(rt, "again") == 0 {
		item.ID = p.item(rt)
	}
	if bothDo(p, "Post", func(s Store) error { return s.Post(p.ctx, run, item) }) == nil {
		p.items = append(p.items, item.ID)
	}
}

func (p *pair) resume(rt *rapid.T) {
	run := p.runID(rt)
	_, _ = both(p, "Resume", func(s Store) (goclaw.Run, error) { return s.Resume(p.ctx, run, p.now) })
}

func (p *pair) deliver(rt *rapid.T) {
	items, failure := []string{p.item(rt), p.item(rt)}, p.failure(rt)
	_ = bothDo(p, "Postpone", func(s Store) error { return s.Postpone(p.ctx, items, failure, p.now) })
	item, to := p.item(rt), p.key(rt)
	_ = bothDo(p, "Redirect", func(s Store) error { return s.Redirect(p.ctx, item, to) })
}

func (p *pair) decide(rt *rapid.T) {
	id := "none"
	parked, _ := both(p, "Parked", func(s Store) ([]goclaw.Parked, error) { return s.Parked(p.ctx) })
	if len(parked) > 0 {
		id = rapid.SampledFrom(parked).Draw(rt, "parked").ID
	}
	if rapid.Bool().Draw(rt, "give up") {
		_ = bothDo(p, "Dismiss", func(s Store) error { return s.Dismiss(p.ctx, id, p.now) })
		return
	}
	_ = bothDo(p, "Unpark", func(s Store) error { return s.Unpark(p.ctx, id, p.now) })
}

func (p *pair) limits(rt *rapid.T) goclaw.Limits {
	return goclaw.Limits{
		Tokens: int64(rapid.IntRange(0, 300).Draw(rt, "tokens")), USD: float64(rapid.IntRange(0, 20).Draw(rt, "quarters")) / 4,
		Steps: int64(rapid.IntRange(0, 5).Draw(rt, "steps")), Seconds: int64(rapid.IntRange(0, 3).Draw(rt, "seconds")),
	}
}

func (p *pair) reserve(rt *rapid.T) {
	f := p.fence(rt)
	r := goclaw.Reservation{
		Tokens: int64(rapid.IntRange(0, 90).Draw(rt, "need")), USD: 0.25, Date: p.day(rt),
		Spent: rapid.IntRange(0, 3).Draw(rt, "spent") == 0, Now: p.now,
	}
	if rapid.Bool().Draw(rt, "limited tree") {
		r.Tree = p.limits(rt)
	}
	if rapid.Bool().Draw(rt, "limited day") {
		r.Day = p.limits(rt)
	}
	_, _ = both(p, "Reserve", func(s Store) (*goclaw.Shortage, error) { return s.Reserve(p.ctx, f, r) })
}

func (p *pair) rate(rt *rapid.T) {
	r := goclaw.RateRequest{
		Name:              rapid.SampledFrom([]string{"p", "q"}).Draw(rt, "provider"),
		RequestsPerMinute: rapid.IntRange(0, 3).Draw(rt, "requests"), TokensPerMinute: rapid.IntRange(0, 500).Draw(rt, "tokens"),
		Tokens: int64(rapid.IntRange(-50, 600).Draw(rt, "need")), Now: p.now - goclaw.Millis(rapid.IntRange(0, 5).Draw(rt, "late")),
	}
	if rapid.Bool().Draw(rt, "give") {
		_ = bothDo(p, "GiveRate", func(s Store) error { return s.GiveRate(p.ctx, r) })
		return
	}
	_, _ = both(p, "TakeRate", func(s Store) (goclaw.Millis, error) { return s.TakeRate(p.ctx, r) })
}

func (p *pair) pause(rt *rapid.T) {
	set := goclaw.Pause{At: p.soon(rt), Why: rapid.String().Draw(rt, "why")}
	_ = bothDo(p, "SetPause", func(s Store) error { return s.SetPause(p.ctx, set) })
	_, _ = both(p, "Paused", func(s Store) (goclaw.Pause, error) { return s.Paused(p.ctx) })
}

func (p *pair) usage(rt *rapid.T) {
	by := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"agent", "definition", "model", "trigger", "day", "tree", "run", "odd"}), 0, 3, rapid.ID).Draw(rt, "by")
	q := goclaw.UsageQuery{By: by, Since: p.day(rt), Until: p.day(rt), Agent: rapid.SampledFrom([]string{"", "a"}).Draw(rt, "agent")}
	if rapid.IntRange(0, 3).Draw(rt, "one tree") == 0 {
		q.Tree = p.runID(rt)
	}
	_, _ = both(p, "Usage", func(s Store) ([]goclaw.UsageRow, error) { return s.Usage(p.ctx, q) })
	_, _ = both(p, "Queue", func(s Store) ([]string, error) { return s.Queue(p.ctx) })
}
