package config

// Config is the whole configuration, as the file has it. Absent keys hold
// their defaults, except in what Agent merges: there absence is kept.
type Config struct {
	Schema  string  `json:"$schema,omitempty" doc:"The JSON Schema of this file, for editors."`
	Agents  Agents  `json:"agents" doc:"The agents and what they have in common."`
	Models  Models  `json:"models" doc:"Where models come from and what they are called."`
	Tools   Tools   `json:"tools" doc:"What tools may do, for all agents."`
	Gateway Gateway `json:"gateway" doc:"The gateway's HTTP server."`
	Context Context `json:"context" doc:"What of the workspace is put into prompts."`
	Budget  Budget  `json:"budget" doc:"What may be spent, for all agents."`

	Telemetry Telemetry `json:"telemetry" doc:"Traces of runs, for an OpenTelemetry collector."`

	Database Database `json:"database" doc:"Where sessions and runs are kept."`

	Memory Memory `json:"memory" doc:"How the agents' memory is searched."`

	Skills      Skills      `json:"skills" doc:"Where skills come from, and how many of them a prompt lists."`
	Definitions Definitions `json:"definitions" doc:"Workers that are defined by a markdown file."`

	Cron Cron `json:"cron" doc:"Jobs that run by the clock."`

	_ unbuilt `key:"channels"`

	source source
}

// unbuilt marks a key of the specification whose feature this version lacks.
type unbuilt struct{}

// Agents are the configured agents. List and Entries are two spellings of the
// same; an id may appear once in both together.
type Agents struct {
	Defaults AgentDefaults `json:"defaults" doc:"What holds for every agent unless it says otherwise."`
	List     []AgentEntry  `json:"list,omitempty" doc:"The agents besides main, or main's own settings."`
	Entries  []AgentEntry  `json:"entries,omitempty" keyed:"ID" doc:"The agents as an object keyed by id."`
}

// AgentDefaults hold for every agent that doesn't say otherwise.
type AgentDefaults struct {
	Workspace string    `json:"workspace,omitempty" format:"path" doc:"The agent's folder; relative to this file. Default: workspace in GOCLAW_HOME."`
	Model     string    `json:"model,omitempty" format:"model" doc:"provider/model, or an alias."`
	Thinking  string    `json:"thinking,omitempty" enum:"off,low,medium,high" doc:"How long the model may think. Default: off."`
	Skills    []string  `json:"skills" format:"line" doc:"The skills that agents know of; an empty list: none. Default: all."`
	Subagents Subagents `json:"subagents" doc:"Workers that the agent starts."`

	Compaction   Compaction `json:"compaction" doc:"When a long conversation is summarised."`
	Heartbeat    Heartbeat  `json:"heartbeat" doc:"A turn that each agent has by itself, every so often."`
	UserTimezone string     `json:"userTimezone,omitempty" format:"zone" doc:"The person's time zone, such as Europe/Berlin. Default: the machine's."`
}

// AgentEntry is one agent of the list.
type AgentEntry struct {
	ID        string     `json:"id" required:"true" format:"id" doc:"The agent's id: a-z, 0-9, - and _."`
	Name      string     `json:"name,omitempty" doc:"The name that people see. Default: the id."`
	Workspace string     `json:"workspace,omitempty" format:"path" doc:"The agent's folder; relative to this file."`
	Model     string     `json:"model,omitempty" format:"model" doc:"provider/model, or an alias."`
	Thinking  string     `json:"thinking,omitempty" enum:"off,low,medium,high" doc:"How long the model may think."`
	Tools     ToolPolicy `json:"tools" doc:"Which tools the agent may use, within the global policy."`
	Budget    Budget     `json:"budget" doc:"What the agent may spend; a field given here goes before the one for all agents."`
	Skills    []string   `json:"skills" format:"line" doc:"The skills that the agent knows of; an empty list: none."`
	Subagents Subagents  `json:"subagents" doc:"Workers that the agent starts."`

	Compaction Compaction `json:"compaction" doc:"When a long conversation is summarised."`

	Heartbeat Heartbeat `json:"heartbeat" doc:"A turn that the agent has by itself, every so often; a field given here goes before the one for all agents."`
}

