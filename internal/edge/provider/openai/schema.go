package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// answerName is what the API wants an answer to be called.
const answerName = "answer"

// The API's limits of a strict schema.
const (
	maxStrictDepth      = 10
	maxStrictProperties = 1000
)

// answerFormat is the wire form of a schema: the SDK's own type would lose the
// order of its keys, in which the model writes.
type answerFormat struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// setSchema asks for an answer in JSON. The root must be an object, and old
// models know no schemas: there it asks for nothing.
func setSchema(p *sdk.ChatCompletionNewParams, schema json.RawMessage) {
	var root node
	if len(schema) == 0 || schemaless(p.Model) || json.Unmarshal(schema, &root) != nil || !root.is("object") {
		return
	}
	s := strictness{left: maxStrictProperties}
	f := answerFormat{Name: answerName, Strict: s.allows(schema, 0), Schema: schema}
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: param.Override[shared.ResponseFormatJSONSchemaJSONSchemaParam](f),
	}
}

// schemaless are OpenAI's models from before structured outputs.
func schemaless(model string) bool {
	name := modelName(model)
	return name == "gpt-4" || name == "gpt-4o-2024-05-13" || slices.ContainsFunc([]string{"gpt-3.5", "gpt-4-", "o1-mini", "o1-preview"}, func(old string) bool {
		return strings.HasPrefix(name, old)
	})
}

// modelName is a model's name without the vendor that some servers put before
// it.
func modelName(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// reasons reports whether a model is one of OpenAI's that always reason: they
// refuse stop sequences and temperatures.
func reasons(model string) bool {
	name := modelName(model)
	if len(name) > 1 && name[0] == 'o' && name[1] >= '1' && name[1] <= '9' {
		return true
	}
	return strings.HasPrefix(name, "gpt-5") && !strings.Contains(name, "chat")
}

// node is what matters of a schema.
type node struct {
	Type                 json.RawMessage            `json:"type"`
	Properties           map[string]json.RawMessage `json:"properties"`
	Required             []string                   `json:"required"`
	AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	Items                json.RawMessage            `json:"items"`
	AnyOf                []json.RawMessage          `json:"anyOf"`
	Defs                 map[string]json.RawMessage `json:"$defs"`
	Ref                  string                     `json:"$ref"`
}

func (n node) is(kind string) bool { return string(bytes.TrimSpace(n.Type)) == `"`+kind+`"` }

// strictKeys are the keywords of a schema that may be strict.
var strictKeys = [...]string{
	"type", "properties", "required", "additionalProperties", "items", "anyOf", "$defs", "$ref", "enum", "const", "description", "title",
	"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}

// strictness decides whether the API takes a schema as strict: every object
// closed and all of its properties required, and only keywords that it knows.
type strictness struct{ left int }

func (s *strictness) allows(raw json.RawMessage, depth int) bool {
	var keys map[string]json.RawMessage
	var n node
	if depth > maxStrictDepth || json.Unmarshal(raw, &keys) != nil || json.Unmarshal(raw, &n) != nil {
		return false
	}
	for key := range keys {
		if !slices.Contains(strictKeys[:], key) {
			return false
		}
	}
	if depth == 0 && n.AnyOf != nil || n.Type == nil && n.AnyOf == nil && n.Ref == "" {
		return false
	}
	if object := bytes.Contains(n.Type, []byte(`"object"`)); object && !n.closed() || !object && n.Properties != nil {
		return false
	}
	if s.left -= len(n.Properties); s.left < 0 || bytes.Contains(n.Type, []byte(`"array"`)) && n.Items == nil {
		return false
	}
	below := slices.Clone(n.AnyOf)
	if n.Items != nil {
		below = append(below, n.Items)
	}
	for _, m := range []map[string]json.RawMessage{n.Properties, n.Defs} {
		for _, p := range m {
			below = append(below, p)
		}
	}
	return !slices.ContainsFunc(below, func(p json.RawMessage) bool { return !s.allows(p, depth+1) })
}

// closed reports whether an object has exactly its properties.
func (n node) closed() bool {
	if string(bytes.TrimSpace(n.AdditionalProperties)) != "false" || len(n.Required) != len(n.Properties) {
		return false
	}
	for _, name := range n.Required {
		if _, ok := n.Properties[name]; !ok {
			return false
		}
	}
	return true
}
