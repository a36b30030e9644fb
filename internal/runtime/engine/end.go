package engine

import (
	"context"
	"fmt"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
)

// end closes the run: last events, state, result, announcement and outbound
// reply in one fenced transaction.
func (j *job) end(a turn.Action, last ...goclaw.Event) error {
	now := goclaw.At(time.Now())
	r := j.r
	r.State, r.Result, r.Error, r.FinishedAt = a.State, a.Result, a.Error, now
	if r.StartedAt == 0 {
		r.StartedAt = now
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Usage = j.usageWith(last)
	ending := goclaw.Ending{State: r.State, Result: r.Result, Error: r.Error}
	ending.Now, ending.Usage = now, &r.Usage
	ending.Events = j.number(append(last, goclaw.Event{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{
		State: r.State, Result: r.Result, Error: r.Error, Silent: a.Silent,
	}}))
	if r.Trigger == goclaw.TriggerSpawn && r.Announce != goclaw.AnnounceNone && !r.Requester.IsZero() {
		ending.Announce = &goclaw.InboxItem{
			ID: r.ID, Session: r.Requester, Source: r.ID, Group: r.Parent, Mode: r.Announce,
			Text: announce.Text(r), CreatedAt: now,
		}
	}
	if text := reply(r, a.Silent); text != "" && r.Session.Kind == goclaw.KindChannel {
		ending.Outbox = &goclaw.Outbound{ID: r.ID, Session: r.Session, Run: r.ID, Text: text, State: "pending", CreatedAt: now}
	}
	if err := j.persist(func(ctx context.Context) error { return j.e.o.Store.End(ctx, j.fence, ending) }); err != nil {
		return fmt.Errorf("end run: %w", err)
	}
	for _, ev := range ending.Events {
		j.state = turn.Apply(j.state, ev)
	}
	j.e.publishRun(r)
	j.after(r)
	return nil
}

// reply is what a person is told when a turn of their session ends.
func reply(r goclaw.Run, silent bool) string {
	switch {
	case silent:
		return ""
	case r.State == goclaw.StateCompleted:
		return r.Result
	}
	return fmt.Sprintf("%s\n\n[This turn ended: %s. %s]", r.Result, r.State, r.Error)
}

// after does what may be done again after a crash: a worker that was stopped
// takes its own workers with it, and transcripts that are to go are removed.
func (j *job) after(r goclaw.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.ctx), 10*time.Second)
	defer cancel()
	if r.Trigger == goclaw.TriggerSpawn && (r.State == goclaw.StateCancelled || r.State == goclaw.StateTimeout) {
		if err := j.e.cancelChildren(ctx, r); err != nil {
			j.e.o.Log.Error("workers of a stopped worker could not be cancelled", "run", r.ID, "err", err)
		}
	}
	if j.state.Prompt != nil && len(j.state.Prompt.Inbox) > 0 {
		j.e.tidy(ctx)
	}
}
