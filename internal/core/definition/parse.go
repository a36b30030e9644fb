package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/core/frontmatter"
	"goclaw/internal/core/schema"
)

// Options is what Parse needs to know of the world. The zero value knows
// nothing of it and is strict.
type Options struct {
	// UserFacingTools is what user-facing definitions may have; nil is the
	// default of spec section 5. An entry may end in *.
	UserFacingTools []string

	// Available are the tools there are, MCP servers' among them. nil: all of
	// our own and no others.
	Available []string

	// Absent are tools of our own that are not there until a person configures
	// them, each with what to do for it.
	Absent map[string]string

	// Enforced are the tools whose calls the runtime holds against patterns;
	// nil: exec, sessions_spawn, and the tools that are about one place.
	Enforced []string
}

func (o Options) enforced() []string {
	if o.Enforced == nil {
		return []string{"edit", "exec", "ls", "read", "sessions_spawn", "write"}
	}
	return o.Enforced
}

// knownKeys are the keys of spec section 4.
var knownKeys = [...]string{
	"name", "description", "tools", "disallowedTools", "permission", "model", "modelRole", "thinking",
	"effort", "maxTurns", "steps", "timeoutSeconds", "visibility", "mode", "temperature", "skills",
	"mcpServers", "emitStructuredFindings", "goclaw",
}

// otherSpellings are what other systems call keys that we have. To ignore one
// of them would change what the file means.
var otherSpellings = [...][2]string{
	{"allowedTools", "tools"}, {"allowed-tools", "tools"}, {"allowed_tools", "tools"},
	{"disallowed-tools", "disallowedTools"}, {"disallowed_tools", "disallowedTools"},
	{"excludeTools", "disallowedTools"}, {"exclude_tools", "disallowedTools"},
	{"permissions", "permission"}, {"mcp-servers", "mcpServers"}, {"mcp_servers", "mcpServers"},
	{"max_turns", "maxTurns"}, {"max-turns", "maxTurns"}, {"maxSteps", "maxTurns"},
	{"timeout_seconds", "timeoutSeconds"}, {"timeout_mins", "timeout_mins"},
	{"permissionMode", "permissionMode"}, {"permission-mode", "permissionMode"}, {"permission_mode", "permissionMode"},
	{"readonly", "readonly"}, {"readOnly", "readonly"}, {"read-only", "readonly"}, {"read_only", "readonly"},
	{"disable", "disable"}, {"disabled", "disable"}, {"enabled", "enabled"},
	{"hooks", "hooks"}, {"isolation", "isolation"},
	{"disable-model-invocation", "disable-model-invocation"},
}

// mayBeEmpty are keys that may be left without a value: none of them forbids
// anything.
var mayBeEmpty = [...]string{"effort", "maxTurns", "mcpServers", "mode", "modelRole", "skills", "steps", "temperature", "thinking", "timeoutSeconds"}

// notDone are keys with a meaning in Claude Code or OpenCode that nothing here
// does. None of them forbids anything.
var notDone = [...]string{
	"background", "fallback_models", "initialPrompt", "maxTokens", "max_tokens", "memory", "options", "permissionMode",
	"reasoningEffort", "reasoning_effort", "request", "textVerbosity", "topP", "top_p", "variant",
}

// parser reads one file.
type parser struct {
	*Definition
	tools   toolReader
	seen    map[string]frontmatter.Field // known keys, by our spelling
	ignored []frontmatter.Field
	undone  []frontmatter.Field // as ignored, but somebody will miss them
}

// Parse reads a definition file. It always returns a definition: one that can't
// be used has the status rejected and says why in its problems. name is the
// path that messages and the fallback for a missing name use.
func Parse(file string, data []byte, opts Options) Definition {
	d := Definition{Path: file, Name: stem(file), Trusted: true}
	doc, problems := frontmatter.Parse(data)
	for _, p := range problems {
		d.add(LevelError, p.Line, p.Col, p.Message, p.Hint)
	}
	for _, p := range doc.Warnings {
		d.add(LevelWarning, p.Line, p.Col, p.Message, p.Hint)
	}
	d.Body = doc.Body
	sum := sha256.Sum256([]byte(doc.Body))
	d.SHA256 = hex.EncodeToString(sum[:])
	if len(problems) > 0 {
		d.Name = claimedName(data, d.Name)
	} else {
		p := &parser{Definition: &d, seen: map[string]frontmatter.Field{}}
		p.tools = toolReader{d: &d, opts: opts, names: readToolNames(), copilot: isCopilotFile(file)}
		p.read(doc)
		if strings.TrimSpace(d.Body) == "" {
			d.add(LevelWarning, doc.BodyLine, 1, "the body is empty, so the worker has no instructions of its own", "write them below the closing ---")
		}
	}
	d.settle()
	return d
}

