package gateway

import (
	"fmt"
	"strings"

	"goclaw"
)

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
		return modelLine(*e.Model)
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
	case e.Compact != nil:
		return fmt.Sprintf("from about %d to %d tokens; runs up to %d are summarised, %s shown cut", e.Compact.Before, e.Compact.After, e.Compact.Through, count(len(e.Compact.Trimmed), "result", "results"))
	case e.Handoff != nil:
		return fmt.Sprintf("attempt %d begins: %d tokens after %s; %s, written by the %s: %s", e.Handoff.Attempt, e.Handoff.Before,
			count(e.Handoff.Steps, "model call", "model calls"), e.Handoff.Artifact, e.Handoff.By, clip(e.Handoff.Text))
	case e.Input != nil && (e.Input.Repair || e.Input.Reminder):
		return "sent back: " + clip(e.Input.Message.PlainText())
	case e.Input != nil:
		return fmt.Sprintf("%s between its steps: %s", count(len(e.Input.Inbox), "message", "messages"), clip(e.Input.Message.PlainText()))
	case e.Waiting != nil:
		return waitingLine(*e.Waiting)
	case e.Resumed != nil:
		return resumedLine(*e.Resumed)
	case e.End != nil:
		return endLine(*e.End)
	}
	return ""
}

func modelLine(m goclaw.ModelEvent) string {
	text := fmt.Sprintf("%s, %d in, %d out, %d ms: %s", m.Model, m.Usage.Input, m.Usage.Output, m.TookMs, clip(m.Message.PlainText()))
	for _, c := range m.Message.Calls() {
		text += fmt.Sprintf(" [%s %s]", c.Name, clip(c.Arguments))
	}
	return text
}

func waitingLine(w goclaw.WaitingEvent) string {
	text := "for its workers; its slot is free meanwhile"
	if w.For == goclaw.WaitPerson {
		text = "for a person to resume or cancel it"
	}
	if w.Until != 0 {
		text += ", until " + clock(w.Until) + " at the latest"
	}
	return text
}

func resumedLine(r goclaw.ResumedEvent) string {
	text := "taken over by " + r.Owner
	if r.Planned {
		text = "handed over to " + r.Owner
	}
	text += fmt.Sprintf(" at step %d", r.Step)
	if n := len(r.Uncertain); n > 0 {
		text += fmt.Sprintf("; outcome of %s unknown, not repeated", count(n, "call", "calls"))
	}
	if r.ModelCallLost {
		text += "; a model call may have to be paid again"
	}
	return text
}

func endLine(e goclaw.EndEvent) string {
	text := strings.TrimSpace(string(e.State) + " " + e.Error)
	if e.Dropped > 0 {
		text += fmt.Sprintf("; %s around the answer dropped", count(e.Dropped, "byte", "bytes"))
	}
	if e.Returned {
		text += "; what it was to tell went back, to be told later"
	}
	if n := len(e.Unread); n > 0 {
		text += fmt.Sprintf("; %s came too late", count(n, "message", "messages"))
	}
	return text
}
