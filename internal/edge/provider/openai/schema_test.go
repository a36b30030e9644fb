package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"goclaw"
)

func TestSchema(t *testing.T) {
	deep := `{"type":"string"}`
	for range 11 {
		deep = `{"type":"object","additionalProperties":false,"required":["x"],"properties":{"x":` + deep + `}}`
	}
	for _, c := range []struct{ model, schema, want string }{
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"required":["b","a"],"properties":{"b":{"type":["string","null"]},"a":{"anyOf":[{"type":"integer","minimum":1},{"$ref":"#/$defs/l"}]}},"$defs":{"l":{"type":"array","items":{"enum":["x"],"type":"string"}}}}`, "strict"},
		{"local/model", `{"type":"object","additionalProperties":false,"properties":{}}`, "strict"},
		{"gpt-4.1", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "loose"},
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`, "loose"},
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string","minLength":1}}}`, "loose"},
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"object"}}}`, "loose"},
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{}}}`, "loose"},
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"array"}}}`, "loose"},
		{"gpt-4.1", `{"type":"object","additionalProperties":false,"anyOf":[]}`, "loose"},
		{"gpt-4.1", deep, "loose"},
		{"gpt-4.1", `{"type":"array","items":{"type":"string"}}`, ""},
		{"gpt-4.1", ``, ""},
		{"gpt-4-turbo", `{"type":"object"}`, ""},
		{"openai/gpt-3.5-turbo", `{"type":"object"}`, ""},
	} {
		req := goclaw.ModelRequest{Model: c.model, Schema: json.RawMessage(c.schema), Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
		got := encode(t, New(Options{}), req)
		var body struct {
			Format *struct {
				Type       string
				JSONSchema struct {
					Name   string
					Strict *bool
					Schema json.RawMessage
				} `json:"json_schema"`
			} `json:"response_format"`
		}
		if err := json.Unmarshal([]byte(got), &body); err != nil {
			t.Fatal(err)
		}
		f := body.Format
		switch {
		case c.want == "" && f == nil:
		case c.want == "" || f == nil || f.Type != "json_schema" || f.JSONSchema.Name != "answer" || f.JSONSchema.Strict == nil:
			t.Errorf("%s %s: %s, want %q", c.model, c.schema, got, c.want)
		case *f.JSONSchema.Strict != (c.want == "strict") || string(f.JSONSchema.Schema) != c.schema:
			t.Errorf("%s, want %s, as it is", got, c.want)
		}
	}
}

// TestReasoningModels get no temperature and no stop sequences.
func TestReasoningModels(t *testing.T) {
	temperature := 0.2
	for model, plain := range map[string]bool{
		"o3": false, "openai/o4-mini": false, "gpt-5": false, "gpt-5-mini-2025-08-07": false,
		"gpt-5-chat-latest": true, "gpt-4o": true, "olmo": true, "o": true, "": true,
	} {
		got := encode(t, New(Options{}), goclaw.ModelRequest{Model: model, Temperature: &temperature, Stop: []string{"</plan>"}})
		if strings.Contains(got, `"temperature":0.2`) != plain || strings.Contains(got, `"stop":[`) != plain {
			t.Errorf("%s: %s", model, got)
		}
	}
}
