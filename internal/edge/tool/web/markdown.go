package web

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxText   = 4 << 20 // bytes of Markdown made of one page
	maxLevel  = 8       // of lists and quotations that are told apart
	leastMain = 200     // bytes that a page's main part has, if it is one
)

// markdown makes the title and the text of a page. It reads the tags one after
// the other and builds no tree: pages are wrong in every way, and some are made
// to be slow.
func markdown(ctx context.Context, source string, base *url.URL) (title, text string, err error) {
	w := newWriter(base, false)
	if err := w.read(ctx, source); err != nil {
		return "", "", err
	}
	if w.skipping != "" { // it was never closed: all that follows would be lost
		w = newWriter(base, true)
		if err := w.read(ctx, source); err != nil {
			return "", "", err
		}
	}
	return w.title, w.best(), nil
}

// writer writes Markdown as tags come.
type writer struct {
	base    *url.URL
	lenient bool // leave out only what is no text at all
	title   string
	naming  bool // within the title

	out    []byte
	breaks int  // line ends that are due before the next text
	space  bool // a blank is due

	skipping string // the element that is being left out
	depth    int    // of that element in itself

	lists  []list
	quotes int
	item   string // the mark of a list's item, due before its text
	head   string // the mark of a heading
	code   bool   // within a code span
	tick   bool   // its mark is due
	pre    int
	fence  string // the opening line of a block of code, due
	link   link
	tables int
	layout bool // the table is one to place things, not of data
	row    row

	mains, articles []span
}

type list struct {
	ordered bool
	n       int
}

type link struct {
	open bool
	url  string
	from int // where its text begins; -1: there is none yet
}

type row struct{ cells, heads, rows int }

// span is a part of the output; to is -1 until its element is closed.
type span struct{ from, to, depth int }

func newWriter(base *url.URL, lenient bool) *writer {
	return &writer{base: base, lenient: lenient, link: link{from: -1}}
}

func (w *writer) read(ctx context.Context, source string) error {
	z := html.NewTokenizer(strings.NewReader(source))
	for n := 0; len(w.out) < maxText; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch z.Next() {
		case html.ErrorToken: // the end
			return nil
		case html.TextToken:
			if w.skipping == "" {
				w.text(string(z.Text()))
			}
		case html.StartTagToken:
			w.start(z.Token(), false)
		case html.SelfClosingTagToken:
			w.start(z.Token(), true)
		case html.EndTagToken:
			name, _ := z.TagName()
			w.end(string(name))
		}
	}
	return nil
}

// best is the page's main part if it marks one, else the whole.
func (w *writer) best() string {
	parts := w.mains
	if len(parts) == 0 && len(w.articles) == 1 {
		parts = w.articles
	}
	var b strings.Builder
	for _, s := range parts {
		to := s.to
		if to < 0 {
			to = len(w.out)
		}
		b.WriteString(strings.TrimSpace(string(w.out[min(s.from, to):to])))
		b.WriteString("\n\n")
	}
	if b.Len() >= leastMain {
		return b.String()
	}
	return string(w.out)
}

// Elements that are left out with all they hold.
var (
	noText = [...]string{"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "audio", "video", "noembed", "noframes", "textarea", "select"}
	aside  = [...]string{"nav", "footer", "button", "dialog"}
	void   = [...]string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
	// optional are elements that end where the next of them begins.
	optional = [...]string{"p", "li", "td", "th", "tr", "dd", "dt", "option"}
)

func (w *writer) skips(t html.Token) bool {
	if slices.Contains(void[:], t.Data) {
		return false
	}
	if slices.Contains(noText[:], t.Data) {
		return true
	}
	return !w.lenient && (slices.Contains(aside[:], t.Data) || unseen(t))
}

// unseen reports whether a browser would not show the element.
func unseen(t html.Token) bool {
	for _, a := range t.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return strings.EqualFold(a.Val, "true")
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(a.Val), ""))
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

