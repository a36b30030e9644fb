package gateway

import (
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// RunTable lists runs, a line each.
func RunTable(runs []goclaw.Run, at time.Time) string {
	if len(runs) == 0 {
		return "No workers."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s  %-11s %-20s %8s %14s  %s", "ID", "STATUS", "LABEL", "TIME", "TOKENS", "MODEL")
	for _, r := range runs {
		fmt.Fprintf(&b, "\n%-8.8s  %-11s %-20.20s %8s %14s  %s", r.ID, r.State, oneLine(r.Name()),
			elapsed(r, at), fmt.Sprintf("%d in %d out", r.Usage.Input, r.Usage.Output), r.Profile.Model)
	}
	return b.String()
}

// RunDetails describes one run.
func RunDetails(r goclaw.Run, at time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("run", "%s", r.ID)
	line("label", "%s", r.Name())
	line("status", "%s", r.State)
	line("session", "%s", r.Session)
	if !r.Requester.IsZero() {
		line("requester", "%s", r.Requester)
	}
	line("trigger", "%s, depth %d, attempt %d", r.Trigger, r.Depth, r.Epoch)
	line("model", "%s, thinking %s", r.Profile.Model, r.Profile.Thinking)
	line("tools", "%s", strings.Join(r.Profile.Tools, " "))
	line("created", "%s", r.CreatedAt.Time().Local().Format(time.DateTime))
	line("time", "%s", elapsed(r, at))
	line("tokens", "%d in (%d from cache), %d out", r.Usage.Input, r.Usage.CacheRead, r.Usage.Output)
	line("task", "%s", r.Task)
	if r.Error != "" {
		line("error", "%s", r.Error)
	}
	if r.Result != "" {
		line("result", "\n%s", r.Result)
	}
	return strings.TrimRight(b.String(), "\n")
}

// EventTable lists a run's steps, a line each.
func EventTable(events []goclaw.Event) string {
	if len(events) == 0 {
		return "Nothing recorded yet."
	}
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("%3d %s %-7s %s", e.Seq, e.At.Time().Local().Format("15:04:05.000"), e.Kind, eventLine(e))
	}
	return strings.Join(lines, "\n")
}

func eventLine(e goclaw.Event) string {
	switch {
	case e.Prompt != nil:
		return fmt.Sprintf("prompt %.8s, input: %s", e.Prompt.PromptSHA, clip(e.Prompt.Input.PlainText()))
	case e.Model != nil:
		text := fmt.Sprintf("%s, %d in, %d out, %d ms: %s", e.Model.Model, e.Model.Usage.Input, e.Model.Usage.Output, e.Model.TookMs, clip(e.Model.Message.PlainText()))
		for _, c := range e.Model.Message.Calls() {
			text += fmt.Sprintf(" [%s %s]", c.Name, clip(c.Arguments))
		}
		return text
	case e.Intent != nil:
		names := make([]string, len(e.Intent.Calls))
		for i, c := range e.Intent.Calls {
			names[i] = c.Name
		}
		return strings.Join(names, ", ")
	case e.Result != nil:
		status := "ok"
		if e.Result.IsError {
			status = "error"
		}
		return fmt.Sprintf("%s %s: %s", e.Result.Name, status, clip(e.Result.Content))
	case e.Resumed != nil:
		text := "taken over by " + e.Resumed.Owner
		if n := len(e.Resumed.Uncertain); n > 0 {
			text += fmt.Sprintf("; outcome of %d calls unknown, not repeated", n)
		}
		if e.Resumed.ModelCallLost {
			text += "; a model call may have to be paid again"
		}
		return text
	case e.End != nil:
		return strings.TrimSpace(string(e.End.State) + " " + e.End.Error)
	}
	return ""
}

func elapsed(r goclaw.Run, at time.Time) string {
	switch {
	case r.StartedAt == 0:
		return "-"
	case r.FinishedAt != 0:
		return (time.Duration(r.DurationMs()) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
	return at.Sub(r.StartedAt.Time()).Round(100 * time.Millisecond).String()
}

func clip(s string) string {
	const most = 100
	s = oneLine(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
