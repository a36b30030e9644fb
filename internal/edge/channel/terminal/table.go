package terminal

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// minColumn is the least width to which a table's column is squeezed.
const minColumn = 4

// table renders a paragraph that is a pipe table. goldmark's own extension
// would cost every process half a millisecond at start.
func (d document) table(n ast.Node, width int) ([]line, bool) {
	segs := n.Lines()
	if segs.Len() < 2 {
		return nil, false
	}
	raw := make([][]string, segs.Len())
	for i := range raw {
		seg := segs.At(i)
		raw[i] = splitRow(string(seg.Value(d.src)))
	}
	columns := len(raw[0])
	if columns != len(raw[1]) || !isDelimiter(raw[1]) || columns*(minColumn+3) > width {
		return nil, false
	}
	rows := make([][][]span, 0, len(raw)-1)
	for i, cells := range raw {
		if i == 1 {
			continue
		}
		st := plain
		if i == 0 {
			st = bold
		}
		row := make([][]span, columns)
		for c := range min(columns, len(cells)) {
			row[c] = d.cell(cells[c], st)
		}
		rows = append(rows, row)
	}
	return d.drawTable(rows, d.columnWidths(rows, width)), true
}

// splitRow splits a table's line at its unescaped pipes. A line without any is
// one cell.
func splitRow(s string) []string {
	s = strings.TrimSpace(s)
	s = strings.TrimPrefix(s, "|")
	var cells []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '|':
			b.WriteByte('|')
			i++
		case s[i] == '|':
			cells = append(cells, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	if b.Len() > 0 || len(cells) == 0 {
		cells = append(cells, strings.TrimSpace(b.String()))
	}
	return cells
}

// isDelimiter reports whether cells are those of a table's second line.
func isDelimiter(cells []string) bool {
	for _, c := range cells {
		dashes := strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return false
		}
	}
	return len(cells) > 1 || len(cells) == 1 && strings.HasPrefix(cells[0], "-")
}

// cell renders one cell's inline Markdown.
func (d document) cell(s string, st style) []span {
	src := []byte(s)
	doc := d.parser.Parse(text.NewReader(src))
	first := doc.FirstChild()
	if first == nil || first.NextSibling() != nil || first.Kind() != ast.KindParagraph {
		return []span{{clean(s), st}}
	}
	return document{d.markdown, src}.inline(first, st)
}

// columnWidths gives each column what it needs, or, where the table is too
// wide, takes from the widest ones.
func (d document) columnWidths(rows [][][]span, width int) []int {
	widths := make([]int, len(rows[0]))
	total := 3 * (len(widths) - 1)
	for c := range widths {
		widths[c] = 1
		for _, row := range rows {
			widths[c] = max(widths[c], line(row[c]).width(d.method))
		}
		widths[c] = min(widths[c], width)
		total += widths[c]
	}
	for ; total > width; total-- {
		widest := 0
		for c := range widths {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		widths[widest]--
	}
	return widths
}

func (d document) drawTable(rows [][][]span, widths []int) []line {
	var out []line
	for i, row := range rows {
		cells := make([][]line, len(row))
		height := 1
		for c := range row {
			cells[c] = wrap(d.method, widths[c], row[c]...)
			height = max(height, len(cells[c]))
		}
		for y := range height {
			var l line
			for c := range cells {
				if c > 0 {
					l = append(l, span{" │ ", dim})
				}
				var part line
				if y < len(cells[c]) {
					part = cells[c][y]
				}
				fill := max(0, widths[c]-part.width(d.method))
				l = append(append(l, part...), span{text: strings.Repeat(" ", fill)})
			}
			out = append(out, l)
		}
		if i == 0 {
			var rule strings.Builder
			for c, w := range widths {
				if c > 0 {
					rule.WriteString("─┼─")
				}
				rule.WriteString(strings.Repeat("─", w))
			}
			out = append(out, line{{rule.String(), dim}})
		}
	}
	return out
}
