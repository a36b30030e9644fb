package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// competent plays a model that knows its trade: it has two topics researched
// by two workers, which look them up in the workspace's files, and combines
// what they found.
func competent(r *providertest.Request) providertest.Answer {
	if r.Worker() {
		return competentWorker(r)
	}
	newest := r.NewestText()
	switch results := r.NewestResults(); {
	case strings.Contains(newest, "[Subagent: "):
		found := regexp.MustCompile(`Finding: [^\n]+`).FindAllString(newest, -1)
		return providertest.Answer{Text: "Together: " + strings.Join(found, " ")}
	case len(results) > 0:
		return providertest.Answer{Text: fmt.Sprintf("I have started %d workers.", len(results))}
	case strings.Contains(newest, "research"):
		return providertest.Answer{Text: "On it.", Calls: []providertest.Call{
			{Name: "sessions_spawn", Arguments: arguments(args{"task": "Find the fact about tides in the notes.", "label": "tides"})},
			{Name: "sessions_spawn", Arguments: arguments(args{"task": "Find the fact about glaciers in the notes.", "label": "glaciers", "context": "Geography."})},
		}}
	}
	return providertest.Answer{Text: "Hello from the model."}
}

func competentWorker(r *providertest.Request) providertest.Answer {
	topic := regexp.MustCompile(`about (\w+)`).FindStringSubmatch(r.Task())[1]
	results := r.NewestResults()
	switch len(results) {
	case 0:
		return providertest.Answer{Text: "Looking.", Calls: []providertest.Call{
			{Name: "glob", Arguments: arguments(args{"pattern": "notes/*.md"})},
			{Name: "grep", Arguments: arguments(args{"pattern": "(?i)" + topic, "path": "notes"})},
		}}
	case 2:
		path := regexp.MustCompile(`notes/\w*` + topic + `\w*\.md`).FindString(results[0].Content)
		if !strings.Contains(results[1].Content, path) {
			path = "grep-and-glob-disagree.md"
		}
		return providertest.Answer{Calls: []providertest.Call{{Name: "read", Arguments: arguments(args{"path": path})}}}
	}
	fact := regexp.MustCompile(`FACT [^\n]+`).FindString(results[0].Content)
	return providertest.Answer{Text: "Finding: " + topic + " have " + fact + "."}
}

// jobNotes are what the workers of competent find.
func (h *e2e) jobNotes() {
	h.file("notes/on_tides.md", "# Tides\n\nFACT two bulges\n")
	h.file("notes/glaciers.md", "# Glaciers\n\nFACT blue ice\n")
	h.file("notes/other.md", "# Unrelated\n")
}

const jobAnswer = "Together: Finding: tides have FACT two bulges. Finding: glaciers have FACT blue ice."

// sameJob compares the combination, whose findings stand in the order in which
// the workers ended.
func sameJob(text string) bool {
	return text == jobAnswer ||
		text == "Together: Finding: glaciers have FACT blue ice. Finding: tides have FACT two bulges."
}

func checkJob(t *testing.T, out goclaw.Outcome) {
	t.Helper()
	if out.Status != goclaw.StateCompleted || out.Turns != 2 || out.Unfinished != 0 || len(out.Replies) != 2 || !sameJob(out.Reply) {
		t.Fatalf("outcome %+v", out)
	}
	if out.Replies[0] != "On it.\n\nI have started 2 workers." && out.Replies[0] != "I have started 2 workers." {
		t.Errorf("first reply %q", out.Replies[0])
	}
	// Spawns of one turn are accepted at the same time, in any order.
	slices.SortFunc(out.Runs, func(a, b goclaw.RunInfo) int { return strings.Compare(a.Label, b.Label) })
	if len(out.Runs) != 2 || out.Runs[0].Label != "glaciers" || out.Runs[1].Label != "tides" {
		t.Fatalf("runs %+v", out.Runs)
	}
	for i, want := range []string{"glaciers have FACT blue ice", "tides have FACT two bulges"} {
		r := out.Runs[i]
		if r.Status != goclaw.StateCompleted || !strings.Contains(r.Result, want) || r.Usage.Output == 0 || r.Depth != 1 {
			t.Errorf("run %+v", r)
		}
	}
	if out.Usage.Input <= out.Runs[0].Usage.Input+out.Runs[1].Usage.Input {
		t.Errorf("usage %+v is not the whole tree's", out.Usage)
	}
}

// jobCalls are the model calls of the main job: spawn, acknowledge, combine,
// and three of each worker.
const jobCalls = 9

