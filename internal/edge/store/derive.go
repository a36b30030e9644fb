package store

import (
	"cmp"
	"slices"

	"goclaw"
)

// Admitted returns the run as an acceptance stores it: queued, without
// anything that only its execution sets, and with a place in a tree and a
// lane.
func Admitted(a goclaw.Acceptance) goclaw.Run {
	r := goclaw.Run{
		ID: a.Run.ID, Session: a.Run.Session, Trigger: a.Run.Trigger,
		Requester: a.Run.Requester, Parent: a.Run.Parent, Depth: a.Run.Depth,
		Root: cmp.Or(a.Run.Root, a.Run.ID), Lane: a.Run.Lane,
		Label: a.Run.Label, Task: a.Run.Task, Context: a.Run.Context, Profile: a.Run.Profile,
		Cleanup: a.Run.Cleanup, Announce: a.Run.Announce,
		State: goclaw.StateQueued, CreatedAt: a.Run.CreatedAt, Idempotent: a.Key,
	}
	if r.Lane.IsZero() && r.Trigger == goclaw.TriggerSpawn {
		r.Lane = r.Requester
	}
	if r.Lane.IsZero() {
		r.Lane = r.Session
	}
	return r
}

// Resumes reports whether b tells of a takeover.
func Resumes(b goclaw.Batch) bool {
	return slices.ContainsFunc(b.Events, func(e goclaw.Event) bool { return e.Kind == goclaw.EventResumed && e.Resumed != nil })
}

// Recovered returns what is known of a run's takeovers once b is on its
// record; last is what was known before.
func Recovered(last *goclaw.Recovery, b goclaw.Batch) *goclaw.Recovery {
	for _, e := range b.Events {
		if e.Kind != goclaw.EventResumed || e.Resumed == nil {
			continue
		}
		now := &goclaw.Recovery{Times: 1, At: cmp.Or(e.At, b.Now), Step: e.Resumed.Step, Planned: e.Resumed.Planned}
		if last != nil {
			now.Times += last.Times
		}
		for _, of := range b.Events {
			if of.Kind == goclaw.EventResult && of.Result != nil && slices.Contains(e.Resumed.Uncertain, of.Result.CallID) {
				now.Uncertain = append(now.Uncertain, of.Result.Name)
			}
		}
		last = now
	}
	return last
}

// Sooner returns the earlier of two moments of which 0 is never.
func Sooner(a, b goclaw.Millis) goclaw.Millis {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Deadline is when a run that starts now must have ended; 0: never.
func Deadline(p goclaw.Profile, now goclaw.Millis) goclaw.Millis {
	var timeout goclaw.Millis
	if p.TimeoutMs > 0 {
		timeout = now + goclaw.Millis(p.TimeoutMs)
	}
	return Sooner(timeout, p.Until)
}

// ByParking puts parked deliveries into the order in which they are listed.
func ByParking(a, b goclaw.Parked) int {
	return cmp.Or(cmp.Compare(a.ParkedAt, b.ParkedAt), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// Dismissed is who consumed an item that nobody shall get.
const Dismissed = "dismissed"
