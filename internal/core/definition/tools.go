package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw/internal/core/frontmatter"
)

// Tools is what a file says about tools, in our names.
type Tools struct {
	// Allow is nil for the worker set and empty for none. It holds names of MCP
	// servers' and extensions' tools as they are written.
	Allow []string

	// Deny holds names without a counterpart as they are written; "*" is all.
	Deny []string

	Rules []Rule // on calls of tools that are allowed
}

// workerSet is what a worker gets whose file has no key tools (spec section 4).
var workerSet = [...]string{
	"artifact_list", "artifact_read", "artifact_write", "attach_file", "edit", "exec", "glob",
	"grep", "ls", "read", "web_fetch", "web_search", "write",
}

// WorkerSet lists the tools of a worker whose file does not name any, sorted.
func WorkerSet() []string { return slices.Clone(workerSet[:]) }

// userFacing is the default of definitions.userFacingTools (spec section 5).
var userFacing = [...]string{
	"artifact_list", "artifact_read", "artifact_write", "attach_file", "glob", "grep", "ls",
	"read", "web_fetch", "web_search",
}

// copilotNames are names that only VS Code's files use; where one stands, a
// plain unknown word is the name of a server or an extension.
var copilotNames = [...]string{
	"codebase", "editFiles", "githubRepo", "runCommands", "findTestFiles", "testFailure", "vscodeAPI",
	"terminalLastCommand", "runTasks", "openSimpleBrowser", "searchResults",
}

// toolReader gathers what the keys of one file say about tools.
type toolReader struct {
	d       *Definition
	opts    Options
	names   toolNames
	copilot bool

	listed  bool // there is a list of tools
	at      frontmatter.Value
	all     bool
	plain   []string          // allowed without a pattern
	foreign []string          // kept as written
	rules   []Rule            // patterns of the list
	dropped []string          // as written
	first   frontmatter.Value // where the first dropped one stands
	absent  []string
	missing frontmatter.Value // where the first absent one stands

	deny      []string
	denyRules []Rule            // of permission
	forbidden []Rule            // of disallowedTools: stronger than all else
	ordered   bool              // permission is a list, of which the last that matches counts
	asks      frontmatter.Value // where permission stands
	only      []string          // what a permission of "*": deny leaves; nil: all
}

// entry is one name of a list: Bash(git:*) has the args git:*.
type entry struct {
	name, args string
	at         frontmatter.Value
}

func (r *toolReader) fail(at frontmatter.Value, message, hint string) {
	r.d.at(LevelError, at, message, hint)
}

// list reads the value of tools.
func (r *toolReader) list(v frontmatter.Value) {
	r.listed, r.at = true, v
	switch v.Kind {
	case frontmatter.Null:
		r.fail(v, "tools is empty (null)", "write [] for no tools, or remove the key for the worker set")
	case frontmatter.Map:
		r.boolMap(v)
	default:
		entries, ok := r.entries("tools", v)
		if !ok {
			return
		}
		r.copilot = r.copilot || slices.ContainsFunc(entries, isCopilots)
		for _, e := range entries {
			r.allow(e)
		}
	}
}

func isCopilots(e entry) bool {
	set, _, ok := strings.Cut(e.name, "/")
	return ok && slices.Contains(vscodeSets[:], set) || slices.Contains(copilotNames[:], e.name)
}

// boolMap reads OpenCode's form. Where tools are switched on, only these are
// meant; where all are switched off, the worker set without them.
func (r *toolReader) boolMap(v frontmatter.Value) {
	if len(v.Fields) == 0 {
		r.fail(v, "tools is an empty map", "write [] for no tools, or remove the key for the worker set")
		return
	}
	on := 0
	for _, f := range v.Fields {
		e := newEntry(f.Key, frontmatter.Value{Line: f.Line, Col: f.Col})
		switch {
		case f.Value.Kind != frontmatter.Bool:
			r.fail(f.Value, fmt.Sprintf("tools.%s is %s, not true or false", f.Key, f.Value.Kind), "write true or false")
		case f.Value.Bool:
			on++
			r.allow(e)
		case f.Key == "*":
			on++ // nothing but what is switched on
		default:
			r.denyEntry(e)
		}
	}
	if on == 0 {
		r.listed = false
	} else if !r.all && len(r.plain) > 0 && !slices.ContainsFunc(v.Fields, func(f frontmatter.Field) bool { return f.Key == "*" }) {
		r.d.at(LevelNotice, v, "only the tools that are true here are allowed; in OpenCode those that are not named stay on", "name all that it needs")
	}
	if _, off := v.Field("*"); off && on == 1 && !r.all {
		r.listed, r.only = false, []string{} // {"*": false} alone
	}
}

// entries splits a list or a comma string.
func (r *toolReader) entries(key string, v frontmatter.Value) ([]entry, bool) {
	var out []entry
	switch v.Kind {
	case frontmatter.List:
		for _, item := range v.Items {
			if item.Kind != frontmatter.String || strings.TrimSpace(item.Text) == "" {
				r.fail(item, fmt.Sprintf("%s holds %s, not a tool's name", key, kindOf(item)), "write one name per entry")
				return nil, false
			}
			out = append(out, newEntry(item.Text, item))
		}
		return out, true
	case frontmatter.String:
		out = splitNames(v)
		if len(out) == 0 {
			r.fail(v, key+" is an empty text", "write [] for none, or remove the key")
			return nil, false
		}
		return r.spaced(key, out), true
	}
	r.fail(v, fmt.Sprintf("%s is %s", key, v.Kind), "write a list such as [read, grep]")
	return nil, false
}

