package web

import (
	"bytes"
	"cmp"
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

// choice is what tool_choice may be besides a word: a function that must be
// called, or those that may be. Chat completions keep both one level deeper.
type choice struct {
	Type     string            `json:"type"`
	Name     string            `json:"name"`
	Mode     string            `json:"mode"`
	Tools    []json.RawMessage `json:"tools"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
	Allowed struct {
		Mode  string            `json:"mode"`
		Tools []json.RawMessage `json:"tools"`
	} `json:"allowed_tools"`
}

// choose applies tool_choice to the tools: which are offered, and of which the
// agent must call one. inner is as for offer.
func choose(tools []goclaw.ToolSpec, raw json.RawMessage, inner string) (offered []goclaw.ToolSpec, must []string, err error) {
	var c choice
	mode := "auto"
	if len(raw) > 0 && json.Unmarshal(raw, &mode) != nil {
		if json.Unmarshal(raw, &c) != nil {
			return nil, nil, invalid("tool_choice", "unreadable tool_choice: give auto, none, required, or an object that names a function")
		}
		mode = c.Type
	}
	if inner != "" {
		c.Name, c.Mode, c.Tools = c.Function.Name, c.Allowed.Mode, c.Allowed.Tools
	}
	switch mode {
	case "auto":
		return tools, nil, nil
	case "none":
		return nil, nil, nil
	case "function":
		must = []string{c.Name}
	case "required":
		must = names(tools)
	case "allowed_tools":
		if tools, err = allowed(tools, c.Tools); err != nil {
			return nil, nil, err
		}
		if c.Mode != "required" {
			return tools, nil, nil
		}
		must = names(tools)
	default:
		return nil, nil, invalid("tool_choice", "tool_choice %q is not available: it can be auto, none, required, a function of the caller, or allowed_tools", mode)
	}
	if len(must) == 0 || !slices.ContainsFunc(tools, func(t goclaw.ToolSpec) bool { return slices.Contains(must, t.Name) }) {
		return nil, nil, invalid("tool_choice", "tool_choice asks for a call of a tool that is not in \"tools\"")
	}
	return tools, must, nil
}

// allowed are the tools that a list names.
func allowed(tools []goclaw.ToolSpec, list []json.RawMessage) (some []goclaw.ToolSpec, err error) {
	for _, raw := range list {
		var c choice
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, invalid("tool_choice", "unreadable tool in allowed_tools: %v", err)
		}
		name := cmp.Or(c.Function.Name, c.Name)
		i := slices.IndexFunc(tools, func(t goclaw.ToolSpec) bool { return t.Name == name })
		if i < 0 {
			return nil, invalid("tool_choice", "allowed_tools names %q, which is not in \"tools\"", name)
		}
		some = append(some, tools[i])
	}
	return some, nil
}

func names(tools []goclaw.ToolSpec) []string {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
	}
	return all
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
