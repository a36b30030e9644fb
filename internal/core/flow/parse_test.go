package flow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/core/definition"
	"goclaw/internal/core/flow"
)

func TestParse(t *testing.T) {
	f := mustParse(t, whole)
	if diff := cmp.Diff([][]string{{"look"}, {"plan"}, {"code"}, {"verify"}, {"tell"}}, f.Waves()); diff != "" {
		t.Error(diff)
	}
	code := flow.Step{ID: "code", Each: "plan.files", Task: "Write {{item.path}}: {{item}}", Gives: []string{"NOTES.md"}, After: []string{"plan"}, Line: 16, Col: 5}
	if diff := cmp.Diff(code, f.Steps[2]); diff != "" {
		t.Error(diff)
	}
	short := mustParse(t, "steps:\n- {id: a, task: t}\n- {id: b, task: t, after: []}\n- {id: c, task: t, after: a}\n- {id: d, task: t, after: [b, c], takes: []}\n")
	if diff := cmp.Diff([][]string{{"a", "b"}, {"c"}, {"d"}}, short.Waves()); diff != "" || short.Name != "f" {
		t.Error(short.Name, diff)
	}
}

func TestProblems(t *testing.T) {
	const a = "steps:\n- {id: aaa, task: t, gives: [A.md]}\n"
	for _, tc := range []struct{ name, file, want string }{
		{"empty", " ", "f.yaml:1:1: the file is empty; write one `key: value` per line"},
		{"YAML", "name: a: b\n", "f.yaml:1:7: not valid YAML: a second colon in an unquoted value; put the value in quotes"},
		{"not a map", "- a\n", "f.yaml:1:1: the YAML is no map of keys; write one `key: value` per line"},
		{"no steps", "name: a\n", "f.yaml:1:1: the flow has no steps; write at least one, with id and task"},
		{"empty steps", "name: a\nsteps: []\n", "f.yaml:2:8: the flow has no steps; write at least one, with id and task"},
		{"steps", "steps: {a: b}\n", "f.yaml:1:8: steps is a map, not a list; write one step per dash, with id and task"},
		{"a text", "steps:\n- a\n", "f.yaml:2:3: a step is a string, not a map; write its keys behind the dash, with id and task"},
		{"key", "step: []\n" + a, `f.yaml:1:1: unknown key "step" in a flow; did you mean steps?`},
		{"key of a step", "steps:\n- id: a\n  tsak: x\n  task: t\n", `f.yaml:3:3: unknown key "tsak" in a step; did you mean task?`},
		{"far key", "steps:\n- {id: a, task: t, when: x}\n", `f.yaml:2:20: unknown key "when" in a step; it has after, agent, agentId, back, each, gives, id, input, optional, output, takes, task, until`},
		{"limits", "limits: {round: 1}\n" + a, `f.yaml:1:10: unknown key "round" in limits; did you mean rounds?`},
		{"unbounded", "limits: {rounds: 0}\n" + a, "f.yaml:1:18: rounds is no whole number from 1 to 100; write one, without quotes; nothing here is without a bound"},
		{"types", "name: [a]\ninput: 1\n" + a, "f.yaml:1:7: name is a list, not a text; write a text, in quotes if need be\nf.yaml:2:8: input is a whole number, not a map; write its keys below it, indented"},
		{"schema", "input: {type: objekt, properties: 3}\n" + a, "f.yaml:1:8: input is no valid JSON Schema: "},
		{"no id", "steps:\n- {task: t}\n", "f.yaml:2:3: a step has no id; add `id: NAME`, a word by which other steps can name it"},
		{"no task", "steps:\n- {id: a}\n", "f.yaml:2:3: a step has no task; add `task: …` that says what its worker is to do"},
		{"empty task", "steps:\n- {id: a, task: ' '}\n", "f.yaml:2:17: task is empty, not a text; write a text, in quotes if need be"},
		{"bad id", "steps:\n- {id: a b, task: t}\n", `f.yaml:2:8: the id "a b" is no plain word; write up to 64 letters, digits, - and _, beginning with a letter`},
		{"reserved", "steps:\n- {id: item, task: t}\n", "f.yaml:2:8: no step can be called item, because placeholders mean something else by it; rename it"},
		{"twice", a + "- {id: aaa, task: t}\n", "f.yaml:3:8: the id aaa stands twice; first on line 2; rename one of them"},
		{"both agents", "steps:\n- {id: a, task: t, agent: x, agentId: y}\n", "f.yaml:2:39: step a has both agent and agentId; keep agent for a definition, agentId for a configured agent"},
		{"after", a + "- {id: b, task: t, after: [aab]}\n", `f.yaml:3:28: there is no step "aab"; did you mean aaa?`},
		{"after itself", a + "- {id: b, task: t, after: [aaa, b]}\n", "f.yaml:3:33: step b comes after itself; remove it; to repeat a step use until and back"},
		{"cycle", "steps:\n- {id: a, task: t, after: [c]}\n- {id: b, task: t}\n- {id: c, task: t}\n", "f.yaml:2:28: the steps wait for each other: a → b → c → a; remove one of them from an after; going back is what until and back are for"},
		{"result", "result: x\n" + a, `f.yaml:1:9: there is no step "x"; the steps are aaa`},
		{"takes", a + "- {id: b, task: t, takes: [aaa/B.md]}\n", "f.yaml:3:28: step b takes aaa/B.md, which aaa does not give; did you mean aaa/A.md?"},
		{"takes nothing given", a + "- {id: b, task: t, takes: aaa/PLAN.md}\n", "f.yaml:3:27: step b takes aaa/PLAN.md, which aaa does not give; add it to the gives of aaa"},
		{"takes of nobody", a + "- {id: b, task: t, takes: [x/A.md]}\n", `f.yaml:3:28: there is no step "x"; the steps are aaa, b`},
		{"takes a result", a + "- {id: b, task: t, takes: [aaa]}\n", `f.yaml:3:28: takes holds "aaa", which is not STEP/ARTIFACT; write one such as plan/PLAN.md; results are named in the task, as in {{plan}}`},
		{"takes too early", a + "- {id: b, task: t, after: [], takes: [aaa/A.md]}\n", "f.yaml:3:39: step b takes aaa/A.md, but does not come after aaa; add aaa to its after"},
		{"takes of a later one without a loop", "steps:\n- {id: a, task: t, takes: [b/A.md]}\n- {id: b, task: t, gives: A.md}\n", "f.yaml:2:28: step a takes b/A.md, but does not come after b; add b to its after"},
		{"gives", "steps:\n- {id: a, task: t, gives: [ok.md, /A.md]}\n", `f.yaml:2:35: gives holds "/A.md", which is no artifact's name; write a relative path such as PLAN.md, or a pattern such as notes/*.md`},
		{"back without an end", a + "- {id: b, task: t, back: aaa}\n", "f.yaml:3:26: step b goes back without an end; add until: {field: value} that says when it is done"},
		{"until without back", "steps:\n- {id: b, agent: x, task: t, until: {a: b}}\n", "f.yaml:2:38: step b has until, but not where to go back to; add back: STEP"},
		{"until of a text", a + "- {id: b, task: t, back: aaa, until: ok}\n", "f.yaml:3:38: until is no map of fields to values; write until: {verdict: ok}"},
		{"until a list", a + "- {id: b, agent: x, task: t, back: aaa, until: {a: [b]}}\n", "f.yaml:3:49: until compares a with no plain value; write a text, a number, true or false"},
		{"until of a plain worker", a + "- {id: b, task: t, back: aaa, until: {a: b}}\n", "f.yaml:3:39: step b needs a JSON result of b, which is a plain worker without output; give b an output schema"},
		{"until no field", a + "- {id: b, task: t, back: aaa, until: {verdit: b}, output: {properties: {verdict: {}}}}\n", "f.yaml:3:39: the result of b has no field verdit; did you mean verdict?"},
		{"back to a later one", "steps:\n- {id: a, agent: x, task: t, back: b, until: {c: d}}\n- {id: b, task: t}\n", "f.yaml:2:36: step a can't go back to b, which does not come before it; name a step that it comes after, or itself"},
		{"a wave with until", a + "- {id: b, agent: x, task: t, each: ls, back: aaa, until: {a: b}}\n", "f.yaml:3:59: step b has both each and until; put the until into a step of its own behind the wave"},
		{"crossing loops", "steps:\n- {id: a, task: t}\n- {id: b, task: t}\n- {id: c, agent: x, task: t, back: a, until: {a: b}}\n- {id: d, agent: x, task: t, back: b, until: {a: b}}\n", "f.yaml:5:36: the loops of c and d cross; let one of them hold the other: go back to the same step, or put one until behind both"},
		{"loops that wait for each other", `
steps:
- {id: b1, task: t}
- {id: b2, task: t, after: []}
- {id: y1, task: t, after: [b1]}
- {id: y2, task: t, after: [b2]}
- {id: x1, task: t, after: [b2, y1]}
- {id: x2, task: t, after: [b1, y2]}
- {id: e1, agent: x, task: t, after: [y1, x2], back: b1, until: {a: b}}
- {id: e2, agent: x, task: t, after: [y2, x1], back: b2, until: {a: b}}
`, "loops wait for each other: "},
		{"each", a + "- {id: b, task: t, each: '{{aaa}}'}\n", `f.yaml:3:26: each is "{{aaa}}", which is no path to a list; write one such as plan.files or input.files, without braces`},
		{"each of a plain worker", a + "- {id: b, task: t, each: aaa.x}\n", "f.yaml:3:26: step b needs a JSON result of aaa, which is a plain worker without output; give aaa an output schema"},
		{"each of a later one", "steps:\n- {id: a, task: t, each: b.x}\n- {id: b, agent: x, task: t}\n", "f.yaml:2:26: step a makes its runs of b, but does not come after it; add b to its after"},
		{"each of an item", a + "- {id: b, task: t, each: item.x}\n", "f.yaml:3:26: each can't be made of item; name a field of the input or of an earlier step's result"},
		{"no each", "steps:\n- {id: a, task: 'x {{item}}'}\n", "f.yaml:2:17: step a names an item, but has no each; add each: PATH of a list"},
		{"no loop", "steps:\n- {id: a, task: 'x {{round}}'}\n", "f.yaml:2:17: step a names round, which only a step in a loop has, as a number; remove it"},
		{"no such word", "input: {properties: {goal: {}}}\nsteps:\n- {id: a, task: 'x {{gaol}}'}\n", "f.yaml:3:17: step a names gaol, which is neither a step nor a field of the input; did you mean goal?"},
		{"in the input", "input: {properties: {goal: {}}}\nsteps:\n- {id: a, task: t, input: {x: ['{{input.gool}}']}}\n", "f.yaml:3:27: step a names gool, which is neither a step nor a field of the input; did you mean goal?"},
		{"a step's name", a + "- {id: b, task: 'x {{aab}}'}\n", "f.yaml:3:17: step b names aab, which is neither a step nor a field of the input; did you mean aaa?"},
		{"a later result", "steps:\n- {id: a, task: 'x {{b}}'}\n- {id: b, task: t}\n", "f.yaml:2:17: step a names b, but does not come after b; add b to its after"},
		{"a field of a text", a + "- {id: b, task: 'x {{aaa.b}}'}\n", "f.yaml:3:17: step b needs a JSON result of aaa, which is a plain worker without output; give aaa an output schema"},
		{"step and field", "input: {properties: {aaa: {}}}\n" + a, "f.yaml:3:8: aaa is a step and a field of the input; rename one of them"},
		{"unquoted braces", "steps:\n- id: a\n  task: {{goal}}\n", "f.yaml:3:"},
		{"one brace", "steps:\n- id: a\n  task: {goal: x}\n", "f.yaml:3:9: task is a map, not a text; put it in quotes: in YAML a brace begins a map"},
		{"too many", "steps:\n" + strings.Repeat("- {id: a, task: t}\n", 201), "f.yaml:2:1: the flow has 201 steps; 200 are allowed; use a wave (each) where steps are alike"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, problems := flow.Parse("f.yaml", []byte(tc.file))
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			text := strings.Join(got, "\n")
			if text != tc.want && !(strings.HasSuffix(tc.want, ": ") || strings.HasSuffix(tc.want, ":")) || !strings.Contains(text, tc.want) || len(f.Steps) > 0 {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("steps:\n- {id: a, task: t, until: {n: 2}, back: a, agent: x}\n- {id: b, task: '{{a.n}}', each: a.list}\n")
	f.Add("a: *b\nsteps: [{id: &x a, task: *x}]")
	f.Add("\ufeffname: x\r\nsteps:\r\n- id: a\r\n  task: |\r\n    {{input.a}} \\{{b}}\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		fl, problems := flow.Parse("f.yaml", []byte(text))
		if len(problems) > 0 {
			for _, p := range problems {
				if p.Line < 1 || p.Col < 1 || p.Message == "" || strings.Contains(p.Message, "\n") || p.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+1 { // YAML takes a lone \r for a line's end
					t.Fatalf("%q", p)
				}
			}
			return
		}
		if len(fl.Waves()) == 0 || fl.Name == "" {
			t.Fatal("no problems, and it can't be used")
		}
		n := flow.Plan(fl, json.RawMessage(`{}`), nil)
		if !n.Ended && len(n.Start) == 0 {
			t.Fatalf("it neither begins nor ends: %+v", n)
		}
		history := []flow.StepRun{}
		for _, s := range n.Start {
			history = append(history, done(s.Key, `{"list":[1,"{{x}}"],"n":2}`, s.Gives...))
		}
		flow.Plan(fl, json.RawMessage(`{}`), history)
	})
}

func TestFromNext(t *testing.T) {
	define := func(name, next, more string) definition.Definition {
		if next != "" {
			next = "  next: " + next + "\n"
		}
		d := definition.Parse(name+".md", []byte("---\nname: "+name+"\ndescription: d\ngoclaw:\n  version: 1\n"+next+more+"---\nB\n"), definition.Options{})
		if why := d.Blocked(); why != "" {
			t.Fatal(why)
		}
		return d
	}
	all := map[string]definition.Definition{}
	find := func(name string) (definition.Definition, bool) { d, ok := all[name]; return d, ok }
	for _, d := range []definition.Definition{
		define("researcher", "planner with artifacts [FOUND.md]", ""), define("planner", "executor with artifacts [PLAN.md]", ""),
		define("executor", "verifier with artifacts [PLAN.md, CHANGES.md]", ""), define("verifier", "", ""),
		define("ping", "pong", ""), define("pong", "ping", ""), define("typed", "verifier", "  input: {type: object}\n"),
		define("lost", "nobody", ""), define("wants", "typed", ""),
	} {
		all[d.Name] = d
	}
	f, ok, err := flow.FromNext(all["researcher"], find)
	if err != nil || !ok {
		t.Fatal(err)
	}
	var got []string
	for _, s := range f.Steps {
		got = append(got, strings.Join([]string{s.ID, s.Agent, strings.Join(s.Gives, ","), strings.Join(s.After, ",")}, "|"))
		for _, take := range s.Takes {
			got = append(got, "  "+take.String())
		}
	}
	want := []string{
		"researcher|researcher|FOUND.md|", "planner|planner|PLAN.md|researcher", "  researcher/FOUND.md",
		"executor|executor|CHANGES.md|planner", "  planner/PLAN.md", "verifier|verifier||executor", "  planner/PLAN.md", "  executor/CHANGES.md",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := flow.Plan(f, json.RawMessage(`{"task":"go"}`), nil); len(n.Start) != 1 || !strings.HasPrefix(n.Start[0].Task, "go\n") || n.Start[0].Gives[0] != "FOUND.md" {
		t.Errorf("%+v", n)
	}
	f, ok, err = flow.FromNext(all["typed"], nil)
	if err != nil || !ok || len(f.Steps) != 2 {
		t.Fatal(f, err)
	}
	if n := flow.Plan(f, json.RawMessage(`{"task":"go","input":{"phase":"1"}}`), nil); string(n.Start[0].Input) != `{"phase":"1"}` {
		t.Errorf("%+v", n)
	}
	if n := flow.Plan(f, json.RawMessage(`{"task":"go"}`), nil); !n.Ended || n.Error != `the flow's input: the required argument "input" is missing` {
		t.Errorf("%+v", n)
	}
	text := define("a", "Ünüs then a with artifacts [X.md] then task", "")
	f, _, err = flow.FromNext(text, nil)
	if err != nil || len(f.Steps) != 4 || f.Steps[1].ID != "worker" || f.Steps[2].ID != "a-2" || f.Steps[3].ID != "task-2" {
		t.Errorf("%+v %v", f, err)
	}
	if _, ok, err := flow.FromNext(all["verifier"], find); ok || err != nil {
		t.Error(ok, err)
	}
	for name, want := range map[string]string{
		"ping":  "pong.md:6:9: the chain never ends: ping → pong → ping; remove one next, or write a flow with until and back",
		"lost":  `lost.md:6:9: next names "nobody", and there is no such definition; goclaw agents lists them`,
		"wants": `wants.md:6:9: next names "typed", which wants an input; next gives none, so write a flow`,
	} {
		if _, ok, err := flow.FromNext(all[name], find); !ok || err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// The example of this repository: the flow can be used, and every definition
// that it names is there, without a problem, with the tools that its step needs.
func TestExample(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "examples", "flow-repo")
	data, err := os.ReadFile(filepath.Join(dir, "flow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f, problems := flow.Parse("flow.yaml", data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if n := flow.Plan(f, json.RawMessage(`{"goal":"x"}`), nil); len(n.Start) == 0 {
		t.Errorf("it does not begin: %+v", n)
	}
	for _, s := range f.Steps {
		data, err := os.ReadFile(filepath.Join(dir, ".goclaw", "agents", s.Agent+".md"))
		if err != nil {
			t.Fatal(err)
		}
		d := definition.Parse(s.Agent+".md", data, definition.Options{})
		if d.Status != definition.StatusOK || d.Name != s.Agent {
			t.Errorf("%s: %s %v", s.Agent, d.Status, d.Problems)
		}
		tools := strings.Join(d.ResolvedTools(), " ")
		if len(s.Gives) > 0 && !strings.Contains(tools, "artifact_write") || len(s.Takes) > 0 && !strings.Contains(tools, "artifact_read") {
			t.Errorf("%s can't hand artifacts over: %s", s.Agent, tools)
		}
	}
}
