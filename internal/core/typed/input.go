package typed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"goclaw/internal/core/schema"
)

// Input is an input that fits a definition's input schema, with the defaults of
// fields that it leaves out. An empty schema takes anything, an empty input is an
// empty object. Names that the schema leaves open are allowed, unless one looks
// like a misspelt field. The error is one line with JSON pointers.
func Input(form, input json.RawMessage) (json.RawMessage, error) {
	given := input
	missing := len(bytes.TrimSpace(input)) == 0
	if missing {
		given = json.RawMessage(`{}`)
	}
	value, err := decode(given)
	if err != nil {
		return nil, fmt.Errorf("the input is no JSON (%w); send it again as one JSON value", err)
	}
	if len(form) == 0 {
		return input, nil
	}
	s, err := schema.Compile(form)
	if err != nil {
		return nil, fmt.Errorf("the definition's input: %w; mend the definition", err)
	}
	exact, err := decodeExact(given)
	if err != nil {
		return nil, fmt.Errorf("the input is no JSON (%w); send it again as one JSON value", err)
	}
	if s.Complete(exact) {
		if input, err = canonical(exact); err == nil {
			value, err = decode(input)
		}
		if err != nil {
			return nil, fmt.Errorf("the input with its defaults: %w", err)
		}
	}
	found := lines(s.Problems(value))
	if fields, ok := value.(map[string]any); ok {
		if m := s.Misspelt(fields); m != "" {
			found = append([]string{m}, found...)
		}
	}
	switch {
	case len(found) == 0:
		return input, nil
	case missing:
		return nil, fmt.Errorf("the input is missing, and this definition needs one: %s; send it as input", few(found))
	}
	return nil, fmt.Errorf("the input does not fit the definition's input schema: %s; mend the input", few(found))
}

// maxTold is how many problems are told at once.
const maxTold = 5

// few joins the first problems.
func few(found []string) string {
	more := ""
	if n := len(found) - maxTold; n > 0 {
		found, more = found[:maxTold], fmt.Sprintf(" (and %d more)", n)
	}
	return strings.Join(found, "; ") + more
}

func lines(found []schema.Problem) []string {
	out := make([]string, len(found))
	for i, p := range found {
		out[i] = p.String()
	}
	return out
}

// maxDepth bounds how deep values may be nested: a schema that leads back to
// itself costs more with each level.
const maxDepth = 100

// decode reads a value for a schema: its numbers are float64.
func decode(raw []byte) (any, error) {
	if depth(raw) > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return v, nil
}

// decodeExact reads a value whose numbers stay as they are written.
func decodeExact(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// depth is how deep raw is nested.
func depth(raw []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// canonical is a value as compact JSON with sorted keys.
func canonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
