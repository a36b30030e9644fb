package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/frontmatter"
)

// permission reads OpenCode's permission (a tool, or patterns of its calls, to
// allow, ask or deny; since OpenCode 2 as a list of rules) and the lists allow,
// ask and deny of Claude Code's settings. It only ever narrows what tools gives.
func (r *toolReader) permission(v frontmatter.Value) {
	if r.at.Line == 0 {
		r.at = v
	}
	r.asks = v
	switch v.Kind {
	case frontmatter.String:
		v = frontmatter.Value{Kind: frontmatter.Map, Line: v.Line, Col: v.Col, Fields: []frontmatter.Field{{Key: "*", Line: v.Line, Col: v.Col, Value: v}}}
	case frontmatter.List:
		v, r.ordered = r.ruleList(v), true
	}
	if v.Kind != frontmatter.Map {
		r.fail(v, "permission is "+v.Kind.String(), "write a map of tools to allow, ask or deny")
		return
	}
	base := r.base(v)
	var named []string
	for _, f := range v.Fields {
		if f.Value.Kind == frontmatter.List {
			r.permissionList(f)
			continue
		}
		if f.Key == "*" {
			continue
		}
		tools, ok := r.permissionTools(f)
		if !ok {
			continue
		}
		if r.permit(f, tools, base) {
			named = append(named, slices.DeleteFunc(slices.Clone(tools), func(t string) bool { return t == "apply_patch" })...)
		}
	}
	switch base {
	case Deny:
		r.only = unique(named)
	case Ask:
		for _, tool := range workerSet {
			if !slices.Contains(named, tool) {
				r.denyRules = append(r.denyRules, Rule{Tool: tool, Pattern: "*", Action: Ask})
			}
		}
	}
}

// base is what holds for the calls that no other key is about. Its patterns,
// if it has some, are about every tool.
func (r *toolReader) base(v frontmatter.Value) Action {
	f, ok := v.Field("*")
	if !ok || f.Value.Kind == frontmatter.List {
		return Allow
	}
	if f.Value.Kind != frontmatter.Map {
		action, _ := r.action(f.Key, f.Value)
		return action
	}
	base := Allow
	for _, p := range f.Value.Fields {
		action, ok := r.action("*."+p.Key, p.Value)
		switch {
		case !ok:
		case anything(p.Key):
			base = action
		case action != Allow:
			r.narrow(workerSet[:], p.Key, action)
		}
	}
	return base
}

// permissionTools are the tools that a key is about; none is no problem.
func (r *toolReader) permissionTools(f frontmatter.Field) ([]string, bool) {
	if strings.Contains(f.Key, "*") {
		denies := !slices.ContainsFunc(f.Value.Fields, func(p frontmatter.Field) bool { return p.Value.Text == string(Allow) }) && f.Value.Text != string(Allow)
		if tools := r.names.covered(f.Key, denies); len(tools) > 0 {
			return tools, true
		}
		return []string{f.Key}, true // tools of a server, by a pattern
	}
	kind, tools := r.names.find(f.Key)
	switch kind {
	case nameOurs:
		if fold(f.Key) == "edit" {
			tools = []string{"apply_patch", "edit", "write"} // OpenCode's edit is every change of a file
		}
		return tools, true
	case nameExtension:
		return []string{f.Key}, true
	case nameDropped, nameForbidden:
		return nil, true
	}
	r.unknown(entry{name: f.Key, at: frontmatter.Value{Line: f.Line, Col: f.Col}})
	return nil, false
}

// permit takes the value of one tool's key, and reports whether anything of
// the tool is left. What its patterns don't match is left to base.
func (r *toolReader) permit(f frontmatter.Field, tools []string, base Action) bool {
	if f.Value.Kind != frontmatter.Map {
		action, ok := r.action(f.Key, f.Value)
		return ok && r.rule(tools, action)
	}
	var patterns []Rule
	left := false
	for _, p := range f.Value.Fields {
		action, ok := r.action(f.Key+"."+p.Key, p.Value)
		if !ok {
			return false
		}
		left = left || action != Deny
		patterns = append(patterns, Rule{Pattern: p.Key, Action: action})
	}
	if !r.ordered { // in a map, the longest counts wherever it stands
		slices.SortStableFunc(patterns, func(a, b Rule) int { return cmp.Compare(weight(a.Pattern), weight(b.Pattern)) })
	}
	whole := func(p Rule) bool { return anything(p.Pattern) }
	if !slices.ContainsFunc(patterns, whole) && base != Allow {
		patterns = append([]Rule{{Pattern: "*", Action: base}}, patterns...)
		left = left || base == Ask
	}
	if !left && slices.ContainsFunc(patterns, whole) {
		return r.rule(tools, Deny)
	}
	if i := slices.Index(tools, "apply_patch"); i >= 0 && slices.ContainsFunc(patterns, func(p Rule) bool { return p.Action != Allow }) {
		r.deny = append(r.deny, "apply_patch") // which files it changes is not looked at
		tools = slices.Delete(slices.Clone(tools), i, i+1)
	}
	for _, p := range patterns {
		if anything(p.Pattern) && p.Action == Allow {
			continue
		}
		on := tools
		if p.Action == Deny && !anything(p.Pattern) {
			on = changing(tools)
		}
		r.narrow(on, p.Pattern, p.Action)
	}
	return true
}

// rule applies one action to whole tools, and reports whether anything of them
// is left.
func (r *toolReader) rule(tools []string, action Action) bool {
	switch action {
	case Deny:
		r.deny = append(r.deny, tools...)
	case Ask:
		r.narrow(tools, "*", Ask)
	}
	return action != Deny
}

func (r *toolReader) narrow(tools []string, pattern string, action Action) {
	if anything(pattern) {
		pattern = "*"
	}
	for _, tool := range tools {
		r.denyRules = append(r.denyRules, Rule{Tool: tool, Pattern: pattern, Action: action})
	}
}

func (r *toolReader) action(key string, v frontmatter.Value) (Action, bool) {
	switch {
	case v.Kind == frontmatter.Bool && v.Bool:
		return Allow, true
	case v.Kind == frontmatter.Bool:
		return Deny, true
	case v.Kind == frontmatter.String && (v.Text == "allow" || v.Text == "ask" || v.Text == "deny"):
		return Action(v.Text), true
	}
	r.fail(v, fmt.Sprintf("permission %s is not allow, ask or deny", key), "write one of the three")
	return Deny, false
}

// permissionList reads one of the lists allow, ask and deny.
func (r *toolReader) permissionList(f frontmatter.Field) {
	switch f.Key {
	case "deny":
		if len(f.Value.Items) > 0 {
			r.denied(f.Value)
		}
	case "ask":
		entries, ok := r.entries("permission.ask", f.Value)
		for _, e := range entries {
			if kind, tools := r.names.find(e.name); ok && kind == nameOurs {
				pattern := e.args
				if pattern == "" {
					pattern = "*"
				}
				for _, tool := range tools {
					r.denyRules = append(r.denyRules, Rule{Tool: tool, Pattern: pattern, Action: Ask})
				}
			}
		}
	case "allow": // what it names is allowed already, or not in tools
	default:
		r.fail(f.Value, fmt.Sprintf("permission %s is a list", f.Key), "write allow, ask or deny, or a map of patterns to these")
	}
}
