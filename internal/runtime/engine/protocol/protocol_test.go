package protocol

import (
	"os"
	"strconv"
	"testing"
	"time"

	"goclaw"
)

// maxStates ends an exploration that grows beyond memory, as a failure.
const maxStates = 3_000_000

func explore(t *testing.T, sc scenario) *explorer {
	t.Helper()
	x, err := newExplorer(sc)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	all := x.run(maxStates)
	deepest := int32(0)
	for _, n := range x.nodes {
		deepest = max(deepest, n.depth)
	}
	if !all {
		for i, n := range x.nodes {
			if n.depth == deepest {
				x.broken = &violation{"too deep", int32(i)}
			}
		}
	}
	t.Logf("%s: %d states, %d transitions, longest path %d, %d stores, %d jobs, %d questions, all: %v, %s", sc.name, len(x.nodes), x.moves, deepest, len(x.snaps), len(x.jobs.all), len(x.known), all, time.Since(began))
	return x
}

func limits(more ...fault) (l [kinds]uint8) {
	for _, f := range more {
		l[f]++
	}
	return l
}

func scenarios() []scenario {
	return []scenario{
		standard(scenario{
			name: "two workers", slow: true, begin: []goclaw.Run{user("u")},
			brain: script(map[string][]reply{
				"u":  {calls("c1 sessions_spawn w1", "c2 sessions_spawn w2")},
				"w1": {calls("x append")},
				"w2": {calls("x append")},
			}),
			limits: limits(crash, clockJump), together: 1,
		}),
		standard(scenario{
			name: "takeover", leaves: []string{"w"},
			brain: script(map[string][]reply{
				"w": {calls("x append", "y append", "z read")},
			}),
			limits: limits(crash, crash, clockJump, clockJump), together: 2,
		}),
		standard(scenario{
			name: "planned stop", slow: true, leaves: []string{"w"},
			brain: script(map[string][]reply{
				"w": {calls("x append", "y append", "z read")},
			}),
			limits: limits(planned, impatient, crash, clockJump), together: 1,
		}),
		standard(scenario{
			name: "orchestrator", slow: true, leaves: []string{"lead"},
			brain: script(map[string][]reply{
				"lead": {calls("d sessions_spawn a"), {text: "I wait"}, calls("x append")},
			}),
			limits: limits(steered, crash, clockJump), together: 1, steer: "lead",
		}),
		standard(scenario{
			name: "one slot", leaves: []string{"lead"}, maxWorkers: 1,
			brain: script(map[string][]reply{
				"lead": {calls("d sessions_spawn a", "e sessions_spawn b")},
			}),
			limits: limits(crash, clockJump), together: 1,
		}),
		standard(scenario{
			name: "mixed modes", slow: true, leaves: []string{"lead"},
			brain: script(map[string][]reply{
				"lead": {calls("d sessions_spawn a", "e sessions_spawn b each")},
			}),
			limits: limits(clockJump), together: 1,
		}),
		standard(scenario{
			name: "waiting tool", slow: true, leaves: []string{"lead"},
			brain: script(map[string][]reply{
				"lead": {calls("d sessions_spawn a"), calls("e wait", "f append")},
			}),
			limits: limits(steered, crash, clockJump), together: 1, steer: "lead",
		}),
		standard(scenario{
			name: "cancel", slow: true, leaves: []string{"lead"},
			brain: script(map[string][]reply{
				"lead": {calls("d sessions_spawn a")},
			}),
			limits: limits(cancelling, crash, clockJump), together: 1, cancel: []string{"lead", "a"},
		}),
		standard(scenario{
			name: "cancel a turn", slow: true, begin: []goclaw.Run{user("u"), user("v")},
			brain: script(map[string][]reply{
				"u": {calls("c sessions_spawn w")},
			}),
			limits: limits(cancelling, crash, clockJump), together: 1, cancel: []string{"u", "v", "t3"},
		}),
		standard(scenario{
			name: "time limit", leaves: []string{"lead"},
			brain: script(map[string][]reply{
				"lead": {calls("d sessions_spawn a")},
			}),
			workers: goclaw.Profile{TimeoutMs: 20000}, only: "lead",
			limits: limits(crash, clockJump), together: 1,
		}),
		standard(scenario{
			name: "two turns for one item", leaves: []string{"w", "x"}, begin: []goclaw.Run{user("v")}, brain: script(nil),
			limits: limits(crash, clockJump), together: 1, slow: true,
		}),
		standard(scenario{
			name: "clocks that differ", leaves: []string{"w", "x"}, brain: script(nil), skew: [2]goclaw.Millis{0, 3000},
			limits: limits(crash), together: 1,
		}),
		standard(scenario{
			name: "failed turns", leaves: []string{"w"}, mayFail: true, brain: script(nil),
			limits: limits(modelDown, modelDown, retried, crash, clockJump), together: 1,
		}),
		standard(scenario{
			name: "policy ask", leaves: []string{"w"}, workers: goclaw.Profile{RestartPolicy: goclaw.RestartAsk},
			brain: script(map[string][]reply{
				"w": {calls("x append")},
			}),
			limits: limits(resumed, steered, crash, clockJump), together: 1, steer: "w",
		}),
		standard(scenario{
			name: "policy fail", leaves: []string{"w"}, mayFail: true, workers: goclaw.Profile{RestartPolicy: goclaw.RestartFail},
			brain: script(map[string][]reply{
				"w": {calls("x append")},
			}),
			limits: limits(crash, clockJump), together: 1, steer: "w",
		}),
	}
}

// TestProtocol explores every scenario to its end: no state that can be reached
// breaks a promise, and from each the work comes to its end.
func TestProtocol(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			if raceDetector && sc.slow {
				t.Skip("one goroutine: the race detector finds nothing here, and takes minutes")
			}
			t.Parallel()
			if d, err := strconv.Atoi(os.Getenv("GOCLAW_EXPLORE_DEPTH")); err == nil && d > 0 {
				sc.limits[crash], sc.limits[clockJump], sc.together = uint8(d), uint8(d), d
			}
			if x := explore(t, sc); x.broken != nil {
				t.Fatal(x.trace())
			}
		})
	}
}
