package protocol

import (
	"errors"
	"strings"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
	"goclaw/internal/runtime/engine"
)

// finish ends the run with what the model said last, unless it is a worker for
// which something came. unrecorded: the last reply is not on record yet.
func (s *step) finish(unrecorded bool) []outcome {
	var last []goclaw.Event
	if unrecorded {
		last = append(last, s.said().event())
	}
	st := turn.Fold(append(s.snap.events[s.j.run][:s.j.known:s.j.known], last...))
	a := turn.Next(st, 0)
	e := ending{state: a.State, result: a.Result, err: a.Error, silent: a.Silent}
	quiet := s.run.Trigger == goclaw.TriggerSpawn && e.state == goclaw.StateCompleted
	next := s.bare()
	outs, err := s.ended(e, quiet, last)
	switch {
	case !errors.Is(err, goclaw.ErrWoken):
		return outs
	case unrecorded:
		next.at = atLast
	default:
		next.at, next.finishing = atInputs, true
	}
	return []outcome{s.take(s.snap, next, "wants to end: something has come, or workers are under way")}
}

// recordLast records the last reply of a worker that does not end yet.
func (s *step) recordLast() []outcome {
	snap, bad, err := s.append(s.said().event())
	if err != nil {
		return s.failed(err, "records its reply")
	}
	next := s.bare()
	next.known++
	next.at, next.finishing = atInputs, true
	o := s.take(snap, next, "records its reply")
	o.broken = bad
	return []outcome{o}
}

// wait reads what the worker waits for.
func (s *step) wait() []outcome {
	if s.j.stop != goOn {
		return s.stopped("can't read its inbox and")
	}
	ready, until := s.ready()
	if s.x.sc.looksTwice && len(ready) > 0 {
		return []outcome{s.take(s.snap, s.loop(s.snap, s.j.known), "sees that something has come meanwhile")}
	}
	next := s.bare()
	next.at, next.seen, next.until = atSuspend, len(s.snap.of(s.run.Session)), until
	return []outcome{s.take(s.snap, next, "reads that %d items are pending, the next from %d on", next.seen, until)}
}

// lastWords reads the messages that came too late for a worker.
func (s *step) lastWords() []outcome {
	next := s.j
	next.at = atEnd
	var late []goclaw.InboxItem
	for _, it := range s.snap.of(s.run.Session) {
		if it.Kind == goclaw.ItemSteer {
			late = append(late, it)
		}
	}
	next.consume = ids(late)
	return []outcome{s.take(s.snap, next, "reads what came too late: %q", next.consume)}
}

// close ends the run as j.end says.
func (s *step) close() []outcome {
	outs, err := s.ended(s.j.end, false, nil)
	if errors.Is(err, goclaw.ErrWoken) {
		return s.failed(err, "ends")
	}
	return outs
}

// ended is the transaction that ends a run. With goclaw.ErrWoken there is no
// outcome.
func (s *step) ended(e ending, quiet bool, last []goclaw.Event) ([]outcome, error) {
	r := *s.run
	r.State, r.Result, r.Error = e.state, e.result, e.err
	said := &goclaw.EndEvent{State: e.state, Result: e.result, Error: e.err, Silent: e.silent}
	st := s.state()
	for _, id := range strings.Split(s.j.consume, ",") {
		if id != "" {
			said.Unread = append(said.Unread, s.x.sc.item(s.snap, id).Text)
		}
	}
	fin := goclaw.Ending{State: e.state, Result: e.result, Error: e.err, IfQuiet: quiet}
	if fin.Return = s.returned(r, st, len(last)); fin.Return != nil {
		said.Returned = true
	}
	fin.Batch = s.number(append(last, goclaw.Event{Kind: goclaw.EventEnd, End: said})...)
	fin.Now = s.now
	s.announce(r, &fin)
	stopped := r.Trigger == goclaw.TriggerSpawn && (r.State == goclaw.StateCancelled || r.State == goclaw.StateTimeout)
	if stopped && s.x.sc.cascades {
		fin.Cascade = "its requester was stopped"
	}
	snap, bad, err := s.write(func(store engine.Store) error { return store.End(background, s.fence(), fin) })
	if errors.Is(err, goclaw.ErrWoken) {
		return nil, err
	}
	if err != nil {
		return s.failed(err, "ends"), nil
	}
	var next job
	if stopped && !s.x.sc.cascades {
		next = s.bare()
		next.at = atChildren
	}
	o := s.take(snap, next, "ends as %s", e.state)
	o.broken = bad
	return []outcome{o}, nil
}

// announce adds the worker's result, and when a waiting requester goes on.
func (s *step) announce(r goclaw.Run, fin *goclaw.Ending) {
	if r.Trigger != goclaw.TriggerSpawn || r.Requester.IsZero() {
		return
	}
	fin.Wake = &goclaw.Wake{Last: fin.Now}
	if r.Announce == goclaw.AnnounceNone {
		return
	}
	text, _ := announce.Text(r)
	fin.Announce = &goclaw.InboxItem{
		ID: r.ID, Kind: goclaw.ItemAnnouncement, Session: r.Requester, Source: r.ID, Group: r.Parent, Mode: r.Announce,
		Text: text, CreatedAt: fin.Now,
	}
	fin.Wake.Next, fin.Wake.Together = fin.Now.Add(s.x.sc.policy.MaxWait), s.x.sc.wakesByGroup
	if r.Announce == goclaw.AnnounceEach {
		due := fin.Now.Add(s.x.sc.policy.Window)
		fin.Wake = &goclaw.Wake{Last: due, Next: due}
	}
}

// returned gives back what a turn took that no model was asked about.
func (s *step) returned(r goclaw.Run, st turn.State, last int) *goclaw.Return {
	undelivered := r.Trigger == goclaw.TriggerAnnouncement && r.Result == "" && (r.State == goclaw.StateFailed || r.State == goclaw.StateTimeout) &&
		st.Prompt != nil && len(st.Prompt.Inbox) > 0 && len(st.Steps) == 0 && last == 0
	if !undelivered {
		return nil
	}
	back := s.x.sc.policy.Failed([]goclaw.InboxItem{{Attempts: st.Prompt.Tried}}, r.Error, s.now)
	return &back
}

// childrenOf reads the workers of a worker that was stopped.
func (s *step) childrenOf() []outcome {
	var names []string
	for _, r := range s.snap.workers(s.run.Session) {
		names = append(names, r.ID)
	}
	if len(names) == 0 {
		return []outcome{s.take(s.snap, job{}, "has no workers to cancel")}
	}
	next := s.bare()
	next.at, next.children = atCancel, strings.Join(names, ",")
	return []outcome{s.take(s.snap, next, "reads which workers to cancel: %s", next.children)}
}

func (s *step) cancelChild() []outcome {
	id, rest, more := strings.Cut(s.j.children, ",")
	snap, bad, err := s.x.write(s.snap, goclaw.Fence{}, func(st engine.Store) error {
		_, err := st.Cancel(background, goclaw.Cancellation{Run: id, Why: "its requester was stopped", Now: s.now, Cascade: true})
		return err
	})
	if err != nil {
		return s.failed(err, "cancels "+id)
	}
	var next job
	if more {
		next = s.bare()
		next.at, next.children = atCancel, rest
	}
	o := s.take(snap, next, "cancels its worker %s", id)
	o.broken = bad
	return []outcome{o}
}
