package goclaw

// EventKind names what happened to a run.
type EventKind string

// The kinds of event. A run's first event is its prompt; its last, its end.
const (
	EventPrompt  EventKind = "prompt"  // what was assembled, once
	EventModel   EventKind = "model"   // one model reply
	EventIntent  EventKind = "intent"  // tool calls about to run
	EventResult  EventKind = "result"  // one tool call's result
	EventInput   EventKind = "input"   // messages that came between steps
	EventWaiting EventKind = "waiting" // the run gave its slot back
	EventResumed EventKind = "resumed" // another owner took the run over
	EventCompact EventKind = "compact" // what the model sees of the session was shortened
	EventHandoff EventKind = "handoff" // a new attempt begins, with no history but a hand-off
	EventEnd     EventKind = "end"
)

// Event is an immutable, numbered fact about a run. Exactly the field that
// belongs to Kind is set.
type Event struct {
	Seq  int       `json:"seq"`
	Kind EventKind `json:"kind"`
	At   Millis    `json:"at"`

	Prompt  *PromptEvent  `json:"prompt,omitempty"`
	Model   *ModelEvent   `json:"model,omitempty"`
	Intent  *IntentEvent  `json:"intent,omitempty"`
	Result  *ToolResult   `json:"result,omitempty"`
	Input   *InputEvent   `json:"input,omitempty"`
	Waiting *WaitingEvent `json:"waiting,omitempty"`
	Resumed *ResumedEvent `json:"resumed,omitempty"`
	Compact *CompactEvent `json:"compact,omitempty"`
	Handoff *HandoffEvent `json:"handoff,omitempty"`
	End     *EndEvent     `json:"end,omitempty"`
}

// InputEvent is what reached a run between its steps: its workers' results and
// messages from its requester or a person, in one user message.
type InputEvent struct {
	Message Message  `json:"message"`
	Inbox   []string `json:"inbox"` // ids of the inbox items consumed

	// Repair says that the runtime itself sent the last answer back.
	Repair bool `json:"repair,omitempty"`
	// Reminder says that it sent the worker back to leave what it must.
	Reminder bool `json:"reminder,omitempty"`
}

// WaitingEvent tells that the run waits without a slot.
type WaitingEvent struct {
	For   WaitReason `json:"for"`
	Until Millis     `json:"until,omitempty"` // when it goes on in any case
}

// PromptEvent is event 0: the assembled prompt and the turn's input. Sections
// and tool schemas are stored once by content (see Prompt) and named here by
// hash.
type PromptEvent struct {
	PromptSHA string   `json:"promptSha"`
	Input     Message  `json:"input"`
	Inbox     []string `json:"inbox,omitempty"` // ids of the inbox items consumed

	// From is the ordinal of the oldest run that the request showed of the
	// session, the run's own if it showed none. 0, on older records: all since
	// the last reset.
	From int64 `json:"from,omitempty"`

	// Tried is how often these items' delivery had failed before.
	Tried int `json:"tried,omitempty"`
}

// ModelEvent is one model call's recorded reply.
type ModelEvent struct {
	Message Message    `json:"message"`
	Stop    StopReason `json:"stop"`
	Usage   Usage      `json:"usage"`
	Model   string     `json:"model"`
	TookMs  int64      `json:"tookMs"`
	Tries   int        `json:"tries,omitempty"` // requests sent, if more than one

	// MaxTokens is what the request asked for at most; 0: the provider's default.
	MaxTokens int `json:"maxTokens,omitempty"`
}

// IntentEvent lists the calls of one batch before the first of them runs.
type IntentEvent struct {
	Calls []Intent `json:"calls"`
}

// Intent is the recorded intention to run one tool call. Only an idempotent
// one is run again when its result is missing after a crash.
type Intent struct {
	CallID     string `json:"callId"`
	Name       string `json:"name"`
	Idempotent bool   `json:"idempotent,omitempty"`
}

// ResumedEvent tells that a new owner took an unfinished run over.
type ResumedEvent struct {
	Owner string `json:"owner"`
	// Step is how many model replies and tool results were on record.
	Step int `json:"step"`
	// Planned says that the last owner stopped in order.
	Planned bool `json:"planned,omitempty"`
	// Uncertain lists the calls whose outcome nobody knows.
	Uncertain []string `json:"uncertain,omitempty"`
	// ModelCallLost says that a model call may have been paid for without
	// its reply having been recorded.
	ModelCallLost bool `json:"modelCallLost,omitempty"`
}

// CompactEvent tells how the session's transcript is shown to the model from
// now on. The record itself keeps everything.
type CompactEvent struct {
	// Through is the ordinal of the last run that Summary stands for; 0 if
	// nothing was summarised.
	Through int64  `json:"through,omitempty"`
	Summary string `json:"summary,omitempty"`

	// Notes is what was to be remembered for good; it goes to the memory
	// folder's note of Day before the summary is used.
	Notes string `json:"notes,omitempty"`
	Day   string `json:"day,omitempty"`

	// Trimmed are tool results of later runs that are shown cut.
	Trimmed []TrimmedResult `json:"trimmed,omitempty"`

	// Before and After are tokens of the request, as estimated.
	Before int64 `json:"before"`
	After  int64 `json:"after"`

	// Call is the model call that wrote Summary; nil if none was needed or
	// none gave one.
	Call *ModelEvent `json:"call,omitempty"`
}

