package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"goclaw/internal/core/schema"
)

// items are what a step has runs for. A step without each has one, of nothing.
type items []any

// noItem stands for the item of a step without each.
type noItem struct{}

func (it items) number(n int) int {
	if _, none := it[n].(noItem); none {
		return -1
	}
	return n
}

func (it items) at(n int) any { return it[n] }

// found are what a step has runs for in one round, those of its runs that did
// their work, and their JSON results.
type found struct {
	items   items
	err     error
	looked  bool
	runs    []StepRun
	results []any
	bad     []error // of results
}

// at returns what is known of a step in one round, to be added to. Nothing of it
// changes during a plan.
func (p *planner) at(i int, rounds []int) *found {
	key := p.key(i, -1, rounds)
	if p.found[key] == nil {
		f := &found{}
		p.found[key] = f
		f.items, f.err = p.findItems(i, rounds)
	}
	return p.found[key]
}

func (p *planner) items(i int, rounds []int) (items, error) {
	f := p.at(i, rounds)
	return f.items, f.err
}

func (p *planner) findItems(i int, rounds []int) (items, error) {
	s := p.Steps[i]
	if s.Each == "" {
		return items{noItem{}}, nil
	}
	v, err := p.value(i, rounds, nil, s.Each)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	switch {
	case v == nil:
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("%s is %s, not a list", s.Each, kind(v))
	case len(list) > p.MostItems():
		return nil, fmt.Errorf("%s has %d items; limits.items allows %d", s.Each, len(list), p.MostItems())
	}
	return list, nil
}

// complete checks an input, and gives it with the defaults of the schema.
func (g *graph) complete(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the flow's input is no JSON: %w", err)
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the flow's input is %s, not an object", kind(v))
	}
	if len(g.Input) == 0 {
		return v, g.lacking(fields)
	}
	s, err := schema.Compile(g.Input)
	if err == nil {
		s.Complete(v)
		_, err = s.Check(string(encode(v)))
	}
	if err != nil {
		return nil, fmt.Errorf("the flow's input: %w", err)
	}
	return v, nil
}

// lacking says which field a step names that the input doesn't have.
func (g *graph) lacking(fields map[string]any) error {
	for _, s := range g.Steps {
		paths := pathsIn(s.Task)
		v, err := decode(s.Input)
		if err == nil {
			_, err = textsIn(v, func(t string) (any, error) { paths = append(paths, pathsIn(t)...); return t, nil })
		}
		if s.Each != "" {
			paths = append(paths, s.Each)
		}
		for _, path := range paths {
			field := strings.Split(strings.TrimPrefix(path, wordInput+"."), ".")[0]
			_, isStep := g.index[field]
			if _, there := fields[field]; err == nil && !there && (!isStep && !isReserved(field) || strings.HasPrefix(path, wordInput+".")) {
				return fmt.Errorf("the flow's input has no field %s, which step %s needs", field, s.ID)
			}
		}
	}
	return nil
}

// start makes a run of a step, but for what it takes; item is -1 and of nothing without each.
func (p *planner) start(i, item int, of any, rounds []int) (Start, error) {
	s := p.Steps[i]
	start := Start{
		Key: p.key(i, item, rounds), Step: s.ID, Label: s.ID, Agent: s.Agent, AgentID: s.AgentID,
		OutputSchema: s.Output, Gives: s.Gives,
	}
	if item >= 0 {
		start.Label += " " + label(of, item)
	}
	if len(rounds) > 0 && slices.Max(rounds) > 1 {
		start.Label += " (round " + strings.Trim(strings.ReplaceAll(fmt.Sprint(rounds), " ", "."), "[]") + ")"
	}
	var err error
	if start.Task, err = p.fill(i, rounds, of, s.Task); err != nil {
		return Start{}, err
	}
	if len(s.Gives) > 0 {
		start.Task += "\n\nLeave behind, with artifact_write, before you end: " + strings.Join(s.Gives, ", ") + "."
	}
	if len(s.Input) > 0 {
		v, err := decode(s.Input)
		if err == nil {
			v, err = textsIn(v, func(text string) (any, error) { return p.fillValue(i, rounds, of, text) })
		}
		if err != nil {
			return Start{}, err
		}
		start.Input = encode(v)
	}
	return start, nil
}

// handles are the artifacts that a step takes: of every run of the steps that
// gave them, in their order.
func (p *planner) handles(i int, rounds []int) []Handle {
	var out []Handle
	seen := map[Handle]bool{}
	for _, t := range p.Steps[i].Takes {
		d := p.index[t.Step]
		at, ok := p.left(i, d, rounds)
		if !ok {
			continue
		}
		for _, run := range p.look(d, at).runs {
			for _, name := range slices.Sorted(slices.Values(run.Artifacts)) {
				h := Handle{Key: run.Key, RunID: run.RunID, Name: name}
				if fits(t.Name, name) && !seen[h] {
					seen[h], out = true, append(out, h)
				}
			}
		}
	}
	return out
}

// look finds the runs of a step in one round that did their work, in order. It
// is called only once all of them have ended.
func (p *planner) look(d int, rounds []int) *found {
	f := p.at(d, rounds)
	if f.looked {
		return f
	}
	f.looked = true
	for n := range f.items {
		run, ok := p.runs[p.key(d, f.items.number(n), rounds)]
		if !ok || !run.State.Ended() || why(p.Steps[d], run) != "" {
			continue
		}
		v, err := decode(run.JSON)
		f.runs, f.results, f.bad = append(f.runs, run), append(f.results, v), append(f.bad, err)
	}
	return f
}

