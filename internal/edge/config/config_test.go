package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

func Example() {
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "goclaw.json")
	if err := os.WriteFile(path, []byte("{\n  \"agents\": {\"default\": {}}, // nearly\n}\n"), 0o600); err != nil {
		panic(err)
	}
	_, err = Load(path)
	fmt.Println(strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)))
	// Output:
	// goclaw.json:2:14: unknown key "agents.default"; did you mean defaults?
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	home := t.TempDir()
	t.Setenv("HOME", home)
	path := filepath.Join(dir, "goclaw.json")
	if err := os.WriteFile(path, []byte("\uFEFF"+strings.ReplaceAll(fullFile, "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	policies := []ToolPolicy{{Allow: []string{"read", "write", "exec"}, Deny: []string{"glob"}}}
	want := AgentConfig{
		ID: "main", Name: "Rat", Workspace: filepath.Join(dir, "ws"),
		Model: "anthropic/claude-sonnet-5-5", Thinking: "low", Tools: append(policies, ToolPolicy{}),
		Skills: []string{"pdf", "notes"}, Compaction: CompactionConfig{Percent: 50, Tokens: 90_000, KeepRecent: 8000},
		Heartbeat: HeartbeatConfig{
			Every: 30 * time.Minute, Start: "08:00", End: "24:00", Timezone: "America/New_York", Model: "anthropic/claude-sonnet-5-5", Prompt: "look\nwell",
			Session: goclaw.APIKey("main", "ann"),
		},
		Budget: goclaw.Budget{
			Run:  goclaw.Limits{Tokens: 50_000, USD: 1, Steps: 40, Seconds: 600},
			Tree: goclaw.Limits{Tokens: 200_000, USD: 5},
			Day:  goclaw.Limits{USD: 20, Steps: 1000},
		},
		Subagents: SubagentConfig{
			MaxSpawnDepth: 2, MaxChildrenPerAgent: 60, MaxRunsPerTree: 300, MaxConcurrentPerSession: 3, RunTimeout: 30 * time.Second,
			ArchiveAfter: 5 * time.Minute, AnnounceWindow: 100 * time.Millisecond, AnnounceMaxWait: 7 * time.Second, AnnounceAttempts: 2,
			Budget: goclaw.Limits{Tokens: 9000, USD: 0.5, Steps: 30, Seconds: 60}, ResultTokens: 500, RestartPolicy: goclaw.RestartAsk,
			AllowAgents: []string{"coder"}, Model: "openai/gpt-5.5", Thinking: "medium",
			Tools: ToolPolicy{Allow: []string{"read", "exec"}, Deny: []string{"write"}}, Inherit: []string{"TOOLS.md", "docs/STYLE.md", "memory"},
		},
	}
	got, ok := cfg.Agent("main")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("main (-want +got):\n%s", diff)
	}

	coder := want
	coder.ID, coder.Name, coder.Workspace, coder.Model, coder.Thinking = "coder", "Coder", "/srv/code", "local/qwen", "high"
	coder.Tools = []ToolPolicy{policies[0], {Allow: []string{"*"}, Deny: []string{"exec"}}}
	coder.Skills, coder.Compaction.Percent, coder.Compaction.MemoryFlush = []string{}, 0, true
	coder.Heartbeat.Every, coder.Heartbeat.End, coder.Heartbeat.Session = 0, "07:30", goclaw.MainKey("coder")
	coder.Budget.Run.Tokens = 70_000
	coder.Budget.Tree.USD = 0
	coder.Budget.Day = goclaw.Limits{USD: 20, Steps: 100, Seconds: 3600}
	coder.Subagents.MaxSpawnDepth, coder.Subagents.MaxConcurrent, coder.Subagents.MaxRunsPerTree = 0, 4, 0
	coder.Subagents.ResultTokens, coder.Subagents.RestartPolicy = 0, goclaw.RestartFail
	coder.Subagents.Budget.USD, coder.Subagents.Budget.Steps = 0.25, 0
	coder.Subagents.AllowAgents = []string{}
	coder.Subagents.Tools = ToolPolicy{Allow: []string{}, Deny: []string{"write", "edit"}}
	coder.Subagents.Inherit = []string{}
	got, ok = cfg.Agent("coder")
	if diff := cmp.Diff(coder, got); !ok || diff != "" {
		t.Errorf("coder (-want +got):\n%s", diff)
	}
	var ids []string
	for _, a := range cfg.AllAgents() {
		ids = append(ids, a.ID)
	}
	if diff := cmp.Diff([]string{"main", "coder", "w_1"}, ids); diff != "" {
		t.Error(diff)
	}
	if _, ok := cfg.Agent("nobody"); ok {
		t.Error("there is an agent nobody")
	}
	if diff := cmp.Diff(Exec{TimeoutSeconds: 9, MaxOutputBytes: 2048, Network: true, ReadOnly: []string{"/opt", filepath.Join(dir, "data")}}, cfg.Tools.Exec); diff != "" {
		t.Error(diff)
	}
	checkContext(t, cfg, dir)
	if cfg.Gateway.Addr != "127.0.0.1:8080" || cfg.Gateway.Token.Value.Reveal() != "tok-hidden" {
		t.Errorf("%+v", cfg.Gateway)
	}
	if p := cfg.Models.Providers[0]; p.Name != "anthropic" || p.Kind != "anthropic" || p.APIKeyEnv != "MY_KEY" || p.RequestsPerMinute != 50 || p.TokensPerMinute != 40_000 {
		t.Errorf("%+v", p)
	}
	read, write := 0.1, 2.5
	prices := map[string]Price{
		"local/*":                     {Output: 0.25},
		"anthropic/claude-sonnet-5-5": {Input: 2, Output: 10, CacheRead: &read, CacheWrite: &write},
	}
	if diff := cmp.Diff(prices, cfg.Models.Prices); diff != "" {
		t.Error(diff)
	}
	if cfg.MaxConcurrent() != 9 || cfg.Drain() != 0 || cfg.Database.URL.Value.Reveal() != "postgres://rat:pw-hidden@db.example:5432/goclaw?sslmode=require" {
		t.Errorf("%d, %s, %s", cfg.MaxConcurrent(), cfg.Drain(), cfg.Database.URL.Value.Reveal())
	}
}

// checkContext compares what fullFile says of the context.
func checkContext(t *testing.T, cfg Config, dir string) {
	t.Helper()
	want := Context{
		FileMaxChars: 1000, TotalMaxChars: 5000, Files: []string{"AGENTS.md", "SOUL.md", "docs/STYLE.md"}, DailyNotes: true,
		Owner: []string{"Ada", "+49 30 1234"}, Docs: "https://example.org/docs",
		Sections: map[string]string{"safety": filepath.Join(dir, "parts", "safety.md")},
		Hook:     ContextHook{Command: []string{filepath.Join(dir, "hooks", "trim"), "-a", "-a"}, TimeoutSeconds: 9},
	}
	if diff := cmp.Diff(want, cfg.Context); diff != "" {
		t.Error(diff)
	}
	no := false
	for _, diff := range []string{
		cmp.Diff(Skills{ExtraDirs: []string{filepath.Join(dir, "more"), "/srv/skills"}, Disabled: []string{"pdf"}, Limits: SkillLimits{10, 900}}, cfg.Skills),
		cmp.Diff(Definitions{Compat: &no, UserFacingTools: []string{"read"}}, cfg.Definitions),
		cmp.Diff(map[string]int{"local/*": 32_000, "anthropic/claude-sonnet-5-5": 400_000}, cfg.Models.Windows),
		cmp.Diff("Europe/Berlin", cfg.Zone().String()),
	} {
		if diff != "" {
			t.Error(diff)
		}
	}
}

func TestDefaults(t *testing.T) {
	cfg, err := Load(filepath.Join(t.TempDir(), "none.json"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	want := AgentConfig{
		ID: "main", Name: "main", Thinking: "off", Tools: []ToolPolicy{{}, {}},
		Compaction: CompactionConfig{Percent: 60, Tokens: 120_000, KeepRecent: 20_000, MemoryFlush: true},
		Heartbeat:  HeartbeatConfig{Session: goclaw.MainKey("main")},
		Subagents: SubagentConfig{
			MaxSpawnDepth: 1, MaxChildrenPerAgent: 5, MaxRunsPerTree: 100, MaxConcurrentPerSession: 7, ArchiveAfter: time.Hour,
			AnnounceWindow: 250 * time.Millisecond, AnnounceMaxWait: time.Minute, AnnounceAttempts: 5,
			ResultTokens: 4000, RestartPolicy: goclaw.RestartResume,
			AllowAgents: []string{}, Inherit: []string{"AGENTS.md", "TOOLS.md"},
		},
	}
	got, ok := cfg.Agent("main")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cfg.Context.FileMaxChars != 20_000 || cfg.Context.TotalMaxChars != 150_000 || len(cfg.Context.Files) != 8 {
		t.Errorf("%+v", cfg.Context)
	}
	if diff := cmp.Diff(SkillLimits{150, 8000}, cfg.Skills.Limits); diff != "" || cfg.Context.Hook.TimeoutSeconds != 5 || cfg.Zone() != time.Local {
		t.Errorf("%s%+v, %s", diff, cfg.Context.Hook, cfg.Zone())
	}
	if cfg.MaxConcurrent() != 8 || cfg.Drain() != 10*time.Second || !cfg.Database.URL.IsZero() {
		t.Errorf("%d, %s, %q", cfg.MaxConcurrent(), cfg.Drain(), cfg.Database.URL.Value.Reveal())
	}
	if got.WorkspaceIn("/h") != filepath.Join("/h", "workspace") || (AgentConfig{ID: "x"}).WorkspaceIn("/h") != filepath.Join("/h", "workspace-x") {
		t.Error("WorkspaceIn")
	}
}

// What is not given is taken from what stands further out, field by field.
func TestLimitsOfWorkers(t *testing.T) {
	for _, tt := range []struct {
		text string
		want func(a *SubagentConfig)
	}{
		{`{}`, func(*SubagentConfig) {}},
		{`{"budget": {"run": {"tokens": 10, "steps": 2}}}`, func(a *SubagentConfig) { a.Budget = goclaw.Limits{Tokens: 10, Steps: 2} }},
		{
			`{"budget": {"run": {"tokens": 10, "steps": 2}}, "agents": {"list": [{"id": "main", "budget": {"run": {"steps": 3}}}]}}`,
			func(a *SubagentConfig) { a.Budget = goclaw.Limits{Tokens: 10, Steps: 3} },
		},
		{
			`{"budget": {"run": {"tokens": 10, "steps": 2}}, "agents": {"defaults": {"subagents": {"budget": {"tokens": 0, "usd": 1.5}}}}}`,
			func(a *SubagentConfig) { a.Budget = goclaw.Limits{USD: 1.5, Steps: 2} },
		},
		{`{"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 50}}}}`, func(a *SubagentConfig) { a.MaxChildrenPerAgent = 50 }},
		{`{"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 51}}}}`, func(a *SubagentConfig) { a.MaxChildrenPerAgent, a.MaxRunsPerTree = 51, 102 }},
		{`{"agents": {"defaults": {"subagents": {"maxConcurrent": 3}}}}`, func(a *SubagentConfig) { a.MaxConcurrentPerSession = 3 }},
		{`{"agents": {"defaults": {"subagents": {"maxConcurrent": 4}}}}`, func(a *SubagentConfig) { a.MaxConcurrentPerSession = 3 }},
		{`{"agents": {"list": [{"id": "main", "subagents": {"maxConcurrent": 2}}]}}`, func(a *SubagentConfig) { a.MaxConcurrent = 2 }},
	} {
		cfg, err := parse("f", "/", []byte(tt.text))
		if err != nil {
			t.Fatalf("%s: %v", tt.text, err)
		}
		want := AgentConfig{}
		if main, ok := Default().Agent("main"); ok {
			want = main
		}
		tt.want(&want.Subagents)
		got, _ := cfg.Agent("main")
		if diff := cmp.Diff(want.Subagents, got.Subagents); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

type badFile struct {
	text         string
	want         []string // "line:col: what; what to do", or a beginning of it
	beyondSchema bool     // no schema can tell
}

func badFiles() []badFile {
	return []badFile{
		// syntax
		{"", []string{"1:1: the file is empty; write {}"}, true},
		{"// only a comment\n", []string{"2:1: the file ends too early"}, true},
		{"{", []string{"1:2: the file ends too early; close every {"}, true},
		{"{\n  \"a\": \"é\" \"b\": 1}", []string{"2:12: a comma is missing before this"}, true},
		{"{\"gateway\" {}}", []string{"1:12: a colon is missing"}, true},
		{"{gateway: {}}", []string{"1:2: "}, true},
		{"{\"gateway\": {\"token\": sk-secret}}", []string{"1:23: this is no JSON value; put text in double quotes"}, true},
		{"{\"gateway\": {\"token\": \"sk-secret\n\"}}", []string{"1:23: this is no JSON value"}, true},
		{"{\"gateway\": {\"token\": \"sk-secret}}", []string{"1:35: a string is not closed"}, true},
		{"{} {}", []string{"1:4: something follows the closing bracket"}, true},
		{"{} /* x", []string{"1:4: a comment is not closed"}, true},
		// keys
		{`{"agent": {}}`, []string{`1:2: unknown key "agent"; did you mean agents?`}, false},
		{`{"agents": {"defaults": {"subagents": {"max_spawn_depth": 1}}}}`, []string{`1:40: unknown key "agents.defaults.subagents.max_spawn_depth"; did you mean maxSpawnDepth?`}, false},
		{`{"maxSpawnDepth": 1}`, []string{`1:2: unknown key "maxSpawnDepth"; did you mean agents.defaults.subagents.maxSpawnDepth or agents.list[].subagents.maxSpawnDepth?`}, false},
		{`{"gateway": {"zzz": 1}}`, []string{`1:14: unknown key "gateway.zzz"; known here: addr, token`}, false},
		{`{"channels": {}}`, []string{"1:2: channels is not supported by this version yet; remove it"}, false},
		{`{"cron": {"enabled": 1, "maxConcurrentRuns": 0}}`, []string{
			"1:22: cron.enabled must be true or false", "1:46: cron.maxConcurrentRuns is 0; use a whole number from 1 to 1000",
		}, false},
		{`{"agents": {"defaults": {"heartbeat": {"every": "often", "activeHours": {"start": "08:00", "end": "08:00"}}}}}`, []string{
			`1:49: agents.defaults.heartbeat.every is "often"; write a length of time such as 30m`,
			`1:99: agents.defaults.heartbeat.activeHours: no time lies from 08:00 to 08:00; write a later time`,
		}, true},
		{`{"agents": {"defaults": {"heartbeat": {"every": "-1m", "activeHours": {"start": "24:00", "timezone": "Mars"}}}}}`, []string{
			`1:49: agents.defaults.heartbeat.every is "-1m"; use 1s to 8784h, or 0m`, `1:81: agents.defaults.heartbeat.activeHours.start is "24:00"`,
			`1:102: agents.defaults.heartbeat.activeHours.timezone: there is no time zone "Mars"`,
		}, true},
		{`{"agents": {"defaults": {"heartbeat": {"activeHours": {"end": "25:00"}}}}}`, []string{`1:63: agents.defaults.heartbeat.activeHours.end is "25:00"; write a time of day`}, false},
		{`{"agents": {"defaults": {"heartbeat": {"session": "agent:main:cron:x"}}, "list": [{"id": "a", "heartbeat": {"session": "agent:b:main"}}, {"id": "c", "heartbeat": {"session": "x"}}]}}`, []string{
			`1:51: agents.defaults.heartbeat.session: "agent:main:cron:x" is a worker's`,
			`1:120: agents.list[0].heartbeat.session: it is no session of the agent "a"; name one of its own`,
			`1:175: agents.list[1].heartbeat.session: session key "x": it must start with "agent:"; write main, or the whole key`,
		}, true},
		{"{\"gateway\": {},\n \"gateway\": {}}", []string{"2:2: the key gateway stands here and in line 1; remove one of them"}, true},
		{`{"agents": {"list": [{"name": "x"}]}}`, []string{"1:22: agents.list[0].id is missing; add it"}, false},
		// types
		{`[]`, []string{"1:1: the file must be an object, not a list"}, false},
		{`{"agents": null}`, []string{"1:12: agents must be an object, not null; give it a value or leave the key out"}, false},
		{`{"tools": {"exec": {"network": "yes", "timeoutSeconds": "9"}}}`, []string{
			"1:32: tools.exec.network must be true or false, not a string", "1:57: tools.exec.timeoutSeconds must be a number, not a string",
		}, false},
		{`{"tools": {"allow": "read"}}`, []string{"1:21: tools.allow must be a list, not a string; write [ … ]"}, false},
		{`{"tools": {"allow": [1]}}`, []string{"1:22: tools.allow[0] must be a string, not a number"}, false},
		{`{"gateway": {"token": 12345}}`, []string{`1:23: gateway.token must be a string or {"secret": NAME}, not a number; put it in double quotes`}, false},
		{`{"models": {"aliases": []}}`, []string{"1:24: models.aliases must be an object, not a list"}, false},
		// ranges and forms
		{`{"context": {"fileMaxChars": 10}}`, []string{"1:30: context.fileMaxChars is 10; use a whole number from 500 to 2000000"}, false},
		{`{"context": {"fileMaxChars": 1000.5}}`, []string{"1:30: context.fileMaxChars is 1000.5; use a whole number"}, false},
		{`{"agents": {"defaults": {"subagents": {"maxSpawnDepth": 99999999999999999999}}}}`, []string{"1:57: agents.defaults.subagents.maxSpawnDepth is 9999"}, false},
		{`{"agents": {"defaults": {"thinking": "hard", "workspace": " "}}}`, []string{
			`1:38: agents.defaults.thinking is "hard"; use one of off, low, medium, high`, "1:59: agents.defaults.workspace is empty",
		}, false},
		{`{"agents": {"defaults": {"workspace": "~bob/x"}}}`, []string{`1:39: agents.defaults.workspace: "~bob/x"`}, true},
		// the context
		{`{"context": {"files": ["soul.md"]}}`, []string{`1:24: context.files[0]: there is no workspace file "soul.md"; write SOUL.md`}, true},
		{`{"context": {"files": ["a.md", "./a.md", "../b", "/c", "~/d", "e\\f", "g\nh", "."]}}`, []string{
			`1:32: context.files[1]: "./a.md" stands twice in the list`,
			`1:42: context.files[2]: "../b" is nothing in a workspace; write a path within the workspace, with slashes`,
			`1:50: context.files[3]: "/c" is nothing`, `1:56: context.files[4]: "~/d" is nothing`, `1:63: context.files[5]: "e\\f" is nothing`,
			`1:71: context.files[6]: "g\nh" is nothing`, `1:79: context.files[7]: "." is nothing`,
		}, true},
		{`{"context": {"files": ["memory", ".git/"]}}`, []string{
			`1:24: context.files[0]: "memory" is a folder; name a file in it`, `1:34: context.files[1]: ".git/" is a folder`,
		}, true},
		{`{"agents": {"list": [{"id": "a", "subagents": {"inherit": ["memory", ".git", "user.md"]}}]}}`, []string{
			`1:78: agents.list[0].subagents.inherit[2]: there is no workspace file "user.md"; write USER.md`,
		}, true},
		{`{"agents": {"defaults": {"userTimezone": "europe/berlin"}}}`, []string{`1:42: agents.defaults.userTimezone: there is no time zone "europe/berlin"; did you mean Europe/Berlin?`}, true},
		{`{"agents": {"defaults": {"userTimezone": "Mars"}}}`, []string{`1:42: agents.defaults.userTimezone: there is no time zone "Mars"; write a name such as Europe/Berlin`}, true},
		{`{"agents": {"defaults": {"userTimezone": "Local"}}}`, []string{`1:42: agents.defaults.userTimezone: "Local" is no name of a time zone; leave the key out`}, true},
		{`{"agents": {"defaults": {"skills": [""], "compaction": {"contextPercent": 96, "keepRecentTokens": -1, "memoryFlush": 1}}}}`, []string{
			"1:37: agents.defaults.skills[0] is empty", "1:75: agents.defaults.compaction.contextPercent is 96; use a whole number from 0 to 95",
			"1:99: agents.defaults.compaction.keepRecentTokens is -1", "1:118: agents.defaults.compaction.memoryFlush must be true or false, not a number",
		}, false},
		{`{"agents": {"list": [{"id": "a", "skills": "all"}]}}`, []string{"1:44: agents.list[0].skills must be a list, not a string"}, false},
		{`{"context": {"owner": ["Ada\nBob"], "docs": "../x"}}`, []string{
			"1:24: context.owner[0] holds line breaks or control characters; write it in one line",
			`1:45: context.docs: "../x" is nothing in a workspace; write a path within the workspace, with slashes, or a web address`,
		}, true},
		{`{"context": {"docs": "ftp://x"}}`, []string{"1:22: context.docs is no web address; write http"}, true},
		{`{"context": {"sections": {"safety": ""}}}`, []string{"1:37: context.sections.safety is empty"}, false},
		{`{"context": {"hook": {"command": "trim", "timeoutSeconds": 61}}}`, []string{
			"1:34: context.hook.command must be a list, not a string; write [ … ]", "1:60: context.hook.timeoutSeconds is 61; use a whole number from 1 to 60",
		}, false},
		{`{"context": {"hook": {"command": ["~bob/x", "~bob/x"]}}}`, []string{`1:35: context.hook.command[0]: "~bob/x"`}, true},
		{`{"context": {"hook": ["x"]}}`, []string{"1:22: context.hook must be an object, not a list"}, false},
		{`{"skills": {"dirs": [], "limits": {"maxSkillsInPrompt": 0, "maxSkillsPromptChars": 10}}}`, []string{
			`1:13: unknown key "skills.dirs"`, "1:57: skills.limits.maxSkillsInPrompt is 0; use", "1:84: skills.limits.maxSkillsPromptChars is 10; use",
		}, false},
		{`{"definitions": {"compat": "yes", "userFacingTools": "read"}}`, []string{
			"1:28: definitions.compat must be true or false, not a string", "1:54: definitions.userFacingTools must be a list",
		}, false},
		{`{"models": {"windows": {"gpt": 8000, "a/b": 10}}}`, []string{`1:25: models.windows: "gpt" names no model`, "1:45: models.windows.a/b is 10; use a whole number from 1000"}, false},
		{`{"tools": {"deny": ["exec", "exec"]}}`, []string{`1:29: tools.deny[1]: "exec" stands twice in the list; remove one`}, false},
		{`{"gateway": {"addr": "localhost"}}`, []string{`1:22: gateway.addr is "localhost"; write HOST:PORT`}, false},
		{`{"agents": {"list": [{"id": "Bob"}]}}`, []string{"1:29: agents.list[0].id: "}, false},
		{`{"budget": {"run": {"token": 5}}}`, []string{`1:21: unknown key "budget.run.token"; did you mean tokens?`}, false},
		{`{"budget": {"runs": {}, "day": {"usd": "5", "steps": -1}}}`, []string{
			`1:13: unknown key "budget.runs"; did you mean run?`, "1:40: budget.day.usd must be a number, not a string", "1:54: budget.day.steps is -1; use a whole number from 0 to 1000000",
		}, false},
		{`{"budget": {"tree": {"usd": -0.5}}}`, []string{"1:29: budget.tree.usd is -0.5; use a number from 0 to 1000000"}, false},
		{`{"budget": {"tree": {"usd": 1e99}}}`, []string{"1:29: budget.tree.usd is 1e99; use a number from 0"}, false},
		{`{"agents": {"list": [{"id": "a", "budget": {"run": {"tokens": 1.5}}}]}}`, []string{"1:63: agents.list[0].budget.run.tokens is 1.5; use a whole number"}, false},
		{`{"agents": {"defaults": {"budget": {}}}}`, []string{`1:26: unknown key "agents.defaults.budget"`}, false},
		{`{"agents": {"defaults": {"subagents": {"maxConcurrent": 0, "maxConcurrentPerSession": 0, "restartPolicy": "never", "announceAttempts": 0}}}}`, []string{
			"1:57: agents.defaults.subagents.maxConcurrent is 0; use a whole number from 1 to 20000", "1:87: agents.defaults.subagents.maxConcurrentPerSession is 0",
			`1:107: agents.defaults.subagents.restartPolicy is "never"; use one of resume, fail, ask`, "1:136: agents.defaults.subagents.announceAttempts is 0",
		}, false},
		{`{"gateway": {"drainSeconds": 601}}`, []string{"1:30: gateway.drainSeconds is 601; use a whole number from 0 to 600"}, false},
		// database
		{`{"database": {"url": "mysql://sk-secret@h/db"}}`, []string{"1:22: database.url is no address of a PostgreSQL database; write postgres://USER@HOST/DATABASE"}, false},
		{`{"database": {"url": "postgres://u:sk-secret %@h/db"}}`, []string{"1:22: database.url is no address of a PostgreSQL database"}, true},
		{`{"database": {"url": "postgres://u:${sk-secret}@h/db"}}`, []string{"1:22: database.url: environment variables are not expanded here; write the address itself, or set GOCLAW_DATABASE_URL"}, true},
		{`{"tools": {"web": {"search": {"provider": "bing"}}}}`, []string{`1:43: tools.web.search.provider is "bing"; use one of brave, searxng`}, false},
		{`{"tools": {"web": {"search": {"provider": "searxng"}}}}`, []string{"1:43: tools.web.search.baseURL is missing; add baseURL, the address of your SearXNG"}, true},
		{`{"tools": {"web": {"search": {"provider": "searxng", "baseURL": "http://h", "apiKey": "sk-secret"}}}}`, []string{"1:43: tools.web.search.apiKey is for brave; SearXNG takes none; remove apiKey"}, true},
		{`{"tools": {"web": {"search": {"url": "http://h"}}}}`, []string{`1:31: unknown key "tools.web.search.url"; did you mean`}, false},
		{`{"tools": {"web": {"fetch": {"maxRedirects": 21}}}}`, []string{"1:46: tools.web.fetch.maxRedirects is 21; use a whole number from 0 to 20"}, false},
		{`{"tools": {"web": {"fetch": {"allowHosts": ["http://wiki.example"]}}}}`, []string{`1:45: tools.web.fetch.allowHosts[0] is "http://wiki.example"; write HOST or HOST:PORT`}, true},
		{`{"tools": {"web": {"fetch": {"allowHosts": ["*.example"]}}}}`, []string{`1:45: tools.web.fetch.allowHosts[0] is "*.example"; write HOST or HOST:PORT`}, true},
		{`{"tools": {"web": {"fetch": {"allowHosts": ["h:70000"]}}}}`, []string{`1:45: tools.web.fetch.allowHosts[0] is "h:70000"; use a port from 1 to 65535`}, true},
		{`{"tools": {"web": {"fetch": {"allowHosts": ["u@h", "h/x", "h:", "::1"]}}}}`, []string{`1:45: tools.web.fetch.allowHosts[0] is "u@h"`, `1:52: tools.web.fetch.allowHosts[1] is "h/x"`, `1:59: tools.web.fetch.allowHosts[2] is "h:"`, `1:65: tools.web.fetch.allowHosts[3] is "::1"`}, true},
		{`{"database": "postgres://u:sk-secret@h/db"}`, []string{"1:14: database must be an object, not a string"}, false},
		// prices and rates
		{`{"models": {"prices": {"gpt-5.5": {"input": 1, "output": 2}}}}`, []string{`1:24: models.prices: "gpt-5.5" names no model; write provider/model, or provider/prefix*`}, false},
		{`{"models": {"prices": {"p/*-mini": {"input": 1, "output": 2}}}}`, []string{`1:24: models.prices: "p/*-mini" names no model`}, false},
		{`{"models": {"prices": {"p/m": {"input": 1}}}}`, []string{"1:31: models.prices.p/m.output is missing; add it"}, false},
		{`{"models": {"prices": {"p/m": {"input": 1, "output": -2}}}}`, []string{"1:54: models.prices.p/m.output is -2; use a number from 0"}, false},
		{`{"models": {"prices": {"p/m": {"input": 1, "output": 2, "cached": 1}}}}`, []string{`1:57: unknown key "models.prices.p/m.cached"; did you mean cacheRead?`}, false},
		{`{"models": {"providers": {"openai": {"requestsPerMinute": 0, "tokensPerMinute": 0.5}}}}`, []string{
			"1:59: models.providers.openai.requestsPerMinute is 0; use a whole number from 1", "1:81: models.providers.openai.tokensPerMinute is 0.5",
		}, false},
		// models and providers
		{`{"agents": {"defaults": {"model": "smrt"}}, "models": {"aliases": {"smart": "a/b"}}}`, []string{`1:35: agents.defaults.model: "smrt" is neither; write provider/model or one of models.aliases (did you mean smart?)`}, true},
		{`{"models": {"aliases": {"a": "b"}}}`, []string{`1:30: models.aliases.a is "b"; write provider/model`}, false},
		{`{"models": {"aliases": {"a/b": "c/d"}}}`, []string{`1:25: models.aliases: "a/b" is no alias`}, false},
		{`{"models": {"providers": {"x": {}}}}`, []string{"1:27: models.providers.x.kind is missing; add it: anthropic"}, true},
		{`{"models": {"providers": {"x": {"kind": "gemini"}}}}`, []string{`1:41: models.providers.x.kind is "gemini"; use one of anthropic, openai`}, false},
		{`{"models": {"providers": {"demo": {"kind": "openai"}}}}`, []string{"1:27: models.providers.demo: demo is"}, true},
		{`{"models": {"providers": {"openai": {"apiKey": "sk-secret", "apiKeyEnv": "K"}}}}`, []string{"1:27: models.providers.openai has both"}, true},
		{`{"models": {"providers": {"openai": {"apiKey": "${sk-secret}"}}}}`, []string{"1:48: models.providers.openai.apiKey: environment"}, true},
		{`{"models": {"providers": {"openai": {"apiKey": "sk-secret\n"}}}}`, []string{"1:48: models.providers.openai.apiKey holds"}, true},
		{`{"models": {"providers": {"openai": {"apiKey": {"secret": "sk-Secret"}}}}}`, []string{"1:59: models.providers.openai.apiKey.secret is no name of a secret; write the name"}, false},
		{`{"models": {"providers": {"openai": {"apiKey": {"sealed": "a"}}}}}`, []string{`1:49: unknown key "models.providers.openai.apiKey.sealed"; write {"secret": NAME}`}, false},
		{`{"models": {"providers": {"openai": {"apiKey": {}}}}}`, []string{"1:48: models.providers.openai.apiKey names no secret"}, false},
		{`{"models": {"providers": {"openai": {"apiKey": {"secret": 1}}}}}`, []string{"1:59: models.providers.openai.apiKey.secret must be a string, not a number"}, false},
		{`{"models": {"providers": {"openai": {"apiKeyEnv": "sk-secret"}}}}`, []string{"1:51: models.providers.openai.apiKeyEnv is not"}, false},
		{`{"models": {"providers": {"openai": {"baseURL": "http://bob:sk-secret@h/v1"}}}}`, []string{"1:49: models.providers.openai.baseURL holds a user name or password"}, true},
		{`{"models": {"providers": {"openai": {"baseURL": "ftp://sk-secret"}}}}`, []string{"1:49: models.providers.openai.baseURL is no web address"}, false},
		{`{"models": {"providers": {"openai": {"idleTimeoutSeconds": 0}}}}`, []string{"1:60: models.providers.openai.idleTimeoutSeconds is 0"}, false},
		{`{"models": {"providers": {"openai": {"headers": {"X Y": "v"}}}}}`, []string{`1:50: models.providers.openai.headers: "X Y" is no`}, false},
		// agents
		{"{\"agents\": {\"list\": [{\"id\": \"a\"}],\n \"entries\": {\"a\": {}}}}", []string{`2:14: the agent "a" is defined here and in line 1; remove one`}, true},
		{`{"agents": {"list": [{"id": "a"}, {"id": "a"}]}}`, []string{`1:42: the agent "a" is defined here and in line 1`}, true},
		{`{"agents": {"entries": {"a": {"id": "b"}}}}`, []string{`1:30: agents.entries.a: the id "b" differs from the key`}, true},
		{`{"agents": {"defaults": {"subagents": {"allowAgents": ["x"]}}}}`, []string{`1:56: agents.defaults.subagents.allowAgents[0]: there is no agent "x"; add it`}, true},
	}
}

func TestProblems(t *testing.T) {
	for _, tt := range badFiles() {
		_, err := parse("dir/goclaw.json", "/dir", []byte(tt.text))
		var ps Problems
		if !errors.As(err, &ps) {
			t.Errorf("%s\ngives %v", tt.text, err)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		ok := len(lines) == len(tt.want)
		for i := range min(len(lines), len(tt.want)) {
			ok = ok && containsPlace(lines, tt.want[i])
		}
		if !ok {
			t.Errorf("%s\ngives\n%s\nwant\n%s", tt.text, err, strings.Join(tt.want, "\n"))
		}
		if strings.Contains(err.Error(), "sk-secret") || strings.Contains(err.Error(), "12345") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}

func containsPlace(lines []string, want string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, "dir/goclaw.json:"+want) {
			return true
		}
	}
	return false
}

func TestCheck(t *testing.T) {
	cfg, err := parse("f", "/", []byte(fullFile))
	if err != nil {
		t.Fatal(err)
	}
	known := Known{
		Tools:     []string{"read", "write", "edit", "exec", "glob"},
		Providers: []string{"anthropic", "openai", "local"}, Sections: []string{"identity", "safety"},
	}
	if err := cfg.Check(known); err != nil {
		t.Error(err)
	}
	known.Tools, known.Providers, known.Sections = known.Tools[:4], []string{"anthropic", "openai"}, []string{"identity", "safely"}
	want := "f:19:76: agents.list[0].model: there is no provider \"local\"; add it to models.providers, or use one of anthropic, openai\n" +
		"f:41:58: tools.deny[0]: there is no tool \"glob\"; use one of read, write, edit, exec\n" +
		"f:48:87: context.sections: there is no section \"safety\"; did you mean safely?"
	if err := cfg.Check(known); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestHomeIsExpanded(t *testing.T) {
	t.Setenv("HOME", "/home/rat")
	cfg, err := parse("f", "/etc", []byte(`{"agents": {"defaults": {"workspace": "~/ws"}}, "tools": {"exec": {"readOnly": ["~", "../opt/"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := cfg.Agent("main"); a.Workspace != "/home/rat/ws" {
		t.Errorf("workspace %q", a.Workspace)
	}
	if diff := cmp.Diff([]string{"/home/rat", "/opt"}, cfg.Tools.Exec.ReadOnly); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	cfg, err := parse("f", "/", []byte(fullFile))
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&shown, verb, cfg)
		fmt.Fprintf(&shown, verb, cfg.Gateway.Token)
		fmt.Fprintf(&shown, verb, cfg.Endpoints(env(map[string]string{"MY_KEY": "env-hidden", "OPENAI_API_KEY": "env-hidden"}), nil, nil))
	}
	data, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown.Write(data)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "token", cfg.Gateway.Token, "cfg", cfg)
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "token", cfg.Gateway.Token, "cfg", cfg)
	for _, secret := range []string{"hidden", fmt.Sprintf("%x", "hidden")} {
		if strings.Contains(shown.String(), secret) {
			at := strings.Index(shown.String(), secret)
			t.Errorf("a secret is shown: %.80s", shown.String()[max(0, at-40):])
		}
	}
	if !strings.Contains(shown.String(), "[secret]") {
		t.Error("nothing was hidden")
	}
}

func TestAllows(t *testing.T) {
	tests := []struct {
		allow, deny []string
		want        bool
	}{
		{nil, nil, true},
		{[]string{}, nil, false},
		{[]string{"read"}, nil, true},
		{[]string{"*"}, nil, true},
		{[]string{"exec"}, nil, false},
		{[]string{"read"}, []string{"read"}, false},
		{nil, []string{"*"}, false},
		{nil, []string{"exec"}, true},
	}
	for _, tt := range tests {
		if got := (ToolPolicy{tt.allow, tt.deny}).Allows("read"); got != tt.want {
			t.Errorf("allow %q, deny %q: %v", tt.allow, tt.deny, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fullFile)
	for _, b := range badFiles() {
		f.Add(b.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := parse("f", "/dir", []byte(text))
		var ps Problems
		if err != nil && !errors.As(err, &ps) {
			t.Fatalf("%q: %v", text, err)
		}
		for _, p := range ps {
			if p.Line < 1 || p.Col < 1 || p.What == "" || p.Hint == "" {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}
