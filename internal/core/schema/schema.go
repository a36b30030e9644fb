package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	resolved *jsonschema.Resolved
	root     *jsonschema.Schema
}

// versions are the values of $schema that the library knows.
var versions = [...]string{
	"", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
}

// Compile reads a JSON Schema. It must stand for itself: references lead to
// other parts of it. One that a validation could follow without end is refused,
// and so is a default that its own schema refuses. The error wraps a *Flaw where
// a keyword is misspelt or has a value of the wrong kind.
func Compile(raw []byte) (*Schema, error) {
	if err := checkForm(raw); err != nil {
		return nil, fmt.Errorf("JSON Schema: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			keyword := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // before it stand types of the library
			return nil, fmt.Errorf("JSON Schema: %q can't be a %s", keyword, wrong.Value)
		}
		return nil, fmt.Errorf("JSON Schema: %w", err)
	}
	if !slices.Contains(versions[:], s.Schema) {
		return nil, fmt.Errorf("JSON Schema: $schema %q is not known; remove it, or write %s", s.Schema, versions[1])
	}
	if err := bounded(&s); err != nil {
		return nil, fmt.Errorf("JSON Schema: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("JSON Schema: %s", plainly(err))
	}
	if _, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
		return nil, fmt.Errorf("JSON Schema: a default does not fit its schema: %s", plainly(err))
	}
	return &Schema{resolved: r, root: &s}, nil
}

// Check validates the raw text of a model's arguments. Empty text is an empty
// object. The error is one line that says what is wrong and what is allowed.
func (s *Schema) Check(raw string) (string, error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(raw), &args); err != nil {
		return "", fmt.Errorf("the arguments are not a JSON object (%w); send them again as one object", err)
	}
	if args == nil {
		return "", fmt.Errorf("the arguments are null; send one JSON object")
	}
	for name := range args {
		if _, known := s.root.Properties[name]; !known && !s.open() {
			return "", fmt.Errorf("unknown argument %q%s; allowed: %s", name, s.hint(name), strings.Join(s.names(), ", "))
		}
	}
	for _, name := range s.root.Required {
		if _, there := args[name]; !there {
			return "", fmt.Errorf("the required argument %q is missing", name)
		}
	}
	for _, name := range s.names() {
		v, there := args[name]
		if !there {
			continue
		}
		if err := checkProperty(s.root.Properties[name], v); err != nil {
			return "", fmt.Errorf("argument %q: %w", name, err)
		}
	}
	if err := s.resolved.Validate(args); err != nil {
		return "", fmt.Errorf("the arguments do not fit the schema: %s", oneLine(err.Error()))
	}
	return raw, nil
}

// open reports whether the schema means arguments that it does not name: one
// that only leaves open whether it does, as most do, does not.
func (s *Schema) open() bool {
	more := s.root.AdditionalProperties
	return s.root.Properties == nil || more != nil && !never(more) || len(s.root.PatternProperties) > 0
}

// checkProperty words the common mistakes; the rest is left to the library.
func checkProperty(p *jsonschema.Schema, v any) error {
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, v) {
		allowed := make([]string, len(p.Enum))
		for i, e := range p.Enum {
			allowed[i] = fmt.Sprint(e)
		}
		return fmt.Errorf("%v is not one of %s", v, strings.Join(allowed, ", "))
	}
	if p.Type != "" && !hasType(p.Type, v) {
		return fmt.Errorf("want %s, got %s", p.Type, typeOf(v))
	}
	if s, ok := v.(string); ok && p.MinLength != nil && len(s) < *p.MinLength {
		return fmt.Errorf("it must not be empty")
	}
	return nil
}

func hasType(want string, v any) bool {
	got := typeOf(v)
	return got == want || want == "number" && got == "integer"
}

func typeOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		if x == math.Trunc(x) {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func (s *Schema) names() []string {
	names := make([]string, 0, len(s.root.Properties))
	for n := range s.root.Properties {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (s *Schema) hint(name string) string {
	for _, n := range s.names() {
		if Near(name, n) {
			return fmt.Sprintf(" (did you mean %q?)", n)
		}
	}
	return ""
}

// Near reports whether two names differ by at most one edit (an insertion, a
// deletion, a replacement, or two neighbours swapped), case aside.
func Near(a, b string) bool {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	if i == len(x) || slices.Equal(x[i+1:], y[i+1:]) {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}

// plainly is an error of the library without what only the library knows.
func plainly(err error) string {
	return oneLine(strings.NewReplacer(
		"validated against both <anonymous schema> and <anonymous schema>", "it fits more than one of the alternatives, and must fit exactly one",
		"jsonschema.Schema: ", "", "<anonymous schema>: ", "", "<anonymous schema>", "a part of the schema",
	).Replace(err.Error()))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
