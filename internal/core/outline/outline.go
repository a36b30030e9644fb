package outline

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of what is outlined.
const (
	MaxText      = 1 << 20 // bytes of a text; a longer one has no outline
	MaxSignature = 240     // bytes of one line's text; more is cut with …
)

// File outlines a file by the kind that its name tells: Markdown or source
// code. ok is false if there is no outline: an unknown kind, a text that is too
// long, or nothing in it that could be listed.
func File(name, text string) (outline string, ok bool) {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdx":
		outline = Markdown(text)
		return outline, outline != ""
	}
	return Code(name, text)
}

// Code lists the declarations of source code: one a line, as its number, a tab
// and the signature, indented by how deep it stands. The language follows from
// the name. ok is false if there is no outline.
func Code(name, text string) (outline string, ok bool) {
	if len(text) > MaxText || !utf8.ValidString(text) {
		return "", false
	}
	ext := strings.ToLower(path.Ext(name))
	var out list
	if ext == ".go" {
		golang(&out, name, text)
		return out.String(), out.Len() > 0
	}
	l, known := languageOf(ext)
	if !known {
		return "", false
	}
	l.declarations(&out, text, l.syntax.scan(text))
	return out.String(), out.Len() > 0
}

// list collects the lines of an outline.
type list struct{ strings.Builder }

func (l *list) add(line, depth int, signature string) {
	signature = strings.Join(strings.Fields(signature), " ")
	if signature == "" {
		return
	}
	if len(signature) > MaxSignature {
		signature = clip(signature, MaxSignature-len("…")) + "…"
	}
	l.WriteString(strconv.Itoa(line))
	l.WriteByte('\t')
	l.WriteString(strings.Repeat("  ", min(depth, 10)))
	l.WriteString(signature)
	l.WriteByte('\n')
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
