package goclaw

import (
	"encoding/json"
	"time"
)

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

// The states of a run. Interrupted is not an end: such a run resumes. Nor is
// waiting: such a run holds no slot until what it waits for has come.
const (
	StateQueued      RunState = "queued"
	StateRunning     RunState = "running"
	StateWaiting     RunState = "waiting"
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
	TriggerCompact      Trigger = "compact" // /compact: no turn, it only shortens what the model sees
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

// WaitReason says what a waiting run waits for.
type WaitReason string

// The reasons to wait.
const (
	WaitWorkers WaitReason = "workers" // its own workers' ends, or a message to it
	WaitPerson  WaitReason = "person"  // restartPolicy ask: someone resumes or cancels it
	WaitCaller  WaitReason = "caller"  // results of tools that the sender of the message runs itself
)

// RestartPolicy says what becomes of a run whose process died.
type RestartPolicy string

// The restart policies; "" is resume. A planned stop asks none of them.
const (
	RestartResume RestartPolicy = "resume"
	RestartFail   RestartPolicy = "fail"
	RestartAsk    RestartPolicy = "ask"
)

// Limits bound what may be spent; a zero field bounds nothing.
type Limits struct {
	Tokens  int64   `json:"tokens,omitempty"`  // input and output together
	USD     float64 `json:"usd,omitempty"`     // at the price table's prices
	Steps   int64   `json:"steps,omitempty"`   // model calls
	Seconds int64   `json:"seconds,omitempty"` // run: since its first claim; tree: since its root was accepted; day: in model calls
}

// IsZero reports whether nothing is bounded.
func (l Limits) IsZero() bool { return l == Limits{} }

// Budget are the limits of a run, of the tree of runs that one input led to,
// and of an agent's day in the person's time zone.
type Budget struct {
	Run  Limits `json:"run,omitzero"`
	Tree Limits `json:"tree,omitzero"`
	Day  Limits `json:"day,omitzero"`
}

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

	// Inherit lists the workspace files that the session is shown: paths
	// relative to the workspace, with slashes.
	Inherit []string `json:"inherit"`

	// Strict puts the private workspace files out of reach of all tools, but
	// for those that Inherit names.
	Strict bool `json:"strict"`

	// Skills are the names of the skills that the session may know of: nil is
	// all, an empty list none.
	Skills []string `json:"skills"`

	// Compaction says when the transcript that the model sees is shortened.
	Compaction Compaction `json:"compaction,omitzero"`

	// Handoff says when a worker is ended and another goes on in its place.
	Handoff Handoff `json:"handoff,omitzero"`

	// Message is the channel's id of the message that the turn answers, for
	// reply tags; "" if there is none.
	Message string `json:"message,omitempty"`

	// Timeout bounds the run from its first claim; 0 means none. In JSON it
	// is milliseconds.
	TimeoutMs int64 `json:"timeoutMs"`

	// Until is when the run's tree has had its time; 0: it is not limited.
	Until Millis `json:"until,omitempty"`

	// MaxCalls bounds the run's model calls; 0: the engine's own bound.
	MaxCalls int `json:"maxCalls,omitempty"`

	MaxSpawnDepth int `json:"maxSpawnDepth"`
	MaxChildren   int `json:"maxChildren"`
	MaxTreeRuns   int `json:"maxTreeRuns,omitempty"` // spawned runs that one input may ever lead to; 0: no bound

	Budget Budget `json:"budget,omitzero"`

	// ResultTokens bounds the result in an announcement (a token is four
	// bytes); the whole of a longer one is kept as an artifact. 0: no bound.
	ResultTokens int `json:"resultTokens,omitempty"`

	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// Definition is the name of the worker's definition, DefinitionSHA the
	// SHA-256 of its body, and Spec that of the blob with all that the run takes
	// from it.
	Definition    string `json:"definition,omitempty"`
	DefinitionSHA string `json:"definitionSha,omitempty"`
	Spec          string `json:"spec,omitempty"`

	// Flow says that the run is a flow's: it calls no model but plans and starts
	// others. Spec is the flow then.
	Flow bool `json:"flow,omitempty"`

	// Asked is the digest of the request with an idempotency key that the run was
	// accepted for.
	Asked string `json:"asked,omitempty"`

	// Answer is the form of the result: json, xml, or "" for free text.
	Answer string `json:"answer,omitempty"`

	// Caller are tools that whoever sent the message runs itself, sorted by name.
	// The turn must call one of MustCall before it answers, if there are any.
	Caller   []ToolSpec `json:"caller,omitempty"`
	MustCall []string   `json:"mustCall,omitempty"`

	// OutputSchema is the form of a turn's answer that whoever sent the message
	// asked for; a worker's stands in Spec.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

// Handoff bounds a worker's context, in tokens of the request.
type Handoff struct {
	Tokens int  `json:"tokens"`         // at which an attempt ends; 0: never
	Max    int  `json:"max"`            // how often; then the run fails
	Fail   bool `json:"fail,omitempty"` // the run fails at once instead
}

// Compaction says when and how far the transcript of a main session is
// shortened for its model, in tokens of the request.
type Compaction struct {
	Tokens      int  `json:"tokens"`      // at which it is; 0: never by itself
	KeepRecent  int  `json:"keepRecent"`  // how much of the newest turns stays word for word
	MemoryFlush bool `json:"memoryFlush"` // write lasting facts to the note of the day first
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

	// Root is the run at the top of the tree that this run belongs to: the
	// first turn that led to it, through spawns and announcements. Lane is
	// the session whose work it is, for fairness: the root's.
	Root string     `json:"root,omitempty"`
	Lane SessionKey `json:"lane"`

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

	// Attempts counts the workers that a run's hand-offs have had, from 1. It is
	// set where the run's end is worded; the record has it in the events.
	Attempts int `json:"-"`

	// Recovery is nil unless a takeover had to resume the run.
	Recovery *Recovery `json:"recovery,omitempty"`

	// Scheduling columns: not part of the fold.
	Epoch      int64  `json:"epoch"`
	Owner      string `json:"owner,omitempty"` // process id that holds the run
	Deadline   Millis `json:"deadline,omitempty"`
	CancelAt   Millis `json:"cancelAt,omitempty"`
	CancelWhy  string `json:"cancelWhy,omitempty"`
	Idempotent string `json:"-"` // idempotency key of the acceptance

	// WaitsFor and WakeAt are set while the run is waiting: it can be claimed
	// again from WakeAt on (0: only once something wakes it).
	WaitsFor WaitReason `json:"waitsFor,omitempty"`
	WakeAt   Millis     `json:"wakeAt,omitempty"`
}

// Recovery tells of the last takeover of a run.
type Recovery struct {
	Times     int      `json:"times"` // takeovers so far
	At        Millis   `json:"at"`
	Step      int      `json:"step"`                // model replies and tool results on record then
	Uncertain []string `json:"uncertain,omitempty"` // tools whose calls' outcome nobody knows
	Planned   bool     `json:"planned,omitempty"`   // handed over by a process that stopped in order
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

// InboxKind says what an InboxItem is.
type InboxKind string

// The kinds of inbox item.
const (
	ItemAnnouncement InboxKind = "announcement" // a finished run's result, for its requester
	ItemSteer        InboxKind = "steer"        // a message to a worker that is under way
	ItemResults      InboxKind = "results"      // the results of its caller's tools, for the run Group: Text is a JSON list of ToolResult
)

// Wakes is what an unended run waits for that an item of the kind ends.
func (k InboxKind) Wakes() WaitReason {
	if k == ItemResults {
		return WaitCaller
	}
	return WaitWorkers
}

// InboxItem is something on its way into a session's transcript: exactly one
// run of the session takes it.
type InboxItem struct {
	ID        string       `json:"id"`
	Kind      InboxKind    `json:"kind"`
	Session   SessionKey   `json:"session"` // who shall get it
	Source    string       `json:"source"`  // the run that ended
	Group     string       `json:"group"`   // the run that spawned it
	Mode      AnnounceMode `json:"mode"`
	Text      string       `json:"text"`
	CreatedAt Millis       `json:"createdAt"`

	// GroupOpen is computed on reading: some run that Group spawned with
	// AnnounceTogether has not ended, or Group itself has not and is no
	// spawned run (which takes announcements between its steps).
	GroupOpen bool `json:"groupOpen"`

	// Attempts counts failed deliveries; the next is not before NextAt. A
	// parked item waits for a person.
	Attempts int    `json:"attempts,omitempty"`
	NextAt   Millis `json:"nextAt,omitempty"`
	ParkedAt Millis `json:"parkedAt,omitempty"`
	Error    string `json:"error,omitempty"` // of the last attempt

	ConsumedBy string `json:"consumedBy,omitempty"` // run that took it; "dismissed" if nobody shall
	ConsumedAt Millis `json:"consumedAt,omitempty"`
}

// Parked is a delivery that was given up until a person decides: a result that
// its requester could not be told, or a reply that a channel did not take.
type Parked struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"` // announcement or reply
	Session  SessionKey `json:"session"`
	Run      string     `json:"run"` // whose result or reply it is
	Text     string     `json:"text"`
	Attempts int        `json:"attempts"`
	Error    string     `json:"error"`
	ParkedAt Millis     `json:"parkedAt"`
}

// Outbound is a reply on its way to a channel.
type Outbound struct {
	ID        string     `json:"id"`
	Session   SessionKey `json:"session"`
	Run       string     `json:"run"`
	Text      string     `json:"text"`    // with its reply tag, until it is delivered
	ReplyTo   string     `json:"replyTo"` // set on delivery: the channel's id of the message that is answered
	State     string     `json:"state"`   // pending, sending, sent, parked or dismissed
	Attempts  int        `json:"attempts"`
	NextAt    Millis     `json:"nextAt"`
	Error     string     `json:"error,omitempty"`
	CreatedAt Millis     `json:"createdAt"`
}

// SliceText is a slice as it was injected.
type SliceText struct {
	Tag     string `json:"tag"`
	Source  string `json:"source"` // the file, glob or artifact that it came from
	Text    string `json:"text"`
	Tokens  int    `json:"tokens"`            // four bytes each
	How     string `json:"how"`               // whole, cut or outline
	Dropped int    `json:"dropped,omitempty"` // bytes that were cut, or not outlined
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
