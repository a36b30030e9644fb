package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goclaw"
)

// Whatever is recorded is told, in order, once, and no piece of text follows
// the event that records it.
func TestRecordedEventsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, rigOptions{
			tools: []goclaw.Tool{newTool("read_note", true, func(context.Context, goclaw.Invocation) goclaw.ToolResult { return goclaw.ToolOK("yes") })},
			brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
				switch {
				case isWorker(q) && len(q.Messages) == 1:
					return calls(goclaw.ToolCall{Name: "read_note", Arguments: "{}"})
				case isWorker(q):
					return text("the note says so")
				case len(q.Messages) == 1:
					return calls(goclaw.ToolCall{Name: "sessions_spawn", Arguments: `{"task":"look"}`})
				}
				return text("done")
			},
		})
		stop := rig.start(t.Context())
		rig.say("go")
		runs := rig.settle()
		stop()
		told := map[string][]goclaw.Event{}
		pieces := 0
		for _, n := range rig.heard() {
			switch {
			case n.Kind == goclaw.NoticeEvent:
				told[n.RunID] = append(told[n.RunID], *n.Event)
			case n.Kind == goclaw.NoticeText:
				if pieces++; n.Seq != len(told[n.RunID]) {
					t.Errorf("a piece of event %d of %s, of which %d are told", n.Seq, n.RunID, len(told[n.RunID]))
				}
			}
		}
		if len(runs) < 3 || pieces == 0 {
			t.Fatalf("%d runs, %d pieces", len(runs), pieces)
		}
		for _, r := range runs {
			events, err := rig.store.Events(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(events, told[r.ID], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("run %s: %s", r.ID, diff)
			}
		}
	})
}
