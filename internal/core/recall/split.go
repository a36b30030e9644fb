package recall

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Chunk is a piece of a text that is found as one.
type Chunk struct {
	ID      string // of title and text: the same wherever they stand
	Title   string // the headings above it, joined by " > "
	Text    string
	Line    int // the first, from 1
	EndLine int
}

const (
	goodChunk = 700  // bytes at which the next paragraph begins another chunk
	mostChunk = 1400 // bytes that no chunk passes
)

// Split cuts a markdown text into chunks: at headings always, else between
// paragraphs and items of lists, within these only where they are long.
func Split(text string) []Chunk {
	s := splitter{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	for i := 0; i < len(s.lines); {
		i = s.block(i)
	}
	s.flush()
	return s.chunks
}

type splitter struct {
	lines    []string
	headings []heading
	chunks   []Chunk

	text string // of the chunk that is gathered
	from int    // its first line, from 0
	to   int    // the line behind it
	bare bool   // no text has followed the newest heading
}

type heading struct {
	level int
	text  string
	line  int
}

// block takes the block that begins at line i, and returns the line behind it.
func (s *splitter) block(i int) int {
	line := s.lines[i]
	if blank(line) || comment(line) {
		return i + 1
	}
	if h, ok := headingOf(line); ok {
		if n := len(s.headings); n > 0 && h.level > s.headings[n-1].level {
			s.bare = false // it is the title of what follows
		}
		s.flush()
		h.line = i
		for len(s.headings) > 0 && s.headings[len(s.headings)-1].level >= h.level {
			s.headings = s.headings[:len(s.headings)-1]
		}
		s.headings = append(s.headings, h)
		s.bare = true
		return i + 1
	}
	end := i + 1
	if fence := fenceOf(line); fence != "" {
		for end < len(s.lines) && !strings.HasPrefix(strings.TrimSpace(s.lines[end]), fence) {
			end++
		}
		end = min(end+1, len(s.lines))
	} else {
		for end < len(s.lines) && !blank(s.lines[end]) && !begins(s.lines[end]) {
			end++
		}
	}
	s.add(i, end)
	return end
}

// begins reports whether a line begins a block of its own.
func begins(line string) bool {
	_, isHeading := headingOf(line)
	return isHeading || fenceOf(line) != "" || isItem(line) || comment(line)
}

// add puts the lines of a block into the chunk, or begins another with them.
func (s *splitter) add(from, to int) {
	text := strings.TrimRight(strings.Join(s.lines[from:to], "\n"), " \t\n")
	s.bare = false
	if s.text != "" && len(s.text)+len(text) > goodChunk {
		s.flush()
	}
	if len(text) > mostChunk {
		s.flush()
		s.long(from, to)
		return
	}
	if s.text == "" {
		s.from, s.text = from, text
	} else {
		gap := "\n"
		if from > s.to {
			gap = "\n\n"
		}
		s.text += gap + text
	}
	s.to = to
}

// long cuts a long block at its lines, and long lines between sentences or
// words.
func (s *splitter) long(from, to int) {
	for i := from; i < to; i++ {
		for _, piece := range pieces(s.lines[i]) {
			if s.text != "" && len(s.text)+len(piece) > goodChunk {
				s.flush()
			}
			if s.text == "" {
				s.from, s.text = i, piece
			} else {
				s.text += "\n" + piece
			}
			s.to = i + 1
		}
	}
	s.flush()
}

// pieces cuts a line into parts of at most goodChunk bytes.
func pieces(line string) []string {
	var out []string
	for len(line) > goodChunk {
		cut := lastEnd(line[:goodChunk])
		out = append(out, strings.TrimRight(line[:cut], " "))
		line = strings.TrimLeft(line[cut:], " ")
	}
	if line = strings.TrimRight(line, " \t"); line != "" {
		out = append(out, line)
	}
	return out
}

// lastEnd is where to cut: behind the last sentence, else behind the last
// word, else between two characters.
func lastEnd(s string) int {
	for _, end := range []string{". ", "! ", "? ", "; ", " "} {
		if i := strings.LastIndex(s, end); i > len(s)/3 {
			return i + len(end)
		}
	}
	i := len(s)
	for i > 1 && !utf8.ValidString(s[:i]) {
		i--
	}
	return i
}

// flush ends the chunk that is gathered. A heading with nothing below it is a
// chunk by itself.
func (s *splitter) flush() {
	text, from, to := s.text, s.from, s.to
	title := s.headings
	if text == "" {
		if !s.bare {
			return
		}
		last := s.headings[len(s.headings)-1]
		text, from, to, title = last.text, last.line, last.line+1, s.headings[:len(s.headings)-1]
		s.bare = false
		if text == "" {
			return
		}
	}
	var names []string
	for _, h := range title {
		if h.text != "" {
			names = append(names, h.text)
		}
	}
	c := Chunk{Title: strings.Join(names, " > "), Text: text, Line: from + 1, EndLine: to}
	sum := sha256.Sum256([]byte(c.Title + "\x00" + c.Text))
	c.ID = hex.EncodeToString(sum[:16])
	s.chunks = append(s.chunks, c)
	s.text = ""
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

func headingOf(line string) (heading, bool) {
	level := 0
	for level < len(line) && line[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(line) && line[level] != ' ' && line[level] != '\t' {
		return heading{}, false
	}
	return heading{level: level, text: strings.TrimSpace(strings.TrimRight(strings.TrimSpace(line[level:]), "#"))}, true
}

// fenceOf is the mark that begins, and ends, a block of code.
func fenceOf(line string) string {
	line = strings.TrimSpace(line)
	for _, fence := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, fence) {
			return fence
		}
	}
	return ""
}

// isItem reports whether a line begins an item of the outermost list.
func isItem(line string) bool {
	if len(line) > 1 && strings.ContainsRune("-*+", rune(line[0])) {
		return line[1] == ' ' || line[1] == '\t'
	}
	digits := 0
	for digits < len(line) && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	return digits > 0 && digits < 4 && digits+1 < len(line) && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' '
}

// comment reports whether a line is nothing but an HTML comment, as the marks of
// notes are.
func comment(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "<!--") && strings.HasSuffix(line, "-->") && strings.Count(line, "-->") == 1
}
