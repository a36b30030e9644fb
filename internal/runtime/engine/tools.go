package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/core/turn"
)

// intents checks a reply's calls. The good ones become recorded intents; the
// bad ones get a result at once, which tells the model what to mend. circling
// says why the run must end: then no call is good.
func (j *job) intents(calls []goclaw.ToolCall) (events []goclaw.Event, circling string) {
	for _, c := range calls {
		circling = cmp.Or(circling, turn.Looping(j.state, c).Stop)
	}
	var good goclaw.IntentEvent
	for _, c := range calls {
		problem := cmp.Or(circling, j.check(c), turn.Looping(j.state, c).Tell)
		if problem != "" {
			res := goclaw.ToolResult{CallID: c.ID, Name: c.Name, IsError: true, Content: errorJSON(problem)}
			events = append(events, goclaw.Event{Kind: goclaw.EventResult, Result: &res})
			continue
		}
		good.Calls = append(good.Calls, goclaw.Intent{CallID: c.ID, Name: c.Name, Idempotent: j.idempotent(c)})
	}
	if len(good.Calls) > 0 {
		events = append([]goclaw.Event{{Kind: goclaw.EventIntent, Intent: &good}}, events...)
	}
	return events, circling
}

// check says what is wrong with a call, or "".
func (j *job) check(c goclaw.ToolCall) string {
	if t := j.offered(c.Name); t != nil {
		return checkOffered(*t, c)
	}
	if !slices.Contains(j.r.Profile.Tools, c.Name) || j.e.tools[c.Name] == nil {
		return fmt.Sprintf("the tool %q is not available here; available: %s", c.Name, strings.Join(j.r.Profile.Tools, ", "))
	}
	if _, err := j.e.schemas[c.Name].Check(c.Arguments); err != nil {
		return c.Name + ": " + err.Error()
	}
	return j.ruled(c)
}

// ruled says which rule of the run's definition stands against a call, or "".
func (j *job) ruled(c goclaw.ToolCall) string {
	var where func() (string, error)
	if t, ok := j.e.tools[c.Name].(goclaw.PathTool); ok {
		where = func() (string, error) { return t.Target(j.invocation(c)) }
	}
	if denied := j.spec.Tools.Refuses(c.Name, c.Arguments, where); denied != "" {
		return fmt.Sprintf("%s: the worker's definition (%s) does not allow %q", c.Name, j.spec.Name, denied)
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
// and not ordered at the same time, all others alone and in order. Each result
// is a step. None begins once the run is to stop. If a call has no result yet, the run waits for it.
func (j *job) callTools(calls []goclaw.ToolCall) error {
	var waiting []goclaw.ToolCall
	for len(calls) > 0 {
		if j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		n := 1
		for n < len(calls) && j.parallel(calls[n-1]) && j.parallel(calls[n]) {
			n++
		}
		w, err := j.callTogether(calls[:n])
		if err != nil {
			return err
		}
		waiting = append(waiting, w...)
		calls = calls[n:]
	}
	if len(waiting) == 0 {
		return nil
	}
	// What came before the calls were made once more can't be missed.
	items, err := j.pending()
	if err != nil {
		return err
	}
	var wait *goclaw.WaitingEvent
	for _, c := range waiting {
		w, err := j.callTool(c)
		if err != nil || w == nil {
			return err // one has its result now: look at all again
		}
		if wait == nil || wait.Until == 0 || w.Until != 0 && w.Until < wait.Until {
			wait = w
		}
	}
	err = j.suspend(*wait, len(items))
	if errors.Is(err, goclaw.ErrWoken) {
		return nil
	}
	return err
}

// idempotent reports whether a call may be made again. To call a caller's tool
// is to look whether the caller has given its result.
func (j *job) idempotent(c goclaw.ToolCall) bool {
	t := j.e.tools[c.Name]
	return j.offered(c.Name) != nil || t != nil && t.Spec().Idempotent
}

func (j *job) parallel(c goclaw.ToolCall) bool {
	return j.idempotent(c) && (j.offered(c.Name) != nil || !j.e.tools[c.Name].Spec().Ordered)
}

// callTogether returns the calls that have no result yet.
func (j *job) callTogether(calls []goclaw.ToolCall) (waiting []goclaw.ToolCall, err error) {
	errs, waits := make([]error, len(calls)), make([]*goclaw.WaitingEvent, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { waits[i], errs[i] = j.callTool(c) })
	}
	wg.Wait()
	for i, c := range calls {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if waits[i] != nil {
			waiting = append(waiting, c)
		}
	}
	return waiting, nil
}

// callTool makes a call and records its result, or returns what it waits for.
func (j *job) callTool(c goclaw.ToolCall) (*goclaw.WaitingEvent, error) {
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeToolCall, Session: j.r.Session, RunID: j.r.ID, Call: &c})
	if !j.idempotent(c) {
		if err := j.ours(); err != nil {
			return nil, err
		}
	}
	j.e.o.Hook("tool.before")
	res, err := ask(j, c.Name, func(context.Context) (goclaw.ToolResult, error) {
		res := j.invoke(c)
		if j.idempotent(c) {
			return res, res.Again
		}
		return res, nil
	})
	j.e.o.Hook("tool.after")
	if err != nil {
		return nil, err
	}
	if j.ctx.Err() != nil && j.idempotent(c) {
		return nil, j.ctx.Err() // not worth recording: it can run again
	}
	if res.Suspend != nil && j.idempotent(c) {
		return res.Suspend, abandoned(c, res.Suspend)
	}
	if res.Again != nil {
		res = goclaw.ToolError(errorJSON(res.Again.Error()))
	}
	res.CallID, res.Name = c.ID, c.Name
	err = j.append([]goclaw.Event{{Kind: goclaw.EventResult, Result: &res}}, goclaw.Batch{Consume: res.Consume, Artifacts: res.Artifacts})
	if errors.Is(err, goclaw.ErrConsumed) && j.idempotent(c) {
		return j.callTool(c) // what it tells of was told elsewhere meanwhile
	}
	if err != nil {
		return nil, err
	}
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeToolResult, Session: j.r.Session, RunID: j.r.ID, Result: &res})
	return nil, nil
}

// invoke never panics: a tool's bug is a failed call, and logged.
func (j *job) invoke(c goclaw.ToolCall) (res goclaw.ToolResult) {
	if j.offered(c.Name) != nil {
		return j.fromCaller(c)
	}
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
	in := j.invocation(c)
	in.Since = j.since(c)
	return tool.Call(j.ctx, in)
}

func (j *job) invocation(c goclaw.ToolCall) goclaw.Invocation {
	return goclaw.Invocation{
		Call: c, Fence: j.fence, Session: j.r.Session, Depth: j.r.Depth, Profile: j.r.Profile, Root: j.r.Root, Lane: j.r.Lane,
	}
}

// since is when the call's intent was recorded.
func (j *job) since(c goclaw.ToolCall) goclaw.Millis {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, st := range slices.Backward(j.state.Steps) {
		if _, ok := st.Intents[c.ID]; ok {
			return st.Since
		}
	}
	return goclaw.At(time.Now())
}
