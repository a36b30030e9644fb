package protocol

import (
	"context"
	"testing"

	"goclaw"
	"goclaw/internal/core/turn"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/engine"
)

// unfenced lets whoever claims to be an owner write.
type unfenced struct{ *memory.Store }

func (u unfenced) current(f goclaw.Fence) goclaw.Fence {
	if r, err := u.Run(background, f.Run); err == nil && r.State == goclaw.StateRunning {
		return r.Fence()
	}
	return f
}

func (u unfenced) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	if events, err := u.Events(ctx, f.Run); err == nil {
		for i := range b.Events {
			b.Events[i].Seq = len(events) + i
		}
	}
	return u.Store.Append(ctx, u.current(f), b)
}

// greedy marks nothing as consumed.
type greedy struct{ *memory.Store }

func (g greedy) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	b.Consume = nil
	return g.Store.Append(ctx, f, b)
}

// blind suspends whatever has come.
type blind struct{ *memory.Store }

func (b blind) Suspend(ctx context.Context, f goclaw.Fence, s goclaw.Suspension) error {
	if r, err := b.Run(ctx, f.Run); err == nil {
		if items, err := b.Pending(ctx, r.Session); err == nil {
			s.Seen = len(items)
		}
	}
	return b.Store.Suspend(ctx, f, s)
}

// hasty ends workers whatever has come.
type hasty struct{ *memory.Store }

func (h hasty) End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error {
	e.IfQuiet = false
	return h.Store.End(ctx, f, e)
}

// TestMutations breaks the protocol on purpose. What the exploration could not
// find then, it would not find either if the engine did it.
func TestMutations(t *testing.T) {
	for _, m := range []struct {
		name     string
		scenario string
		change   func(*scenario)
	}{
		{"writes are not fenced", "takeover", func(sc *scenario) {
			sc.wrap = func(s *memory.Store) engine.Store { return unfenced{s} }
			sc.everyZombie = true
		}},
		{"nothing is consumed", "two turns for one item", func(sc *scenario) {
			sc.wrap = func(s *memory.Store) engine.Store { return greedy{s} }
		}},
		{"a suspension does not ask what has come", "waiting tool", func(sc *scenario) {
			sc.wrap = func(s *memory.Store) engine.Store { return blind{s} }
		}},
		{"workers end while theirs are under way", "orchestrator", func(sc *scenario) {
			sc.wrap = func(s *memory.Store) engine.Store { return hasty{s} }
		}},
		{"calls with effects are made again", "takeover", func(sc *scenario) {
			sc.recover = func(s turn.State, owner string, planned bool) turn.Recovery {
				rec := turn.Recover(s, owner, planned)
				rec.Uncertain, rec.Event.Uncertain = nil, nil
				return rec
			}
		}},
		{"what is ready at the second look is left", "orchestrator", func(sc *scenario) { sc.looksTwice = false }},
		{"waiting for a person counts nothing", "policy ask", func(sc *scenario) { sc.asksWithCount = false }},
		{"what was read is trusted", "orchestrator", func(sc *scenario) { sc.checksClaim = false }},
		{"a group waits for others", "mixed modes", func(sc *scenario) { sc.wakesByGroup = false }},
		{"turns go by their own clock alone", "clocks that differ", func(sc *scenario) { sc.knowsAcceptance = false }},
		{"what a stopped worker leaves is cancelled later", "cancel", func(sc *scenario) { sc.cascades = false }},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for _, sc := range scenarios() {
				if sc.name != m.scenario {
					continue
				}
				if raceDetector && sc.slow {
					t.Skip("one goroutine: the race detector finds nothing here, and takes minutes")
				}
				m.change(&sc)
				x := explore(t, sc)
				if x.broken == nil {
					t.Fatal("the exploration found nothing")
				}
				if testing.Verbose() {
					t.Log(x.trace())
				}
				return
			}
			t.Fatal("no such scenario")
		})
	}
}
