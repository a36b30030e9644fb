package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// repairers is a model for the workers of examples/flow-repo: the first round's
// change is found wanting, the second's is good. It knows nothing but what its
// request holds.
func repairers(q *providertest.Request) providertest.Answer {
	done := 0 // calls of this worker that have a result
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				done++
			}
		}
	}
	task := q.Task()
	round := strings.Contains(task, "This is round 2")
	steps := func(last string, calls ...providertest.Call) providertest.Answer {
		if done < len(calls) {
			return providertest.Answer{Calls: calls[done : done+1]}
		}
		return providertest.Answer{Text: last}
	}
	leave := func(name, text string) providertest.Call {
		return providertest.Call{Name: "artifact_write", Arguments: arguments(args{"name": name, "content": text})}
	}
	// After a crash the outcome of an edit is unknown, and a file must be read
	// again before it is changed: the worker looks.
	change := func(path, from, to string) providertest.Answer {
		call := providertest.Call{Name: "read", Arguments: arguments(args{"path": path})}
		if results := q.NewestResults(); len(results) > 0 {
			switch last := results[len(results)-1]; {
			case last.IsError:
			case strings.Contains(last.Content, "artifact:"):
				return providertest.Answer{Text: "done"}
			case strings.Contains(last.Content, from) && !strings.Contains(last.Content, to):
				call = providertest.Call{Name: "edit", Arguments: arguments(args{"path": path, "old": from, "new": to})}
			default:
				call = leave("CHANGES.md", path+": "+to)
			}
		}
		return providertest.Answer{Calls: []providertest.Call{call}}
	}
	switch {
	case strings.HasPrefix(q.System, "You prepare a change"):
		return steps("It is a word.", leave("FINDINGS.md", "tally.go and README.md name what is counted."))
	case strings.HasPrefix(q.System, "You plan a change"):
		parts := `{"parts":[{"name":"code","files":["tally.go"],"work":"say terms"},{"name":"docs","files":["README.md"],"work":"say terms"}]}`
		if round {
			parts = `{"parts":[{"name":"docs","files":["README.md"],"work":"finish"}]}`
		}
		return steps(parts, leave("PLAN.md", "It says terms everywhere."))
	case strings.HasPrefix(q.System, "You make one part"):
		switch {
		case strings.Contains(task, "plan: code"):
			return change("tally.go", "counts the words of", "counts the terms of")
		case strings.Contains(task, "finish"):
			return change("README.md", "one line per word", "one line per term")
		}
		return change("README.md", "Counts the words of", "Counts the terms of")
	case strings.HasPrefix(q.System, "You check whether"):
		if strings.Contains(q.FirstText(), "one line per term") {
			return providertest.Answer{Text: `{"verdict":"ok","problems":[],"summary":"It says terms."}`}
		}
		return providertest.Answer{Text: `{"verdict":"revise","problems":["README.md still says one line per word"],"summary":"Half done."}`}
	}
	return providertest.Answer{Text: "ok"}
}

// killUntilEnded kills the gateway again and again, at most 41 times, until the
// run has ended; g is the gateway that lives then.
func (h *e2e) killUntilEnded(g *gatewayProcess, id string) (*gatewayProcess, goclaw.RunInfo, int) {
	h.t.Helper()
	for kills := 0; ; kills++ {
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond) // moments of its own choosing are the point
		var run goclaw.RunInfo
		h.run("subagent", "show", id, "--json").decode(h.t, &run)
		if run.Status.Ended() || kills > 40 {
			return g, run, kills
		}
		g.signal(syscall.SIGKILL)
		g.wait()
		g = h.gateway()
	}
}

