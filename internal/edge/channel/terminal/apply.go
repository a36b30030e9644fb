package terminal

import (
	"slices"
	"strings"

	"goclaw"
)

// turn is a run of this session that is under way.
type turn struct {
	run      goclaw.Run
	opening  *block            // what started it; nil for none
	live     []*block          // text and thinking of the current model call
	retry    *block            // tells what is being waited for
	tools    map[string]*block // tool calls by id
	activity string
}

func (s *state) turn(run string) *turn {
	for _, t := range s.turns {
		if t.run.ID == run {
			return t
		}
	}
	return nil
}

// apply folds one notice into the state.
func (s *state) apply(n goclaw.Notice) {
	switch {
	case n.Kind == goclaw.NoticeLag: // the pump reads the record again
		s.note("some live updates were missed; reading the record again")
		return
	case n.Kind == goclaw.NoticeRun && n.Run != nil:
		s.applyRun(*n.Run)
		return
	case n.Kind == goclaw.NoticeUsage && n.Run != nil:
		s.applyUsage(*n.Run)
		return
	case n.Session != s.session:
		if w := s.worker(n.RunID); w != nil {
			w.apply(n)
		}
		return
	case n.RunID == "" || s.ended[n.RunID]:
		return
	}
	t := s.turn(n.RunID)
	if t == nil { // it began before this screen was there
		t = s.begin(goclaw.Run{ID: n.RunID, Session: n.Session, StartedAt: goclaw.At(s.now)})
	}
	s.applyTurn(t, n)
}

func (s *state) applyRun(r goclaw.Run) {
	switch {
	case r.Session == s.session:
		s.applyOwn(r)
	case r.Trigger == goclaw.TriggerSpawn:
		s.applyWorker(r)
	}
}

func (s *state) applyUsage(r goclaw.Run) {
	if t := s.turn(r.ID); t != nil {
		t.run.Usage = r.Usage
	} else if w := s.worker(r.ID); w != nil {
		w.run.Usage = r.Usage
	} else if r.State != "" {
		s.applyRun(r)
	}
}

// applyOwn follows a run of this session.
func (s *state) applyOwn(r goclaw.Run) {
	if s.ended[r.ID] {
		return
	}
	if r.Profile.Model != "" {
		s.model = r.Profile.Model
	}
	t := s.turn(r.ID)
	switch {
	case r.State.Ended():
		if t == nil {
			t = s.begin(r)
		}
		s.finish(t, r)
	case t != nil:
		if r.State == goclaw.StateQueued { // a receipt that arrived late
			return
		}
		t.run = r
		if r.Trigger == goclaw.TriggerAnnouncement && r.Task != "" && t.opening != nil {
			t.opening.set(announced(r.Task)) // told once the turn has taken its results
		}
		if r.State == goclaw.StateInterrupted {
			t.activity = "interrupted, will resume"
		}
	case r.State == goclaw.StateQueued:
		s.enqueue(r)
	default:
		s.begin(r)
	}
}

// enqueue shows a waiting run that was not sent from here.
func (s *state) enqueue(r goclaw.Run) {
	if r.Trigger != goclaw.TriggerUser || s.waiting(r) != nil {
		return
	}
	s.pending = append(s.pending, &pending{text: r.Task, run: r.ID, foreign: true})
}

// waiting finds the message that became r. A notice may be faster than the
// receipt; then the text tells.
func (s *state) waiting(r goclaw.Run) *pending {
	for _, p := range s.pending {
		if p.run == r.ID {
			return p
		}
	}
	for _, p := range s.pending {
		if p.run == "" && p.handed && p.text == strings.TrimSpace(r.Task) {
			p.run = r.ID
			return p
		}
	}
	return nil
}

// begin opens a turn: what started it moves into the conversation.
func (s *state) begin(r goclaw.Run) *turn {
	t := &turn{run: r, tools: map[string]*block{}, opening: s.open(r, r.Task)}
	s.turns = append(s.turns, t)
	return t
}

// open shows what started a run, in the block that it returns (nil for none);
// the message that did no longer waits.
func (s *state) open(r goclaw.Run, input string) *block {
	b := opening(r, input)
	if p := s.waiting(r); p != nil {
		s.pending = slices.DeleteFunc(s.pending, func(q *pending) bool { return q == p })
		b = &block{kind: blockUser, text: p.text}
	}
	if b != nil {
		s.add(b)
	}
	return b
}

// opening is the block that tells what started a run; nil for none.
func opening(r goclaw.Run, input string) *block {
	switch r.Trigger {
	case goclaw.TriggerAnnouncement:
		return &block{kind: blockAnnounce, text: announced(input)}
	case goclaw.TriggerCron:
		return &block{kind: blockAnnounce, text: "scheduled: " + r.Name()}
	case goclaw.TriggerHeartbeat:
		return &block{kind: blockAnnounce, text: "heartbeat"}
	}
	if strings.TrimSpace(r.Task) == "" {
		return nil
	}
	return &block{kind: blockUser, text: r.Task}
}

