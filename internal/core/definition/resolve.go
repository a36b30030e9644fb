package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/budget"
)

// Policy narrows a set of tools. Deny wins; a nil Allow allows all, an empty
// one nothing.
type Policy struct {
	Allow []string
	Deny  []string
}

// Allows reports whether the policy lets a tool through.
func (p Policy) Allows(tool string) bool {
	if slices.Contains(p.Deny, tool) || slices.Contains(p.Deny, "*") {
		return false
	}
	return p.Allow == nil || slices.Contains(p.Allow, tool) || slices.Contains(p.Allow, "*")
}

// Agent is the settled configuration of one agent.
type Agent struct {
	ID        string
	Name      string
	Workspace string // absolute path
	Model     string
	Thinking  string
	Tools     []Policy // all of them must allow a tool
	Skills    []string // those that its own sessions know of; nil: all
	Budget    goclaw.Budget
	Subagents Subagents

	Compaction Compaction
}

// Compaction says when an agent's conversations are compacted.
type Compaction struct {
	Percent     int // of the model's window; 0: any
	Tokens      int // at most; 0: any number
	KeepRecent  int // tokens
	MemoryFlush bool
}

// at is the number of tokens at which a conversation with a model of that
// window (0: unknown) is compacted; 0: never.
func (c Compaction) at(window int) goclaw.Compaction {
	tokens := c.Tokens
	if share := window * c.Percent / 100; share > 0 && (tokens == 0 || share < tokens) {
		tokens = share
	}
	keep := c.KeepRecent
	if tokens > 0 {
		keep = min(keep, tokens/3)
	}
	return goclaw.Compaction{Tokens: tokens, KeepRecent: keep, MemoryFlush: c.MemoryFlush}
}

// Subagents says how an agent's workers run.
type Subagents struct {
	MaxSpawnDepth int
	MaxChildren   int
	MaxTreeRuns   int           // spawned runs in a tree whose root is the agent's; 0: no bound
	RunTimeout    time.Duration // 0: none
	Budget        goclaw.Limits // of one worker
	ResultTokens  int           // 0: no bound
	RestartPolicy goclaw.RestartPolicy
	AllowAgents   []string
	Model         string
	Thinking      string
	Tools         Policy
	Inherit       []string // workspace files that workers see; nil: the default
}

// Rules is what the resolution needs to know of the world.
type Rules struct {
	Agents map[string]Agent

	// Tools are the names of all tools there are.
	Tools []string

	// WorkerTools is the most that a worker gets; SpawnTools come on top
	// where its depth allows spawning.
	WorkerTools []string
	SpawnTools  []string

	// NamedTools are what a worker gets besides only where its definition, or
	// the agent's subagents.tools.allow, names them.
	NamedTools []string

	MainFiles   []string
	WorkerFiles []string

	// ResolveModel turns an id or an alias into provider/model, or says why
	// it can't.
	ResolveModel func(string) (string, error)

	// Definitions are those that a workspace's agent may spawn, and others that
	// it may not; nil: there are none.
	Definitions func(workspace string) Catalog

	// Window is how many tokens a model takes at most, 0 if that is not known;
	// it may be nil.
	Window func(model string) int
}

func (r Rules) window(model string) int {
	if r.Window == nil {
		return 0
	}
	return r.Window(model)
}

// Main resolves the profile of a session's own turns. model and thinking
// override the agent's; "" does not. An unknown agent or model is a
// goclaw.BadRequest. Such a turn always resumes, and its reply is never cut:
// restart policy and result tokens are for workers.
func (r Rules) Main(agentID, model, thinking string) (goclaw.Profile, error) {
	a, ok := r.Agents[agentID]
	if !ok {
		return goclaw.Profile{}, goclaw.BadRequest(fmt.Sprintf("no agent %q is configured; there are: %s", agentID, strings.Join(r.agentIDs(), ", ")))
	}
	m, err := r.ResolveModel(first(model, a.Model))
	if err != nil {
		return goclaw.Profile{}, goclaw.BadRequest(err.Error())
	}
	return goclaw.Profile{
		Agent: a.ID, Workspace: a.Workspace, Model: m, Thinking: first(thinking, a.Thinking, "off"),
		Tools: filter(r.Tools, a.Tools...), PromptMode: goclaw.PromptFull, Inherit: r.MainFiles, Skills: a.Skills,
		TimeoutMs:     timeout(0, a.Budget.Run),
		MaxSpawnDepth: a.Subagents.MaxSpawnDepth, MaxChildren: a.Subagents.MaxChildren,
		MaxTreeRuns: a.Subagents.MaxTreeRuns, Budget: a.Budget,
		Compaction: a.Compaction.at(r.window(m)),
	}, nil
}

// Requester is what a spawn is checked against.
type Requester struct {
	Depth    int // 0 for a main session
	Children int // its session's unended workers
	Profile  goclaw.Profile
}

// Worker is what a spawn comes down to.
type Worker struct {
	Profile    goclaw.Profile
	Definition *Definition // nil for a plain worker
	Note       string      // what the requester should know of it
}