// claimedName is the name that a file which can't be read seems to have. It
// decides nothing but whose place the file keeps.
func claimedName(data []byte, fallback string) string {
	n := 0
	for line := range strings.Lines(string(data[:min(len(data), frontmatter.MaxHead)])) {
		if value, ok := strings.CutPrefix(line, "name:"); ok {
			name := strings.Trim(strings.TrimSpace(value), `"'`)
			if slug(name) != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
				return name
			}
		}
		if n++; n > 1 && strings.TrimSpace(line) == "---" || n > 200 {
			break
		}
	}
	return fallback
}

// stem is the file's name without the endings that definition files have.
func stem(file string) string {
	base := path.Base(strings.ReplaceAll(file, "\\", "/"))
	for _, ending := range []string{".agent.md", ".chatmode.md", ".md"} {
		if s, ok := strings.CutSuffix(base, ending); ok {
			return s
		}
	}
	return base
}

func isCopilotFile(file string) bool {
	return strings.HasSuffix(file, ".agent.md") || strings.HasSuffix(file, ".chatmode.md")
}

func (p *parser) read(doc frontmatter.Document) {
	for _, f := range doc.Fields {
		p.sort(f)
	}
	p.nameAndDescription()
	p.settings()
	p.prohibitions()
	if f, ok := p.seen["tools"]; ok {
		p.tools.list(f.Value)
	}
	if f, ok := p.seen["disallowedTools"]; ok {
		p.tools.denied(f.Value)
		if p.tools.at.Line == 0 {
			p.tools.at = f.Value
		}
	}
	if f, ok := p.seen["permission"]; ok {
		p.tools.permission(f.Value)
	}
	if f, ok := p.seen["goclaw"]; ok {
		p.typed(f.Value)
	}
	if p.tools.at.Line == 0 {
		p.tools.at = frontmatter.Value{Line: 1, Col: 1}
	}
	p.tools.finish()
	p.isolation()
	p.planning()
	p.leftOut(p.ignored, "ignored: ", "nothing to do; they have no meaning here")
	p.leftOut(p.undone, "not done here: ", "nothing to do, unless the worker can't do without")
}

// leftOut tells in one notice of keys that change nothing.
func (p *parser) leftOut(fields []frontmatter.Field, what, hint string) {
	if len(fields) == 0 {
		return
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Key
	}
	p.add(LevelNotice, fields[0].Line, fields[0].Col, what+strings.Join(names, ", "), hint)
}

// sort puts a field where it belongs.
func (p *parser) sort(f frontmatter.Field) {
	key := f.Key
	if !slices.Contains(knownKeys[:], key) {
		i := slices.IndexFunc(otherSpellings[:], func(s [2]string) bool { return s[0] == key })
		if i < 0 {
			p.unknownKey(f)
			return
		}
		if key == "permissions" && f.Value.Kind != frontmatter.List {
			p.add(LevelWarning, f.Line, f.Col, "permissions is read as permission", "write permission, which other programs read as well")
		}
		key = otherSpellings[i][1]
	}
	if f.Value.Kind == frontmatter.Null && slices.Contains(mayBeEmpty[:], key) {
		p.at(LevelWarning, f.Value, f.Key+" is empty, as if it were not there", "give it a value, or remove the key")
		return
	}
	if earlier, ok := p.seen[key]; ok {
		p.add(LevelError, f.Line, f.Col, fmt.Sprintf("%s says the same as %s on line %d", f.Key, earlier.Key, earlier.Line), "keep one of them")
		return
	}
	p.seen[key] = f
}

func (p *parser) unknownKey(f frontmatter.Field) {
	for _, known := range knownKeys {
		if schema.Near(f.Key, known) {
			p.add(LevelError, f.Line, f.Col, fmt.Sprintf("unknown key %q", f.Key), fmt.Sprintf("did you mean %s?", known))
			return
		}
	}
	if slices.Contains([]string{"promptMode", "inherit", "next"}, f.Key) {
		p.add(LevelError, f.Line, f.Col, fmt.Sprintf("the key %s does not stand at the top", f.Key), "put it under goclaw:")
		return
	}
	p.leave(f)
}

func (p *parser) leave(f frontmatter.Field) {
	if slices.Contains(notDone[:], f.Key) {
		p.undone = append(p.undone, f)
		return
	}
	p.ignored = append(p.ignored, f)
}

