package terminal

import (
	"strings"
)

// screen is one frame: painted lines and where the cursor stands.
type screen struct {
	lines  []string
	cx, cy int
}

// layout is how many lines each part of the screen has.
type layout struct{ talk, panel, rule, input, status int }

// maxInput is how far the input grows.
const maxInput = 6

func (s *state) layout() layout {
	var l layout
	h := s.height
	l.status = 1
	if h >= 6 {
		l.rule = 1
	}
	rows := s.editor.rows(s.method(), s.inputWidth())
	y, _ := s.editor.cursor(s.method(), s.inputWidth(), rows)
	l.input = max(1, min(maxInput, max(len(rows), y+1), h/3))
	if n := len(s.places()); n > 0 && h >= 6 {
		l.panel = min(n+1, max(2, h/3))
		l.panel = min(l.panel, h-l.status-l.rule-l.input-1)
	}
	l.talk = max(1, h-l.status-l.rule-l.input-l.panel)
	return l
}

// inputWidth is the room for text behind the prompt.
func (s *state) inputWidth() int { return max(1, s.width-len(margin)) }

// view draws the whole screen.
func (s *state) view() screen {
	l := s.layout()
	talk := s.conversation()
	top := max(0, len(talk)-l.talk)
	if !s.follow {
		top = min(s.top, top)
	}
	below := len(talk) - top - l.talk
	lines := append([]string{}, talk[top:min(len(talk), top+l.talk)]...)
	for len(lines) < l.talk {
		lines = append(lines, "")
	}
	lines = append(lines, s.panel(l.panel)...)
	if l.rule > 0 {
		lines = append(lines, s.rule(below))
	}
	input, cx, cy := s.input(l.input)
	cy += len(lines)
	lines = append(lines, input...)
	lines = append(lines, s.status())
	return screen{lines: lines[:min(len(lines), s.height)], cx: cx, cy: cy}
}

// conversation returns all lines of the talk: what was said, then the messages
// that wait for their turn.
func (s *state) conversation() []string {
	d := drawing{width: s.width, method: s.method(), expanded: s.expanded}
	var out []string
	var last *block
	for _, b := range s.blocks {
		rows := b.rows(s.markdown, d)
		if len(rows) == 0 {
			continue
		}
		if last != nil && (!last.compact() || !b.compact() || (last.kind == blockNote) != (b.kind == blockNote)) {
			out = append(out, "")
		}
		out = append(out, rows...)
		last = b
	}
	for i, p := range s.pending {
		if i == 0 && len(out) > 0 {
			out = append(out, "")
		}
		text := span{strings.TrimSpace(clean(p.text)), dim}
		mark := span{" (sending)", yellow}
		if p.run != "" || len(s.turns) > 0 {
			mark.text = " (queued)"
		}
		for _, l := range indent(wrap(d.method, s.inputWidth(), text, mark), span{"› ", dim}, span{text: margin}) {
			out = append(out, l.String())
		}
	}
	return out
}

// rule separates the talk from the input; it tells when newer lines are below.
func (s *state) rule(below int) string {
	label := ""
	if below > 0 {
		label = " ↓ " + count(below, "more line") + " · PgDn "
	}
	return s.bar(label, yellow)
}

// input draws the editor in height lines, and tells where its cursor stands.
func (s *state) input(height int) (lines []string, cx, cy int) {
	m, width := s.method(), s.inputWidth()
	rows := s.editor.rows(m, width)
	y, x := s.editor.cursor(m, width, rows)
	if y == len(rows) {
		rows = append(rows, row{len(s.editor.text), len(s.editor.text)})
	}
	first := max(0, min(y-height/2, len(rows)-height))
	for i := first; i < min(first+height, len(rows)); i++ {
		l := line{{margin, plain}, {s.editor.text[rows[i].start:rows[i].end], plain}}
		if i == 0 {
			l[0] = span{"› ", bold.and(cyan)}
		}
		if s.editor.text == "" {
			l[1] = span{"Write a message, or /help", dim}
		}
		lines = append(lines, l.fit(m, s.width).String())
	}
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines, min(len(margin)+x, s.width-1), y - first
}
