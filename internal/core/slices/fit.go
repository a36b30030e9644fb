package slices

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/outline"
)

// The ways of SliceText.How.
const (
	howWhole   = "whole"
	howCut     = "cut"
	howOutline = "outline"
)

// minShare is the least that a cut file is given, in tokens: room for the
// marker and some text.
const minShare = 32

// Tokens is how many tokens a text counts as: four bytes each, rounded up.
func Tokens(text string) int { return (len(text) + 3) / 4 }

// fit bounds the texts of a slice by its maxTokens.
func fit(s definition.Slice, parts []tagged) ([]goclaw.SliceText, error) {
	out := make([]goclaw.SliceText, len(parts))
	total := 0
	for i, p := range parts {
		out[i] = goclaw.SliceText{Tag: p.tag, Source: p.Source, Text: p.Text, How: howWhole, Tokens: Tokens(p.Text)}
		total += out[i].Tokens
	}
	if s.MaxTokens == 0 || total <= s.MaxTokens {
		return out, nil
	}
	if s.Overflow != howCut && s.Overflow != howOutline {
		return nil, refuse("raise maxTokens, or write overflow: cut or overflow: outline",
			"%d tokens in %s are more than maxTokens %d", total, files(len(parts)), s.MaxTokens)
	}
	if s.MaxTokens < minShare*len(parts) {
		return nil, refuse(fmt.Sprintf("raise it to %d or more, or name fewer files", minShare*len(parts)),
			"maxTokens %d is too little for %s", s.MaxTokens, files(len(parts)))
	}
	if s.Overflow == howOutline {
		share := shares(out, s.MaxTokens)
		for i, p := range parts {
			if out[i].Tokens > share {
				out[i] = outlined(out[i], p.Text)
			}
		}
	}
	share := shares(out, s.MaxTokens)
	for i, p := range parts {
		if out[i].Tokens > share {
			out[i] = cut(out[i], len(p.Text), share*4)
		}
	}
	return out, nil
}

func files(n int) string {
	if n == 1 {
		return "one file"
	}
	return fmt.Sprintf("%d files", n)
}

// shares is the most that one text may have so that all keep within the bound:
// those below it leave their rest to the others.
func shares(texts []goclaw.SliceText, bound int) int {
	sizes := make([]int, len(texts))
	for i, t := range texts {
		sizes[i] = t.Tokens
	}
	slices.SortFunc(sizes, cmp.Compare[int])
	for i, size := range sizes {
		share := bound / (len(sizes) - i)
		if size > share {
			return share
		}
		bound -= size
	}
	return sizes[len(sizes)-1]
}

// outlined replaces a text by its outline, if it has one that is shorter.
func outlined(t goclaw.SliceText, text string) goclaw.SliceText {
	lines, ok := outline.File(t.Source, text)
	if !ok {
		return t
	}
	head := fmt.Sprintf("[outline of %d lines; the numbers are lines of the file]\n", strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1)
	if len(head)+len(lines) >= len(text) {
		return t
	}
	t.Text, t.How = head+lines, howOutline
	t.Tokens, t.Dropped = Tokens(t.Text), len(text)-len(t.Text)
	return t
}

// cut keeps three quarters of room at the head and the rest at the tail. size
// is that of the whole file, room that of the result, in bytes.
func cut(t goclaw.SliceText, size, room int) goclaw.SliceText {
	what := "bytes"
	if t.How == howOutline {
		what = "bytes of the outline"
	}
	marker := func(n int) string { return fmt.Sprintf("\n[… %d %s left out …]\n", n, what) }
	keep := room - len(marker(len(t.Text)))
	head := clip(t.Text, keep*3/4)
	tail := t.Text[len(t.Text)-(keep-keep*3/4):]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	left := len(t.Text) - len(head) - len(tail)
	if t.How == howOutline {
		t.Dropped = size - len(head) - len(tail)
	} else {
		t.Dropped = left
	}
	t.Text, t.How = head+marker(left)+tail, howCut
	t.Tokens = Tokens(t.Text)
	return t
}

// clip returns the longest prefix of whole characters within n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Render writes each slice as <tag path="…">, its text and </tag>. Where a text
// holds the end of any of these tags, in whatever case and spacing, a backslash
// is put before its slash.
func Render(texts []goclaw.SliceText) string {
	if len(texts) == 0 {
		return ""
	}
	tags := make([]string, len(texts))
	for i, t := range texts {
		tags[i] = t.Tag
	}
	inert := Inert(tags...)
	var b strings.Builder
	for _, t := range texts {
		text := inert(t.Text)
		fmt.Fprintf(&b, "<%s path=\"%s\">\n%s\n</%s>\n", t.Tag, attribute(t.Source), strings.TrimSuffix(text, "\n"), t.Tag)
	}
	return b.String()
}

// Inert returns what makes a text unable to end an element of these names: a
// backslash goes before the slash of what looks like such an end, in whatever
// case or spacing.
func Inert(tags ...string) func(text string) string {
	names := make([]string, len(tags))
	for i, t := range tags {
		names[i] = regexp.QuoteMeta(t)
	}
	slices.Sort(names)
	ends := regexp.MustCompile(`(?i)<([\s\p{Cf}]*)/([\s\p{Cf}]*(?:` + strings.Join(slices.Compact(names), "|") + `))`)
	return func(text string) string { return ends.ReplaceAllString(text, `<${1}\/${2}`) }
}

// attribute escapes a path, which may hold any character.
func attribute(s string) string {
	return strings.NewReplacer("\n", "&#10;", "\r", "&#13;").Replace(html.EscapeString(s))
}
