package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"goclaw"
)

func (p *pair) accept(rt *rapid.T) {
	triggers := []goclaw.Trigger{goclaw.TriggerUser, goclaw.TriggerSpawn, goclaw.TriggerSpawn, goclaw.TriggerAnnouncement, goclaw.TriggerCron}
	a := goclaw.Acceptance{
		Run: goclaw.Run{
			ID: p.id("run"), Session: p.key(rt), Trigger: rapid.SampledFrom(triggers).Draw(rt, "trigger"),
			Task: rapid.String().Draw(rt, "task"), Label: rapid.StringN(0, 3, -1).Draw(rt, "label"),
			Cleanup:  rapid.SampledFrom([]goclaw.Cleanup{"", goclaw.CleanupKeep, goclaw.CleanupDelete}).Draw(rt, "cleanup"),
			Announce: rapid.SampledFrom([]goclaw.AnnounceMode{"", goclaw.AnnounceTogether, goclaw.AnnounceEach}).Draw(rt, "announce"),
			Profile:  goclaw.Profile{TimeoutMs: int64(rapid.IntRange(0, 2).Draw(rt, "timeout")), Model: "p/m", Definition: "d"},
			State:    goclaw.StateQueued, CreatedAt: p.now,
		},
		Key:      rapid.SampledFrom([]string{"", "", "", "k1", "k2"}).Draw(rt, "key"),
		Coalesce: rapid.IntRange(0, 4).Draw(rt, "coalesce") == 0,
	}
	if a.Run.Trigger == goclaw.TriggerSpawn {
		a.Run.Requester, a.Run.Parent = p.key(rt), p.runID(rt)
		a.MaxChildren = rapid.IntRange(0, 4).Draw(rt, "children")
		a.MaxTreeRuns = rapid.IntRange(0, 9).Draw(rt, "tree")
		if rapid.Bool().Draw(rt, "placed") {
			a.Run.Root, a.Run.Lane = p.runID(rt), p.key(rt)
		}
		if rapid.IntRange(0, 2).Draw(rt, "fenced") == 0 {
			f := p.fence(rt)
			a.ParentFence = &f
		}
	}
	if rapid.IntRange(0, 2).Draw(rt, "with content") == 0 {
		a.Blobs = []goclaw.Blob{blob(a.Run.Task)}
	}
	if rapid.IntRange(0, 5).Draw(rt, "for an item") == 0 {
		a.Waiting = p.item(rt)
	}
	if len(p.runs) > 0 && rapid.IntRange(0, 20).Draw(rt, "again") == 0 {
		a.Run.ID = p.runID(rt)
	}
	var created []bool
	run, err := both(p, "Accept", func(s Store) (goclaw.Run, error) {
		run, isNew, err := s.Accept(p.ctx, a)
		created = append(created, isNew)
		return run, err
	})
	if created[0] != created[1] {
		rt.Fatalf("Accept created %v in the model, %v in the subject", created[0], created[1])
	}
	if err == nil && created[0] {
		p.runs = append(p.runs, run)
	}
}

func (p *pair) claim(rt *rapid.T) {
	c := goclaw.ClaimRequest{
		Owner: p.owner(rt), Now: p.now, Lease: time.Second, Max: rapid.IntRange(0, 4).Draw(rt, "max"),
		MaxWorkers:    rapid.IntRange(0, 4).Draw(rt, "workers"),
		MaxPerLane:    rapid.IntRange(0, 2).Draw(rt, "per lane"),
		MaxPerAgent:   map[string]int{"a": rapid.IntRange(0, 3).Draw(rt, "per agent")},
		OnlyCancelled: rapid.IntRange(0, 5).Draw(rt, "cancelled") == 0,
		DeadOwners:    rapid.IntRange(0, 5).Draw(rt, "dead") == 0,
	}
	claimed, _ := both(p, "Claim", func(s Store) ([]goclaw.Claimed, error) { return s.Claim(p.ctx, c) })
	for _, one := range claimed {
		p.fences = append(p.fences, one.Run.Fence())
	}
}

