package definition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/definition"
)

var (
	workerTools = []string{"read", "write", "exec"}
	spawnTools  = []string{"sessions_spawn", "subagents"}
	allTools    = []string{"read", "write", "exec", "sessions_spawn", "subagents", "sessions_list"}
)

// resolve knows the models of the provider p and the alias quick.
func resolve(name string) (string, error) {
	switch {
	case name == "quick":
		return "p/small", nil
	case strings.HasPrefix(name, "p/"):
		return name, nil
	}
	return "", fmt.Errorf("unknown model %q", name)
}

// rules are two agents: main, who may start workers as helper, and helper.
func rules(change func(main, helper *definition.Agent)) definition.Rules {
	main := definition.Agent{
		ID: "main", Workspace: "/ws", Model: "p/main",
		Subagents: definition.Subagents{MaxSpawnDepth: 1, MaxChildren: 5, AllowAgents: []string{"helper"}},
	}
	helper := definition.Agent{
		ID: "helper", Workspace: "/helper", Model: "p/helper", Thinking: "low",
		Subagents: definition.Subagents{MaxSpawnDepth: 3, MaxChildren: 2},
	}
	if change != nil {
		change(&main, &helper)
	}
	return definition.Rules{
		Agents: map[string]definition.Agent{"main": main, "helper": helper},
		Tools:  allTools, WorkerTools: workerTools, SpawnTools: spawnTools,
		MainFiles: []string{"AGENTS.md", "SOUL.md"}, WorkerFiles: []string{"AGENTS.md"},
		ResolveModel: resolve,
	}
}

func sorted(tools ...string) []string {
	slices.Sort(tools)
	return tools
}

