package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"goclaw"
)

// DefaultAgent is the agent that is there without being configured.
const DefaultAgent = "main"

// AgentConfig is what holds for one agent: its own settings over the defaults.
type AgentConfig struct {
	ID        string
	Name      string
	Workspace string // absolute; "" for the one that WorkspaceIn names
	Model     string // provider/model; "" if the file names none
	Thinking  string // off, low, medium or high

	// Tools are the policies that must all allow a tool: the global one, then
	// the agent's.
	Tools []ToolPolicy

	Skills []string // nil: all

	Compaction CompactionConfig
	Heartbeat  HeartbeatConfig

	Budget    goclaw.Budget // of its own turns
	Subagents SubagentConfig
}

// CompactionConfig says when an agent's conversations are compacted.
type CompactionConfig struct {
	Percent     int // of the model's window; 0: any
	Tokens      int // at most; 0: any number
	KeepRecent  int // tokens
	MemoryFlush bool
}

// SubagentConfig is what holds for an agent's workers.
type SubagentConfig struct {
	MaxSpawnDepth       int
	MaxChildrenPerAgent int
	MaxRunsPerTree      int // 0: any number
	MaxConcurrent       int // of this agent; 0: no limit of its own

	// MaxConcurrentPerSession, ArchiveAfter and what is named Announce hold
	// for the whole gateway: main's are taken.
	MaxConcurrentPerSession int
	ArchiveAfter            time.Duration
	AnnounceWindow          time.Duration
	AnnounceMaxWait         time.Duration
	AnnounceAttempts        int

	RunTimeout    time.Duration // 0: none
	Budget        goclaw.Limits // of one worker
	ResultTokens  int           // 0: any number
	RestartPolicy goclaw.RestartPolicy

	AllowAgents []string // besides the agent itself; "*" for any
	Model       string   // provider/model; "" for the requester's
	Thinking    string   // "" for the requester's
	Tools       ToolPolicy
	Inherit     []string // the workspace files that workers see
}

// Allows reports whether the policy lets a tool be used.
func (p ToolPolicy) Allows(tool string) bool {
	for _, d := range p.Deny {
		if d == tool || d == "*" {
			return false
		}
	}
	return p.Allow == nil || slices.Contains(p.Allow, tool) || slices.Contains(p.Allow, "*")
}

// AllAgents lists all agents: main first, then the others in the file's order.
func (c Config) AllAgents() []AgentConfig {
	all := []AgentConfig{c.agent(AgentEntry{ID: DefaultAgent})}
	for _, e := range slices.Concat(c.Agents.List, c.Agents.Entries) {
		if a := c.agent(e); e.ID == DefaultAgent {
			all[0] = a
		} else {
			all = append(all, a)
		}
	}
	return all
}

// Agent returns the settings of one agent; ok is false if there is none of
// that id.
func (c Config) Agent(id string) (a AgentConfig, ok bool) {
	for _, a := range c.AllAgents() {
		if a.ID == id {
			return a, true
		}
	}
	return AgentConfig{}, false
}

// WorkspaceIn is the agent's folder, given the home folder for the case that
// none is configured: workspace for main, workspace-ID for any other.
func (a AgentConfig) WorkspaceIn(home string) string {
	switch {
	case a.Workspace != "":
		return a.Workspace
	case a.ID == DefaultAgent:
		return filepath.Join(home, "workspace")
	}
	return filepath.Join(home, "workspace-"+a.ID)
}

// ResolveModel turns an alias into provider/model, and leaves what has that
// form already.
func (c Config) ResolveModel(name string) (string, error) {
	if model, ok := c.Models.Aliases[name]; ok {
		return model, nil
	}
	if isModel(name) {
		return name, nil
	}
	return "", fmt.Errorf("model %q: write provider/model or one of models.aliases", name)
}

func (c Config) agent(e AgentEntry) AgentConfig {
	def := c.Agents.Defaults
	return AgentConfig{
		ID:        e.ID,
		Name:      first(e.Name, e.ID),
		Workspace: first(e.Workspace, def.Workspace),
		Model:     c.model(first(e.Model, def.Model)),
		Thinking:  first(e.Thinking, def.Thinking, "off"),
		Tools:     []ToolPolicy{c.Tools.Policy(), e.Tools},
		Budget: goclaw.Budget{
			Run:  merge(e.Budget.Run, c.Budget.Run),
			Tree: merge(e.Budget.Tree, c.Budget.Tree),
			Day:  merge(e.Budget.Day, c.Budget.Day),
		},
		Skills:     firstList(e.Skills, def.Skills),
		Compaction: compaction(e.Compaction, def.Compaction),
		Heartbeat:  c.heartbeat(e),
		Subagents:  c.subagents(e),
	}
}

