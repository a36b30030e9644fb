package goclaw

import "encoding/json"

// Outcome is what `goclaw run` and the HTTP API report of a message: the turns
// that it led to, the workers that these started, and what it cost.
type Outcome struct {
	Session SessionKey `json:"session"`
	Reply   string     `json:"reply"`   // of the last turn that was not silent
	Replies []string   `json:"replies"` // of all turns that were not silent, in order
	Turns   int        `json:"turns"`   // turns of the session, the user's included
	Runs    []RunInfo  `json:"runs"`    // the workers that these turns started
	Usage   Usage      `json:"usage"`   // of the turns and their workers together
	Status  RunState   `json:"status"`  // of the last turn
	Error   string     `json:"error,omitempty"`

	// Unfinished counts workers that had not ended or not been announced when
	// the outcome was taken.
	Unfinished int `json:"unfinished"`

	// Cut says that the last turn's reply ends where the model reached its limit
	// of output.
	Cut bool `json:"cut,omitempty"`

	// Calls are what the caller is to run itself before the turn goes on; its
	// Status is waiting then.
	Calls []ToolCall `json:"calls,omitempty"`
}

// RunInfo is the summary of a run that scripts may rely on (spec section 12).
type RunInfo struct {
	RunID      string     `json:"runId"`
	SessionKey SessionKey `json:"sessionKey"`
	Requester  SessionKey `json:"requesterKey"`
	Label      string     `json:"label"`
	Definition string     `json:"definition"`
	Trigger    Trigger    `json:"trigger"`
	Model      string     `json:"model"`
	Depth      int        `json:"depth"`
	Task       string     `json:"task"`
	Status     RunState   `json:"status"`
	Result     string     `json:"result"`
	Error      string     `json:"error"`
	CreatedAt  Millis     `json:"createdAt"`
	StartedAt  Millis     `json:"startedAt"`
	FinishedAt Millis     `json:"finishedAt"`
	DurationMs int64      `json:"durationMs"`
	Usage      Usage      `json:"usage"`
	Parent     string     `json:"parent,omitempty"`
	Root       string     `json:"root,omitempty"`

	// Position is the place in the queue, from 1; 0 for a run that is not in it.
	// Output is the result of a worker whose answer has the form of JSON.
	Output json.RawMessage `json:"output,omitempty"`

	Position int        `json:"position,omitempty"`
	WaitsFor WaitReason `json:"waitsFor,omitempty"`
	Recovery *Recovery  `json:"recovery,omitempty"`
}

// Info summarises r.
func (r Run) Info() RunInfo {
	var output json.RawMessage
	if r.State == StateCompleted && r.Profile.Answer == "json" && json.Valid([]byte(r.Result)) {
		output = json.RawMessage(r.Result)
	}
	return RunInfo{
		Output: output,
		RunID:  r.ID, SessionKey: r.Session, Requester: r.Requester,
		Label: r.Name(), Definition: r.Profile.Definition, Trigger: r.Trigger,
		Model: r.Profile.Model, Depth: r.Depth, Task: r.Task,
		Status: r.State, Result: r.Result, Error: r.Error,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		DurationMs: r.DurationMs(), Usage: r.Usage,
		Parent: r.Parent, Root: r.Root, WaitsFor: r.WaitsFor, Recovery: r.Recovery,
	}
}

// Status describes a gateway.
type Status struct {
	Version   string   `json:"version"`
	Home      string   `json:"home"`
	Workspace string   `json:"workspace"`
	Model     string   `json:"model"`
	Demo      bool     `json:"demo"` // the offline demonstration model answers
	Providers []string `json:"providers"`
	Sandbox   string   `json:"sandbox"` // what confines exec, or why it is refused
	StartedAt Millis   `json:"startedAt"`
	Active    int      `json:"active"`  // runs under way
	Queued    int      `json:"queued"`  // runs waiting
	Resumed   int      `json:"resumed"` // runs taken over at start
	Engine    bool     `json:"engine"`  // false: this process only reads
	Warnings  []string `json:"warnings,omitempty"`

	Store  string `json:"store"`  // sqlite or postgres
	Paused Pause  `json:"paused"` // no model is called while it is set
	Parked int    `json:"parked"` // deliveries that wait for a person

	// Recovered are the unended runs that were taken over since this process
	// started.
	Recovered []RunInfo `json:"recovered,omitempty"`
}

