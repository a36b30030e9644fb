package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/core/flow"
)

func mustParse(t testing.TB, text string) flow.Flow {
	t.Helper()
	f, problems := flow.Parse("f.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return f
}

func done(key, result string, artifacts ...string) flow.StepRun {
	r := flow.StepRun{Key: key, RunID: "run-" + key, State: goclaw.StateCompleted, Result: result, Artifacts: artifacts}
	if json.Valid([]byte(result)) {
		r.JSON = json.RawMessage(result)
	}
	return r
}

func ended(key string, state goclaw.RunState, why string) flow.StepRun {
	return flow.StepRun{Key: key, RunID: "run-" + key, State: state, Error: why}
}

func keys(n flow.Next) string {
	var out []string
	for _, s := range n.Start {
		out = append(out, s.Key)
	}
	return strings.Join(out, " ")
}

func Example() {
	f, problems := flow.Parse("two.yaml", []byte(`
steps:
  - id: plan
    agent: planner
    task: Plan {{goal}}.
    gives: [PLAN.md]
  - id: do
    task: Do it.
    takes: [plan/PLAN.md]
`))
	fmt.Println(problems)
	input := json.RawMessage(`{"goal": "a bridge"}`)
	var history []flow.StepRun
	for {
		n := flow.Plan(f, input, history)
		if n.Ended {
			fmt.Println(n.State, n.Result)
			return
		}
		for _, s := range n.Start {
			fmt.Printf("%s: %q %v\n", s.Key, s.Task, s.Takes)
			history = append(history, flow.StepRun{Key: s.Key, RunID: "r-" + s.Key, State: goclaw.StateCompleted, Result: "done", Artifacts: s.Gives})
		}
	}
	// Output:
	// []
	// plan: "Plan a bridge.\n\nLeave behind, with artifact_write, before you end: PLAN.md." []
	// do: "Do it." [{plan r-plan PLAN.md}]
	// completed done
}

const whole = `
name: whole
input: {type: object, required: [goal], properties: {goal: {type: string}, hint: {type: string}}}
limits: {rounds: 2, items: 3}
steps:
  - id: look
    agent: researcher
    task: "Look at {{goal}}{{hint}}."
    gives: ["*.md"]
  - id: plan
    agent: planner
    task: "Plan {{ goal }}. Round {{round}}. Before: {{verify.problems}} \\{{goal}}"
    takes: [look/*.md, code/NOTES.md]
    input: {goal: "{{goal}}", known: "{{look}}", problems: "{{verify.problems}}", n: 1}
    output: {type: object, properties: {files: {type: array}}, required: [files]}
  - id: code
    each: plan.files
    task: "Write {{item.path}}: {{item}}"
    gives: [NOTES.md]
  - id: verify
    agentId: checker
    task: "Check\n{{code}}"
    takes: [code/NOTES.md]
    output: {type: object, required: [verdict], properties: {verdict: {enum: [ok, revise]}, problems: {type: array}}}
    until: {verdict: ok}
    back: plan
  - id: tell
    task: "Say what {{plan.files}} became: {{verify}}"
    optional: true
result: verify
`

func TestWhole(t *testing.T) {
	f := mustParse(t, whole)
	input := json.RawMessage(`{"goal":"it"}`)
	var history []flow.StepRun
	step := func(want string, more ...flow.StepRun) flow.Next {
		t.Helper()
		history = append(history, more...)
		n := flow.Plan(f, input, history)
		if got := keys(n); got != want {
			t.Fatalf("starts %q, want %q (%s)", got, want, n.Error)
		}
		return n
	}
	n := step("look")
	if n.Start[0].Task != "Look at it.\n\nLeave behind, with artifact_write, before you end: *.md." {
		t.Error(n.Start[0].Task)
	}
	n = step("plan@1", done("look", "found", "B.md", "x.txt", "A.md"))
	want := flow.Start{
		Key: "plan@1", Step: "plan", Label: "plan", Agent: "planner", Task: "Plan it. Round 1. Before:  {{goal}}",
		Input: json.RawMessage(`{"goal":"it","known":"found","n":1,"problems":null}`), OutputSchema: f.Steps[1].Output,
		Takes: []flow.Handle{{Key: "look", RunID: "run-look", Name: "A.md"}, {Key: "look", RunID: "run-look", Name: "B.md"}},
	}
	if diff := cmp.Diff(want, n.Start[0]); diff != "" {
		t.Error(diff)
	}
	n = step("code[0]@1 code[1]@1", done("plan@1", `{"files":[{"path":"a.go"},{"path":"b.go","n":1.50}]}`))
	if got := n.Start[1]; got.Task[:47] != `Write b.go: {"n":1.50,"path":"b.go"}`+"\n\nLeave beh" || got.Label != "code b.go" {
		t.Errorf("%q %q", got.Task, got.Label)
	}
	step("", ended("code[0]@1", goclaw.StateRunning, ""), done("code[1]@1", "two", "NOTES.md"))
	history = history[:len(history)-2]
	n = step("verify@1", done("code[1]@1", "two", "NOTES.md"), done("code[0]@1", "one", "NOTES.md"))
	if got := n.Start[0]; got.Task != "Check\n## a.go\n\none\n\n## b.go\n\ntwo" || len(got.Takes) != 2 || got.Takes[1].Key != "code[1]@1" || got.AgentID != "checker" {
		t.Errorf("%+v", got)
	}
	n = step("plan@2", done("verify@1", `{"verdict":"revise","problems":["a","b"]}`))
	if got := n.Start[0]; got.Task != `Plan it. Round 2. Before: ["a","b"] {{goal}}` || got.Label != "plan (round 2)" || len(got.Takes) != 4 {
		t.Errorf("%+v", got)
	}
	step("verify@2", done("plan@2", `{"files":[]}`))
	bound := flow.Plan(f, input, append(history[:len(history):len(history)], done("verify@2", `{"verdict":"revise"}`)))
	if !bound.Ended || bound.State != goclaw.StateFailed || bound.Error != `step verify@2: verdict is "revise", not "ok", after the last of 2 rounds` {
		t.Errorf("%+v", bound)
	}
	n = step("tell", done("verify@2", `{"verdict":"ok"}`))
	if got := n.Start[0].Task; got != `Say what [] became: {"verdict":"ok"}` {
		t.Error(got)
	}
	n = step("", ended("tell", goclaw.StateTimeout, ""))
	if !n.Ended || n.State != goclaw.StateCompleted || n.Result != `{"verdict":"ok"}` || string(n.JSON) != n.Result {
		t.Errorf("%+v", n)
	}
}

func TestFailures(t *testing.T) {
	const two = "steps:\n  - {id: a, task: t, gives: [A.md]}\n  - {id: b, task: t, after: []}\n  - {id: c, task: t, after: [a, b]}\n"
	const wave = "limits: {items: 2}\nsteps:\n  - {id: a, agent: x, task: t}\n  - {id: b, task: \"{{item.name}}\", each: a.list}\n"
	const loop = "steps:\n  - {id: a, agent: x, task: t, until: {n: 2, o.p: true}, back: a}\n"
	for _, tc := range []struct {
		name, flow, input, want string
		history                 []flow.StepRun
		cancel                  string
	}{
		{"failed", two, "", "step a failed: boom", []flow.StepRun{ended("a", goclaw.StateFailed, "boom"), ended("b", goclaw.StateRunning, "")}, "b"},
		{"failed without words", two, "", "step b failed", []flow.StepRun{ended("b", goclaw.StateFailed, "")}, ""},
		{"cancelled", two, "", "step a was cancelled", []flow.StepRun{ended("a", goclaw.StateCancelled, "")}, ""},
		{"the cause, not what it led to", two, "", "step b timed out", []flow.StepRun{ended("a", goclaw.StateCancelled, ""), ended("b", goclaw.StateTimeout, "")}, ""},
		{"the cause in a wave", wave, "", "step b[1] failed: x", []flow.StepRun{done("a", `{"list":[{"name":1},{"name":2}]}`), ended("b[0]", goclaw.StateCancelled, ""), ended("b[1]", goclaw.StateFailed, "x")}, ""},
		{"no artifact", two, "", "step a ended without its artifact A.md", []flow.StepRun{done("a", "x", "B.md")}, ""},
		{"no list", wave, "", "step b: a.list is a text, not a list", nil, ""},
		{"no field", wave, "", "step b: the result of a has no field list", []flow.StepRun{done("a", `{"lists":[]}`)}, ""},
		{"no JSON", wave, "", "step b: the result of a is no JSON, so it has no field list", []flow.StepRun{done("a", `sorry`)}, ""},
		{"too many", wave, "", "step b: a.list has 3 items; limits.items allows 2", []flow.StepRun{done("a", `{"list":[1,2,3]}`)}, ""},
		{"an item without the field", wave, "", "step b[1]: the item has no field name: it is a number", []flow.StepRun{done("a", `{"list":[{"name":"x"},2]}`)}, ""},
		{"until without JSON", loop, "", "step a@1: its result is no JSON", []flow.StepRun{done("a@1", "ok")}, ""},
		{"until without the field", loop, "", "step a@1: its result has no field o", []flow.StepRun{done("a@1", `{"n":2.0}`)}, ""},
		{"rounds", loop, "", "step a@3: n is 3, not 2, after the last of 3 rounds", []flow.StepRun{done("a@1", `{"n":1}`), done("a@2", `{"n":2,"o":{"p":false}}`), done("a@3", `{"n":3}`)}, ""},
		{"unknown run", two, "", "the run z[1]@2 is of no step of this flow", []flow.StepRun{done("z[1]@2", "x")}, ""},
		{"input", whole, "{}", `the flow's input: the required argument "goal" is missing`, nil, ""},
		{"input is a list", two, "[]", "the flow's input is a list, not an object", nil, ""},
		{"no schema, no field", "steps:\n  - {id: a, task: 't {{x.y}}'}\n", "{}", "the flow's input has no field x, which step a needs", nil, ""},
		{"no flow", "", "", "the flow can't be used: the flow has no steps", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := flow.Flow{}
			if tc.flow != "" {
				f = mustParse(t, tc.flow)
			}
			if tc.name == "no list" {
				tc.history = []flow.StepRun{done("a", `{"list":"x"}`)}
			}
			n := flow.Plan(f, json.RawMessage(tc.input), tc.history)
			if n.State != goclaw.StateFailed || n.Error != tc.want || len(n.Start) > 0 || strings.Join(n.Cancel, " ") != tc.cancel || n.Ended != (tc.cancel == "") {
				t.Errorf("%+v, want %q", n, tc.want)
			}
		})
	}
}

