package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw"
)

// responseRequest is the body of POST /v1/responses.
type responseRequest struct {
	Model              modelName         `json:"model"`
	Input              responseInput     `json:"input"`
	Instructions       content           `json:"instructions,omitempty"`
	PreviousResponseID string            `json:"previous_response_id,omitempty"`
	User               string            `json:"user,omitempty"`
	Stream             bool              `json:"stream,omitempty"`
	Background         bool              `json:"background,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
	callerTools

	// Refused when they ask for something.
	Conversation json.RawMessage `json:"conversation,omitempty"`
	Prompt       json.RawMessage `json:"prompt,omitempty"`
	Text         struct {
		Format    responseFormat  `json:"format,omitzero"`
		Verbosity json.RawMessage `json:"verbosity,omitempty"`
	} `json:"text,omitempty"`

	// Only responses know these, and they are without effect.
	ContextManagement json.RawMessage `json:"context_management,omitempty"`
	Include           json.RawMessage `json:"include,omitempty"`
	MaxOutputTokens   json.RawMessage `json:"max_output_tokens,omitempty"`
	MaxToolCalls      json.RawMessage `json:"max_tool_calls,omitempty"`
	Reasoning         json.RawMessage `json:"reasoning,omitempty"`
	StreamOptions     json.RawMessage `json:"stream_options,omitempty"`
	Truncation        json.RawMessage `json:"truncation,omitempty"`

	advice
}

// responseFormat is the form that the answer shall have.
type responseFormat struct {
	Type string `json:"type"`
	answerSchema
}

// check refuses what the agent would silently not do.
func (b responseRequest) check() error {
	set := func(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }
	switch {
	case len(b.Input.entries) == 0:
		return invalid("input", `field "input" is required`)
	case set(b.Conversation):
		return invalid("conversation", "conversations are not available: a session is found by previous_response_id, by user, or by the header X-GoClaw-Session")
	case set(b.Prompt):
		return invalid("prompt", "stored prompts are not available: the agent has its own")
	}
	return nil
}

// referred is the role of an entry that stands for an item of an earlier answer,
// by its id.
const referred = "item_reference"

// responseInput is the conversation of a request: a text, or a list of items.
type responseInput struct {
	entries []entry
	raw     json.RawMessage
}

// MarshalJSON gives what was read, so that requests can be compared.
func (in responseInput) MarshalJSON() ([]byte, error) { return json.Marshal(in.raw) }

// JSONSchema is what the document says of it.
func (responseInput) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Description: "a text, or a list of items: message, function_call, function_call_output, item_reference",
		AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "object"}}}}
}

// UnmarshalJSON refuses items that it would have to ignore.
func (in *responseInput) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	in.raw = bytes.Clone(b)
	if len(b) == 0 || b[0] != '[' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return invalid("input", "input must be a text or a list of items")
		}
		if text != "" {
			in.entries = []entry{{role: "user", text: text}}
		}
		return nil
	}
	var items []responseItem
	if err := json.Unmarshal(b, &items); err != nil {
		if f, ok := errors.AsType[failure](err); ok {
			return f
		}
		return invalid("input", "unreadable items: %v", err)
	}
	for i, it := range items {
		e, err := it.entry(i)
		if err != nil {
			return err
		}
		if e.role != "" {
			in.entries = append(in.entries, e)
		}
	}
	return nil
}

// responseItem is an item of the input. Fields that it lacks are of no use here.
type responseItem struct {
	Type      string  `json:"type,omitempty"`
	Role      string  `json:"role"`
	ID        string  `json:"id,omitempty"`
	Content   content `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments string  `json:"arguments,omitempty"`
	Output    content `json:"output,omitempty"`
}

