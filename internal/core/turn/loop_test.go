package turn_test

import (
	"fmt"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/core/turn"
)

// made is one call on record.
type made struct {
	name, args, result string
	effects            bool // not idempotent
	refused            bool // told, not run
	resumed            bool // another process goes on after it
}

func record(calls []made) turn.State {
	events := []goclaw.Event{{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{}}}
	for i, m := range calls {
		id := fmt.Sprint("c", i)
		call := goclaw.ToolCall{ID: id, Name: m.name, Arguments: m.args}
		events = append(events, goclaw.Event{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{
			Message: goclaw.Message{Parts: []goclaw.Part{{Kind: goclaw.PartToolCall, Call: &call}}},
		}})
		if !m.refused {
			events = append(events, goclaw.Event{Kind: goclaw.EventIntent, Intent: &goclaw.IntentEvent{
				Calls: []goclaw.Intent{{CallID: id, Name: m.name, Idempotent: !m.effects}},
			}})
		}
		events = append(events, goclaw.Event{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{
			CallID: id, Name: m.name, Content: m.result, IsError: m.refused,
		}})
		if m.resumed {
			events = append(events, goclaw.Event{Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{}})
		}
	}
	return turn.Fold(events)
}

func times(n int, m made) []made {
	var all []made
	for range n {
		all = append(all, m)
	}
	return all
}

func TestLooping(t *testing.T) {
	read := made{name: "read", args: `{"path":"a"}`, result: "text"}
	build := made{name: "exec", args: `{"command":"make"}`, result: "failed", effects: true}
	told := read
	told.refused = true
	var edited, alternating, ticking []made
	for i := range 20 {
		edited = append(edited, made{name: "edit", args: fmt.Sprintf(`{"n":%d}`, i), result: "ok", effects: true}, build)
		alternating = append(alternating, build, made{name: "exec", args: `{"command":"ls"}`, result: "same", effects: true})
		ticking = append(ticking, made{name: "exec", args: `{"command":"make"}`, result: fmt.Sprint(i), effects: true})
	}
	for _, test := range []struct {
		name       string
		calls      []made
		next       made
		tell, stop bool
	}{
		{"new", nil, read, false, false},
		{"twice", times(2, read), read, false, false},
		{"thrice", times(3, read), read, true, false},
		{"written otherwise", times(3, read), made{name: "read", args: ` { "path" : "a" } `}, true, false},
		{"other arguments", times(9, read), made{name: "read", args: `{"path":"b"}`}, false, false},
		{"told and going on", append(times(3, read), times(2, told)...), read, true, false},
		{"told thrice", append(times(3, read), times(3, told)...), read, false, true},
		{"after each edit", edited, build, false, false},
		{"two in turn", alternating[:8], build, true, false},
		{"results differ", ticking[:7], build, false, false},
		{"results differ for long", ticking[:8], build, true, false},
		{"results differ for ever", ticking[:16], build, false, true},
		{"no JSON", times(3, made{name: "read", args: "{", refused: true}), made{name: "read", args: "{"}, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := turn.Looping(record(test.calls), goclaw.ToolCall{ID: "next", Name: test.next.name, Arguments: test.next.args})
			if (got.Tell != "") != test.tell || (got.Stop != "") != test.stop {
				t.Errorf("got %+v, want tell %v, stop %v", got, test.tell, test.stop)
			}
			if strings.Contains(got.Tell+got.Stop, "%!") {
				t.Errorf("badly worded: %+v", got)
			}
		})
	}
}

// A new process may look again at what the one before has looked at; then it is
// counted anew.
func TestLoopingAfterATakeover(t *testing.T) {
	read := made{name: "read", args: `{"path":"a"}`, result: "text"}
	call := goclaw.ToolCall{Name: read.name, Arguments: read.args}
	last := read
	last.resumed = true
	taken := append(times(5, read), last)
	if l := turn.Looping(record(taken), call); l != (turn.Loop{}) {
		t.Errorf("right after the takeover: %+v", l)
	}
	if l := turn.Looping(record(append(taken, times(6, read)...)), call); l.Stop == "" {
		t.Errorf("six more: %+v", l)
	}
}
