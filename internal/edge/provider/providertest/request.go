package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"goclaw"
)

// The wire formats.
const (
	WireAnthropic = "anthropic"
	WireOpenAI    = "openai"
)

// Request is a neutral view of a model request. It is not to be changed.
type Request struct {
	N      int    // the number of this request at the server, from 1
	Wire   string // WireAnthropic or WireOpenAI
	Model  string
	System string   // blocks joined by a blank line
	Tools  []string // names in order
	Stream bool

	Temperature *float64
	Stop        []string
	Schema      json.RawMessage // of the answer, as it was sent; nil if none was
	Strict      bool            // OpenAI's: the server is held to the schema

	// Messages are the wire's, one for one, without system messages. A tool
	// result is a user message, as in goclaw. The Opaque of a thinking part is
	// its signature or, with Provider "redacted", its data.
	Messages []goclaw.Message

	Raw    []byte
	Header http.Header

	prefix []byte // tools, system and messages, for the simulated cache
}

// NewestText joins the texts of the user messages after the last reply.
func (r *Request) NewestText() string {
	var texts []string
	for _, m := range r.newest() {
		if s := m.PlainText(); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// NewestResults returns the tool results after the last reply.
func (r *Request) NewestResults() []goclaw.ToolResult {
	var out []goclaw.ToolResult
	for _, m := range r.newest() {
		for _, p := range m.Parts {
			if p.Result != nil {
				out = append(out, *p.Result)
			}
		}
	}
	return out
}

// newest returns the messages after the last reply.
func (r *Request) newest() []goclaw.Message {
	i := len(r.Messages)
	for i > 0 && r.Messages[i-1].Role == goclaw.RoleUser {
		i--
	}
	return r.Messages[i:]
}

// FirstText is the text of the first user message.
func (r *Request) FirstText() string {
	for _, m := range r.Messages {
		if m.Role == goclaw.RoleUser {
			return m.PlainText()
		}
	}
	return ""
}

const (
	contextMark = "[Subagent Context]"
	taskMark    = "[Subagent Task]:"
)

// Worker reports whether the request is a subagent's.
func (r *Request) Worker() bool {
	first := r.FirstText()
	return strings.Contains(first, contextMark) || strings.Contains(first, taskMark)
}

// Task is a worker's task, or the newest text of a main session.
func (r *Request) Task() string {
	if _, task, ok := strings.Cut(r.FirstText(), taskMark); ok {
		return strings.TrimSpace(task)
	}
	return r.NewestText()
}

// wireBody is what both wires have in common.
type wireBody struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`

	Temperature   *float64 `json:"temperature"`
	StopSequences []string `json:"stop_sequences"`
	Stop          []string `json:"stop"`
	OutputConfig  struct {
		Format *answerFormat `json:"format"`
	} `json:"output_config"`
	ResponseFormat *answerFormat `json:"response_format"`
}

func parseRequest(wire string, raw []byte, header http.Header) (*Request, error) {
	var body wireBody
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, fmt.Errorf("parse body: %w", err)
	}
	r := &Request{Wire: wire, Model: body.Model, Stream: body.Stream, Raw: raw, Header: header}
	for _, part := range []json.RawMessage{body.Tools, body.System, body.Messages} {
		r.prefix = append(r.prefix, part...)
	}
	var tools []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if len(body.Tools) > 0 {
		if err := json.Unmarshal(body.Tools, &tools); err != nil {
			return nil, fmt.Errorf("parse tools: %w", err)
		}
	}
	for _, t := range tools {
		r.Tools = append(r.Tools, t.Name+t.Function.Name)
	}
	if err := r.answerForm(body); err != nil {
		return nil, err
	}
	parse := r.parseAnthropic
	if wire == WireOpenAI {
		parse = r.parseOpenAI
	}
	if err := parse(body); err != nil {
		return nil, err
	}
	if len(r.Messages) == 0 {
		return nil, fmt.Errorf("messages: at least one message is required")
	}
	return r, nil
}

// wireBlock is a content block of either wire.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// wireBlocks reads content that is a text, a list of blocks, or nothing.
func wireBlocks(raw json.RawMessage) ([]wireBlock, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []wireBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []wireBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, fmt.Errorf("parse content: %w", err)
	}
	return blocks, nil
}

func wireText(raw json.RawMessage, separator string) (string, error) {
	blocks, err := wireBlocks(raw)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, separator), nil
}

func (r *Request) parseAnthropic(body wireBody) (err error) {
	if r.System, err = wireText(body.System, "\n\n"); err != nil {
		return err
	}
	var messages []struct {
		Role    goclaw.Role     `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(body.Messages, &messages); err != nil {
		return fmt.Errorf("parse messages: %w", err)
	}
	for i, m := range messages {
		blocks, err := wireBlocks(m.Content)
		if err != nil {
			return err
		}
		parts := make([]goclaw.Part, 0, len(blocks))
		for _, b := range blocks {
			part, err := b.part()
			if err != nil {
				return fmt.Errorf("messages.%d: %w", i, err)
			}
			parts = append(parts, part)
		}
		r.Messages = append(r.Messages, goclaw.Message{Role: m.Role, Parts: parts})
	}
	return nil
}

// part translates a block, refusing what the real API refuses.
func (b wireBlock) part() (goclaw.Part, error) {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return goclaw.Part{}, fmt.Errorf("text content blocks must contain non-whitespace text")
		}
		return goclaw.Part{Kind: goclaw.PartText, Text: b.Text}, nil
	case "thinking":
		return goclaw.Part{Kind: goclaw.PartThinking, Text: b.Thinking, Opaque: b.Signature}, nil
	case "redacted_thinking":
		return goclaw.Part{Kind: goclaw.PartThinking, Opaque: b.Data, Provider: "redacted"}, nil
	case "tool_use":
		if len(b.Input) == 0 || b.Input[0] != '{' {
			return goclaw.Part{}, fmt.Errorf("tool_use.input: input should be a valid dictionary")
		}
		call := &goclaw.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}
		return goclaw.Part{Kind: goclaw.PartToolCall, Call: call}, nil
	case "tool_result":
		content, err := wireText(b.Content, "\n")
		result := &goclaw.ToolResult{CallID: b.ToolUseID, Content: content, IsError: b.IsError}
		return goclaw.Part{Kind: goclaw.PartToolResult, Result: result}, err
	}
	return goclaw.Part{}, fmt.Errorf("content of type %q is not supported", b.Type)
}