// Worker resolves a spawned run, or refuses. The checks come in the order of
// spec section 5: depth, children, allowAgents, definition, model.
func (r Rules) Worker(q goclaw.SpawnRequest, from Requester) (Worker, *goclaw.SpawnReply) {
	target, refused := r.target(q, from)
	if refused != nil {
		return Worker{}, refused
	}
	own := target.ID == from.Profile.Agent
	def, refused := r.definition(q, target)
	if refused != nil {
		return Worker{}, refused
	}
	fallback := from.Profile.Model
	if !own {
		fallback = first(target.Model, fallback)
	}
	fallback = first(target.Subagents.Model, fallback)
	model, note, err := r.workerModel(q, def, from, fallback)
	if err != nil {
		return Worker{}, refuse(goclaw.Failed(err.Error()))
	}
	depth := from.Depth + 1
	given := target.Subagents.RunTimeout
	if def != nil && def.TimeoutSeconds != nil {
		given = time.Duration(*def.TimeoutSeconds) * time.Second
	}
	if q.TimeoutSeconds != nil {
		given = time.Duration(*q.TimeoutSeconds) * time.Second
	}
	p := goclaw.Profile{
		Agent: target.ID, Workspace: target.Workspace, Model: model,
		Thinking:   first(q.Thinking, def.thinking(), target.Subagents.Thinking, from.Profile.Thinking, "off"),
		Tools:      r.workerTools(def, target, from, depth),
		PromptMode: goclaw.PromptMinimal, Inherit: r.WorkerFiles, Strict: true, Skills: []string{},
		TimeoutMs:     timeout(given, target.Subagents.Budget),
		MaxSpawnDepth: from.Profile.MaxSpawnDepth, MaxChildren: target.Subagents.MaxChildren,
		// The limits of a tree are its root's, whoever's workers are in it.
		MaxTreeRuns: from.Profile.MaxTreeRuns, Until: from.Profile.Until,
		Budget: goclaw.Budget{Run: target.Subagents.Budget, Tree: from.Profile.Budget.Tree, Day: target.Budget.Day},

		ResultTokens: target.Subagents.ResultTokens, RestartPolicy: target.Subagents.RestartPolicy,
		Handoff: def.handoff(r.window(model)),
	}
	if target.Subagents.Inherit != nil {
		p.Inherit = target.Subagents.Inherit
	}
	if def != nil {
		def.into(&p)
	}
	return Worker{Profile: p, Definition: def, Note: note}, nil
}

func refuse(reply goclaw.SpawnReply) *goclaw.SpawnReply { return &reply }

// target is the agent as which the worker is to run.
func (r Rules) target(q goclaw.SpawnRequest, from Requester) (Agent, *goclaw.SpawnReply) {
	forbid := func(format string, args ...any) (Agent, *goclaw.SpawnReply) {
		return Agent{}, refuse(goclaw.Forbidden(fmt.Sprintf(format, args...)))
	}
	if from.Depth >= from.Profile.MaxSpawnDepth {
		return forbid("sessions_spawn is not allowed at this depth (current depth: %d, max: %d)", from.Depth, from.Profile.MaxSpawnDepth)
	}
	if limit := from.Profile.MaxChildren; limit > 0 && from.Children >= limit {
		return forbid("%s", TooManyChildren(from.Children, limit))
	}
	own, ok := r.Agents[from.Profile.Agent]
	if !ok {
		return Agent{}, refuse(goclaw.Failed(fmt.Sprintf("the requester's agent %q is no longer configured", from.Profile.Agent)))
	}
	if q.AgentID == "" || q.AgentID == own.ID {
		return own, nil
	}
	if !slices.Contains(own.Subagents.AllowAgents, "*") && !slices.Contains(own.Subagents.AllowAgents, q.AgentID) {
		return forbid("agentId %q is not allowed for agent %q (allowed: %s)", q.AgentID, own.ID, allowed(own))
	}
	target, ok := r.Agents[q.AgentID]
	if !ok {
		return Agent{}, refuse(goclaw.Failed(fmt.Sprintf("no agent %q is configured; there are: %s", q.AgentID, strings.Join(r.agentIDs(), ", "))))
	}
	return target, nil
}

// timeout is the smaller of a given timeout and a limit in seconds, in
// milliseconds; 0 means none.
func timeout(given time.Duration, l goclaw.Limits) int64 {
	return budget.Lower(given.Milliseconds(), 1000*l.Seconds)
}

// TooManyChildren words the refusal of a spawn beyond the limit.
func TooManyChildren(active, limit int) string {
	return fmt.Sprintf("sessions_spawn has reached max active children for this session (%d/%d); wait for one to be announced or cancel one", active, limit)
}

// workerTools never gives a worker what its requester's own policy denies, nor
// what its definition does not list.
func (r Rules) workerTools(def *Definition, target Agent, from Requester, depth int) []string {
	most := slices.Clone(r.WorkerTools)
	if depth < from.Profile.MaxSpawnDepth {
		most = append(most, r.SpawnTools...)
	}
	for _, t := range r.NamedTools {
		if def != nil && slices.Contains(def.Tools.Allow, t) || slices.Contains(target.Subagents.Tools.Allow, t) {
			most = append(most, t)
		}
	}
	if def != nil {
		most = filter(most, def.Policy())
	}
	most = filter(most, target.Tools...)
	most = filter(most, target.Subagents.Tools)
	return slices.DeleteFunc(most, func(t string) bool { return !slices.Contains(from.Profile.Tools, t) })
}

func filter(tools []string, policies ...Policy) []string {
	kept := make([]string, 0, len(tools))
	for _, t := range tools {
		if !slices.ContainsFunc(policies, func(p Policy) bool { return !p.Allows(t) }) {
			kept = append(kept, t)
		}
	}
	slices.Sort(kept)
	return kept
}

func (r Rules) agentIDs() []string {
	ids := make([]string, 0, len(r.Agents))
	for id := range r.Agents {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func allowed(a Agent) string {
	if len(a.Subagents.AllowAgents) == 0 {
		return "only itself"
	}
	return strings.Join(a.Subagents.AllowAgents, ", ")
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