// Compaction says when a main session's transcript is shortened for the model.
// Nil means that the key is absent.
type Compaction struct {
	ContextPercent   *int  `json:"contextPercent,omitempty" range:"0..95" doc:"The share of the model's window at which a conversation is compacted; 0: only contextTokens counts. Default: 60."`
	ContextTokens    *int  `json:"contextTokens,omitempty" range:"0..100000000" doc:"The tokens at which it is compacted, if that is earlier; 0: only contextPercent counts. Default: 120000."`
	KeepRecentTokens *int  `json:"keepRecentTokens,omitempty" range:"0..10000000" doc:"How much of the newest turns stays word for word. Default: 20000, at most a third of what a conversation is compacted at."`
	MemoryFlush      *bool `json:"memoryFlush,omitempty" doc:"Whether lasting facts are written to the memory folder's note of the day first. Default: true."`
}

// Skills are the settings of skills for all agents.
type Skills struct {
	ExtraDirs []string    `json:"extraDirs,omitempty" format:"path" doc:"Further folders with skills, between the home's and the workspace's in precedence."`
	Disabled  []string    `json:"disabled,omitempty" format:"line" doc:"Skills that no agent knows of."`
	Limits    SkillLimits `json:"limits" doc:"How much of a prompt the list of skills takes."`
}

// SkillLimits bound the list of skills.
type SkillLimits struct {
	MaxSkillsInPrompt    int `json:"maxSkillsInPrompt,omitempty" range:"1..10000" doc:"Skills that are listed. Default: 150."`
	MaxSkillsPromptChars int `json:"maxSkillsPromptChars,omitempty" range:"200..1000000" doc:"The most that the list takes, in characters: descriptions are shortened first, then skills left out. Default: 8000."`
}

// Definitions are the settings of definition files.
type Definitions struct {
	Compat          *bool    `json:"compat,omitempty" doc:"Whether a workspace's .claude/agents and .opencode/agent are read too. Default: true."`
	UserFacingTools []string `json:"userFacingTools" format:"tool" doc:"The tools that definitions with visibility user-facing may have. Default: those that only read, search and fetch, artifacts and attach_file."`
}

// Subagents are the settings of an agent's workers. Nil means that the key is
// absent.
type Subagents struct {
	MaxSpawnDepth       *int `json:"maxSpawnDepth,omitempty" range:"0..10" doc:"How deep workers may start workers; 1: only the agent itself may. Default: 1."`
	MaxChildrenPerAgent *int `json:"maxChildrenPerAgent,omitempty" range:"1..10000" doc:"Workers of one session at a time. Default: 5."`
	MaxRunsPerTree      *int `json:"maxRunsPerTree,omitempty" range:"0..1000000" doc:"Workers that one message may ever lead to, whoever starts them; 0: any number. Default: 100, or twice maxChildrenPerAgent if that is more."`
	MaxConcurrent       *int `json:"maxConcurrent,omitempty" range:"1..20000" doc:"Workers that run at a time; the others wait. Under agents.defaults: of all agents together; default: 8. Under agents.list: of that agent; default: no limit of its own."`

	MaxConcurrentPerSession *int `json:"maxConcurrentPerSession,omitempty" range:"1..20000" doc:"Workers that run at a time for one chat, its workers' workers included. Default: one less than agents.defaults.subagents.maxConcurrent if that is 4 or more, so that no chat takes the last slot from another; else the same."`

	RunTimeoutSeconds      *int       `json:"runTimeoutSeconds,omitempty" range:"0..2592000" doc:"When a worker is stopped; 0: never. Default: 0."`
	ArchiveAfterMinutes    *int       `json:"archiveAfterMinutes,omitempty" range:"0..5256000" doc:"When a finished worker's session is archived. Default: 60."`
	AnnounceWindowMs       *int       `json:"announceWindowMs,omitempty" range:"0..60000" doc:"Results that end within it are announced in one turn. Default: 250."`
	AnnounceMaxWaitSeconds *int       `json:"announceMaxWaitSeconds,omitempty" range:"0..86400" doc:"How long the first result waits for its siblings'. Default: 60."`
	AnnounceAttempts       *int       `json:"announceAttempts,omitempty" range:"1..100" doc:"Failed announcement turns after which a result is parked until a person decides. Default: 5."`
	ResultTokens           *int       `json:"resultTokens,omitempty" range:"0..1000000" doc:"The most of a worker's result that is announced, a token being four bytes; the whole of a longer one is kept as an artifact. 0: all of it. Default: 4000."`
	RestartPolicy          string     `json:"restartPolicy,omitempty" enum:"resume,fail,ask" doc:"What becomes of a worker whose process died: it goes on, ends as failed, or waits until a person resumes or cancels it. Default: resume."`
	AllowAgents            []string   `json:"allowAgents" format:"agent" doc:"Other agents as which workers may be started; * for any. Default: none."`
	Model                  string     `json:"model,omitempty" format:"model" doc:"The workers' model. Default: the requester's."`
	Thinking               string     `json:"thinking,omitempty" enum:"off,low,medium,high" doc:"How long the workers' model may think. Default: the requester's."`
	Tools                  ToolPolicy `json:"tools" doc:"Which tools workers may use, within the agent's policy."`
	Inherit                []string   `json:"inherit" format:"reach" doc:"The workspace files that workers see, relative to the workspace. A private one that is named here is shown and in reach; memory and .git come in reach. Default: AGENTS.md and TOOLS.md."`
	Budget                 Limits     `json:"budget" doc:"What one worker may spend. Default: the agent's budget.run."`
}