// entry is the item, or nothing for a model's own reasoning, of which an agent
// keeps its own.
func (it responseItem) entry(i int) (entry, error) {
	if it.Type == "" && it.Role == "" && it.ID != "" {
		it.Type = referred
	}
	switch it.Type {
	case "", "message":
		if !slices.Contains([]string{"system", "developer", "user", "assistant"}, it.Role) {
			return entry{}, invalid("input", "input[%d]: role %q is none of system, developer, user, assistant", i, it.Role)
		}
		return entry{role: it.Role, text: string(it.Content)}, nil
	case "function_call":
		return entry{role: "assistant", calls: []goclaw.ToolCall{{ID: it.CallID, Name: it.Name, Arguments: it.Arguments}}}, nil
	case "function_call_output":
		if it.CallID == "" {
			return entry{}, invalid("input", "input[%d]: a function_call_output needs its call_id", i)
		}
		return entry{role: "tool", call: it.CallID, text: string(it.Output)}, nil
	case referred:
		return entry{role: referred, call: it.ID}, nil
	case "reasoning":
		return entry{}, nil
	}
	return entry{}, invalid("input", "input[%d]: items of type %q are not accepted", i, it.Type)
}

// readResponse turns the request into a question.
func (s *server) readResponse(r *http.Request) (b responseRequest, q question, err error) {
	if err := readJSON(r, &b, false); err != nil {
		return b, q, err
	}
	q = question{model: string(b.Model), user: b.User, stream: b.Stream, field: "input", orders: true}
	if err := s.headers(r, &q); err != nil {
		return b, q, err
	}
	if err := b.check(); err != nil {
		return b, q, err
	}
	if q.schema, err = b.Text.Format.form(b.Text.Format.Type, "text.format"); err != nil {
		return b, q, err
	}
	if err := b.put(&q, ""); err != nil {
		return b, q, err
	}
	if err := q.accept(b); err != nil {
		return b, q, err
	}
	if q.entries, err = s.resolve(r.Context(), b.Input.entries); err != nil {
		return b, q, err
	}
	q.rules = string(b.Instructions)
	if b.PreviousResponseID == "" {
		return b, q, nil
	}
	p, _, ok := parsePlace("resp_", b.PreviousResponseID)
	log, err := s.recorded(r.Context(), p, ok)
	if errors.Is(err, goclaw.ErrNotFound) {
		err = failure{Status: http.StatusBadRequest, Param: "previous_response_id", Code: "previous_response_not_found",
			Detail: "there is no response " + b.PreviousResponseID}
	}
	if err != nil {
		return b, q, err
	}
	key := log.Run.Session
	if !q.fresh && q.session != key || q.named && q.agent != key.Agent {
		return b, q, invalid("previous_response_id", "the response %s is of the session %s, not of the one that the request names", b.PreviousResponseID, key)
	}
	q.session, q.fresh = key, false
	return b, q, nil
}

// recorded is the record of the run that an id leads to.
func (s *server) recorded(ctx context.Context, p place, ok bool) (goclaw.RunLog, error) {
	if !ok {
		return goclaw.RunLog{}, goclaw.ErrNotFound
	}
	log, err := s.Backend.RunLog(ctx, p.run)
	if err == nil && log.Run.ID != p.run {
		err = goclaw.ErrNotFound // the id was a prefix of another
	}
	return log, err
}

// resolve looks up the items that are only referred to.
func (s *server) resolve(ctx context.Context, in []entry) ([]entry, error) {
	all := slices.Clone(in)
	for i, e := range all {
		if e.role != referred {
			continue
		}
		found, err := s.item(ctx, e.call)
		if errors.Is(err, goclaw.ErrNotFound) {
			err = invalid("input", "input[%d]: there is no item %s", i, e.call)
		}
		if err != nil {
			return nil, err
		}
		all[i] = found
	}
	return all, nil
}

// item finds an output item of an earlier response.
func (s *server) item(ctx context.Context, id string) (entry, error) {
	if at, ok := parseCallID(id); ok && strings.HasPrefix(id, "fc_") {
		log, err := s.recorded(ctx, at, true)
		if err != nil {
			return entry{}, err
		}
		if replies := repliesOf(log); at.reply <= len(replies) {
			for _, c := range replies[at.reply-1].calls {
				if c.ID = callID(at.run, at.reply, c.ID); fcID(c.ID) == id {
					return entry{role: "assistant", calls: []goclaw.ToolCall{c}}, nil
				}
			}
		}
		return entry{}, goclaw.ErrNotFound
	}
	p, one, ok := parsePlace("msg_", id)
	log, err := s.recorded(ctx, p, ok && !one)
	if err != nil {
		return entry{}, err
	}
	a := recordedAnswer(log, p.reply, false)
	return entry{role: "assistant", text: strings.Join(a.replies, blank)}, nil
}
