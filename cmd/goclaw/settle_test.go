package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

// settled are the settings that a home with this configuration leads to.
func settled(t *testing.T, text string, vars map[string]string) (settings, error) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "goclaw.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cli{world: world{Getenv: func(name string) string {
		switch name {
		case "GOCLAW_HOME":
			return home
		case "OLLAMA_HOST":
			return "127.0.0.1:1"
		}
		return vars[name]
	}}}
	s, cfg, err := c.locate()
	if err != nil {
		return s, err
	}
	return s, c.settle(&s, cfg)
}

func TestSettleSpending(t *testing.T) {
	s, err := settled(t, `{
		"agents": {
			"defaults": {"subagents": {"maxConcurrent": 20, "announceAttempts": 3, "resultTokens": 700, "budget": {"steps": 9}}},
			"list": [{"id": "coder", "budget": {"day": {"usd": 2}}, "subagents": {"maxConcurrent": 4, "restartPolicy": "ask"}}],
		},
		"models": {
			"providers": {
				"anthropic": {"apiKey": "k", "requestsPerMinute": 50},
				"openai": {"apiKey": "k", "tokensPerMinute": 9000},
				"local": {"kind": "openai", "baseURL": "http://127.0.0.1:1/v1", "models": ["qwen"]},
			},
			"prices": {"local/*": {"input": 1, "output": 2}, "local/qwen": {"input": 3, "output": 4, "cacheRead": 0.3, "cacheWrite": 3.75}},
		},
		"gateway": {"drainSeconds": 3},
		"database": {"url": "postgres://file/db"},
		"budget": {"run": {"tokens": 1000}, "tree": {"usd": 5}},
	}`, map[string]string{"GOCLAW_DATABASE_URL": "postgres://env/db"})
	if err != nil {
		t.Fatal(err)
	}
	if s.maxWorkers != 20 || s.maxPerLane != 19 || s.announceAttempts != 3 || s.drain != 3*time.Second || s.databaseURL.Reveal() != "postgres://env/db" {
		t.Errorf("%d workers, %d a lane, %d attempts, drain %s, %s", s.maxWorkers, s.maxPerLane, s.announceAttempts, s.drain, s.databaseURL.Reveal())
	}
	if diff := cmp.Diff(map[string]int{"coder": 4}, s.maxPerAgent); diff != "" {
		t.Error(diff)
	}
	rates := map[string]goclaw.RateRequest{
		"anthropic": {Name: "anthropic", RequestsPerMinute: 50},
		"openai":    {Name: "openai", TokensPerMinute: 9000},
	}
	if diff := cmp.Diff(rates, s.rates); diff != "" {
		t.Error(diff)
	}
	usage := goclaw.Usage{Input: 3_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000, Output: 1_000_000}
	for model, want := range map[string]float64{"local/phi": 5, "local/qwen": 3 + 0.3 + 3.75 + 4, "anthropic/claude-sonnet-5-5": 2 + 0.1 + 2.5 + 10, "demo/offline": 0} {
		price, ok := s.prices.Price(model)
		if got := price.Cost(usage); !ok || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s costs %v, %v; want %v", model, got, ok, want)
		}
	}
	coder := s.rules.Agents["coder"]
	budget := goclaw.Budget{Run: goclaw.Limits{Tokens: 1000}, Tree: goclaw.Limits{USD: 5}, Day: goclaw.Limits{USD: 2}}
	if diff := cmp.Diff(budget, coder.Budget); diff != "" {
		t.Error(diff)
	}
	if sub := coder.Subagents; sub.Budget != (goclaw.Limits{Tokens: 1000, Steps: 9}) || sub.ResultTokens != 700 || sub.RestartPolicy != goclaw.RestartAsk || sub.MaxTreeRuns != 100 {
		t.Errorf("%+v", sub)
	}
}

func TestBadDatabaseURL(t *testing.T) {
	_, err := settled(t, `{}`, map[string]string{"GOCLAW_DATABASE_URL": "mysql://rat:secret@h/db"})
	var coded exitError
	if !errors.As(err, &coded) || coded.code != exitUsage || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
