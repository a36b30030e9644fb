package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"goclaw"
)

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	User          string        `json:"user"`
	Stream        bool          `json:"stream"`
	StreamOptions struct {
		IncludeUsage       bool            `json:"include_usage"`
		IncludeObfuscation json.RawMessage `json:"include_obfuscation"`
	} `json:"stream_options"`

	// Refused when they ask for something.
	Tools          []json.RawMessage `json:"tools"`
	Functions      []json.RawMessage `json:"functions"`
	N              *int              `json:"n"`
	Modalities     []string          `json:"modalities"`
	Logprobs       bool              `json:"logprobs"`
	ResponseFormat struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"json_schema"`
	} `json:"response_format"`

	advice
}

// advice is what a caller of a model may set and an agent decides itself:
// known, so that clients which always send it work, and without effect.
type advice struct {
	Audio                json.RawMessage `json:"audio"`
	FrequencyPenalty     json.RawMessage `json:"frequency_penalty"`
	FunctionCall         json.RawMessage `json:"function_call"`
	LogitBias            json.RawMessage `json:"logit_bias"`
	MaxCompletionTokens  json.RawMessage `json:"max_completion_tokens"`
	MaxTokens            json.RawMessage `json:"max_tokens"`
	Metadata             json.RawMessage `json:"metadata"`
	Moderation           json.RawMessage `json:"moderation"`
	ParallelToolCalls    json.RawMessage `json:"parallel_tool_calls"`
	Prediction           json.RawMessage `json:"prediction"`
	PresencePenalty      json.RawMessage `json:"presence_penalty"`
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key"`
	PromptCacheOptions   json.RawMessage `json:"prompt_cache_options"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	ReasoningEffort      json.RawMessage `json:"reasoning_effort"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier"`
	Seed                 json.RawMessage `json:"seed"`
	ServiceTier          json.RawMessage `json:"service_tier"`
	Stop                 json.RawMessage `json:"stop"`
	Store                json.RawMessage `json:"store"`
	Temperature          json.RawMessage `json:"temperature"`
	ToolChoice           json.RawMessage `json:"tool_choice"`
	TopLogprobs          json.RawMessage `json:"top_logprobs"`
	TopP                 json.RawMessage `json:"top_p"`
	Verbosity            json.RawMessage `json:"verbosity"`
	WebSearchOptions     json.RawMessage `json:"web_search_options"`
}

