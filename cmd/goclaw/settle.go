package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/budget"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/provider/demo"
	"goclaw/internal/edge/provider/openai"
	"goclaw/internal/edge/redact"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/telemetry"
	"goclaw/internal/edge/tool/artifact"
	crontool "goclaw/internal/edge/tool/cron"
	"goclaw/internal/edge/tool/memory"
	"goclaw/internal/edge/tool/sessions"
	webtool "goclaw/internal/edge/tool/web"
	"goclaw/internal/edge/trust"
	"goclaw/internal/edge/web"
)

// settings are the configuration, the environment and the flags, settled: what
// the packages get as values.
type settings struct {
	clock    clock
	home     home
	source   string // what was read
	notes    []string
	models   models
	override string // the model that a flag or the environment names
	rules    definition.Rules
	trust    *trust.Store
	skills   *skillset

	definitions *library
	exec        config.Exec
	web         []goclaw.Tool     // those that use the web
	absent      map[string]string // tools that are not configured, with what to do
	addr        string
	token       string // of the environment or the configuration; "" leaves the home's
	tokenFrom   string // which of them
	names       []string
	limits      web.Limits
	hide        *redact.Redactor
	traces      telemetry.Options

	prompting prompting
	embedder  *openai.Embedder // nil for none

	secrets     config.Secrets
	keys        []keySource   // of the providers
	databaseURL config.Secret // "" for SQLite in the home
	migrated    func(sqlite.Migration)
	drain       time.Duration // of a process that serves; others stop at once
	lease       time.Duration // 0: the engine's own
	turnsAfter  time.Duration // how long fresh turns are left to gateways

	prices budget.Table
	rates  map[string]goclaw.RateRequest // allowances of providers that have one

	maxWorkers       int
	maxPerLane       int
	maxPerAgent      map[string]int // of agents that have a limit of their own
	maxCalls         int
	archiveAfter     time.Duration
	announceWindow   time.Duration
	announceMaxWait  time.Duration
	announceAttempts int
}

// maxModelCalls ends a run that goes round in circles.
const maxModelCalls = 1000

// The tools that there can be. Those of the web are there if they are configured.
var (
	workerTools = append([]string{"read", "write", "edit", "ls", "grep", "glob", "exec", webtool.FetchName, webtool.SearchName}, artifact.Names()...)
	mainTools   = append(append([]string{"sessions_spawn", "spawn_agent", "subagents", "sessions_list", "sessions_history", "session_status", crontool.Name}, memory.Names()...), workerTools...)
)

// locate reads the configuration and finds the home: all that is needed to
// talk to a running gateway. All its errors are the caller's to mend.
func (c *cli) locate() (settings, config.Config, error) {
	dir, err := config.HomeDir(c.Getenv)
	if err != nil {
		return settings{}, config.Config{}, usage(err)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return settings{}, config.Config{}, usagef("state folder %s is a file; set GOCLAW_HOME to a folder", dir)
	}
	s := settings{home: home(dir), maxCalls: maxModelCalls, lease: c.Lease, migrated: c.tellMigrated, hide: c.hide}
	cfg, err := c.load(&s)
	if err != nil {
		return settings{}, config.Config{}, usage(err)
	}
	s.trust = trust.New(dir)
	s.skills = newSkillset(s.home, s.trust, cfg.Skills, c.Getenv)
	s.absent = absentTools(cfg, c.Getenv)
	s.addr = cmp.Or(cfg.Gateway.Addr, defaultAddr)
	if err := checkToken(c.Getenv("GOCLAW_TOKEN")); err != nil {
		return settings{}, config.Config{}, usagef("GOCLAW_TOKEN %w", err)
	}
	s.secrets = c.lookup(c.secretStore(s.home))
	token, from, err := cfg.Token(c.Getenv, s.secrets)
	if err != nil {
		return settings{}, config.Config{}, usage(err)
	}
	if s.token, s.tokenFrom = token.Reveal(), from; from == "gateway.token" {
		s.tokenFrom += " in " + s.source
	}
	s.hide.Add(s.token)
	s.names = cfg.Gateway.Hosts
	s.limits = web.Limits{PerSecond: cfg.Gateway.RequestsPerSecond, AtOnce: cfg.Gateway.MaxRequests}
	if s.databaseURL, err = cfg.DatabaseURL(c.Getenv, s.secrets); err != nil {
		return settings{}, config.Config{}, usage(err)
	}
	return s, cfg, nil
}

