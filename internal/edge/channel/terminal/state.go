package terminal

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"goclaw"
)

// state is all that the screen shows. It is changed by its own methods only,
// which return what is to be done about it; it does nothing itself.
type state struct {
	session goclaw.SessionKey
	model   string
	demo    bool
	now     time.Time

	width, height int
	markdown      markdown

	blocks  []*block
	pending []*pending
	turns   []*turn         // under way, in order of start
	ended   map[string]bool // runs of this session that have ended
	workers []*worker

	selected string // run id of the chosen worker
	confirm  string // what a yes ends: the worker with this run id, or everyWorker

	paused     goclaw.Pause
	parked     int // deliveries that were told of
	warned     map[string]bool
	told       map[string]int // by run: how many of its takeovers were told
	stale      bool           // something may have changed without a notice
	refreshing bool
	refreshed  time.Time

	editor editor
	recall recall
	resend pending // what was refused last, to be sent under the same key

	expanded bool
	top      int  // first line shown, unless following
	follow   bool // the newest line is shown

	loaded  bool   // the history has been read
	link    *block // tells that the connection was lost
	armed   time.Time
	sending bool
	nextID  int
}

// pending is a message of the user that no turn has taken up yet.
type pending struct {
	id      int
	text    string
	key     string // makes acceptance idempotent
	run     string // "" until the gateway answered
	handed  bool   // given to the backend
	foreign bool   // sent by somebody else
}

// effect is something that a change of state asks for.
type effect interface{ effect() }

type (
	// sendEffect hands a message to the backend; sentMsg answers.
	sendEffect struct {
		id        int
		text, key string
	}
	// commandEffect sends a slash command past the messages that wait to be
	// sent; commandedMsg answers.
	commandEffect string
	// cancelEffect cancels a worker; cancelledMsg answers.
	cancelEffect struct{ run string }
	// refreshEffect asks for what changes without a notice; refreshedMsg
	// answers.
	refreshEffect struct{}
	redrawEffect  struct{}
	quitEffect    struct{}
)

func (sendEffect) effect()    {}
func (commandEffect) effect() {}
func (cancelEffect) effect()  {}
func (refreshEffect) effect() {}
func (redrawEffect) effect()  {}
func (quitEffect) effect()    {}

// newState returns the screen as it starts.
func newState(o Options) *state {
	s := &state{
		session: o.Session, model: o.Model, demo: o.Demo,
		width: 80, height: 24, markdown: newMarkdown(ansi.WcWidth),
		ended: map[string]bool{}, told: map[string]int{}, warned: map[string]bool{}, follow: true,
	}
	title := "GoClaw"
	if o.Version != "" {
		title += " " + oneLine(o.Version)
	}
	s.add(&block{kind: blockTitle, text: title})
	for _, n := range o.Notices {
		s.note(n)
	}
	return s
}

// add appends a block to the conversation.
func (s *state) add(b *block) *block {
	s.blocks = append(s.blocks, b)
	return b
}

func (s *state) note(text string) *block { return s.add(&block{kind: blockNote, text: text}) }

func (s *state) fail(text string) { s.add(&block{kind: blockError, text: text}) }

// warn tells what is wrong with the context, once.
func (s *state) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		s.add(&block{kind: blockWarning, text: text})
	}
}

// remove takes blocks out of the conversation.
func (s *state) remove(gone ...*block) {
	s.blocks = slices.DeleteFunc(s.blocks, func(b *block) bool { return slices.Contains(gone, b) })
}

// resize adapts to a screen of w by h cells.
func (s *state) resize(w, h int) { s.width, s.height = max(w, 1), max(h, 1) }

// measure chooses how the terminal measures text.
func (s *state) measure(m ansi.Method) { s.markdown.method = m }

func (s *state) method() ansi.Method { return s.markdown.method }

// submit takes the written text as a message or a local command.
func (s *state) submit() []effect {
	text := strings.TrimSpace(s.editor.text)
	if text == "" {
		return nil
	}
	s.editor.set("")
	s.recall.add(text)
	s.follow = true
	switch text {
	case "/quit", "/exit":
		return []effect{quitEffect{}}
	case "/help":
		s.add(&block{kind: blockUser, text: text})
		s.add(&block{kind: blockSystem, text: help})
		return nil
	}
	s.nextID++
	p := &pending{id: s.nextID, text: text}
	if s.resend.text == text {
		p.key = s.resend.key
	}
	s.resend = pending{}
	s.pending = append(s.pending, p)
	return s.handOver()
}

