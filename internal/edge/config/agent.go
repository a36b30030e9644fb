package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
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

	Subagents SubagentConfig
}

// SubagentConfig is what holds for an agent's workers.
type SubagentConfig struct {
	MaxSpawnDepth       int
	MaxChildrenPerAgent int
	MaxConcurrent       int
	RunTimeout          time.Duration // 0: none
	ArchiveAfter        time.Duration
	AnnounceWindow      time.Duration
	AnnounceMaxWait     time.Duration
	AllowAgents         []string // besides the agent itself; "*" for any
	Model               string   // provider/model; "" for the requester's
	Thinking            string   // "" for the requester's
	Tools               ToolPolicy
	Inherit             []string // the workspace files that workers see
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
		Subagents: c.subagents(e.Subagents, def.Subagents),
	}
}

func (c Config) subagents(own, def Subagents) SubagentConfig {
	num := func(own, def *int, fallback int) int {
		switch {
		case own != nil:
			return *own
		case def != nil:
			return *def
		}
		return fallback
	}
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return SubagentConfig{
		MaxSpawnDepth:       num(own.MaxSpawnDepth, def.MaxSpawnDepth, 1),
		MaxChildrenPerAgent: num(own.MaxChildrenPerAgent, def.MaxChildrenPerAgent, 5),
		MaxConcurrent:       num(own.MaxConcurrent, def.MaxConcurrent, 8),
		RunTimeout:          seconds(num(own.RunTimeoutSeconds, def.RunTimeoutSeconds, 0)),
		ArchiveAfter:        seconds(60 * num(own.ArchiveAfterMinutes, def.ArchiveAfterMinutes, 60)),
		AnnounceWindow:      time.Duration(num(own.AnnounceWindowMs, def.AnnounceWindowMs, 250)) * time.Millisecond,
		AnnounceMaxWait:     seconds(num(own.AnnounceMaxWaitSeconds, def.AnnounceMaxWaitSeconds, 60)),
		AllowAgents:         firstList(own.AllowAgents, def.AllowAgents, []string{}),
		Model:               c.model(first(own.Model, def.Model)),
		Thinking:            first(own.Thinking, def.Thinking),
		Tools: ToolPolicy{
			Allow: firstList(own.Tools.Allow, def.Tools.Allow),
			// What is denied to all workers stays so for an agent's.
			Deny: slices.Concat(def.Tools.Deny, own.Tools.Deny),
		},
		Inherit: inOrder(firstList(own.Inherit, def.Inherit, []string{"AGENTS.md", "TOOLS.md"})),
	}
}

// model resolves a name that Load has checked.
func (c Config) model(name string) string {
	if model, err := c.ResolveModel(name); err == nil {
		return model
	}
	return name
}

// inOrder puts workspace files into their own order, whatever the file's.
func inOrder(names []string) []string {
	return slices.DeleteFunc(workspaceFiles(), func(n string) bool { return !slices.Contains(names, n) })
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
