package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/schema"
	"goclaw/internal/core/turn"
)

// callerPatience is how long a turn waits for the results of its caller's
// tools; its session is held up meanwhile.
const callerPatience = 15 * time.Minute

var callerToolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// offer adds to the profile the tools that whoever sent the message runs
// itself. What is wrong with one is a goclaw.BadRequest.
func (e *Engine) offer(p *goclaw.Profile, tools []goclaw.ToolSpec) error {
	for i, t := range tools {
		switch {
		case !callerToolName.MatchString(t.Name):
			return goclaw.BadRequest(fmt.Sprintf("tool %d: the name %q is not of 1 to 64 letters, digits, _ and -", i+1, t.Name))
		case e.tools[t.Name] != nil:
			return goclaw.BadRequest(fmt.Sprintf("tool %q: the gateway has a tool of that name; give yours another", t.Name))
		case slices.ContainsFunc(tools[:i], func(o goclaw.ToolSpec) bool { return o.Name == t.Name }):
			return goclaw.BadRequest(fmt.Sprintf("tool %q is there twice", t.Name))
		}
		if _, err := schema.Compile(t.Schema); err != nil {
			return goclaw.BadRequest(fmt.Sprintf("tool %q: its parameters are no usable JSON Schema: %v", t.Name, err))
		}
		p.Caller = append(p.Caller, goclaw.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	slices.SortFunc(p.Caller, func(a, b goclaw.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// demand adds to the profile what the sender of a message wants of its answer.
// What can't be had is a goclaw.BadRequest.
func demand(p *goclaw.Profile, in goclaw.Inbound) error {
	for _, name := range in.MustCall {
		if !slices.ContainsFunc(p.Caller, func(t goclaw.ToolSpec) bool { return t.Name == name }) {
			return goclaw.BadRequest(fmt.Sprintf("the tool %q shall be called, and is not offered", name))
		}
	}
	if len(in.OutputSchema) > 0 {
		if _, err := schema.Compile(in.OutputSchema); err != nil {
			return goclaw.BadRequest(fmt.Sprintf("the schema of the answer can't be used: %v", err))
		}
		p.Answer = "json"
	}
	p.MustCall, p.OutputSchema = in.MustCall, in.OutputSchema
	return nil
}

// AnswerCalls hands a waiting turn the results of its caller's tools: of all
// calls that it waits for, in any order. The same results may be given again.
// goclaw.ErrEnded if the run has ended; a goclaw.BadRequest names a call that is
// missing, or that the run did not make.
func (e *Engine) AnswerCalls(ctx context.Context, id string, results []goclaw.ToolResult) (goclaw.Run, error) {
	run, err := e.o.Store.Run(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if run.State.Ended() {
		return run, fmt.Errorf("run %.8s does not wait for results: %w", run.ID, goclaw.ErrEnded)
	}
	events, err := e.o.Store.Events(ctx, run.ID)
	if err != nil {
		return goclaw.Run{}, err
	}
	open, problem := turn.CallerCalls(run, turn.Fold(events)).Take(results)
	if problem != "" {
		return goclaw.Run{}, goclaw.BadRequest(problem)
	}
	for _, r := range open {
		text, err := json.Marshal(r)
		if err != nil {
			return goclaw.Run{}, fmt.Errorf("encode result: %w", err)
		}
		err = e.o.Store.Post(ctx, run.ID, goclaw.InboxItem{
			ID: resultItem(run.ID, r.CallID), Kind: goclaw.ItemResults, Session: run.Session, Group: run.ID,
			Text: string(text), CreatedAt: goclaw.At(time.Now()),
		})
		if err != nil {
			return goclaw.Run{}, fmt.Errorf("result of %s: %w", r.CallID, err)
		}
	}
	e.Wake()
	return run, nil
}

func resultItem(run, call string) string { return "result:" + run + ":" + call }

// supersede cancels an earlier turn of a new turn's session that waits for
// results of its caller's tools: the caller goes on without giving them.
func (e *Engine) supersede(ctx context.Context, by goclaw.Run) error {
	active, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Session: by.Session, Active: true})
	if err != nil {
		return fmt.Errorf("look for waiting turns: %w", err)
	}
	for _, r := range active {
		if r.Ordinal >= by.Ordinal || r.State != goclaw.StateWaiting || r.WaitsFor != goclaw.WaitCaller {
			continue
		}
		if _, err := e.Cancel(ctx, r.ID, "the caller sent a new message instead of the results of its tools", true); err != nil {
			return err
		}
	}
	return nil
}

// offered is the caller's tool of that name, or nil.
func (j *job) offered(name string) *goclaw.ToolSpec {
	for i, t := range j.r.Profile.Caller {
		if t.Name == name {
			return &j.r.Profile.Caller[i]
		}
	}
	return nil
}

// checkOffered says what is wrong with a call to a caller's tool, or "".
func checkOffered(t goclaw.ToolSpec, c goclaw.ToolCall) string {
	s, err := schema.Compile(t.Schema)
	if err == nil {
		_, err = s.Check(c.Arguments)
	}
	if err != nil {
		return c.Name + ": " + err.Error()
	}
	return ""
}

// fromCaller is the result that the caller has given, or what the run waits
// for.
func (j *job) fromCaller(c goclaw.ToolCall) goclaw.ToolResult {
	items, err := j.e.o.Store.Pending(j.ctx, j.r.Session)
	if err != nil {
		return goclaw.ToolResult{Again: err}
	}
	id := resultItem(j.r.ID, c.ID)
	for _, it := range items {
		if it.ID != id {
			continue
		}
		var r goclaw.ToolResult
		if err := json.Unmarshal([]byte(it.Text), &r); err != nil {
			r = goclaw.ToolError("the caller's result could not be read: " + err.Error())
		}
		r.Consume = []string{id}
		return r
	}
	return goclaw.ToolResult{Suspend: &goclaw.WaitingEvent{For: goclaw.WaitCaller, Until: j.since(c).Add(callerPatience)}}
}

// insist holds the turn to the call that its caller requires: an answer without
// it goes back to the model once, and is none then.
func (j *job) insist(a *turn.Action, last []goclaw.Event) (back bool, err error) {
	must := j.r.Profile.MustCall
	if len(must) == 0 {
		return false, nil
	}
	for _, s := range j.state.All() {
		for _, c := range s.Calls {
			if _, begun := s.Intents[c.ID]; begun && slices.Contains(must, c.Name) {
				return false, nil
			}
		}
	}
	if j.state.Reminders > 0 {
		a.State, a.Error = goclaw.StateFailed, "the caller requires a call of "+strings.Join(must, " or ")+", and the model made none, although it was asked twice"
		return false, nil
	}
	return true, j.sendBack(last, goclaw.InputEvent{Reminder: true, Message: goclaw.Text(goclaw.RoleUser, mustCall(must))})
}

// mustCall tells the model what its caller requires.
func mustCall(names []string) string {
	which := names[0]
	if len(names) > 1 {
		which = "one of the tools " + strings.Join(names, ", ")
	}
	return "The client that sent this message requires that you call " + which + " before you answer it."
}

// abandoned is the error of a turn whose caller has not come back.
func abandoned(c goclaw.ToolCall, w *goclaw.WaitingEvent) error {
	if w == nil || w.For != goclaw.WaitCaller || w.Until > goclaw.At(time.Now()) {
		return nil
	}
	return fmt.Errorf("the caller gave no result for %s within %s", c.Name, callerPatience)
}
