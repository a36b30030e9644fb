package engine

import (
	"context"
	"errors"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
)

// errSuspended ends the job of a run that waits without a slot.
var errSuspended = errors.New("the run waits")

// finish ends the run with what the model said last, if that is what was asked
// for. A worker that has unended workers, or for which something came meanwhile,
// does not end: it takes what came, or gives its slot back and waits for it.
// last are events that are to be recorded in any case.
func (j *job) finish(a turn.Action, last ...goclaw.Event) error {
	if a.State != goclaw.StateCompleted {
		return j.end(a, last...)
	}
	if back, err := j.answer(&a, last); err != nil || back {
		return err
	}
	if !j.r.Session.IsWorker() {
		return j.end(a, last...)
	}
	err := j.endIfQuiet(a, last...)
	if !errors.Is(err, goclaw.ErrWoken) {
		return err
	}
	if len(last) > 0 {
		if err := j.append(last, goclaw.Batch{}); err != nil {
			return err
		}
	}
	if took, err := j.takeInputs(); err != nil || took {
		return err
	}
	items, err := j.pending()
	if err != nil {
		return err
	}
	ready, next := announce.Ready(items, goclaw.At(time.Now()), j.e.o.Announce)
	if len(ready) > 0 {
		return nil // it came between the two looks
	}
	err = j.suspend(goclaw.WaitingEvent{For: goclaw.WaitWorkers, Until: next}, len(items))
	if errors.Is(err, goclaw.ErrWoken) {
		return nil // look again
	}
	return err
}

// waitForPerson gives the slot back until someone decides about the run.
func (j *job) waitForPerson() error {
	for {
		items, err := j.pending()
		if err != nil {
			return err
		}
		err = j.suspend(goclaw.WaitingEvent{For: goclaw.WaitPerson}, len(items))
		if !errors.Is(err, goclaw.ErrWoken) {
			return err
		}
	}
}

// suspend records that the run waits, and gives its slot back: its error is
// errSuspended then, which ends the job, or goclaw.ErrWoken if more than seen
// items are pending for it by now.
func (j *job) suspend(w goclaw.WaitingEvent, seen int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := goclaw.Suspension{For: w.For, Until: w.Until, Seen: seen}
	s.Events, s.Now = j.number([]goclaw.Event{{Kind: goclaw.EventWaiting, Waiting: &w}}), goclaw.At(time.Now())
	if err := j.persist(func(ctx context.Context) error { return j.e.o.Store.Suspend(ctx, j.fence, s) }); err != nil {
		return err
	}
	j.recorded(s.Events)
	r := j.r
	r.State, r.WaitsFor, r.WakeAt, r.Usage = goclaw.StateWaiting, w.For, w.Until, j.state.Usage
	j.e.publishRun(r)
	return errSuspended
}

func (j *job) pending() ([]goclaw.InboxItem, error) {
	return ask(j, "inbox", func(ctx context.Context) ([]goclaw.InboxItem, error) {
		return j.e.o.Store.Pending(ctx, j.r.Session)
	})
}

// ready returns what the run's session can be told now. A turn that was accepted
// for what is ready finds it so, also if the clock here is behind that of the
// process which accepted it.
func (j *job) ready() ([]goclaw.InboxItem, error) {
	items, err := j.pending()
	if err != nil {
		return nil, err
	}
	now := goclaw.At(time.Now())
	if j.r.Trigger == goclaw.TriggerAnnouncement {
		now = max(now, j.r.CreatedAt)
	}
	ready, _ := announce.Ready(items, now, j.e.o.Announce)
	return ready, nil
}

// takeInputs puts what is ready for a worker into its transcript, between its
// steps, and reports whether there was anything.
func (j *job) takeInputs() (bool, error) {
	for {
		ready, err := j.ready()
		if err != nil || len(ready) == 0 {
			return false, err
		}
		input := &goclaw.InputEvent{Message: goclaw.Text(goclaw.RoleUser, announce.Between(ready)), Inbox: ids(ready)}
		err = j.append([]goclaw.Event{{Kind: goclaw.EventInput, Input: input}}, goclaw.Batch{Consume: input.Inbox})
		if !errors.Is(err, goclaw.ErrConsumed) {
			return err == nil, err
		}
	}
}

// day is the person's date.
func (e *Engine) day() string { return time.Now().In(e.o.Zone).Format(time.DateOnly) }
