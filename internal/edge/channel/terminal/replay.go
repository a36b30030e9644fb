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
	head, opening := s.blocks, !s.loaded
	if opening {
		s.blocks = nil
	}
	runs := m.workers
	for _, log := range m.logs {
		r := log.Run.Info()
		switch {
		case s.ended[r.RunID]:
		case s.turn(r.RunID) != nil:
			s.applyOwn(r)
		default:
			s.replay(r, log.Events)
		}
		runs = append(runs, r)
	}
	if opening {
		s.loaded = true
		s.trim()
		s.blocks = append(s.blocks, head...)
	}
	if m.err != nil {
		return
	}
	s.reconcile(m.workers)
	if opening {
		s.knowTakeovers(runs, m.status.Recovered)
	}
	s.learn(m.status)
	s.tellTakeovers(runs...)
}

// reconcile makes the panel agree with the workers that the record says are
// under way: what is not among them has ended.
func (s *state) reconcile(active []goclaw.RunInfo) {
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool {
		return !w.run.Status.Ended() &&
			!slices.ContainsFunc(active, func(r goclaw.RunInfo) bool { return r.RunID == w.run.RunID })
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
func (s *state) replay(r goclaw.RunInfo, events []goclaw.Event) {
	if r.Status == goclaw.StateQueued {
		s.enqueue(r)
		return
	}
	input := r.Task
	t := &turn{run: r, tools: map[string]*block{}}
	if len(events) > 0 && events[0].Prompt != nil {
		input = events[0].Prompt.Input.PlainText()
	}
	if r.Trigger == goclaw.TriggerUser && s.waiting(r) == nil {
		s.recall.add(strings.TrimSpace(r.Task))
	}
	s.open(r, input)
	said := false
	for _, e := range events {
		switch {
		case e.Model != nil:
			said = s.replayMessage(t, e.Model.Message) || said
		case e.Result != nil:
			t.result(*e.Result)
		}
	}
	if !r.Status.Ended() {
		s.turns = append(s.turns, t)
		return
	}
	if r.Status == goclaw.StateCompleted && !said && strings.TrimSpace(r.Result) != "" && !silent(r.Result) {
		s.add(&block{kind: blockReply, text: r.Result})
	}
	for _, b := range t.tools {
		b.live = false
	}
	if r.Status != goclaw.StateCompleted {
		s.fail(ending(r))
	}
	s.ended[r.RunID] = true
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
