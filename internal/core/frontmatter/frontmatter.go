package frontmatter

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of what is read.
const (
	MaxFile   = 1 << 20  // bytes of a file
	MaxHead   = 64 << 10 // bytes of its frontmatter
	MaxDepth  = 32       // values inside values
	MaxValues = 10_000   // values in one frontmatter, aliases followed
)

// Problem is something wrong in a file, for a person: what, where, what to do.
// Line and Col begin at 1; Col counts characters.
type Problem struct {
	Line    int
	Col     int
	Message string
	Hint    string
}

// Document is a file that could be read.
type Document struct {
	Fields   []Field // in the file's order, no key twice
	Body     string  // byte for byte
	BodyLine int     // the line it begins on
	Warnings []Problem
}

// Field returns the top-level field with exactly this key.
func (d Document) Field(key string) (Field, bool) { return find(d.Fields, key) }

// Parse reads a file. If it returns problems, the file can't be used; the
// document then holds the body, if that much was clear, and no fields.
//
// Before giving up on YAML that can't be read, it tries one recovery: top-level
// lines of the form `key: text: with colon` (an unquoted value that holds a
// colon and a space, or ends in a colon) are read as if the value, up to the
// end of its line, stood in quotes. Each such line is a warning.
func Parse(data []byte) (Document, []Problem) {
	head, doc, problem := split(data)
	if problem != nil {
		return doc, []Problem{*problem}
	}
	fields, problems := parseYAML(head.text, head.line)
	if problems == nil {
		doc.Fields = fields
		return doc, nil
	}
	text, warnings := recoverColons(head)
	if len(warnings) > 0 {
		if fields, again := parseYAML(text, head.line); again == nil {
			doc.Fields, doc.Warnings = fields, append(doc.Warnings, warnings...)
			return doc, nil
		} else {
			problems = []Problem{spansLines(head, warnings, again[0])}
		}
	}
	return doc, problems
}

// head is the text between the delimiters and the line of the file on which it
// begins. Line ends are plain newlines.
type head struct {
	text string
	line int
}

func split(data []byte) (head, Document, *Problem) {
	var doc Document
	if problem := unreadable(data); problem != nil {
		return head{}, doc, problem
	}
	rest := strings.TrimPrefix(string(data), "\ufeff")
	line := 1
	for rest != "" {
		first, after := cutLine(rest)
		if strings.TrimSpace(first) != "" {
			break
		}
		rest, line = after, line+1
	}
	if line > 1 && rest != "" {
		doc.Warnings = append(doc.Warnings, Problem{1, 1, "blank lines stand before the frontmatter", "begin the file with ---; other programs need that"})
	}
	first, rest := cutLine(rest)
	if strings.TrimRight(first, " \t") != "---" {
		return head{}, doc, noStart(first, line)
	}
	start := line + 1
	for at, n := 0, start; at < len(rest); n++ {
		l, after := cutLine(rest[at:])
		if strings.TrimRight(l, " \t") == "---" {
			if at > MaxHead {
				return head{}, doc, &Problem{start, 1, fmt.Sprintf("the frontmatter has %d bytes; %d are allowed", at, MaxHead), "move long text below the closing ---"}
			}
			doc.Body, doc.BodyLine = after, n+1
			text := strings.ReplaceAll(rest[:at], "\r\n", "\n")
			return head{text: text, line: start}, doc, nil
		}
		at = len(rest) - len(after)
	}
	return head{}, doc, noEnd(rest, line)
}

// cutLine returns the first line without its end, and what follows it.
func cutLine(s string) (line, after string) {
	line, after, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), after
}

func unreadable(data []byte) *Problem {
	switch {
	case len(data) > MaxFile:
		return &Problem{1, 1, fmt.Sprintf("the file has %d bytes; %d are allowed", len(data), MaxFile), "shorten it; long material belongs in a file of its own that it refers to"}
	case len(bytes.TrimSpace(data)) == 0:
		return &Problem{1, 1, "the file is empty", "begin it with a frontmatter between two lines ---"}
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return &Problem{1, 1, "the file is UTF-16", "save it as UTF-8"}
	}
	bad, what := bytes.IndexByte(data, 0), "a zero byte"
	if bad < 0 {
		if bad = invalidUTF8(data); bad < 0 {
			return nil
		}
		what = fmt.Sprintf("the byte 0x%02x is no UTF-8", data[bad])
	}
	before := data[:bad]
	return &Problem{
		1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]),
		"the file is not text: " + what, "save it as UTF-8",
	}
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func noStart(first string, line int) *Problem {
	trimmed := strings.TrimSpace(first)
	p := &Problem{line, 1, "the file has no frontmatter", "begin it with a line ---, then `name: …` and `description: …`, then another ---"}
	switch {
	case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
		p.Message = "the file begins with a code fence, not with a frontmatter"
		p.Hint = "remove this line and the closing fence"
	case trimmed == "---":
		p.Message, p.Hint = "the opening --- is indented", "remove the spaces before it"
	case strings.Trim(trimmed, "-") == "" && len(trimmed) > 1:
		p.Message = fmt.Sprintf("the opening delimiter has %d dashes", len(trimmed))
		p.Hint = "write exactly three: ---"
	case strings.HasPrefix(trimmed, "---"):
		p.Message, p.Hint = "text follows the opening --- on its line", "put it on a line of its own"
	case strings.Trim(trimmed, "—–-―") == "" && trimmed != "":
		p.Message, p.Hint = "the opening delimiter is made of other dashes", "write three plain hyphens: ---"
	case trimmed == "+++":
		p.Message, p.Hint = "the frontmatter is TOML (+++)", "write it as YAML between two lines ---"
	case strings.HasPrefix(trimmed, "{"):
		p.Message = "the file is JSON, not markdown with a frontmatter"
	}
	return p
}

// noEnd names the line that was probably meant to close the frontmatter.
func noEnd(rest string, opened int) *Problem {
	p := &Problem{opened, 1, "the frontmatter that opens here has no closing ---", "add a line --- above the body"}
	for n := opened + 1; rest != ""; n++ {
		var l string
		l, rest = cutLine(rest)
		trimmed := strings.TrimSpace(l)
		switch {
		case trimmed == "---":
			p.Line, p.Message, p.Hint = n, "the closing --- is indented", "remove the spaces before it"
		case trimmed == "...":
			p.Line, p.Message, p.Hint = n, "the frontmatter is closed by ...", "close it with a line ---"
		case len(trimmed) > 1 && strings.Trim(trimmed, "-") == "":
			p.Line, p.Message, p.Hint = n, fmt.Sprintf("the closing delimiter has %d dashes", len(trimmed)), "write exactly three: ---"
		case len(trimmed) > 2 && strings.Trim(trimmed, "—–-―") == "":
			p.Line, p.Message, p.Hint = n, "the closing delimiter is made of other dashes", "write three plain hyphens: ---"
		case len(trimmed) > 3 && strings.HasPrefix(l, "---"):
			p.Line, p.Message, p.Hint = n, "text follows the closing --- on its line", "put it on a line of its own"
		default:
			continue
		}
		return p
	}
	return p
}
