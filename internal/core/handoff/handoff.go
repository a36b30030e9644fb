package handoff

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/turn"
)

//go:embed request.md
var request string

// Request is the message that asks a worker for its state.
func Request() goclaw.Message { return goclaw.Text(goclaw.RoleUser, strings.TrimSpace(request)) }

// Parse takes the state out of the worker's reply; ok is false if there is none.
func Parse(reply string) (text string, ok bool) {
	_, rest, found := strings.Cut(reply, "<handoff>")
	if !found {
		return "", false
	}
	if end := strings.LastIndex(rest, "</handoff>"); end >= 0 {
		rest = rest[:end]
	}
	text = strings.TrimSpace(rest)
	return text, text != ""
}

// Name is the artifact that a hand-off is kept as.
func Name(number int) string { return fmt.Sprintf("HANDOFF-%d.md", number) }

// Digest is what the runtime hands over if the worker wrote nothing itself, in
// at most so many bytes: the last hand-off that a worker wrote, then each step
// since with its calls and their results. Long ones are cut before short ones,
// and what came several times stands there once.
func Digest(s turn.State, most int) string {
	head := "(The runtime wrote this from the record.)\n\n"
	steps := s.All()
	for i, h := range slices.Backward(s.Handoffs) {
		if h.By == byWorker {
			head += "From hand-off " + fmt.Sprint(i+1) + ":\n" + Clip(h.Text, most/2) + "\n\n"
			steps = steps[since(s.Handoffs[:i+1]):]
			break
		}
	}
	head += "Steps, oldest first:\n"
	var lines []string
	seen := map[string]bool{}
	for _, st := range steps {
		for _, line := range words(st) {
			if !seen[line.key] {
				lines = append(lines, line.text)
			}
			seen[line.key] = true
		}
	}
	return head + strings.Join(even(lines, most-len(head)), "")
}

// byWorker is HandoffEvent.By of what a worker wrote.
const byWorker = "worker"

// since counts the steps before the last of handoffs.
func since(handoffs []goclaw.HandoffEvent) int {
	n := 0
	for _, h := range handoffs {
		n += h.Steps
	}
	return n
}

// line is one fact of a step; those with equal keys say the same.
type line struct{ key, text string }

func words(st turn.Step) []line {
	var out []line
	add := func(key, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if key == "" {
			key = text
		}
		out = append(out, line{key, text})
	}
	if said := strings.TrimSpace(st.Reply.Message.PlainText()); said != "" {
		add("", "- said: %s\n", said)
	}
	for _, c := range st.Calls {
		res := st.Results[c.ID]
		add(c.Name+"\x00"+res.Content, "- %s %s -> %s\n", c.Name, strings.TrimSpace(c.Arguments), strings.TrimSpace(res.Content))
	}
	for _, in := range st.Inputs {
		add("", "- was told: %s\n", strings.TrimSpace(in.PlainText()))
	}
	return out
}

// even cuts the longest lines to one length, so that all fit into most bytes.
func even(lines []string, most int) []string {
	const least = 40
	sizes := make([]int, len(lines))
	for i, l := range lines {
		sizes[i] = len(l)
	}
	slices.Sort(sizes)
	left := most
	for i, size := range sizes {
		share := left / (len(sizes) - i)
		if size <= share {
			left -= size
			continue
		}
		out := make([]string, len(lines))
		for k, l := range lines {
			out[k] = Clip(l, max(share, least))
		}
		return out
	}
	return lines
}

// Clip keeps head and tail of a text that is too long.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	mark := fmt.Sprintf(" [… %d bytes …] ", len(s)-most)
	keep := max(0, most-len(mark))
	head := keep * 3 / 4
	return strings.ToValidUTF8(s[:head], "") + mark + strings.ToValidUTF8(s[len(s)-(keep-head):], "")
}
