package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/turn"
)

// lookAgain is how soon an outcome is looked at again when no notice tells of
// a change (another process may hold the run).
const lookAgain = 500 * time.Millisecond

// Await blocks until the run has ended and, with workers, until every run that
// it and the turns after it started has ended, was announced, and was answered.
// Its error is ctx's or the store's.
func (g *Gateway) Await(ctx context.Context, id string, workers bool) (goclaw.Outcome, error) {
	sub, stop := context.WithCancel(ctx)
	defer stop()
	notices := g.o.Feed.Subscribe(sub, func(n goclaw.Notice) bool {
		return n.Kind == goclaw.NoticeRun && n.Run != nil && n.Run.State.Ended() && (workers || strings.HasPrefix(n.RunID, id))
	})
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	var ended *goclaw.Run // as its end was told
	for {
		first, err := g.first(ctx, id, ended)
		if err != nil {
			return goclaw.Outcome{}, err
		}
		if first.State.Ended() { // before that there is nothing to gather
			out, done, err := g.outcome(ctx, first)
			if err != nil || done || !workers {
				return out, err
			}
		}
		select {
		case <-ctx.Done():
			return goclaw.Outcome{}, context.Cause(ctx)
		case n := <-notices:
			if n.RunID == first.ID {
				ended = n.Run
			}
		case <-tick.C:
		}
	}
}

// first is the awaited run: what was told of its end, which was recorded
// before, else what the record says.
func (g *Gateway) first(ctx context.Context, id string, ended *goclaw.Run) (goclaw.Run, error) {
	if ended != nil {
		return *ended, nil
	}
	return g.o.Record.Run(ctx, id)
}

// outcome gathers what a turn has led to so far; done says that nothing of it
// is under way any more.
func (g *Gateway) outcome(ctx context.Context, first goclaw.Run) (out goclaw.Outcome, done bool, err error) {
	turns, spawned, err := g.family(ctx, first)
	if err != nil {
		return goclaw.Outcome{}, false, err
	}
	out = goclaw.Outcome{Session: first.Session, Runs: []goclaw.RunInfo{}, Replies: []string{}, Turns: len(turns)}
	done = true
	for _, t := range turns {
		done = done && t.State.Ended()
		out.Usage = out.Usage.Add(t.Usage)
		out.Status, out.Error = t.State, t.Error
		if said := reply(t); said != "" {
			out.Reply = said
			out.Replies = append(out.Replies, said)
		}
	}
	answered, err := g.answered(ctx, turns)
	if err != nil {
		return out, false, err
	}
	for _, r := range spawned {
		out.Runs = append(out.Runs, r.Info())
		out.Usage = out.Usage.Add(r.Usage)
		if !r.State.Ended() || r.Requester == first.Session && r.Announce != goclaw.AnnounceNone && !answered[r.ID] {
			out.Unfinished++
		}
	}
	return out, done && out.Unfinished == 0, nil
}

// family finds the turns that answer first and what it spawned, oldest first,
// and all runs that these spawned.
func (g *Gateway) family(ctx context.Context, first goclaw.Run) (turns, spawned []goclaw.Run, err error) {
	turns = []goclaw.Run{first}
	ours := map[string]bool{}
	if spawned, err = g.descendants(ctx, first, ours); err != nil || len(spawned) == 0 {
		return turns, nil, err
	}
	later, err := g.o.Record.Runs(ctx, goclaw.RunFilter{
		Session: first.Session, Triggers: []goclaw.Trigger{goclaw.TriggerAnnouncement},
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(later)
	for _, t := range later {
		if t.Ordinal <= first.Ordinal {
			continue
		}
		consumed, err := g.consumed(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(consumed, func(id string) bool { return ours[id] }) {
			continue
		}
		turns = append(turns, t)
		more, err := g.descendants(ctx, t, ours)
		if err != nil {
			return nil, nil, err
		}
		spawned = append(spawned, more...)
	}
	return turns, spawned, nil
}

func (g *Gateway) descendants(ctx context.Context, parent goclaw.Run, ours map[string]bool) ([]goclaw.Run, error) {
	children, err := g.o.Record.Runs(ctx, goclaw.RunFilter{Parent: parent.ID})
	if err != nil {
		return nil, err
	}
	slices.Reverse(children)
	all := children
	for _, c := range children {
		ours[c.ID] = true
		deeper, err := g.descendants(ctx, c, ours)
		if err != nil {
			return nil, err
		}
		all = append(all, deeper...)
	}
	return all, nil
}

// consumed lists the runs whose results a turn was given.
func (g *Gateway) consumed(ctx context.Context, t goclaw.Run) ([]string, error) {
	events, err := g.o.Record.Events(ctx, t.ID)
	if err != nil || len(events) == 0 || events[0].Prompt == nil {
		return nil, err
	}
	return events[0].Prompt.Inbox, nil
}

// answered tells which runs' results an ended turn was given.
func (g *Gateway) answered(ctx context.Context, turns []goclaw.Run) (map[string]bool, error) {
	done := map[string]bool{}
	for _, t := range turns {
		if !t.State.Ended() || t.Trigger != goclaw.TriggerAnnouncement {
			continue
		}
		ids, err := g.consumed(ctx, t)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			done[id] = true
		}
	}
	return done, nil
}

// reply is what the turn said to its person; "" if it was silent.
func reply(t goclaw.Run) string {
	if !t.State.Ended() || t.State == goclaw.StateCompleted && turn.IsSilent(t.Result) {
		return ""
	}
	return t.Result
}
