package gateway

import (
	"context"
	"time"

	"goclaw"
)

// Follow tells what happens to a run, found by id or prefix: each of its events
// after the one numbered after (-1: all), in order, once, as goclaw.NoticeEvent;
// between them, as they pass, streamed pieces and other notices of the run. A
// piece of what an event has recorded never follows that event. After the end's
// event comes a last NoticeRun with the run as it ended. The channel is closed
// then, when ctx ends, or when the record can't be read: whoever wants more
// calls again with the last number.
//
// A slow reader holds nobody up: what it misses of the events is read from the
// record, and a NoticeLag tells that other notices were lost.
func (g *Gateway) Follow(ctx context.Context, id string, after int) (<-chan goclaw.Notice, error) {
	run, err := g.o.Record.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	f := &follower{g: g, run: run.ID, next: after + 1, out: make(chan goclaw.Notice)}
	sub, stop := context.WithCancel(ctx)
	notices := g.o.Feed.Subscribe(sub, func(n goclaw.Notice) bool { return n.RunID == run.ID })
	go func() {
		defer close(f.out)
		defer func() {
			stop()
			for range notices { //nolint:revive // until the subscription has ended
			}
		}()
		if err := f.follow(ctx, notices); err != nil && ctx.Err() == nil {
			g.o.Log.Warn("a run can't be followed any further", "run", run.ID, "err", err)
		}
	}()
	return f.out, nil
}

// follower hands on one run's record.
type follower struct {
	g    *Gateway
	run  string
	next int // the number of the event that is to be told next
	out  chan goclaw.Notice
}

// follow returns nil once the run has ended and all was told.
func (f *follower) follow(ctx context.Context, notices <-chan goclaw.Notice) error {
	// What is recorded from here on is also in notices.
	if ended, err := f.catchUp(ctx); err != nil || ended {
		return err
	}
	var look <-chan time.Time
	if f.g.o.Elsewhere != nil {
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		look = tick.C
	}
	for {
		var ended bool
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look:
			ended, err = f.lookElsewhere(ctx)
		case n, open := <-notices:
			if !open {
				return ctx.Err()
			}
			ended, err = f.take(ctx, n)
		}
		if err != nil || ended {
			return err
		}
	}
}

// take tells a notice on if it is new.
func (f *follower) take(ctx context.Context, n goclaw.Notice) (ended bool, err error) {
	switch {
	case n.Kind == goclaw.NoticeEvent && n.Event.Seq < f.next:
		return false, nil
	case n.Kind == goclaw.NoticeEvent && n.Event.Seq == f.next && n.Event.End == nil:
		f.next++
		return false, f.tell(ctx, n)
	case n.Kind == goclaw.NoticeEvent, n.Kind == goclaw.NoticeRun && n.Run != nil && n.Run.State.Ended():
		return f.catchUp(ctx) // events are missing, or it has ended
	case n.Kind == goclaw.NoticeLag:
		if err := f.tell(ctx, goclaw.Notice{Kind: n.Kind, Session: n.Session, RunID: f.run}); err != nil {
			return false, err
		}
		return f.catchUp(ctx)
	case n.Kind == goclaw.NoticeToolCall, n.Kind == goclaw.NoticeToolResult: // the events tell that
		return false, nil
	case n.Seq != 0 && n.Seq < f.next: // a piece of what is recorded
		return false, nil
	}
	return false, f.tell(ctx, n)
}

// catchUp tells what is on record, and the end if that has come.
func (f *follower) catchUp(ctx context.Context) (ended bool, err error) {
	run, err := f.g.o.Record.Run(ctx, f.run) // first: the events of a run that has ended are all there
	if err != nil {
		return false, err
	}
	events, err := f.g.o.Record.Events(ctx, f.run)
	if err != nil {
		return false, err
	}
	for _, e := range events {
		if e.Seq < f.next {
			continue
		}
		f.next = e.Seq + 1
		if err := f.tell(ctx, goclaw.Notice{Kind: goclaw.NoticeEvent, Session: run.Session, RunID: f.run, Event: &e}); err != nil {
			return false, err
		}
	}
	if !run.State.Ended() {
		return false, nil
	}
	return true, f.tell(ctx, goclaw.Notice{Kind: goclaw.NoticeRun, Session: run.Session, RunID: f.run, Run: &run})
}

// lookElsewhere catches up with a run that another process may hold: its
// notices don't come here.
func (f *follower) lookElsewhere(ctx context.Context) (ended bool, err error) {
	run, err := f.g.o.Record.Run(ctx, f.run)
	if err != nil || !run.State.Ended() && !f.g.o.Elsewhere(run) {
		return false, err
	}
	return f.catchUp(ctx)
}

func (f *follower) tell(ctx context.Context, n goclaw.Notice) error {
	select {
	case f.out <- n:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
