package prompt_test

import (
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/provider/openai"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/tool/web"
)

// The promised sizes, in tokens of four bytes of the whole request's body.
const (
	workerFixed = 1200 // all but its task, slices and workspace files
	mainHello   = 4000 // a "hello" to the agent of a fresh workspace
)

// TestBudgets measures what is really sent, by both wires.
func TestBudgets(t *testing.T) {
	server := providertest.New(func(*providertest.Request) providertest.Answer {
		return providertest.Answer{Text: "ok"}
	})
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	now := time.Date(2026, 11, 21, 11, 5, 0, 0, time.UTC)

	search := web.Search(web.SearchOptions{Provider: web.SearXNG}).Spec() // there once it is configured
	worker := prompt.Assemble(input(workerProfile(), nil, append(workerTools(), search)))
	task := prompt.Envelope(prompt.Turn{Now: now, Run: goclaw.Run{
		Session:   goclaw.SubagentKey("main", "5eb436d5-12e9-4dea-8b4b-3e8393681c4a"),
		Requester: goclaw.MainKey("main"), Trigger: goclaw.TriggerSpawn, Depth: 1, Label: "research-tides", Profile: workerProfile(),
	}})
	hello := prompt.Assemble(input(mainProfile(), freshFiles(t), append(realTools(), search)))
	greeting := prompt.Envelope(prompt.Turn{Now: now, Text: "hello", Run: goclaw.Run{Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser}})

	a := anthropic.New(anthropic.Options{APIKey: "k", BaseURL: url})
	o := openai.New(openai.Options{APIKey: "k", BaseURL: url + "/v1"})
	defer a.CloseIdleConnections()
	defer o.CloseIdleConnections()
	for _, p := range []goclaw.Provider{a, o} {
		for _, tc := range []struct {
			name    string
			prompt  goclaw.Prompt
			message goclaw.Message
			most    int
		}{
			{"worker", worker, task, workerFixed},
			{"hello", hello, greeting, mainHello},
		} {
			_, err := p.Stream(t.Context(), goclaw.ModelRequest{
				Model: "claude-sonnet-5-5", System: prompt.Render(tc.prompt), Tools: tc.prompt.Tools,
				Messages: []goclaw.Message{tc.message}, Thinking: "off", Session: "agent:main:main",
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent := server.Requests()
			tokens := prompt.Tokens(len(sent[len(sent)-1].Raw))
			t.Logf("%s, %s: %d tokens of at most %d", p.Name(), tc.name, tokens, tc.most)
			if tokens > tc.most {
				t.Errorf("%s, %s: the request has %d tokens, at most %d are promised", p.Name(), tc.name, tokens, tc.most)
			}
		}
	}
}
