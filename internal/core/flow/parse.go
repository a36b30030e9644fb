package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"goclaw/internal/core/frontmatter"
	"goclaw/internal/core/schema"
)

// Parse reads a flow's file. With problems the flow can't be used; they are in
// the file's order. A flow without a name is called like its file.
func Parse(file string, data []byte) (Flow, []Problem) {
	fields, unread := frontmatter.ParseYAML(data)
	p := &parser{file: file, places: map[place]frontmatter.Value{}}
	for _, u := range unread {
		p.problems = append(p.problems, Problem{file, u.Line, u.Col, u.Message, u.Hint})
	}
	if len(unread) > 0 {
		return Flow{}, p.problems
	}
	p.whole(fields)
	if len(p.problems) == 0 {
		for _, is := range build(p.flow).issues {
			at := p.place(is)
			p.fail(at, is.message, is.hint)
		}
	}
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
		})
		return Flow{}, p.problems
	}
	return p.flow, nil
}

type parser struct {
	file     string
	flow     Flow
	places   map[place]frontmatter.Value
	problems []Problem
}

// place names a value of the flow; entry is -1 for all of it.
type place struct {
	step  int
	key   string
	entry int
}

func (p *parser) place(is issue) frontmatter.Value {
	for _, at := range []place{{is.step, is.key, is.entry}, {is.step, is.key, -1}, {is.step, "", -1}} {
		if v, ok := p.places[at]; ok {
			return v
		}
	}
	return frontmatter.Value{Line: 1, Col: 1}
}

func (p *parser) fail(at frontmatter.Value, message, hint string) {
	p.problems = append(p.problems, Problem{p.file, at.Line, at.Col, message, hint})
}

