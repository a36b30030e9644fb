package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// CheckBody returns what holds a request's body against the schema that the
// document gives it. The data must be valid JSON; an error is an *InvalidBody.
func (o Operation) CheckBody() (func(data []byte) error, error) {
	s := newSchemas("#/$defs/")
	t := reflect.TypeOf(o.Body)
	if err := s.collect(t); err != nil {
		return nil, err
	}
	root, err := s.make(t, []reflect.Type{t})
	if err != nil {
		return nil, err
	}
	root.Defs = maps.Clone(s.built)
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return func(data []byte) error {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return &InvalidBody{Why: err.Error()}
		}
		if err := resolved.Validate(v); err != nil {
			return invalidBody(err)
		}
		return nil
	}, nil
}

// InvalidBody says what of a body is wrong. Pointer is the JSON Pointer of the
// field; "" if it is the whole.
type InvalidBody struct {
	Pointer string
	Why     string
}

func (e *InvalidBody) Error() string { return e.Why }

// invalidBody words the validator's error, which names schemas from the
// outermost to the one that does not hold.
func invalidBody(err error) error {
	chain := strings.Split(err.Error(), "validating ")[1:]
	if len(chain) == 0 {
		return &InvalidBody{Why: "the body is no valid request: " + err.Error()}
	}
	at := pointer(chain)
	_, rest, _ := strings.Cut(chain[len(chain)-1], ": ")
	if _, names, ok := strings.Cut(rest, "required: missing properties: "); ok {
		var missing []string
		if json.Unmarshal([]byte(names), &missing) == nil && len(missing) > 0 {
			return &InvalidBody{at + "/" + missing[0], fmt.Sprintf("field %q is required", missing[0])}
		}
	}
	why := strings.ReplaceAll(rest, "<invalid reflect.Value>", "null")
	if at == "" {
		return &InvalidBody{"", "the body is no valid request: " + why}
	}
	field := strings.TrimPrefix(at, "/")
	if value, wanted, ok := strings.Cut(strings.TrimPrefix(why, "enum: "), " does not equal any of: "); ok {
		return &InvalidBody{at, fmt.Sprintf("%s %q: want %s", field, value, either(strings.Fields(strings.Trim(wanted, "[]"))))}
	}
	return &InvalidBody{at, fmt.Sprintf("field %q: %s", field, why)}
}

// either words a choice: a, b or c.
func either(values []string) string {
	last := len(values) - 1
	if last < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// pointer finds the innermost property in a chain of places in a schema, of
// which those in definitions go on from the property that refers to them.
func pointer(chain []string) string {
	var before, here, definition string
	for _, part := range chain {
		place, _, _ := strings.Cut(part, ": ")
		in := ""
		if rest, ok := strings.CutPrefix(place, "/$defs/"); ok {
			in, place, _ = strings.Cut(rest, "/")
			place = "/" + place
		}
		if in != definition {
			before, definition = before+here, in
		}
		if here = ""; in == "" {
			before = "" // from the top again
		}
		for {
			rest, ok := strings.CutPrefix(place, "/properties/")
			if !ok {
				break
			}
			name, _, _ := strings.Cut(rest, "/")
			here, place = here+"/"+name, rest[len(name):]
		}
	}
	return before + here
}

// limits narrows the schemas of a struct's fields by their tags: limit:"1..64"
// bounds a text's length or a number, either end may be missing.
func limits(t reflect.Type, s *jsonschema.Schema) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("limit")
		if tag == "" {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			return fmt.Errorf("field %s.%s: a limit, but no JSON", t, f.Name)
		}
		if err := limit(p, tag); err != nil {
			return fmt.Errorf("field %s.%s: %w", t, f.Name, err)
		}
	}
	return nil
}

func limit(s *jsonschema.Schema, tag string) error {
	least, most, ok := strings.Cut(tag, "..")
	if !ok {
		return fmt.Errorf("limit %q: want LEAST..MOST", tag)
	}
	for i, text := range []string{least, most} {
		if text == "" {
			continue
		}
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil {
			return fmt.Errorf("limit %q: %w", tag, err)
		}
		isText := s.Type == "string"
		switch {
		case isText && i == 0:
			s.MinLength = &n
		case isText:
			s.MaxLength = &n
		case i == 0:
			s.Minimum = jsonschema.Ptr(float64(n))
		default:
			s.Maximum = jsonschema.Ptr(float64(n))
		}
	}
	return nil
}
