package openai

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"goclaw"
)

// call is a tool call that is being received.
type call struct {
	index     int64 // -1 if the server gave none
	id, name  string
	arguments strings.Builder
}

// reply folds stream chunks into a ModelReply.
type reply struct {
	provider string
	emit     func(goclaw.Delta)
	model    string
	text     strings.Builder
	thinking strings.Builder
	refused  bool
	calls    []*call
	finished string // finish_reason
	usage    goclaw.Usage
	counted  bool
}

// take folds one chunk in.
func (r *reply) take(raw json.RawMessage) error {
	var c sdk.ChatCompletionChunk
	if err := c.UnmarshalJSON(raw); err != nil {
		return err
	}
	return r.add(&c)
}

func (r *reply) add(c *sdk.ChatCompletionChunk) error {
	if c.Object == "error" { // the form of some servers, unknown to the SDK
		return &streamError{body: []byte(c.RawJSON())}
	}
	if c.Model != "" {
		r.model = c.Model
	}
	if c.JSON.Usage.Valid() {
		r.counted = true
		r.usage = usage(c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		r.delta(choice.Delta)
		if choice.FinishReason != "" {
			r.finished = choice.FinishReason
		}
	}
	return nil
}

func (r *reply) delta(d sdk.ChatCompletionChunkChoiceDelta) {
	if s := reasoning(d); s != "" {
		r.thinking.WriteString(s)
		r.emit(goclaw.Delta{Kind: goclaw.NoticeThinking, Text: s})
	}
	if d.Refusal != "" {
		r.refused = true
	}
	if s := d.Content + d.Refusal; s != "" {
		r.text.WriteString(s)
		r.emit(goclaw.Delta{Kind: goclaw.NoticeText, Text: s})
	}
	for _, t := range d.ToolCalls {
		c := r.callFor(t)
		if c.id == "" {
			c.id = t.ID
		}
		if c.name == "" {
			c.name = t.Function.Name
		}
		c.arguments.WriteString(t.Function.Arguments)
	}
}

// callFor finds the call that a piece belongs to, or begins one. A name
// together with an id that differs begins a call even at an index seen before:
// some servers give every call the index 0. An id alone doesn't: others invent
// a new one for each piece.
func (r *reply) callFor(t sdk.ChatCompletionChunkChoiceDeltaToolCall) *call {
	index := int64(-1)
	if t.JSON.Index.Valid() {
		index = t.Index
	}
	for i := len(r.calls) - 1; i >= 0; i-- {
		c := r.calls[i]
		switch {
		case index >= 0 && c.index == index:
			if t.ID != "" && c.id != "" && t.ID != c.id && t.Function.Name != "" {
				return r.begin(index)
			}
			return c
		case index < 0 && t.ID != "" && c.id == t.ID:
			return c
		case index < 0 && t.ID == "" && t.Function.Name == "":
			return c
		}
	}
	return r.begin(index)
}

func (r *reply) begin(index int64) *call {
	c := &call{index: index}
	r.calls = append(r.calls, c)
	return c
}

// reasoning reads the fields in which servers show a model's reasoning; the
// official API has none.
func reasoning(d sdk.ChatCompletionChunkChoiceDelta) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		field, ok := d.JSON.ExtraFields[name]
		if !ok {
			continue
		}
		var s string
		if json.Unmarshal([]byte(field.Raw()), &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// usage normalises the counts: the API's prompt_tokens include the cached.
func usage(u sdk.CompletionUsage) goclaw.Usage {
	out := goclaw.Usage{
		Input:      u.PromptTokens,
		Output:     u.CompletionTokens,
		CacheRead:  u.PromptTokensDetails.CachedTokens,
		CacheWrite: u.PromptTokensDetails.CacheWriteTokens,
	}
	for _, name := range []string{"prompt_cache_hit_tokens", "cached_tokens"} {
		if field, ok := u.JSON.ExtraFields[name]; ok && out.CacheRead == 0 {
			_ = json.Unmarshal([]byte(field.Raw()), &out.CacheRead) // stays 0 if it is no number
		}
	}
	return out
}

// complete reports whether all of the reply was received. inOrder says that
// the stream was not broken off: it ended with [DONE] or was closed.
func (r *reply) complete(inOrder bool) bool {
	return r.finished != "" && (inOrder || r.counted)
}

func (r *reply) finish() goclaw.ModelReply {
	m := goclaw.Message{Role: goclaw.RoleAssistant}
	if r.thinking.Len() > 0 {
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartThinking, Text: r.thinking.String(), Provider: r.provider})
	}
	if r.text.Len() > 0 {
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartText, Text: r.text.String()})
	}
	for _, c := range r.calls {
		tc := &goclaw.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()}
		if tc.ID == "" {
			tc.ID = "call_" + rand.Text()
		}
		if tc.Arguments == "" {
			tc.Arguments = "{}"
		}
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: tc})
	}
	return goclaw.ModelReply{Message: m, Stop: r.stop(), Usage: r.usage, Model: r.model}
}

func (r *reply) stop() goclaw.StopReason {
	switch {
	case r.finished == "length":
		return goclaw.StopMaxTokens
	case r.finished == "content_filter" || r.refused:
		return goclaw.StopRefusal
	case len(r.calls) > 0:
		return goclaw.StopTools
	}
	return goclaw.StopEnd
}
