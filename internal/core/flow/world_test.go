package flow_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/flow"
)

// randomFlow draws a flow that can be used, with waves, loops and what steps say
// of each other.
func randomFlow(t *rapid.T) flow.Flow {
	f := flow.Flow{Name: "f", Limits: flow.Limits{Rounds: rapid.IntRange(1, 3).Draw(t, "rounds"), Items: 4}}
	n := rapid.IntRange(1, 9).Draw(t, "steps")
	for i := range n {
		s := flow.Step{ID: fmt.Sprintf("s%d", i), Agent: "x", Task: "t"}
		s.Optional = rapid.IntRange(0, 4).Draw(t, "optional") == 0
		if rapid.Bool().Draw(t, "gives") {
			s.Gives = []string{"A.md"}
		}
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, "after") == 0 {
				s.After = append(s.After, f.Steps[j].ID)
			}
		}
		if len(s.After) > 0 && rapid.IntRange(0, 3).Draw(t, "wave") == 0 {
			s.Each = s.After[0] + ".list"
			s.Task = "for {{item}}"
			if f.Steps[slices.IndexFunc(f.Steps, func(o flow.Step) bool { return o.ID == s.After[0] })].Each != "" {
				s.Each = s.After[0] // of a wave's results
			}
		}
		f.Steps = append(f.Steps, s)
	}
	usable := func() bool { return flow.CheckInput(f, nil) == nil }
	for i := range f.Steps { // whatever can't be is taken back
		s := &f.Steps[i]
		if before := *s; s.Each == "" && rapid.IntRange(0, 2).Draw(t, "loop") == 0 {
			s.Until = []flow.Condition{{Field: "ok", Is: json.RawMessage("true")}}
			s.Back = f.Steps[rapid.IntRange(0, i).Draw(t, "back")].ID
			if !usable() {
				*s = before
			}
		}
	}
	for i := range f.Steps {
		s, other := &f.Steps[i], f.Steps[rapid.IntRange(0, n-1).Draw(t, "other")]
		before := *s
		s.Task += " after {{" + other.ID + "}}"
		if len(other.Gives) > 0 {
			s.Takes = []flow.Take{{Step: other.ID, Name: "A.md"}}
		}
		if !usable() {
			*s = before
		}
	}
	if err := flow.CheckInput(f, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// world decides by a run's key alone what becomes of it.
type world struct {
	seed uint64
	bad  bool
}

func (w world) roll(what string, sides uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, what)
	return h.Sum64() >> 20 % sides
}

func (w world) end(s flow.Start) flow.StepRun {
	r := flow.StepRun{Key: s.Key, RunID: "run " + s.Key, State: goclaw.StateCompleted, Artifacts: s.Gives}
	if w.bad && w.roll("fails"+s.Key, 12) == 0 {
		r.State, r.Error = []goclaw.RunState{goclaw.StateFailed, goclaw.StateTimeout}[w.roll("how"+s.Key, 2)], "no luck"
		return r
	}
	if w.bad && w.roll("forgets"+s.Key, 15) == 0 {
		r.Artifacts = nil
	}
	list := make([]string, w.roll("list"+s.Key, 4))
	for i := range list {
		list[i] = fmt.Sprint(s.Key, i)
	}
	r.JSON, _ = json.Marshal(map[string]any{"list": list, "ok": w.roll("ok"+s.Key, 3) > 0})
	r.Result = "of " + s.Key
	return r
}

// simulation plays a flow in a world, in an order that t draws.
type simulation struct {
	f       flow.Flow
	w       world
	started map[string]flow.Start
	history []flow.StepRun
}

func (sim *simulation) run(t *rapid.T) flow.Next {
	sim.started = map[string]flow.Start{}
	for range 5000 {
		n := flow.Plan(sim.f, nil, sim.history)
		again := flow.Plan(sim.f, nil, rapid.Permutation(sim.history).Draw(t, "order"))
		if diff := cmp.Diff(n, again); diff != "" {
			t.Fatalf("the same history, another plan: %s", diff)
		}
		if n.Ended {
			if len(n.Start)+len(n.Waiting)+len(n.Cancel) > 0 {
				t.Fatalf("it has ended and goes on: %+v", n)
			}
			return n
		}
		for i, s := range n.Start {
			if i > 0 && rapid.IntRange(0, 4).Draw(t, "crash") == 0 {
				break // the rest is planned again
			}
			sim.start(t, s)
		}
		under := slices.DeleteFunc(slices.Clone(sim.history), func(r flow.StepRun) bool { return r.State.Ended() })
		if len(under) == 0 {
			t.Fatalf("nothing is under way, and it has not ended: %+v", n)
		}
		if len(n.Start) > 0 && rapid.Bool().Draw(t, "go on") {
			continue
		}
		sim.end(rapid.SampledFrom(under).Draw(t, "ends").Key, len(n.Cancel) > 0)
	}
	t.Fatal("it does not end")
	return flow.Next{}
}