// fill puts values in the place of a text's placeholders, once: what they bring
// in is not looked at again.
func (p *planner) fill(i int, rounds []int, item any, text string) (string, error) {
	var failed error
	text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '\\' {
			return found[1:]
		}
		path := placeholder.FindStringSubmatch(found)[1]
		if d, isStep := p.index[path]; isStep {
			if at, ok := p.left(i, d, rounds); ok {
				return p.textOf(d, at)
			}
			return ""
		}
		v, err := p.value(i, rounds, item, path)
		failed = errors.Join(failed, err)
		return render(v)
	})
	if failed != nil {
		return "", errors.New(strings.ReplaceAll(failed.Error(), "\n", "; "))
	}
	return text, nil
}

// fillValue is fill for a text that may be one placeholder: it becomes the value
// itself.
func (p *planner) fillValue(i int, rounds []int, item any, text string) (any, error) {
	if m := placeholder.FindStringSubmatch(text); m != nil && m[0] == strings.TrimSpace(text) && m[0][0] != '\\' {
		return p.value(i, rounds, item, m[1])
	}
	return p.fill(i, rounds, item, text)
}

// value resolves a path for a step in its rounds.
func (p *planner) value(i int, rounds []int, item any, path string) (any, error) {
	segments := strings.Split(path, ".")
	head, rest := segments[0], segments[1:]
	d, isStep := p.index[head]
	switch {
	case head == wordItem:
		return walk(item, rest, shape{}, "the item")
	case head == wordRound:
		return json.Number(fmt.Sprint(rounds[len(rounds)-1])), nil
	case head == wordInput:
		return walk(p.input, rest, p.shape, "the input")
	case !isStep:
		return walk(p.input, segments, p.shape, "the input")
	}
	at, ok := p.left(i, d, rounds)
	if !ok {
		return nil, nil
	}
	f := p.look(d, at)
	if p.Steps[d].Each == "" {
		if len(f.runs) == 0 {
			return nil, nil
		}
		return p.resultOf(d, f, 0, rest)
	}
	list := []any{}
	for n := range f.runs {
		v, err := p.resultOf(d, f, n, rest)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// resultOf is a field of a run's JSON result; without one all of it, or the text
// if it is no JSON.
func (p *planner) resultOf(d int, f *found, n int, fields []string) (any, error) {
	run := f.runs[n]
	what := "the result of " + run.Key
	if len(run.JSON) == 0 {
		if len(fields) == 0 {
			return run.Result, nil
		}
		return nil, fmt.Errorf("%s is no JSON, so it has no field %s", what, fields[0])
	}
	if f.bad[n] != nil {
		return nil, fmt.Errorf("%s is no JSON: %w", what, f.bad[n])
	}
	return walk(f.results[n], fields, p.out[d], what)
}

// textOf is what a step said: of a wave one below the other, each below its item.
func (p *planner) textOf(d int, rounds []int) string {
	runs := p.look(d, rounds).runs
	if p.Steps[d].Each == "" {
		if len(runs) == 0 {
			return ""
		}
		return runs[0].Result
	}
	all, _ := p.items(d, rounds) // look has read them
	var parts []string
	for n, item := range all {
		if len(parts) < len(runs) && runs[len(parts)].Key == p.key(d, n, rounds) {
			parts = append(parts, "## "+label(item, n)+"\n\n"+runs[len(parts)].Result)
		}
	}
	return strings.Join(parts, "\n\n")
}

// jsonOf is the JSON result of a step, if it has one.
func (p *planner) jsonOf(d int, rounds []int) (any, bool) {
	list := []any{}
	f := p.look(d, rounds)
	for n, run := range f.runs {
		v, err := p.resultOf(d, f, n, nil)
		if p.Steps[d].Each == "" {
			return v, err == nil && len(run.JSON) > 0
		}
		if err == nil {
			list = append(list, v)
		}
	}
	return list, p.Steps[d].Each != ""
}

// walk follows fields into a value. A field of the first level that the schema
// lets out may be missing; it is nil then.
func walk(v any, fields []string, s shape, what string) (any, error) {
	for n, field := range fields {
		m, ok := v.(map[string]any)
		if !ok {
			if v == nil && n > 0 {
				return nil, nil
			}
			return nil, fmt.Errorf("%s has no field %s: it is %s", what, strings.Join(fields[:n+1], "."), kind(v))
		}
		if v, ok = m[field]; !ok && (n > 0 || !s.optional(field)) {
			return nil, fmt.Errorf("%s has no field %s", what, strings.Join(fields[:n+1], "."))
		}
	}
	return v, nil
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "a map"
}

// render writes a value into a text: texts as they are, nothing for null.
func render(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return string(encode(v))
}

// same compares a value with a plain one; 1 and 1.0 are the same number.
func same(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, both := b.(json.Number)
	if isNumber && both {
		f, err := x.Float64()
		g, err2 := y.Float64()
		return x == y || err == nil && err2 == nil && f == g
	}
	return reflect.DeepEqual(a, b)
}

// label names an item for people.
func label(item any, n int) string {
	text := ""
	if fields, ok := item.(map[string]any); ok {
		for _, key := range []string{"name", "title", "path", "file", "id"} {
			if s, ok := fields[key].(string); ok && text == "" {
				text = s
			}
		}
	} else if _, list := item.([]any); !list {
		text = render(item)
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:59]) + "…"
	}
	if text == "" {
		return fmt.Sprintf("item %d", n+1)
	}
	return text
}
