package definition

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/core/schema"
)

//go:embed toolnames.txt
var toolTable string

// sort of a tool name.
type nameKind int

const (
	nameUnknown   nameKind = iota
	nameOurs               // a tool of ours, by any name
	nameDropped            // a known one of others, without a counterpart
	nameForbidden          // one of ours that no worker may have
	nameExtension          // looks like an MCP server's or an extension's
)

// toolNames is the table, by folded name.
type toolNames struct {
	own     []string // our own names, sorted
	ours    map[string][]string
	dropped map[string]bool
	never   map[string]bool
}

func readToolNames() toolNames {
	n := toolNames{ours: map[string][]string{}, dropped: map[string]bool{}, never: map[string]bool{}}
	for line := range strings.Lines(toolTable) {
		line = strings.TrimSpace(line)
		left, right, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for name := range strings.SplitSeq(right, ",") {
			switch f := fold(name); {
			case f == "":
			case left == "-":
				n.dropped[f] = true
			case left == "!":
				n.never[f] = true
			default:
				n.ours[f] = strings.Fields(left)
			}
		}
		if own := strings.Fields(left); len(own) == 1 && left != "-" && left != "!" {
			n.own = append(n.own, left)
			n.ours[fold(left)] = own
		}
	}
	slices.Sort(n.own)
	return n
}

// fold makes names comparable: case, underscores, hyphens and blanks aside.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ', '\t':
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// vscodeSets are the namespaces of VS Code's own tools, as in edit/editFiles.
var vscodeSets = [...]string{"agent", "edit", "execute", "read", "search", "vscode", "web", "todo", "new", "runCommands", "runTasks", "runNotebooks", "browser"}

// find says what a name means. ours is set for nameOurs only.
func (n toolNames) find(name string) (kind nameKind, ours []string) {
	if set, leaf, ok := strings.Cut(name, "/"); ok && !strings.HasPrefix(name, "/") {
		own := slices.ContainsFunc(vscodeSets[:], func(s string) bool { return s == set })
		if !own {
			return nameExtension, nil
		}
		if names, ok := n.ours[fold(leaf)]; ok {
			return nameOurs, names
		}
		return nameDropped, nil
	}
	f := fold(name)
	switch {
	case n.ours[f] != nil:
		return nameOurs, n.ours[f]
	case n.never[f]:
		return nameForbidden, nil
	case n.dropped[f]:
		return nameDropped, nil
	case strings.HasSuffix(name, "*"):
		if names := n.matching(name); len(names) > 0 {
			return nameOurs, names
		}
	}
	if n.near(name) == "" && looksForeign(name) {
		return nameExtension, nil
	}
	return nameUnknown, nil
}

// matching expands a pattern of our own names, such as artifact_*.
func (n toolNames) matching(pattern string) []string {
	prefix := strings.TrimSuffix(pattern, "*")
	if len(prefix) < 2 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.own), func(own string) bool { return !strings.HasPrefix(own, strings.ToLower(prefix)) })
}

// covered are our own tools that a pattern of names means. A denial also means
// those that it matches by a name of others.
func (n toolNames) covered(pattern string, denies bool) []string {
	tools := []string{}
	for _, own := range n.own {
		if wildcard(strings.ToLower(pattern), own) {
			tools = append(tools, own)
		}
	}
	if denies {
		for name, ours := range n.ours {
			if wildcard(fold(pattern), name) {
				tools = append(tools, ours...)
			}
		}
	}
	return unique(tools)
}

// near returns the known name of which this may be a misspelling, "" if none.
func (n toolNames) near(name string) string {
	f := fold(name)
	for _, own := range n.own {
		if len(f) > 2 && schema.Near(f, fold(own)) {
			return own
		}
	}
	best := ""
	for other := range n.ours {
		if len(f) > 3 && schema.Near(f, other) && (best == "" || other < best) {
			best = other
		}
	}
	return best
}

// humps are several words in one, as in camelCase and WaitForServers.
var humps = regexp.MustCompile(`^[A-Za-z][a-z0-9]+[A-Z]|^[a-z][A-Z]`)

// looksForeign reports whether a name has the form of an MCP server's or an
// extension's tool: several words in one name, or a path or pattern of such.
func looksForeign(name string) bool {
	if name == "" || strings.ContainsAny(name, "\"'`{}[]<>|;$&\\!?") || strings.Contains(name, "://") {
		return false
	}
	inner := strings.Trim(name, "*_-. ")
	if len(inner) < 2 {
		return false
	}
	if strings.ContainsAny(inner, "_-./:* ") || strings.HasSuffix(name, "_*") || strings.HasSuffix(name, "-*") {
		return true
	}
	return humps.MatchString(inner)
}
