package engine

import (
	"context"
	"errors"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
)

// wakeRequesters accepts an announcement turn for every session that has ready
// inbox items, and returns when the next item will be ready (0: unknown). What
// fails for one session is put off and holds up no other.
func (e *Engine) wakeRequesters(ctx context.Context) (goclaw.Millis, error) {
	items, err := e.o.Store.Pending(ctx, goclaw.SessionKey{})
	if err != nil {
		return 0, err
	}
	var order []goclaw.SessionKey
	bySession := map[goclaw.SessionKey][]goclaw.InboxItem{}
	for _, it := range items {
		if bySession[it.Session] == nil {
			order = append(order, it.Session)
		}
		bySession[it.Session] = append(bySession[it.Session], it)
	}
	var earliest goclaw.Millis
	for _, key := range order {
		ready, next := announce.Ready(bySession[key], goclaw.At(time.Now()), e.o.Announce)
		if next != 0 && (earliest == 0 || next < earliest) {
			earliest = next
		}
		switch {
		case len(ready) == 0:
			continue
		case key.IsWorker():
			err = e.tellWorker(ctx, key, ready)
		default:
			err = e.tellSession(ctx, key, ready)
		}
		if err != nil {
			return earliest, err
		}
	}
	return earliest, nil
}

// tellSession accepts a turn that will take what is ready.
func (e *Engine) tellSession(ctx context.Context, key goclaw.SessionKey, ready []goclaw.InboxItem) error {
	if _, known := e.o.Rules.Agents[key.Agent]; !known {
		e.o.Log.Warn("the requester's agent is gone; its results go to the main agent", "session", key.String())
		return e.redirect(ctx, ready, goclaw.MainKey(goclaw.DefaultAgent))
	}
	if err := e.nudge(ctx, key, ready); err != nil {
		return err
	}
	err := e.acceptAnnouncement(ctx, key, ready[0])
	switch {
	case err == nil, errors.Is(err, goclaw.ErrConsumed): // a turn took it meanwhile
		return nil
	case ctx.Err() != nil:
		return err
	}
	failed := e.o.Announce.Failed(ready, err.Error(), goclaw.At(time.Now()))
	e.o.Log.Error("results could not be announced", "session", key.String(), "err", err, "parked", failed.Parked)
	return e.o.Store.Postpone(ctx, ids(ready), failed, goclaw.At(time.Now()))
}

// tellWorker leaves the items to the session's run, which takes them between
// its steps. If that has ended, results go up one level; a message that came
// too late is parked, so that whoever sent it can see that.
func (e *Engine) tellWorker(ctx context.Context, key goclaw.SessionKey, ready []goclaw.InboxItem) error {
	runs, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Session: key, Limit: 1})
	if err != nil {
		return err
	}
	if len(runs) > 0 && !runs[0].State.Ended() {
		return e.nudge(ctx, key, ready)
	}
	up := goclaw.MainKey(key.Agent)
	if len(runs) > 0 && !runs[0].Requester.IsZero() {
		up = runs[0].Requester
	}
	var results, late []goclaw.InboxItem
	for _, it := range ready {
		if it.Kind == goclaw.ItemSteer {
			late = append(late, it)
		} else {
			results = append(results, it)
		}
	}
	if len(late) > 0 {
		gone := goclaw.Return{Why: "the run had ended before it could read this", Parked: true}
		if err := e.o.Store.Postpone(ctx, ids(late), gone, goclaw.At(time.Now())); err != nil {
			return err
		}
	}
	return e.redirect(ctx, results, up)
}

// nudge wakes a run of the session that waits for its workers although there
// is something to tell it, once for each item, and again for one that was
// redirected to this session. The end of a worker does so in
// its own transaction; this is for what that could not know.
func (e *Engine) nudge(ctx context.Context, key goclaw.SessionKey, ready []goclaw.InboxItem) error {
	const most = 10_000
	if len(e.nudged) > most {
		clear(e.nudged)
	}
	fresh := false
	for _, it := range ready {
		one := nudge{it.ID, key}
		fresh = fresh || !e.nudged[one]
		e.nudged[one] = true
	}
	if !fresh {
		return nil
	}
	runs, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Session: key, Active: true})
	if err != nil {
		return err
	}
	for _, r := range runs {
		now := goclaw.At(time.Now())
		if r.State != goclaw.StateWaiting || r.WaitsFor != goclaw.WaitWorkers || r.WakeAt != 0 && r.WakeAt <= now {
			continue
		}
		if _, err := e.o.Store.Resume(ctx, r.ID, now); err != nil && !errors.Is(err, goclaw.ErrNotFound) {
			return err
		}
		e.Wake()
	}
	return nil
}

func (e *Engine) redirect(ctx context.Context, items []goclaw.InboxItem, to goclaw.SessionKey) error {
	for _, it := range items {
		if err := e.o.Store.Redirect(ctx, it.ID, to); err != nil {
			return err
		}
		e.ended.Store(true) // look at it again
		e.Wake()
	}
	return nil
}

func (e *Engine) acceptAnnouncement(ctx context.Context, key goclaw.SessionKey, item goclaw.InboxItem) error {
	profile, err := e.sessionProfile(ctx, key, "")
	if err != nil {
		return err
	}
	run := goclaw.Run{Session: key, Trigger: goclaw.TriggerAnnouncement, Profile: profile}
	if source, err := e.o.Store.Run(ctx, item.Source); err == nil {
		run.Root = source.Root // what the turn leads to belongs to the same tree
		run.Profile.Until = source.Profile.Until
	}
	// The turn that spawned may have been asked to use another model: its
	// results are answered by the same.
	if asked, err := e.o.Store.Run(ctx, item.Group); err == nil && asked.Session == key && asked.Profile.Pinned {
		run.Profile.Model, run.Profile.Pinned = asked.Profile.Model, true
	}
	_, _, err = e.Accept(ctx, goclaw.Acceptance{Run: run, Waiting: item.ID, Coalesce: true})
	return err
}

func ids(items []goclaw.InboxItem) []string {
	all := make([]string, len(items))
	for i, it := range items {
		all[i] = it.ID
	}
	return all
}
