package typed

import (
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
)

// maxTag bounds how long an opening tag may be.
const maxTag = 4096

// roots is where elements of one name stand in a text.
type roots struct {
	all  []span // complete ones that don't lie within others
	open []int  // where those begin that are never closed
}

// last is the last complete one.
func (r roots) last() (span, bool) {
	if len(r.all) == 0 {
		return span{}, false
	}
	return r.all[len(r.all)-1], true
}

// root finds the elements of a name. Outside of elements, findings
// are passed over if they were asked for.
func root(text, tag string, findings bool) roots {
	var r roots
	s := newScanner(text)
	lastCDATA := strings.LastIndex(text, "]]>")
	for i := 0; ; {
		n := strings.IndexByte(text[i:], '<')
		if n < 0 {
			return r
		}
		i += n
		if len(r.open) == 0 && findings && tag != findingsKey {
			if b, ok := s.block(i); ok {
				i = b.end
				continue
			}
		}
		if len(r.open) > 0 && i < lastCDATA && strings.HasPrefix(text[i:], "<![CDATA[") {
			i += strings.Index(text[i:], "]]>")
			continue
		}
		kind, end := tagAt(text, i, tag)
		if kind != notATag && !mentioned(text, i, end) {
			r.take(kind, i, end)
		}
		i = end
	}
}

// take adds a tag.
func (r *roots) take(kind tagKind, start, end int) {
	switch kind {
	case opens:
		r.open = append(r.open, start)
		return
	case closing:
		if len(r.open) == 0 {
			return
		}
		start = r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
	case empty:
		if len(r.open) > 0 {
			return
		}
	}
	for len(r.all) > 0 && r.all[len(r.all)-1].start > start {
		r.all = r.all[:len(r.all)-1]
	}
	r.all = append(r.all, span{start, end})
}

type tagKind int

const (
	notATag tagKind = iota
	opens
	closing
	empty
)

// tagAt reads the tag of that name at i, where a < stands. The end of what is
// no such tag is behind the <.
func tagAt(text string, i int, tag string) (tagKind, int) {
	if rest, ok := strings.CutPrefix(text[i:], "</"+tag); ok {
		if rest = strings.TrimLeft(rest, " \t\r\n"); strings.HasPrefix(rest, ">") {
			return closing, len(text) - len(rest) + 1
		}
		return notATag, i + 1
	}
	rest, ok := strings.CutPrefix(text[i:], "<"+tag)
	if !ok || rest == "" || !strings.ContainsRune(" \t\r\n/>", rune(rest[0])) {
		return notATag, i + 1
	}
	from := len(text) - len(rest)
	quote := byte(0)
	for at := from; at < min(len(text), i+maxTag); at++ {
		switch c := text[at]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			return notATag, i + 1
		case c == '>' && text[at-1] == '/':
			return empty, at + 1
		case c == '>':
			return opens, at + 1
		}
	}
	return notATag, i + 1
}

// mentioned reports whether what stands there has quotes or backticks of its
// own.
func mentioned(text string, start, end int) bool {
	return start > 0 && end < len(text) && text[start-1] == text[end] && strings.IndexByte("'\"`", text[end]) >= 0
}

// completed finds the element whose closing tag was a stop sequence: the one
// that is open at the end. Servers that report a stop sequence as a natural
// end are believed if nothing else is complete.
func completed(o definition.Output, text string, r roots, stop goclaw.StopReason) (span, bool) {
	stops := slices.ContainsFunc(o.Stop, func(s string) bool { return strings.TrimSpace(s) == "</"+o.Tag+">" })
	if !stops || stop != goclaw.StopSequence && (stop != goclaw.StopEnd || len(r.all) > 0) {
		return span{}, false
	}
	last, _ := r.last()
	var behind, lines []int
	for _, at := range r.open {
		if at < last.end {
			continue
		}
		behind = append(behind, at)
		if before := strings.TrimRight(text[:at], " \t\r"); before == "" || strings.HasSuffix(before, "\n") {
			lines = append(lines, at)
		}
	}
	// A tag within a line may only be talked of; of two roots, the stop
	// sequence has ended the inner one. What holds another open root is none
	// that a reader could tell from it.
	for _, candidates := range [][]int{lines, behind} {
		if len(candidates) == 1 && candidates[0] == behind[len(behind)-1] {
			return span{candidates[0], len(text)}, true
		}
	}
	return span{}, false
}
