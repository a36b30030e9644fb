package protocol

import (
	"errors"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/runtime/engine"
)

// The tools that the model's runs have.
const (
	toolAppend = "append"         // has side effects
	toolRead   = "read"           // has none
	toolSpawn  = "sessions_spawn" // idempotent: the same call spawns once
	toolWait   = "wait"           // idempotent: waits for the caller's workers
)

// reply is what a scenario's model answers.
type reply struct {
	text  string
	calls []goclaw.ToolCall
}

func (r reply) event() goclaw.Event {
	m := goclaw.Message{Role: goclaw.RoleAssistant}
	if r.text != "" {
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartText, Text: r.text})
	}
	for _, c := range r.calls {
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: &c})
	}
	stop := goclaw.StopEnd
	if len(r.calls) > 0 {
		stop = goclaw.StopTools
	}
	return goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: m, Stop: stop, Model: "m"}}
}

func (r reply) intent() goclaw.Event {
	var in goclaw.IntentEvent
	for _, c := range r.calls {
		in.Calls = append(in.Calls, goclaw.Intent{CallID: c.ID, Name: c.Name, Idempotent: c.Name != toolAppend})
	}
	return goclaw.Event{Kind: goclaw.EventIntent, Intent: &in}
}

// said is the reply that the model gives now.
func (s *step) said() reply { return s.x.sc.brain(*s.run, s.state()) }

// reply is callModel once the model has answered, or could not: the reply is
// recorded with the intents of its calls, or, if it is final, with the end.
func (s *step) reply() []outcome {
	if s.j.stop != goOn {
		return s.stopped("cuts the model call and")
	}
	outs := s.recordReply()
	if s.drain && !s.x.sc.fine {
		outs = append(outs, s.take(s.snap, job{}, "has not sent the call yet and begins none: its process stops"))
	}
	if s.run.Trigger == goclaw.TriggerAnnouncement {
		down := s.take(s.snap, s.fail(s.snap, s.j.known, "the model is out of reach"), "gets no reply")
		down.fault = modelDown
		outs = append(outs, down)
	}
	return outs
}

func (s *step) recordReply() []outcome {
	r := s.said()
	if len(r.calls) == 0 {
		return s.finish(true)
	}
	snap, bad, err := s.append(r.event(), r.intent())
	if err != nil {
		return s.failed(err, "records the reply")
	}
	o := s.take(snap, s.loop(snap, s.j.known+2), "records the reply and the intents of %d calls", len(r.calls))
	o.broken = bad
	return []outcome{o}
}

// made is the call that the job makes.
func (s *step) made(id string) goclaw.ToolCall {
	for _, st := range slices.Backward(s.state().Steps) {
		for _, c := range st.Calls {
			if c.ID == id {
				return c
			}
		}
	}
	panic("there is no call " + id)
}

// callTool makes a call.
func (s *step) callTool() []outcome {
	c := s.made(s.j.call)
	next := s.bare()
	next.at, next.call, next.waits, next.again, next.seen = atResult, c.ID, s.j.waits, s.j.again, s.j.seen
	switch c.Name {
	case toolAppend:
		next.result = "appended"
		o := s.take(s.snap, next, "runs %s %s: the side effect happens", c.Name, c.ID)
		o.effect = s.j.run + "/" + c.ID
		return []outcome{o}
	case toolRead:
		next.result = "read"
		return []outcome{s.take(s.snap, next, "runs %s %s", c.Name, c.ID)}
	case toolSpawn:
		return s.spawn(c, next)
	}
	return s.callWait(next)
}

// spawn is engine.Spawn: it accepts a worker behind the caller's fence, once
// for each call. The arguments are the worker's name and its announce mode.
func (s *step) spawn(c goclaw.ToolCall, next job) []outcome {
	label, mode, _ := strings.Cut(c.Arguments, " ")
	if mode == "" {
		mode = string(goclaw.AnnounceTogether)
	}
	fence := s.fence()
	a := goclaw.Acceptance{
		Run: goclaw.Run{
			ID: label, Session: goclaw.SubagentKey("main", label), Trigger: goclaw.TriggerSpawn,
			Requester: s.run.Session, Parent: s.run.ID, Depth: s.run.Depth + 1, Root: s.run.Root, Lane: s.run.Lane,
			Label: label, Task: label, Cleanup: goclaw.CleanupKeep, Announce: goclaw.AnnounceMode(mode),
			State: goclaw.StateQueued, CreatedAt: start, Profile: s.x.sc.profile(label),
		},
		Key: "spawn:" + s.run.ID + ":" + c.ID, ParentFence: &fence, MaxChildren: 5, MaxTreeRuns: 100,
	}
	var run goclaw.Run
	snap, bad, err := s.x.write(s.snap, goclaw.Fence{}, func(st engine.Store) (err error) {
		run, _, err = st.Accept(background, a)
		return err
	})
	if err != nil {
		next.result = "refused"
		return []outcome{s.take(s.snap, next, "wants to spawn %s: %v", label, err)}
	}
	next.result = "accepted " + run.ID
	o := s.take(snap, next, "spawns %s", run.ID)
	o.broken = bad
	return []outcome{o}
}

