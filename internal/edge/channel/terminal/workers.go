package terminal

import (
	"slices"
	"strings"
	"time"

	"goclaw"
)

// linger is how long an ended worker stays on the panel.
const linger = 30 * time.Second

// worker is a run that this session asked for.
type worker struct {
	run        goclaw.Run
	activity   string
	tail       string // the newest of its streamed text
	cancelling bool
}

func (s *state) worker(run string) *worker {
	for _, w := range s.workers {
		if w.run.ID == run {
			return w
		}
	}
	return nil
}

// applyWorker follows a worker; what ended stays ended.
func (s *state) applyWorker(r goclaw.Run) {
	w := s.worker(r.ID)
	switch {
	case w == nil:
		w = &worker{run: r}
		s.workers = append(s.workers, w)
	case !w.run.State.Ended() && (r.State != goclaw.StateQueued || w.run.State == goclaw.StateQueued):
		w.run = r
	}
	if w.run.State.Ended() && w.run.FinishedAt == 0 {
		w.run.FinishedAt = goclaw.At(s.now)
	}
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool { return !s.shown(w) })
}

// shown reports whether w has a place on the panel.
func (s *state) shown(w *worker) bool {
	return !w.run.State.Ended() || s.now.Sub(w.run.FinishedAt.Time()) < linger
}

// shownWorkers returns the workers on the panel, the ended ones last.
func (s *state) shownWorkers() []*worker {
	var active, ended []*worker
	for _, w := range s.workers {
		switch {
		case !w.run.State.Ended():
			active = append(active, w)
		case s.shown(w):
			ended = append(ended, w)
		}
	}
	return append(active, ended...)
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
	ws := s.shownWorkers()
	if len(ws) == 0 {
		s.selected = ""
		return
	}
	i := slices.IndexFunc(ws, func(w *worker) bool { return w.run.ID == s.selected })
	switch {
	case i < 0 && by < 0:
		i = len(ws) - 1
	case i < 0:
		i = 0
	default:
		i = (i + by + len(ws)) % len(ws)
	}
	s.selected = ws[i].run.ID
}

// askCancel asks whether the selected worker, or the only one, shall be
// cancelled.
func (s *state) askCancel() {
	w := s.worker(s.selected)
	if s.selected == "" {
		var active []*worker
		for _, c := range s.workers {
			if !c.run.State.Ended() {
				active = append(active, c)
			}
		}
		if len(active) != 1 {
			s.choose(1)
			return
		}
		w = active[0]
		s.selected = w.run.ID
	}
	if w != nil && !w.run.State.Ended() {
		s.confirm = w.run.ID
	}
}

// answerCancel takes the key that answers askCancel.
func (s *state) answerCancel(key string) []effect {
	id := s.confirm
	s.confirm = ""
	w := s.worker(id)
	if (key != "y" && key != "Y") || w == nil || w.run.State.Ended() {
		return nil
	}
	w.cancelling = true
	return []effect{cancelEffect{run: id}}
}
