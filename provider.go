package goclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// StopReason says why a model stopped, in terms that all providers share.
type StopReason string

// The stop reasons.
const (
	StopEnd       StopReason = "end"
	StopTools     StopReason = "tools"
	StopMaxTokens StopReason = "max_tokens"
	StopSequence  StopReason = "stop_sequence"
	StopRefusal   StopReason = "refusal"
)

// SystemBlock is one block of the system prompt. A cache breakpoint is set
// after a block that ends the stable part.
type SystemBlock struct {
	Text        string
	StableUntil bool // the stable part ends with this block
}

// ModelRequest is one call of a model. Tools are sorted by name and their
// schema bytes never change, so that equal prefixes are equal bytes.
type ModelRequest struct {
	Model       string // the provider's own name, without "provider/"
	System      []SystemBlock
	Tools       []ToolSpec
	Messages    []Message
	Thinking    string // off, low, medium, high; "" is off
	MaxTokens   int    // 0: the provider's default
	Temperature *float64
	Stop        []string

	// Schema asks for an answer in JSON of that schema, where the provider has a
	// mode for it. What it does not support of the schema it may leave out: the
	// caller checks the answer.
	Schema json.RawMessage

	// Session identifies the conversation to providers that route by it; it
	// is never sent as text.
	Session string
}

// Delta is a piece of a streamed reply, for display only.
type Delta struct {
	Kind NoticeKind // NoticeText or NoticeThinking
	Text string
}

// ModelReply is a complete reply. A reply whose stream was cut is never
// returned as complete: Stream gives an error instead.
type ModelReply struct {
	Message Message
	Stop    StopReason
	Usage   Usage
	Model   string // as the server named it
}

// Provider is the port to a model API.
type Provider interface {
	// Name is the prefix of its models' names, such as "anthropic".
	Name() string

	// Stream makes exactly one request and returns the complete reply,
	// handing pieces to emit as they arrive (emit is called from Stream's
	// goroutine and may be nil). It does not retry: a failure is a
	// *ProviderError, which says whether and when to try again. It returns
	// within a second of ctx's end with context.Cause(ctx) wrapped. It is safe
	// for concurrent use.
	Stream(ctx context.Context, req ModelRequest, emit func(Delta)) (ModelReply, error)
}

// Encoder is a provider that can tell what it sends.
type Encoder interface {
	// Encode returns the body of the request that Stream would make, byte for
	// byte.
	Encode(req ModelRequest) ([]byte, error)
}

// ProviderError is a failed model call.
type ProviderError struct {
	Provider string
	Status   int           // HTTP status, 0 if none was received
	Kind     string        // the server's own error type, or cut, stall, network, malformed
	Message  string        // the server's own words, without secrets
	Retry    bool          // the same request may succeed later
	After    time.Duration // the server's delay; 0 if it named none
	Err      error         // cause, if any
}

// Error says what failed in one line.
func (e *ProviderError) Error() string {
	s := e.Provider + ": "
	if e.Status != 0 {
		s += fmt.Sprintf("HTTP %d ", e.Status)
	}
	if e.Kind != "" {
		s += e.Kind + ": "
	}
	return s + e.Message
}

// Unwrap returns the cause.
func (e *ProviderError) Unwrap() error { return e.Err }
