package terminal

import "time"

// again is how long a first Ctrl+C waits for the second, which leaves.
const again = 2 * time.Second

// wheelLines is how far one notch of the mouse wheel scrolls.
const wheelLines = 3

// key takes a key press: its name, and the text that it types, if any.
func (s *state) key(name, text string) []effect {
	asked := s.question() != nil
	run := s.confirm
	s.confirm = ""
	switch {
	case asked && (text == "y" || text == "Y"):
		return s.confirmed(run)
	case asked && (text == "n" || text == "N" || name == "esc"):
		return nil
	}
	switch name {
	case "ctrl+c":
		return s.interrupt()
	case "ctrl+d":
		if s.editor.text == "" {
			return []effect{quitEffect{}}
		}
		s.editor.key(name)
	case "enter", "kpenter":
		return s.submit()
	case "esc":
		if s.selected == "" && len(s.turns) > 0 {
			return s.stop()
		}
		s.selected = ""
	case "tab":
		s.choose(1)
	case "shift+tab":
		s.choose(-1)
	case "up", "down":
		s.arrow(name)
	case "ctrl+p":
		s.recall.step(&s.editor, -1)
	case "ctrl+n":
		s.recall.step(&s.editor, 1)
	case "ctrl+x":
		s.askCancel()
	case "ctrl+o":
		s.expanded = !s.expanded
	case "ctrl+l":
		return []effect{redrawEffect{}}
	case "pgup":
		s.scroll(-s.page())
	case "pgdown":
		s.scroll(s.page())
	case "ctrl+home":
		s.follow, s.top = false, 0
	case "ctrl+end":
		s.follow = true
	default:
		if w := s.worker(s.selected); w != nil && s.editor.text == "" {
			if todo, ok := s.control(w, text); ok {
				return todo
			}
		}
		if text == "" {
			s.editor.key(name)
			return nil
		}
		s.paste(text)
	}
	return nil
}

// paste takes typed or pasted text.
func (s *state) paste(text string) {
	s.selected, s.confirm = "", ""
	s.editor.insert(clean(text))
}

// arrow moves the selection, else the cursor, else goes through what was sent.
func (s *state) arrow(name string) {
	by := 1
	if name == "up" {
		by = -1
	}
	switch {
	case s.selected != "":
		s.choose(by)
	case s.editor.vertical(s.method(), s.inputWidth(), by):
	default:
		s.recall.step(&s.editor, by)
	}
}

// interrupt stops the turn that runs; the second one in a row leaves.
func (s *state) interrupt() []effect {
	if s.now.Before(s.armed) {
		return []effect{quitEffect{}}
	}
	s.armed = s.now.Add(again)
	if len(s.turns) > 0 {
		return s.stop()
	}
	s.editor.set("")
	return nil
}

// stop ends the turn, and asks whether its workers shall end, too.
func (s *state) stop() []effect {
	if len(s.underWay()) > 0 {
		s.confirm = everyWorker
	}
	return []effect{commandEffect("/stop")}
}

// page is how far a page key scrolls: what was at the edge stays in view.
func (s *state) page() int { return max(1, s.layout().talk-1) }

// scroll moves the conversation; at its end it follows the newest line again.
func (s *state) scroll(by int) {
	last := max(0, len(s.conversation())-s.layout().talk)
	if s.follow {
		s.top = last
	}
	s.top = min(max(0, s.top+by), last)
	s.follow = s.top == last
}
