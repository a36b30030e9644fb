package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"goclaw"
	"goclaw/internal/edge/provider"
)

// block is a content block that is being received.
type block struct {
	kind      string
	id, name  string
	text      strings.Builder // of text and thinking
	signature strings.Builder
	data      string          // of redacted thinking
	input     string          // as the block's start gave it
	arguments strings.Builder // as deltas gave it
}

// reply folds stream events into a ModelReply.
type reply struct {
	provider string
	emit     func(goclaw.Delta)
	model    string
	stop     sdk.StopReason
	blocks   []*block
	byIndex  map[int64]*block
	usage    tokens
}

// tokens are the API's counts. Servers send them at the start, at the end, or
// both, and leave some out; each only ever grows.
type tokens struct{ input, output, cacheRead, cacheWrite int64 }

func (t *tokens) raise(input, output, cacheRead, cacheWrite int64) {
	t.input = max(t.input, input)
	t.output = max(t.output, output)
	t.cacheRead = max(t.cacheRead, cacheRead)
	t.cacheWrite = max(t.cacheWrite, cacheWrite)
}

func newReply(provider string, emit func(goclaw.Delta)) *reply {
	return &reply{provider: provider, emit: emit, byIndex: map[int64]*block{}}
}

// add folds one event in and reports whether it was the last.
func (r *reply) add(e *sdk.MessageStreamEventUnion) (done bool, err error) {
	switch e.Type {
	case "message_start":
		u := &e.Message.Usage
		r.model = e.Message.Model
		r.stop = e.Message.StopReason
		r.usage.raise(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
	case "content_block_start":
		r.start(e.Index, &e.ContentBlock)
	case "content_block_delta":
		return false, r.delta(e.Index, &e.Delta)
	case "message_delta":
		u := &e.Usage
		if e.Delta.StopReason != "" {
			r.stop = e.Delta.StopReason
		}
		r.usage.raise(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
	case "message_stop":
		return true, nil
	}
	return false, nil
}

func (r *reply) start(index int64, c *sdk.ContentBlockStartEventContentBlockUnion) {
	b := &block{kind: c.Type, id: c.ID, name: c.Name, data: c.Data}
	if c.JSON.Input.Valid() {
		b.input = c.JSON.Input.Raw()
	}
	b.signature.WriteString(c.Signature)
	r.blocks = append(r.blocks, b)
	r.byIndex[index] = b
	r.write(b, c.Text+c.Thinking)
}

func (r *reply) delta(index int64, d *sdk.MessageStreamEventUnionDelta) error {
	b := r.byIndex[index]
	if b == nil {
		return provider.Malformed(fmt.Errorf("a delta for content block %d, which was never started", index))
	}
	switch d.Type {
	case "text_delta":
		r.write(b, d.Text)
	case "thinking_delta":
		r.write(b, d.Thinking)
	case "signature_delta":
		b.signature.WriteString(d.Signature)
	case "input_json_delta":
		b.arguments.WriteString(d.PartialJSON)
	}
	return nil
}

// write appends to the text of b and shows it.
func (r *reply) write(b *block, text string) {
	if text == "" {
		return
	}
	b.text.WriteString(text)
	switch b.kind {
	case "text":
		r.emit(goclaw.Delta{Kind: goclaw.NoticeText, Text: text})
	case "thinking":
		r.emit(goclaw.Delta{Kind: goclaw.NoticeThinking, Text: text})
	}
}

func (r *reply) finish() goclaw.ModelReply {
	m := goclaw.Message{Role: goclaw.RoleAssistant}
	calls := 0
	for _, b := range r.blocks {
		part, ok := b.part(r.provider)
		if !ok {
			continue
		}
		if part.Kind == goclaw.PartToolCall {
			calls++
		}
		m.Parts = append(m.Parts, part)
	}
	u := r.usage
	return goclaw.ModelReply{
		Message: m,
		Stop:    stopReason(r.stop, calls),
		Model:   r.model,
		Usage: goclaw.Usage{
			Input:      u.input + u.cacheRead + u.cacheWrite,
			Output:     u.output,
			CacheRead:  u.cacheRead,
			CacheWrite: u.cacheWrite,
		},
	}
}

// part returns the finished block; ok is false for one that holds nothing, or
// nothing that was asked for.
func (b *block) part(provider string) (part goclaw.Part, ok bool) {
	switch b.kind {
	case "text":
		return goclaw.Part{Kind: goclaw.PartText, Text: b.text.String()}, b.text.Len() > 0
	case "thinking":
		part = goclaw.Part{Kind: goclaw.PartThinking, Text: b.text.String(), Opaque: b.signature.String(), Provider: provider}
		return part, part.Text != "" || part.Opaque != ""
	case "redacted_thinking":
		return goclaw.Part{Kind: goclaw.PartThinking, Opaque: redactedPrefix + b.data, Provider: provider}, true
	case "tool_use":
		call := &goclaw.ToolCall{ID: b.id, Name: b.name, Arguments: b.callArguments()}
		return goclaw.Part{Kind: goclaw.PartToolCall, Call: call}, true
	}
	return goclaw.Part{}, false
}

// callArguments prefers the deltas: a block usually starts with an empty
// object as a placeholder.
func (b *block) callArguments() string {
	if b.arguments.Len() > 0 {
		return b.arguments.String()
	}
	if json.Valid([]byte(b.input)) && b.input != "null" {
		return b.input
	}
	return "{}"
}

func stopReason(s sdk.StopReason, calls int) goclaw.StopReason {
	switch s {
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return goclaw.StopMaxTokens
	case sdk.StopReasonRefusal:
		return goclaw.StopRefusal
	case sdk.StopReasonStopSequence:
		return goclaw.StopSequence
	}
	if calls > 0 {
		return goclaw.StopTools
	}
	return goclaw.StopEnd
}
