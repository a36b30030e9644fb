package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"goclaw"
)

// The names under which the model is addressed.
const (
	Name  = "demo"
	Model = "offline"
)

// Label starts every text that the model writes.
const Label = "[offline demonstration model] "

// chunkBytes is about how much text one Delta carries.
const chunkBytes = 24

var _ goclaw.Encoder = (*Provider)(nil)

// Provider is the offline demonstration model. The zero value answers without
// delay. It is safe for concurrent use.
type Provider struct {
	// Delay is waited for before each streamed piece of text, so that a
	// terminal shows it as being typed.
	Delay time.Duration
}

// New returns a Provider that answers without delay.
func New() *Provider { return &Provider{} }

// Name is "demo".
func (p *Provider) Name() string { return Name }

// Stream answers req. It fails only for an unknown model (*ProviderError) and
// when ctx ends (its cause, wrapped).
func (p *Provider) Stream(ctx context.Context, req goclaw.ModelRequest, emit func(goclaw.Delta)) (goclaw.ModelReply, error) {
	if req.Model != Model {
		return goclaw.ModelReply{}, &goclaw.ProviderError{
			Provider: Name, Kind: "not_found",
			Message: fmt.Sprintf("no model %q: the only one is %s/%s", req.Model, Name, Model),
		}
	}
	answer := decide(req)
	text, stop := limit(answer.text, req)
	if err := p.typeOut(ctx, text, emit); err != nil {
		return goclaw.ModelReply{}, err
	}
	msg := goclaw.Message{Role: goclaw.RoleAssistant}
	if text != "" {
		msg.Parts = append(msg.Parts, goclaw.Part{Kind: goclaw.PartText, Text: text})
	}
	for i, c := range answer.calls {
		args, err := json.Marshal(c.args)
		if err != nil {
			return goclaw.ModelReply{}, fmt.Errorf("demo: arguments of %s: %w", c.tool, err)
		}
		// The transcript only grows, so its length makes the id unique in it.
		msg.Parts = append(msg.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{
			ID: fmt.Sprintf("demo_%d_%d", len(req.Messages), i), Name: c.tool, Arguments: string(args),
		}})
		stop = goclaw.StopTools
	}
	free := 0.0
	return goclaw.ModelReply{
		Message: msg, Stop: stop, Model: Model,
		Usage: goclaw.Usage{
			Input: tokens(requestBytes(req)), Output: tokens(messageBytes(msg)), CostUSD: &free,
		},
	}, nil
}

// wire is a request in the form that Encode shows.
type wire struct {
	Model     string           `json:"model"`
	MaxTokens int              `json:"max_tokens,omitempty"`
	Stop      []string         `json:"stop,omitempty"`
	Tools     []wireTool       `json:"tools"`
	System    string           `json:"system"`
	Messages  []goclaw.Message `json:"messages"`
}

type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// Encode gives what Stream looks at, as JSON: nothing is sent anywhere.
func (p *Provider) Encode(req goclaw.ModelRequest) ([]byte, error) {
	w := wire{
		Model: req.Model, MaxTokens: req.MaxTokens, Stop: req.Stop,
		Tools: []wireTool{}, Messages: append([]goclaw.Message{}, req.Messages...),
	}
	for _, t := range req.Tools {
		w.Tools = append(w.Tools, wireTool{t.Name, t.Description, t.Schema})
	}
	texts := make([]string, len(req.System))
	for i, b := range req.System {
		texts[i] = b.Text
	}
	w.System = strings.Join(texts, "\n\n")
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("%s: encode request: %w", Name, err)
	}
	return raw, nil
}

// typeOut hands text to emit piece by piece, never splitting a character.
func (p *Provider) typeOut(ctx context.Context, text string, emit func(goclaw.Delta)) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("demo: %w", context.Cause(ctx))
		}
		if text == "" {
			return nil
		}
		n := pieceLen(text)
		if p.Delay > 0 {
			timer := time.NewTimer(p.Delay)
			select {
			case <-ctx.Done():
				timer.Stop()
				return fmt.Errorf("demo: %w", context.Cause(ctx))
			case <-timer.C:
			}
		}
		if emit != nil {
			emit(goclaw.Delta{Kind: goclaw.NoticeText, Text: text[:n]})
		}
		text = text[n:]
	}
}

// pieceLen is where the first piece of text ends: after a space if there is
// one near, else between two characters.
func pieceLen(text string) int {
	if len(text) <= chunkBytes {
		return len(text)
	}
	if i := strings.LastIndexAny(text[:chunkBytes], " \n"); i > 0 {
		return i + 1
	}
	n := chunkBytes
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return n
}

// limit cuts text where the request's own limits end it.
func limit(text string, req goclaw.ModelRequest) (string, goclaw.StopReason) {
	stop := goclaw.StopEnd
	for _, s := range req.Stop {
		if i := strings.Index(text, s); s != "" && i >= 0 {
			text, stop = text[:i], goclaw.StopSequence
		}
	}
	if most := req.MaxTokens * bytesPerToken; req.MaxTokens > 0 && len(text) > most {
		text, stop = strings.ToValidUTF8(text[:most], ""), goclaw.StopMaxTokens
	}
	return text, stop
}

const bytesPerToken = 4

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

func requestBytes(req goclaw.ModelRequest) int {
	n := 0
	for _, b := range req.System {
		n += len(b.Text)
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		n += messageBytes(m)
	}
	return n
}

func messageBytes(m goclaw.Message) int {
	n := 0
	for _, p := range m.Parts {
		n += len(p.Text)
		if p.Call != nil {
			n += len(p.Call.Name) + len(p.Call.Arguments)
		}
		if p.Result != nil {
			n += len(p.Result.Content)
		}
	}
	return n
}
