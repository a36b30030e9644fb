package goclaw

import "time"

// Millis is a moment in Unix milliseconds; 0 means "not set".
type Millis int64

// At converts a time to Millis.
func At(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time converts m to a time.Time in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Add returns the moment d after m.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// RunState is the lifecycle state of a Run (spec section 6).
type RunState string

// The states of a run. Interrupted is not an end: such a run resumes.
const (
	StateQueued      RunState = "queued"
	StateRunning     RunState = "running"
	StateInterrupted RunState = "interrupted"
	StateCompleted   RunState = "completed"
	StateFailed      RunState = "failed"
	StateTimeout     RunState = "timeout"
	StateCancelled   RunState = "cancelled"
)

// Ended reports whether s is final.
func (s RunState) Ended() bool {
	return s == StateCompleted || s == StateFailed || s == StateTimeout || s == StateCancelled
}

// Trigger says what started a run.
type Trigger string

// The triggers of a run.
const (
	TriggerUser         Trigger = "user"
	TriggerAnnouncement Trigger = "announcement"
	TriggerSpawn        Trigger = "spawn"
	TriggerCron         Trigger = "cron"
	TriggerHeartbeat    Trigger = "heartbeat"
)

// Cleanup says what happens to a worker's transcript after its announcement
// was delivered.
type Cleanup string

// The cleanup policies.
const (
	CleanupKeep   Cleanup = "keep"
	CleanupDelete Cleanup = "delete"
)

// AnnounceMode says how a run's result reaches its requester (spec section 7).
type AnnounceMode string

// The announce modes.
const (
	AnnounceTogether AnnounceMode = "together"
	AnnounceEach     AnnounceMode = "each"
	AnnounceNone     AnnounceMode = "none"
)

// PromptMode chooses the sections of a system prompt (spec section 3.2).
type PromptMode string

// The prompt modes.
const (
	PromptFull    PromptMode = "full"
	PromptMinimal PromptMode = "minimal"
	PromptNone    PromptMode = "none"
)

// Profile is everything a run needs to know before it starts, resolved from
// agent, definition, config and spawn arguments. It is stored with the run and
// never resolved again.
type Profile struct {
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"` // absolute path
	Model     string `json:"model"`     // provider/model
	Thinking  string `json:"thinking"`  // off, low, medium or high

	// Pinned says that the model was named with the message, and not by
	// session or agent: what the turn leads to is answered by it too.
	Pinned bool `json:"pinned,omitempty"`

	Tools      []string   `json:"tools"` // sorted names
	PromptMode PromptMode `json:"promptMode"`

	// Inherit lists the workspace files that the session may see.
	Inherit []string `json:"inherit"`

	// Strict puts the private workspace files out of reach of all tools.
	Strict bool `json:"strict"`

	// Timeout bounds the run from its first claim; 0 means none. In JSON it
	// is milliseconds.
	TimeoutMs int64 `json:"timeoutMs"`

	MaxSpawnDepth int `json:"maxSpawnDepth"`
	MaxChildren   int `json:"maxChildren"`

	Definition    string `json:"definition,omitempty"`
	DefinitionSHA string `json:"definitionSha,omitempty"`
}

// Run is the durable record of executing one turn.
type Run struct {
	ID      string     `json:"runId"`
	Ordinal int64      `json:"ordinal"` // order of acceptance, unique per store
	Session SessionKey `json:"sessionKey"`
	Trigger Trigger    `json:"trigger"`

	// Requester is the session that asked for a spawned run; Parent is the
	// run that did. Both are zero for a user's turn.
	Requester SessionKey `json:"requesterKey"`
	Parent    string     `json:"parent,omitempty"`
	Depth     int        `json:"depth"`

	Label    string       `json:"label,omitempty"`
	Task     string       `json:"task"`              // the input text
	Context  string       `json:"context,omitempty"` // what the requester added to the task
	Profile  Profile      `json:"profile"`
	Cleanup  Cleanup      `json:"cleanup,omitempty"`
	Announce AnnounceMode `json:"announce,omitempty"`

	State  RunState `json:"status"`
	Result string   `json:"result,omitempty"`
	Error  string   `json:"error,omitempty"`
	Usage  Usage    `json:"usage"`

	CreatedAt  Millis `json:"createdAt"`
	StartedAt  Millis `json:"startedAt,omitempty"`
	FinishedAt Millis `json:"finishedAt,omitempty"`

	// Scheduling columns: not part of the fold.
	Epoch      int64  `json:"epoch"`
	Owner      string `json:"owner,omitempty"` // process id that holds the run
	Deadline   Millis `json:"deadline,omitempty"`
	CancelAt   Millis `json:"cancelAt,omitempty"`
	CancelWhy  string `json:"cancelWhy,omitempty"`
	Idempotent string `json:"-"` // idempotency key of the acceptance
}

// DurationMs is the time from first claim to end, 0 while not ended.
func (r Run) DurationMs() int64 {
	if r.StartedAt == 0 || r.FinishedAt == 0 {
		return 0
	}
	return int64(r.FinishedAt - r.StartedAt)
}

// Name is the label by which people know the run: the given one, else the
// definition's name, else the first eight characters of the id.
func (r Run) Name() string {
	switch {
	case r.Label != "":
		return r.Label
	case r.Profile.Definition != "":
		return r.Profile.Definition
	case len(r.ID) > 8:
		return r.ID[:8]
	}
	return r.ID
}

// Fence is a claim on a run. A write that carries it succeeds only while the
// run's epoch and owner still match.
type Fence struct {
	Run   string
	Epoch int64
	Owner string
}

// InboxItem is a finished run's result on its way to its requester's session.
type InboxItem struct {
	ID        string       `json:"id"`
	Session   SessionKey   `json:"session"` // who shall get it
	Source    string       `json:"source"`  // the run that ended
	Group     string       `json:"group"`   // the run that spawned it
	Mode      AnnounceMode `json:"mode"`
	Text      string       `json:"text"`
	CreatedAt Millis       `json:"createdAt"`

	// GroupOpen is computed on reading: the spawning run has not ended, or
	// some run that it spawned with AnnounceTogether has not.
	GroupOpen bool `json:"groupOpen"`

	ConsumedBy string `json:"consumedBy,omitempty"` // run that took it
	ConsumedAt Millis `json:"consumedAt,omitempty"`
}

// Outbound is a reply on its way to a channel.
type Outbound struct {
	ID        string     `json:"id"`
	Session   SessionKey `json:"session"`
	Run       string     `json:"run"`
	Text      string     `json:"text"`
	State     string     `json:"state"` // pending, sending, sent, parked
	Attempts  int        `json:"attempts"`
	NextAt    Millis     `json:"nextAt"`
	Error     string     `json:"error,omitempty"`
	CreatedAt Millis     `json:"createdAt"`
}

// Artifact is a file or blob that a run leaves for others; its content is
// addressed by SHA256.
type Artifact struct {
	Run       string `json:"run"`
	Name      string `json:"name"`
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`
	MediaType string `json:"mediaType"`
	CreatedAt Millis `json:"createdAt"`
}
