package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
)

// end closes the run: last events, state, result, announcement and outbound
// reply in one fenced transaction.
func (j *job) end(a turn.Action, last ...goclaw.Event) error {
	return j.close(a, goclaw.Ending{}, last)
}

// endIfQuiet is end, unless something came for the run: goclaw.ErrWoken.
func (j *job) endIfQuiet(a turn.Action, last ...goclaw.Event) error {
	return j.close(a, goclaw.Ending{IfQuiet: true}, last)
}

func (j *job) close(a turn.Action, ending goclaw.Ending, last []goclaw.Event) error {
	now := goclaw.At(time.Now())
	r := j.r
	answer := untag(r, &a)
	r.State, r.Result, r.Error, r.FinishedAt = a.State, a.Result, a.Error, now
	if r.StartedAt == 0 {
		r.StartedAt = now
	}
	said := &goclaw.EndEvent{State: r.State, Result: r.Result, Error: r.Error, Silent: a.Silent, Dropped: a.Dropped}
	if err := j.lastWords(&ending, said); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Usage, r.Attempts = j.usageWith(last), j.state.Attempt()
	ending.State, ending.Result, ending.Error = r.State, r.Result, r.Error
	ending.Now, ending.Usage, ending.Day = now, &r.Usage, j.e.day()
	if ending.Return = j.returned(r, last); ending.Return != nil {
		said.Returned = true
	}
	stopped := r.Session.IsWorker() && (r.State == goclaw.StateCancelled || r.State == goclaw.StateTimeout)
	if stopped {
		ending.Cascade = "its requester was stopped"
	}
	ending.Events = j.number(append(slices.Clone(last), goclaw.Event{Kind: goclaw.EventEnd, End: said}))
	ending.Artifacts = a.Artifacts
	j.announce(r, &ending)
	if ending.Announce != nil && a.Findings > 0 {
		ending.Announce.Text += fmt.Sprintf("\n[%d findings, with evidence: artifact_read %s]", a.Findings, goclaw.ArtifactHandle(r.ID, findingsName))
	}
	if text := reply(r, a.Silent); text != "" && r.Session.Kind == goclaw.KindChannel {
		ending.Outbox = &goclaw.Outbound{ID: r.ID, Session: r.Session, Run: r.ID, Text: answer.Tag(r.Profile.Message) + text, State: "pending", CreatedAt: now}
	}
	if err := j.persist(func(ctx context.Context) error { return j.e.o.Store.End(ctx, j.fence, ending) }); err != nil {
		return fmt.Errorf("end run: %w", err)
	}
	j.recorded(ending.Events)
	j.e.publishRun(r)
	j.after(stopped)
	return nil
}

// announce adds the worker's result, for its requester, and says when that
// goes on if it waits for it.
func (j *job) announce(r goclaw.Run, ending *goclaw.Ending) {
	if !r.Session.IsWorker() || r.Requester.IsZero() {
		return
	}
	spawned := r.Trigger == goclaw.TriggerSpawn
	if spawned {
		ending.Wake = &goclaw.Wake{Last: ending.Now}
	}
	// A job that finds nothing to say is silent; a worker's requester waits.
	if r.Announce == goclaw.AnnounceNone || !spawned && turn.IsSilent(r.Result) && r.State == goclaw.StateCompleted {
		return
	}
	text, cut := announce.Text(r)
	if cut {
		ending.Artifacts = append(ending.Artifacts, goclaw.ArtifactData{Name: announce.ResultArtifact, MediaType: "text/markdown", Data: []byte(r.Result)})
	}
	ending.Announce = &goclaw.InboxItem{
		ID: r.ID, Kind: goclaw.ItemAnnouncement, Session: r.Requester, Source: r.ID, Group: r.Parent, Mode: r.Announce,
		Text: text, CreatedAt: ending.Now,
	}
	due := ending.Now.Add(j.e.o.Announce.Window)
	switch {
	case !spawned:
	case r.Announce == goclaw.AnnounceEach:
		ending.Wake = &goclaw.Wake{Last: due, Next: due}
	default:
		ending.Wake.Next, ending.Wake.Together = ending.Now.Add(j.e.o.Announce.MaxWait), true
	}
}

// returned gives announcements back that no model could be asked about: they
// are tried again later, and parked in the end.
func (j *job) returned(r goclaw.Run, last []goclaw.Event) *goclaw.Return {
	undelivered := r.Trigger == goclaw.TriggerAnnouncement && r.Result == "" && (r.State == goclaw.StateFailed || r.State == goclaw.StateTimeout) &&
		j.state.Prompt != nil && len(j.state.Prompt.Inbox) > 0 && len(j.state.Steps) == 0 && len(last) == 0
	if !undelivered {
		return nil
	}
	back := j.e.o.Announce.Failed([]goclaw.InboxItem{{Attempts: j.state.Prompt.Tried}}, r.Error, goclaw.At(time.Now()))
	j.e.o.Log.Error("a turn could not answer announcements; they are kept", "run", r.ID, "session", r.Session.String(), "err", r.Error, "parked", back.Parked)
	return &back
}

// lastWords takes what came too late for the run: messages to a worker that is
// being stopped, and results of its caller's tools. Nobody else would.
func (j *job) lastWords(ending *goclaw.Ending, said *goclaw.EndEvent) error {
	stopped := j.r.Session.IsWorker() && !ending.IfQuiet
	if !stopped && len(j.r.Profile.Caller) == 0 {
		return nil
	}
	var items []goclaw.InboxItem
	err := j.persist(func(ctx context.Context) (err error) {
		items, err = j.e.o.Store.Pending(ctx, j.r.Session)
		return err
	})
	if err != nil {
		return fmt.Errorf("load inbox: %w", err)
	}
	for _, it := range items {
		switch {
		case it.Kind == goclaw.ItemResults && it.Group == j.r.ID:
			ending.Consume = append(ending.Consume, it.ID)
		case it.Kind == goclaw.ItemSteer && stopped:
			ending.Consume = append(ending.Consume, it.ID)
			said.Unread = append(said.Unread, it.Text)
		}
	}
	return nil
}

// untag takes the reply tag off what a turn says. A worker's words are its own.
func untag(r goclaw.Run, a *turn.Action) turn.Reply {
	if r.Session.IsWorker() {
		return turn.Reply{Text: a.Result}
	}
	if r.Trigger == goclaw.TriggerHeartbeat && a.State == goclaw.StateCompleted {
		a.Result = turn.Heartbeat(a.Result)
	}
	answer := turn.ParseReply(a.Result)
	a.Result = answer.Text
	a.Silent = a.Silent || a.State == goclaw.StateCompleted && turn.IsSilent(answer.Text)
	return answer
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

// after does at once what a sweep would find later: workers that were cancelled
// with the run stop, and transcripts that are to go are removed.
func (j *job) after(cascaded bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.ctx), 10*time.Second)
	defer cancel()
	if cascaded {
		j.e.lookForCancels(ctx)
		j.e.Wake()
	}
	if j.state.Prompt != nil && len(j.state.Prompt.Inbox) > 0 {
		j.e.tidy(ctx)
	}
}
