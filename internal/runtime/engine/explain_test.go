package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/provider/demo"
	"goclaw/internal/edge/provider/openai"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/engine"
)

// oneProvider is all that is configured, unless it is taken away.
type oneProvider struct {
	goclaw.Provider
	gone atomic.Bool
}

func (p *oneProvider) find(name string) (goclaw.Provider, string, error) {
	prefix, model, _ := strings.Cut(name, "/")
	if p.gone.Load() || prefix != p.Name() {
		return nil, "", fmt.Errorf("no provider %q is configured", prefix)
	}
	return p.Provider, model, nil
}

type modelsOf struct{ *oneProvider }

func (m modelsOf) Provider(name string) (goclaw.Provider, string, error) { return m.find(name) }

// babble answers at random: thinking, texts, calls of all tools, spawned
// workers that may spawn, and requests that are refused or break off.
func babble(r *providertest.Request) providertest.Answer {
	d := rand.New(rand.NewPCG(uint64(r.N), uint64(len(r.Raw))))
	switch {
	case d.IntN(5) == 0:
		return providertest.Answer{Fault: providertest.Fault{Status: 529, Header: map[string]string{"Retry-After-Ms": "1"}}}
	case r.N == 10:
		return providertest.Answer{Text: "broken off", Fault: providertest.CutAfter(300)}
	}
	a := providertest.Answer{Text: fmt.Sprintf("Reply %d: <é> & \u2028.", r.N)}
	if d.IntN(3) == 0 {
		a.Thinking, a.Signature = "Hm.", "c2lnbmF0dXJl"
	}
	if len(r.NewestResults()) > 0 && d.IntN(3) == 0 {
		return a
	}
	for i := range d.IntN(4) {
		call := providertest.Call{Name: "read_note", Arguments: fmt.Sprintf(`{ "text" : "%d/%d" }`, r.N, i)}
		switch d.IntN(6) {
		case 0:
			call = providertest.Call{Name: "append", Arguments: fmt.Sprintf(`{"text":"%d"}`, r.N)}
		case 1:
			call.Arguments = providertest.BrokenArguments
		case 2, 3:
			call = providertest.Call{Name: "sessions_spawn", Arguments: fmt.Sprintf(`{"task":"look %d","label":"w%d"}`, r.N, r.N)}
		}
		a.Calls = append(a.Calls, call)
	}
	return a
}

func explained(t *testing.T, p goclaw.Provider, store engine.Store, owner string) (*rig, *oneProvider) {
	one := &oneProvider{Provider: p}
	note := func(_ context.Context, in goclaw.Invocation) goclaw.ToolResult {
		return goclaw.ToolResult{Content: "note of " + in.Call.Arguments + " \u2028 <b>"}
	}
	return newRig(t, rigOptions{
		store: store, models: modelsOf{one}, owner: owner, sole: true, maxWorkers: 4,
		tools: []goclaw.Tool{newTool("read_note", true, note), newTool("append", false, note)},
		rules: func(r *definition.Rules) {
			main := r.Agents["main"]
			main.Model = p.Name() + "/test-model"
			main.Subagents.MaxSpawnDepth, main.Subagents.MaxChildren, main.Subagents.MaxTreeRuns = 2, 3, 8
			main.Budget.Run.Tokens, main.Budget.Tree.Tokens = 25_000, 200_000
			main.Subagents.Budget.Tokens = 12_000
			main.Compaction = definition.Compaction{Tokens: 4_000, KeepRecent: 1_000}
			r.Agents["main"] = main
			r.ResolveModel = func(m string) (string, error) { return m, nil }
		},
	}), one
}

// What was sent is rebuilt from the record alone: through turns with tools,
// workers of workers, announcements, retries, budgets that lower the output, a
// reset, and a process that stops in between.
func TestAsSentIsWhatWasSent(t *testing.T) {
	open := map[string]func(url string) goclaw.Provider{
		"anthropic": func(url string) goclaw.Provider { return anthropic.New(anthropic.Options{BaseURL: url}) },
		"openai": func(url string) goclaw.Provider {
			return openai.New(openai.Options{BaseURL: url, PromptCacheKey: true})
		},
	}
	for name, provider := range open {
		t.Run(name, func(t *testing.T) {
			server := providertest.New(babble)
			url, err := server.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			store := memory.Open()
			first, _ := explained(t, provider(url), store, "p1")
			stop := first.start(t.Context())
			for _, text := range []string{"one", "two"} {
				first.say(text)
				first.settle()
			}
			before := server.Total()
			first.say("three")
			for server.Total() == before {
				<-time.After(time.Millisecond)
			}
			stop()

			second, one := explained(t, provider(url), store, "p2")
			defer second.start(t.Context())()
			second.settle()
			reset := goclaw.SessionChange{Reset: true}
			if err := store.ChangeSession(t.Context(), goclaw.MainKey("main"), reset, 1); err != nil {
				t.Fatal(err)
			}
			typed := goclaw.SpawnRequest{Task: "typed", Announce: goclaw.AnnounceNone, OutputSchema: json.RawMessage(`{"type":"object","title":"typed"}`)}
			if _, err := second.engine.SpawnFor(t.Context(), goclaw.MainKey("main"), typed, ""); err != nil {
				t.Fatal(err)
			}
			var s seen
			for turns := 0; turns < 2 || !s.enough(); turns++ {
				if turns == 100 {
					t.Fatalf("the test has seen too little: %+v", s)
				}
				second.say("go on")
				s = compareSent(t, second, server, second.settle())
			}
			t.Logf("%+v in %d requests", s, server.Total())
			refusesAsSent(t, second, one)
		})
	}
}