// The example's flow plans, changes, checks and repairs a small repository. The
// gateway is killed again and again meanwhile: each step runs once.
func TestFlowSurvivesKills(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, func(q *providertest.Request) providertest.Answer {
			a := repairers(q)
			a.Delay = time.Duration(rand.IntN(40)) * time.Millisecond
			return a
		})
		example := filepath.Join("..", "..", "examples", "flow-repo")
		if err := os.CopyFS(h.workspace, os.DirFS(example)); err != nil {
			t.Fatal(err)
		}
		g := h.gateway()
		started := h.run("flow", "run", filepath.Join(h.workspace, "flow.yaml"), "--input", `{"goal":"say terms, not words"}`, "--detach", "--json")
		var reply goclaw.SpawnReply
		started.decode(t, &reply)
		g, run, kills := h.killUntilEnded(g, reply.RunID)
		if run.Status != goclaw.StateCompleted || !strings.Contains(string(run.Result), "It says terms.") {
			t.Fatalf("%s %s %s after %d kills", run.Status, run.Result, run.Error, kills)
		}
		var all []goclaw.RunInfo
		h.run("subagent", "history", "--limit", "100", "--json").decode(t, &all)
		labels := map[string]int{}
		for _, r := range all {
			if r.Parent == reply.RunID {
				labels[r.Label]++
			}
		}
		if len(labels) != 8 {
			t.Errorf("the steps were %v", labels)
		}
		for label, n := range labels {
			if n != 1 {
				t.Errorf("%s ran %d times", label, n)
			}
		}
		g.stop()
		for path, want := range map[string]string{"tally.go": "counts the terms of", "README.md": "Counts the terms of its standard input, one line per term"} {
			text, err := os.ReadFile(filepath.Join(h.workspace, path))
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q, %v", path, want, err)
			}
		}
		t.Logf("%d steps, %d kills", len(labels), kills)
	})
}

// A definition that is broken while the gateway runs is told at once, its spawn
// is refused with the reason, and the good version is never used instead.
func TestBrokenDefinition(t *testing.T) {
	h := newE2E(t, providertest.WireAnthropic, func(q *providertest.Request) providertest.Answer { return providertest.Answer{Text: "fine"} })
	file := filepath.Join(h.home, "agents", "helper.md")
	h.file(file, "---\nname: helper\ndescription: Helps.\ntools: [read]\n---\nYou help.")
	g := h.gateway()
	ask := func() (int, string) {
		return g.call("POST", "/api/runs", `{"task":"help","agent":"helper","announce":"none"}`)
	}
	if status, body := ask(); status != 202 {
		t.Fatalf("%d %s", status, body)
	}
	h.file(file, "---\nname: helper\ndescription: Helps.\ntools: [raed]\n---\nYou help.")
	where := fmt.Sprintf("%s:4:9: unknown tool", file)
	eventually(t, "the log says what is wrong", func() bool { return strings.Contains(g.stderr.String(), where) })
	if status, body := ask(); status != 400 || !strings.Contains(body, "helper.md:4:9") {
		t.Errorf("%d %s", status, body)
	}
	if list := h.run("agents", "list"); !strings.Contains(list.stdout, "rejected") || !strings.Contains(list.stdout, "did you mean read?") {
		t.Errorf("%s", list.stdout)
	}
	h.file(file, "---\nname: helper\ndescription: Helps more.\ntools: [read]\n---\nYou help.")
	if status, body := ask(); status != 202 {
		t.Errorf("mended: %d %s", status, body)
	}
	eventually(t, "the log says that it is good again", func() bool { return strings.Contains(g.stderr.String(), "good again") })
	g.stop()
}

var factLine = regexp.MustCompile(`FACT (\d+)=(\w+)`)