// settle decides all the rest, for a gateway in this process. All its errors
// are the caller's to mend.
func (c *cli) settle(s *settings, cfg config.Config) error {
	if err := s.addModels(c, cfg); err != nil {
		return usage(err)
	}
	if err := cfg.Check(s.known()); err != nil {
		return usage(err)
	}
	s.addWeb(c, cfg)
	if err := s.addRules(c, cfg); err != nil {
		return usage(err)
	}
	if err := s.addSpending(cfg); err != nil {
		return usage(err)
	}
	if err := s.addWindows(cfg); err != nil {
		return usage(err)
	}
	if err := s.addTelemetry(c, cfg); err != nil {
		return usage(err)
	}
	s.addPrompting(c, cfg)
	s.addClock(cfg)
	if err := s.addMemory(c, cfg); err != nil {
		return usage(err)
	}
	s.exec = cfg.Tools.Exec
	s.drain = cfg.Drain()
	return nil
}

// known are the names that the configuration may use.
func (s *settings) known() config.Known {
	// A provider whose key is missing is known all the same: what needs it says
	// so when it is called.
	providers := slices.AppendSeq(s.models.names(), maps.Keys(s.models.unusable))
	slices.Sort(providers)
	return config.Known{Tools: mainTools, Providers: providers, Sections: prompt.SectionIDs()}
}

func (c *cli) load(s *settings) (config.Config, error) {
	file := c.config
	if file == "" {
		file = config.FileIn(string(s.home))
	}
	s.source = file
	cfg, err := config.Load(file)
	if errors.Is(err, fs.ErrNotExist) && c.config == "" {
		s.source = "defaults and environment (no " + file + ")"
		return cfg, nil
	}
	return cfg, err
}

// addModels makes the providers that can be called, and chooses the standard
// model: the flag, else GOCLAW_MODEL, else the config's, else the first
// provider's.
func (s *settings) addModels(c *cli, cfg config.Config) error {
	s.models = models{providers: map[string]goclaw.Provider{}, aliases: cfg.Models.Aliases, unusable: map[string]string{}}
	var standard string
	for _, e := range cfg.Endpoints(c.Getenv, s.probe(c, cfg), s.secrets) {
		if e.Unsupported {
			s.notes = append(s.notes, e.Name+": "+e.Note)
			s.models.unusable[e.Name] = e.Note
			s.keys = append(s.keys, keySource{Provider: e.Name, Missing: e.Note})
			continue
		}
		if e.KeyFrom != "" {
			s.keys = append(s.keys, keySource{Provider: e.Name, From: e.KeyFrom})
		}
		s.hide.Add(e.APIKey.Reveal())
		for _, value := range e.Headers {
			s.hide.Add(value.Reveal())
		}
		p, err := provider(e)
		if err != nil {
			return err
		}
		s.models.providers[e.Name] = discreet{p, s.hide}
		if standard == "" {
			standard = e.DefaultModel
		}
	}
	fromEnv, err := cfg.ModelFromEnv(c.Getenv)
	if err != nil {
		return err
	}
	s.override = c.model
	if s.override == "" {
		s.override = fromEnv
	}
	standard = cmp.Or(s.override, cfg.Agents.Defaults.Model, standard)
	if standard == "" {
		return errors.New("no model is chosen: name one with --model PROVIDER/MODEL, GOCLAW_MODEL or agents.defaults.model")
	}
	full, err := s.models.Resolve(standard)
	switch {
	case err == nil:
	case c.model != "":
		return fmt.Errorf("--model: %w", err)
	case fromEnv != "":
		return fmt.Errorf("GOCLAW_MODEL: %w", err)
	default:
		if placed := cfg.Check(s.known()); placed != nil {
			return placed // it knows the line
		}
		return err
	}
	s.models.standard = full
	if s.demo() {
		s.notes = append(s.notes, demoNote)
	}
	return nil
}

// probe looks for a local Ollama only where nothing better is configured.
func (s *settings) probe(c *cli, cfg config.Config) func(string) ([]string, bool) {
	if len(cfg.Models.Providers) > 0 || c.Getenv("ANTHROPIC_API_KEY") != "" || c.Getenv("OPENAI_API_KEY") != "" {
		return nil
	}
	return askOllama
}

const demoNote = "no model key is set, so the built-in offline demonstration model answers (it is a few rules, no real model); " +
	"goclaw setup sets up a real one. Try: research A and B with two workers"

func (s *settings) demo() bool { return strings.HasPrefix(s.models.standard, demo.Name+"/") }

func provider(e config.Endpoint) (goclaw.Provider, error) {
	hc := withHeaders(e.Headers)
	switch e.Kind {
	case "anthropic":
		return anthropic.New(anthropic.Options{Name: e.Name, APIKey: e.APIKey.Reveal(), BaseURL: e.BaseURL, HTTPClient: hc, IdleTimeout: e.IdleTimeout}), nil
	case "openai":
		return openai.New(openai.Options{Name: e.Name, APIKey: e.APIKey.Reveal(), BaseURL: e.BaseURL, HTTPClient: hc, IdleTimeout: e.IdleTimeout}), nil
	case "demo":
		return demo.New(), nil
	}
	return nil, fmt.Errorf("provider %s: unknown kind %q; want anthropic or openai", e.Name, e.Kind)
}