// batch continues the run's log, or tries something that it must refuse.
func (p *pair) batch(rt *rapid.T, run string) goclaw.Batch {
	events, err := p.Model.Events(p.ctx, run)
	if err != nil {
		rt.Fatal(err)
	}
	seq := len(events)
	if rapid.IntRange(0, 9).Draw(rt, "gap") == 0 {
		seq++
	}
	b := goclaw.Batch{Now: p.now, Day: p.day(rt)}
	for i := range rapid.IntRange(0, 3).Draw(rt, "events") {
		switch rapid.IntRange(0, 4).Draw(rt, "kind") {
		case 0:
			b.Events = append(b.Events, goclaw.Event{Seq: seq + i, Kind: goclaw.EventModel, Model: p.reply(rt)})
			continue
		case 1:
			b.Events = append(b.Events, goclaw.Event{Seq: seq + i, Kind: goclaw.EventResumed, At: p.now - 1, Resumed: &goclaw.ResumedEvent{
				Step: seq, Uncertain: []string{"c1"}, Planned: i == 0,
			}})
			continue
		}
		text := rapid.String().Draw(rt, "content")
		b.Events = append(b.Events, goclaw.Event{Seq: seq + i, Kind: goclaw.EventResult, Result: &goclaw.ToolResult{
			CallID: fmt.Sprintf("c%d", i), Name: "exec", Content: text,
		}})
		b.Blobs = append(b.Blobs, blob(text))
	}
	for range max(0, rapid.IntRange(-4, 2).Draw(rt, "artifacts")) {
		b.Artifacts = append(b.Artifacts, goclaw.ArtifactData{
			Name:      rapid.SampledFrom([]string{"x", "x", "y", "y", ""}).Draw(rt, "name"),
			MediaType: rapid.SampledFrom([]string{"", "text/plain"}).Draw(rt, "type"),
			Data:      rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "data"),
		})
	}
	if rapid.IntRange(0, 2).Draw(rt, "consume") == 0 {
		b.Consume = []string{p.item(rt)}
		if rapid.IntRange(0, 3).Draw(rt, "two") == 0 {
			b.Consume = append(b.Consume, p.item(rt))
		}
	}
	if cost := rapid.Float64Range(0, 9).Draw(rt, "cost"); cost > 3 {
		b.Usage = &goclaw.Usage{Input: int64(cost), Output: 1}
		if cost > 6 {
			b.Usage.CostUSD = &cost
		}
	}
	return b
}

func (p *pair) append(rt *rapid.T) {
	f := p.fence(rt)
	b := p.batch(rt, f.Run)
	_ = bothDo(p, "Append", func(s Store) error { return s.Append(p.ctx, f, b) })
}

func (p *pair) end(rt *rapid.T) {
	f := p.fence(rt)
	states := []goclaw.RunState{goclaw.StateCompleted, goclaw.StateFailed, goclaw.StateTimeout, goclaw.StateCancelled, goclaw.StateRunning}
	e := goclaw.Ending{
		Batch: p.batch(rt, f.Run), State: rapid.SampledFrom(states).Draw(rt, "state"),
		Result: rapid.String().Draw(rt, "result"), Error: rapid.String().Draw(rt, "error"),
	}
	e.IfQuiet = rapid.IntRange(0, 2).Draw(rt, "if quiet") == 0
	if rapid.Bool().Draw(rt, "wakes") {
		e.Wake = &goclaw.Wake{Last: p.soon(rt) + 1, Next: p.soon(rt)}
	}
	if rapid.IntRange(0, 3).Draw(rt, "gives back") == 0 {
		back := p.failure(rt)
		e.Return = &back
	}
	if rapid.Bool().Draw(rt, "announced") {
		e.Announce = &goclaw.InboxItem{ID: p.id("item"), Session: p.key(rt), Source: f.Run, Group: p.runID(rt), Text: "text"}
	}
	if rapid.Bool().Draw(rt, "posted") {
		e.Outbox = &goclaw.Outbound{ID: p.id("post"), Session: p.key(rt), Run: f.Run, NextAt: p.now + goclaw.Millis(rapid.IntRange(-1, 1).Draw(rt, "next"))}
	}
	if err := bothDo(p, "End", func(s Store) error { return s.End(p.ctx, f, e) }); err != nil {
		return
	}
	if e.Announce != nil {
		p.items = append(p.items, e.Announce.ID)
	}
	if e.Outbox != nil {
		p.posts = append(p.posts, e.Outbox.ID)
	}
}

func (p *pair) cancel(rt *rapid.T) {
	c := goclaw.Cancellation{Run: p.runID(rt), Why: "why", Now: p.now, Cascade: rapid.Bool().Draw(rt, "cascade")}
	_, _ = both(p, "Cancel", func(s Store) ([]goclaw.Run, error) { return s.Cancel(p.ctx, c) })
}