// handOver gives the next message to the backend. One is under way at a time,
// so that messages arrive in the order in which they were written.
func (s *state) handOver() []effect {
	if s.sending {
		return nil
	}
	for _, p := range s.pending {
		if !p.handed && !p.foreign {
			p.handed, s.sending = true, true
			return []effect{sendEffect{id: p.id, text: p.text, key: p.key}}
		}
	}
	return nil
}

// sent takes the backend's answer to a message.
func (s *state) sent(m sentMsg) []effect {
	s.sending = false
	i := slices.IndexFunc(s.pending, func(p *pending) bool { return p.id == m.id && !p.foreign })
	switch {
	case m.err != nil:
		s.fail("not sent: " + m.err.Error())
		if i >= 0 {
			s.resend = pending{text: s.pending[i].text, key: m.key}
			s.giveBack(s.pending[i].text)
			s.pending = slices.Delete(s.pending, i, i+1)
		}
	case m.receipt.Run != nil:
		r := m.receipt.Run.Info()
		if i >= 0 {
			s.pending[i].run = r.RunID
			if s.ended[r.RunID] || s.turn(r.RunID) != nil {
				s.pending = slices.Delete(s.pending, i, i+1)
			}
		}
		s.applyOwn(r)
	default:
		if i >= 0 {
			s.add(&block{kind: blockUser, text: s.pending[i].text})
			s.pending = slices.Delete(s.pending, i, i+1)
		}
		s.answer(m.receipt.Reply)
	}
	return s.handOver()
}

// giveBack returns a refused text to the editor, before what was written since.
func (s *state) giveBack(text string) {
	if s.editor.text != "" {
		text += "\n" + s.editor.text
	}
	s.editor.set(text)
}

// answer shows the gateway's reply to a slash command, which may have changed
// anything.
func (s *state) answer(reply string) {
	if strings.TrimSpace(reply) != "" {
		s.add(&block{kind: blockSystem, text: reply})
	}
	s.stale, s.refreshed = true, time.Time{}
}

// commanded takes the backend's answer to a commandEffect.
func (s *state) commanded(m commandedMsg) {
	if m.err != nil {
		s.fail(m.text + " was not sent: " + m.err.Error())
		return
	}
	s.answer(m.receipt.Reply)
}

// cancelled takes the backend's answer to a worker's cancellation.
func (s *state) cancelled(m cancelledMsg) {
	if m.err == nil {
		return
	}
	name := m.run
	if w := s.worker(m.run); w != nil {
		name, w.cancelling = w.run.Label, false
	}
	s.fail("worker " + name + " not cancelled: " + m.err.Error())
}

// connection takes news of the notice stream.
func (s *state) connection(m linkMsg) {
	switch {
	case m.err != nil && s.link == nil:
		s.link = s.add(&block{kind: blockError})
		fallthrough
	case m.err != nil:
		s.link.set("connection lost: " + m.err.Error() + "; reconnecting…")
	case s.link != nil:
		s.link.kind = blockNote
		s.link.set("connected again")
		s.link = nil
	}
}

// busy reports whether something on the screen changes with time alone.
func (s *state) busy() bool {
	return s.spinning() || s.now.Before(s.armed) || s.drifting() || len(s.places()) > 0
}

// spinning reports whether something is under way.
func (s *state) spinning() bool {
	return len(s.turns) > 0 || len(s.underWay()) > 0
}

const help = `/subagents  list, inspect, steer, cancel, resume and spawn workers
/context    what the model is sent, by section
/status     model, usage and state of this session
/usage      what was spent
/compact    sum up what was said, so that less is sent; say what matters
/new        start afresh; what came before is kept
/stop       stop the current turn; /stop all: its workers, too
/pause      no model is called anywhere until /resume
/model      show or change the model
/page       a link to the same in your browser
/help       this list
/quit       leave

Enter sends · Alt+Enter or Ctrl+J starts a new line · Up and Down recall
PgUp, PgDn and the wheel scroll · Ctrl+O unfolds tool calls and thinking
Tab selects a worker: s steers it, x or Ctrl+X cancels it, r resumes
one that waits for you, Esc lets go
Esc or Ctrl+C stops the turn · Ctrl+C twice, or Ctrl+D on an empty line, leaves
Hold Shift to select text with the mouse`