// announced names the workers that an announcement turn was started by.
func announced(input string) string {
	var names []string
	for l := range strings.Lines(input) {
		rest, ok := strings.CutPrefix(l, "[Subagent: ")
		if !ok {
			continue
		}
		for _, outcome := range []string{"] Complete", "] Failed", "] Timed out", "] Cancelled"} {
			if name, _, ok := strings.Cut(rest, outcome); ok {
				names = append(names, oneLine(name))
				break
			}
		}
	}
	switch len(names) {
	case 0:
		return "workers reported"
	case 1:
		return "1 worker reported: " + names[0]
	}
	return count(len(names), "worker") + " reported: " + strings.Join(names, ", ")
}

// applyTurn folds what happens inside a turn of this session.
func (s *state) applyTurn(t *turn, n goclaw.Notice) {
	if t.retry != nil && n.Kind != goclaw.NoticeRetry {
		s.remove(t.retry)
		t.retry = nil
	}
	switch n.Kind {
	case goclaw.NoticeText:
		t.activity = "writing"
		s.stream(t, blockStream, n.Text)
	case goclaw.NoticeThinking:
		t.activity = "thinking"
		s.stream(t, blockThinking, n.Text)
	case goclaw.NoticeReset:
		t.activity = ""
		s.remove(t.live...)
		t.live = nil
	case goclaw.NoticeRetry:
		t.activity = "waiting"
		if t.retry == nil {
			t.retry = s.note("")
		}
		t.retry.set(n.Text)
	case goclaw.NoticeToolCall:
		if n.Call != nil {
			s.callTool(t, *n.Call)
		}
	case goclaw.NoticeToolResult:
		if n.Result != nil {
			t.activity = ""
			t.result(*n.Result)
		}
	}
}

// stream appends text to the block of kind that is being written.
func (s *state) stream(t *turn, kind blockKind, text string) {
	var b *block
	if n := len(t.live); n > 0 && t.live[n-1].kind == kind {
		b = t.live[n-1]
	} else {
		b = s.add(&block{kind: kind, live: true})
		t.live = append(t.live, b)
	}
	b.set(b.text + text)
}

// settle ends the current model call: its text is final.
func (s *state) settle(t *turn) {
	for _, b := range t.live {
		b.live = false
		if b.kind == blockStream {
			b.kind = blockReply
		}
		b.touch()
		if b.kind == blockReply && silent(b.text) {
			s.remove(b)
		}
	}
	t.live = nil
}

func (s *state) callTool(t *turn, c goclaw.ToolCall) {
	s.settle(t)
	t.activity = oneLine(c.Name)
	if t.tools[c.ID] == nil {
		t.tools[c.ID] = s.add(&block{kind: blockTool, call: c, live: true})
	}
}

func (t *turn) result(r goclaw.ToolResult) {
	if b := t.tools[r.CallID]; b != nil {
		b.result, b.live = &r, false
		b.touch()
	}
}

// finish closes a turn with the run's result.
func (s *state) finish(t *turn, r goclaw.Run) {
	if r.State == goclaw.StateCompleted && strings.TrimSpace(r.Result) != "" {
		// The result is the record; what was streamed is not.
		var streamed []*block
		for _, b := range t.live {
			if b.kind == blockStream {
				streamed = append(streamed, b)
			}
		}
		s.remove(streamed...)
		t.live = slices.DeleteFunc(t.live, func(b *block) bool { return b.kind == blockStream })
		s.settle(t)
		if !silent(r.Result) {
			s.add(&block{kind: blockReply, text: r.Result})
		}
	} else {
		s.settle(t)
	}
	if r.State != goclaw.StateCompleted {
		s.fail(ending(r))
	}
	if t.retry != nil {
		s.remove(t.retry)
	}
	for _, b := range t.tools {
		if b.live {
			b.live = false
			b.touch()
		}
	}
	s.turns = slices.DeleteFunc(s.turns, func(o *turn) bool { return o == t })
	s.ended[r.ID] = true
}

// ending says why a run did not complete.
func ending(r goclaw.Run) string {
	what := map[goclaw.RunState]string{
		goclaw.StateFailed: "failed", goclaw.StateTimeout: "timed out", goclaw.StateCancelled: "cancelled",
	}[r.State]
	why := r.Error
	if why == "" {
		why = r.CancelWhy
	}
	if why == "" {
		return what
	}
	return what + ": " + why
}

// silent reports whether a reply is the agent's way to say nothing.
func silent(text string) bool { return strings.TrimSpace(text) == goclaw.NoReply }
