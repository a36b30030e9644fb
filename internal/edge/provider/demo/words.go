package demo

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// fillers are words that say nothing about a topic.
const fillers = ` a about all an and any are as at be between by can did do does file files find for from has have
how i in information into is it its look me more most my of on or our research say says should some summarise
summarize summary tell than that the their them then there these they this those to was were what when where
which who why will with workspace workspace's would you your `

const maxStems = 8

// stems are the significant words of a topic, in lower case and cut to what
// their inflections have in common.
func stems(topic string) []string {
	fields := strings.FieldsFunc(strings.ToLower(topic), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '_'
	})
	var all, good []string
	for _, w := range fields {
		w = strings.Trim(w, "'_")
		w = strings.TrimSuffix(w, "'s")
		if w == "" {
			continue
		}
		all = append(all, stem(w))
		if !strings.Contains(fillers, " "+w+" ") && !strings.Contains(fillers, "\n"+w+" ") && !strings.Contains(fillers, " "+w+"\n") {
			good = append(good, stem(w))
		}
	}
	if len(good) == 0 {
		good = all // "The Who" is a topic too
	}
	slices.Sort(good)
	good = slices.Compact(good)
	if len(good) > maxStems {
		// Long words tell more than short ones.
		slices.SortStableFunc(good, func(a, b string) int { return len(b) - len(a) })
		good = good[:maxStems]
		slices.Sort(good)
	}
	return good
}

// stem cuts the commonest English endings off a lower-case word.
func stem(w string) string {
	for _, end := range []string{"ies", "ing", "ed", "es", "s", "y"} {
		rest, ok := strings.CutSuffix(w, end)
		if !ok || len([]rune(rest)) < 3 || end == "s" && strings.HasSuffix(rest, "s") {
			continue
		}
		if end == "es" && !endsInHiss(rest) {
			continue // tides: the s goes, the e is the word's
		}
		return rest
	}
	return w
}

func endsInHiss(s string) bool {
	for _, h := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(s, h) {
			return true
		}
	}
	return false
}

// pattern is a regular expression that finds words beginning with a stem.
func pattern(stems []string) string {
	parts := make([]string, len(stems))
	for i, s := range stems {
		parts[i] = regexp.QuoteMeta(s)
		if c := s[0]; c < 0x80 { // \b knows ASCII only
			parts[i] = `\b` + parts[i]
		}
	}
	return "(?i)" + strings.Join(parts, "|")
}

// matcher tells which stems occur in a text.
type matcher []*regexp.Regexp

func newMatcher(stems []string) matcher {
	m := make(matcher, len(stems))
	for i, s := range stems {
		m[i] = regexp.MustCompile(pattern([]string{s}))
	}
	return m
}

// in counts the stems that occur in text.
func (m matcher) in(text string) int {
	n := 0
	for _, re := range m {
		if re.MatchString(text) {
			n++
		}
	}
	return n
}

var sentenceEnd = regexp.MustCompile(`[.!?…]["”')\]]*\s+|[。！？]`)

const maxQuoteChars = 320

// excerpt is the part of a line worth quoting: all of a short one, else the
// sentences that match.
func (m matcher) excerpt(text string) string {
	text = oneLine(text)
	if len([]rune(text)) <= maxQuoteChars {
		return text
	}
	var picked []string
	for len(text) > 0 {
		end := len(text)
		if at := sentenceEnd.FindStringIndex(text); at != nil {
			end = at[1]
		}
		if s := strings.TrimSpace(text[:end]); m.in(s) > 0 {
			picked = append(picked, s)
		}
		text = text[end:]
	}
	return m.around(strings.Join(picked, " … "), maxQuoteChars)
}

// around cuts text to n characters that hold its first match.
func (m matcher) around(text string, n int) string {
	first := len(text)
	for _, re := range m {
		if at := re.FindStringIndex(text); at != nil && at[0] < first {
			first = at[0]
		}
	}
	before := []rune(text[:first])
	if len(before) <= n/2 {
		return clip(text, n)
	}
	return "…" + clip(string(before[len(before)-n/4:])+text[first:], n)
}
