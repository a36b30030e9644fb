package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// TestMemoryOfWorkers: the main agent searches its memory and writes to it; a
// worker whose definition names the tools gets nothing of it, unless a person
// lifts a note, and then that note alone.
func TestMemoryOfWorkers(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		t.Run("private", func(t *testing.T) { testMemoryOfWorkers(t, wire, "") })
		t.Run("lifted", func(t *testing.T) {
			testMemoryOfWorkers(t, wire, `"agents": {"defaults": {"subagents": {"inherit": ["AGENTS.md", "memory/plan.md"]}}}`)
		})
	})
}

func testMemoryOfWorkers(t *testing.T, wire, lifted string) {
	const diary, plan, lasting, said = "secretdiary", "secretplan", "secretlasting", "secretsaid"
	look := []providertest.Call{
		{Name: "memory_search", Arguments: arguments(args{"query": "heron"})},
		{Name: "memory_search", Arguments: arguments(args{"query": "heron", "sources": []string{"transcripts"}})},
		{Name: "memory_get", Arguments: arguments(args{"path": "MEMORY.md"})},
		{Name: "memory_get", Arguments: arguments(args{"path": "memory/plan.md"})},
		{Name: "memory_get", Arguments: arguments(args{"path": "memory/diary.md"})},
		{Name: "memory_write", Arguments: arguments(args{"text": "heron evil"})},
	}
	h := newE2E(t, wire, func(r *providertest.Request) providertest.Answer {
		newest := r.NewestText()
		switch {
		case len(r.NewestResults()) > 0:
			return providertest.Answer{Text: "done"}
		case r.Worker():
			return providertest.Answer{Calls: look}
		case strings.Contains(newest, "[Subagent: "):
			return providertest.Answer{Text: goclaw.NoReply}
		case strings.Contains(newest, "look yourself"):
			return providertest.Answer{Calls: look}
		case strings.Contains(newest, "send one"):
			return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: arguments(args{"agent": "looker", "task": "look"})}}}
		}
		return providertest.Answer{Text: "noted"}
	})
	if lifted == "" {
		lifted = `"tools": {}`
	}
	h.config(`"idleTimeoutSeconds": 60`, lifted)
	h.file(filepath.Join(h.home, "agents/looker.md"), "---\nname: looker\ndescription: Looks things up.\ntools: [memory_search, memory_get]\n---\nLook.\n")
	h.file("MEMORY.md", "heron "+lasting+"\n")
	h.file("memory/plan.md", "heron "+plan+"\n")
	h.file("memory/diary.md", "heron "+diary+"\n")
	g := h.gateway()
	for _, text := range []string{"heron " + said, "look yourself", "send one"} {
		var out goclaw.Outcome
		g.get("/api/messages/"+g.send("agent:main:main", text)+"?workers=true&timeout=60", &out)
		if out.Status != goclaw.StateCompleted || text == "send one" && (len(out.Runs) != 1 || out.Runs[0].Status != goclaw.StateCompleted) {
			t.Fatalf("%s: %+v", text, out)
		}
	}
	g.stop()
	secrets := []string{diary, plan, lasting, said}
	shown := func(results []goclaw.ToolResult) (found []string) {
		for _, s := range secrets {
			if slices.ContainsFunc(results, func(r goclaw.ToolResult) bool { return strings.Contains(r.Content, s) }) {
				found = append(found, s)
			}
		}
		return found
	}
	main, worker := false, false
	for _, r := range h.server.Requests() {
		results := r.NewestResults()
		if len(results) != len(look) {
			continue
		}
		got, want := shown(results), secrets
		if r.Worker() {
			worker, want = true, nil
			if strings.Contains(lifted, "plan.md") {
				want = []string{plan}
			}
			for _, s := range secrets {
				if !slices.Contains(want, s) && strings.Contains(string(r.Raw), s) {
					t.Errorf("the worker's request holds %s", s)
				}
			}
			if !slices.Contains(r.Tools, "memory_search") || slices.Contains(r.Tools, "memory_write") || !results[5].IsError {
				t.Errorf("the worker is offered %v; writing gives %+v", r.Tools, results[5])
			}
		} else {
			main = true
			if results[5].IsError || !strings.Contains(results[5].Content, `"path":"memory/20`) {
				t.Errorf("%+v", results[5])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("worker %v: shown %q, want %q: %+v", r.Worker(), got, want, results)
		}
	}
	if !main || !worker {
		t.Errorf("asked by the main agent: %v, by the worker: %v", main, worker)
	}
}
