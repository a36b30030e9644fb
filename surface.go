package goclaw

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
	Position int        `json:"position,omitempty"`
	WaitsFor WaitReason `json:"waitsFor,omitempty"`
	Recovery *Recovery  `json:"recovery,omitempty"`
}

// Info summarises r.
func (r Run) Info() RunInfo {
	return RunInfo{
		RunID: r.ID, SessionKey: r.Session, Requester: r.Requester,
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

// ContextQuery says whose prompt to explain: a session's, an agent's main
// session's, or the prompt that a run was sent.
type ContextQuery struct {
	Session SessionKey
	Agent   string
	Run     string
}

// SessionChange changes a session's head; nil fields stay as they are.
type SessionChange struct {
	Model    *string
	Thinking *string
	Reset    bool // /new: what came before is kept, but not shown to the model
}