// spaced splits `Read Grep Glob`: one entry of several words that are all known.
func (r *toolReader) spaced(key string, entries []entry) []entry {
	if len(entries) != 1 || !strings.Contains(entries[0].name, " ") || isAll(entries[0].name) {
		return entries
	}
	if kind, _ := r.names.find(entries[0].name); kind == nameOurs || kind == nameDropped {
		return entries
	}
	var out []entry
	for word := range strings.FieldsSeq(entries[0].name) {
		if kind, _ := r.names.find(word); kind != nameOurs && kind != nameDropped {
			return entries
		}
		out = append(out, newEntry(word, entries[0].at))
	}
	out[len(out)-1].args = entries[0].args
	r.d.at(LevelWarning, entries[0].at, key+" is separated by blanks", "put commas between the names")
	return out
}

// splitNames cuts a text at commas and line ends that are not in parentheses.
func splitNames(v frontmatter.Value) []entry {
	var out []entry
	depth, from := 0, 0
	cut := func(to int) {
		piece := v.Text[from:to]
		if name := strings.TrimSpace(piece); name != "" {
			at := v
			if start := v.Text[:from+strings.Index(piece, name)]; !strings.Contains(start, "\n") {
				at.Col += utf8.RuneCountInString(start)
				if v.Quoted {
					at.Col++
				}
			}
			out = append(out, newEntry(name, at))
		}
		from = to + 1
	}
	for i := range len(v.Text) {
		switch c := v.Text[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		case (c == ',' || c == '\n') && depth == 0:
			cut(i)
		}
	}
	cut(len(v.Text))
	return out
}

func newEntry(text string, at frontmatter.Value) entry {
	text = strings.TrimSpace(text)
	name, args, ok := strings.Cut(text, "(")
	if !ok || !strings.HasSuffix(args, ")") {
		return entry{name: text, at: at}
	}
	return entry{name: strings.TrimSpace(name), args: strings.TrimSpace(strings.TrimSuffix(args, ")")), at: at}
}

func isAll(name string) bool {
	f := fold(name)
	return f == "*" || f == "all" || f == "alltools"
}

func (r *toolReader) allow(e entry) {
	if isAll(e.name) {
		r.all = true
		return
	}
	kind, ours := r.names.find(e.name)
	if kind == nameUnknown && r.copilot && r.names.near(e.name) == "" && plainWord(e.name) {
		kind = nameExtension
	}
	switch kind {
	case nameOurs:
		for _, tool := range ours {
			if e.args == "" || anything(e.args) {
				r.plain = append(r.plain, tool)
				continue
			}
			for pattern := range strings.SplitSeq(e.args, ",") {
				r.rules = append(r.rules, Rule{Tool: tool, Pattern: strings.TrimSpace(pattern), Action: Allow})
			}
		}
	case nameDropped:
		if len(r.dropped) == 0 {
			r.first = e.at
		}
		r.dropped = append(r.dropped, e.name)
	case nameForbidden:
		r.fail(e.at, fmt.Sprintf("no worker may have the tool %s", e.name), "remove it; the agent that spawned the worker has it")
	case nameExtension:
		r.foreign = append(r.foreign, e.name)
		if !slices.Contains(r.opts.Available, e.name) {
			if len(r.absent) == 0 {
				r.missing = e.at
			}
			r.absent = append(r.absent, e.name)
		}
	default:
		r.unknown(e)
	}
}

func plainWord(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
}

func (r *toolReader) unknown(e entry) {
	hint := "remove it, or write one of " + strings.Join(workerSet[:], ", ")
	switch near := r.names.near(e.name); {
	case near != "":
		hint = fmt.Sprintf("did you mean %s?", near)
	case strings.EqualFold(e.name, "none"):
		hint = "write [] for no tools"
	case strings.EqualFold(e.name, "inherit"), strings.EqualFold(e.name, "default"):
		hint = "remove the key for the worker set"
	case strings.ContainsAny(e.name, "|;&+"):
		hint = "put commas between the names"
	case strings.ContainsAny(e.name, "[]"):
		hint = "remove the quotes around the list"
	}
	r.fail(e.at, fmt.Sprintf("unknown tool %q", e.name), hint)
}

// denied reads the value of disallowedTools.
func (r *toolReader) denied(v frontmatter.Value) {
	entries, ok := r.entries("disallowedTools", v)
	if !ok {
		return
	}
	for _, e := range entries {
		r.denyEntry(e)
	}
}

func (r *toolReader) denyEntry(e entry) {
	if isAll(e.name) {
		r.deny = append(r.deny, "*")
		return
	}
	kind, ours := r.names.find(e.name)
	switch {
	case kind == nameUnknown && !(r.copilot && plainWord(e.name)):
		r.unknown(e) // were it let through, what it is meant to forbid would stay allowed
	case kind != nameOurs:
		r.deny = append(r.deny, e.name)
	case e.args == "" || anything(e.args):
		r.deny = append(r.deny, ours...)
	default:
		for _, tool := range changing(ours) {
			for pattern := range strings.SplitSeq(e.args, ",") {
				r.forbidden = append(r.forbidden, Rule{Tool: tool, Pattern: strings.TrimSpace(pattern), Action: Deny})
			}
		}
	}
}

// changing adds to a tool that changes files the other one: a place that may
// not be edited may not be written anew either, nor the other way.
func changing(tools []string) []string {
	if slices.Contains(tools, "edit") || slices.Contains(tools, "write") {
		return unique(append(slices.Clone(tools), "edit", "write"))
	}
	return tools
}

func kindOf(v frontmatter.Value) string {
	if v.Kind == frontmatter.String {
		return "an empty text"
	}
	return v.Kind.String()
}