// keys reads fields by a table, of which every key is known.
func (p *parser) keys(what string, step int, fields []frontmatter.Field, readers map[string]func(frontmatter.Field)) {
	for _, f := range fields {
		if read, ok := readers[f.Key]; ok {
			if step > -2 {
				p.places[place{step, f.Key, -1}] = f.Value
			}
			read(f)
			continue
		}
		keys := make([]string, 0, len(readers))
		for k := range readers {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		hint := "it has " + strings.Join(keys, ", ")
		if i := slices.IndexFunc(keys, func(k string) bool { return schema.Near(f.Key, k) }); i >= 0 {
			hint = fmt.Sprintf("did you mean %s?", keys[i])
		}
		p.fail(frontmatter.Value{Line: f.Line, Col: f.Col}, fmt.Sprintf("unknown key %q in %s", f.Key, what), hint)
	}
}

func (p *parser) whole(fields []frontmatter.Field) {
	f := &p.flow
	p.keys("a flow", -1, fields, map[string]func(frontmatter.Field){
		"name":        func(v frontmatter.Field) { f.Name = p.text(v) },
		"description": func(v frontmatter.Field) { f.Description = p.text(v) },
		"input":       func(v frontmatter.Field) { f.Input = p.object(v) },
		"result":      func(v frontmatter.Field) { f.Result = p.text(v) },
		"limits":      p.limits,
		"steps":       p.steps,
	})
	if f.Name == "" {
		base := path.Base(strings.ReplaceAll(p.file, `\`, "/"))
		f.Name = strings.TrimSuffix(base, path.Ext(base))
	}
}

func (p *parser) limits(v frontmatter.Field) {
	if v.Value.Kind != frontmatter.Map {
		p.fail(v.Value, "limits is "+v.Value.Kind.String()+", not a map", "write limits: {rounds: 3}")
		return
	}
	p.keys("limits", -2, v.Value.Fields, map[string]func(frontmatter.Field){
		"rounds": func(v frontmatter.Field) { p.flow.Limits.Rounds = p.number(v, MaxRounds) },
		"items":  func(v frontmatter.Field) { p.flow.Limits.Items = p.number(v, MaxItems) },
	})
}

func (p *parser) steps(v frontmatter.Field) {
	if v.Value.Kind != frontmatter.List {
		p.fail(v.Value, "steps is "+v.Value.Kind.String()+", not a list", "write one step per dash, with id and task")
		return
	}
	for i, item := range v.Value.Items {
		s := Step{Line: item.Line, Col: item.Col}
		p.places[place{i, "", -1}] = item
		if item.Kind != frontmatter.Map {
			p.fail(item, "a step is "+item.Kind.String()+", not a map", "write its keys behind the dash, with id and task")
		} else {
			p.step(i, &s, item)
		}
		p.flow.Steps = append(p.flow.Steps, s)
	}
}

func (p *parser) step(i int, s *Step, item frontmatter.Value) {
	p.keys("a step", i, item.Fields, map[string]func(frontmatter.Field){
		"id":       func(v frontmatter.Field) { s.ID = p.text(v) },
		"agent":    func(v frontmatter.Field) { s.Agent = p.text(v) },
		"agentId":  func(v frontmatter.Field) { s.AgentID = p.text(v) },
		"task":     func(v frontmatter.Field) { s.Task = p.text(v) },
		"each":     func(v frontmatter.Field) { s.Each = p.text(v) },
		"after":    func(v frontmatter.Field) { s.After = p.list(i, v) },
		"takes":    func(v frontmatter.Field) { s.Takes = p.takes(i, v) },
		"gives":    func(v frontmatter.Field) { s.Gives = p.list(i, v) },
		"input":    func(v frontmatter.Field) { s.Input = p.object(v) },
		"output":   func(v frontmatter.Field) { s.Output = p.object(v) },
		"until":    func(v frontmatter.Field) { s.Until = p.until(i, v) },
		"back":     func(v frontmatter.Field) { s.Back = p.text(v) },
		"optional": func(v frontmatter.Field) { s.Optional = p.yes(v) },
	})
	if _, ok := item.Field("id"); !ok {
		p.fail(item, "a step has no id", "add `id: NAME`, a word by which other steps can name it")
	}
	if _, ok := item.Field("task"); !ok {
		p.fail(item, "a step has no task", "add `task: …` that says what its worker is to do")
	}
	if _, ok := item.Field("after"); !ok && i > 0 {
		if before := p.flow.Steps[i-1].ID; before != "" {
			s.After = []string{before}
		}
	}
}

func (p *parser) text(f frontmatter.Field) string {
	v := f.Value
	if v.Kind != frontmatter.String || strings.TrimSpace(v.Text) == "" {
		kind := v.Kind.String()
		if v.Kind == frontmatter.String {
			kind = "empty"
		}
		hint := "write a text, in quotes if need be"
		if v.Kind == frontmatter.Map {
			hint = "put it in quotes: in YAML a brace begins a map"
		}
		p.fail(v, fmt.Sprintf("%s is %s, not a text", f.Key, kind), hint)
		return ""
	}
	return strings.TrimSpace(v.Text)
}

func (p *parser) yes(f frontmatter.Field) bool {
	if f.Value.Kind != frontmatter.Bool {
		p.fail(f.Value, fmt.Sprintf("%s is %s", f.Key, f.Value.Kind), "write true or false")
	}
	return f.Value.Bool
}

func (p *parser) number(f frontmatter.Field, most int64) int {
	if v := f.Value; v.Kind != frontmatter.Int || v.Int < 1 || v.Int > most {
		p.fail(v, fmt.Sprintf("%s is no whole number from 1 to %d", f.Key, most), "write one, without quotes; nothing here is without a bound")
		return 1
	}
	return int(f.Value.Int)
}

// list reads texts, or one text.
func (p *parser) list(step int, f frontmatter.Field) []string {
	v := f.Value
	if v.Kind == frontmatter.String {
		return []string{p.text(f)}
	}
	if v.Kind != frontmatter.List {
		p.fail(v, fmt.Sprintf("%s is %s, not a list", f.Key, v.Kind), "write one such as [a, b], or [] for none")
		return nil
	}
	var out []string
	for _, item := range v.Items {
		p.places[place{step, f.Key, len(out)}] = item
		out = append(out, p.text(frontmatter.Field{Key: "an entry of " + f.Key, Value: item}))
	}
	return out
}

func (p *parser) takes(step int, f frontmatter.Field) []Take {
	var out []Take
	for i, text := range p.list(step, f) {
		id, name, ok := strings.Cut(text, "/")
		if !ok || id == "" || name == "" {
			p.fail(p.place(issue{step: step, key: f.Key, entry: i}), fmt.Sprintf("takes holds %q, which is not STEP/ARTIFACT", text), "write one such as plan/PLAN.md; results are named in the task, as in {{plan}}")
			continue
		}
		out = append(out, Take{Step: id, Name: name})
	}
	return out
}

// object reads a map as JSON.
func (p *parser) object(f frontmatter.Field) json.RawMessage {
	if f.Value.Kind != frontmatter.Map {
		p.fail(f.Value, fmt.Sprintf("%s is %s, not a map", f.Key, f.Value.Kind), "write its keys below it, indented")
		return nil
	}
	return encode(f.Value.Any())
}

func (p *parser) until(step int, f frontmatter.Field) []Condition {
	if f.Value.Kind != frontmatter.Map || len(f.Value.Fields) == 0 {
		p.fail(f.Value, "until is no map of fields to values", "write until: {verdict: ok}")
		return nil
	}
	var out []Condition
	for _, c := range f.Value.Fields {
		p.places[place{step, f.Key, len(out)}] = frontmatter.Value{Line: c.Line, Col: c.Col}
		out = append(out, Condition{Field: c.Key, Is: encode(c.Value.Any())})
	}
	return out
}
