package schema

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Complete gives the objects within a value the fields that they lack and the
// schema has a default for, and reports whether there were any. Alternatives
// are not looked into: which one is meant is not known yet.
func (s *Schema) Complete(value any) bool { return complete(s.root, s.root, value) }

func complete(root, s *jsonschema.Schema, value any) bool {
	if s == nil {
		return false
	}
	added := false
	if s.Ref != "" {
		added = complete(root, target(root, s.Ref), value)
	}
	for _, part := range s.AllOf {
		added = complete(root, part, value) || added
	}
	switch v := value.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			below, there := v[name]
			if there {
				added = complete(root, p, below) || added
			} else if d, ok := defaultOf(root, p); ok {
				v[name], added = d, true
			}
		}
	case []any:
		for _, item := range v {
			added = complete(root, s.Items, item) || added
		}
	}
	return added
}

// defaultOf is the default of a schema, or of what it refers to. Compile has
// seen to it that references end.
func defaultOf(root, s *jsonschema.Schema) (any, bool) {
	for s != nil && s.Default == nil && s.Ref != "" {
		s = target(root, s.Ref)
	}
	if s == nil || s.Default == nil {
		return nil, false
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(s.Default)))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err == nil
}