func (p *parser) nameAndDescription() {
	name, ok := p.seen["name"]
	switch {
	case ok && name.Value.Kind != frontmatter.Null:
		p.setName(name.Value)
	case p.nameless():
		p.add(LevelNotice, 1, 1, fmt.Sprintf("no name; the file's is taken: %s", p.Name), "write `name: …` to choose another")
	default:
		p.add(LevelError, 1, 1, "the key name is missing", fmt.Sprintf("add a line `name: %s`", slug(p.Name)))
	}
	f, ok := p.seen["description"]
	_, mode := p.seen["mode"]
	switch {
	case !ok && mode && p.nameless():
		p.add(LevelDegrade, 1, 1, "the key description is missing, so no agent could know when to use it", "add a line `description: …` that says it; until then it can't be spawned")
	case !ok:
		p.add(LevelError, 1, 1, "the key description is missing", "add a line `description: …` that says when to use it")
	case f.Value.Kind == frontmatter.Null, f.Value.Kind == frontmatter.String && strings.TrimSpace(f.Value.Text) == "":
		p.at(LevelError, f.Value, "description is empty", "say in a sentence when to use it")
	default:
		p.Description = strings.TrimSpace(p.text(f))
	}
}

// nameless reports whether the file is of a system that names agents by file.
func (p *parser) nameless() bool {
	if isCopilotFile(p.Path) || strings.Contains(p.Path, ".opencode/") {
		return true
	}
	_, mode := p.seen["mode"]
	_, permission := p.seen["permission"]
	return mode || permission || p.seen["tools"].Value.Kind == frontmatter.Map
}

const maxName = 100

func (p *parser) setName(v frontmatter.Value) {
	name := strings.TrimSpace(v.Text)
	switch {
	case v.Kind != frontmatter.String && v.Kind != frontmatter.Int:
		p.at(LevelError, v, "name is "+v.Kind.String(), "write a text, in quotes if need be")
	case name == "" || slug(name) == "":
		p.at(LevelError, v, "name holds no letter and no digit", "write a short name such as code-reviewer")
	case len([]rune(name)) > maxName || strings.ContainsFunc(name, unicode.IsControl):
		p.at(LevelError, v, fmt.Sprintf("name is longer than %d characters or has several lines", maxName), "write a short name such as code-reviewer")
	default:
		p.Name = name
		if s := slug(name); s != name {
			p.at(LevelWarning, v, fmt.Sprintf("the name %q is no slug", name), fmt.Sprintf("nothing to do; it also answers to %s", s))
		}
	}
}

// settings reads the plain keys.
func (p *parser) settings() {
	for key, f := range p.seen {
		v := f.Value
		switch key {
		case "model":
			p.model(f)
		case "modelRole":
			p.ModelRole = p.oneOf(f, "main", "fast", "compaction", "fallback", "embedding")
		case "thinking":
			p.Thinking = p.thinking(f)
		case "effort":
			p.Effort = p.oneOf(f, "low", "medium", "high", "xhigh", "max")
		case "maxTurns", "steps":
			p.MaxTurns = p.whole(f, 1, 1_000_000)
		case "timeoutSeconds":
			n := p.whole(f, 0, 31_536_000)
			p.TimeoutSeconds = &n
		case "timeout_mins":
			n := 60 * p.whole(f, 0, 525_600)
			p.TimeoutSeconds = &n
		case "visibility":
			p.Visibility = p.oneOf(f, "user-facing", "internal")
		case "mode":
			p.mode(f)
		case "temperature":
			if v.Kind != frontmatter.Int && v.Kind != frontmatter.Float || v.Float < 0 || v.Float > 2 {
				p.at(LevelError, v, "temperature is no number from 0 to 2", "write one, such as 0.2")
				continue
			}
			p.Temperature = &v.Float
		case "skills":
			p.Skills = p.names(f)
		case "mcpServers":
			p.servers(f)
		case "emitStructuredFindings":
			p.EmitFindings = p.yes(f)
		}
	}
	if f, ok := p.seen["steps"]; ok {
		if _, both := p.seen["maxTurns"]; both {
			p.add(LevelError, f.Line, f.Col, "steps says the same as maxTurns", "keep one of them")
		}
	}
	if f, ok := p.seen["timeout_mins"]; ok {
		if _, both := p.seen["timeoutSeconds"]; both {
			p.add(LevelError, f.Line, f.Col, "timeout_mins says the same as timeoutSeconds", "keep one of them")
		}
	}
}