// TrimmedResult names a tool result that the model is shown cut.
type TrimmedResult struct {
	Run    string `json:"run"`
	CallID string `json:"callId"`
	Bytes  int    `json:"bytes"` // its whole length
}

// HandoffEvent ends a worker's attempt whose context had become too long: the
// next one starts with system prompt, input and Text, and no history.
type HandoffEvent struct {
	Attempt  int    `json:"attempt"`  // that begins, from 2
	Text     string `json:"text"`     // task, done, open, facts, next
	Artifact string `json:"artifact"` // its name, on the run
	By       string `json:"by"`       // worker, or runtime if the worker could not write it

	// Before is how many tokens the context of the attempt that ends had; Steps
	// how many model replies.
	Before int64 `json:"before"`
	Steps  int   `json:"steps"`

	// Call is the model call that wrote Text; nil if none did.
	Call *ModelEvent `json:"call,omitempty"`
}

// Paid returns the model call that an event records, or nil.
func (e Event) Paid() *ModelEvent {
	switch {
	case e.Compact != nil:
		return e.Compact.Call
	case e.Handoff != nil:
		return e.Handoff.Call
	}
	return e.Model
}

// EndEvent closes a run. Outcomes of calls that were under way are closed with
// it: a fold of the transcript never leaves a call without a result.
type EndEvent struct {
	State  RunState `json:"state"`
	Result string   `json:"result,omitempty"`
	Error  string   `json:"error,omitempty"`
	Silent bool     `json:"silent,omitempty"` // the reply was NO_REPLY

	// Returned says that the model was never asked: the announcements that
	// this turn had taken went back, and the turn is no part of the transcript.
	Returned bool `json:"returned,omitempty"`

	// Dropped counts the bytes of the reply that were outside of the answer.
	Dropped int `json:"dropped,omitempty"`

	// Unread are messages to the run that came too late for it.
	Unread []string `json:"unread,omitempty"`
}

// Section is one ordered piece of a prompt.
type Section struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Source string `json:"source"` // built-in, or the file it comes from
	Stable bool   `json:"stable"`
	Tokens int    `json:"tokens"` // four bytes each
	Text   string `json:"text"`
}

// Omission is something that was left out of a prompt, and why.
type Omission struct {
	Source string `json:"source"`
	Why    string `json:"why"`
}

// Prompt is what the assembler returns: data, rendered last. Its JSON is
// stored by content under its SHA-256.
type Prompt struct {
	Sections  []Section  `json:"sections"`
	Tools     []ToolSpec `json:"tools"`
	Omitted   []Omission `json:"omitted,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
	Lifted    []string   `json:"lifted,omitempty"` // private entries that a person named for this session
	Model     string     `json:"model"`
	Thinking  string     `json:"thinking,omitempty"`
	MaxTokens int        `json:"maxTokens,omitempty"`
}

// WorkspaceFile is a file of the workspace that a prompt may show: one of the
// eight that make an agent what it is, or one that the configuration adds.
type WorkspaceFile struct {
	Name    string // "SOUL.md"; relative to the workspace, with slashes
	Path    string // absolute
	Content string
	Missing bool
	Dropped int    // characters cut from the middle, 0 if none
	Warning string // why the file was cut, refused or could not be read
}

// NoticeKind names a live, unrecorded happening.
type NoticeKind string

// The kinds of notice.
const (
	NoticeRun        NoticeKind = "run"         // a run was accepted or changed state
	NoticeText       NoticeKind = "text"        // streamed reply text
	NoticeThinking   NoticeKind = "thinking"    // streamed thinking text
	NoticeReset      NoticeKind = "reset"       // the streamed text so far is void: the call is made again
	NoticeToolCall   NoticeKind = "tool_call"   // a tool call begins
	NoticeToolResult NoticeKind = "tool_result" // a tool call ended
	NoticeUsage      NoticeKind = "usage"       // a step was recorded; Run.Usage is its sum
	NoticeRetry      NoticeKind = "retry"       // the call is made again later: the provider, a rate, a budget or a pause says so
	NoticeWarning    NoticeKind = "warning"     // something of the context was cut, refused or is wrong; said once until it changes
	NoticeCompact    NoticeKind = "compact"     // the session was compacted; Text says how
	NoticeEvent      NoticeKind = "event"       // an event was recorded: Event is it
	NoticeLag        NoticeKind = "lag"         // this subscriber was too slow; some notices were dropped
)

// Notice tells a live view what happens. It is best effort: the record is the
// run's events.
type Notice struct {
	Kind    NoticeKind  `json:"kind"`
	Session SessionKey  `json:"session"`
	RunID   string      `json:"runId,omitempty"`
	Text    string      `json:"text,omitempty"`
	Run     *Run        `json:"run,omitempty"`
	Call    *ToolCall   `json:"call,omitempty"`
	Result  *ToolResult `json:"result,omitempty"`
	Event   *Event      `json:"event,omitempty"`

	// Seq, of streamed text and thinking, is that of the event that is to record
	// them: who has seen that event needs them no more.
	Seq int `json:"seq,omitempty"`
}
