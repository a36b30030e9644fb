package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/slices"
	"goclaw/internal/core/turn"
	"goclaw/internal/core/typed"
)

// findingsName is the artifact that holds a worker's structured findings.
const findingsName = "findings.json"

// contract is the form that the run's answer must have; ok is false if it is
// free.
func (j *job) contract() (o definition.Output, ok bool) {
	if s := j.r.Profile.OutputSchema; len(s) > 0 {
		return definition.Output{Format: "json", Schema: s}, true
	}
	if j.spec.Typed.Output != nil {
		o = *j.spec.Typed.Output
	}
	return o, j.spec.Typed.Output != nil || j.spec.Findings
}

// typed is what the run's first message says of its contract; nil for a run
// without any.
func (j *job) typed() *prompt.Typed {
	o, ok := j.contract()
	must := j.r.Profile.MustCall
	if !ok && len(must) == 0 && len(j.spec.Input) == 0 && len(j.spec.Slices) == 0 {
		return nil
	}
	t := prompt.Typed{Input: j.spec.Input, Slices: slices.Render(j.spec.Slices)}
	if ok {
		t.Form = typed.Instructions(o, j.spec.Findings)
	}
	if len(must) > 0 {
		t.Form = strings.TrimSpace(mustCall(must) + "\n" + t.Form)
	}
	if !j.r.Session.IsWorker() { // whose session goes on
		t.Form = "For this message only: " + t.Form
	}
	return &t
}

func (j *job) stops() []string {
	if j.spec.Typed.Output == nil {
		return nil
	}
	return j.spec.Typed.Output.Stop
}

func (j *job) schema() json.RawMessage {
	if o, ok := j.contract(); ok {
		return typed.ReplySchema(o, j.spec.Findings)
	}
	return nil
}

// answer holds the run's last reply against its contract and makes a the
// end with the answer. back says that the reply went back to the model instead.
// last are events that are to be recorded with it: the reply, if that is new.
func (j *job) answer(a *turn.Action, last []goclaw.Event) (back bool, err error) {
	if back, err := j.insist(a, last); err != nil || back || a.State != goclaw.StateCompleted {
		return back, err
	}
	o, ok := j.contract()
	if !ok {
		return j.remind(a, last)
	}
	reply := j.lastReply(last)
	answer, violation := typed.Parse(o, j.spec.Findings, reply.Message.PlainText(), reply.Stop)
	var broken *typed.Violation
	switch {
	case violation == nil:
	case !errors.As(violation, &broken):
		return false, violation
	case j.state.Repairs < j.retries():
		return true, j.sendBack(last, goclaw.InputEvent{Message: typed.Repair(o, violation), Repair: true})
	default:
		a.State, a.Result = goclaw.StateFailed, reply.Message.PlainText()
		a.Error = fmt.Sprintf("%v (%s; the result is the raw text)", violation, corrections(j.state.Repairs))
		return false, nil
	}
	if back, err := j.remind(a, last); err != nil || back {
		return back, err
	}
	a.Result, a.Dropped = answer.Result, answer.Dropped
	if !j.spec.Findings {
		return false, nil
	}
	raw, err := json.MarshalIndent(answer.Findings, "", "  ")
	if err != nil {
		return false, fmt.Errorf("encode findings: %w", err)
	}
	a.Findings = len(answer.Findings)
	a.Artifacts = append(a.Artifacts, goclaw.ArtifactData{Name: findingsName, MediaType: "application/json", Data: raw})
	return false, nil
}

// corrections words how often the answer went back.
func corrections(n int) string {
	switch n {
	case 0:
		return "retries is 0"
	case 1:
		return "after 1 correction"
	}
	return fmt.Sprintf("after %d corrections", n)
}

// sendBack has the model go on with what the runtime itself says of its reply.
func (j *job) sendBack(last []goclaw.Event, with goclaw.InputEvent) error {
	with.Inbox = []string{}
	return j.append(append(last, goclaw.Event{Kind: goclaw.EventInput, Input: &with}), goclaw.Batch{})
}

func (j *job) lastReply(last []goclaw.Event) goclaw.ModelEvent {
	for _, e := range last {
		if e.Model != nil {
			return *e.Model
		}
	}
	if n := len(j.state.Steps); n > 0 {
		return j.state.Steps[n-1].Reply
	}
	return goclaw.ModelEvent{}
}

// retries is how often an answer without the wanted form goes back.
func (j *job) retries() int {
	if j.spec.Typed.Output == nil {
		return 1
	}
	return j.spec.Typed.Output.Retries
}
