package turn

import (
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// Messages renders the run's own part of the transcript: its input, then each
// reply followed by the results of its calls, in the order of the calls.
func (s State) Messages() []goclaw.Message { return View{}.Messages(goclaw.Run{}, s) }

// View is what compactions have made of a session's record, as the model is
// shown it. The zero View shows everything.
type View struct {
	Through int64  // runs up to this ordinal are not shown
	Summary string // it stands for them

	trimmed map[goclaw.TrimmedResult]bool // without their length
}

// ViewOf folds the compactions of earlier runs, oldest first, and of the run
// under way.
func ViewOf(logs []goclaw.RunLog, now State) View {
	var v View
	for _, l := range logs {
		for _, e := range l.Events {
			if e.Compact != nil {
				v.apply(*e.Compact)
			}
		}
	}
	for _, c := range now.Compacted {
		v.apply(c)
	}
	return v
}

func (v *View) apply(c goclaw.CompactEvent) {
	if c.Through > v.Through {
		v.Through, v.Summary = c.Through, c.Summary
	}
	for _, t := range c.Trimmed {
		if v.trimmed == nil {
			v.trimmed = map[goclaw.TrimmedResult]bool{}
		}
		v.trimmed[goclaw.TrimmedResult{Run: t.Run, CallID: t.CallID}] = true
	}
}

// Trims reports whether the result of a call is shown cut.
func (v View) Trims(run, call string) bool {
	return v.trimmed[goclaw.TrimmedResult{Run: run, CallID: call}]
}

// Messages renders the part of the transcript that run r has, whose record is s.
func (v View) Messages(r goclaw.Run, s State) []goclaw.Message {
	if s.Prompt == nil || r.Trigger == goclaw.TriggerCompact {
		return nil
	}
	msgs := append([]goclaw.Message{s.opening()}, s.Early...)
	for i := range s.Steps {
		st := &s.Steps[i]
		if len(st.Reply.Message.Parts) > 0 {
			msgs = append(msgs, st.Reply.Message)
		}
		if len(st.Calls) > 0 {
			msgs = append(msgs, v.results(r.ID, st, s.End))
		}
		msgs = append(msgs, st.Inputs...)
	}
	if s.End != nil && s.End.State != goclaw.StateCompleted {
		msgs = append(msgs, goclaw.Text(goclaw.RoleAssistant, note(*s.End)))
	}
	return msgs
}

// Cut renders the run's part of the transcript with its results of more than
// over bytes cut.
func Cut(r goclaw.Run, s State, over int) []goclaw.Message {
	v := View{trimmed: map[goclaw.TrimmedResult]bool{}}
	for _, st := range s.Steps {
		for id, res := range st.Results {
			v.trimmed[goclaw.TrimmedResult{Run: r.ID, CallID: id}] = len(res.Content) > over
		}
	}
	return v.Messages(r, s)
}

// opening is the message that begins the attempt under way.
func (s State) opening() goclaw.Message {
	n := len(s.Handoffs)
	if n == 0 {
		return s.Prompt.Input
	}
	m := goclaw.Message{Role: goclaw.RoleUser, Parts: slices.Clone(s.Prompt.Input.Parts)}
	m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartText, Text: fmt.Sprintf(handoff, n, s.Handoffs[n-1].Text)})
	return m
}

const handoff = "<handoff number=\"%d\">\nAn earlier worker has done a part of this task and left this. Go on from here: " +
	"what it says is done is done, and its facts are yours.\n\n%s\n</handoff>"

func (v View) results(run string, st *Step, end *goclaw.EndEvent) goclaw.Message {
	m := goclaw.Message{Role: goclaw.RoleUser}
	for _, c := range st.Calls {
		res, ok := st.Results[c.ID]
		if !ok {
			if end == nil {
				continue
			}
			res = goclaw.ToolResult{
				CallID: c.ID, Name: c.Name, IsError: true,
				Content: "No result: the turn ended while this call ran (" + string(end.State) + ").",
			}
		}
		if v.Trims(run, c.ID) {
			res.Content = Trim(res.Content)
		}
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolResult, Result: &res})
	}
	return m
}

const (
	trimHead = 400
	trimTail = 150
)

// Trim is how a cut tool result is shown: its head, its tail, and how much is
// missing between them.
func Trim(content string) string {
	if len(content) <= trimHead+trimTail {
		return content
	}
	head, tail := content[:trimHead], content[len(content)-trimTail:]
	return fmt.Sprintf("%s\n[... %d bytes were cut here later, to save context; call the tool again if you need them ...]\n%s",
		strings.ToValidUTF8(head, ""), len(content)-trimHead-trimTail, strings.ToValidUTF8(tail, ""))
}

func note(end goclaw.EndEvent) string {
	if end.Error == "" {
		return fmt.Sprintf("[This turn ended: %s.]", end.State)
	}
	return fmt.Sprintf("[This turn ended: %s. %s]", end.State, end.Error)
}

// Transcript renders the runs of a session, oldest first, as the messages that
// the model sees before the current turn: a summary of those that were
// summarised, then the others. Runs that never began add nothing, nor do those
// that gave back what they had taken.
func (v View) Transcript(logs []goclaw.RunLog) []goclaw.Message {
	var msgs []goclaw.Message
	if v.Summary != "" {
		msgs = append(msgs, goclaw.Text(goclaw.RoleUser, summaryHead+v.Summary+summaryEnd))
	}
	for _, l := range logs {
		if l.Run.Ordinal <= v.Through {
			continue
		}
		if s := Fold(l.Events); s.End == nil || !s.End.Returned {
			msgs = append(msgs, v.Messages(l.Run, s)...)
		}
	}
	return msgs
}

const (
	summaryHead = "<conversation_summary>\nThe earlier part of this conversation, shortened. Its whole record can be searched with sessions_history.\n\n"
	summaryEnd  = "\n</conversation_summary>"
)
