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

// least is how much of a step the digest keeps at least, in bytes.
const least = 160

// Digest is what the runtime hands over of an attempt whose worker wrote
// nothing itself: the earlier hand-off, then each step with its calls and the
// beginnings of their results, in at most so many bytes. The newest steps are
// kept whole as far as they fit.
func Digest(s turn.State, most int) string {
	var head string
	if n := len(s.Handoffs); n > 0 {
		head = "From the hand-off before:\n" + Clip(s.Handoffs[n-1].Text, most/2) + "\n\n"
	}
	head = "(The runtime wrote this from the record.)\n\n" + head + "Steps, oldest first:\n"
	var steps []string
	left := most - len(head)
	for i, st := range slices.Backward(s.Steps) {
		text := step(st)
		room := max(least, left-least*i)
		text = Clip(text, room)
		left -= len(text)
		steps = append(steps, text)
	}
	slices.Reverse(steps)
	return head + strings.Join(steps, "")
}

func step(st turn.Step) string {
	var b strings.Builder
	if said := strings.TrimSpace(st.Reply.Message.PlainText()); said != "" {
		fmt.Fprintf(&b, "- said: %s\n", said)
	}
	for _, c := range st.Calls {
		fmt.Fprintf(&b, "- %s %s", c.Name, strings.TrimSpace(c.Arguments))
		if res, ok := st.Results[c.ID]; ok {
			fmt.Fprintf(&b, " -> %s", strings.TrimSpace(res.Content))
		}
		b.WriteByte('\n')
	}
	for _, in := range st.Inputs {
		fmt.Fprintf(&b, "- was told: %s\n", strings.TrimSpace(in.PlainText()))
	}
	return b.String()
}

// Clip keeps head and tail of a text that is too long.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	mark := fmt.Sprintf(" [… %d bytes …] ", len(s)-most)
	keep := max(0, most-len(mark))
	head := keep * 3 / 4
	return strings.ToValidUTF8(s[:head], "") + mark + strings.ToValidUTF8(s[len(s)-(keep-head):], "") + "\n"
}