func (w *writer) start(t html.Token, closed bool) {
	name := t.Data
	if w.skipping != "" {
		switch {
		case name != w.skipping || closed && name == "svg":
			return
		case !slices.Contains(optional[:], name):
			w.depth++
			return
		}
		w.skipping = ""
	}
	if w.skips(t) {
		if !closed || name != "svg" {
			w.skipping, w.depth = name, 1
		}
		return
	}
	if name == "a" && w.pre == 0 {
		w.endLink()
		w.link = link{open: true, url: w.resolve(attr(t, "href")), from: -1}
		return
	}
	if w.pre > 0 && name != "pre" {
		w.startInPre(t)
		return
	}
	if !w.startBlock(t) {
		w.startInline(t)
	}
}

func (w *writer) startInPre(t html.Token) {
	switch t.Data {
	case "br":
		w.verbatim("\n")
	case "code":
		w.language(t)
	}
}

// startBlock starts what stands on lines of its own.
func (w *writer) startBlock(t html.Token) bool {
	switch t.Data {
	case "p", "figure", "dl":
		w.broken(2)
	case "div", "section", "header", "aside", "address", "form", "fieldset", "details", "summary", "figcaption", "dt", "dd", "caption", "center", "legend", "body":
		w.broken(1)
	case "main":
		w.open(&w.mains)
	case "article":
		w.open(&w.articles)
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.broken(2)
		w.head = strings.Repeat("#", int(t.Data[1]-'0')) + " "
		w.layout = w.tables > 0
	case "ul", "ol", "menu":
		w.layout = w.tables > 0
		w.broken(2 - min(len(w.lists), 1))
		w.lists = append(w.lists, list{ordered: t.Data == "ol"})
	case "li":
		w.startItem()
	case "blockquote":
		w.broken(2)
		w.quotes++
	case "pre":
		w.layout = w.tables > 0
		w.broken(2)
		if w.pre++; w.pre == 1 {
			w.fence = "```"
		}
		w.language(t)
	case "table":
		w.startTable(t)
	case "tr":
		w.startRow()
	case "td", "th":
		w.startCell(t.Data == "th")
	case "hr":
		w.broken(2)
		w.write("---")
		w.broken(2)
	case "br":
		w.broken(min(w.breaks+1, 2))
	default:
		return false
	}
	return true
}

func (w *writer) startInline(t html.Token) {
	switch t.Data {
	case "code", "kbd", "samp", "tt":
		w.code, w.tick = true, true
	case "img":
		if alt := line(attr(t, "alt"), 200); alt != "" {
			w.write("[image: " + alt + "]")
		}
	case "base":
		if u, err := w.base.Parse(attr(t, "href")); err == nil {
			w.base = u
		}
	case "title":
		w.naming = true
	}
}

func (w *writer) end(name string) {
	if w.skipping != "" {
		if name == w.skipping {
			if w.depth--; w.depth == 0 {
				w.skipping = ""
			}
		}
		return
	}
	switch name {
	case "title":
		w.naming = false
	case "a":
		w.endLink()
	case "code", "kbd", "samp", "tt":
		w.endCode()
	case "p", "figure", "dl":
		w.broken(2)
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.head = ""
		w.broken(2)
	case "div", "section", "header", "aside", "address", "form", "fieldset", "details", "summary", "figcaption", "dt", "dd", "caption", "center", "legend", "li":
		w.broken(1)
	case "main":
		w.close(&w.mains)
	case "article":
		w.close(&w.articles)
	case "ul", "ol", "menu":
		if len(w.lists) > 0 {
			w.lists = w.lists[:len(w.lists)-1]
		}
		w.item = ""
		w.broken(2 - min(len(w.lists), 1))
	case "blockquote":
		w.broken(2)
		w.quotes = max(w.quotes-1, 0)
	case "pre":
		w.endPre()
	case "table":
		w.endTable()
	case "tr":
		w.endRow()
	}
}

// open notes where an element begins whose text may be the page's main part;
// one within another of its kind is part of it.
func (w *writer) open(spans *[]span) {
	w.broken(2)
	if n := len(*spans); n > 0 && (*spans)[n-1].to < 0 {
		(*spans)[n-1].depth++
		return
	}
	*spans = append(*spans, span{from: len(w.out), to: -1, depth: 1})
}

func (w *writer) close(spans *[]span) {
	w.broken(2)
	n := len(*spans)
	if n == 0 || (*spans)[n-1].to >= 0 {
		return
	}
	s := &(*spans)[n-1]
	if s.depth--; s.depth == 0 {
		s.to = len(w.out)
	}
}

func attr(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
