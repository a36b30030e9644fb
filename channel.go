package goclaw

import (
	"context"
	"encoding/json"
)

// Inbound is a person's message on its way to a session.
type Inbound struct {
	Session SessionKey `json:"session"`
	Text    string     `json:"text"`
	Sender  string     `json:"sender,omitempty"` // as the channel names them; volatile, never in the stable prompt

	// Key makes acceptance idempotent: the same key is accepted once. ""
	// means every message is new.
	Key string `json:"key,omitempty"`

	// Digest tells requests with the same Key apart; "" compares nothing.
	Digest string `json:"-"`

	// MessageID is the channel's id of the message, for replies to it.
	MessageID string `json:"messageId,omitempty"`

	// Model overrides the session's model for this turn.
	Model string `json:"model,omitempty"`

	// Caller are tools of this turn that the sender runs itself: the run waits
	// for their results (WaitCaller).
	Caller []ToolSpec `json:"-"`

	// MustCall are those of Caller of which the turn has to call one before it
	// answers; none: it is free to.
	MustCall []string `json:"-"`

	// OutputSchema is the JSON Schema that the turn's answer must fit; nil: the
	// answer is free text.
	OutputSchema json.RawMessage `json:"-"`
}

// Receipt answers an Inbound. Exactly one of Run and Reply is set: a slash
// command is answered at once, anything else becomes a run.
type Receipt struct {
	Run   *Run   `json:"run,omitempty"`
	Reply string `json:"reply,omitempty"`
}

// Channel is the port to a chat service that messages are pushed to.
type Channel interface {
	// Name is the channel part of its session keys.
	Name() string

	// Receive hands every message to handle until ctx ends. handle returns
	// once the message is durable; its error is for the sender.
	Receive(ctx context.Context, handle func(context.Context, Inbound) (Receipt, error)) error

	// Send delivers out. An error means "not delivered, or not known":
	// the gateway tries again with backoff and parks it after some tries.
	Send(ctx context.Context, out Outbound) error
}
