package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// billing is what the model server bills: the dearest that a request allows.
type billing struct {
	t *testing.T

	mu     sync.Mutex
	tokens int64
	calls  int
}

// bill charges three bytes a token of input, and all the output that the
// request allowed.
func (l *billing) bill(r *providertest.Request) *goclaw.Usage {
	var body struct {
		MaxTokens           int64 `json:"max_tokens"`
		MaxCompletionTokens int64 `json:"max_completion_tokens"`
	}
	if err := json.Unmarshal(r.Raw, &body); err != nil {
		l.t.Error(err)
	}
	u := goclaw.Usage{Input: int64(len(r.Raw) / 3), Output: body.MaxTokens + body.MaxCompletionTokens}
	if u.Output == 0 {
		l.t.Error("a request under a budget has no limit of output")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens += u.Input + u.Output
	l.calls++
	return &u
}

// TestBudgetOfATree: twenty workers that run at the same time draw on one
// budget; what the server bills for all of them never passes it, and the person
// is told what was done and why it ended.
func TestBudgetOfATree(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		const workers, limit = 20, 120_000
		bills := &billing{t: t}
		h := newE2E(t, wire, func(r *providertest.Request) providertest.Answer {
			a := providertest.Answer{Usage: bills.bill(r)}
			switch {
			case r.Worker():
				a.Text = "Looking on."
				a.Calls = []providertest.Call{{Name: "ls", Arguments: fmt.Sprintf(`{"path":".","limit":%d}`, 100+len(r.Messages))}}
			case len(r.NewestResults()) == 0:
				for i := range workers {
					a.Calls = append(a.Calls, providertest.Call{Name: "sessions_spawn", Arguments: arguments(args{"task": fmt.Sprintf("T%d", i)})})
				}
			default:
				a.Text = "Twenty are under way."
			}
			return a
		})
		h.file(h.home+"/goclaw.json", fmt.Sprintf(`{"budget": {"tree": {"tokens": %d}},
			"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": %d, "maxConcurrent": %d, "maxConcurrentPerSession": %d}}}}`, limit, workers, workers, workers))
		g := h.gateway()
		var out goclaw.Outcome
		g.get("/api/messages/"+g.send("agent:main:main", "spawn twenty")+"?workers=true&timeout=60", &out)
		var rows []goclaw.UsageRow
		g.get("/api/usage?by=tree", &rows)
		g.stop()
		bills.mu.Lock()
		defer bills.mu.Unlock()
		t.Logf("%d calls were billed %d of %d tokens", bills.calls, bills.tokens, limit)
		if bills.tokens > limit || bills.calls < 5 {
			t.Errorf("%d calls cost %d tokens; the tree may spend %d", bills.calls, bills.tokens, limit)
		}
		if len(rows) != 1 || rows[0].Usage.Input+rows[0].Usage.Output != bills.tokens || rows[0].Calls != int64(bills.calls) {
			t.Errorf("the books say %+v", rows)
		}
		for _, r := range out.Runs {
			if r.Status != goclaw.StateFailed || len(r.Error) < 7 || r.Error[:7] != "budget:" {
				t.Errorf("%s ended %s: %s", r.Label, r.Status, r.Error)
			}
		}
		if len(out.Runs) != workers || out.Unfinished != 0 {
			t.Errorf("%d workers, %d unfinished", len(out.Runs), out.Unfinished)
		}
	})
}
