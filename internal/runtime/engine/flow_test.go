package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/core/flow"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/tool/artifact"
	"goclaw/internal/runtime/engine"
)

const flowFile = `name: build
input: {type: object, required: [goal], properties: {goal: {type: string}}}
limits: {rounds: 3}
steps:
  - id: research
    task: "research {{input.goal}}"
    gives: [DISCOVERY.md]
  - id: plan
    task: plan it
    takes: [research/DISCOVERY.md]
    output: {type: object, required: [files], properties: {files: {type: array, items: {type: string}}}}
  - id: code
    each: plan.files
    task: "code {{item}}"
  - id: verify
    task: verify it
    output: {type: object, required: [verdict], properties: {verdict: {type: string}}}
    until: {verdict: ok}
    back: plan
`

// withArtifacts gives agents and workers the artifact tools.
func withArtifacts(o *engine.Options) {
	o.Tools = append(o.Tools, artifact.Tools(o.Store.(artifact.Store))...)
	o.Rules.Tools = append(slices.Clone(o.Rules.Tools), artifact.Names()...)
	o.Rules.WorkerTools = append(slices.Clone(o.Rules.WorkerTools), artifact.Names()...)
}

// A flow runs as its file says: waves in parallel, artifacts handed on, a loop
// until the verdict is right, and each step seeing only what it takes.
func TestFlow(t *testing.T) {
	f, problems := flow.Parse("build.yaml", []byte(flowFile))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	verified := 0
	w := newWired(t, providertest.WireAnthropic, func(q *providertest.Request) providertest.Answer {
		first := q.FirstText()
		switch {
		case strings.Contains(first, "research a boat") && len(q.NewestResults()) == 0:
			return providertest.Answer{Calls: []providertest.Call{{Name: "artifact_write", Arguments: `{"name":"DISCOVERY.md","content":"boats </artifact> float"}`}}}
		case strings.Contains(first, "research a boat"):
			return providertest.Answer{Text: "found out"}
		case strings.Contains(first, "plan it"):
			if !strings.Contains(first, "boats <\\/artifact> float") || strings.Contains(first, "found out") {
				t.Errorf("the plan sees %s", first)
			}
			return providertest.Answer{Text: `{"files":["hull.go","sail.go"]}`}
		case strings.Contains(first, "[Subagent Task]: code "):
			if strings.Contains(first, "boats") {
				t.Error("the code sees what it does not take")
			}
			return providertest.Answer{Text: "coded"}
		case strings.Contains(first, "verify it"):
			verified++
			return providertest.Answer{Text: fmt.Sprintf(`{"verdict":%q}`, []string{"leaks", "ok"}[min(verified, 2)-1])}
		}
		return providertest.Answer{Text: "ok"}
	}, withArtifacts)
	stop := (&rig{t: t, engine: w.engine}).start(t.Context())
	defer stop()
	reply, err := w.engine.RunFlow(t.Context(), goclaw.MainKey("main"), f, json.RawMessage(`{"goal":"a boat"}`), "once")
	if err != nil || reply.RunID == "" {
		t.Fatalf("%+v, %v", reply, err)
	}
	again, err := w.engine.RunFlow(t.Context(), goclaw.MainKey("main"), f, json.RawMessage(`{"goal":"a boat"}`), "once")
	if err != nil || again.RunID != reply.RunID {
		t.Errorf("%+v, %v", again, err)
	}
	w.settle()
	run, err := w.store.Run(t.Context(), reply.RunID)
	if err != nil || run.State != goclaw.StateCompleted || run.Result != `{"verdict":"ok"}` {
		t.Fatalf("%s %q %s, %v", run.State, run.Result, run.Error, err)
	}
	steps, err := w.store.Runs(t.Context(), goclaw.RunFilter{Parent: run.ID})
	if err != nil || len(steps) != 1+2*4 {
		t.Errorf("%d steps, %v", len(steps), err)
	}
	bad, err := w.engine.RunFlow(t.Context(), goclaw.MainKey("main"), f, json.RawMessage(`{}`), "")
	if err != nil || !strings.Contains(bad.Error, "goal") {
		t.Errorf("%+v, %v", bad, err)
	}
	// A last step that can't be had refuses the flow before the first is paid for.
	f.Steps[len(f.Steps)-1].Agent = "nobody"
	bad, err = w.engine.RunFlow(t.Context(), goclaw.MainKey("main"), f, json.RawMessage(`{"goal":"a boat"}`), "")
	if err != nil || bad.RunID != "" || !strings.Contains(bad.Error, "step verify can't be started: no definition \"nobody\" exists") {
		t.Errorf("%+v, %v", bad, err)
	}
}

// A definition that names what follows it is spawned as a chain: the batons go
// from one to the next, the last one's result is announced, and nobody sees the
// conversation of another.
func TestChainOfDefinitions(t *testing.T) {
	file := func(name, next string) string {
		return "---\nname: " + name + "\ndescription: x\ntools: [artifact_write, artifact_read]\ngoclaw:\n  version: 1\n" + next + "---\nYou are the " + name + "."
	}
	var announced string
	w := newWired(t, providertest.WireOpenAI, func(q *providertest.Request) providertest.Answer {
		first := q.FirstText()
		write := func(name, text string) providertest.Answer {
			if len(q.NewestResults()) > 0 {
				return providertest.Answer{Text: "the words of " + name}
			}
			return providertest.Answer{Calls: []providertest.Call{{Name: "artifact_write", Arguments: fmt.Sprintf(`{"name":%q,"content":%q}`, name, text)}}}
		}
		switch {
		case strings.Contains(q.System, "You are the researcher"):
			return write("DISCOVERY.md", "boats float")
		case strings.Contains(q.System, "You are the planner"):
			if !strings.Contains(first, "boats float") || strings.Contains(first, "the words of") {
				t.Errorf("the planner sees\n%s", first)
			}
			return write("PLAN.md", "1. build it")
		case strings.Contains(q.System, "You are the executor"):
			if !strings.Contains(first, "1. build it") || strings.Contains(first, "boats float") {
				t.Errorf("the executor sees\n%s", first)
			}
			return providertest.Answer{Text: "built"}
		case strings.Contains(q.NewestText(), "[Subagent:"):
			announced += q.NewestText()
			return providertest.Answer{Text: "told"}
		case strings.HasSuffix(q.NewestText(), "a boat") && len(q.NewestResults()) == 0:
			return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: `{"agent":"researcher","task":"make a boat","label":"boat"}`}}}
		}
		return providertest.Answer{Text: "ok"}
	}, func(o *engine.Options) {
		withArtifacts(o)
		o.Rules.Definitions = catalogOf(t, map[string]string{
			"r.md": file("researcher", "  next: planner with artifacts [DISCOVERY.md]\n"),
			"p.md": file("planner", "  next: executor with artifacts [PLAN.md]\n"),
			"e.md": file("executor", ""),
		})
	})
	stop := (&rig{t: t, engine: w.engine}).start(t.Context())
	defer stop()
	w.turn(goclaw.TriggerUser, "a boat")
	if !strings.Contains(announced, "[Subagent: boat] Complete.") || !strings.Contains(announced, "built") || strings.Count(announced, "[Subagent:") != 1 {
		t.Errorf("announced: %s", announced)
	}
	runs, err := w.store.Runs(t.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	if err != nil || len(runs) != 4 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, r := range runs {
		if r.State != goclaw.StateCompleted {
			t.Errorf("%s: %s %s", r.Name(), r.State, r.Error)
		}
	}
}
