package terminal

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// cell is one grapheme cluster on its way to a line.
type cell struct {
	text  string
	width int
	style style
}

// wrapper breaks styled text into lines by display width.
type wrapper struct {
	method  ansi.Method
	width   int
	anymark bool // break between any two clusters (code), not at spaces

	lines  []line
	row    []cell
	rowW   int
	spaces []cell
	word   []cell
	wordW  int
	soft   bool // the row follows a break that the text did not ask for
}

// first returns the first grapheme cluster of s and its width in cells.
func first(m ansi.Method, s string) (string, int) {
	if s[0] >= ' ' && s[0] < 0x7f && (len(s) == 1 || s[1] < 0x80) {
		return s[:1], 1 // most text, without the cost of segmentation
	}
	return ansi.FirstGraphemeCluster(s, m)
}

// wrap breaks spans at spaces, at newlines and around wide characters; a word
// that fits no line is broken anywhere.
func wrap(m ansi.Method, width int, spans ...span) []line {
	w := wrapper{method: m, width: max(width, 1)}
	return w.run(spans)
}

// chop breaks spans at newlines and wherever a line is full.
func chop(m ansi.Method, width int, spans ...span) []line {
	w := wrapper{method: m, width: max(width, 1), anymark: true}
	return w.run(spans)
}

func (w *wrapper) run(spans []span) []line {
	for _, s := range spans {
		for text := s.text; text != ""; {
			cluster, width := first(w.method, text)
			text = text[len(cluster):]
			if r, _ := utf8.DecodeRuneInString(cluster); cluster != "\n" && steers(r) {
				continue
			}
			w.put(cell{cluster, width, s.style})
		}
	}
	w.endWord()
	w.endRow(false)
	return w.lines
}

func (w *wrapper) put(c cell) {
	switch {
	case c.text == "\n":
		w.endWord()
		w.endRow(false)
	case w.anymark:
		w.place(c)
	case c.text == " ":
		w.endWord()
		w.spaces = append(w.spaces, c)
	case c.width > 1: // ideographs and emoji: a line may end on either side
		w.endWord()
		w.word, w.wordW = append(w.word, c), c.width
		w.endWord()
	default:
		w.word = append(w.word, c)
		w.wordW += c.width
	}
}

// endWord moves the word, and the spaces before it, to a row.
func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	if w.rowW+len(w.spaces)+w.wordW > w.width && len(w.row) > 0 {
		w.spaces = nil
		w.endRow(true)
	}
	if len(w.row) > 0 || !w.soft {
		for _, c := range w.spaces {
			if w.rowW < w.width {
				w.place(c)
			}
		}
	}
	w.spaces = nil
	for _, c := range w.word {
		w.place(c)
	}
	w.word, w.wordW = w.word[:0], 0
}

// place puts c on the row, or on the next one if the row is full.
func (w *wrapper) place(c cell) {
	if w.rowW+c.width > w.width && len(w.row) > 0 {
		w.endRow(true)
	}
	w.row = append(w.row, c)
	w.rowW += c.width
}

func (w *wrapper) endRow(soft bool) {
	var l line
	var b strings.Builder
	for i, c := range w.row {
		b.WriteString(c.text)
		if i+1 == len(w.row) || w.row[i+1].style != c.style {
			l = append(l, span{b.String(), c.style})
			b.Reset()
		}
	}
	w.lines = append(w.lines, l)
	w.row, w.rowW, w.soft = w.row[:0], 0, soft
	w.spaces = nil
}

// indent puts first before the first line and rest before the others.
func indent(lines []line, first, rest span) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		head := rest
		if i == 0 {
			head = first
		}
		out[i] = append(line{head}, l...)
	}
	return out
}
