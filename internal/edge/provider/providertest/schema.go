package providertest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// answerFormat is the form of the answer that a request asks for, on either
// wire.
type answerFormat struct {
	Type       string          `json:"type"`
	Schema     json.RawMessage `json:"schema"`
	JSONSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

var formatName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// answerForm reads what a request asks of the answer, refusing what the real
// APIs refuse.
func (r *Request) answerForm(body wireBody) error {
	r.Temperature, r.Stop = body.Temperature, slices.Concat(body.StopSequences, body.Stop)
	f, what := body.OutputConfig.Format, "output_config.format"
	if r.Wire == WireOpenAI {
		f, what = body.ResponseFormat, "response_format"
	}
	if f == nil {
		return nil
	}
	r.Schema = f.Schema
	if r.Wire == WireOpenAI {
		r.Schema, r.Strict = f.JSONSchema.Schema, f.JSONSchema.Strict
		if !formatName.MatchString(f.JSONSchema.Name) {
			return fmt.Errorf("%s: the name %q is not valid", what, f.JSONSchema.Name)
		}
	}
	var root any
	if f.Type != "json_schema" || json.Unmarshal(r.Schema, &root) != nil {
		return fmt.Errorf("%s: want the type json_schema, and a schema", what)
	}
	if m, ok := root.(map[string]any); !ok || m["type"] != "object" {
		return fmt.Errorf("%s: the schema's root is no object", what)
	}
	if r.Wire == WireAnthropic || r.Strict {
		if why := loose(root, r.Wire); why != "" {
			return fmt.Errorf("%s: %s", what, why)
		}
	}
	return nil
}

// loose says what keeps a schema from being enforced.
func loose(v any, wire string) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if why := loose(item, wire); why != "" {
				return why
			}
		}
	case map[string]any:
		properties, _ := v["properties"].(map[string]any)
		required, _ := v["required"].([]any)
		switch {
		case v["type"] == "object" && v["additionalProperties"] != false:
			return "additionalProperties must be false for every object"
		case v["type"] == "object" && wire == WireOpenAI && len(required) != len(properties):
			return "required must list every property"
		}
		for key, item := range v {
			if key == "properties" || key == "$defs" {
				parts, _ := item.(map[string]any)
				for _, part := range parts {
					if why := loose(part, wire); why != "" {
						return why
					}
				}
				continue
			}
			if unsupported := []string{"minimum", "maximum", "minLength", "maxLength", "pattern", "multipleOf", "oneOf"}; wire == WireAnthropic && slices.Contains(unsupported, key) {
				return key + " is not supported"
			}
			if why := loose(item, wire); why != "" && key != "enum" && key != "const" {
				return why
			}
		}
	}
	return ""
}