func compaction(own, def Compaction) CompactionConfig {
	return CompactionConfig{
		Percent:     given(60, own.ContextPercent, def.ContextPercent),
		Tokens:      given(120_000, own.ContextTokens, def.ContextTokens),
		KeepRecent:  given(20_000, own.KeepRecentTokens, def.KeepRecentTokens),
		MemoryFlush: given(true, own.MemoryFlush, def.MemoryFlush),
	}
}

// Zone is the person's time zone.
func (c Config) Zone() *time.Location {
	if zone, err := time.LoadLocation(c.Agents.Defaults.UserTimezone); err == nil && c.Agents.Defaults.UserTimezone != "" {
		return zone
	}
	return time.Local
}

func (c Config) subagents(e AgentEntry) SubagentConfig {
	own, def := e.Subagents, c.Agents.Defaults.Subagents
	num := func(own, def *int, fallback int) int { return given(fallback, own, def) }
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	children := num(own.MaxChildrenPerAgent, def.MaxChildrenPerAgent, 5)
	perSession := c.MaxConcurrent()
	if perSession >= 4 {
		perSession--
	}
	return SubagentConfig{
		MaxSpawnDepth:       num(own.MaxSpawnDepth, def.MaxSpawnDepth, 1),
		MaxChildrenPerAgent: children,
		MaxRunsPerTree:      num(own.MaxRunsPerTree, def.MaxRunsPerTree, max(100, 2*children)),
		MaxConcurrent:       given(0, own.MaxConcurrent),

		MaxConcurrentPerSession: num(own.MaxConcurrentPerSession, def.MaxConcurrentPerSession, perSession),
		ArchiveAfter:            seconds(60 * num(own.ArchiveAfterMinutes, def.ArchiveAfterMinutes, 60)),
		AnnounceWindow:          time.Duration(num(own.AnnounceWindowMs, def.AnnounceWindowMs, 250)) * time.Millisecond,
		AnnounceMaxWait:         seconds(num(own.AnnounceMaxWaitSeconds, def.AnnounceMaxWaitSeconds, 60)),
		AnnounceAttempts:        num(own.AnnounceAttempts, def.AnnounceAttempts, 5),

		RunTimeout:    seconds(num(own.RunTimeoutSeconds, def.RunTimeoutSeconds, 0)),
		Budget:        merge(own.Budget, def.Budget, e.Budget.Run, c.Budget.Run),
		ResultTokens:  num(own.ResultTokens, def.ResultTokens, 4000),
		RestartPolicy: goclaw.RestartPolicy(first(own.RestartPolicy, def.RestartPolicy, string(goclaw.RestartResume))),

		AllowAgents: firstList(own.AllowAgents, def.AllowAgents, []string{}),
		Model:       c.model(first(own.Model, def.Model)),
		Thinking:    first(own.Thinking, def.Thinking),
		Tools: ToolPolicy{
			Allow: firstList(own.Tools.Allow, def.Tools.Allow),
			// What is denied to all workers stays so for an agent's.
			Deny: slices.Concat(def.Tools.Deny, own.Tools.Deny),
		},
		Inherit: inOrder(firstList(own.Inherit, def.Inherit, []string{"AGENTS.md", "TOOLS.md"})),
	}
}

// MaxConcurrent is how many workers of all agents run at a time.
func (c Config) MaxConcurrent() int { return given(8, c.Agents.Defaults.Subagents.MaxConcurrent) }

// Drain is how long a gateway that stops lets the steps under way finish.
func (c Config) Drain() time.Duration { return time.Duration(c.Gateway.DrainSeconds) * time.Second }

// merge takes each limit from the first that gives it.
func merge(all ...Limits) goclaw.Limits {
	var tokens, steps, seconds []*int
	var usd []*float64
	for _, l := range all {
		tokens, usd = append(tokens, l.Tokens), append(usd, l.USD)
		steps, seconds = append(steps, l.Steps), append(seconds, l.Seconds)
	}
	return goclaw.Limits{
		Tokens: int64(given(0, tokens...)), USD: given(0, usd...),
		Steps: int64(given(0, steps...)), Seconds: int64(given(0, seconds...)),
	}
}

// given is the first of values that is there.
func given[T int | float64 | bool](fallback T, values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return fallback
}

// model resolves a name that Load has checked.
func (c Config) model(name string) string {
	if model, err := c.ResolveModel(name); err == nil {
		return model
	}
	return name
}

// inOrder puts the agent's own files into their order, whatever the file's, and
// those that were added after them.
func inOrder(names []string) []string {
	own := workspaceFiles()
	added := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(own, n) })
	own = slices.DeleteFunc(own, func(n string) bool { return !slices.Contains(names, n) })
	return append(own, added...)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// firstList is the first list that is given, even if it is empty.
func firstList(lists ...[]string) []string {
	for _, l := range lists {
		if l != nil {
			return l
		}
	}
	return nil
}
