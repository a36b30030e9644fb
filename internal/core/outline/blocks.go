package outline

import "strings"

// fixed begins with one text and ends with another.
func fixed(open, end string) func(string) (int, string) {
	return func(s string) (int, string) {
		if strings.HasPrefix(s, open) {
			return len(open), end
		}
		return 0, ""
	}
}

func starred(nested bool) block {
	return block{open: fixed("/*", "*/"), comment: true, multiline: true, nested: nested}
}

func quoted(quote string) block { return block{open: fixed(quote, quote), escapes: true} }

func tripled(quote string) block {
	return block{open: fixed(quote, quote), escapes: true, multiline: true}
}

func raw(open, end string) block { return block{open: fixed(open, end), multiline: true} }

// verbatim is C#'s string in which "" is a quote.
func verbatim(open string) block {
	return block{open: fixed(open, `"`), doubled: true, multiline: true}
}

// with lets code stand in a string, from start to a closing brace.
func (b block) with(start string) block {
	b.code = start
	return b
}

// prefixed begins with at most two of letters and then the quote.
func prefixed(letters, quote string) func(string) (int, string) {
	return func(s string) (int, string) {
		n := 0
		for n < 2 && n < len(s) && strings.IndexByte(letters, s[n]) >= 0 {
			n++
		}
		if strings.HasPrefix(s[n:], quote) {
			return n + len(quote), quote
		}
		return 0, ""
	}
}

// rustRaw begins as r#" with any number of #, which the end repeats.
func rustRaw(s string) (int, string) {
	n := 0
	if strings.HasPrefix(s, "b") {
		n = 1
	}
	if !strings.HasPrefix(s[n:], "r") {
		return 0, ""
	}
	hashes := run(s[n+1:], '#', 16)
	if !strings.HasPrefix(s[n+1+hashes:], `"`) {
		return 0, ""
	}
	return n + 1 + hashes + 1, `"` + strings.Repeat("#", hashes)
}

// cppRaw begins as R"label(.
func cppRaw(s string) (int, string) {
	if !strings.HasPrefix(s, `R"`) {
		return 0, ""
	}
	open := strings.IndexByte(s[:min(len(s), 20)], '(')
	if open < 0 {
		return 0, ""
	}
	return open + 1, ")" + s[2:open] + `"`
}

// luaLong begins as [==[ after a prefix.
func luaLong(prefix string) func(string) (int, string) {
	return func(s string) (int, string) {
		rest, found := strings.CutPrefix(s, prefix+"[")
		level := run(rest, '=', 16)
		if !found || !strings.HasPrefix(rest[level:], "[") {
			return 0, ""
		}
		return len(prefix) + 1 + level + 1, "]" + strings.Repeat("=", level) + "]"
	}
}

func run(s string, c byte, most int) int {
	n := 0
	for n < len(s) && n < most && s[n] == c {
		n++
	}
	return n
}

// label begins as <<LABEL: the operator, one of marks if there is one, blanks
// if they are allowed, quotes if there are some.
func label(operator, marks string, blanks, lower bool) func(string) (int, string) {
	return func(s string) (int, string) {
		rest, found := strings.CutPrefix(s, operator)
		if !found {
			return 0, ""
		}
		if rest != "" && strings.IndexByte(marks, rest[0]) >= 0 {
			rest = rest[1:]
		}
		if blanks {
			rest = rest[run(rest, ' ', 8):]
		}
		quote := ""
		if rest != "" && strings.IndexByte(`"'\`, rest[0]) >= 0 {
			quote, rest = rest[:1], rest[1:]
		}
		n := 0
		for n < len(rest) && n < 64 && (rest[n] == '_' || 'A' <= rest[n] && rest[n] <= 'Z' || (lower || n > 0) && 'a' <= rest[n] && rest[n] <= 'z' || n > 0 && '0' <= rest[n] && rest[n] <= '9') {
			n++
		}
		if n == 0 {
			return 0, ""
		}
		end := rest[:n]
		rest = rest[n:]
		if quote != `\` {
			rest = strings.TrimPrefix(rest, quote)
		}
		return len(s) - len(rest), end
	}
}