func (sim *simulation) end(key string, cancelled bool) {
	i := slices.IndexFunc(sim.history, func(r flow.StepRun) bool { return r.Key == key })
	sim.history[i] = sim.w.end(sim.started[key])
	if cancelled {
		sim.history[i] = flow.StepRun{Key: key, RunID: "run " + key, State: goclaw.StateCancelled}
	}
}

// start checks what must hold whenever a run is started, by the history alone.
func (sim *simulation) start(t *rapid.T, s flow.Start) {
	if _, twice := sim.started[s.Key]; twice {
		t.Fatalf("%s is started twice", s.Key)
	}
	step := sim.step(s.Step)
	for _, id := range step.After {
		ran := false
		for _, r := range sim.history {
			if flow.StepOf(r.Key) == id {
				ran = true
				if !r.State.Ended() || r.State != goclaw.StateCompleted && !sim.step(id).Optional {
					t.Fatalf("%s starts, and %s is %s", s.Key, r.Key, r.State)
				}
			}
		}
		if !ran && sim.step(id).Each == "" {
			t.Fatalf("%s starts before %s", s.Key, id)
		}
	}
	for _, h := range s.Takes {
		if r := sim.history[slices.IndexFunc(sim.history, func(r flow.StepRun) bool { return r.Key == h.Key })]; r.RunID != h.RunID || !slices.Contains(r.Artifacts, h.Name) {
			t.Fatalf("%s takes %+v of %+v", s.Key, h, r)
		}
	}
	if s.Task == "" || s.Label == "" {
		t.Fatalf("%+v", s)
	}
	sim.started[s.Key] = s
	sim.history = append(sim.history, flow.StepRun{Key: s.Key, RunID: "run " + s.Key, State: goclaw.StateRunning})
}

func (sim *simulation) step(id string) flow.Step {
	return sim.f.Steps[slices.IndexFunc(sim.f.Steps, func(s flow.Step) bool { return s.ID == id })]
}

// bound is how often a step can run at most: in every round of every loop that
// may be around it, for each of the items.
func (sim *simulation) bound(id string) int {
	most := 1
	if sim.step(id).Each != "" {
		most = sim.f.Limits.Items
	}
	for _, s := range sim.f.Steps {
		if s.Back != "" {
			most *= sim.f.Limits.Rounds
		}
	}
	return most
}

func TestRandomFlows(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := randomFlow(t)
		w := world{rapid.Uint64().Draw(t, "world"), rapid.IntRange(0, 2).Draw(t, "bad") == 0}
		first := &simulation{f: f, w: w}
		second := &simulation{f: f, w: w}
		a, b := first.run(t), second.run(t)
		if a.State != b.State {
			t.Fatalf("the order decides: %s (%s) or %s (%s)", a.State, a.Error, b.State, b.Error)
		}
		seen[string(a.State)]++
		count := map[string]int{}
		for key, s := range first.started {
			count[s.Step]++
			if len(key) > len(s.Step) {
				seen["in waves and loops"]++
			}
			if other, ok := second.started[key]; a.State == goclaw.StateCompleted {
				if diff := cmp.Diff(s, other); diff != "" || !ok {
					t.Fatalf("the order decides about %s: %s", key, diff)
				}
			}
		}
		for id, n := range count {
			if n > first.bound(id) {
				t.Fatalf("%s ran %d times; %d are the most", id, n, first.bound(id))
			}
		}
		if a.State == goclaw.StateCompleted {
			if diff := cmp.Diff(a, b); diff != "" || len(first.started) != len(second.started) {
				t.Fatalf("the order decides about the result: %s", diff)
			}
		}
	})
	t.Log(seen)
	for _, want := range []string{"completed", "failed", "in waves and loops"} {
		if seen[want] == 0 {
			t.Errorf("nothing was %s", want)
		}
	}
}
