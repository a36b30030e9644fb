package definition

import (
	"slices"
	"strings"
)

// finish puts together what the keys said.
func (r *toolReader) finish() {
	t := Tools{Deny: unique(r.deny)}
	if len(r.dropped) > 0 {
		r.d.at(LevelNotice, r.first, "no counterpart here, left out: "+strings.Join(unique(r.dropped), ", "), "nothing to do, unless the worker can't do without")
	}
	if r.listed || r.all {
		t.Allow = r.allowed()
	}
	if r.only != nil {
		if t.Allow == nil {
			t.Allow = unique(r.only)
		} else {
			t.Allow = slices.DeleteFunc(t.Allow, func(tool string) bool { return !slices.Contains(r.only, tool) })
		}
	}
	if t.Allow != nil && len(t.Deny) > 0 {
		before := len(t.Allow)
		t.Allow = slices.DeleteFunc(t.Allow, func(tool string) bool { return slices.Contains(t.Deny, tool) || slices.Contains(t.Deny, "*") })
		if before > 0 && len(t.Allow) == 0 {
			r.d.at(LevelWarning, r.at, "every tool that it lists is denied as well", "write tools: [] if it is to have none")
		}
	}
	t.Rules = r.callRules(t)
	r.askingAll(&t)
	r.d.Tools = t
	if len(r.absent) > 0 {
		r.d.at(LevelDegrade, r.missing, "needs tools that are not there: "+strings.Join(unique(r.absent), ", "),
			"configure their MCP server, or remove them from the list; until then it can't be spawned")
	}
	r.checkUserFacing()
	r.checkAvailable()
}

// allowed is the list that the file gives, never wider than it says. nil is the
// worker set, and only "*" gives that.
func (r *toolReader) allowed() []string {
	list := slices.Concat(r.plain, r.foreign)
	for _, rule := range r.rules {
		list = append(list, rule.Tool)
	}
	if r.all {
		if !slices.ContainsFunc(list, func(tool string) bool { return !slices.Contains(workerSet[:], tool) }) {
			return nil
		}
		list = append(list, workerSet[:]...)
	}
	list = unique(list)
	if len(list) == 0 && len(r.dropped) > 0 {
		r.fail(r.at, "none of the tools that it lists exists here", "name others, or write [] for none")
	}
	return list
}

// callRules are the rules on tools that it has. A pattern in the list allows
// what it matches and nothing else of that tool.
func (r *toolReader) callRules(t Tools) []Rule {
	var rules []Rule
	limited := map[string]bool{}
	for _, rule := range r.rules {
		if r.all || slices.Contains(r.plain, rule.Tool) {
			continue // the whole tool is listed, too
		}
		if !limited[rule.Tool] {
			limited[rule.Tool] = true
			rules = append(rules, Rule{Tool: rule.Tool, Pattern: "*", Action: Deny})
		}
		rules = append(rules, rule)
	}
	rules = slices.Concat(rules, r.denyRules, r.forbidden)
	has := func(tool string) bool {
		if t.Allow != nil {
			return slices.Contains(t.Allow, tool)
		}
		return slices.Contains(workerSet[:], tool) && !slices.Contains(t.Deny, tool) && !slices.Contains(t.Deny, "*")
	}
	rules = slices.DeleteFunc(rules, func(rule Rule) bool { return !has(rule.Tool) })
	var loose []string
	for _, rule := range rules {
		if !anything(rule.Pattern) && !slices.Contains(r.opts.enforced(), rule.Tool) {
			loose = append(loose, rule.Tool)
		}
	}
	if len(loose) > 0 {
		r.d.at(LevelDegrade, r.at, "patterns are not enforced for "+strings.Join(unique(loose), ", "),
			"allow or deny the whole tool; until then it can't be spawned")
	}
	return rules
}

// askingAll denies the tools of which every call would have to be asked for:
// there is nobody to ask, and a tool that only refuses costs steps.
func (r *toolReader) askingAll(t *Tools) {
	var asking []string
	for _, rule := range t.Rules {
		if rule.Action == Ask && anything(rule.Pattern) && !slices.ContainsFunc(t.Rules, func(o Rule) bool {
			return o.Tool == rule.Tool && o.Action == Allow
		}) {
			asking = append(asking, rule.Tool)
		}
	}
	if len(asking) == 0 {
		return
	}
	asking = unique(asking)
	t.Deny = unique(append(t.Deny, asking...))
	if t.Allow != nil {
		t.Allow = slices.DeleteFunc(t.Allow, func(tool string) bool { return slices.Contains(asking, tool) })
	}
	r.d.at(LevelWarning, r.asks, "nobody can be asked before a call, so these are denied: "+strings.Join(asking, ", "), "write allow for those that it needs")
}

// checkUserFacing holds a user-facing definition to its allowlist.
func (r *toolReader) checkUserFacing() {
	if r.d.Visibility != "user-facing" {
		return
	}
	most := r.opts.UserFacingTools
	if most == nil {
		most = userFacing[:]
	}
	if r.d.Tools.Allow == nil {
		// It names no tool: it gets those of the worker set that it may have.
		r.d.Tools.Allow = slices.DeleteFunc(WorkerSet(), func(tool string) bool {
			return !permits(most, tool) || !Policy{Deny: r.d.Tools.Deny}.Allows(tool)
		})
		return
	}
	var outside []string
	for _, tool := range r.d.Tools.Allow {
		if !permits(most, tool) {
			outside = append(outside, tool)
		}
	}
	if len(outside) > 0 {
		r.fail(r.at, "a user-facing definition may not have "+strings.Join(outside, ", "),
			"remove them, leave visibility out, or add them to definitions.userFacingTools in the configuration")
	}
}

// permits reports whether a list names a tool, itself or by a prefix and *.
func permits(list []string, tool string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		prefix, any := strings.CutSuffix(p, "*")
		return p == tool || any && strings.HasPrefix(tool, prefix)
	})
}

// checkAvailable tells which of our own tools are not there. One that a person
// has yet to configure is no fault of the file: it is a notice, unless the worker
// would be left with nothing.
func (r *toolReader) checkAvailable() {
	if r.opts.Available == nil || r.d.Tools.Allow == nil {
		return
	}
	var gone, unset, how []string
	for _, tool := range r.d.Tools.Allow {
		if !slices.Contains(r.names.own, tool) || slices.Contains(r.opts.Available, tool) {
			continue
		}
		if hint := r.opts.Absent[tool]; hint != "" {
			unset, how = append(unset, tool), append(how, hint)
		} else {
			gone = append(gone, tool)
		}
	}
	if all := slices.Concat(gone, unset); len(all) > 0 && len(all) == len(r.d.Tools.Allow) {
		hint := "update GoClaw, or name others"
		if len(how) > 0 {
			hint = strings.Join(how, "; ") + ", or name others"
		}
		r.d.at(LevelDegrade, r.at, "none of its tools is there: "+strings.Join(all, ", "), hint+"; until then it can't be spawned")
		return
	}
	if len(gone) > 0 {
		r.d.at(LevelWarning, r.at, "not there yet: "+strings.Join(gone, ", "), "nothing to do; the worker runs without")
	}
	if len(unset) > 0 {
		r.d.at(LevelNotice, r.at, "not configured, so the worker runs without: "+strings.Join(unset, ", "), strings.Join(how, "; "))
	}
}

// unique sorts, and drops what stands twice; it never returns nil.
func unique(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return slices.Compact(out)
}
