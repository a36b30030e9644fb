package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// style is the parameter list of an SGR sequence; "" is plain text.
type style string

const (
	plain     style = ""
	bold      style = "1"
	dim       style = "2"
	italic    style = "3"
	underline style = "4"
	reverse   style = "7"
	red       style = "31"
	green     style = "32"
	yellow    style = "33"
	magenta   style = "35"
	cyan      style = "36"
)

// and adds t to s.
func (s style) and(t style) style {
	if s == plain || t == plain {
		return s + t
	}
	return s + ";" + t
}

// span is a piece of text in one style.
type span struct {
	text  string
	style style
}

// line is one row of the screen.
type line []span

// String paints the line. Each line closes what it opens, so that any of them
// can be shown without its neighbours.
func (l line) String() string {
	var b strings.Builder
	for _, s := range l {
		if s.style == plain || s.text == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[m")
	}
	return b.String()
}

// width is the number of cells that the line takes.
func (l line) width(m ansi.Method) int {
	n := 0
	for _, s := range l {
		n += m.StringWidth(s.text)
	}
	return n
}

// fit cuts the line to width cells; a cut shows as an ellipsis.
func (l line) fit(m ansi.Method, width int) line {
	if l.width(m) <= width {
		return l
	}
	var out line
	left := max(width, 0)
	for _, s := range l {
		w := m.StringWidth(s.text)
		if w < left {
			out = append(out, s)
			left -= w
			continue
		}
		return append(out, span{cut(m, s.text, left), s.style})
	}
	return out
}

// cut shortens s to at most width cells, the last of them an ellipsis.
// ansi.Method.Truncate decides by grapheme width even where the terminal
// measures by code points, and so can return too much.
func cut(m ansi.Method, s string, width int) string {
	if width < 1 {
		return ""
	}
	end := 0
	for left := width - 1; end < len(s); {
		cluster, w := first(m, s[end:])
		if left -= w; left < 0 {
			break
		}
		end += len(cluster)
	}
	return s[:end] + "…"
}

// pad cuts s to width cells or fills it up with spaces.
func pad(m ansi.Method, s string, width int) string {
	if m.StringWidth(s) > width {
		s = cut(m, s, width)
	}
	return s + strings.Repeat(" ", max(0, width-m.StringWidth(s)))
}
