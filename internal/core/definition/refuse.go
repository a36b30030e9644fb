package definition

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Refuses returns what of a call the rules stand against, "" if nothing does.
// arguments are the call's, as JSON; where, which may be nil, finds the place in
// the workspace that they lead to, so that no spelling and no link leads around
// a rule. It is asked only if there are rules on the tool. Of exec each command
// of a line is looked at; where the rules speak of exec, a line that can't be
// taken apart for certain (substitutions, subshells, here-documents) is refused
// whole. Where a rule asks, nobody can be asked yet: that is a refusal.
func (t Tools) Refuses(tool, arguments string, where func() (string, error)) string {
	if !slices.ContainsFunc(t.Rules, func(r Rule) bool { return r.Tool == tool }) {
		return ""
	}
	var args struct {
		Command, Path, Agent, AgentID string
	}
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return arguments
	}
	if where != nil {
		if place, err := where(); err == nil {
			args.Path = place // else the call fails, too, or it is outside the workspace
		}
	}
	what := []string{args.Path}
	switch tool {
	case "exec":
		commands, ok := commandsOf(args.Command)
		if !ok {
			return args.Command
		}
		what = commands
	case "sessions_spawn", "spawn_agent":
		what = []string{args.Agent}
		if args.Agent == "" {
			what[0] = args.AgentID
		}
	}
	for _, w := range what {
		if t.Decide(tool, w) != Allow {
			return cmp.Or(w, "a call of this kind")
		}
	}
	return ""
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=[^\s'"]*\s+`)

// commandsOf takes a line of shell apart at ; & | and line ends. ok is false if
// quotes don't close, or if there is anything that could run a command which
// does not stand at the beginning of a part.
func commandsOf(line string) (commands []string, ok bool) {
	var quote byte
	start := 0
	add := func(end int) {
		part := strings.TrimSpace(line[start:end])
		for m := assignment.FindString(part); m != ""; m = assignment.FindString(part) {
			part = part[len(m):]
		}
		if part != "" {
			commands = append(commands, part)
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			}
		case c == '`', c == '$' && i+1 < len(line) && line[i+1] == '(':
			return nil, false
		case c == '\\':
			i++
		case quote == '"':
			if c == '"' {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == ')' || c == '{' || c == '}':
			return nil, false
		case c == '<' && i+1 < len(line) && (line[i+1] == '<' || line[i+1] == '('):
			return nil, false
		case c == ';' || c == '|' || c == '\n' || c == '&' && !redirects(line, i):
			add(i)
			start = i + 1
		}
	}
	if quote != 0 {
		return nil, false
	}
	add(len(line))
	return commands, len(commands) > 0
}

// redirects reports whether the & at i belongs to a redirection such as 2>&1.
func redirects(line string, i int) bool {
	return i > 0 && (line[i-1] == '>' || line[i-1] == '<') || i+1 < len(line) && line[i+1] == '>'
}
