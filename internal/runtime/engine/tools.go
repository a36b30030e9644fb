package engine

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"goclaw"
)

// intents checks a reply's calls. The good ones become recorded intents; the
// bad ones get a result at once, which tells the model what to mend.
func (j *job) intents(calls []goclaw.ToolCall) []goclaw.Event {
	var good goclaw.IntentEvent
	var events []goclaw.Event
	for _, c := range calls {
		if problem := j.check(c); problem != "" {
			res := goclaw.ToolResult{CallID: c.ID, Name: c.Name, IsError: true, Content: errorJSON(problem)}
			events = append(events, goclaw.Event{Kind: goclaw.EventResult, Result: &res})
			continue
		}
		spec := j.e.tools[c.Name].Spec()
		good.Calls = append(good.Calls, goclaw.Intent{CallID: c.ID, Name: c.Name, Idempotent: spec.Idempotent})
	}
	if len(good.Calls) > 0 {
		events = append([]goclaw.Event{{Kind: goclaw.EventIntent, Intent: &good}}, events...)
	}
	return events
}

// check says what is wrong with a call, or "".
func (j *job) check(c goclaw.ToolCall) string {
	if !slices.Contains(j.r.Profile.Tools, c.Name) || j.e.tools[c.Name] == nil {
		return fmt.Sprintf("the tool %q is not available here; available: %s", c.Name, strings.Join(j.r.Profile.Tools, ", "))
	}
	if _, err := j.e.schemas[c.Name].Check(c.Arguments); err != nil {
		return c.Name + ": " + err.Error()
	}
	return ""
}

func errorJSON(problem string) string {
	b, err := json.Marshal(goclaw.Failed(problem))
	if err != nil {
		return problem
	}
	return string(b)
}

// callTools runs the calls that have no result: neighbours that are idempotent
// and not ordered at the same time, all others alone and in order. Each result is a step.
func (j *job) callTools(calls []goclaw.ToolCall) error {
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && j.parallel(calls[n-1]) && j.parallel(calls[n]) {
			n++
		}
		if err := j.callTogether(calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

func (j *job) idempotent(c goclaw.ToolCall) bool {
	t := j.e.tools[c.Name]
	return t != nil && t.Spec().Idempotent
}

func (j *job) parallel(c goclaw.ToolCall) bool {
	return j.idempotent(c) && !j.e.tools[c.Name].Spec().Ordered
}

func (j *job) callTogether(calls []goclaw.ToolCall) error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { errs[i] = j.callTool(c) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *job) callTool(c goclaw.ToolCall) error {
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeToolCall, Session: j.r.Session, RunID: j.r.ID, Call: &c})
	j.e.o.Hook("tool.before")
	res := j.invoke(c)
	j.e.o.Hook("tool.after")
	if j.ctx.Err() != nil && j.idempotent(c) {
		return j.ctx.Err() // not worth recording: it can run again
	}
	res.CallID, res.Name = c.ID, c.Name
	if err := j.append([]goclaw.Event{{Kind: goclaw.EventResult, Result: &res}}, goclaw.Batch{}); err != nil {
		return err
	}
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeToolResult, Session: j.r.Session, RunID: j.r.ID, Result: &res})
	return nil
}

// invoke never panics: a tool's bug is a failed call, and logged.
func (j *job) invoke(c goclaw.ToolCall) (res goclaw.ToolResult) {
	tool := j.e.tools[c.Name]
	if tool == nil {
		return goclaw.ToolError(errorJSON(fmt.Sprintf("the tool %q does not exist any more", c.Name)))
	}
	args, err := j.e.schemas[c.Name].Check(c.Arguments)
	if err != nil {
		return goclaw.ToolError(errorJSON(err.Error()))
	}
	c.Arguments = args
	defer func() {
		if p := recover(); p != nil {
			j.e.o.Log.Error("tool panicked", "tool", c.Name, "run", j.r.ID, "panic", p, "stack", string(debug.Stack()))
			res = goclaw.ToolError(fmt.Sprintf("internal error in %s; the call may have had effects", c.Name))
		}
	}()
	return tool.Call(j.ctx, goclaw.Invocation{
		Call: c, Fence: j.fence, Session: j.r.Session, Depth: j.r.Depth, Profile: j.r.Profile,
	})
}
