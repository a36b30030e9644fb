package terminal

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	maxMarkdown = 256 << 10 // longer replies are shown as they were written
	maxNesting  = 12        // deeper lists and quotes are no longer indented
)

// markdown renders CommonMark and pipe tables as styled lines.
type markdown struct {
	method ansi.Method
	parser parser.Parser
}

func newMarkdown(m ansi.Method) markdown {
	return markdown{method: m, parser: parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)}
}

// render returns the lines of an outside text, none wider than width.
func (m markdown) render(s string, width int) []line {
	s = strings.Trim(clean(s), "\n")
	if len(s) > maxMarkdown {
		return wrap(m.method, width, span{text: s})
	}
	src := []byte(s)
	d := document{markdown: m, src: src}
	return d.blocks(m.parser.Parse(text.NewReader(src)), width, 0, true)
}

// document is one parsed text.
type document struct {
	markdown
	src []byte
}

// blocks renders the children of n, with an empty line between them if loose.
func (d document) blocks(n ast.Node, width, depth int, loose bool) []line {
	var out []line
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := d.block(c, width, depth)
		if len(lines) == 0 {
			continue
		}
		if loose && len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

func (d document) block(n ast.Node, width, depth int) []line {
	switch n := n.(type) {
	case *ast.Heading:
		return wrap(d.method, width, d.inline(n, headingStyle(n.Level))...)
	case *ast.Paragraph, *ast.TextBlock:
		if t, ok := d.table(n, width); ok {
			return t
		}
		return wrap(d.method, width, d.inline(n, plain)...)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return d.verbatim(n, width, cyan)
	case *ast.HTMLBlock:
		return d.verbatim(n, width, dim)
	case *ast.Blockquote:
		bar := span{"│ ", dim}
		return d.nested(n, width, depth, bar, bar, true)
	case *ast.List:
		return d.list(n, width, depth)
	case *ast.ThematicBreak:
		return []line{{{strings.Repeat("─", min(width, 40)), dim}}}
	}
	return nil
}

func headingStyle(level int) style {
	switch level {
	case 1:
		return bold.and(underline)
	case 2:
		return bold
	}
	return bold.and(italic)
}

func (d document) list(n *ast.List, width, depth int) []line {
	var out []line
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(rune(n.Marker)) + " "
			number++
		}
		if !n.IsTight && len(out) > 0 {
			out = append(out, nil)
		}
		rest := strings.Repeat(" ", d.method.StringWidth(mark))
		item := d.nested(c, width, depth, span{mark, cyan}, span{text: rest}, !n.IsTight)
		if len(item) == 0 {
			item = []line{{{mark, cyan}}}
		}
		out = append(out, item...)
	}
	return out
}

// nested renders the children of n behind a margin, as long as there is room.
func (d document) nested(n ast.Node, width, depth int, first, rest span, loose bool) []line {
	inner := width - d.method.StringWidth(first.text)
	if depth >= maxNesting || inner < 8 {
		return d.blocks(n, width, depth+1, loose)
	}
	return indent(d.blocks(n, inner, depth+1, loose), first, rest)
}

// verbatim renders the raw lines of n behind a bar.
func (d document) verbatim(n ast.Node, width int, st style) []line {
	var b strings.Builder
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		b.Write(seg.Value(d.src))
	}
	if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
		b.Write(h.ClosureLine.Value(d.src))
	}
	bar := span{"│ ", dim}
	code := strings.TrimRight(b.String(), "\n")
	return indent(chop(d.method, width-2, span{code, st}), bar, bar)
}

// inline renders what stands inside a block, on top of the style st.
func (d document) inline(n ast.Node, st style) []span {
	var out []span
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out = append(out, span{d.value(c), st})
			if c.SoftLineBreak() || c.HardLineBreak() {
				// Chat replies mean the line breaks that they contain.
				out = append(out, span{"\n", st})
			}
		case *ast.String:
			out = append(out, span{clean(string(c.Value)), st})
		case *ast.CodeSpan:
			out = append(out, d.inline(c, st.and(cyan))...)
		case *ast.Emphasis:
			mark := italic
			if c.Level > 1 {
				mark = bold
			}
			out = append(out, d.inline(c, st.and(mark))...)
		case *ast.Link:
			out = append(out, d.link(d.inline(c, st.and(underline)), c.Destination)...)
		case *ast.Image:
			alt := append([]span{{"image: ", dim}}, d.inline(c, st)...)
			out = append(out, d.link(alt, c.Destination)...)
		case *ast.AutoLink:
			out = append(out, span{clean(string(c.Label(d.src))), st.and(underline)})
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				seg := c.Segments.At(i)
				out = append(out, span{clean(string(seg.Value(d.src))), dim})
			}
		default:
			out = append(out, d.inline(c, st)...)
		}
	}
	return out
}

// link shows the address too unless the label says it: a label must not hide
// where a link leads.
func (d document) link(label []span, dest []byte) []span {
	var shown strings.Builder
	for _, s := range label {
		shown.WriteString(s.text)
	}
	to := clean(string(dest))
	if to == "" || strings.TrimPrefix(to, "mailto:") == shown.String() {
		return label
	}
	return append(label, span{" (" + to + ")", dim})
}

// value resolves escapes and entities. An entity may name a control
// character, so the outcome is cleaned again.
func (d document) value(t *ast.Text) string {
	v := t.Value(d.src)
	if t.IsRaw() || t.Parent() != nil && t.Parent().Kind() == ast.KindCodeSpan {
		return strings.ReplaceAll(string(v), "\n", " ")
	}
	return clean(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(v)))))
}
