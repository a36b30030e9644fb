package prefix

import (
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw"
)

// How much of the texts around the first difference is shown, in bytes.
const (
	shownBefore = 60
	shownAfter  = 100
)

// Diff compares two requests. It fills in all that the requests themselves
// tell; whose they are is for the caller to add.
func Diff(a, b Request) goclaw.SentDiff {
	d := goclaw.SentDiff{
		Equal:  true,
		A:      goclaw.SentSide{Bytes: size(a.Parts)},
		B:      goclaw.SentSide{Bytes: size(b.Parts)},
		Fields: fields(a.Fields, b.Fields),
	}
	var last string // the text of the kind before
	for kind := range kinds {
		x, y := stream(a.Parts, kind), stream(b.Parts, kind)
		n := common(x, y)
		d.Bytes += n
		if n > 0 {
			last = x[:n]
		}
		if n == len(x) && n == len(y) {
			continue
		}
		d.Equal = false
		d.Before = tail(last)
		d.A.Part, d.A.After = at(a.Parts, kind, n)
		d.B.Part, d.B.After = at(b.Parts, kind, n)
		break
	}
	d.Tokens = (d.Bytes + 3) / 4
	return d
}

func size(parts []Part) int {
	n := 0
	for _, p := range parts {
		n += len(p.Text)
	}
	return n
}

// fields are the names of those that differ or that one side lacks.
func fields(a, b map[string]string) []string {
	differ := []string{}
	for name, value := range a {
		if other, ok := b[name]; !ok || other != value {
			differ = append(differ, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return differ
}

// stream is the text of all parts of one kind.
func stream(parts []Part, kind Kind) string {
	var text strings.Builder
	for _, p := range parts {
		if p.Kind == kind {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// at returns the part that holds byte n of a kind's text, or follows it, and
// its text from there on; nothing if the request has ended there.
func at(parts []Part, kind Kind, n int) (part, after string) {
	for _, p := range parts {
		switch {
		case p.Kind < kind:
		case p.Kind == kind && n >= len(p.Text):
			n -= len(p.Text)
		case p.Kind > kind && p.Text == "":
		case p.Kind > kind:
			return p.Name, head(p.Text)
		default:
			return p.Name, head(p.Text[n:])
		}
	}
	return "", ""
}

// common is how many bytes two texts share at their beginning.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// head cuts text after a whole character; a torn one at its beginning, and
// anything else that is no UTF-8, shows as U+FFFD.
func head(text string) string {
	n := min(len(text), shownAfter)
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return strings.ToValidUTF8(text[:n], "\ufffd")
}

func tail(text string) string {
	n := max(0, len(text)-shownBefore)
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.ToValidUTF8(text[n:], "\ufffd")
}
