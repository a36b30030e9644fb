package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// The API's limits of what a schema may leave open.
const (
	maxOptional = 24
	maxUnions   = 16
)

// setSchema asks for an answer in JSON where the model can and the schema
// allows it. p's messages are set already.
func setSchema(p *sdk.MessageNewParams, schema json.RawMessage) {
	n := len(p.Messages)
	if len(schema) == 0 || !parseGeneration(p.Model).structured() || n > 0 && p.Messages[n-1].Role == sdk.MessageParamRoleAssistant {
		return // a prefilled answer and a schema exclude each other
	}
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil || root["type"] != "object" {
		return
	}
	s := simplifier{refs: map[string][]string{}}
	simple, ok := s.simplify(root)
	defs, _ := root["$defs"].(map[string]any)
	if ok && defs != nil {
		ok = s.defs(simple, defs)
	}
	if ok && s.grounded(defs) && s.optional <= maxOptional && s.unions <= maxUnions {
		p.OutputConfig.Format = sdk.JSONOutputFormatParam{Schema: simple}
	}
}

// structured models take a schema.
func (g generation) structured() bool { return g.atLeast(4, 5) || g.restless() }

// kept are keywords that go as they are, dropped those that narrow what the
// answer may be, which the caller checks anyway. Any other keyword gives the
// whole schema up: without it, it would mean something else.
var (
	kept    = [...]string{"description", "title", "const"}
	dropped = [...]string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "maxItems", "uniqueItems",
		"minProperties", "maxProperties", "not", "if", "then", "else", "dependentRequired", "default", "examples", "$schema", "$comment", "$id",
		"deprecated", "readOnly", "writeOnly",
	}
	formats = [...]string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

// simplifier makes of a schema what the API takes: objects closed, no numeric
// bounds and no lengths.
type simplifier struct {
	optional, unions int
	refs             map[string][]string // what each part of $defs refers to
	within           string              // the part that is being read
}

func (s *simplifier) defs(to, defs map[string]any) bool {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		part, ok := defs[name].(map[string]any)
		if !ok {
			return false
		}
		s.within = name
		if out[name], ok = s.simplify(part); !ok {
			return false
		}
	}
	to["$defs"] = out
	return true
}

func (s *simplifier) simplify(in map[string]any) (map[string]any, bool) {
	if ref, ok := in["$ref"].(string); ok {
		name, local := strings.CutPrefix(ref, "#/$defs/")
		s.refs[s.within] = append(s.refs[s.within], name)
		return map[string]any{"$ref": ref}, local && !strings.Contains(name, "/")
	}
	out := map[string]any{}
	shaped := false
	for _, key := range slices.Sorted(maps.Keys(in)) {
		ok := true
		switch v := in[key]; {
		case slices.Contains(kept[:], key):
			out[key] = v
			shaped = shaped || key == "const"
		case key == "enum":
			out[key], shaped = v, true
			ok = scalars(v)
		case slices.Contains(dropped[:], key), key == "$defs" && s.within == "", key == "properties", key == "required", key == "additionalProperties":
		case key == "type":
			out[key], shaped = v, true
			if _, one := v.(string); !one {
				s.unions++
			}
		case key == "format":
			if f, is := v.(string); is && slices.Contains(formats[:], f) {
				out[key] = v
			}
		case key == "minItems":
			if n, is := v.(float64); is && n <= 1 {
				out[key] = v
			}
		case key == "items":
			out[key], ok = s.part(v)
		case key == "anyOf" || key == "oneOf" && in["anyOf"] == nil:
			s.unions++
			shaped = true
			out["anyOf"], ok = s.list(v)
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return out, shaped && s.object(in, out)
}

func (s *simplifier) part(v any) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	return s.simplify(m)
}

func (s *simplifier) list(v any) ([]any, bool) {
	in, ok := v.([]any)
	out := make([]any, 0, len(in))
	for _, item := range in {
		p, fine := s.part(item)
		ok = ok && fine
		out = append(out, p)
	}
	return out, ok
}

// object closes an object. One that is open by its author's word can't be
// asked for.
func (s *simplifier) object(in, out map[string]any) bool {
	properties, has := in["properties"].(map[string]any)
	additional, said := in["additionalProperties"]
	if in["type"] != "object" {
		types, _ := in["type"].([]any)
		return !has && !slices.Contains(types, any("object"))
	}
	if !has && additional != false || said && additional != false {
		return false
	}
	required, _ := in["required"].([]any)
	closed := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		var ok bool
		if closed[name], ok = s.part(properties[name]); !ok {
			return false
		}
		if !slices.Contains(required, any(name)) {
			s.optional++
		}
	}
	for _, name := range required {
		if text, is := name.(string); !is || properties[text] == nil {
			return false
		}
	}
	out["properties"], out["additionalProperties"] = closed, false
	if len(required) > 0 {
		out["required"] = required
	}
	return true
}

// grounded reports whether every reference leads to a part, and none in a
// circle.
func (s *simplifier) grounded(defs map[string]any) bool {
	done := map[string]bool{} // false while its references are followed
	var ends func(name string) bool
	ends = func(name string) bool {
		if d, seen := done[name]; seen {
			return d
		}
		done[name] = false
		for _, to := range s.refs[name] {
			if defs[to] == nil || !ends(to) {
				return false
			}
		}
		done[name] = true
		return true
	}
	for name := range s.refs {
		if !ends(name) {
			return false
		}
	}
	return true
}

func scalars(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool {
		switch e.(type) {
		case []any, map[string]any:
			return true
		}
		return false
	})
}