func (r *Request) parseOpenAI(body wireBody) error {
	var messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(body.Messages, &messages); err != nil {
		return fmt.Errorf("parse messages: %w", err)
	}
	for i, m := range messages {
		text, err := wireText(m.Content, "\n")
		if err != nil {
			return err
		}
		out := goclaw.Message{Role: goclaw.RoleUser}
		switch m.Role {
		case "system", "developer":
			r.System = strings.TrimPrefix(r.System+"\n\n"+text, "\n\n")
			continue
		case "tool":
			result := &goclaw.ToolResult{CallID: m.ToolCallID, Content: text, IsError: strings.HasPrefix(text, "Error: ")}
			out.Parts = append(out.Parts, goclaw.Part{Kind: goclaw.PartToolResult, Result: result})
			r.Messages = append(r.Messages, out)
			continue
		case "assistant":
			out.Role = goclaw.RoleAssistant
		case "user":
		default:
			return fmt.Errorf("messages.%d: role %q is not supported", i, m.Role)
		}
		if text != "" {
			out.Parts = append(out.Parts, goclaw.Part{Kind: goclaw.PartText, Text: text})
		}
		for _, c := range m.ToolCalls {
			call := &goclaw.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
			out.Parts = append(out.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: call})
		}
		r.Messages = append(r.Messages, out)
	}
	return nil
}
