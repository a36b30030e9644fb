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
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/redact"
	"goclaw/internal/runtime/engine"
)

// settled are the settings that a home with this configuration leads to.
func settled(t *testing.T, text string, vars map[string]string) (settings, error) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "goclaw.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cli{hide: &redact.Redactor{}, world: world{Getenv: func(name string) string {
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

func TestSettlePrompting(t *testing.T) {
	s, err := settled(t, `{
		"agents": {
			"defaults": {"userTimezone": "Europe/Berlin", "compaction": {"contextTokens": 90000}},
			"list": [{"id": "coder", "compaction": {"contextPercent": 50, "memoryFlush": false}}],
		},
		"models": {"aliases": {"fast": "demo/offline"}, "windows": {"demo/*": 32000}},
		"context": {
			"files": ["docs/STYLE.md", "SOUL.md"], "dailyNotes": true, "owner": ["Ada"], "docs": "docs", "fileMaxChars": 700,
			"sections": {"safety": "parts/safety.md"}, "hook": {"command": ["true"]},
		},
	}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var o engine.Options
	s.prompting.into(&o, "box", "linux/amd64")
	facts := prompt.Facts{
		Host: "box", OS: "linux/amd64", Owner: []string{"Ada"}, Zone: "Europe/Berlin",
		Aliases: map[string]string{"fast": "demo/offline"}, Docs: "docs", Heartbeats: map[string]string{},
	}
	if diff := cmp.Diff(facts, o.Facts); diff != "" {
		t.Error(diff)
	}
	if o.Zone.String() != "Europe/Berlin" || !o.DailyNotes || o.Notes == nil || o.Rewriter == nil || s.prompting.files.FileMaxChars != 700 {
		t.Errorf("%+v", s.prompting)
	}
	if _, err := o.Sections.Texts(t.TempDir()); err == nil || !strings.Contains(err.Error(), "context.sections.safety: "+filepath.Join(string(s.home), "parts", "safety.md")+" is missing") {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(string(s.home), "parts"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(string(s.home), "parts", "safety.md")
	if err := os.WriteFile(path, []byte("be kind"), 0o600); err != nil {
		t.Fatal(err)
	}
	texts, err := o.Sections.Texts(t.TempDir())
	if diff := cmp.Diff(map[string]prompt.Replacement{"safety": {Text: "be kind", Source: path}}, texts); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for agent, want := range map[string]goclaw.Compaction{
		"main":  {Tokens: 32_000 * 60 / 100, KeepRecent: 32_000 * 60 / 100 / 3, MemoryFlush: true},
		"coder": {Tokens: 32_000 / 2, KeepRecent: 32_000 / 2 / 3},
	} {
		p, err := s.rules.Main(agent, "", "")
		if err != nil || p.Compaction != want {
			t.Errorf("%s: %+v, %v; want %+v", agent, p.Compaction, err, want)
		}
		if diff := cmp.Diff([]string{"SOUL.md", "docs/STYLE.md"}, p.Inherit); diff != "" {
			t.Error(diff)
		}
	}

	plain, err := settled(t, `{}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	o = engine.Options{}
	if plain.prompting.into(&o, "", ""); o.Sections != nil || o.Rewriter != nil || o.Zone != time.Local || o.DailyNotes {
		t.Errorf("%+v", o)
	}
	if _, err := settled(t, `{"context": {"sections": {"silence": "x"}}}`, nil); err == nil || !strings.Contains(err.Error(), `1:27: context.sections: there is no section "silence"; did you mean silent?`) {
		t.Error(err)
	}
}
