package web

import (
	"context"
	"net/http"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// Memory looks things up in what agents remember.
type Memory interface {
	SearchMemory(ctx context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error)
	// MemoryStatus describes an agent's index, after it was brought up to date.
	MemoryStatus(ctx context.Context, agent string) (goclaw.MemoryStatus, error)
	// ReindexMemory makes the index anew, of all agents.
	ReindexMemory(ctx context.Context) ([]goclaw.MemoryStatus, error)
}

func (s *server) memoryRoutes() []route {
	agent := openapi.Param{Name: "agent", About: "whose memory; default: main"}
	return []route{
		{pattern: "GET /api/memory/search", handle: s.searchMemory, op: openapi.Operation{
			ID: "searchMemory", Tag: "memory", Summary: "Search an agent's notes and past conversations, the best first",
			Query: []openapi.Param{
				{Name: "q", Required: true, Length: 4096, About: "a question in everyday words, or keywords"}, agent,
				{Name: "limit", Type: openapi.Number, Least: 1, Most: 50, About: "at most so many; default: 8"},
				{Name: "source", Type: openapi.Choice, Repeated: true, Choices: []string{string(goclaw.MemoryFiles), string(goclaw.MemoryTranscripts)}, About: "only of this source; default: both"},
			},
			Answers: ok("what was found", goclaw.MemoryAnswer{}),
		}},
		{pattern: "GET /api/memory/status", handle: s.memoryStatus, op: openapi.Operation{
			ID: "memoryStatus", Tag: "memory", Summary: "What is indexed of an agent's memory, and what could not be",
			Query: []openapi.Param{agent}, Answers: ok("the index", goclaw.MemoryStatus{}),
		}},
		{pattern: "POST /api/memory/reindex", handle: s.reindexMemory, op: openapi.Operation{
			ID: "reindexMemory", Tag: "memory", Summary: "Make the index of all agents anew", Body: struct{}{}, Optional: true,
			Answers: ok("the index of each agent", []goclaw.MemoryStatus{}),
		}},
	}
}

func agentOf(v openapi.Values) string {
	if id := v.Text("agent"); id != "" {
		return id
	}
	return goclaw.DefaultAgent
}

func (s *server) searchMemory(w http.ResponseWriter, r *http.Request) {
	v := given(r)
	agent := agentOf(v)
	q := goclaw.MemoryQuery{Agent: agent, Text: v.Text("q"), Limit: v.Number("limit"), Now: goclaw.At(s.Now())}
	for _, source := range v["source"] {
		q.Sources = append(q.Sources, goclaw.MemorySource(source))
	}
	// Whoever has the token may see what the agent itself may.
	q.Access = goclaw.Access{Session: goclaw.MainKey(agent)}
	found, err := s.Backend.SearchMemory(r.Context(), q)
	found.Hits = list(found.Hits)
	s.reply(w, r, found, err)
}

func (s *server) memoryStatus(w http.ResponseWriter, r *http.Request) {
	status, err := s.Backend.MemoryStatus(r.Context(), agentOf(given(r)))
	s.reply(w, r, status, err)
}

func (s *server) reindexMemory(w http.ResponseWriter, r *http.Request) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	all, err := s.Backend.ReindexMemory(r.Context())
	s.reply(w, r, list(all), err)
}
