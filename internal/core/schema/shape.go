package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxExpanded bounds how many schemas one value may be held against before the
// validation moves on to a part of it.
const maxExpanded = 10_000

// bounded refuses what the library would follow without end: schemas that lead
// back to themselves at one value, or multiply there; and references that
// can't be followed here.
func bounded(root *jsonschema.Schema) error {
	w := walker{root: root, cost: map[*jsonschema.Schema]int{}}
	return w.all(root)
}

type walker struct {
	root *jsonschema.Schema
	cost map[*jsonschema.Schema]int // -1 while it is being counted
}

// all checks s and every schema below it.
func (w *walker) all(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	switch {
	case s != w.root && s.ID != "":
		return fmt.Errorf("$id %q below the root; remove it", s.ID)
	case s.DynamicRef != "":
		return fmt.Errorf("$dynamicRef %q is not read; use $ref", s.DynamicRef)
	}
	if _, err := w.count(s); err != nil {
		return err
	}
	here, below := parts(s)
	for _, p := range slices.Concat(here, below) {
		if err := w.all(p); err != nil {
			return err
		}
	}
	return nil
}

// count returns how many schemas a value is held against for s.
func (w *walker) count(s *jsonschema.Schema) (int, error) {
	if s == nil {
		return 0, nil
	}
	switch n, known := w.cost[s]; {
	case n < 0:
		return 0, fmt.Errorf("a $ref leads back to itself without going into the value; remove it")
	case known:
		return n, nil
	}
	w.cost[s] = -1
	here, _ := parts(s)
	if s.Ref != "" {
		to := target(w.root, s.Ref)
		if to == nil {
			return 0, fmt.Errorf("$ref %q leads nowhere; write # or #/$defs/NAME, with the part below $defs", s.Ref)
		}
		here = append(here, to)
	}
	sum := 1
	for _, p := range here {
		n, err := w.count(p)
		if err != nil {
			return 0, err
		}
		if sum += n; sum > maxExpanded {
			return 0, fmt.Errorf("its alternatives multiply to more than %d; make it simpler", maxExpanded)
		}
	}
	w.cost[s] = sum
	return sum, nil
}

// parts returns the schemas that s applies to a value itself, and those for
// parts of the value and those that are only kept.
func parts(s *jsonschema.Schema) (here, below []*jsonschema.Schema) {
	here = slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else})
	below = slices.Concat(s.PrefixItems, s.ItemsArray, []*jsonschema.Schema{
		s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems, s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties, s.ContentSchema,
	})
	here = appendSorted(here, s.DependentSchemas, s.DependencySchemas)
	below = appendSorted(below, s.Properties, s.PatternProperties, s.Defs, s.Definitions)
	return here, below
}

func appendSorted(to []*jsonschema.Schema, from ...map[string]*jsonschema.Schema) []*jsonschema.Schema {
	for _, m := range from {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			to = append(to, m[name])
		}
	}
	return to
}

// target returns the schema that a reference within root means, nil if there
// is none.
func target(root *jsonschema.Schema, ref string) *jsonschema.Schema {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return nil
	}
	names := strings.Split(rest, "/")[1:]
	s := root
	for len(names) > 0 && s != nil {
		s, names = step(s, names)
	}
	return s
}

// step follows the first names of a pointer to the next schema.
func step(s *jsonschema.Schema, names []string) (*jsonschema.Schema, []string) {
	single := map[string]*jsonschema.Schema{
		"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "not": s.Not, "if": s.If, "then": s.Then, "else": s.Else,
		"additionalProperties": s.AdditionalProperties, "propertyNames": s.PropertyNames,
	}
	if to := single[names[0]]; to != nil {
		return to, names[1:]
	}
	if len(names) < 2 {
		return nil, nil
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(names[1])
	lists := map[string][]*jsonschema.Schema{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf, "prefixItems": s.PrefixItems, "items": s.ItemsArray}
	if list := lists[names[0]]; list != nil {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(list) {
			return nil, nil
		}
		return list[i], names[2:]
	}
	named := map[string]map[string]*jsonschema.Schema{
		"$defs": s.Defs, "definitions": s.Definitions, "properties": s.Properties, "patternProperties": s.PatternProperties, "dependentSchemas": s.DependentSchemas,
	}
	return named[names[0]][name], names[2:]
}

// never reports whether s is the schema false.
func never(s *jsonschema.Schema) bool {
	raw, err := s.MarshalJSON()
	return err == nil && string(raw) == "false"
}
