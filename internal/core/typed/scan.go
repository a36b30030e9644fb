package typed

import "strings"

// scanner finds where JSON values stand in a text. Whether one begins at a
// place does not depend on what is before it, so each place is looked at once,
// however many attempts lead there.
type scanner struct {
	text      string
	ends      map[int]int  // of a { or [: the end of its value, 0 if none is there
	torn      map[int]bool // of a { or [: its value breaks off behind some of its parts
	lastClose int          // where the last </findings> begins, -1 if there is none
}

func newScanner(text string) *scanner {
	return &scanner{text: text, ends: map[int]int{}, torn: map[int]bool{}, lastClose: strings.LastIndex(text, findingsClose)}
}

// expect is what may come next within a list or an object.
type expect int

const (
	aValue expect = iota
	aValueOrEnd
	aKey
	aKeyOrEnd
	aColon
	aCommaOrEnd
)

// value returns the end of the JSON value that begins at i, 0 if none does.
func (s *scanner) value(i int) int {
	if i >= len(s.text) {
		return 0
	}
	switch c := s.text[i]; c {
	case '{', '[':
		return s.container(i)
	case '"':
		return s.quoted(i)
	default:
		return s.word(i)
	}
}

// nest is a list or an object that is being read.
type nest struct {
	at    int
	begun bool // it has a part
	on    bool // and a comma behind it
}

// container returns the end of the object or list that begins at start.
func (s *scanner) container(start int) int {
	if end, known := s.ends[start]; known {
		return end
	}
	open := []nest{{at: start}}
	next := opening(s.text[start])
	for i := start + 1; ; {
		i = s.blank(i)
		if i >= len(s.text) {
			return s.fail(open, i)
		}
		in := &open[len(open)-1]
		switch c := s.text[i]; {
		case (c == '}' || c == ']') && closes(next, s.text[in.at], c):
			i++
			s.ends[in.at] = i
			if open = open[:len(open)-1]; len(open) == 0 {
				return i
			}
			open[len(open)-1].begun = true
			next = aCommaOrEnd
		case next == aCommaOrEnd && c == ',':
			i++
			in.on, next = true, aValue
			if s.text[in.at] == '{' {
				next = aKey
			}
		case next == aColon && c == ':':
			i++
			next = aValue
		case (next == aKey || next == aKeyOrEnd) && c == '"':
			end := s.quoted(i)
			if end == 0 {
				return s.fail(open, i)
			}
			i, next = end, aColon
		case next == aValue || next == aValueOrEnd:
			end, known := s.ends[i]
			if !known && (c == '{' || c == '[') {
				open, next = append(open, nest{at: i}), opening(c)
				i++
				continue
			}
			if !known {
				end = s.value(i)
			}
			if end == 0 {
				return s.fail(open, i)
			}
			i, next = end, aCommaOrEnd
			in.begun = true
		default:
			return s.fail(open, i)
		}
	}
}

func opening(c byte) expect {
	if c == '{' {
		return aKeyOrEnd
	}
	return aValueOrEnd
}

// closes reports whether c may end a container that began with begun.
func closes(next expect, begun, c byte) bool {
	if begun == '{' {
		return c == '}' && (next == aKeyOrEnd || next == aCommaOrEnd)
	}
	return c == ']' && (next == aValueOrEnd || next == aCommaOrEnd)
}

// fail notes that the open containers are none, because of what stands at i. A
// reader would still say that they are JSON, if broken, where one goes on behind
// a part of it, or where the text or another one ends behind that part.
func (s *scanner) fail(open []nest, i int) int {
	over := i >= len(s.text) || s.text[i] == '}' || s.text[i] == ']'
	for _, in := range open {
		s.ends[in.at] = 0
		if in.on || in.begun && over {
			s.torn[open[0].at] = true
		}
	}
	return 0
}

// single reports whether the text from i on can only be meant as one list or
// object, though it is none.
func (s *scanner) single(i int) bool {
	first := s.at(i)
	end := strings.TrimRight(s.text, " \t\r\n")
	if first == '[' && strings.HasSuffix(end, "]") {
		return strings.IndexByte(`{["`, s.at(s.blank(i+1))) >= 0
	}
	key := s.blank(i + 1)
	if first != '{' || !strings.HasSuffix(end, "}") || s.at(key) != '"' {
		return false
	}
	behind := s.quoted(key)
	return behind > 0 && s.at(s.blank(behind)) == ':'
}

// past returns where what stands in the brackets at i ends, the end of the text
// if they never close. Brackets in texts don't count.
func (s *scanner) past(i int) int {
	for deep := 0; i < len(s.text); i++ {
		switch s.text[i] {
		case '"':
			i = max(i, s.quoted(i)-1)
		case '{', '[':
			deep++
		case '}', ']':
			if deep--; deep == 0 {
				return i + 1
			}
		}
	}
	return i
}

// quoted returns the end of the string that begins at i, 0 if it is none.
func (s *scanner) quoted(i int) int {
	for i++; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return 0
		case c == '\\':
			if i++; i >= len(s.text) || !strings.ContainsRune(`"\/bfnrtu`, rune(s.text[i])) {
				return 0
			}
			if s.text[i] == 'u' {
				if len(s.text)-i <= 4 || strings.Trim(s.text[i+1:i+5], "0123456789abcdefABCDEF") != "" {
					return 0
				}
				i += 4
			}
		}
	}
	return 0
}

// word returns the end of the number, true, false or null that begins at i, 0
// if none does.
func (s *scanner) word(i int) int {
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(s.text[i:], w) {
			return i + len(w)
		}
	}
	if s.at(i) == '-' {
		i++
	}
	end := s.digits(i)
	switch {
	case end == i:
		return 0
	case s.text[i] == '0':
		end = i + 1
	}
	if s.at(end) == '.' {
		fraction := s.digits(end + 1)
		if fraction == end+1 {
			return 0
		}
		end = fraction
	}
	if c := s.at(end); c == 'e' || c == 'E' {
		exp := end + 1
		if c := s.at(exp); c == '+' || c == '-' {
			exp++
		}
		if end = s.digits(exp); end == exp {
			return 0
		}
	}
	return end
}

// at is the byte at i, 0 behind the end.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

func (s *scanner) digits(i int) int {
	for i < len(s.text) && s.text[i] >= '0' && s.text[i] <= '9' {
		i++
	}
	return i
}

// blank skips what JSON takes as white space.
func (s *scanner) blank(i int) int {
	for i < len(s.text) && strings.IndexByte(" \t\r\n", s.text[i]) >= 0 {
		i++
	}
	return i
}