// Budget are the limits of a run, of the tree of runs that one message leads
// to, and of an agent's day.
type Budget struct {
	Run  Limits `json:"run" doc:"What one turn may spend, and one worker without limits of its own."`
	Tree Limits `json:"tree" doc:"What all runs may spend together that one message leads to: its turn, the workers, their announcements."`
	Day  Limits `json:"day" doc:"What an agent may spend in a day, in the time zone of the machine."`
}

// Limits bound what may be spent. Nil means that the key is absent, zero that
// there is no limit.
type Limits struct {
	Tokens  *int     `json:"tokens,omitempty" range:"0..1000000000000" doc:"Tokens of input and output together; 0: no limit. Default: none."`
	USD     *float64 `json:"usd,omitempty" range:"0..1000000" doc:"Money, at the prices of models.prices and the built-in list; 0: no limit. Default: none."`
	Steps   *int     `json:"steps,omitempty" range:"0..1000000" doc:"Model calls; 0: no limit. Default: none."`
	Seconds *int     `json:"seconds,omitempty" range:"0..31536000" doc:"Time: of a run since it started, of a tree since its message came, of a day in model calls; 0: no limit. Default: none."`
}

// ToolPolicy says which tools may be used. Deny wins. A nil Allow allows all,
// an empty one none.
type ToolPolicy struct {
	Allow []string `json:"allow" format:"tool" doc:"The tools that may be used; * for all. Default: all."`
	Deny  []string `json:"deny" format:"tool" doc:"The tools that may not be used; * for all. Default: none."`
}

// Models say where models come from.
type Models struct {
	Providers []Provider        `json:"providers,omitempty" keyed:"Name" doc:"Model APIs, keyed by the name that stands before the / of their models."`
	Aliases   map[string]string `json:"aliases,omitempty" keys:"alias" format:"provider/model" doc:"Short names for provider/model."`
	Windows   map[string]int    `json:"windows,omitempty" keys:"price" range:"1000..100000000" doc:"How many tokens models take at most, keyed as prices are. They go before the built-in list."`
	Prices    map[string]Price  `json:"prices,omitempty" keys:"price" doc:"What models cost, in USD per million tokens, keyed by provider/model, or provider/prefix* for all that begin so. They go before the built-in list prices."`
}

