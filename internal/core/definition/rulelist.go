package definition

import (
	"slices"

	"goclaw/internal/core/frontmatter"
)

// ruleList reads OpenCode 2's ordered rules, of which the last that matches a
// call counts, as the map that says the same. Where a later rule is looser than
// an earlier one, the earlier stays: a denial is never lost.
func (r *toolReader) ruleList(v frontmatter.Value) frontmatter.Value {
	m := frontmatter.Value{Kind: frontmatter.Map, Line: v.Line, Col: v.Col}
	for _, item := range v.Items {
		rule, ok := r.ruleOf(item)
		if !ok {
			continue
		}
		at := -1
		for i := range m.Fields {
			f := &m.Fields[i]
			if !wildcard(rule.Tool, f.Key) {
				continue
			}
			if f.Key == rule.Tool {
				at = i
			}
			r.override(f, rule)
		}
		if at < 0 {
			at = len(m.Fields)
			m.Fields = append(m.Fields, frontmatter.Field{
				Key: rule.Tool, Line: item.Line, Col: item.Col,
				Value: frontmatter.Value{Kind: frontmatter.Map, Line: item.Line, Col: item.Col},
			})
		}
		add(&m.Fields[at], rule)
	}
	return m
}

// override takes from an action's patterns those that a later rule covers and
// is at least as strict as; one that is about more actions is then theirs, too.
func (r *toolReader) override(f *frontmatter.Field, rule Rule) {
	f.Value.Fields = slices.DeleteFunc(f.Value.Fields, func(p frontmatter.Field) bool {
		covers := anything(rule.Pattern) || wildcard(rule.Pattern, p.Key)
		earlier := Action(p.Value.Text)
		if !covers || f.Key != rule.Tool && stricter(earlier, rule.Action) {
			return false
		}
		return !stricter(earlier, rule.Action) || p.Key == rule.Pattern
	})
	if f.Key != rule.Tool && rule.Action != Allow {
		add(f, rule)
	}
}

func add(f *frontmatter.Field, rule Rule) {
	if _, ok := f.Value.Field(rule.Pattern); ok {
		return
	}
	v := frontmatter.Value{Kind: frontmatter.String, Text: string(rule.Action), Line: f.Line, Col: f.Col}
	f.Value.Fields = append(f.Value.Fields, frontmatter.Field{Key: rule.Pattern, Line: f.Line, Col: f.Col, Value: v})
}

// ruleOf reads one of the rules; its tool is the action as it is written.
func (r *toolReader) ruleOf(v frontmatter.Value) (Rule, bool) {
	rule := Rule{Pattern: "*"}
	for _, f := range v.Fields {
		switch f.Key {
		case "action", "resource":
			if f.Value.Kind != frontmatter.String || f.Value.Text == "" {
				r.fail(f.Value, f.Key+" is "+kindOf(f.Value), "write a text, in quotes if it holds a *")
				return rule, false
			}
			if f.Key == "action" {
				rule.Tool = f.Value.Text
			} else {
				rule.Pattern = f.Value.Text
			}
		case "effect":
			action, ok := r.action("effect", f.Value)
			if !ok {
				return rule, false
			}
			rule.Action = action
		default:
			r.fail(frontmatter.Value{Line: f.Line, Col: f.Col}, "a rule of permissions has no key "+f.Key, "it has action, resource and effect")
			return rule, false
		}
	}
	if rule.Tool == "" || rule.Action == "" {
		r.fail(v, "a rule of permissions needs action and effect", "write {action: shell, resource: \"git *\", effect: allow}, or a map of tools to allow, ask or deny")
		return rule, false
	}
	return rule, true
}
