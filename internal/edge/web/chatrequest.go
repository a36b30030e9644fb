package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw"
)

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	Model         modelName     `json:"model"`
	Messages      []chatMessage `json:"messages"`
	User          string        `json:"user,omitempty"`
	Stream        bool          `json:"stream,omitempty"`
	StreamOptions struct {
		IncludeUsage       bool            `json:"include_usage,omitempty"`
		IncludeObfuscation json.RawMessage `json:"include_obfuscation,omitempty"`
	} `json:"stream_options,omitempty"`
	ResponseFormat struct {
		Type   string       `json:"type,omitempty"`
		Schema answerSchema `json:"json_schema,omitzero"`
	} `json:"response_format,omitempty"`
	callerTools

	// Refused when they ask for something.
	Functions  []json.RawMessage `json:"functions,omitempty"`
	N          *int              `json:"n,omitempty"`
	Modalities []string          `json:"modalities,omitempty"`
	Logprobs   bool              `json:"logprobs,omitempty"`

	// Only chat completions know these, and they are without effect.
	Audio               json.RawMessage `json:"audio,omitempty"`
	FrequencyPenalty    json.RawMessage `json:"frequency_penalty,omitempty"`
	FunctionCall        json.RawMessage `json:"function_call,omitempty"`
	LogitBias           json.RawMessage `json:"logit_bias,omitempty"`
	MaxCompletionTokens json.RawMessage `json:"max_completion_tokens,omitempty"`
	MaxTokens           json.RawMessage `json:"max_tokens,omitempty"`
	Prediction          json.RawMessage `json:"prediction,omitempty"`
	PresencePenalty     json.RawMessage `json:"presence_penalty,omitempty"`
	ReasoningEffort     json.RawMessage `json:"reasoning_effort,omitempty"`
	Seed                json.RawMessage `json:"seed,omitempty"`
	Stop                json.RawMessage `json:"stop,omitempty"`
	Verbosity           json.RawMessage `json:"verbosity,omitempty"`
	WebSearchOptions    json.RawMessage `json:"web_search_options,omitempty"`

	advice
}

// callerTools are the tools of the caller, and how it wants them used.
type callerTools struct {
	Tools             []json.RawMessage `json:"tools,omitempty"`
	ToolChoice        json.RawMessage   `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls,omitempty"`
}

// put adds them to a question.
func (c callerTools) put(q *question, inner string) error {
	tools, err := offer(c.Tools, inner)
	if err != nil {
		return err
	}
	q.one = c.ParallelToolCalls != nil && !*c.ParallelToolCalls
	q.tools, q.must, err = choose(tools, c.ToolChoice, inner)
	return err
}

// answerSchema is the form of an answer, as both of OpenAI's APIs describe it.
// The agent is held to the schema whether or not that is strict.
type answerSchema struct {
	Name        json.RawMessage `json:"name,omitempty"`
	Description json.RawMessage `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      json.RawMessage `json:"strict,omitempty"`
}

// form is the schema that an answer must fit, nil for free text. field is where
// the request asks for it.
func (a answerSchema) form(kind, field string) (json.RawMessage, error) {
	switch kind {
	case "", "text":
		return nil, nil
	case "json_object":
		return json.RawMessage(`{"type":"object"}`), nil
	case "json_schema":
		if !bytes.HasPrefix(bytes.TrimSpace(a.Schema), []byte("{")) {
			return nil, invalid(field, `%s: json_schema needs its "schema", a JSON Schema`, field)
		}
		return a.Schema, nil
	}
	return nil, invalid(field, "%s: the type %q is none of text, json_object, json_schema", field, kind)
}

// advice is what a caller of a model may set and an agent decides itself:
// known, so that clients which always send it work, and without effect.
type advice struct {
	Metadata             json.RawMessage `json:"metadata,omitempty"`
	Moderation           json.RawMessage `json:"moderation,omitempty"`
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key,omitempty"`
	PromptCacheOptions   json.RawMessage `json:"prompt_cache_options,omitempty"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention,omitempty"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier,omitempty"`
	ServiceTier          json.RawMessage `json:"service_tier,omitempty"`
	Store                json.RawMessage `json:"store,omitempty"`
	Temperature          json.RawMessage `json:"temperature,omitempty"`
	TopLogprobs          json.RawMessage `json:"top_logprobs,omitempty"`
	TopP                 json.RawMessage `json:"top_p,omitempty"`
}

