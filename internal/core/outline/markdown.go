package outline

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"goclaw/internal/core/frontmatter"
)

// maxMarkdownLine bounds how deep a line can nest.
const maxMarkdownLine = 500

// Markdown lists the keys of the front matter, the headings with their lines,
// and the languages of the code blocks. It is "" if there are none of them.
func Markdown(source string) string {
	if len(source) > MaxText || !utf8.ValidString(source) {
		return ""
	}
	var out list
	offset := 0
	if strings.HasPrefix(source, "---") {
		doc, _ := frontmatter.Parse([]byte(source))
		if doc.BodyLine > 0 {
			offset, source = doc.BodyLine-1, doc.Body
			keys := make([]string, len(doc.Fields))
			for i, f := range doc.Fields {
				keys[i] = f.Key
			}
			out.add(1, 0, "front matter: "+strings.Join(keys, ", "))
		}
	}
	src := []byte(shortLines(source))
	// Blocks alone: headings need no inline markup, and it is that which can be slow.
	doc := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...)).Parse(text.NewReader(src))
	lines := lineCounter{src: src, line: 1}
	fences := map[string]int{}
	var order []string
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // its error is ours, and we return none
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Lines().Len() > 0 {
				at := n.Lines().At(0)
				title := string(n.Lines().Value(src))
				out.add(offset+lines.at(at.Start), 0, strings.Repeat("#", n.Level)+" "+title)
			}
		case *ast.FencedCodeBlock:
			language := clip(string(n.Language(src)), 40)
			if language == "" {
				language = "plain"
			}
			if fences[language]++; fences[language] == 1 {
				order = append(order, language)
			}
		}
		return ast.WalkContinue, nil
	})
	if len(order) > 0 {
		counts := make([]string, 0, min(len(order), 20))
		for _, language := range order[:min(len(order), 20)] {
			counts = append(counts, fmt.Sprintf("%s %d", language, fences[language]))
		}
		out.WriteString("code blocks: " + strings.Join(counts, ", ") + "\n")
	}
	return out.String()
}

// shortLines cuts lines so that none is longer than maxMarkdownLine. Their
// number stays.
func shortLines(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.Lines(s) {
		if len(line) > maxMarkdownLine {
			line = clip(line, maxMarkdownLine) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// lineCounter tells the lines of growing offsets.
type lineCounter struct {
	src        []byte
	seen, line int
}

func (c *lineCounter) at(offset int) int {
	if offset > c.seen {
		c.line += bytes.Count(c.src[c.seen:offset], []byte("\n"))
		c.seen = offset
	}
	return c.line
}