// withHeaders sends the configured headers with each request; nil leaves the
// provider its own client.
func withHeaders(headers map[string]config.Secret) *http.Client {
	if len(headers) == 0 {
		return nil
	}
	return &http.Client{Transport: headerTransport{headers}}
}

type headerTransport struct{ headers map[string]config.Secret }

func (t headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value.Reveal())
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (s *settings) addRules(c *cli, cfg config.Config) error {
	s.definitions = s.library(cfg, func(workspace string) bool {
		ok, err := s.trust.Trusted(workspace) // what can't be read is not trusted; agents list says why
		return ok && err == nil
	})
	s.rules = definition.Rules{
		Agents: map[string]definition.Agent{}, Tools: s.there(mainTools), WorkerTools: s.there(workerTools),
		SpawnTools: sessions.SpawnTools(), NamedTools: memory.ReadNames(), MainFiles: prompt.MainFiles(), WorkerFiles: prompt.WorkerFiles(),
		ResolveModel: s.models.Resolve,
		Definitions:  s.definitions.catalog,
	}
	if cfg.Context.Files != nil {
		s.rules.MainFiles = cfg.Context.Files
	}
	s.maxPerAgent = map[string]int{}
	for _, a := range cfg.AllAgents() {
		dir, err := c.workspaceOf(s.home, a)
		if err != nil {
			return err
		}
		model := a.Model
		if model == "" || s.override != "" {
			model = s.models.standard
		}
		s.rules.Agents[a.ID] = definition.Agent{
			ID: a.ID, Name: a.Name, Workspace: dir, Model: model, Thinking: a.Thinking,
			Tools: policies(a.Tools), Skills: a.Skills, Budget: a.Budget, Subagents: subagents(a.Subagents),
			Compaction: definition.Compaction(a.Compaction),
		}
		if n := a.Subagents.MaxConcurrent; n > 0 {
			s.maxPerAgent[a.ID] = n
		}
	}
	main := cfg.AllAgents()[0].Subagents
	s.maxWorkers, s.maxPerLane = cfg.MaxConcurrent(), main.MaxConcurrentPerSession
	s.archiveAfter, s.announceAttempts = main.ArchiveAfter, main.AnnounceAttempts
	s.announceWindow, s.announceMaxWait = main.AnnounceWindow, main.AnnounceMaxWait
	return nil
}

// workspaceOf is an agent's folder, absolute.
func (c *cli) workspaceOf(h home, a config.AgentConfig) (string, error) {
	dir := a.WorkspaceIn(string(h))
	if a.ID == config.DefaultAgent && c.workspace != "" {
		dir = c.workspace
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("workspace of agent %s: %w", a.ID, err)
	}
	return dir, nil
}

// addSpending settles what models cost and how fast providers may be asked.
func (s *settings) addSpending(cfg config.Config) error {
	overrides := map[string]budget.Price{}
	for model, p := range cfg.Models.Prices {
		price := budget.Price{Input: p.Input, Output: p.Output, CacheRead: p.Input, CacheWrite: p.Input}
		if p.CacheRead != nil {
			price.CacheRead = *p.CacheRead
		}
		if p.CacheWrite != nil {
			price.CacheWrite = *p.CacheWrite
		}
		overrides[model] = price
	}
	var err error
	if s.prices, err = budget.New(overrides); err != nil {
		return err
	}
	s.rates = map[string]goclaw.RateRequest{}
	for _, p := range cfg.Models.Providers {
		if p.RequestsPerMinute > 0 || p.TokensPerMinute > 0 {
			s.rates[p.Name] = goclaw.RateRequest{Name: p.Name, RequestsPerMinute: p.RequestsPerMinute, TokensPerMinute: p.TokensPerMinute}
		}
	}
	return nil
}

func subagents(a config.SubagentConfig) definition.Subagents {
	return definition.Subagents{
		MaxSpawnDepth: a.MaxSpawnDepth, MaxChildren: a.MaxChildrenPerAgent, MaxTreeRuns: a.MaxRunsPerTree, RunTimeout: a.RunTimeout,
		Budget: a.Budget, ResultTokens: a.ResultTokens, RestartPolicy: a.RestartPolicy,
		AllowAgents: a.AllowAgents, Model: a.Model, Thinking: a.Thinking,
		Tools: definition.Policy(a.Tools), Inherit: a.Inherit,
	}
}

func policies(list []config.ToolPolicy) []definition.Policy {
	out := make([]definition.Policy, len(list))
	for i, p := range list {
		out[i] = definition.Policy(p)
	}
	return out
}

func (s settings) agentIDs() []string {
	ids := []string{config.DefaultAgent}
	for id := range s.rules.Agents {
		if id != config.DefaultAgent {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids[1:])
	return ids
}

// hosts are the addresses besides loopback under which the gateway may be
// called.
func (s settings) hosts() []string { return append([]string{s.addr}, s.names...) }
