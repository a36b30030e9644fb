package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"goclaw"
)

func TestSchema(t *testing.T) {
	many := make([]string, maxOptional+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d":{"type":"string"}`, i)
	}
	simple := `{"type":"object","properties":{"a":{"type":"string"}}}`
	for _, c := range []struct{ model, schema, want string }{
		{"", simple, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`},
		{"", `{"$schema":"x","type":"object","required":["a"],"properties":{
			"a":{"type":"array","minItems":2,"maxItems":9,"items":{"type":"integer","minimum":1}},"b":{"type":["string","null"],"minLength":1,"pattern":"x","format":"date"},
			"c":{"oneOf":[{"const":1},{"enum":["x",null],"description":"d"}]},"d":{"$ref":"#/$defs/e"},"f":{"type":"string","format":"odd"}},
			"$defs":{"e":{"type":"object","additionalProperties":false}}}`,
			`{"type":"object","required":["a"],"additionalProperties":false,"properties":{
			"a":{"type":"array","items":{"type":"integer"}},"b":{"type":["string","null"],"format":"date"},
			"c":{"anyOf":[{"const":1},{"enum":["x",null],"description":"d"}]},"d":{"$ref":"#/$defs/e"},"f":{"type":"string"}},
			"$defs":{"e":{"type":"object","additionalProperties":false,"properties":{}}}}`},
		{"claude-3-7-sonnet-20250219", simple, ""},
		{"claude-opus-4-1", simple, ""},
		{"claude-opus-4-7", simple, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`},
		{"test-model", simple, ""},
		{"", `{"type":"array","items":{"type":"string"}}`, ""},
		{"", `{"type":"object"}`, ""},
		{"", `{"type":"object","additionalProperties":{"type":"string"}}`, ""},
		{"", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`, ""},
		{"", `{"type":"object","properties":{"a":{}}}`, ""},
		{"", `{"type":"object","properties":{"a":true}}`, ""},
		{"", `{"type":"object","properties":{"a":{"type":["object","null"]}}}`, ""},
		{"", `{"type":"object","properties":{"a":{"enum":[[1]]}}}`, ""},
		{"", `{"type":"object","required":["b"],"properties":{"a":{"type":"string"}}}`, ""},
		{"", `{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"x":{"type":"string"}}}`, ""},
		{"", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, ""},
		{"", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, ""},
		{"", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/x"}}}}`, ""},
		{"", `{"type":"object","properties":{` + strings.Join(many, ",") + `}}`, ""},
		{"", `no schema`, ""},
		{"", ``, ""},
	} {
		model := c.model
		if model == "" {
			model = "claude-sonnet-4-5"
		}
		req := goclaw.ModelRequest{Model: model, Schema: json.RawMessage(c.schema), Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
		format(t, req, c.want)
		req.Messages = append(req.Messages, goclaw.Text(goclaw.RoleAssistant, "{"))
		format(t, req, "") // the answer is begun already
	}
}

// TestSchemaBesideEffort: both stand in output_config.
func TestSchemaBesideEffort(t *testing.T) {
	req := goclaw.ModelRequest{Model: "claude-opus-4-7", Thinking: "high", Schema: json.RawMessage(`{"type":"object","properties":{}}`),
		Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
	if got := encode(t, New(Options{}), req); !strings.Contains(got, `"effort":"high"`) || !strings.Contains(got, `"type":"json_schema"`) {
		t.Error(got)
	}
}

func format(t *testing.T, req goclaw.ModelRequest, want string) {
	t.Helper()
	got := encode(t, New(Options{}), req)
	var body struct {
		OutputConfig struct {
			Format *struct {
				Type   string
				Schema json.RawMessage
			}
		} `json:"output_config"`
	}
	if err := json.Unmarshal([]byte(got), &body); err != nil {
		t.Fatal(err)
	}
	switch f := body.OutputConfig.Format; {
	case want == "" && f == nil:
	case want == "" || f == nil || f.Type != "json_schema":
		t.Errorf("%s with %s: %s, want %q", req.Model, req.Schema, got, want)
	default:
		same(t, string(f.Schema), want)
	}
}

// FuzzSchema: whatever the schema is, the request can be encoded.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		req := goclaw.ModelRequest{Model: "claude-sonnet-4-5", Schema: json.RawMessage(schema), Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
		if _, err := New(Options{}).Encode(req); err != nil {
			t.Error(err)
		}
	})
}
