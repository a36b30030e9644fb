package terminal

import (
	"slices"
	"strings"

	"goclaw"
)

// maxReplayed bounds the messages of the record that are shown at the start.
const maxReplayed = 30

// load takes what the record says: at the start the conversation so far, later
// what the notices missed.
func (s *state) load(m loadedMsg) {
	if m.err != nil {
		s.fail("the history could not be read: " + m.err.Error())
	}
	head := s.blocks
	if !s.loaded {
		s.blocks = nil
	}
	for _, log := range m.logs {
		switch {
		case s.ended[log.Run.ID]:
		case s.turn(log.Run.ID) != nil:
			s.applyOwn(log.Run)
		default:
			s.replay(log)
		}
	}
	if !s.loaded {
		s.loaded = true
		s.trim()
		s.blocks = append(s.blocks, head...)
	}
	if m.err == nil {
		s.reconcile(m.workers)
	}
}

// reconcile makes the panel agree with the workers that the record says are
// under way: what is not among them has ended.
func (s *state) reconcile(active []goclaw.Run) {
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool {
		return !w.run.State.Ended() &&
			!slices.ContainsFunc(active, func(r goclaw.Run) bool { return r.ID == w.run.ID })
	})
	for _, r := range active {
		s.applyWorker(r)
	}
}

// trim keeps the newest of the replayed messages.
func (s *state) trim() {
	messages := 0
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if k := s.blocks[i].kind; k != blockUser && k != blockReply {
			continue
		}
		if messages++; messages > maxReplayed {
			note := &block{kind: blockNote, text: "earlier messages are not shown"}
			s.blocks = append([]*block{note}, s.blocks[i+1:]...)
			return
		}
	}
}

// replay shows a run as its events tell it.
func (s *state) replay(log goclaw.RunLog) {
	r := log.Run
	if r.State == goclaw.StateQueued {
		s.enqueue(r)
		return
	}
	input := r.Task
	t := &turn{run: r, tools: map[string]*block{}}
	for _, e := range log.Events {
		if e.Prompt != nil {
			input = e.Prompt.Input.PlainText()
		}
	}
	if r.Trigger == goclaw.TriggerUser && s.waiting(r) == nil {
		s.recall.add(strings.TrimSpace(r.Task))
	}
	s.open(r, input)
	said := false
	for _, e := range log.Events {
		switch {
		case e.Model != nil:
			said = s.replayMessage(t, e.Model.Message) || said
		case e.Result != nil:
			t.result(*e.Result)
		}
	}
	if !r.State.Ended() {
		s.turns = append(s.turns, t)
		return
	}
	if r.State == goclaw.StateCompleted && !said && strings.TrimSpace(r.Result) != "" && !silent(r.Result) {
		s.add(&block{kind: blockReply, text: r.Result})
	}
	for _, b := range t.tools {
		b.live = false
	}
	if r.State != goclaw.StateCompleted {
		s.fail(ending(r))
	}
	s.ended[r.ID] = true
}

// replayMessage shows what a model said and called; it reports whether there
// was text.
func (s *state) replayMessage(t *turn, m goclaw.Message) bool {
	text := m.PlainText()
	said := strings.TrimSpace(text) != "" && !silent(text)
	if said {
		s.add(&block{kind: blockReply, text: text})
	}
	for _, c := range m.Calls() {
		t.tools[c.ID] = s.add(&block{kind: blockTool, call: c, live: true})
	}
	return said
}
