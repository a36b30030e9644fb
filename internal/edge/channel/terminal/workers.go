package terminal

import (
	"slices"
	"strings"
	"time"

	"goclaw"
)

// linger is how long an ended worker stays on the panel.
const linger = 30 * time.Second

// everyWorker is what a yes ends when the question is about all workers.
const everyWorker = "*"

// worker is a run that this session asked for, or one that such a run did.
type worker struct {
	run        goclaw.RunInfo
	activity   string
	tail       string // the newest of its streamed text
	cancelling bool
}

func (s *state) worker(run string) *worker {
	for _, w := range s.workers {
		if w.run.RunID == run {
			return w
		}
	}
	return nil
}

// underWay returns the workers that have not ended.
func (s *state) underWay() []*worker {
	var out []*worker
	for _, w := range s.workers {
		if !w.run.Status.Ended() {
			out = append(out, w)
		}
	}
	return out
}

// asks reports whether r waits for a person.
func asks(r goclaw.RunInfo) bool {
	return r.Status == goclaw.StateWaiting && r.WaitsFor == goclaw.WaitPerson
}

// applyWorker follows a worker; what ended stays ended.
func (s *state) applyWorker(r goclaw.RunInfo) {
	w := s.worker(r.RunID)
	if w == nil {
		w = &worker{}
		s.workers = append(s.workers, w)
	}
	before := w.run
	late := r.Status == goclaw.StateQueued && before.Status != goclaw.StateQueued && before.Status != ""
	if !before.Status.Ended() && !late {
		w.run = r
		if r.Status == goclaw.StateQueued && r.Position == 0 {
			w.run.Position = before.Position // notices don't tell it
		}
	}
	if w.run.Status.Ended() && w.run.FinishedAt == 0 {
		w.run.FinishedAt = goclaw.At(s.now)
	}
	if asks(w.run) && !asks(before) {
		id := shortID(r.RunID)
		s.note(oneLine(r.Label) + " waits for you: /subagents resume " + id + ", or /subagents kill " + id)
	}
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool { return !s.shown(w) })
}

// shortID is as much of a run's id as commands need.
func shortID(id string) string { return id[:min(8, len(id))] }

// shown reports whether w has a place on the panel.
func (s *state) shown(w *worker) bool {
	return !w.run.Status.Ended() || s.now.Sub(w.run.FinishedAt.Time()) < linger
}

// place is a worker's place on the panel: level counts the workers above it in
// its tree.
type place struct {
	*worker
	level int
}

// places returns the workers on the panel, each before those that it asked for;
// among siblings the ended ones come last.
func (s *state) places() []place {
	shown := map[string]bool{}
	for _, w := range s.workers {
		shown[w.run.RunID] = s.shown(w)
	}
	under := map[string][]*worker{} // by parent; "" if that is not on the panel
	for _, ended := range []bool{false, true} {
		for _, w := range s.workers {
			if !shown[w.run.RunID] || w.run.Status.Ended() != ended {
				continue
			}
			parent := w.run.Parent
			if !shown[parent] {
				parent = ""
			}
			under[parent] = append(under[parent], w)
		}
	}
	var out []place
	var walk func(parent string, level int)
	walk = func(parent string, level int) {
		for _, w := range under[parent] {
			out = append(out, place{w, level})
			walk(w.run.RunID, level+1)
		}
	}
	walk("", 0)
	return out
}

// apply notes what the worker does now.
func (w *worker) apply(n goclaw.Notice) {
	switch n.Kind {
	case goclaw.NoticeText:
		w.tail = lastBytes(w.tail+n.Text, 400)
		w.activity = lastLine(w.tail)
	case goclaw.NoticeThinking:
		w.activity = "thinking"
	case goclaw.NoticeReset:
		w.tail, w.activity = "", ""
	case goclaw.NoticeRetry:
		w.activity = n.Text
	case goclaw.NoticeToolCall:
		if n.Call != nil {
			w.tail, w.activity = "", callTitle(*n.Call)
		}
	}
}

// lastBytes keeps the end of s, of about n bytes.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

// lastLine is the last line of s that says something.
func lastLine(s string) string {
	s = strings.TrimRight(s, " \n\r\t")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// choose moves the selection by one; from none it goes to the first or last.
func (s *state) choose(by int) {
	ps := s.places()
	if len(ps) == 0 {
		s.selected = ""
		return
	}
	i := slices.IndexFunc(ps, func(p place) bool { return p.run.RunID == s.selected })
	switch {
	case i < 0 && by < 0:
		i = len(ps) - 1
	case i < 0:
		i = 0
	default:
		i = (i + by + len(ps)) % len(ps)
	}
	s.selected = ps[i].run.RunID
}

// control takes a key that acts on the selected worker; false if it is none.
func (s *state) control(w *worker, key string) ([]effect, bool) {
	switch {
	case key == "x":
		s.askCancel()
	case key == "s" && !w.run.Status.Ended():
		s.selected = ""
		s.editor.set("/subagents steer " + shortID(w.run.RunID) + " ")
	case key == "r" && asks(w.run):
		return []effect{commandEffect("/subagents resume " + w.run.RunID)}, true
	default:
		return nil, false
	}
	return nil, true
}

// askCancel asks whether the selected worker, or the only one, shall be
// cancelled.
func (s *state) askCancel() {
	if active := s.underWay(); s.selected == "" {
		if len(active) != 1 {
			s.choose(1)
			return
		}
		s.selected = active[0].run.RunID
	}
	s.confirm = s.selected
}

// question is what the next key answers if it is a y or an n; nil for nothing.
func (s *state) question() line {
	st := bold.and(yellow)
	if w := s.worker(s.confirm); w != nil && !w.run.Status.Ended() {
		return line{{" Cancel worker ", st}, {oneLine(w.run.Label), bold}, {"? ", st}, {"y/n", bold}}
	}
	switch n := len(s.underWay()); {
	case s.confirm != everyWorker || n == 0:
		return nil
	case n == 1:
		return line{{" 1 worker is still under way. Stop it too? ", st}, {"y/n", bold}}
	default:
		return line{{" " + count(n, "worker") + " are still under way. Stop them too? ", st}, {"y/n", bold}}
	}
}

// confirmed ends what the question was about.
func (s *state) confirmed(run string) []effect {
	if run == everyWorker {
		return []effect{commandEffect("/stop all")}
	}
	s.worker(run).cancelling = true
	return []effect{cancelEffect{run: run}}
}