func TestMainJobByRun(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, competent)
		h.jobNotes()
		end := h.run("run", "--wait", "--json", "research tides and glaciers")
		if end.code != exitOK {
			t.Fatalf("exit %d: %s", end.code, end.stderr)
		}
		var out goclaw.Outcome
		end.decode(t, &out)
		checkJob(t, out)
		if n := h.server.Total(); n != jobCalls {
			t.Errorf("%d model calls, want %d", n, jobCalls)
		}
		if out.Runs[0].Model != h.model() {
			t.Errorf("model %q", out.Runs[0].Model)
		}
		// What was recorded can be asked for without a gateway.
		var history []goclaw.RunInfo
		h.run("subagent", "history", "--json").decode(t, &history)
		if len(history) != 2 || history[0].Status != goclaw.StateCompleted {
			t.Errorf("history %+v", history)
		}
		if text := h.run("sessions", "show", "agent:main:main").stdout; !strings.Contains(text, "FACT two bulges") {
			t.Errorf("transcript %q", text)
		}
	})
}

func TestMainJobByGateway(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, competent)
		h.jobNotes()
		g := h.gateway()
		for _, path := range []string{"/healthz", "/readyz"} {
			if status, body := g.call(http.MethodGet, path, ""); status != http.StatusOK || body != "ok" {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		t.Run("api", func(t *testing.T) { jobByAPI(t, g) })
		t.Run("run", func(t *testing.T) {
			var out goclaw.Outcome
			h.run("run", "--wait", "--json", "--session", "agent:main:api:user:cli", "research tides and glaciers").decode(t, &out)
			checkJob(t, out)
		})
		t.Run("completions", func(t *testing.T) { jobByCompletions(t, g) })
		t.Run("streamed", func(t *testing.T) { jobStreamed(t, g) })
		g.stop()
	})
}

func jobByAPI(t *testing.T, g *gatewayProcess) {
	run := g.send("agent:main:main", "research tides and glaciers")
	var out goclaw.Outcome
	g.get("/api/messages/"+run+"?workers=true&timeout=60", &out)
	checkJob(t, out)
	var log struct {
		Run    goclaw.Run     `json:"run"`
		Events []goclaw.Event `json:"events"`
	}
	g.get("/api/runs/"+out.Runs[0].RunID+"/log", &log)
	if n := len(log.Events); n == 0 || log.Events[n-1].End == nil || log.Run.Requester != out.Session {
		t.Errorf("log %+v", log)
	}
}

func chatBody(user, text string, stream bool) string {
	return arguments(args{
		"model": "goclaw", "user": user, "stream": stream,
		"messages": []args{{"role": "user", "content": text}},
	})
}

func jobByCompletions(t *testing.T, g *gatewayProcess) {
	for _, wait := range []string{"true", "false"} {
		status, body := g.call(http.MethodPost, "/v1/chat/completions", chatBody("plain-"+wait, "research tides and glaciers", false), "X-GoClaw-Wait", wait)
		var answer struct {
			Choices []struct {
				Message struct{ Content string }
			}
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || len(answer.Choices) != 1 {
			t.Fatalf("%d %s", status, body)
		}
		text := answer.Choices[0].Message.Content
		first, combined, both := strings.Cut(text, "\n\nTogether: ")
		if !strings.HasSuffix(first, "I have started 2 workers.") || both != (wait == "true") || both && !sameJob("Together: "+combined) {
			t.Errorf("wait %s: %q", wait, text)
		}
	}
}

func jobStreamed(t *testing.T, g *gatewayProcess) {
	status, body := g.call(http.MethodPost, "/v1/chat/completions", chatBody("streamed", "research tides and glaciers", true), "X-GoClaw-Wait", "true")
	events := sse(body)
	if status != http.StatusOK || len(events) < 4 || events[len(events)-1] != "[DONE]" {
		t.Fatalf("%d %s", status, body)
	}
	var text strings.Builder
	pieces, finish := 0, ""
	for _, data := range events[:len(events)-1] {
		var chunk struct {
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
			finish += c.FinishReason
			if c.Delta.Content != "" {
				pieces++
			}
		}
	}
	_, combined, _ := strings.Cut(text.String(), "Together: ")
	if !strings.HasPrefix(text.String(), "On it.") || !strings.Contains(text.String(), "I have started 2 workers.") || !sameJob("Together: "+combined) {
		t.Errorf("streamed %q", text.String())
	}
	if pieces < 2 || finish != "stop" {
		t.Errorf("%d pieces, finish %q", pieces, finish)
	}
}

// TestRefusedKey: one clear line, exit code 3, and no second try.
func TestRefusedKey(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, func(*providertest.Request) providertest.Answer {
			return providertest.Answer{Fault: providertest.Status(http.StatusUnauthorized, "", "")}
		})
		end := h.run("run", "--wait", "hello")
		lines := strings.Split(strings.TrimSpace(end.stderr), "\n")
		if end.code != exitNotCompleted || len(lines) != 1 || !strings.Contains(lines[0], "HTTP 401") || strings.TrimSpace(end.stdout) != "" {
			t.Errorf("exit %d\nstdout %q\nstderr %q", end.code, end.stdout, end.stderr)
		}
		if n := h.server.Total(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}
