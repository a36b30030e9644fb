package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// editor is the text being written: a string and a cursor that stands between
// two of its grapheme clusters.
type editor struct {
	text string
	pos  int // byte offset of the cursor
}

// set replaces the text and puts the cursor at its end.
func (e *editor) set(s string) { e.text, e.pos = s, len(s) }

// insert puts s at the cursor.
func (e *editor) insert(s string) {
	e.text = e.text[:e.pos] + s + e.text[e.pos:]
	e.pos += len(s)
	e.pos = e.snap(e.pos)
}

// snap moves a byte offset to the end of the cluster it is in: what was
// inserted may have joined the cluster after it.
func (e *editor) snap(pos int) int {
	at := e.lineStart(pos)
	for at < pos {
		at += clusterLen(e.text[at:])
	}
	return at
}

func clusterLen(s string) int {
	c, _ := first(ansi.GraphemeWidth, s)
	return len(c)
}

func (e *editor) lineStart(pos int) int { return strings.LastIndexByte(e.text[:pos], '\n') + 1 }

func (e *editor) lineEnd(pos int) int {
	if i := strings.IndexByte(e.text[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(e.text)
}

// before is the offset one cluster to the left of the cursor.
func (e *editor) before() int {
	if e.pos == 0 {
		return 0
	}
	at := e.lineStart(e.pos)
	if at == e.pos {
		return e.pos - 1
	}
	for {
		next := at + clusterLen(e.text[at:])
		if next >= e.pos {
			return at
		}
		at = next
	}
}

// after is the offset one cluster to the right of the cursor.
func (e *editor) after() int {
	if e.pos == len(e.text) {
		return e.pos
	}
	return e.pos + clusterLen(e.text[e.pos:])
}

// wordBefore is the offset of the start of the word to the left.
func (e *editor) wordBefore() int {
	left := strings.TrimRightFunc(e.text[:e.pos], unicode.IsSpace)
	i := strings.LastIndexFunc(left, unicode.IsSpace)
	if i < 0 {
		return 0
	}
	_, n := utf8.DecodeRuneInString(left[i:])
	return i + n
}

// wordAfter is the offset of the end of the word to the right.
func (e *editor) wordAfter() int {
	right := e.text[e.pos:]
	skipped := len(right) - len(strings.TrimLeftFunc(right, unicode.IsSpace))
	if i := strings.IndexFunc(right[skipped:], unicode.IsSpace); i >= 0 {
		return e.pos + skipped + i
	}
	return len(e.text)
}

// cut removes the text between the cursor and the offset at.
func (e *editor) cut(at int) {
	lo, hi := min(at, e.pos), max(at, e.pos)
	e.text, e.pos = e.text[:lo]+e.text[hi:], lo
}

// key edits or moves as the named key asks; false if it is no editing key.
func (e *editor) key(name string) bool {
	switch name {
	case "left", "ctrl+b":
		e.pos = e.before()
	case "right", "ctrl+f":
		e.pos = e.after()
	case "alt+left", "ctrl+left", "alt+b":
		e.pos = e.wordBefore()
	case "alt+right", "ctrl+right", "alt+f":
		e.pos = e.wordAfter()
	case "home", "ctrl+a":
		e.pos = e.lineStart(e.pos)
	case "end", "ctrl+e":
		e.pos = e.lineEnd(e.pos)
	case "backspace", "ctrl+h", "shift+backspace":
		e.cut(e.before())
	case "delete", "ctrl+d":
		e.cut(e.after())
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.cut(e.wordBefore())
	case "alt+d", "alt+delete", "ctrl+delete":
		e.cut(e.wordAfter())
	case "ctrl+u":
		e.cut(e.lineStart(e.pos))
	case "ctrl+k":
		e.cut(e.lineEnd(e.pos))
	case "alt+enter", "shift+enter", "ctrl+j":
		e.insert("\n")
	default:
		return false
	}
	return true
}

// row is one line of the editor as it is shown.
type row struct{ start, end int }

// rows breaks the text at newlines and where a line is full.
func (e *editor) rows(m ansi.Method, width int) []row {
	var out []row
	start, used := 0, 0
	for i := 0; i < len(e.text); {
		cluster, w := first(m, e.text[i:])
		if cluster == "\n" {
			out = append(out, row{start, i})
			start, used = i+1, 0
		} else {
			if used+w > width && i > start {
				out = append(out, row{start, i})
				start, used = i, 0
			}
			used += w
		}
		i += len(cluster)
	}
	return append(out, row{start, len(e.text)})
}

// cursor returns the row and the column of the cursor. At the end of a full
// row it stands at the start of the next one, which may be one row beyond rows.
func (e *editor) cursor(m ansi.Method, width int, rows []row) (y, x int) {
	for i := len(rows) - 1; i >= 0; i-- {
		if e.pos >= rows[i].start {
			y = i
			break
		}
	}
	x = m.StringWidth(e.text[rows[y].start:e.pos])
	if x >= width {
		return y + 1, 0
	}
	return y, x
}

// vertical moves the cursor one shown row up (-1) or down (1); false if there
// is none.
func (e *editor) vertical(m ansi.Method, width, by int) bool {
	rows := e.rows(m, width)
	y, x := e.cursor(m, width, rows)
	y += by
	if y < 0 || y >= len(rows) {
		return false
	}
	at, used := rows[y].start, 0
	for at < rows[y].end {
		cluster, w := first(m, e.text[at:])
		if used+w > x {
			break
		}
		at += len(cluster)
		used += w
	}
	e.pos = at
	return true
}

// recall is the history of what was sent, for the up and down keys.
type recall struct {
	sent  []string
	at    int    // index in sent; len(sent) is the text being written
	draft string // that text, while an older one is shown
}

const maxRecall = 200

func (r *recall) add(s string) {
	if n := len(r.sent); n == 0 || r.sent[n-1] != s {
		r.sent = append(r.sent, s)
	}
	if len(r.sent) > maxRecall {
		r.sent = r.sent[len(r.sent)-maxRecall:]
	}
	r.at, r.draft = len(r.sent), ""
}

// step goes to an older (-1) or newer (1) text; false if there is none.
func (r *recall) step(e *editor, by int) bool {
	to := r.at + by
	if to < 0 || to > len(r.sent) {
		return false
	}
	if r.at == len(r.sent) {
		r.draft = e.text
	}
	r.at = to
	if to == len(r.sent) {
		e.set(r.draft)
	} else {
		e.set(r.sent[to])
	}
	return true
}
