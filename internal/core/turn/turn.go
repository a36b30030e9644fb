package turn

import (
	"slices"
	"strings"

	"goclaw"
)

// State is the fold of a run's events.
type State struct {
	Prompt *goclaw.PromptEvent // nil until event 0 is recorded
	Early  []goclaw.Message    // what came before the first step
	Steps  []Step
	Usage  goclaw.Usage

	Compacted []goclaw.CompactEvent // by this run

	// Handoffs ended earlier attempts: Steps are those of the last one, Earlier
	// those before.
	Handoffs []goclaw.HandoffEvent
	Earlier  []Step

	Repairs   int // answers that were sent back for their form
	Reminders int // and for what the worker had not left

	End  *goclaw.EndEvent // nil until the run has ended
	Next int              // sequence number of the next event

	// LostModelCalls counts takeovers that may have lost a paid reply.
	LostModelCalls int
}

// Attempt is the number of the attempt under way, from 1.
func (s State) Attempt() int { return len(s.Handoffs) + 1 }

// All are the steps of all attempts.
func (s State) All() []Step {
	if len(s.Earlier) == 0 {
		return s.Steps
	}
	return slices.Concat(s.Earlier, s.Steps)
}

// Calls counts the model calls that the run has made for its task.
func (s State) Calls() int { return len(s.Earlier) + len(s.Steps) }

// Step is one model reply and what became of its tool calls.
type Step struct {
	Reply   goclaw.ModelEvent
	Calls   []goclaw.ToolCall
	Intents map[string]goclaw.Intent
	Results map[string]goclaw.ToolResult
	Since   goclaw.Millis    // when the intents were recorded
	Inputs  []goclaw.Message // what came after the step
	Resumed bool             // another owner took the run over after the step, or within it
}

// Fold folds a whole log, in order.
func Fold(events []goclaw.Event) State {
	var s State
	for _, e := range events {
		s = Apply(s, e)
	}
	return s
}

// Apply folds one more event into s. It shares memory with s, which must not
// be used afterwards.
func Apply(s State, e goclaw.Event) State {
	s.Next = e.Seq + 1
	switch e.Kind {
	case goclaw.EventPrompt:
		s.Prompt = e.Prompt
	case goclaw.EventModel:
		s.Usage = s.Usage.Add(e.Model.Usage)
		s.Steps = append(s.Steps, Step{
			Reply:   *e.Model,
			Calls:   e.Model.Message.Calls(),
			Intents: map[string]goclaw.Intent{},
			Results: map[string]goclaw.ToolResult{},
		})
	case goclaw.EventIntent:
		if last := s.last(); last != nil {
			last.Since = e.At
			for _, in := range e.Intent.Calls {
				last.Intents[in.CallID] = in
			}
		}
	case goclaw.EventInput:
		if e.Input.Repair {
			s.Repairs++
		}
		if e.Input.Reminder {
			s.Reminders++
		}
		if last := s.last(); last != nil {
			last.Inputs = append(last.Inputs, e.Input.Message)
		} else {
			s.Early = append(s.Early, e.Input.Message)
		}
	case goclaw.EventResult:
		if last := s.last(); last != nil {
			last.Results[e.Result.CallID] = *e.Result
		}
	case goclaw.EventCompact:
		s.Compacted = append(s.Compacted, *e.Compact)
		if e.Compact.Call != nil {
			s.Usage = s.Usage.Add(e.Compact.Call.Usage)
		}
	case goclaw.EventHandoff:
		if e.Handoff.Call != nil {
			s.Usage = s.Usage.Add(e.Handoff.Call.Usage)
		}
		s.Handoffs = append(s.Handoffs, *e.Handoff)
		s.Earlier = append(s.Earlier, s.Steps...)
		s.Steps, s.Early = nil, nil
	case goclaw.EventResumed:
		if e.Resumed.ModelCallLost {
			s.LostModelCalls++
		}
		if last := s.last(); last != nil {
			last.Resumed = true
		}
	case goclaw.EventEnd:
		s.End = e.End
	}
	return s
}

func (s State) last() *Step {
	if len(s.Steps) == 0 {
		return nil
	}
	return &s.Steps[len(s.Steps)-1]
}

// Pending returns the calls of the last reply that have no result yet.
func (s State) Pending() []goclaw.ToolCall {
	last := s.last()
	if last == nil {
		return nil
	}
	var calls []goclaw.ToolCall
	for _, c := range last.Calls {
		if _, done := last.Results[c.ID]; !done {
			calls = append(calls, c)
		}
	}
	return calls
}

