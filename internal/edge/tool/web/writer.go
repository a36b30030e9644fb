package web

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// text writes a run of text; blanks in it become one.
func (w *writer) text(s string) {
	switch {
	case w.naming:
		if w.title == "" {
			w.title = line(s, maxTitle)
		}
		return
	case w.pre > 0:
		w.verbatim(s)
		return
	}
	for s != "" {
		from := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) })
		if from != 0 {
			w.space = true
		}
		if from < 0 {
			return
		}
		s = s[from:]
		to := strings.IndexFunc(s, unicode.IsSpace)
		if to < 0 {
			to = len(s)
		}
		w.write(s[:to])
		s = s[to:]
	}
}

func (w *writer) write(s string) {
	w.flush()
	w.out = append(w.out, s...)
}

// verbatim writes a piece of a block of code.
func (w *writer) verbatim(s string) {
	if w.fence != "" {
		if s = strings.TrimPrefix(s, "\n"); s == "" {
			return
		}
		w.write(w.fence + "\n")
		w.fence = ""
	}
	w.out = append(w.out, s...)
}

// broken asks for line ends before the next text. What a list's item begins
// with stays on the line of its mark.
func (w *writer) broken(n int) {
	if w.item == "" {
		w.breaks = max(w.breaks, n)
	}
	w.space = false
}

// inCell reports whether the text goes into a cell of data, which has one line.
func (w *writer) inCell() bool { return w.tables == 1 && !w.layout && w.row.cells > 0 }

// flush writes what is due before text.
func (w *writer) flush() {
	switch {
	case w.inCell():
		if w.space = w.space || w.breaks > 0; w.space && w.out[len(w.out)-1] != ' ' {
			w.out = append(w.out, ' ')
		}
	case len(w.out) == 0:
		w.indent()
	case w.breaks > 0:
		w.out = append(w.out, "\n\n"[:w.breaks]...)
		w.indent()
	case w.space:
		w.out = append(w.out, ' ')
	}
	w.breaks, w.space = 0, false
	w.out = append(w.out, w.head...)
	w.head = ""
	if w.link.open && w.link.from < 0 {
		w.link.from = len(w.out)
	}
	if w.tick {
		w.out, w.tick = append(w.out, '`'), false
	}
}

// indent begins a line.
func (w *writer) indent() {
	w.out = append(w.out, strings.Repeat("> ", min(w.quotes, maxLevel))...)
	level := min(len(w.lists), maxLevel)
	if w.item != "" {
		level = max(level-1, 0)
	}
	w.out = append(w.out, strings.Repeat("  ", level)...)
	w.out = append(w.out, w.item...)
	w.item = ""
}

func (w *writer) startItem() {
	w.item = ""
	w.broken(1)
	w.item = "- "
	if n := len(w.lists); n > 0 && w.lists[n-1].ordered {
		w.lists[n-1].n++
		w.item = fmt.Sprintf("%d. ", w.lists[n-1].n)
	}
}

func (w *writer) endCode() {
	switch {
	case !w.code:
		return
	case w.tick: // it held nothing
		w.tick = false
	default:
		w.out = append(w.out, '`')
	}
	w.code = false
}

// language takes the language of a block of code from its class.
func (w *writer) language(t html.Token) {
	if w.fence != "```" {
		return
	}
	for class := range strings.FieldsSeq(attr(t, "class")) {
		name, ok := strings.CutPrefix(class, "language-")
		if !ok {
			name, ok = strings.CutPrefix(class, "lang-")
		}
		plain := !strings.ContainsFunc(name, func(r rune) bool {
			return r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '#' && r != '-'
		})
		if ok && plain && len(name) <= 20 {
			w.fence += name
			return
		}
	}
}

func (w *writer) endPre() {
	if w.pre = max(w.pre-1, 0); w.pre > 0 {
		return
	}
	if w.fence == "" && len(w.out) > 0 {
		if w.out[len(w.out)-1] != '\n' {
			w.out = append(w.out, '\n')
		}
		w.out = append(w.out, "```"...)
	}
	w.fence = ""
	w.broken(2)
}

func (w *writer) endLink() {
	l := w.link
	w.link = link{from: -1}
	if !l.open || l.from < 0 || l.url == "" {
		return
	}
	text := string(w.out[l.from:])
	switch {
	case text == l.url:
	case strings.Contains(text, "\n"): // it holds whole blocks
		w.out = append(w.out, " <"+l.url+">"...)
	default:
		w.out = append(append(w.out[:l.from], '['), text...)
		w.out = append(w.out, "]("+l.url+")"...)
	}
}

// resolve makes an address whole; "" for one that leads nowhere else.
func (w *writer) resolve(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' {
		return ""
	}
	u, err := w.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	if s := u.String(); len(s) <= 1000 {
		return s
	}
	return ""
}

func (w *writer) startTable(t html.Token) {
	w.broken(2)
	w.tables++
	w.layout = w.tables > 1 || attr(t, "role") == "presentation"
	if w.tables == 1 {
		w.row = row{}
	}
}

func (w *writer) endTable() {
	w.endRow()
	if w.tables = max(w.tables-1, 0); w.tables == 0 {
		w.layout, w.row = false, row{}
	}
	w.broken(2)
}

func (w *writer) startRow() {
	w.endRow()
	w.broken(1)
}

func (w *writer) startCell(head bool) {
	if w.tables != 1 || w.layout {
		w.space = true
		return
	}
	if w.row.cells == 0 {
		w.write("|")
	} else {
		w.out = append(w.out, " |"...)
	}
	w.breaks, w.space = 0, true
	w.row.cells++
	if head {
		w.row.heads++
	}
}

func (w *writer) endRow() {
	if w.inCell() {
		w.out = append(w.out, " |"...)
		if w.row.rows++; w.row.rows == 1 && w.row.heads > 0 {
			w.out = append(w.out, '\n')
			w.indent()
			w.out = append(w.out, "|"+strings.Repeat("---|", w.row.cells)...)
		}
	}
	w.row.cells, w.row.heads = 0, 0
	w.broken(1)
}