// callWait is the subagents tool's wait: it answers once no worker is under
// way, and takes the results that it tells of. A message ends it, too.
func (s *step) callWait(next job) []outcome {
	open := len(s.snap.workers(s.run.Session))
	var results []goclaw.InboxItem
	message := false
	for _, it := range s.snap.of(s.run.Session) {
		if it.Kind == goclaw.ItemSteer {
			message = true
		} else {
			results = append(results, it)
		}
	}
	switch {
	case open == 0 || message:
		next.consume = ids(results)
		next.result = "ended"
		for _, it := range results {
			next.result += "\n" + it.Text
		}
		return []outcome{s.take(s.snap, next, "looks for its workers: %d under way, results %q", open, next.consume)}
	case s.j.again:
		next.at, next.finishing = atSuspend, false
		return []outcome{s.take(s.snap, next, "looks for its workers once more: %d under way", open)}
	}
	return []outcome{s.take(s.snap, s.after(s.snap, next.known, s.j.call, s.j.call), "looks for its workers: %d under way", open)}
}

// after is the job once it has made a call of a batch: at the next one, or at
// what follows the batch. waits is a call that has no result yet.
func (s *step) after(snap *snapshot, known int, call, waits string) job {
	next := s.bare()
	next.known = known
	past := false
	for _, st := range slices.Backward(fold(snap, s.j.run, known).Steps) {
		for _, c := range st.Calls {
			if _, done := st.Results[c.ID]; past && !done {
				next.at, next.call, next.waits = atCall, c.ID, waits
				return next
			}
			past = past || c.ID == call
		}
		break
	}
	if waits == "" {
		return s.loop(snap, known)
	}
	next.at, next.waits = atSeen, waits
	return next
}

// recordResult is the second half of callTool.
func (s *step) recordResult() []outcome {
	c := s.made(s.j.call)
	idempotent := c.Name != toolAppend
	if idempotent && s.j.stop != goOn {
		return s.stopped("drops the result of " + c.Name + " and")
	}
	snap, bad, err := s.append(goclaw.Event{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{
		CallID: c.ID, Name: c.Name, Content: s.j.result,
	}})
	if errors.Is(err, goclaw.ErrConsumed) && idempotent {
		next := s.bare()
		next.at, next.call, next.waits, next.again, next.seen = atCall, s.j.call, s.j.waits, s.j.again, s.j.seen
		return []outcome{s.take(s.snap, next, "records the result of %s: what it tells of was taken meanwhile", c.ID)}
	}
	if err != nil {
		return s.failed(err, "records the result of "+c.ID)
	}
	next := s.loop(snap, s.j.known+1)
	if !s.j.again {
		next = s.after(snap, s.j.known+1, c.ID, s.j.waits)
	}
	o := s.take(snap, next, "records the result of %s %s", c.Name, c.ID)
	o.broken = bad
	return []outcome{o}
}

// seen reads what has come, before the waiting call is made once more.
func (s *step) seen() []outcome {
	if s.j.stop != goOn {
		return s.stopped("can't read its inbox and")
	}
	next := s.bare()
	next.at, next.call, next.waits, next.again = atCall, s.j.waits, s.j.waits, true
	next.seen = len(s.snap.of(s.run.Session))
	return []outcome{s.take(s.snap, next, "reads that %d items are pending", next.seen)}
}

// suspend gives the slot back, unless something has come.
func (s *step) suspend() []outcome {
	w := goclaw.WaitingEvent{For: goclaw.WaitWorkers, Until: s.j.until}
	susp := goclaw.Suspension{Batch: s.number(goclaw.Event{Kind: goclaw.EventWaiting, Waiting: &w}), For: w.For, Until: w.Until, Seen: s.j.seen}
	snap, bad, err := s.write(func(st engine.Store) error { return st.Suspend(background, s.fence(), susp) })
	if errors.Is(err, goclaw.ErrWoken) {
		return []outcome{s.take(s.snap, s.loop(s.snap, s.j.known), "wants to wait, having seen %d items: something has come", s.j.seen)}
	}
	if err != nil {
		return s.failed(err, "wants to wait")
	}
	o := s.take(snap, job{}, "waits without a slot, having seen %d items, until %d", s.j.seen, s.j.until)
	o.broken = bad
	return []outcome{o}
}
