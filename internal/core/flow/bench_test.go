package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"goclaw/internal/core/flow"
)

// One plan in the middle of a wave of a thousand runs, and one at its end, where
// the next thousand start.
func BenchmarkPlan(b *testing.B) {
	f := mustParse(b, "limits: {items: 1000}\nsteps:\n- {id: a, agent: x, task: t}\n- {id: b, task: '{{item}} {{a.note}}', each: a.list, gives: [N.md]}\n- {id: c, agent: x, task: '{{item}} {{a}}', each: b, takes: [b/N.md]}\n")
	list := make([]int, 1000)
	raw, err := json.Marshal(map[string]any{"list": list, "note": "n"})
	if err != nil {
		b.Fatal(err)
	}
	history := []flow.StepRun{done("a", string(raw))}
	for i := range list {
		history = append(history, done(fmt.Sprintf("b[%d]", i), "x", "N.md"))
	}
	for name, n := range map[string]int{"middle": 501, "end": 1001} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if next := flow.Plan(f, nil, history[:n]); len(next.Start) < 500 {
					b.Fatal(next.Error)
				}
			}
		})
	}
}