// Price is what a model costs, in USD per million tokens. Nil means that the
// key is absent.
type Price struct {
	Input      float64  `json:"input" required:"true" range:"0..1000000" doc:"USD per million tokens of input."`
	Output     float64  `json:"output" required:"true" range:"0..1000000" doc:"USD per million tokens of output."`
	CacheRead  *float64 `json:"cacheRead,omitempty" range:"0..1000000" doc:"USD per million tokens of input read from the provider's cache. Default: input."`
	CacheWrite *float64 `json:"cacheWrite,omitempty" range:"0..1000000" doc:"USD per million tokens of input written to the provider's cache. Default: input."`
}

// Provider is a configured model API.
type Provider struct {
	Name      string            `json:"-" format:"id"`
	Kind      string            `json:"kind,omitempty" enum:"anthropic,openai" doc:"The API that it speaks. Default: what the name says."`
	BaseURL   string            `json:"baseURL,omitempty" format:"url" doc:"Where it is. Default: the vendor's own address."`
	APIKey    Sealed            `json:"apiKey,omitzero" doc:"The key: {\"secret\": NAME} for one that goclaw secrets keeps, or the key itself in clear text."`
	APIKeyEnv string            `json:"apiKeyEnv,omitempty" format:"env" doc:"The environment variable that holds the key."`
	Headers   map[string]Sealed `json:"headers,omitempty" keys:"header" doc:"Headers to send with each request."`
	Models    []string          `json:"models,omitempty" doc:"The names of its models; the first is its default."`

	IdleTimeoutSeconds int `json:"idleTimeoutSeconds,omitempty" range:"1..3600" doc:"How long its server may be silent, before or within a reply, until the call is made again. Default: 120."`
	RequestsPerMinute  int `json:"requestsPerMinute,omitempty" range:"1..1000000" doc:"Requests sent to it in a minute, by all processes on the same database together. Default: no limit."`
	TokensPerMinute    int `json:"tokensPerMinute,omitempty" range:"1..1000000000" doc:"Tokens used of it in a minute, input and output, by all processes on the same database together. Default: no limit."`
}

// Tools are the settings of tools for all agents.
type Tools struct {
	Allow []string `json:"allow" format:"tool" doc:"The tools that may be used; * for all. Default: all."`
	Deny  []string `json:"deny" format:"tool" doc:"The tools that may not be used; * for all. Default: none."`
	Exec  Exec     `json:"exec" doc:"The exec tool."`
	Web   Web      `json:"web" doc:"The tools web_search and web_fetch."`
}

// Policy is the policy that holds for all agents.
func (t Tools) Policy() ToolPolicy { return ToolPolicy{Allow: t.Allow, Deny: t.Deny} }

// Exec are the settings of the exec tool.
type Exec struct {
	TimeoutSeconds int      `json:"timeoutSeconds,omitempty" range:"1..86400" doc:"When a command is ended. Default: 120."`
	MaxOutputBytes int      `json:"maxOutputBytes,omitempty" range:"1024..16777216" doc:"How much of a command's output the model gets. Default: 32768."`
	Network        bool     `json:"network,omitempty" doc:"Whether commands may use the network. Default: false."`
	ReadOnly       []string `json:"readOnly,omitempty" format:"path" doc:"Further folders and files that commands may read."`
}

// Gateway are the settings of the HTTP server.
type Gateway struct {
	Addr  string `json:"addr,omitempty" format:"addr" doc:"HOST:PORT to listen on. Default: chosen by the gateway, on loopback."`
	Token Sealed `json:"token,omitzero" doc:"The token that clients must send, or {\"secret\": NAME}. Default: the one in GOCLAW_HOME/token."`

	Hosts             []string `json:"hosts,omitempty" format:"line" doc:"Names and addresses under which the gateway may be called besides its own address, such as that of a proxy that speaks TLS for it."`
	RequestsPerSecond int      `json:"requestsPerSecond,omitempty" range:"1..1000000" doc:"Requests that are answered in a second, of holders of the token and of browsers each; further ones get 429. Default: 2000."`
	MaxRequests       int      `json:"maxRequests,omitempty" range:"1..100000" doc:"Requests that may be under way at a time, streams included; further ones get 503. Default: 2000."`

	DrainSeconds int `json:"drainSeconds,omitempty" range:"0..600" doc:"How long a gateway that stops lets the steps under way finish. Default: 10."`
}

