package definition

import (
	"path"
	"strings"

	"goclaw"
)

// Rule says what is done about some of a tool's calls.
type Rule = goclaw.DefinitionRule

// Action is what a rule says about a call.
type Action = goclaw.RuleAction

// The actions. Where nobody can be asked, ask means deny.
const (
	Allow = goclaw.RuleAllow
	Ask   = goclaw.RuleAsk
	Deny  = goclaw.RuleDeny
)

// Decide says what the rules have to say about one call. what is a single
// command, path or name: a caller with several of them (a; b) asks for each.
// The longest matching pattern counts, and of equal ones the strictest; "*" is
// the shortest. The last one counts as well, if it is stricter. No matching rule
// allows.
func (t Tools) Decide(tool, what string) Action {
	action, last, length := Allow, Allow, -1
	for _, r := range t.Rules {
		if r.Tool != tool || !about(r, what) {
			continue
		}
		last = r.Action
		n := weight(r.Pattern)
		if n > length || n == length && stricter(r.Action, action) {
			action, length = r.Action, n
		}
	}
	if stricter(last, action) {
		return last
	}
	return action
}

// weight is how much a pattern counts among others that match.
func weight(pattern string) int {
	if anything(pattern) {
		return 0
	}
	return len(pattern)
}

func stricter(a, b Action) bool { return a == Deny && b != Deny || a == Ask && b == Allow }

// about reports whether a rule speaks of one call. One that denies or asks has
// the widest reading that its pattern may have: ? is any character, a name
// without a slash is meant in every folder, and what is said of a folder holds
// for all that lies in it.
func about(r Rule, what string) bool {
	if r.Action == Allow {
		return matches(r.Pattern, what)
	}
	pattern := strings.ReplaceAll(r.Pattern, "?", "*")
	if matches(pattern, what) {
		return true
	}
	if !placed(r.Tool) {
		return false
	}
	pattern = strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/")
	for at := path.Clean("/" + what); at != "/"; at = path.Dir(at) {
		if wildcard(pattern, at[1:]) || wildcard(pattern, at) || !strings.Contains(pattern, "/") && wildcard(pattern, path.Base(at)) {
			return true
		}
	}
	return false
}

// placed reports whether the calls of a tool are about one place each.
func placed(tool string) bool {
	return tool == "edit" || tool == "ls" || tool == "read" || tool == "write"
}

// anything reports whether a pattern holds for every call.
func anything(pattern string) bool { return strings.Trim(pattern, "*/") == "" || pattern == ":*" }

func matches(pattern, what string) bool {
	if anything(pattern) {
		return true
	}
	if command, ok := strings.CutSuffix(pattern, ":*"); ok {
		what = strings.TrimSpace(what)
		return what == command || strings.HasPrefix(what, command+" ") || strings.HasPrefix(what, command+"\t")
	}
	if command, ok := strings.CutSuffix(pattern, " *"); ok && wildcard(command, strings.TrimSpace(what)) {
		return true // the command without arguments
	}
	pattern = strings.TrimPrefix(pattern, "./")
	return wildcard(pattern, what) || wildcard(pattern, path.Clean(what)) || wildcard(pattern, path.Clean("/"+what))
}

// wildcard matches * against any characters, in time linear in each of both.
func wildcard(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		if part == "" {
			continue
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}
