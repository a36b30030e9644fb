package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/runtime/engine"
)

// catalogOf is a catalog of definition files, as a workspace has them.
func catalogOf(t *testing.T, files map[string]string) func(string) definition.Catalog {
	t.Helper()
	var all []definition.Definition
	for path, text := range files {
		d := definition.Parse(path, []byte(text), definition.Options{})
		d.Trusted = true
		if d.Status == definition.StatusRejected {
			t.Fatal(d.Blocked())
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b definition.Definition) int { return strings.Compare(a.Path, b.Path) })
	return func(string) definition.Catalog {
		return definition.NewCatalog(slices.Clone(all), func(definition.Definition) int { return 0 })
	}
}

// vault holds facts that can be read once each.
type vault struct {
	mu    sync.Mutex
	facts []string
	read  map[string]int
	noise int
}

func (v *vault) open(_ context.Context, in goclaw.Invocation) goclaw.ToolResult {
	var args struct{ N int }
	if err := json.Unmarshal([]byte(in.Call.Arguments), &args); err != nil {
		return goclaw.ToolError(err.Error())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if args.N < 1 || args.N > len(v.facts) {
		v.noise++
		return goclaw.ToolOK(strings.Repeat("nothing of note here; ", 12))
	}
	v.read[v.facts[args.N-1]]++
	return goclaw.ToolOK(fmt.Sprintf("FACT %d=%s", args.N, v.facts[args.N-1]))
}

var (
	factRE  = regexp.MustCompile(`FACT (\d+)=(\w+)`)
	stepsRE = regexp.MustCompile(`STEPS (\d+)`)
)

// collector is a model that reads the next fact at every fifth step, knows only
// what its request holds, and hands that over.
func collector(total, steps int, garbled bool) providertest.Script {
	return func(q *providertest.Request) providertest.Answer {
		if !q.Worker() {
			if strings.HasSuffix(q.NewestText(), "collect") && len(q.NewestResults()) == 0 {
				return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: `{"agent":"collector","task":"collect"}`}}}
			}
			return providertest.Answer{Text: "ok"}
		}
		known, done := map[string]string{}, 0
		for _, m := range q.Messages {
			for _, p := range m.Parts {
				text := p.Text
				if p.Result != nil {
					text = p.Result.Content
					done++
				}
				for _, f := range factRE.FindAllStringSubmatch(text, -1) {
					known[f[1]] = f[2]
				}
				if n := stepsRE.FindStringSubmatch(p.Text); n != nil && p.Result == nil {
					var before int
					_, _ = fmt.Sscan(n[1], &before)
					done += before
				}
			}
		}
		list := make([]string, 0, len(known))
		for n, f := range known {
			list = append(list, fmt.Sprintf("FACT %s=%s", n, f))
		}
		slices.Sort(list)
		switch {
		case strings.HasPrefix(q.NewestText(), "<handoff_request>"):
			if garbled {
				return providertest.Answer{Text: "I would rather go on."}
			}
			return providertest.Answer{Text: fmt.Sprintf("<handoff>\nDone: STEPS %d\nFacts: %s\n</handoff>", done, strings.Join(list, " "))}
		case done >= steps && len(known) == total:
			return providertest.Answer{Text: strings.Join(list, "\n")}
		case done%5 == 0 && len(known) < total:
			return providertest.Answer{Calls: []providertest.Call{{Name: "web_fetch", Arguments: fmt.Sprintf(`{"n":%d}`, len(known)+1)}}}
		}
		return providertest.Answer{Calls: []providertest.Call{{Name: "web_fetch", Arguments: fmt.Sprintf(`{"n":%d}`, 1000+done)}}}
	}
}

const collectorFile = `---
name: collector
description: Collects facts.
tools: [read, web_fetch]
goclaw:
  limits: {contextPercent: 60, maxHandoffs: 60}
---
You collect facts.
`