func TestMainProfile(t *testing.T) {
	full := goclaw.Profile{
		Agent: "main", Workspace: "/ws", Model: "p/main", Thinking: "off", Tools: sorted(slices.Clone(allTools)...),
		PromptMode: goclaw.PromptFull, Inherit: []string{"AGENTS.md", "SOUL.md"}, MaxSpawnDepth: 1, MaxChildren: 5,
	}
	with := func(change func(*goclaw.Profile)) goclaw.Profile {
		p := full
		change(&p)
		return p
	}
	for _, tc := range []struct {
		name                   string
		agent, model, thinking string
		change                 func(main, helper *definition.Agent)
		want                   goclaw.Profile
		err                    string
	}{
		{name: "plain", agent: "main", want: full},
		{name: "the session's model", agent: "main", model: "p/other", want: with(func(p *goclaw.Profile) { p.Model = "p/other" })},
		{name: "an alias", agent: "main", model: "quick", want: with(func(p *goclaw.Profile) { p.Model = "p/small" })},
		{name: "the session's thinking", agent: "main", thinking: "high", want: with(func(p *goclaw.Profile) { p.Thinking = "high" })},
		{
			name: "the agent's thinking", agent: "main", want: with(func(p *goclaw.Profile) { p.Thinking = "medium" }),
			change: func(main, _ *definition.Agent) { main.Thinking = "medium" },
		},
		{
			name: "all policies must allow a tool", agent: "main", want: with(func(p *goclaw.Profile) { p.Tools = []string{"read"} }),
			change: func(main, _ *definition.Agent) {
				main.Tools = []definition.Policy{{Allow: []string{"read", "exec"}}, {Deny: []string{"exec"}}}
			},
		},
		{
			name: "the subagents' policy is not the agent's", agent: "main", want: full,
			change: func(main, _ *definition.Agent) { main.Subagents.Tools = definition.Policy{Deny: []string{"*"}} },
		},
		{
			name: "its limits, not its workers'", agent: "main",
			change: func(main, _ *definition.Agent) {
				main.Budget, main.Subagents.Budget = limits(1), goclaw.Limits{Seconds: 1}
				main.Subagents.MaxTreeRuns, main.Subagents.ResultTokens, main.Subagents.RestartPolicy = 40, 50, goclaw.RestartFail
			},
			want: with(func(p *goclaw.Profile) { p.Budget, p.MaxTreeRuns, p.TimeoutMs = limits(1), 40, 10_000 }),
		},
		{name: "no such agent", agent: "other", err: `no agent "other" is configured; there are: helper, main`},
		{name: "no such model", agent: "main", model: "x/y", err: `unknown model "x/y"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := rules(tc.change).Main(tc.agent, tc.model, tc.thinking)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err || !goclaw.IsBadRequest(err) {
					t.Fatalf("error %v, want a bad request: %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// limits are a budget in which every number is another one, n in front.
func limits(n int64) goclaw.Budget {
	return goclaw.Budget{
		Run:  goclaw.Limits{Tokens: n * 100, Steps: n * 10, Seconds: n * 10},
		Tree: goclaw.Limits{Tokens: n * 1000, USD: float64(n)},
		Day:  goclaw.Limits{Tokens: n * 10_000},
	}
}

func seconds(n int) *int { return &n }

// workerCase is one spawn by main's own session, unless from changes that.
type workerCase struct {
	name   string
	ask    goclaw.SpawnRequest
	from   func(*definition.Requester)
	change func(main, helper *definition.Agent)
	want   func(*goclaw.Profile) // of the plain worker's profile
}

func TestWorker(t *testing.T) {
	for _, tc := range slices.Concat(workerModels(), workerTimes(), workerLimits(), workerToolCases(), workersOfOthers()) {
		t.Run(tc.name, func(t *testing.T) {
			r := rules(tc.change)
			from := requester(t, r)
			if tc.from != nil {
				tc.from(&from)
			}
			want := goclaw.Profile{
				Agent: "main", Workspace: "/ws", Model: "p/main", Thinking: "off", Tools: sorted(slices.Clone(workerTools)...),
				PromptMode: goclaw.PromptMinimal, Inherit: []string{"AGENTS.md"}, Strict: true, Skills: []string{}, MaxSpawnDepth: 1, MaxChildren: 5,
				Handoff: goclaw.Handoff{Tokens: 120_000, Max: 3},
			}
			if tc.want != nil {
				tc.want(&want)
			}
			got, refused := r.Worker(tc.ask, from)
			if refused != nil {
				t.Fatalf("refused: %+v", *refused)
			}
			if diff := cmp.Diff(want, got.Profile); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func requester(t *testing.T, r definition.Rules) definition.Requester {
	t.Helper()
	profile, err := r.Main("main", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return definition.Requester{Profile: profile}
}

func workerModels() []workerCase {
	model := func(m string) func(*goclaw.Profile) { return func(p *goclaw.Profile) { p.Model = m } }
	thinking := func(v string) func(*goclaw.Profile) { return func(p *goclaw.Profile) { p.Thinking = v } }
	configured := func(main, _ *definition.Agent) { main.Subagents.Model, main.Subagents.Thinking = "p/workers", "low" }
	return []workerCase{
		{name: "plain"},
		{name: "own agent by name", ask: goclaw.SpawnRequest{AgentID: "main"}},
		{
			name: "the requester's model, not its agent's", want: model("p/session"),
			from: func(r *definition.Requester) { r.Profile.Model = "p/session" },
		},
		{name: "the subagents' model", change: configured, want: func(p *goclaw.Profile) { p.Model, p.Thinking = "p/workers", "low" }},
		{
			name: "the spawn's model", change: configured, ask: goclaw.SpawnRequest{Model: "quick", Thinking: "high"},
			want: func(p *goclaw.Profile) { p.Model, p.Thinking = "p/small", "high" },
		},
		{
			name: "the requester's thinking", want: thinking("medium"),
			from: func(r *definition.Requester) { r.Profile.Thinking = "medium" },
		},
		{
			name: "thinking can be turned off", ask: goclaw.SpawnRequest{Thinking: "off"}, change: configured,
			want: func(p *goclaw.Profile) { p.Model, p.Thinking = "p/workers", "off" },
		},
	}
}

func workerTimes() []workerCase {
	minute := func(main, _ *definition.Agent) { main.Subagents.RunTimeout = time.Minute }
	timeout := func(d time.Duration) func(*goclaw.Profile) {
		return func(p *goclaw.Profile) { p.TimeoutMs = d.Milliseconds() }
	}
	return []workerCase{
		{name: "the configured timeout", change: minute, want: timeout(time.Minute)},
		{name: "the spawn's timeout", change: minute, ask: goclaw.SpawnRequest{TimeoutSeconds: seconds(5)}, want: timeout(5 * time.Second)},
		{name: "no timeout", change: minute, ask: goclaw.SpawnRequest{TimeoutSeconds: seconds(0)}},
	}
}

func workerLimits() []workerCase {
	worker := goclaw.Limits{Tokens: 7, USD: 0.5, Seconds: 30}
	configured := func(main, helper *definition.Agent) {
		main.Budget, main.Subagents.Budget, main.Subagents.RunTimeout = limits(1), worker, time.Minute
		main.Subagents.MaxTreeRuns, main.Subagents.ResultTokens, main.Subagents.RestartPolicy = 40, 50, goclaw.RestartAsk
		helper.Budget, helper.Subagents.Budget = limits(2), goclaw.Limits{Tokens: 9}
		helper.Subagents.MaxTreeRuns, helper.Subagents.ResultTokens, helper.Subagents.RestartPolicy = 60, 70, goclaw.RestartFail
	}
	own := func(timeoutMs int64) func(*goclaw.Profile) {
		return func(p *goclaw.Profile) {
			p.Budget = goclaw.Budget{Run: worker, Tree: limits(1).Tree, Day: limits(1).Day}
			p.TimeoutMs, p.MaxTreeRuns, p.ResultTokens, p.RestartPolicy = timeoutMs, 40, 50, goclaw.RestartAsk
		}
	}
	return []workerCase{
		{name: "its own limits, its agent's day", change: configured, want: own(30_000)},
		{name: "a shorter timeout", change: configured, ask: goclaw.SpawnRequest{TimeoutSeconds: seconds(20)}, want: own(20_000)},
		{name: "no timeout lifts no limit", change: configured, ask: goclaw.SpawnRequest{TimeoutSeconds: seconds(0)}, want: own(30_000)},
		{
			name: "the tree is the root's", change: configured,
			from: func(r *definition.Requester) {
				r.Profile.Budget, r.Profile.MaxTreeRuns, r.Profile.Until = limits(3), 80, 12345
			},
			want: func(p *goclaw.Profile) {
				own(30_000)(p)
				p.Budget.Tree, p.MaxTreeRuns, p.Until = limits(3).Tree, 80, 12345
			},
		},
		{
			name: "another agent's limits and day", change: configured, ask: goclaw.SpawnRequest{AgentID: "helper"},
			want: func(p *goclaw.Profile) {
				p.Agent, p.Workspace, p.Model, p.MaxChildren = "helper", "/helper", "p/helper", 2
				p.Budget = goclaw.Budget{Run: goclaw.Limits{Tokens: 9}, Tree: limits(1).Tree, Day: limits(2).Day}
				p.MaxTreeRuns, p.ResultTokens, p.RestartPolicy = 40, 70, goclaw.RestartFail
			},
		},
	}
}

func workerToolCases() []workerCase {
	tools := func(names ...string) func(*goclaw.Profile) {
		return func(p *goclaw.Profile) { p.Tools = sorted(append([]string{}, names...)...) }
	}
	policy := func(p definition.Policy) func(main, _ *definition.Agent) {
		return func(main, _ *definition.Agent) { main.Subagents.Tools = p }
	}
	return []workerCase{
		{name: "allowed ones only", change: policy(definition.Policy{Allow: []string{"read", "sessions_list"}}), want: tools("read")},
		{name: "deny wins", change: policy(definition.Policy{Allow: []string{"*"}, Deny: []string{"exec"}}), want: tools("read", "write")},
		{name: "none allowed", change: policy(definition.Policy{Allow: []string{}}), want: tools()},
		{name: "all denied", change: policy(definition.Policy{Deny: []string{"*"}}), want: tools()},
		{
			name: "the agent's own policy narrows its workers", want: tools("read", "exec"),
			change: func(main, _ *definition.Agent) { main.Tools = []definition.Policy{{Deny: []string{"write"}}} },
		},
		{
			name: "below the depth limit a worker may spawn", want: func(p *goclaw.Profile) {
				p.MaxSpawnDepth, p.Tools = 2, sorted(append(slices.Clone(workerTools), spawnTools...)...)
			},
			change: func(main, _ *definition.Agent) { main.Subagents.MaxSpawnDepth = 2 },
		},
		{
			name: "at the limit it may not", want: func(p *goclaw.Profile) { p.MaxSpawnDepth = 2 },
			change: func(main, _ *definition.Agent) { main.Subagents.MaxSpawnDepth = 2 },
			from:   func(r *definition.Requester) { r.Depth = 1 },
		},
		{
			name: "files lifted by name", want: func(p *goclaw.Profile) { p.Inherit = []string{"USER.md"} },
			change: func(main, _ *definition.Agent) { main.Subagents.Inherit = []string{"USER.md"} },
		},
		{
			name: "no files", want: func(p *goclaw.Profile) { p.Inherit = []string{} },
			change: func(main, _ *definition.Agent) { main.Subagents.Inherit = []string{} },
		},
	}
}

func workersOfOthers() []workerCase {
	helper := func(p *goclaw.Profile) {
		p.Agent, p.Workspace, p.Model, p.MaxChildren = "helper", "/helper", "p/helper", 2
	}
	ask := goclaw.SpawnRequest{AgentID: "helper"}
	return []workerCase{
		{name: "another agent's workspace and model", ask: ask, want: helper},
		{
			name: "any agent is allowed", ask: ask, want: helper,
			change: func(main, _ *definition.Agent) { main.Subagents.AllowAgents = []string{"*"} },
		},
		{
			name: "the other's workers' model and timeout", ask: ask,
			change: func(main, helper *definition.Agent) {
				main.Subagents.Model, main.Subagents.RunTimeout = "p/not-this", time.Hour
				helper.Subagents.Model, helper.Subagents.RunTimeout = "p/its-workers", time.Minute
			},
			want: func(p *goclaw.Profile) { helper(p); p.Model, p.TimeoutMs = "p/its-workers", 60_000 },
		},
		{
			name: "without a model of its own, the requester's", ask: ask,
			change: func(_, helper *definition.Agent) { helper.Model = "" },
			want:   func(p *goclaw.Profile) { helper(p); p.Model = "p/main" },
		},
		{
			name: "never more tools than the requester has", ask: ask,
			change: func(main, _ *definition.Agent) { main.Tools = []definition.Policy{{Deny: []string{"exec"}}} },
			want:   func(p *goclaw.Profile) { helper(p); p.Tools = sorted("read", "write") },
		},
		{
			name: "nor more than the other's policy", ask: ask,
			change: func(_, helper *definition.Agent) {
				helper.Tools = []definition.Policy{{Allow: []string{"read", "exec"}}}
				helper.Subagents.Tools = definition.Policy{Deny: []string{"exec"}}
			},
			want: func(p *goclaw.Profile) { helper(p); p.Tools = []string{"read"} },
		},
		{
			name: "the depth limit stays the requester's", ask: ask,
			from: func(r *definition.Requester) { r.Profile.MaxSpawnDepth, r.Depth = 2, 1 },
			want: func(p *goclaw.Profile) { helper(p); p.MaxSpawnDepth = 2 },
		},
	}
}

// The checks come in the order of the specification: each request here breaks
// its rule and all that come after it.
func TestRefusals(t *testing.T) {
	worst := goclaw.SpawnRequest{AgentID: "stranger", Agent: "nobody", Model: "x/y"}
	inside := func(r *definition.Requester) { r.Depth, r.Children = 0, 0 }
	for _, tc := range []struct {
		name   string
		ask    goclaw.SpawnRequest
		from   func(*definition.Requester)
		change func(main, helper *definition.Agent)
		want   goclaw.SpawnReply
	}{
		{
			name: "depth", ask: worst, from: func(r *definition.Requester) { r.Depth, r.Children = 1, 5 },
			want: goclaw.Forbidden("sessions_spawn is not allowed at this depth (current depth: 1, max: 1)"),
		},
		{
			name: "no depth at all", ask: worst, change: func(main, _ *definition.Agent) { main.Subagents.MaxSpawnDepth = 0 },
			want: goclaw.Forbidden("sessions_spawn is not allowed at this depth (current depth: 0, max: 0)"),
		},
		{
			name: "children", ask: worst, from: func(r *definition.Requester) { r.Children = 5 },
			want: goclaw.Forbidden("sessions_spawn has reached max active children for this session (5/5); wait for one to be announced or cancel one"),
		},
		{
			name: "allowAgents", ask: worst, from: inside,
			want: goclaw.Forbidden(`agentId "stranger" is not allowed for agent "main" (allowed: helper)`),
		},
		{
			name: "only itself", ask: goclaw.SpawnRequest{AgentID: "helper"}, from: inside,
			change: func(main, _ *definition.Agent) { main.Subagents.AllowAgents = nil },
			want:   goclaw.Forbidden(`agentId "helper" is not allowed for agent "main" (allowed: only itself)`),
		},
		{
			name: "agent exists", ask: worst, change: func(main, _ *definition.Agent) { main.Subagents.AllowAgents = []string{"*"} },
			want: goclaw.Failed(`no agent "stranger" is configured; there are: helper, main`),
		},
		{
			name: "definition exists", ask: goclaw.SpawnRequest{Agent: "nobody", Model: "x/y"},
			want: goclaw.Failed(`no definition "nobody" exists; leave agent out to spawn a plain worker`),
		},
		{name: "model resolves", ask: goclaw.SpawnRequest{Model: "x/y"}, want: goclaw.Failed(`unknown model "x/y"`)},
		{
			name: "configured model resolves", change: func(main, _ *definition.Agent) { main.Subagents.Model = "gone" },
			want: goclaw.Failed(`unknown model "gone"`),
		},
		{
			name: "its agent is gone", from: func(r *definition.Requester) { r.Profile.Agent = "former" },
			want: goclaw.Failed(`the requester's agent "former" is no longer configured`),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rules(tc.change)
			from := requester(t, r)
			if tc.from != nil {
				tc.from(&from)
			}
			profile, refused := r.Worker(tc.ask, from)
			if refused == nil {
				t.Fatalf("accepted: %+v", profile)
			}
			if diff := cmp.Diff(tc.want, *refused); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoLimitOfChildren(t *testing.T) {
	r := rules(func(main, _ *definition.Agent) { main.Subagents.MaxChildren = 0 })
	from := requester(t, r)
	from.Children = 10_000
	if _, refused := r.Worker(goclaw.SpawnRequest{}, from); refused != nil {
		t.Errorf("refused: %+v", *refused)
	}
}

func TestPolicy(t *testing.T) {
	for _, tc := range []struct {
		policy definition.Policy
		want   bool // for exec
	}{
		{definition.Policy{}, true},
		{definition.Policy{Allow: []string{}}, false},
		{definition.Policy{Allow: []string{"read"}}, false},
		{definition.Policy{Allow: []string{"read", "exec"}}, true},
		{definition.Policy{Allow: []string{"*"}}, true},
		{definition.Policy{Deny: []string{"read"}}, true},
		{definition.Policy{Deny: []string{"exec"}, Allow: []string{"exec", "*"}}, false},
		{definition.Policy{Deny: []string{"*"}, Allow: []string{"exec"}}, false},
	} {
		if got := tc.policy.Allows("exec"); got != tc.want {
			t.Errorf("%+v allows exec: %v, want %v", tc.policy, got, tc.want)
		}
	}
}

// A tool that workers have only by name: the definition, or the configuration,
// must say it; a pattern that allows everything doesn't, and what is denied, or
// what the requester itself lacks, stays away.
func TestNamedTools(t *testing.T) {
	def := func(tools string) definition.Definition {
		d := definition.Parse("x.md", []byte("---\nname: x\ndescription: x\n"+tools+"---\nbody"), definition.Options{})
		d.Trusted = true
		return d
	}
	for name, tt := range map[string]struct {
		tools       string
		allow, deny []string
		without     bool // the requester has none
		want        []string
	}{
		"named":                    {"tools: [memory_search, read]\n", nil, nil, false, []string{"memory_search", "read"}},
		"no list":                  {"", nil, nil, false, []string{"exec", "read", "write"}},
		"everything":               {"tools: '*'\n", []string{"*"}, nil, false, []string{"exec", "read", "write"}},
		"by the configuration":     {"", []string{"read", "memory_search"}, nil, false, []string{"memory_search", "read"}},
		"by both, narrowed":        {"tools: [read]\n", []string{"read", "memory_search"}, nil, false, []string{"read"}},
		"named and denied":         {"tools: [memory_search, read]\n", nil, []string{"memory_search"}, false, []string{"read"}},
		"the requester lacks them": {"tools: [memory_search, read]\n", nil, nil, true, []string{"read"}},
	} {
		r := rules(func(main, _ *definition.Agent) {
			main.Subagents.Tools = definition.Policy{Allow: tt.allow, Deny: tt.deny}
		})
		if !tt.without {
			r.Tools = append(slices.Clone(r.Tools), "memory_search")
		}
		r.NamedTools = []string{"memory_search"}
		r.Definitions = func(string) definition.Catalog {
			return definition.NewCatalog([]definition.Definition{def(tt.tools)}, func(definition.Definition) int { return 0 })
		}
		w, refused := r.Worker(goclaw.SpawnRequest{Agent: "x"}, requester(t, r))
		if refused != nil {
			t.Fatalf("%s: %+v", name, *refused)
		}
		if !slices.Equal(w.Profile.Tools, tt.want) {
			t.Errorf("%s: %q, want %q", name, w.Profile.Tools, tt.want)
		}
	}
	// A worker without a definition has them by the configuration alone.
	r := rules(func(main, _ *definition.Agent) { main.Subagents.Tools.Allow = []string{"read", "memory_search"} })
	r.Tools, r.NamedTools = append(slices.Clone(r.Tools), "memory_search"), []string{"memory_search"}
	if w, refused := r.Worker(goclaw.SpawnRequest{}, requester(t, r)); refused != nil || !slices.Equal(w.Profile.Tools, []string{"memory_search", "read"}) {
		t.Errorf("%+v %+v", w.Profile.Tools, refused)
	}
}

// Whatever the policies, a worker has no tool that its requester lacks, that is
// not for workers, or that a policy on the way denies; and so have its workers.
func TestToolsOnlyNarrow(t *testing.T) {
	policy := rapid.Custom(func(t *rapid.T) definition.Policy {
		names := rapid.SliceOfDistinct(rapid.SampledFrom(append([]string{"*"}, allTools...)), rapid.ID)
		p := definition.Policy{Deny: names.Draw(t, "deny")}
		if rapid.Bool().Draw(t, "allows") {
			p.Allow = names.Draw(t, "allow")
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		r := rules(func(main, helper *definition.Agent) {
			main.Subagents.MaxSpawnDepth = 2
			helper.Subagents.AllowAgents = []string{"main"}
			for _, a := range []*definition.Agent{main, helper} {
				a.Tools, a.Subagents.Tools = []definition.Policy{policy.Draw(t, "global"), policy.Draw(t, "agent")}, policy.Draw(t, "subagents")
			}
		})
		top, err := r.Main("main", "", "")
		if err != nil {
			t.Fatal(err)
		}
		from := definition.Requester{Profile: top}
		for depth := range 2 {
			target := rapid.SampledFrom([]string{"main", "helper"}).Draw(t, "target")
			from.Depth = depth
			w, refused := r.Worker(goclaw.SpawnRequest{AgentID: target}, from)
			p := w.Profile
			if refused != nil {
				t.Fatalf("refused: %+v", *refused)
			}
			a := r.Agents[target]
			for _, tool := range p.Tools {
				spawns := slices.Contains(spawnTools, tool)
				switch {
				case !slices.Contains(from.Profile.Tools, tool):
					t.Fatalf("depth %d: %s is more than the requester has", depth+1, tool)
				case !spawns && !slices.Contains(workerTools, tool), spawns && depth == 1:
					t.Fatalf("depth %d: %s is not for such a worker", depth+1, tool)
				case !a.Tools[0].Allows(tool), !a.Tools[1].Allows(tool), !a.Subagents.Tools.Allows(tool):
					t.Fatalf("depth %d: %s is denied", depth+1, tool)
				}
			}
			if !slices.IsSorted(p.Tools) || p.PromptMode != goclaw.PromptMinimal || !p.Strict {
				t.Fatalf("no worker's profile: %+v", p)
			}
			from.Profile = p
		}
	})
}

// A definition's worker: what the file says goes before the configuration, the
// spawn's arguments before the file; what may not be spawned says why.
func TestWorkerByDefinition(t *testing.T) {
	parse := func(path, text string, trusted bool) definition.Definition {
		d := definition.Parse(path, []byte(text), definition.Options{})
		d.Trusted = trusted
		return d
	}
	all := []definition.Definition{
		parse("full.md", "---\nname: full\ndescription: x\ntools: [read, exec, sessions_spawn]\ndisallowedTools: [exec]\nmodel: nobody-knows\nthinking: high\nmaxTurns: 7\ntimeoutSeconds: 30\nskills: [tides]\ngoclaw:\n  promptMode: none\n  inherit: []\n  output: {format: json}\n  limits: {contextTokens: 500, maxHandoffs: 1, onLimit: fail, resultTokens: 9}\n---\nbody", true),
		parse("strange.md", "---\nname: strange\ndescription: x\n---\nbody", false),
		parse("inner.md", "---\nname: inner\ndescription: x\nvisibility: internal\n---\nbody", true),
		parse("lead.md", "---\nname: lead\ndescription: x\nmode: primary\n---\nbody", true),
		parse("bad.md", "---\nname: bad\ndescription: x\ntools: null\n---\nbody", true),
	}
	r := rules(nil)
	r.Definitions = func(string) definition.Catalog {
		return definition.NewCatalog(slices.Clone(all), func(definition.Definition) int { return 0 })
	}
	resolve := r.ResolveModel
	r.ResolveModel = func(m string) (string, error) {
		if m == "nobody-knows" {
			return "", errors.New("unknown")
		}
		return resolve(m)
	}
	from := requester(t, r)
	w, refused := r.Worker(goclaw.SpawnRequest{Agent: "FULL"}, from)
	if refused != nil {
		t.Fatal(*refused)
	}
	p := w.Profile
	if !slices.Equal(p.Tools, []string{"read"}) || p.Thinking != "high" || p.MaxCalls != 7 || p.TimeoutMs != 30_000 || p.PromptMode != goclaw.PromptNone ||
		len(p.Inherit) != 0 || !slices.Equal(p.Skills, []string{"tides"}) || p.Handoff != (goclaw.Handoff{Tokens: 500, Max: 1, Fail: true}) ||
		p.ResultTokens != 9 || p.Answer != "json" || p.Definition != "full" || p.DefinitionSHA != all[0].SHA256 || !p.Strict {
		t.Errorf("%+v", p)
	}
	if p.Model != "p/main" || !strings.Contains(w.Note, "nobody-knows") {
		t.Errorf("model %s, note %q", p.Model, w.Note)
	}
	second := 0
	w, refused = r.Worker(goclaw.SpawnRequest{Agent: "full", Thinking: "low", TimeoutSeconds: &second}, from)
	if refused != nil || w.Profile.Thinking != "low" || w.Profile.TimeoutMs != 0 {
		t.Errorf("%+v, %v", w.Profile, refused)
	}
	for name, why := range map[string]string{
		"strange": "goclaw trust /ws", "inner": "is internal", "lead": "mode: primary", "bad": "bad.md:4:", "gone": "no definition \"gone\" exists (there are: full)",
	} {
		if _, refused := r.Worker(goclaw.SpawnRequest{Agent: name}, from); refused == nil || !strings.Contains(refused.Error, why) {
			t.Errorf("%s: %+v; want %q", name, refused, why)
		}
	}
}
