package engine_test

import (
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/runtime/engine"
)

const typedFiles = `---
name: NAME
description: Plans.
tools: []
emitStructuredFindings: FINDINGS
goclaw:
  input: {type: object, required: [phase], properties: {phase: {type: string}}}
  output: OUTPUT
---
You plan.
`

// Typed workers: an answer of the wrong form goes back once, what stands around
// it is dropped and counted, and one that stays wrong fails with its raw text.
func TestTypedAnswers(t *testing.T) {
	const object = `{format: json, schema: {type: object, required: [n], properties: {n: {type: integer}}}, retries: 1}`
	const plan = `{format: xml, tag: plan, stop: ["</plan>"], retries: 1}`
	for name, tc := range map[string]struct {
		output, findings string
		replies          []string
		state            goclaw.RunState
		result, problem  string
		dropped          bool
	}{
		"at once":  {object, "false", []string{`{"n": 7}`}, goclaw.StateCompleted, `{"n":7}`, "", false},
		"chatter":  {object, "false", []string{"Sure! Here {it} is:\n```json\n{\"n\": 7}\n```\nBye."}, goclaw.StateCompleted, `{"n":7}`, "", true},
		"repaired": {object, "false", []string{`{"n": "seven"}`, `{"n": 7}`}, goclaw.StateCompleted, `{"n":7}`, "", false},
		"broken":   {object, "false", []string{`{"n": "seven"}`, `no`}, goclaw.StateFailed, "no", "asked for: there is no JSON in the reply (after 1 correction; the result is the raw text)", false},
		"no retry": {`{format: json, retries: 0}`, "false", []string{`no`}, goclaw.StateFailed, "no", "(retries is 0;", false},
		"any":      {`{format: json}`, "false", []string{`"seven"`}, goclaw.StateCompleted, `"seven"`, "", false},
		"cut off":  {`{format: json}`, "false", []string{`{"n": 7, "of": {"n": 8}`, `{"n": 7}`}, goclaw.StateCompleted, `{"n":7}`, "", false},
		"stop":     {plan, "false", []string{"So:\n<plan>\n1. look\n"}, goclaw.StateCompleted, "<plan>\n1. look\n</plan>", "", true},
		"findings": {object, "true", []string{`{"n": 7}`, `{"n": 7} <findings>[{"claim":"c","evidence":"f:1","confidence":0.9}]</findings>`}, goclaw.StateCompleted, `{"n":7}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := strings.NewReplacer("NAME", "planner-x", "FINDINGS", tc.findings, "OUTPUT", tc.output).Replace(typedFiles)
			var prompts, firsts []string
			asked := 0
			w := newWired(t, providertest.WireAnthropic, func(q *providertest.Request) providertest.Answer {
				switch {
				case q.Worker():
					asked++
					prompts, firsts = append(prompts, q.NewestText()), append(firsts, q.FirstText())
					a := providertest.Answer{Text: tc.replies[min(asked, len(tc.replies))-1]}
					if name == "stop" {
						a.Stop = goclaw.StopSequence
					}
					return a
				case strings.HasSuffix(q.NewestText(), "plan it") && len(q.NewestResults()) == 0:
					return providertest.Answer{Calls: []providertest.Call{
						{Name: "sessions_spawn", Arguments: `{"agent":"Planner-X","task":"plan","input":{"fase":"1"}}`},
						{Name: "sessions_spawn", Arguments: `{"agent":"planner-x","task":"plan","input":{"phase":"1"},"context":"a small house"}`},
					}}
				}
				return providertest.Answer{Text: "ok"}
			}, func(o *engine.Options) {
				o.Rules.Definitions = catalogOf(t, map[string]string{"p.md": file})
			})
			stop := (&rig{t: t, engine: w.engine}).start(t.Context())
			defer stop()
			w.turn(goclaw.TriggerUser, "plan it")
			run := w.worker("planner-x")
			if run.State != tc.state || run.Result != tc.result || !strings.Contains(run.Error, tc.problem) {
				t.Errorf("%s: %q, %s", run.State, run.Result, run.Error)
			}
			if asked != len(tc.replies) {
				t.Errorf("asked %d times", asked)
			}
			for _, want := range []string{"# CONTEXT", "a small house", "# TASK", "plan", "# INPUT", `{"phase":"1"}`} {
				if !strings.Contains(firsts[0], want) {
					t.Errorf("%q is not in %s", want, firsts[0])
				}
			}
			events, err := w.store.Events(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			if end := events[len(events)-1].End; (end.Dropped > 0) != tc.dropped {
				t.Errorf("%d bytes were dropped", end.Dropped)
			}
			runs, err := w.store.Runs(t.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
			if err != nil || len(runs) != 1 {
				t.Errorf("%d workers, %v: the input of one was wrong", len(runs), err)
			}
			if tc.findings == "true" {
				found, err := w.store.ArtifactsOf(t.Context(), goclaw.ArtifactFilter{Run: run.ID})
				if err != nil || len(found) != 1 || found[0].Name != "findings.json" {
					t.Errorf("%v, %v", found, err)
				}
			}
			if info := run.Info(); (info.Output != nil) != (tc.state == goclaw.StateCompleted && strings.Contains(tc.output, "json")) {
				t.Errorf("output %s", info.Output)
			}
		})
	}
}

// Files of other systems are spawned as they are: the body is what the model
// reads first, the tools are the file's, and no rule is lost.
func TestSpawnByDefinition(t *testing.T) {
	const body = "\nYou review code.  \n\n- be brief\n"
	w := newWired(t, providertest.WireOpenAI, func(q *providertest.Request) providertest.Answer {
		switch {
		case q.Worker() && len(q.Messages) == 1:
			return providertest.Answer{Calls: []providertest.Call{{Name: "write", Arguments: `{"path":"x","content":"y"}`}}}
		case q.Worker():
			return providertest.Answer{Text: "reviewed: " + q.NewestResults()[0].Content}
		case strings.HasSuffix(q.NewestText(), "review") && len(q.NewestResults()) == 0:
			return providertest.Answer{Calls: []providertest.Call{{Name: "spawn_agent", Arguments: `{"agent":"Code Reviewer","task":"look at main.go","context":"Go"}`}}}
		case len(q.NewestResults()) > 0:
			return providertest.Answer{Text: "it said: " + q.NewestResults()[0].Content}
		}
		return providertest.Answer{Text: "ok"}
	}, func(o *engine.Options) {
		o.Rules.Definitions = catalogOf(t, map[string]string{
			"claude.md": "---\nname: Code Reviewer\ndescription: Use to review: code\ntools: Read, Grep, LS\nmodel: inherit\ncolor: red\n---" + body,
			"other.md":  "---\nname: other\ndescription: Another.\nvisibility: internal\n---\nx",
		})
	})
	stop := (&rig{t: t, engine: w.engine}).start(t.Context())
	defer stop()
	w.turn(goclaw.TriggerUser, "review")
	run := w.worker("Code Reviewer")
	if run.State != goclaw.StateCompleted || !strings.Contains(run.Result, `the tool \"write\" is not available here`) {
		t.Errorf("%s %q", run.State, run.Result)
	}
	var main, worker *providertest.Recorded
	for _, r := range w.server.Requests() {
		if r.Worker() && worker == nil {
			worker = &r
		} else if !r.Worker() && main == nil {
			main = &r
		}
	}
	if !strings.HasPrefix(worker.System, strings.TrimPrefix(body, "\n")) && !strings.HasPrefix(worker.System, body) {
		t.Errorf("the system prompt begins %.80q", worker.System)
	}
	if got := strings.Join(worker.Tools, " "); got != "grep ls read" {
		t.Errorf("tools %s", got)
	}
	if !strings.Contains(main.System, "Code Reviewer: Use to review: code") || strings.Contains(main.System, "Another.") {
		t.Error("the requester's prompt does not list what it may spawn")
	}
	runs, err := w.store.Runs(t.Context(), goclaw.RunFilter{Session: goclaw.MainKey("main")})
	if err != nil || len(runs) != 1 || !strings.HasPrefix(runs[0].Result, "it said: reviewed: ") {
		t.Errorf("%d turns, %v", len(runs), err)
	}
}
