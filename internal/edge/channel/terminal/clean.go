package terminal

import (
	"strings"
	"unicode/utf8"
)

const esc = '\x1b'

// clean removes from outside text whatever could steer a terminal or deceive
// its reader: escape sequences, control characters, invalid UTF-8 and
// direction overrides. Newlines stay, tabs become four spaces.
func clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == esc:
			n = sequenceLen(s[i:])
		case r == '\t':
			b.WriteString("    ")
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
		case r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case !steers(r):
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func isClean(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != '\n' && (c < ' ' || c >= 0x7f) {
			return false
		}
	}
	return true
}

// steers reports whether r acts on a terminal instead of being shown.
func steers(r rune) bool {
	switch {
	case r == '\n':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, // direction marks and overrides
		r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb:
		return true
	}
	return false
}

// maxSequence bounds a string sequence (OSC, DCS, …): what is longer, or never
// ends, loses its introducer only, so that no text can hide what follows it.
const maxSequence = 4096

// sequenceLen returns the length of the escape sequence that s starts with.
func sequenceLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		return skipTo(s, 2, 0x40, 0x7e)
	case ']', 'P', 'X', '^', '_':
		body := s[2:min(len(s), maxSequence)]
		for i := 0; i < len(body); i++ {
			switch {
			case body[i] == '\a':
				return 2 + i + 1
			case body[i] == esc:
				if i+1 < len(body) && body[i+1] == '\\' {
					return 2 + i + 2
				}
				return 2 + i
			}
		}
		return 2
	}
	return skipTo(s, 1, 0x30, 0x7e)
}

// skipTo returns the length of s up to and with its first byte, at i or later,
// between lo and hi; parameter bytes may precede it, anything else ends the
// sequence.
func skipTo(s string, i int, lo, hi byte) int {
	for ; i < len(s); i++ {
		c := s[i]
		if c >= lo && c <= hi {
			return i + 1
		}
		if c < 0x20 || c > 0x3f {
			break
		}
	}
	return i
}

// oneLine cleans s and folds its white space into single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
