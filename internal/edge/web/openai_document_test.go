package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw"
)

// fits checks JSON against a schema of the document.
func fits(t *testing.T, raw []byte, schema, text string) {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	defs := strings.ReplaceAll(string(doc.Components.Schemas), "#/components/schemas/", "#/$defs/")
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(`{"$ref":"#/$defs/`+schema+`","$defs":`+defs+`}`), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if err := resolved.Validate(v); err != nil {
		t.Errorf("%s: %v\n%s", schema, err, text)
	}
}

// TestOpenAIAnswersFitTheDocument, and the requests that they answer.
func TestOpenAIAnswersFitTheDocument(t *testing.T) {
	raw, _ := served(t, gateway(&fake{}))
	const tools = `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]`
	for _, stream := range []string{"false", "true"} {
		for request, schemas := range map[string][3]string{
			`{"model":"goclaw","stream":` + stream + `,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],` + tools + `}`: {"/v1/chat/completions", "ChatRequest", "ChatAnswer"},
			`{"model":"goclaw/main","stream":` + stream + `,"input":[{"role":"user","content":"x"}],"instructions":"y","tools":[{"type":"function","name":"look"}]}`: {
				"/v1/responses", "ResponseRequest", "Response"},
		} {
			for _, rounds := range [][][]goclaw.ToolCall{nil, {{look("1", `{}`)}}} {
				fits(t, raw, schemas[1], request)
				w := ask(gateway(newLoop(rounds...).fake), "POST", schemas[0], request, nil)
				if w.Code != 200 {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				if stream == "false" {
					fits(t, raw, schemas[2], w.Body.String())
					continue
				}
				schema := strings.Replace(schemas[2], "Response", "Happening", 1)
				for line := range strings.Lines(w.Body.String()) {
					if data, ok := strings.CutPrefix(line, "data: {"); ok {
						fits(t, raw, schema, "{"+data)
					}
				}
			}
		}
	}
}
