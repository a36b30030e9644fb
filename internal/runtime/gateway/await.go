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
// It also returns when the run waits for its caller: Calls are set then.
// What is parked waits for a person, not for time: Await does not wait for it.
// Its error is ctx's, which comes with the outcome so far, or the store's.
func (g *Gateway) Await(ctx context.Context, id string, workers bool) (goclaw.Outcome, error) {
	sub, stop := context.WithCancel(ctx)
	defer stop()
	notices := g.o.Feed.Subscribe(sub, func(n goclaw.Notice) bool {
		return n.Kind == goclaw.NoticeRun && n.Run != nil && (n.Run.State.Ended() || n.Run.WaitsFor == goclaw.WaitCaller) &&
			(workers || strings.HasPrefix(n.RunID, id))
	})
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		began := time.Now()
		first, err := g.o.Record.Run(ctx, id)
		if err != nil {
			return goclaw.Outcome{}, err
		}
		if calls, err := g.callerCalls(ctx, first); err != nil || len(calls) > 0 {
			return goclaw.Outcome{
				Session: first.Session, Status: first.State, Turns: 1, Replies: []string{}, Runs: []goclaw.RunInfo{},
				Usage: first.Usage, Calls: calls,
			}, err
		}
		if first.State.Ended() { // before that there is nothing to gather
			out, done, err := g.outcome(ctx, first, workers)
			if err != nil || done || !workers {
				return out, err
			}
		}
		took := time.Since(began)
		select {
		case <-ctx.Done():
			out, _, err := g.outcome(context.WithoutCancel(ctx), first, workers)
			if err != nil {
				return out, err
			}
			return out, context.Cause(ctx)
		case <-notices:
			rest(ctx, notices, took)
		case <-tick.C:
		}
	}
}

// rest takes the notices that come meanwhile: where a look at the record takes
// long, for a thousand runs that end at once, one must serve for many.
func rest(ctx context.Context, notices <-chan goclaw.Notice, d time.Duration) {
	const short = 5 * time.Millisecond
	if d < short {
		return
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case _, open := <-notices:
			if !open {
				return
			}
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// outcome gathers what a turn has led to so far; done says that nothing of it
// is under way any more. The record changes while it is read: the turn that
// tells a result may be accepted just after the turns were listed, and take the
// result before it is missed. So done is said only if a second look, later than
// the one at the pending results, finds the same runs. Without workers it is
// that of the first turn, whatever came after it.
func (g *Gateway) outcome(ctx context.Context, first goclaw.Run, workers bool) (goclaw.Outcome, bool, error) {
	for known := 0; ; {
		f, err := g.family(ctx, first)
		if err != nil {
			return goclaw.Outcome{}, false, err
		}
		waiting, err := g.untold(ctx, f)
		if err != nil {
			return goclaw.Outcome{}, false, err
		}
		if !workers {
			f.turns = f.turns[:1]
		}
		out, done := f.outcome(waiting)
		size := len(f.turns) + len(f.spawned)
		if !done || len(f.spawned) == 0 || size == known {
			return out, done, nil
		}
		known = size
	}
}

// family is what a turn has led to.
type family struct {
	turns   []goclaw.Run    // the turn and those that told of its workers, oldest first
	spawned []goclaw.Run    // the workers of these turns, and theirs
	told    map[string]bool // results that a turn was given; true once it has ended
}

// outcome sums up. waiting holds the results that are on their way (true) or
// parked (false).
func (f family) outcome(waiting map[string]bool) (out goclaw.Outcome, done bool) {
	out = goclaw.Outcome{Session: f.turns[0].Session, Runs: []goclaw.RunInfo{}, Replies: []string{}, Turns: len(f.turns)}
	done = true
	for _, t := range f.turns {
		done = done && t.State.Ended()
		out.Usage = out.Usage.Add(t.Usage)
		out.Status, out.Error, out.Cut = t.State, t.Error, turn.WasCut(t.Result)
		if said := reply(t); said != "" {
			out.Reply = said
			out.Replies = append(out.Replies, said)
		}
	}
	for _, r := range f.spawned {
		out.Runs = append(out.Runs, r.Info())
		out.Usage = out.Usage.Add(r.Usage)
		coming, untold := waiting[r.ID]
		ended, given := f.told[r.ID]
		open := !r.State.Ended() || coming || given && !ended
		done = done && !open
		if open || untold {
			out.Unfinished++
		}
	}
	return out, done
}

// family finds the turns that answer first and what it spawned.
func (g *Gateway) family(ctx context.Context, first goclaw.Run) (family, error) {
	f := family{turns: []goclaw.Run{first}, told: map[string]bool{}}
	ours := map[string]bool{}
	if err := g.descendants(ctx, first, ours, &f.spawned); err != nil || len(f.spawned) == 0 {
		return f, err
	}
	later, err := g.o.Record.Runs(ctx, goclaw.RunFilter{
		Session: first.Session, Triggers: []goclaw.Trigger{goclaw.TriggerAnnouncement},
	})
	if err != nil {
		return f, err
	}
	for _, t := range slices.Backward(later) {
		if t.Ordinal <= first.Ordinal {
			continue
		}
		given, err := g.given(ctx, t)
		if err != nil {
			return f, err
		}
		if !slices.ContainsFunc(given, func(id string) bool { return ours[id] }) {
			continue
		}
		for _, id := range given {
			f.told[id] = t.State.Ended()
		}
		f.turns = append(f.turns, t)
		if err := g.descendants(ctx, t, ours, &f.spawned); err != nil {
			return f, err
		}
	}
	return f, nil
}

// descendants adds the runs that parent led to, and notes their ids.
func (g *Gateway) descendants(ctx context.Context, parent goclaw.Run, ours map[string]bool, all *[]goclaw.Run) error {
	children, err := g.o.Record.Runs(ctx, goclaw.RunFilter{Parent: parent.ID})
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(children) {
		ours[c.ID] = true
		*all = append(*all, c)
	}
	for _, c := range slices.Backward(children) {
		if c.Depth >= c.Profile.MaxSpawnDepth {
			continue
		}
		if err := g.descendants(ctx, c, ours, all); err != nil {
			return err
		}
	}
	return nil
}

// given lists the results that a turn of announcements was given, unless it
// gave them back.
func (g *Gateway) given(ctx context.Context, t goclaw.Run) ([]string, error) {
	events, err := g.o.Record.Events(ctx, t.ID)
	if err != nil || len(events) == 0 || events[0].Prompt == nil {
		return nil, err
	}
	if end := events[len(events)-1].End; end != nil && end.Returned {
		return nil, nil
	}
	return events[0].Prompt.Inbox, nil
}

// untold tells which of the ended workers' results are on their way to a turn
// (true), or parked (false).
func (g *Gateway) untold(ctx context.Context, f family) (map[string]bool, error) {
	if len(f.spawned) == 0 {
		return nil, nil
	}
	untold := map[string]bool{}
	parked, err := g.o.Record.Parked(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range parked {
		untold[p.Run] = false
	}
	pending, err := g.o.Record.Pending(ctx, goclaw.SessionKey{})
	if err != nil {
		return nil, err
	}
	for _, item := range pending {
		if item.Kind != goclaw.ItemSteer {
			untold[item.Source] = true
		}
	}
	return untold, nil
}

// reply is what the turn said to its person; "" if it was silent.
func reply(t goclaw.Run) string {
	if !t.State.Ended() || t.State == goclaw.StateCompleted && turn.IsSilent(t.Result) {
		return ""
	}
	return t.Result
}