// A worker collects forty facts, each readable once, over 200 steps, with a
// window of 8,000 tokens and nothing written before it is full: all of them are
// in its answer, and its context never passes the limit by more than a step.
func TestHandoffKeepsWhatWasFound(t *testing.T) {
	for _, wire := range []string{providertest.WireAnthropic, providertest.WireOpenAI} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			const facts, steps, window = 40, 200, 8000
			v := &vault{read: map[string]int{}}
			for range facts {
				v.facts = append(v.facts, fmt.Sprintf("%016x", rand.Uint64()))
			}
			w := newWired(t, wire, collector(facts, steps, false), func(o *engine.Options) {
				withVault(o, v)
				o.Rules.Definitions = catalogOf(t, map[string]string{"collector.md": collectorFile})
				o.Rules.Window = func(string) int { return window }
			})
			stop := (&rig{t: t, engine: w.engine}).start(t.Context())
			defer stop()
			w.turn(goclaw.TriggerUser, "collect")
			run := w.worker("collector")
			if run.State != goclaw.StateCompleted {
				t.Fatalf("%s: %s", run.State, run.Error)
			}
			for i, f := range v.facts {
				if !strings.Contains(run.Result, fmt.Sprintf("FACT %d=%s", i+1, f)) {
					t.Errorf("fact %d is lost", i+1)
				}
				if v.read[f] != 1 {
					t.Errorf("fact %d was read %d times", i+1, v.read[f])
				}
			}
			if run.Profile.DefinitionSHA == "" || v.noise+facts < steps {
				t.Errorf("%d steps, definition %q", v.noise+facts, run.Profile.DefinitionSHA)
			}
			peak, handoffs := 0, 0
			for _, r := range w.server.Requests() {
				if !r.Worker() {
					continue
				}
				if strings.HasPrefix(r.NewestText(), "<handoff_request>") {
					handoffs++
					continue
				}
				peak = max(peak, len(r.Raw)/4)
			}
			limit := window * 60 / 100
			if peak > limit+300 {
				t.Errorf("the context had %d tokens, its limit is %d", peak, limit)
			}
			artifacts, err := w.store.ArtifactsOf(t.Context(), goclaw.ArtifactFilter{Run: run.ID})
			if err != nil || len(artifacts) != handoffs || handoffs == 0 {
				t.Errorf("%d hand-offs, %d artifacts, %v", handoffs, len(artifacts), err)
			}
			events, err := w.store.Events(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Handoff != nil {
					t.Logf("hand-off to attempt %d: %d model calls, context of %d tokens; its own call took %d in, %d out",
						e.Handoff.Attempt, e.Handoff.Steps, e.Handoff.Before, e.Handoff.Call.Usage.Input, e.Handoff.Call.Usage.Output)
				}
			}
			t.Logf("%d facts over %d steps: %d hand-offs, peak context %d tokens (limit %d), %d tokens in all (%d in, %d out)",
				facts, v.noise+facts, handoffs, peak, limit, run.Usage.Input+run.Usage.Output, run.Usage.Input, run.Usage.Output)
		})
	}
}

func withVault(o *engine.Options, v *vault) {
	o.Tools = append(o.Tools, tool{goclaw.ToolSpec{
		Name: "web_fetch", Description: "Open a box.", Schema: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`), Idempotent: true,
	}, v.open})
	o.Rules.Tools = append(slices.Clone(o.Rules.Tools), "web_fetch")
	o.Rules.WorkerTools = append(slices.Clone(o.Rules.WorkerTools), "web_fetch")
}

// worker finds the run of the definition's worker.
func (w *wired) worker(name string) goclaw.Run {
	w.t.Helper()
	runs, err := w.store.Runs(w.t.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range runs {
		if r.Profile.Definition == name {
			return r
		}
	}
	w.t.Fatalf("no worker %s among %d", name, len(runs))
	return goclaw.Run{}
}

// The same work in one go, for comparison, and with a worker that never writes
// its state: then the runtime does, from the record.
func TestWithoutAndByTheRuntime(t *testing.T) {
	for name, tc := range map[string]struct {
		window, facts int
		garbled       bool
	}{
		"no limit": {0, 40, false}, "garbled": {8000, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vault{read: map[string]int{}}
			for range tc.facts {
				v.facts = append(v.facts, fmt.Sprintf("%016x", rand.Uint64()))
			}
			steps := 5 * tc.facts
			if tc.garbled {
				steps = 0 // it can't count over a hand-off that it did not write
			}
			w := newWired(t, providertest.WireAnthropic, collector(tc.facts, steps, tc.garbled), func(o *engine.Options) {
				withVault(o, v)
				o.Rules.Definitions = catalogOf(t, map[string]string{"collector.md": collectorFile})
				o.Rules.Window = func(string) int { return tc.window }
			})
			stop := (&rig{t: t, engine: w.engine}).start(t.Context())
			defer stop()
			w.turn(goclaw.TriggerUser, "collect")
			run := w.worker("collector")
			if run.State != goclaw.StateCompleted || strings.Count(run.Result, "FACT") != tc.facts {
				t.Fatalf("%s: %s %s", run.State, run.Error, run.Result)
			}
			events, err := w.store.Events(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			handed := 0
			for _, e := range events {
				if e.Handoff != nil {
					handed++
					if e.Handoff.By != "runtime" {
						t.Errorf("written by the %s", e.Handoff.By)
					}
				}
			}
			if tc.garbled != (handed > 0) {
				t.Errorf("%d hand-offs", handed)
			}
			t.Logf("%d hand-offs, %d tokens in all", handed, run.Usage.Input+run.Usage.Output)
		})
	}
}

// What may not be handed over, or not again, fails and keeps what it has.
func TestHandoffLimits(t *testing.T) {
	for name, tc := range map[string]struct{ limits, problem string }{
		"fail": {"{contextTokens: 2500, onLimit: fail}", "onLimit: fail"},
		"max":  {"{contextTokens: 2500, maxHandoffs: 1}", "handed over once already"},
		"own":  {"{contextTokens: 100}", "no hand-off can help"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vault{read: map[string]int{}, facts: []string{"x"}}
			w := newWired(t, providertest.WireOpenAI, collector(1, 1000, false), func(o *engine.Options) {
				withVault(o, v)
				o.Rules.Definitions = catalogOf(t, map[string]string{"c.md": strings.Replace(collectorFile, "{contextPercent: 60, maxHandoffs: 60}", tc.limits, 1)})
			})
			stop := (&rig{t: t, engine: w.engine}).start(t.Context())
			defer stop()
			w.turn(goclaw.TriggerUser, "collect")
			run := w.worker("collector")
			if run.State != goclaw.StateFailed || !strings.Contains(run.Error, tc.problem) {
				t.Errorf("%s: %s", run.State, run.Error)
			}
		})
	}
}
