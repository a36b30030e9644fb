package terminal

import (
	"slices"
	"strings"

	"goclaw"
)

// turn is a run of this session that is under way.
type turn struct {
	run      goclaw.RunInfo
	opening  *block            // what started it; nil for none
	live     []*block          // text and thinking of the current model call
	retry    *block            // tells what is being waited for
	tools    map[string]*block // tool calls by id
	activity string
}

func (s *state) turn(run string) *turn {
	for _, t := range s.turns {
		if t.run.RunID == run {
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
		s.applyRun(n.Run.Info())
		s.tellTakeovers(n.Run.Info())
		return
	case n.Kind == goclaw.NoticeUsage && n.Run != nil:
		s.applyUsage(n.Run.Info())
		s.tellTakeovers(n.Run.Info())
		return
	case n.Kind == goclaw.NoticeWarning, n.Kind == goclaw.NoticeCompact:
		s.remark(n)
		return
	case n.Kind == goclaw.NoticeRetry:
		s.stale = true // perhaps nobody may call a model
	}
	switch {
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
		t = s.begin(goclaw.RunInfo{RunID: n.RunID, SessionKey: n.Session, StartedAt: goclaw.At(s.now)})
	}
	s.applyTurn(t, n)
}

// remark shows what was said about this session's context or a worker's.
func (s *state) remark(n goclaw.Notice) {
	whose := ""
	if w := s.worker(n.RunID); w != nil {
		whose = oneLine(w.run.Label) + ": "
	} else if n.Session != s.session {
		return
	}
	if n.Kind == goclaw.NoticeWarning {
		s.warn(whose + n.Text)
		return
	}
	s.note(whose + "compacted: " + n.Text)
}

func (s *state) applyRun(r goclaw.RunInfo) {
	switch {
	case r.SessionKey == s.session:
		s.applyOwn(r)
	case r.Trigger == goclaw.TriggerSpawn:
		s.applyWorker(r)
	}
}

func (s *state) applyUsage(r goclaw.RunInfo) {
	if t := s.turn(r.RunID); t != nil {
		t.run.Usage = r.Usage
	} else if w := s.worker(r.RunID); w != nil {
		w.run.Usage = r.Usage
	} else if r.Status != "" {
		s.applyRun(r)
	}
}

// applyOwn follows a run of this session.
func (s *state) applyOwn(r goclaw.RunInfo) {
	if s.ended[r.RunID] {
		return
	}
	if r.Model != "" {
		s.model = r.Model
	}
	t := s.turn(r.RunID)
	switch {
	case r.Status.Ended():
		if t == nil {
			t = s.begin(r)
		}
		s.finish(t, r)
	case t != nil:
		if r.Status == goclaw.StateQueued { // a receipt that arrived late
			return
		}
		t.run = r
		if r.Trigger == goclaw.TriggerAnnouncement && r.Task != "" && t.opening != nil {
			t.opening.set(announced(r.Task)) // told once the turn has taken its results
		}
	case r.Status == goclaw.StateQueued:
		s.enqueue(r)
	default:
		s.begin(r)
	}
}

// enqueue shows a waiting run that was not sent from here.
func (s *state) enqueue(r goclaw.RunInfo) {
	text := written(r)
	if text == "" || s.waiting(r) != nil {
		return
	}
	s.pending = append(s.pending, &pending{text: text, run: r.RunID, foreign: true})
}

// waiting finds the message that became r. A notice may be faster than the
// receipt; then the text tells.
func (s *state) waiting(r goclaw.RunInfo) *pending {
	for _, p := range s.pending {
		if p.run == r.RunID {
			return p
		}
	}
	for _, p := range s.pending {
		if p.run == "" && p.handed && p.text == written(r) {
			p.run = r.RunID
			return p
		}
	}
	return nil
}

// written is what a person wrote to start r; "" for what nobody did.
func written(r goclaw.RunInfo) string {
	switch r.Trigger {
	case goclaw.TriggerUser:
		return strings.TrimSpace(r.Task)
	case goclaw.TriggerCompact:
		return strings.TrimSpace("/compact " + r.Task)
	}
	return ""
}

// begin opens a turn: what started it moves into the conversation.
func (s *state) begin(r goclaw.RunInfo) *turn {
	t := &turn{run: r, tools: map[string]*block{}, opening: s.open(r, r.Task)}
	s.turns = append(s.turns, t)
	return t
}

// open shows what started a run, in the block that it returns (nil for none);
// the message that did no longer waits.
func (s *state) open(r goclaw.RunInfo, input string) *block {
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
func opening(r goclaw.RunInfo, input string) *block {
	switch r.Trigger {
	case goclaw.TriggerAnnouncement:
		return &block{kind: blockAnnounce, text: announced(input)}
	case goclaw.TriggerCron:
		return &block{kind: blockAnnounce, text: "scheduled: " + r.Label}
	case goclaw.TriggerHeartbeat:
		return &block{kind: blockAnnounce, text: "heartbeat"}
	}
	text := r.Task
	if r.Trigger == goclaw.TriggerCompact {
		text = written(r)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return &block{kind: blockUser, text: text}
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
func (s *state) finish(t *turn, r goclaw.RunInfo) {
	answered := r.Status == goclaw.StateCompleted && strings.TrimSpace(r.Result) != ""
	for _, b := range t.live {
		if answered && b.kind == blockStream {
			s.remove(b) // the result is the record; what was streamed is not
		}
	}
	s.settle(t)
	if answered && !silent(r.Result) {
		s.add(&block{kind: blockReply, text: r.Result})
	}
	if r.Status != goclaw.StateCompleted {
		s.fail(ending(r))
	}
	s.remove(t.retry)
	for _, b := range t.tools {
		if b.live {
			b.live = false
			b.touch()
		}
	}
	s.turns = slices.DeleteFunc(s.turns, func(o *turn) bool { return o == t })
	s.ended[r.RunID] = true
}

// ending says why a run did not complete.
func ending(r goclaw.RunInfo) string {
	what := string(r.Status)
	if r.Status == goclaw.StateTimeout {
		what = "timed out"
	}
	if r.Error == "" {
		return what
	}
	return what + ": " + r.Error
}

// silent reports whether a reply is the agent's way to say nothing.
func silent(text string) bool { return strings.TrimSpace(text) == goclaw.NoReply }
