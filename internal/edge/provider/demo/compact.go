package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"goclaw"
)

const (
	compactMark = "<compaction_request>"
	summaryMark = "(demonstration summary, by rules)"
)

const (
	maxAsked   = 200 // characters of what was asked in one turn
	maxReplied = 160 // of a reply's first line
	maxEarlier = 6000
)

var (
	tags       = regexp.MustCompile(`</?(?:notes|summary|compaction_request)>`)
	filePath   = regexp.MustCompile(`(?:[\w.@~-]*/)+[\w.@~-]*\w|\b[\w@~-]{2,}(?:\.[\w-]+)*\.[A-Za-z]\w{0,5}\b`)
	figure     = regexp.MustCompile(`\d(?:[\d.,:/-]*\d)?(?: ?%| [\p{L}]+)?`)
	summarised = regexp.MustCompile(`(?s)` + regexp.QuoteMeta(summaryMark) + `(.*?)(?:</summary>|\z)`)
)

// digest is what the rules keep of a conversation, in the order in which it
// came up, each thing once.
type digest struct {
	earlier string // a digest that the conversation began with
	asked   []string
	replies []string
	workers []string
	files   []string
	figures []string
	notes   []string
}

// compaction reports whether the newest message asks for a summary.
func compaction(req goclaw.ModelRequest) bool {
	n := len(req.Messages)
	return n > 0 && strings.HasPrefix(saidBy(req.Messages[n-1]), compactMark)
}

// compact sums the conversation up. Its text is read by the gateway, so it
// begins with what that looks for, and carries its label inside.
func compact(req goclaw.ModelRequest) answer {
	var d digest
	for _, m := range req.Messages[:len(req.Messages)-1] {
		d.take(m)
	}
	for most := 60; ; most /= 2 {
		text := d.text(most)
		if room := req.MaxTokens * bytesPerToken; room == 0 || len(text) <= room || most <= 1 {
			return answer{text: text}
		}
	}
}

func (d *digest) take(m goclaw.Message) {
	for _, c := range m.Calls() {
		e := exchange{call: c}
		if c.Name == "sessions_spawn" {
			add(&d.workers, e.arg("label"))
		}
		add(&d.files, e.arg("path"))
	}
	text := saidBy(m)
	if m.Role == goclaw.RoleAssistant {
		text = m.PlainText()
	}
	if found := summarised.FindStringSubmatch(text); found != nil {
		d.earlier = strings.TrimSpace(found[1])
		return
	}
	text = strings.TrimPrefix(strings.TrimSpace(text), Label)
	if text = tags.ReplaceAllString(text, ""); strings.TrimSpace(text) == "" {
		return
	}
	for _, f := range filePath.FindAllString(text, -1) {
		add(&d.files, f)
	}
	for _, f := range figure.FindAllString(filePath.ReplaceAllString(text, " "), -1) {
		add(&d.figures, f)
	}
	reports := parseReports(text)
	for _, r := range reports {
		add(&d.workers, r.label)
	}
	switch {
	case m.Role == goclaw.RoleAssistant:
		add(&d.replies, clip(oneLine(firstLine(text)), maxReplied))
	case len(reports) == 0:
		add(&d.asked, clip(oneLine(text), maxAsked))
		for l := range strings.Lines(text) {
			if found := rememberOrder.FindStringSubmatch(courtesy.ReplaceAllString(strings.TrimSpace(l), "")); found != nil {
				add(&d.notes, clip(oneLine(found[1]), 2*maxAsked))
			}
		}
	}
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return l
}

func add(all *[]string, one string) {
	if one = strings.TrimSpace(one); one != "" && !slices.Contains(*all, one) {
		*all = append(*all, one)
	}
}

// text writes at most so many things of each kind, the newest.
func (d *digest) text(most int) string {
	var b strings.Builder
	b.WriteString("<notes>\n")
	for _, n := range d.notes[max(0, len(d.notes)-4*most):] {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	b.WriteString("</notes>\n<summary>\n" + summaryMark + "\n")
	if d.earlier != "" {
		b.WriteString(clipBlock(d.earlier, min(maxEarlier, 100*most)) + "\n")
	}
	lines := func(title string, all []string, n int) {
		if len(all) > 0 {
			fmt.Fprintf(&b, "%s:\n", title)
		}
		if over := len(all) - n; over > 0 {
			fmt.Fprintf(&b, "- (%d older left out)\n", over)
			all = all[over:]
		}
		for _, one := range all {
			fmt.Fprintf(&b, "- %s\n", one)
		}
	}
	inline := func(title string, all []string) {
		if len(all) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", title, strings.Join(all[max(0, len(all)-most):], "; "))
		}
	}
	lines("Asked", d.asked, most)
	lines("Last replies", d.replies, min(most, 10))
	inline("Workers", d.workers)
	inline("Files", d.files)
	inline("Figures", d.figures)
	if len(d.asked)+len(d.replies) == 0 && d.earlier == "" {
		b.WriteString("Nothing was said.\n")
	}
	b.WriteString("</summary>")
	return b.String()
}