// LoginLink signs a browser in to the web page, once.
type LoginLink struct {
	URL       string `json:"url"`
	ExpiresAt Millis `json:"expiresAt"`
}

// ContextQuery says whose prompt to explain: a session's, an agent's main
// session's, or the prompt that a run was sent.
type ContextQuery struct {
	Session SessionKey
	Agent   string
	Run     string

	// Definition explains the prompt of a worker that Session would spawn by
	// it, with its slices for Input.
	Definition string
	Input      string // JSON

	// Job explains the prompt of the next firing of an isolated job.
	Job *CronJob
}

// PromptReport is a prompt as `goclaw context` and the HTTP API show it (spec
// section 12). All counts are tokens, four bytes each.
type PromptReport struct {
	Sections  []Section  `json:"sections"`
	Tools     []ToolSpec `json:"tools"`
	Omitted   []Omission `json:"omitted"`
	Warnings  []string   `json:"warnings"`
	Lifted    []string   `json:"lifted"` // private entries that a person named for this session
	Model     string     `json:"model"`
	Thinking  string     `json:"thinking,omitempty"`
	MaxTokens int        `json:"maxTokens,omitempty"`

	ToolTokens   int `json:"toolTokens"`
	SystemTokens int `json:"systemTokens"`
	PrefixTokens int `json:"prefixTokens"` // tools and the stable sections that come first: what stays cached
	Total        int `json:"total"`        // tools and all sections
}

// Report measures p. Its lists are never nil.
func (p Prompt) Report() PromptReport {
	r := PromptReport{
		Sections: append([]Section{}, p.Sections...), Tools: append([]ToolSpec{}, p.Tools...),
		Omitted: append([]Omission{}, p.Omitted...), Warnings: append([]string{}, p.Warnings...), Lifted: append([]string{}, p.Lifted...),
		Model: p.Model, Thinking: p.Thinking, MaxTokens: p.MaxTokens,
	}
	for _, t := range p.Tools {
		r.ToolTokens += t.Tokens()
	}
	r.PrefixTokens = r.ToolTokens
	stable := true
	for _, s := range p.Sections {
		r.SystemTokens += s.Tokens
		if stable = stable && s.Stable; stable {
			r.PrefixTokens += s.Tokens
		}
	}
	r.Total = r.ToolTokens + r.SystemTokens
	return r
}

// Sent is a request to a model, rebuilt from the record byte for byte.
type Sent struct {
	Run     Run    // the zero value: the session has had none, this is what its next turn begins with
	Step    int    // which model call of the run, from 1
	Steps   int    // model calls on record
	Model   string // as Run.Profile.Model: provider/model
	Body    []byte // JSON in the provider's own form
	Prompt  Prompt // what its tools and system prompt were rendered from
	Session SessionKey
}

// SentDiff compares two requests in the order in which providers cache them:
// tools, system prompt, messages. Cache breakpoints don't count: they move.
type SentDiff struct {
	Equal  bool   `json:"equal"`
	Bytes  int    `json:"bytes"`  // of the equal prefix: where the first byte differs
	Tokens int    `json:"tokens"` // of the equal prefix, four bytes each
	Before string `json:"before"` // its end

	A SentSide `json:"a"`
	B SentSide `json:"b"`

	// Fields are other fields of the requests that differ, such as max_tokens.
	Fields []string `json:"fields"`
}

// SentSide is one of two requests that are compared.
type SentSide struct {
	Session SessionKey `json:"sessionKey"`
	RunID   string     `json:"runId,omitempty"`
	Step    int        `json:"step,omitempty"`
	Model   string     `json:"model"`
	Bytes   int        `json:"bytes"` // of tools, system prompt and messages

	// Part holds the first byte that differs: a tool, a section or a message;
	// "": this side has ended there, or the requests are equal. After is its
	// text from that byte on.
	Part  string `json:"part"`
	After string `json:"after"`
}

// SessionChange changes a session's head; nil fields stay as they are.
type SessionChange struct {
	Model    *string
	Thinking *string
	Reset    bool // /new: what came before is kept, but not shown to the model
}