// Telemetry says where traces of runs are sent. Without OTLP, OpenTelemetry's
// own environment variables do.
type Telemetry struct {
	OTLP    string            `json:"otlp,omitempty" format:"url" doc:"Where traces are sent by OTLP over HTTP, such as http://localhost:4318/v1/traces. Default: what OTEL_EXPORTER_OTLP_ENDPOINT says, else nowhere."`
	Headers map[string]Sealed `json:"headers,omitempty" keys:"header" doc:"Headers to send with them."`
	Content bool              `json:"content,omitempty" doc:"Whether prompts, replies, tool arguments and results are sent too. Default: false."`
}

// Database says where the record is kept.
type Database struct {
	URL Sealed `json:"url,omitzero" format:"postgres" doc:"postgres://… of a PostgreSQL database, or {\"secret\": NAME}; GOCLAW_DATABASE_URL goes before it. Default: goclaw.db in GOCLAW_HOME."`
}

// Memory says how notes and past conversations are searched.
type Memory struct {
	Embedding string `json:"embedding,omitempty" format:"provider/model" doc:"The embedding model, of a provider of kind openai: with it, memory is searched by likeness of meaning too. Notes and conversations are sent to that provider. Default: none."`
}

// Context says how much of the workspace goes into prompts, in characters.
type Context struct {
	FileMaxChars  int      `json:"fileMaxChars,omitempty" range:"500..2000000" doc:"The most of one workspace file; the middle of a longer one is dropped. Default: 20000."`
	TotalMaxChars int      `json:"totalMaxChars,omitempty" range:"500..8000000" doc:"The most of all workspace files together. Default: 150000."`
	Files         []string `json:"files" format:"file" doc:"The workspace files that agents see, relative to the workspace: any of the eight, and others. Default: all eight."`
	DailyNotes    bool     `json:"dailyNotes,omitempty" doc:"Whether main sessions see the memory folder's notes of today and yesterday. Default: false."`
	Owner         []string `json:"owner,omitempty" format:"line" doc:"How the agent knows its person: names, numbers, handles."`
	Docs          string   `json:"docs,omitempty" format:"docs" doc:"Where the agent may look up how it works: a folder of the workspace, or an address."`

	Sections map[string]string `json:"sections,omitempty" keys:"section" format:"path" doc:"Files that replace built-in sections of the prompt, by the section's id; an empty file leaves the section out. goclaw context lists the ids."`
	Hook     ContextHook       `json:"hook" doc:"A command that may change the sections of each prompt."`
}

// ContextHook is a command that gets a prompt's sections and returns them
// changed (docs/context.md).
type ContextHook struct {
	Command        []string `json:"command,omitempty" format:"command" repeats:"true" doc:"The program and its arguments; a program with a slash is relative to this file. It gets the sections as JSON on standard input and writes them, changed, to standard output."`
	TimeoutSeconds int      `json:"timeoutSeconds,omitempty" range:"1..60" doc:"When it is ended, and the turn fails. Default: 5."`
}

// Default is the configuration of someone who has no file.
func Default() Config {
	return Config{
		Tools:   Tools{Exec: Exec{TimeoutSeconds: 120, MaxOutputBytes: 32 << 10}, Web: defaultWeb()},
		Gateway: Gateway{DrainSeconds: 10},
		Context: Context{FileMaxChars: 20_000, TotalMaxChars: 150_000, Files: workspaceFiles(), Hook: ContextHook{TimeoutSeconds: 5}},
		Cron:    Cron{Enabled: true, MaxConcurrentRuns: 4, RunLog: RunLog{KeepLines: 2000}},
		Skills:  Skills{Limits: SkillLimits{MaxSkillsInPrompt: 150, MaxSkillsPromptChars: 8000}},
	}
}

func workspaceFiles() []string {
	return []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md"}
}
