package turn

import (
	"fmt"

	"goclaw"
)

// Messages renders the run's own part of the transcript: its input, then each
// reply followed by the results of its calls, in the order of the calls.
func (s State) Messages() []goclaw.Message {
	if s.Prompt == nil {
		return nil
	}
	msgs := append([]goclaw.Message{s.Prompt.Input}, s.Early...)
	for i := range s.Steps {
		st := &s.Steps[i]
		if len(st.Reply.Message.Parts) > 0 {
			msgs = append(msgs, st.Reply.Message)
		}
		if len(st.Calls) > 0 {
			msgs = append(msgs, st.results(s.End))
		}
		msgs = append(msgs, st.Inputs...)
	}
	if s.End != nil && s.End.State != goclaw.StateCompleted {
		msgs = append(msgs, goclaw.Text(goclaw.RoleAssistant, note(*s.End)))
	}
	return msgs
}

func (st *Step) results(end *goclaw.EndEvent) goclaw.Message {
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
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolResult, Result: &res})
	}
	return m
}

func note(end goclaw.EndEvent) string {
	if end.Error == "" {
		return fmt.Sprintf("[This turn ended: %s.]", end.State)
	}
	return fmt.Sprintf("[This turn ended: %s. %s]", end.State, end.Error)
}

// Transcript renders the runs of a session, oldest first, as the messages that
// the model sees before the current turn. Runs that never began add nothing,
// nor do those that gave back what they had taken.
func Transcript(logs []goclaw.RunLog) []goclaw.Message {
	var msgs []goclaw.Message
	for _, l := range logs {
		if s := Fold(l.Events); s.End == nil || !s.End.Returned {
			msgs = append(msgs, s.Messages()...)
		}
	}
	return msgs
}
