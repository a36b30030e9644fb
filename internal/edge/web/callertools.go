package web

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw"
)

// function is a tool of the caller, as both of OpenAI's APIs describe it.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`

	// Strict asks for arguments that fit the parameters: they always do, for a
	// call that does not fit goes back to the model.
	Strict *bool `json:"strict"`
}

func (f function) spec() goclaw.ToolSpec {
	schema := f.Parameters
	if len(schema) == 0 || bytes.Equal(schema, []byte("null")) {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return goclaw.ToolSpec{Name: f.Name, Description: f.Description, Schema: schema}
}

// offer turns the tools of a request into what the agent is offered. inner is
// where a tool keeps its function: under that name, or "" for in itself.
func offer(tools []json.RawMessage, inner string) ([]goclaw.ToolSpec, error) {
	var specs []goclaw.ToolSpec
	for _, raw := range tools {
		fields := map[string]json.RawMessage{}
		var kind string
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, invalid("tools", "unreadable tool: %v", err)
		}
		_ = json.Unmarshal(fields["type"], &kind) // what is no text is no known type
		if kind != "function" {
			return nil, invalid("tools", "tools of type %q are not available: only functions of the caller are, and the agent's own tools", kind)
		}
		text := []byte(fields[inner])
		if inner == "" {
			delete(fields, "type")
			text, _ = json.Marshal(fields) // it was JSON
		}
		if len(text) == 0 {
			return nil, invalid("tools", "a tool of type function needs its %q", inner)
		}
		var f function
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			return nil, invalid("tools", "unreadable function: %v", err)
		}
		if f.Name == "" {
			return nil, invalid("tools", "a function needs a name")
		}
		specs = append(specs, f.spec())
	}
	return specs, nil
}

// choose applies tool_choice: auto offers the tools, none does not. The model
// can't be made to call one.
func choose(tools []goclaw.ToolSpec, choice json.RawMessage) ([]goclaw.ToolSpec, error) {
	var mode string
	if len(choice) > 0 && json.Unmarshal(choice, &mode) != nil {
		mode = "a named tool"
	}
	if !slices.Contains([]string{"", "auto", "none"}, mode) {
		return nil, invalid("tool_choice", "tool_choice can only be auto or none, not %s: the agent decides itself which tool it calls", mode)
	}
	if mode == "none" {
		return nil, nil
	}
	return tools, nil
}

// content is a text, which may come as a string, as a list of text parts, or as
// null.
type content string

// JSONSchema is what the document says of it.
func (content) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Description: "a text, or a list of parts of text",
		AnyOf: []*jsonschema.Schema{{Types: []string{"string", "null"}}, {Type: "array", Items: &jsonschema.Schema{Type: "object"}}}}
}

// UnmarshalJSON refuses parts that are no text.
func (c *content) UnmarshalJSON(b []byte) error {
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
		return invalid("", "unreadable content parts: %v", err)
	}
	var text []byte
	for i, p := range parts {
		if i > 0 {
			text = append(text, '\n')
		}
		switch p.Type {
		case "text", "input_text", "output_text":
			text = append(text, p.Text...)
		case "refusal":
			text = append(text, p.Refusal...)
		default:
			return invalid("", "content parts of type %q are not accepted: only text is", p.Type)
		}
	}
	*c = content(text)
	return nil
}