// seen is what a comparison has come across.
type seen struct {
	calls, tries, outputs, resumed, compacted int

	runs map[goclaw.Trigger]int
}

func (s seen) enough() bool {
	return s.calls >= 30 && s.tries > s.calls && s.outputs >= 4 && s.compacted >= 2 && s.runs[goclaw.TriggerSpawn] >= 4 && s.runs[goclaw.TriggerAnnouncement] >= 2
}

func compareSent(t *testing.T, r *rig, server *providertest.Server, runs []goclaw.Run) seen {
	captured := map[string]int{}
	for _, q := range server.Requests() {
		captured[string(q.Raw)]++
	}
	s, outputs := seen{runs: map[goclaw.Trigger]int{}}, map[int]bool{}
	for _, run := range runs {
		events, err := r.store.Events(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		step := 0
		for _, ev := range events {
			switch {
			case ev.Resumed != nil:
				s.resumed++
			case ev.Compact != nil:
				s.compacted++
			}
			paid := ev.Paid()
			if paid == nil {
				continue
			}
			step, s.calls, s.tries = step+1, s.calls+1, s.tries+max(1, paid.Tries)
			outputs[paid.MaxTokens] = true
			sent, err := r.engine.AsSent(t.Context(), run.ID, step)
			if err != nil {
				t.Fatalf("run %s, step %d: %v", run.ID, step, err)
			}
			if captured[string(sent.Body)]--; captured[string(sent.Body)] < 0 {
				t.Errorf("run %s (%s), step %d: never sent:\n%s", run.ID, run.Trigger, step, sent.Body)
			}
			if sent.Run.ID != run.ID || sent.Step != step || sent.Model != run.Profile.Model || sent.Session != run.Session {
				t.Errorf("run %s, step %d: told as %+v", run.ID, step, sent)
			}
		}
		if step > 0 {
			last, err := r.engine.AsSent(t.Context(), run.ID, 0)
			if err != nil || last.Step != step || last.Steps != step {
				t.Errorf("run %s: last step %d of %d, %v; want %d", run.ID, last.Step, last.Steps, err, step)
			}
		}
		s.runs[run.Trigger]++
	}
	if s.outputs = len(outputs); outputs[0] {
		t.Error("a call without a recorded limit of its output")
	}
	return s
}

func refusesAsSent(t *testing.T, r *rig, one *oneProvider) {
	t.Helper()
	runs, err := r.store.Runs(t.Context(), goclaw.RunFilter{Session: goclaw.MainKey("main")})
	if err != nil {
		t.Fatal(err)
	}
	id := runs[len(runs)-1].ID
	for _, step := range []int{-1, 1000} {
		if _, err := r.engine.AsSent(t.Context(), id, step); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "numbered 1 to ") {
			t.Errorf("step %d: %v", step, err)
		}
	}
	if _, err := r.engine.AsSent(t.Context(), "ffffffff", 0); !errors.Is(err, goclaw.ErrNotFound) {
		t.Errorf("no run: %v", err)
	}
	one.gone.Store(true)
	if _, err := r.engine.AsSent(t.Context(), id, 1); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "is not configured any more") {
		t.Errorf("no provider: %v", err)
	}
}

func TestUpcoming(t *testing.T) {
	r, _ := explained(t, demo.New(), nil, "p1")
	sent, err := r.engine.Upcoming(t.Context(), goclaw.MainKey("main"))
	if err != nil || sent.Run.ID != "" || sent.Session != goclaw.MainKey("main") || sent.Step != 0 || sent.Model != "demo/test-model" {
		t.Fatalf("%+v, %v", sent, err)
	}
	body := string(sent.Body)
	if !strings.Contains(body, "content of SOUL.md") || !strings.Contains(body, `"name":"sessions_spawn"`) || !strings.HasSuffix(body, `"messages":[]}`) {
		t.Errorf("body %s", body)
	}
}

func TestAsSentOfARunWithoutCalls(t *testing.T) {
	r := newRig(t, rigOptions{brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text("ok") }})
	queued := r.say("hello")
	if _, err := r.engine.AsSent(t.Context(), queued.ID, 0); !errors.Is(err, goclaw.ErrNotFound) || !strings.Contains(err.Error(), "is queued and has no model call on record") {
		t.Errorf("a queued run: %v", err)
	}
	defer r.start(t.Context())()
	r.settle()
	if _, err := r.engine.AsSent(t.Context(), queued.ID, 0); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "can't tell what it sends") {
		t.Errorf("a provider without Encode: %v", err)
	}
}
