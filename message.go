package goclaw

// Role says who speaks in a Message. Tool results travel in user messages.
type Role string

// The two roles that every provider knows.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// PartKind says which field of a Part is set.
type PartKind string

// The kinds of Part.
const (
	PartText       PartKind = "text"
	PartThinking   PartKind = "thinking"
	PartToolCall   PartKind = "tool_call"
	PartToolResult PartKind = "tool_result"
)

// Message is one entry of a transcript, in a form that all providers share.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a Message.
type Part struct {
	Kind   PartKind    `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`

	// Opaque is what a provider wants back unchanged (a thinking signature,
	// encrypted reasoning). Only the provider named Provider gets it back;
	// a thinking part of another provider is left out of the request.
	Opaque   string `json:"opaque,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// ToolCall is a model's request to use a tool. Arguments is the raw text that
// the model produced: it may be malformed JSON, and is validated before use.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolResult answers the ToolCall with the same id. A failure is a result too:
// Content then says what went wrong and what to do, and IsError is set.
type ToolResult struct {
	CallID  string `json:"callId"`
	Name    string `json:"name"`
	Content string `json:"content"`
	IsError bool   `json:"isError,omitempty"`

	// Suspend, on the result of an idempotent call, says that there is no
	// result yet: nothing is recorded, the run gives its slot back, and the
	// call is made again once something has come for it, or at Suspend.Until.
	Suspend *WaitingEvent `json:"-"`

	// Again, on the result of an idempotent call, says that the call could not
	// be made and had no effect: nothing is recorded, and it is made again.
	Again error `json:"-"`

	// Artifacts are what the call leaves: stored in the transaction that records
	// the result.
	Artifacts []ArtifactData `json:"-"`

	// Consume are inbox items that this result tells of: they are taken in the
	// transaction that records it.
	Consume []string `json:"inbox,omitempty"`
}

// Usage counts tokens. Input is the whole prompt: CacheRead and CacheWrite are
// the shares of it that were read from and written to the provider's cache,
// whatever the provider's own convention is. CostUSD is nil when no price is
// known; it is never zero for want of a price.
type Usage struct {
	Input      int64    `json:"input"`
	Output     int64    `json:"output"`
	CacheRead  int64    `json:"cacheRead"`
	CacheWrite int64    `json:"cacheWrite"`
	CostUSD    *float64 `json:"costUSD"`
}

// Add returns the sum of two usages. The cost of a sum is unknown as soon as
// the cost of one side that used tokens is unknown.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
	}
	switch {
	case u.CostUSD != nil && v.CostUSD != nil: // first: a call may cost without a token
		c := *u.CostUSD + *v.CostUSD
		sum.CostUSD = &c
	case u.IsZero() && u.CostUSD == nil:
		sum.CostUSD = v.CostUSD
	case v.IsZero() && v.CostUSD == nil:
		sum.CostUSD = u.CostUSD
	}
	return sum
}

// IsZero reports whether no token was counted.
func (u Usage) IsZero() bool {
	return u.Input == 0 && u.Output == 0 && u.CacheRead == 0 && u.CacheWrite == 0
}

// Text returns a message of one text part.
func Text(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Kind: PartText, Text: text}}}
}

// PlainText joins the text parts of m.
func (m Message) PlainText() string {
	var s string
	for _, p := range m.Parts {
		if p.Kind == PartText {
			s += p.Text
		}
	}
	return s
}

// Calls returns the tool calls of m in order.
func (m Message) Calls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if p.Kind == PartToolCall && p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}