// A worker is handed over several times, and killed meanwhile: no fact is lost,
// and its run is announced once.
func TestHandoffSurvivesKills(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		const facts = 14
		h := newE2E(t, wire, func(q *providertest.Request) providertest.Answer {
			a := collectFacts(q, facts)
			a.Delay = time.Duration(rand.IntN(25)) * time.Millisecond
			return a
		})
		var want []string
		for i := range facts {
			want = append(want, fmt.Sprintf("FACT %d=%016x", i+1, rand.Uint64()))
			h.file(fmt.Sprintf("facts/%d.txt", i+1), want[i]+"\n"+strings.Repeat("nothing else here\n", 40))
		}
		h.file(filepath.Join(h.home, "agents", "collector.md"),
			"---\nname: collector\ndescription: Collects.\ntools: [read]\ngoclaw:\n  inherit: []\n  limits: {contextTokens: 1800, maxHandoffs: 30}\n---\nYou collect.")
		g := h.gateway()
		status, body := g.call("POST", "/api/runs", `{"task":"collect","agent":"collector"}`)
		var reply goclaw.SpawnReply
		if err := json.Unmarshal([]byte(body), &reply); err != nil || reply.RunID == "" {
			t.Fatalf("%d %s", status, body)
		}
		g, run, kills := h.killUntilEnded(g, reply.RunID)
		if run.Status != goclaw.StateCompleted {
			t.Fatalf("%s %s after %d kills", run.Status, run.Error, kills)
		}
		for _, fact := range want {
			if !strings.Contains(run.Result, fact) {
				t.Errorf("%s is lost", fact)
			}
		}
		log := h.run("subagent", "log", reply.RunID).stdout
		handed := strings.Count(log, "HANDOFF-")
		if handed < 2 {
			t.Errorf("%d hand-offs in\n%s", handed, log)
		}
		told := func() (n int) {
			for _, r := range h.server.Requests() {
				if !r.Worker() && strings.Contains(r.NewestText(), "[Subagent: collector] Complete.") {
					n++
				}
			}
			return n
		}
		eventually(t, "the result is announced", func() bool { return told() > 0 })
		g.stop()
		if n := told(); n != 1 {
			t.Errorf("the result was announced %d times", n)
		}
		t.Logf("%d hand-offs, %d kills", handed, kills)
	})
}

// collectFacts is a model that reads the next fact, and knows only what its
// request holds.
func collectFacts(q *providertest.Request, facts int) providertest.Answer {
	if !q.Worker() {
		return providertest.Answer{Text: "Told."}
	}
	known := map[string]bool{}
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			text := p.Text
			if p.Result != nil {
				text = p.Result.Content
			}
			for _, f := range factLine.FindAllString(text, -1) {
				known[f] = true
			}
		}
	}
	list := strings.Join(slices.Sorted(maps.Keys(known)), " ")
	switch {
	case strings.HasPrefix(q.NewestText(), "<handoff_request>"):
		return providertest.Answer{Text: "<handoff>Facts: " + list + "</handoff>"}
	case len(known) == facts:
		return providertest.Answer{Text: list}
	}
	return providertest.Answer{Calls: []providertest.Call{{Name: "read", Arguments: arguments(args{"path": fmt.Sprintf("facts/%d.txt", len(known)+1)})}}}
}

// A typed worker's answer is JSON for the command line and over HTTP.
func TestTypedWorkerFromOutside(t *testing.T) {
	h := newE2E(t, providertest.WireOpenAI, func(q *providertest.Request) providertest.Answer {
		if strings.Contains(q.NewestText(), `{"phase":"one"}`) {
			return providertest.Answer{Text: "Here you are: {\"steps\": [\"dig\"], }"} // no JSON
		}
		return providertest.Answer{Text: `{"steps": ["dig"]}`}
	})
	h.file(filepath.Join(h.home, "agents", "stepper.md"), `---
name: stepper
description: Plans.
tools: []
goclaw:
  input: {type: object, required: [phase], properties: {phase: {type: string}}}
  output: {format: json, schema: {type: object, required: [steps], properties: {steps: {type: array, items: {type: string}}}}}
---
You plan.`)
	var run struct {
		RunID  string
		Output struct{ Steps []string }
	}
	h.run("run", "--agent-definition", "stepper", "--input", `{"phase":"one"}`, "--json").decode(t, &run)
	if len(run.Output.Steps) != 1 || h.server.Total() != 2 {
		t.Errorf("%+v after %d requests", run, h.server.Total())
	}
	if bad := h.run("run", "--agent-definition", "stepper", "--input", `{"fase":"one"}`); bad.code != 2 || !strings.Contains(bad.stderr, `"phase"`) {
		t.Errorf("%+v", bad)
	}
	g := h.gateway()
	g.get("/api/runs/"+run.RunID, &run)
	if len(run.Output.Steps) != 1 {
		t.Errorf("%+v", run)
	}
	g.stop()
}
