package flow

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/definition"
)

// FromNext makes a flow of a definition that names what follows it, and of what
// the last of those names in turn: `next: executor with artifacts [PLAN.md]` is
// a chain of two. find looks a definition up by its name; without it only the
// text counts. ok is false if nothing follows.
//
// The flow's input is {"task": …}, which every worker of the chain gets, and,
// if the first one has an input schema, {"input": …} for it. An artifact that a
// worker is given comes from the one before it, unless the chain has named it
// already: then it is handed on from where it came. A worker that is given no
// artifacts gets the result of the one before it.
func FromNext(def definition.Definition, find func(name string) (definition.Definition, bool)) (f Flow, ok bool, err error) {
	if len(def.Typed.Next) == 0 {
		return Flow{}, false, nil
	}
	hops, err := chain(def, find)
	if err != nil {
		return Flow{}, true, err
	}
	f = Flow{Name: def.Slug(), Description: def.Description}
	properties, required := map[string]any{"task": map[string]any{"type": "string", "minLength": 1}}, []any{"task"}
	if def.Typed.Input != nil {
		form, err := decode(def.Typed.Input)
		if err != nil {
			return Flow{}, true, fmt.Errorf("%s: its input schema can't be read: %w", def.Path, err)
		}
		properties["input"], required = form, append(required, "input")
	}
	f.Input = encode(map[string]any{"type": "object", "required": required, "properties": properties})
	f.Steps = steps(hops)
	if def.Typed.Input != nil {
		f.Steps[0].Input = encode("{{input.input}}")
	}
	f.Result = f.Steps[len(f.Steps)-1].ID
	if g := build(f); len(g.issues) > 0 {
		return Flow{}, true, fmt.Errorf("%s: what follows it makes no flow: %s", def.Path, g.issues[0].message)
	}
	return f, true, nil
}

// chain follows next from definition to definition.
func chain(def definition.Definition, find func(string) (definition.Definition, bool)) ([]definition.Next, error) {
	hops := []definition.Next{{Agent: def.Name}}
	path := []string{def.Slug()}
	for len(def.Typed.Next) > 0 {
		hops = append(hops, def.Typed.Next...)
		if len(hops) > MaxSteps {
			return nil, fmt.Errorf("%s: the chain has more than %d workers; shorten it", def.Path, MaxSteps)
		}
		if find == nil {
			return hops, nil
		}
		last := definition.Definition{}
		for _, n := range def.Typed.Next {
			d, found := find(n.Agent)
			at := fmt.Sprintf("%s:%d:%d: next names %q", def.Path, n.Line, n.Col, n.Agent)
			switch {
			case !found:
				return nil, fmt.Errorf("%s, and there is no such definition; goclaw agents lists them", at)
			case d.Typed.Input != nil:
				return nil, fmt.Errorf("%s, which wants an input; next gives none, so write a flow", at)
			}
			last = d
		}
		if path = append(path, last.Slug()); len(last.Typed.Next) > 0 && slices.Contains(path[:len(path)-1], last.Slug()) {
			return nil, fmt.Errorf("%s:%d:%d: the chain never ends: %s; remove one next, or write a flow with until and back",
				def.Path, def.Typed.Next[0].Line, def.Typed.Next[0].Col, strings.Join(path, " → "))
		}
		def = last
	}
	return hops, nil
}

func steps(hops []definition.Next) []Step {
	out := make([]Step, len(hops))
	from := map[string]int{} // the step that gives an artifact
	used := []string{"task", wordInput, wordItem, wordRound}
	for i, hop := range hops {
		s := &out[i]
		s.ID, s.Agent, s.Line, s.Col = freeID(hop.Agent, used), hop.Agent, hop.Line, hop.Col
		used = append(used, s.ID)
		if i == 0 {
			s.Task = "{{task}}"
			continue
		}
		before := &out[i-1]
		s.After = []string{before.ID}
		for _, name := range hop.Artifacts {
			giver, known := from[name]
			if !known {
				giver, from[name] = i-1, i-1
				before.Gives = append(before.Gives, name)
			}
			s.Takes = append(s.Takes, Take{Step: out[giver].ID, Name: name})
		}
		if len(hop.Artifacts) > 0 {
			s.Task = "Do your part of the task below. Begin with the artifacts that you were given: they hold what those before you found and decided.\n\n{{task}}"
		} else {
			s.Task = "Do your part of the task below. The one before you left this:\n\n{{" + before.ID + "}}\n\nThe task:\n\n{{task}}"
		}
	}
	return out
}

func freeID(agent string, used []string) string {
	id := definition.Definition{Name: agent}.Slug()
	if !idForm.MatchString(id) {
		id = "worker"
	}
	for base, n := id[:min(len(id), 58)], 2; slices.Contains(used, id); n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	return id
}
