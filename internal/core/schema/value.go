package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxProblems bounds what one value is told: whoever mends these sends it again.
const maxProblems = 10

// Problem is one thing that is wrong with a value.
type Problem struct {
	At   string // a JSON pointer; "" is the whole value
	What string // what is wrong and what is wanted, in one line
}

// String says where and what.
func (p Problem) String() string {
	if p.At == "" {
		return p.What
	}
	return "at " + p.At + ": " + p.What
}

// Problems says what is wrong with a value of any type, as encoding/json
// decodes it into an any: nil if it fits the schema, else at most ten, in a
// fixed order. Unlike Check it follows the schema alone.
func (s *Schema) Problems(value any) []Problem {
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	f := finder{root: s.root}
	f.look(s.root, value, "")
	if len(f.found) == 0 {
		// A keyword that the finder doesn't know; the library names it.
		return []Problem{{What: clip(plainly(err), 400)}}
	}
	return f.found
}

// finder looks for what is wrong. It knows the common keywords only, and
// reports nothing that is right.
type finder struct {
	root  *jsonschema.Schema
	found []Problem
}

func (f *finder) add(at, format string, args ...any) {
	if len(f.found) < maxProblems {
		f.found = append(f.found, Problem{At: at, What: fmt.Sprintf(format, args...)})
	}
}

func (f *finder) look(s *jsonschema.Schema, v any, at string) {
	switch {
	case len(f.found) >= maxProblems:
		return
	case s.Ref != "":
		if to := target(f.root, s.Ref); to != nil {
			f.look(to, v, at)
		}
		return
	}
	switch types := typesOf(s); {
	case !fits(types, v):
		f.add(at, "want %s, got %s", strings.Join(types, " or "), typeOf(v))
		return
	case s.Const != nil && scalar(*s.Const) && !sameScalar(*s.Const, v):
		f.add(at, "want %s, got %s", show(*s.Const), show(v))
	case s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return !scalar(e) || sameScalar(e, v) }):
		allowed := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			allowed[i] = show(e)
		}
		f.add(at, "%s is not one of %s", show(v), clip(strings.Join(allowed, ", "), 200))
	}
	switch v := v.(type) {
	case string:
		f.text(s, v, at)
	case float64:
		f.number(s, v, at)
	case []any:
		f.list(s, v, at)
	case map[string]any:
		f.object(s, v, at)
	}
	for _, part := range s.AllOf {
		f.look(part, v, at)
	}
	f.choice(s.AnyOf, v, at)
	f.choice(s.OneOf, v, at)
}

func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func fits(types []string, v any) bool {
	return types == nil || slices.ContainsFunc(types, func(t string) bool { return hasType(t, v) })
}

// choice reports the problems of the branch that is nearest, if none fits: one
// of the value's type, whose first problem lies farthest inside.
func (f *finder) choice(branches []*jsonschema.Schema, v any, at string) {
	var nearest []Problem
	best := -1
	for _, b := range branches {
		try := finder{root: f.root}
		try.look(b, v, at)
		if len(try.found) == 0 {
			return
		}
		near := len(try.found[0].At)
		for to := b; to != nil && fits(typesOf(to), v); to = target(f.root, to.Ref) {
			if to.Ref == "" {
				near += 1 << 20
				break
			}
		}
		if near > best {
			best, nearest = near, try.found
		}
	}
	for _, p := range nearest {
		f.add(p.At, "%s", p.What)
	}
}

func (f *finder) text(s *jsonschema.Schema, v, at string) {
	n := utf8.RuneCountInString(v)
	switch {
	case s.MinLength != nil && n < *s.MinLength && n == 0:
		f.add(at, "it must not be empty")
	case s.MinLength != nil && n < *s.MinLength:
		f.add(at, "want at least %d characters, got %d", *s.MinLength, n)
	case s.MaxLength != nil && n > *s.MaxLength:
		f.add(at, "want at most %d characters, got %d", *s.MaxLength, n)
	}
}

func (f *finder) number(s *jsonschema.Schema, v float64, at string) {
	switch {
	case s.Minimum != nil && v < *s.Minimum:
		f.add(at, "%s is less than %s", show(v), show(*s.Minimum))
	case s.ExclusiveMinimum != nil && v <= *s.ExclusiveMinimum:
		f.add(at, "%s is not more than %s", show(v), show(*s.ExclusiveMinimum))
	}
	switch {
	case s.Maximum != nil && v > *s.Maximum:
		f.add(at, "%s is more than %s", show(v), show(*s.Maximum))
	case s.ExclusiveMaximum != nil && v >= *s.ExclusiveMaximum:
		f.add(at, "%s is not less than %s", show(v), show(*s.ExclusiveMaximum))
	}
}

func (f *finder) list(s *jsonschema.Schema, v []any, at string) {
	switch {
	case s.MinItems != nil && len(v) < *s.MinItems:
		f.add(at, "want at least %d items, got %d", *s.MinItems, len(v))
	case s.MaxItems != nil && len(v) > *s.MaxItems:
		f.add(at, "want at most %d items, got %d", *s.MaxItems, len(v))
	}
	if s.Items == nil || s.PrefixItems != nil {
		return
	}
	for i, item := range v {
		f.look(s.Items, item, at+"/"+strconv.Itoa(i))
	}
}

func (f *finder) object(s *jsonschema.Schema, v map[string]any, at string) {
	for _, name := range s.Required {
		if _, there := v[name]; there {
			continue
		}
		of := ""
		if p := s.Properties[name]; p != nil && p.Type != "" {
			of = " (" + p.Type + ")"
		}
		f.add(at, "%q%s is missing", name, of)
	}
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		below := at + "/" + pointerName(name)
		p, known := s.Properties[name]
		switch {
		case known:
			f.look(p, v[name], below)
		case s.AdditionalProperties == nil || len(s.PatternProperties) > 0:
		case never(s.AdditionalProperties):
			f.add(at, "%s is not allowed%s", show(name), beside(s, name))
		default:
			f.look(s.AdditionalProperties, v[name], below)
		}
	}
}

// Misspelt says that a top-level name of the value is within one edit of one
// that the schema describes and the value lacks, where the schema leaves other
// names open: "" if none is.
func (s *Schema) Misspelt(value map[string]any) string {
	if s.root.AdditionalProperties != nil || len(s.root.PatternProperties) > 0 {
		return ""
	}
	names := make([]string, 0, len(value))
	for name := range value {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if _, known := s.root.Properties[name]; known {
			continue
		}
		for _, n := range s.names() {
			if _, there := value[n]; !there && Near(name, n) {
				return fmt.Sprintf("unknown field %q (did you mean %q?)", name, n)
			}
		}
	}
	return ""
}

// beside names what is allowed instead.
func beside(s *jsonschema.Schema, name string) string {
	names := (&Schema{root: s}).names()
	for _, n := range names {
		if Near(name, n) {
			return fmt.Sprintf(" (did you mean %q?)", n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; allowed: " + clip(strings.Join(names, ", "), 200)
}

func scalar(v any) bool {
	switch v.(type) {
	case nil, bool, string, float64:
		return true
	}
	return false
}

// sameScalar compares a scalar with any value.
func sameScalar(want, got any) bool { return scalar(got) && want == got }

// show is a value as JSON, cut where it is long.
func show(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return clip(string(raw), 60)
}

// clip cuts s after n bytes, at a character's end.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func pointerName(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