// chatMessage is one message of the request. The fields after Content come
// back when a client echoes answers of this or another server.
type chatMessage struct {
	Role    string      `json:"role"`
	Content chatContent `json:"content"`

	Name             string          `json:"name"`
	Refusal          string          `json:"refusal"`
	ToolCallID       string          `json:"tool_call_id"`
	ToolCalls        json.RawMessage `json:"tool_calls"`
	FunctionCall     json.RawMessage `json:"function_call"`
	Annotations      json.RawMessage `json:"annotations"`
	Audio            json.RawMessage `json:"audio"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
}

// chatContent is a message's text, which may come as a string, as a list of
// text parts, or for an assistant as null.
type chatContent string

// UnmarshalJSON refuses parts that are no text.
func (c *chatContent) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, (*string)(c))
	}
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return invalid("messages", "unreadable content parts: %v", err)
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		switch p.Type {
		case "text":
			texts[i] = p.Text
		case "refusal":
			texts[i] = p.Refusal
		default:
			return invalid("messages", "content parts of type %q are not accepted: only text is", p.Type)
		}
	}
	*c = chatContent(strings.Join(texts, "\n"))
	return nil
}

// check refuses what the agent would silently not do.
func (q chatRequest) check() error {
	switch {
	case len(q.Messages) == 0:
		return invalid("messages", `field "messages" is required`)
	case len(q.Tools) > 0:
		return invalid("tools", "tools of the caller are not supported: the agent uses its own")
	case len(q.Functions) > 0:
		return invalid("functions", "functions of the caller are not supported: the agent uses its own tools")
	case q.N != nil && *q.N != 1:
		return invalid("n", "only one choice can be given")
	case q.Logprobs:
		return invalid("logprobs", "log probabilities are not available")
	case slices.ContainsFunc(q.Modalities, func(m string) bool { return m != "text" }):
		return invalid("modalities", "only text can be given")
	case q.ResponseFormat.Type != "" && q.ResponseFormat.Type != "text":
		return invalid("response_format", "response_format %q is not supported: the agent answers in text", q.ResponseFormat.Type)
	}
	return nil
}

// split separates what the session holds already from the new input: the user
// messages after the last assistant message.
func (q chatRequest) split() (earlier []chatMessage, input string, err error) {
	var texts []string
	for i, m := range q.Messages {
		switch m.Role {
		case "user":
			texts = append(texts, string(m.Content))
		case "assistant":
			texts = nil
		case "system", "developer":
		case "tool", "function":
			if i == len(q.Messages)-1 {
				return nil, "", invalid("messages", "tool results of the caller are not supported: the agent uses its own tools")
			}
		default:
			return nil, "", invalid("messages", "messages[%d]: role %q is none of system, developer, user, assistant, tool", i, m.Role)
		}
	}
	input = strings.Join(texts, "\n\n")
	if strings.TrimSpace(input) == "" {
		return nil, "", invalid("messages", "there is no new text: the conversation must end with a message of role user")
	}
	last := -1
	for i, m := range q.Messages {
		if m.Role == "assistant" {
			last = i
		}
	}
	for i, m := range q.Messages {
		if i <= last || m.Role != "user" {
			earlier = append(earlier, m)
		}
	}
	return earlier, input, nil
}

// withEarlier puts messages that the session does not hold before its input.
func withEarlier(earlier []chatMessage, input string) string {
	var b strings.Builder
	b.WriteString("[Earlier conversation, as the client sent it]\n")
	for _, m := range earlier {
		name := m.Role
		if m.Name != "" {
			name += " (" + m.Name + ")"
		}
		text := string(m.Content)
		if text == "" {
			text = m.Refusal
		}
		if calls := string(m.ToolCalls); calls != "" && calls != "null" {
			text = strings.TrimSpace(text + "\n[tool calls: " + calls + "]")
		}
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	b.WriteString("[End of the earlier conversation]\n\n")
	return b.String() + input
}

// agentOf finds the agent that a model's name means; named says that the name
// chose it, rather than the default.
func (s *server) agentOf(model string) (agent string, named bool, err error) {
	if model == "goclaw" {
		return s.Agents[0], false, nil
	}
	if agent, ok := strings.CutPrefix(model, "goclaw/"); ok && slices.Contains(s.Agents, agent) {
		return agent, true, nil
	}
	return "", false, failure{Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Detail: fmt.Sprintf("the model %q does not exist: use goclaw or goclaw/<agent>, as /v1/models lists them", model)}
}

// sessionOf decides whose conversation a request belongs to. fresh says that
// nobody can have used it before.
func (s *server) sessionOf(r *http.Request, q chatRequest) (key goclaw.SessionKey, fresh bool, err error) {
	agent, named, err := s.agentOf(q.Model)
	if err != nil {
		return key, false, err
	}
	if text := r.Header.Get("X-GoClaw-Session"); text != "" {
		if key, err = goclaw.ParseSessionKey(text); err != nil {
			return key, false, invalid("X-GoClaw-Session", "header X-GoClaw-Session: %v", err)
		}
		if named && key.Agent != agent {
			return key, false, invalid("X-GoClaw-Session", "the session %s is not of the agent %q that the model names", key, agent)
		}
		return key, false, nil
	}
	if q.User != "" {
		return goclaw.APIKey(agent, q.User), false, nil
	}
	return goclaw.APIKey(agent, "req-"+uuid.NewString()), true, nil
}

// readChat turns the request into the message to receive and how to answer it.
func (s *server) readChat(r *http.Request) (q chatRequest, in goclaw.Inbound, wait bool, err error) {
	if err := readJSON(r, &q, false); err != nil {
		return q, in, false, err
	}
	if text := r.Header.Get("X-GoClaw-Wait"); text != "" {
		if wait, err = strconv.ParseBool(text); err != nil {
			return q, in, false, invalid("X-GoClaw-Wait", "header X-GoClaw-Wait: want true or false, not %q", text)
		}
	}
	key, fresh, err := s.sessionOf(r, q)
	if err != nil {
		return q, in, false, err
	}
	if err := q.check(); err != nil {
		return q, in, false, err
	}
	earlier, input, err := q.split()
	if err != nil {
		return q, in, false, err
	}
	if len(earlier) > 0 {
		if !fresh {
			runs, err := s.Backend.Runs(r.Context(), goclaw.RunFilter{Session: key, Limit: 1})
			if err != nil {
				return q, in, false, err
			}
			fresh = len(runs) == 0
		}
		if fresh {
			input = withEarlier(earlier, input)
		}
	}
	return q, goclaw.Inbound{Session: key, Text: input, Sender: q.User, Key: once(r)}, wait, nil
}