func TestOptional(t *testing.T) {
	f := mustParse(t, `
steps:
  - {id: list, agent: x, task: t, optional: true}
  - {id: work, each: list.all, task: "do {{item}}", gives: [N.md], optional: true}
  - {id: sum, task: "{{list.all}}|{{work}}", takes: [work/N.md]}
`)
	n := flow.Plan(f, nil, []flow.StepRun{ended("list", goclaw.StateFailed, "x")})
	if keys(n) != "sum" || n.Start[0].Task != "|" {
		t.Errorf("%+v", n)
	}
	n = flow.Plan(f, nil, []flow.StepRun{done("list", `{"all":["a","b","c"]}`), ended("work[0]", goclaw.StateFailed, ""), done("work[1]", "B", "N.md"), done("work[2]", "C")})
	if keys(n) != "sum" || n.Start[0].Task != "[\"a\",\"b\",\"c\"]|## b\n\nB" || len(n.Start[0].Takes) != 1 {
		t.Errorf("%+v", n)
	}
}

// An inner loop begins anew in each round of the outer one, and what stands
// behind a loop waits for its end.
func TestNestedLoops(t *testing.T) {
	f := mustParse(t, `
limits: {rounds: 2}
steps:
  - {id: a, task: "{{outer}}"}
  - {id: b, task: "{{inner}}"}
  - {id: aside, task: t}
  - {id: inner, agent: x, task: t, after: [b], until: {ok: true}, back: b}
  - {id: outer, agent: x, task: "{{b}}", after: [inner], until: {ok: true}, back: a}
`)
	no, yes := `{"ok":false}`, `{"ok":true}`
	history := []flow.StepRun{}
	for _, tc := range []struct{ key, result, starts string }{
		{"a@1", "", "b@1.1"}, {"b@1.1", "x", "inner@1.1"}, {"inner@1.1", no, "b@1.2"}, {"b@1.2", "y", "inner@1.2"},
		{"inner@1.2", yes, "outer@1"}, {"outer@1", no, "a@2"}, {"a@2", "", "b@2.1"}, {"b@2.1", "z", "inner@2.1"},
		{"inner@2.1", yes, "outer@2"}, {"outer@2", yes, "aside"}, {"aside", "end", ""},
	} {
		history = append(history, done(tc.key, tc.result))
		n := flow.Plan(f, nil, history)
		if keys(n) != tc.starts {
			t.Fatalf("after %s: %q, want %q: %s", tc.key, keys(n), tc.starts, n.Error)
		}
		for _, s := range n.Start {
			want, known := map[string]string{"b@1.2": no, "outer@1": "y", "a@2": no, "b@2.1": yes, "outer@2": "z"}[s.Key]
			if known && s.Task != want {
				t.Errorf("%s: %q, want %q", s.Key, s.Task, want)
			}
		}
	}
	n := flow.Plan(f, nil, history)
	if !n.Ended || n.State != goclaw.StateCompleted || n.Result != yes {
		t.Errorf("%+v", n)
	}
}

// What the input leaves out has its default.
func TestInputDefaults(t *testing.T) {
	f := mustParse(t, "input: {type: object, properties: {goal: {type: string, default: a <boat>}, n: {type: integer}}}\nsteps: [{id: a, task: \"{{goal}} {{n}}\"}]\n")
	for input, want := range map[string]string{"": "a <boat> ", `{"goal":"a car","n":2}`: "a car 2"} {
		n := flow.Plan(f, json.RawMessage(input), nil)
		if len(n.Start) != 1 || !strings.HasPrefix(n.Start[0].Task, want) {
			t.Errorf("%s: %+v", input, n)
		}
	}
}

// A flow that was stored as JSON plans the same.
func TestStored(t *testing.T) {
	f := mustParse(t, whole)
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var again flow.Flow
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Error(diff)
	}
}
