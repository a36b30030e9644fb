package workspace

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// clean makes text of a file's bytes: no byte order mark, lines that end in
// \n, valid UTF-8.
func clean(data []byte) (text, warning string) {
	if bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}) {
		return "", "is UTF-16; it was not read; save it as UTF-8"
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", "holds zero bytes and is no text; it was not read"
	}
	text = string(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if !utf8.ValidString(text) {
		bad := 0
		for i, r := range text {
			if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
				bad++
			}
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		warning = fmt.Sprintf("is not UTF-8: %d bytes were replaced; save it as UTF-8", bad)
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), warning
}

// text is as much of a file's text as any cut of it can need.
type text struct {
	chars      int
	whole      string // if it is no longer than the cap of a file
	head, tail string // else: each as long as that cap
}

// keep drops the middle of s that no cut to at most most characters shows.
func keep(s string, most int) text {
	t := text{chars: utf8.RuneCountInString(s)}
	if t.chars <= most {
		t.whole = s
		return t
	}
	t.head, t.tail = strings.Clone(first(s, most)), strings.Clone(last(s, most))
	return t
}

// room is how many characters a file may have. total says that this is what
// the other files left over.
type room struct {
	most  int
	total bool
}

// piece is a text cut to some room.
type piece struct {
	text    string
	chars   int
	dropped int
	warning string
}

// cut shortens the text to the room, of which the head gets three quarters. A
// text that is longer than the cap of a file never gets more room than that.
func (t text) cut(name string, r room) piece {
	if t.chars <= r.most {
		return piece{text: t.whole, chars: t.chars}
	}
	limit := "context.fileMaxChars"
	if r.total {
		limit = "context.totalMaxChars"
	}
	// The marker is as long as it can get, so that the result fits.
	left := r.most - len(marker(name, t.chars))
	if left < 0 {
		return piece{dropped: t.chars, warning: fmt.Sprintf(
			"was left out: its %d characters don't fit (%s); shorten it or raise the cap", t.chars, limit)}
	}
	head, tail := t.head, t.tail
	if t.whole != "" {
		head, tail = t.whole, t.whole
	}
	n := left * 3 / 4
	p := piece{dropped: t.chars - left}
	p.text = first(head, n) + marker(name, p.dropped) + last(tail, left-n)
	p.chars = left + utf8.RuneCountInString(marker(name, p.dropped))
	p.warning = fmt.Sprintf("was cut: %d of its %d characters were dropped from the middle (%s); shorten it or raise the cap", p.dropped, t.chars, limit)
	return p
}

// marker stands where characters were dropped.
func marker(name string, dropped int) string {
	return fmt.Sprintf("\n\n[... %d characters of %s dropped here ...]\n\n", dropped, name)
}

// first is the first n characters of s.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// last is the last n characters of s.
func last(s string, n int) string {
	end := len(s)
	for ; n > 0 && end > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return s[end:]
}

func warnings(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