// ActionKind names what Next decides.
type ActionKind int

// The actions of the loop.
const (
	Assemble  ActionKind = iota // no prompt is recorded: assemble it and take the input
	CallModel                   // ask the model
	CallTools                   // run Calls, in parallel
	Finish                      // end the run with State, Result and Error
	Done                        // the run has ended
)

// Action is what is to be done next.
type Action struct {
	Kind   ActionKind
	Calls  []goclaw.ToolCall
	State  goclaw.RunState
	Result string
	Error  string
	Silent bool

	Dropped   int                   // bytes of the reply that are outside of the answer
	Artifacts []goclaw.ArtifactData // that are left with the end
	Findings  int                   // among them, in findings.json
}

// Next decides. maxCalls bounds the model calls of the run; 0 means no bound.
func Next(s State, maxCalls int) Action {
	last := s.last()
	switch {
	case s.End != nil:
		return Action{Kind: Done}
	case s.Prompt == nil:
		return Action{Kind: Assemble}
	case last == nil:
		return Action{Kind: CallModel}
	}
	if pending := s.Pending(); len(pending) > 0 {
		return Action{Kind: CallTools, Calls: pending}
	}
	if len(last.Calls) > 0 || len(last.Inputs) > 0 {
		if maxCalls > 0 && s.Calls() >= maxCalls {
			return Action{
				Kind: Finish, State: goclaw.StateFailed, Result: s.Text(),
				Error: "the limit of model calls for this run is reached (maxTurns)",
			}
		}
		return Action{Kind: CallModel}
	}
	return finish(last.Reply)
}

// cut ends the text of a reply that the model's limit of output has cut off.
const cut = "\n\n[cut here: the model reached its output limit]"

// WasCut reports whether a run's result is such a text.
func WasCut(result string) bool { return strings.HasSuffix(result, cut) }

func finish(reply goclaw.ModelEvent) Action {
	text := strings.TrimSpace(reply.Message.PlainText())
	switch {
	case reply.Stop == goclaw.StopRefusal:
		return Action{Kind: Finish, State: goclaw.StateFailed, Result: text, Error: "the model refused to answer"}
	case reply.Stop == goclaw.StopMaxTokens:
		text += cut
	}
	return Action{
		Kind: Finish, State: goclaw.StateCompleted, Result: text,
		Silent: IsSilent(text),
	}
}

// IsSilent reports whether a reply asks for silence: it is NO_REPLY, give or
// take quotes, emphasis and a full stop around it.
func IsSilent(text string) bool {
	return strings.Trim(text, " \t\r\n\"'`*_.") == goclaw.NoReply ||
		strings.Trim(text, " \t\r\n\"'`*.") == goclaw.NoReply
}

// Text joins what the model has said so far: the partial work of a run that
// was stopped.
func (s State) Text() string {
	var parts []string
	for _, st := range s.All() {
		if t := strings.TrimSpace(st.Reply.Message.PlainText()); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Done counts the model replies and tool results on record.
func (s State) Done() int {
	n := s.Calls()
	for _, st := range s.All() {
		n += len(st.Results)
	}
	return n
}

// Recovery is what a new owner of the run must record before it goes on.
type Recovery struct {
	Event     goclaw.ResumedEvent
	Uncertain []goclaw.ToolResult // results for the calls that are not run again
}

// Recover decides what a takeover by owner means: calls that may have run and
// are not idempotent get a result that says so, and are never repeated.
// planned says that the last owner stopped in order.
func Recover(s State, owner string, planned bool) Recovery {
	r := Recovery{Event: goclaw.ResumedEvent{Owner: owner, Step: s.Done(), Planned: planned}}
	last := s.last()
	for _, c := range s.Pending() {
		intent, began := last.Intents[c.ID]
		if !began || intent.Idempotent {
			continue
		}
		r.Event.Uncertain = append(r.Event.Uncertain, c.ID)
		r.Uncertain = append(r.Uncertain, goclaw.ToolResult{
			CallID: c.ID, Name: c.Name, IsError: true,
			Content: "Interrupted: the process died while this call ran, and its outcome is unknown. " +
				"It was not repeated. Check what it did before you decide to run it again.",
		})
	}
	r.Event.ModelCallLost = s.Prompt != nil && s.End == nil && Next(s, 0).Kind == CallModel
	return r
}