// chatMessage is one message of the request.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	Refusal    string     `json:"refusal"`
	Name       string     `json:"name"`
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// UnmarshalJSON passes over fields that it does not know: clients send back
// what they were answered, with fields of their own and of other servers.
func (m *chatMessage) UnmarshalJSON(b []byte) error {
	type fields chatMessage
	if err := json.Unmarshal(b, (*fields)(m)); err != nil {
		return unreadable(err)
	}
	return nil
}

// JSONSchema is what the document says of it.
func (chatMessage) JSONSchema() *jsonschema.Schema {
	text := &jsonschema.Schema{Types: []string{"string", "null"}}
	return &jsonschema.Schema{Type: "object", Required: []string{"role"}, Properties: map[string]*jsonschema.Schema{
		"role":    {Type: "string", Enum: []any{"system", "developer", "user", "assistant", "tool"}},
		"content": content("").JSONSchema(), "refusal": text, "name": text, "tool_call_id": text,
		"tool_calls": {Types: []string{"array", "null"}, Items: &jsonschema.Schema{Type: "object"}},
	}}
}

// chatCall is a call of a caller's tool. Index is set in streams only.
type chatCall struct {
	Index    *int       `json:"index,omitempty"`
	ID       string     `json:"id,omitempty"`
	Type     string     `json:"type,omitempty"`
	Function chatCalled `json:"function"`
}

type chatCalled struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// check refuses what the agent would silently not do.
func (q chatRequest) check() error {
	switch {
	case len(q.Messages) == 0:
		return invalid("messages", `field "messages" is required`)
	case len(q.Functions) > 0:
		return invalid("functions", `functions were replaced by tools: give {"type": "function", "function": …} in "tools"`)
	case q.N != nil && *q.N != 1:
		return invalid("n", "only one choice can be given")
	case q.Logprobs:
		return invalid("logprobs", "log probabilities are not available")
	case slices.ContainsFunc(q.Modalities, func(m string) bool { return m != "text" }):
		return invalid("modalities", "only text can be given")
	}
	return nil
}

// entries are the messages.
func (q chatRequest) entries() ([]entry, error) {
	all := make([]entry, len(q.Messages))
	for i, m := range q.Messages {
		e := entry{role: m.Role, name: m.Name, text: string(m.Content), call: m.ToolCallID}
		switch m.Role {
		case "system", "developer", "user", "assistant":
		case "tool":
			if m.ToolCallID == "" {
				return nil, invalid("messages", "messages[%d]: a message of role tool needs its tool_call_id", i)
			}
		case "function":
			return nil, invalid("messages", `messages[%d]: role function was replaced by role tool`, i)
		default:
			return nil, invalid("messages", "messages[%d]: role %q is none of system, developer, user, assistant, tool", i, m.Role)
		}
		if e.text == "" {
			e.text = m.Refusal
		}
		for _, c := range m.ToolCalls {
			e.calls = append(e.calls, goclaw.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		all[i] = e
	}
	return all, nil
}

// readChat turns the request into a question.
func (s *server) readChat(r *http.Request) (c chatRequest, q question, err error) {
	if err := readJSON(r, &c, false); err != nil {
		return c, q, err
	}
	q = question{model: string(c.Model), user: c.User, stream: c.Stream, field: "messages"}
	if err := s.headers(r, &q); err != nil {
		return c, q, err
	}
	if err := c.check(); err != nil {
		return c, q, err
	}
	if q.entries, err = c.entries(); err != nil {
		return c, q, err
	}
	if q.schema, err = c.ResponseFormat.Schema.form(c.ResponseFormat.Type, "response_format"); err != nil {
		return c, q, err
	}
	if err := c.put(&q, "function"); err != nil {
		return c, q, err
	}
	return c, q, q.accept(c)
}
