package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"goclaw"
)

// loopRun is the id of a loop's run.
const loopRun = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

// loop is a gateway with one run, whose model calls its caller's tools in rounds
// and then says what the results were. What the engine does with the calls is
// its own tests' matter.
type loop struct {
	*fake
	rounds [][]goclaw.ToolCall

	mu   sync.Mutex
	log  goclaw.RunLog
	took int // rounds that were answered
}

func newLoop(rounds ...[]goclaw.ToolCall) *loop {
	l := &loop{fake: &fake{}, rounds: rounds}
	l.fake.receive, l.fake.await, l.fake.runLog, l.fake.answerCalls = l.accept, l.outcome, l.record, l.results
	l.fake.runs = func(q goclaw.RunFilter) []goclaw.Run {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.log.Run.ID == "" || q.Session != l.log.Run.Session {
			return nil
		}
		return []goclaw.Run{l.log.Run}
	}
	return l
}

func (l *loop) accept(_ context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log.Run.ID != "" { // another turn
		return goclaw.Receipt{Run: &goclaw.Run{ID: "run-2", Session: in.Session}}, nil
	}
	l.log.Run = goclaw.Run{ID: loopRun, Session: in.Session, Task: in.Text, CreatedAt: 1700000001000, State: goclaw.StateRunning,
		Profile: goclaw.Profile{Caller: in.Caller}}
	l.speak()
	r := l.log.Run
	return goclaw.Receipt{Run: &r}, nil
}

// speak records the next reply; l.mu is held.
func (l *loop) speak() {
	add := func(e goclaw.Event) { l.log.Events = append(l.log.Events, e) }
	text := fmt.Sprintf("Round %d.", l.took+1)
	if l.took == len(l.rounds) || len(l.log.Run.Profile.Caller) == 0 {
		var got []string
		for _, e := range l.log.Events {
			if e.Result != nil && e.Result.Name != "read" {
				got = append(got, e.Result.Content)
			}
		}
		text = "I got " + strings.Join(got, ", ")
		l.log.Run.State, l.log.Run.Result = goclaw.StateCompleted, text
	}
	m := goclaw.Text(goclaw.RoleAssistant, text)
	l.log.Run.Usage = l.log.Run.Usage.Add(goclaw.Usage{Input: 10, Output: 1})
	if l.log.Run.State == goclaw.StateCompleted {
		add(goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: m, Usage: goclaw.Usage{Input: 10, Output: 1}}})
	} else {
		var intent goclaw.IntentEvent
		calls := append([]goclaw.ToolCall{{ID: "own", Name: "read", Arguments: "{}"}, {ID: "bad", Name: "look", Arguments: "{"}}, l.rounds[l.took]...)
		for _, c := range calls {
			m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: &c})
			if c.ID != "bad" {
				intent.Calls = append(intent.Calls, goclaw.Intent{CallID: c.ID, Name: c.Name})
			}
		}
		add(goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: m, Usage: goclaw.Usage{Input: 10, Output: 1}}})
		add(goclaw.Event{Kind: goclaw.EventIntent, Intent: &intent})
		add(goclaw.Event{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{CallID: "own", Name: "read", Content: "a file"}})
		l.log.Run.State, l.log.Run.WaitsFor = goclaw.StateWaiting, goclaw.WaitCaller
	}
	r := l.log.Run
	l.publish(say(r.Session, r.ID, text), goclaw.Notice{Kind: goclaw.NoticeRun, Session: r.Session, RunID: r.ID, Run: &r})
}

func (l *loop) outcome(_ context.Context, run string, _ bool) (goclaw.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if run != loopRun {
		return answer, nil
	}
	r := l.log.Run
	out := goclaw.Outcome{Session: r.Session, Status: r.State, Error: r.Error, Turns: 1, Usage: r.Usage, Reply: r.Result, Replies: []string{}}
	if r.Result != "" {
		out.Replies = append(out.Replies, r.Result)
	}
	if r.State == goclaw.StateWaiting {
		out.Calls = l.rounds[l.took]
	}
	return out, nil
}

func (l *loop) record(id string) (goclaw.RunLog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == "" || !strings.HasPrefix(l.log.Run.ID, id) {
		return goclaw.RunLog{}, fmt.Errorf("run %q: %w", id, goclaw.ErrNotFound)
	}
	return goclaw.RunLog{Run: l.log.Run, Events: slices.Clone(l.log.Events)}, nil
}

func (l *loop) results(run string, results []goclaw.ToolResult) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if run != l.log.Run.ID || l.log.Run.State.Ended() {
		return fmt.Errorf("run %s: %w", run, goclaw.ErrEnded)
	}
	for _, c := range l.rounds[l.took] {
		i := slices.IndexFunc(results, func(r goclaw.ToolResult) bool { return r.CallID == c.ID && r.Name == c.Name })
		if i < 0 {
			return goclaw.BadRequest("results are missing for: " + c.ID)
		}
		l.log.Events = append(l.log.Events, goclaw.Event{Kind: goclaw.EventResult, Result: &results[i]})
	}
	l.took++
	l.log.Run.State, l.log.Run.WaitsFor = goclaw.StateRunning, ""
	l.speak()
	return nil
}

// end lets the run end as the engine would.
func (l *loop) end(state goclaw.RunState, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Run.State, l.log.Run.Error, l.log.Run.WaitsFor = state, why, ""
}

func look(id, arguments string) goclaw.ToolCall {
	return goclaw.ToolCall{ID: id, Name: "look", Arguments: arguments}
}

// lookSchema are the parameters of the caller's tool.
var lookSchema = map[string]any{"type": "object", "properties": map[string]any{"at": map[string]any{"type": "string"}}}

// offers checks that a run was offered the caller's tool.
func offers(tools []goclaw.ToolSpec) error {
	want, _ := json.Marshal(lookSchema)
	if len(tools) != 1 || tools[0].Name != "look" || tools[0].Description != "Looks." || string(tools[0].Schema) != string(want) {
		return fmt.Errorf("offered %+v", tools)
	}
	return nil
}