func (p *pair) heartbeat(rt *rapid.T) {
	h := goclaw.Heartbeat{Owner: p.owner(rt), Now: p.now, Lease: time.Second}
	_, _ = both(p, "Heartbeat", func(s Store) (goclaw.Pulse, error) { return s.Heartbeat(p.ctx, h) })
}

func (p *pair) release(rt *rapid.T) {
	owner := p.owner(rt)
	_ = bothDo(p, "Release", func(s Store) error { return s.Release(p.ctx, owner, p.now) })
}

func (p *pair) tidy(rt *rapid.T) {
	before := p.now - goclaw.Millis(rapid.IntRange(-1, 2000).Draw(rt, "age"))
	_, _ = both(p, "Tidy", func(s Store) (int, error) { return s.Tidy(p.ctx, p.now, before) })
}

func (p *pair) session(rt *rapid.T) {
	key := p.key(rt)
	c := goclaw.SessionChange{Reset: rapid.Bool().Draw(rt, "reset")}
	if rapid.Bool().Draw(rt, "model") {
		model := rapid.StringN(0, 2, -1).Draw(rt, "name")
		c.Model = &model
	}
	_ = bothDo(p, "ChangeSession", func(s Store) error { return s.ChangeSession(p.ctx, key, c, p.now) })
}

func (p *pair) outbox(rt *rapid.T) {
	limit := rapid.IntRange(0, 2).Draw(rt, "limit")
	_, _ = both(p, "Outbox", func(s Store) ([]goclaw.Outbound, error) { return s.Outbox(p.ctx, p.now, limit) })
	id := rapid.SampledFrom(append([]string{"none"}, p.posts...)).Draw(rt, "post")
	if rapid.Bool().Draw(rt, "take") {
		_, _ = both(p, "TakeOutbox", func(s Store) (bool, error) { return s.TakeOutbox(p.ctx, id, p.now, p.now+1) })
		return
	}
	state := rapid.SampledFrom([]string{"pending", "sent", "parked", "parked", "odd"}).Draw(rt, "state")
	_ = bothDo(p, "MarkOutbox", func(s Store) error { return s.MarkOutbox(p.ctx, id, state, p.now+1, "why") })
}

func (p *pair) ask(rt *rapid.T) {
	filter := goclaw.RunFilter{
		Active: rapid.Bool().Draw(rt, "active"), Ended: rapid.Bool().Draw(rt, "ended"), Limit: rapid.IntRange(0, 3).Draw(rt, "limit"),
	}
	switch rapid.IntRange(0, 4).Draw(rt, "by") {
	case 0:
		filter.Session = p.key(rt)
	case 1:
		filter.Requester = p.key(rt)
	case 3:
		filter.Root = p.runID(rt)
	case 2:
		filter.Parent, filter.Triggers = p.runID(rt), []goclaw.Trigger{goclaw.TriggerSpawn, goclaw.TriggerUser}
	}
	_, _ = both(p, "Runs", func(s Store) ([]goclaw.Run, error) { return s.Runs(p.ctx, filter) })
	id := p.runID(rt)
	id = id[:rapid.IntRange(0, len(id)).Draw(rt, "prefix")]
	_, _ = both(p, "Run", func(s Store) (goclaw.Run, error) { return s.Run(p.ctx, id) })
	left := goclaw.ArtifactFilter{Limit: rapid.IntRange(0, 3).Draw(rt, "limit")}
	switch rapid.IntRange(0, 3).Draw(rt, "left by") {
	case 0:
		left.Run = p.runID(rt)
	case 1:
		left.Session, left.Name = p.key(rt), "x"
	case 2:
		left.Root = p.runID(rt)
	}
	_, _ = both(p, "ArtifactsOf", func(s Store) ([]goclaw.Artifact, error) { return s.ArtifactsOf(p.ctx, left) })
	key, before := p.key(rt), int64(rapid.IntRange(0, len(p.runs)+1).Draw(rt, "before"))
	_, _ = both(p, "History", func(s Store) ([]goclaw.RunLog, error) { return s.History(p.ctx, key, before) })
	_, _ = both(p, "Pending", func(s Store) ([]goclaw.InboxItem, error) { return s.Pending(p.ctx, key) })
	_, _ = both(p, "Session", func(s Store) (goclaw.Session, error) { return s.Session(p.ctx, key) })
}
