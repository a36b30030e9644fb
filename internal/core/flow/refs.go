package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/core/definition"
	"goclaw/internal/core/schema"
)

// The words of placeholders that are no step and no field of the input.
const (
	wordInput = "input"
	wordItem  = "item"
	wordRound = "round"
)

func isReserved(id string) bool { return id == wordInput || id == wordItem || id == wordRound }

var (
	idForm      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	pathForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)
	placeholder = regexp.MustCompile(`\\?\{\{[ \t]*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)[ \t]*\}\}`)
)

// pathsIn returns the paths of a text's placeholders. A backslash before one
// makes it a plain text.
func pathsIn(text string) []string {
	var out []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if m[0][0] != '\\' {
			out = append(out, m[1])
		}
	}
	return out
}

// textsIn calls visit with every text of a JSON value, and puts what it returns
// in its place.
func textsIn(v any, visit func(string) (any, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return visit(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = textsIn(v[i], visit); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if out[k], err = textsIn(v[k], visit); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// decode reads JSON and keeps numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("it can't be read as one value")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // v comes from decode
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// shape is what a JSON Schema says of an object's fields. Without Properties it
// says nothing.
type shape struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// optional reports whether the field may be missing.
func (s shape) optional(field string) bool {
	_, known := s.Properties[field]
	return known && !slices.Contains(s.Required, field)
}

func (g *graph) shapes() {
	g.shape = g.shapeOf(g.Flow.Input, -1, "input")
	g.out = make([]shape, len(g.Steps))
	for i, s := range g.Steps {
		g.out[i] = g.shapeOf(s.Output, i, "output")
		if _, both := g.shape.Properties[s.ID]; both {
			g.fail(i, "id", 0, fmt.Sprintf("%s is a step and a field of the input", s.ID), "rename one of them")
		}
		if _, err := decode(s.Input); err != nil {
			g.fail(i, "input", 0, fmt.Sprintf("the input of step %s is no JSON: %v", s.ID, err), "write a map")
		}
	}
}

func (g *graph) shapeOf(raw json.RawMessage, step int, key string) (s shape) {
	if len(raw) == 0 {
		return s
	}
	_, err := schema.Compile(raw)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		g.fail(step, key, 0, fmt.Sprintf("%s is no valid JSON Schema: %v", key, err), "see json-schema.org")
		return shape{}
	}
	return s
}

// checkRefs checks all that steps say of artifacts and values.
func (g *graph) checkRefs() {
	for i, s := range g.Steps {
		for _, p := range pathsIn(s.Task) {
			g.checkPath(i, "task", p)
		}
		if v, err := decode(s.Input); err == nil {
			_, _ = textsIn(v, func(text string) (any, error) { // which never fails
				for _, p := range pathsIn(text) {
					g.checkPath(i, "input", p)
				}
				return text, nil
			})
		}
		if s.Each != "" {
			g.checkEach(i)
		}
		for n, name := range s.Gives {
			if !definition.IsArtifactName(name) {
				g.fail(i, "gives", n, fmt.Sprintf("gives holds %q, which is no artifact's name", name), "write a relative path such as PLAN.md, or a pattern such as notes/*.md")
			}
		}
		for n := range s.Takes {
			g.checkTake(i, n)
		}
		for n, c := range s.Until {
			g.checkCondition(i, n, c)
		}
	}
}

func (g *graph) checkEach(i int) {
	s := g.Steps[i]
	if !pathForm.MatchString(s.Each) {
		g.fail(i, "each", 0, fmt.Sprintf("each is %q, which is no path to a list", s.Each), "write one such as plan.files or input.files, without braces")
		return
	}
	head, _, _ := strings.Cut(s.Each, ".")
	d, isStep := g.index[head]
	switch {
	case head == wordItem || head == wordRound:
		g.fail(i, "each", 0, fmt.Sprintf("each can't be made of %s", head), "name a field of the input or of an earlier step's result")
	case isStep && !g.above[i][d]:
		g.fail(i, "each", 0, fmt.Sprintf("step %s makes its runs of %s, but does not come after it", s.ID, head), fmt.Sprintf("add %s to its after", head))
	default:
		g.checkPath(i, "each", s.Each)
	}
}

func (g *graph) checkTake(i, n int) {
	s, t := g.Steps[i], g.Steps[i].Takes[n]
	d, ok := g.find(t.Step, i, "takes", n)
	if !ok {
		return
	}
	gives := g.Steps[d].Gives
	if !slices.Contains(gives, t.Name) {
		hint := fmt.Sprintf("add it to the gives of %s", t.Step)
		if k := slices.IndexFunc(gives, func(have string) bool { return schema.Near(t.Name, have) }); k >= 0 {
			hint = fmt.Sprintf("did you mean %s/%s?", t.Step, gives[k])
		}
		g.fail(i, "takes", n, fmt.Sprintf("step %s takes %s, which %s does not give", s.ID, t, t.Step), hint)
		return
	}
	if !g.canSee(i, d) {
		g.fail(i, "takes", n, fmt.Sprintf("step %s takes %s, but does not come after %s", s.ID, t, t.Step), fmt.Sprintf("add %s to its after", t.Step))
	}
}

// canSee reports whether step i can use what step d left: d comes before it, or
// did so in the round before.
func (g *graph) canSee(i, d int) bool {
	return g.above[i][d] || g.lastRound(i, d)
}

// lastRound reports whether i sees what d left in the round before.
func (g *graph) lastRound(i, d int) bool {
	return (i == d || g.above[d][i]) && g.shared(i, d) > 0
}

func (g *graph) checkPath(i int, key, path string) {
	s := g.Steps[i]
	head, rest, deep := strings.Cut(path, ".")
	field, _, _ := strings.Cut(rest, ".")
	d, isStep := g.index[head]
	switch {
	case head == wordItem:
		if s.Each == "" {
			g.fail(i, key, 0, fmt.Sprintf("step %s names an item, but has no each", s.ID), "add each: PATH of a list")
		}
	case head == wordRound:
		if len(g.in[i]) == 0 || deep {
			g.fail(i, key, 0, fmt.Sprintf("step %s names %s, which only a step in a loop has, as a number", s.ID, path), "remove it")
		}
	case head == wordInput:
		if deep {
			g.checkInputField(i, key, field)
		}
	case isStep:
		if !g.canSee(i, d) {
			g.fail(i, key, 0, fmt.Sprintf("step %s names %s, but does not come after %s", s.ID, path, head), fmt.Sprintf("add %s to its after", head))
		} else if deep || key == "each" {
			g.checkField(i, key, 0, d, field)
		}
	default:
		g.checkInputField(i, key, head)
	}
}

func (g *graph) checkInputField(i int, key, field string) {
	if _, known := g.shape.Properties[field]; known || len(g.Flow.Input) == 0 && g.near(field, "") == "" {
		return
	}
	hint := fmt.Sprintf("add it to the properties of input; the steps are %s", g.ids())
	for have := range g.shape.Properties {
		if schema.Near(field, have) {
			hint = fmt.Sprintf("did you mean %s?", have)
		}
	}
	g.fail(i, key, 0, fmt.Sprintf("step %s names %s, which is neither a step nor a field of the input", g.Steps[i].ID, field), g.near(field, hint))
}

// checkField checks that a result can have fields, and this one; "" for none.
func (g *graph) checkField(i int, key string, entry, d int, field string) {
	s, of := g.Steps[i], g.Steps[d]
	if of.Agent == "" && of.AgentID == "" && len(of.Output) == 0 && (of.Each == "" || field != "") {
		g.fail(i, key, entry, fmt.Sprintf("step %s needs a JSON result of %s, which is a plain worker without output", s.ID, of.ID), fmt.Sprintf("give %s an output schema", of.ID))
		return
	}
	have := g.out[d].Properties
	if _, ok := have[field]; ok || len(have) == 0 || field == "" {
		return
	}
	hint := "its output has " + strings.Join(slices.Sorted(maps.Keys(have)), ", ")
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if schema.Near(field, name) {
			hint = fmt.Sprintf("did you mean %s?", name)
		}
	}
	g.fail(i, key, entry, fmt.Sprintf("the result of %s has no field %s", of.ID, field), hint)
}

func (g *graph) checkCondition(i, n int, c Condition) {
	if !pathForm.MatchString(c.Field) {
		g.fail(i, "until", n, fmt.Sprintf("until names %q, which is no field", c.Field), "write a field of the step's JSON result, as in until: {verdict: ok}")
		return
	}
	v, err := decode(c.Is)
	switch v.(type) {
	case map[string]any, []any:
		err = fmt.Errorf("a list or map")
	}
	if err != nil || len(c.Is) == 0 {
		g.fail(i, "until", n, fmt.Sprintf("until compares %s with no plain value", c.Field), "write a text, a number, true or false")
	}
	field, _, _ := strings.Cut(c.Field, ".")
	g.checkField(i, "until", n, i, field)
}
