package prompt

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"goclaw"
)

//go:embed sections/*.md
var sectionFiles embed.FS

// kind is a kind of section: who sees it, and when there is something for it to
// speak of. Its text is in sections/ID.md.
type kind struct {
	id      string
	title   string
	about   string
	full    bool                  // main sessions see it
	minimal bool                  // workers do
	when    string                // the condition in words; "" if there is none
	lacks   func(*builder) string // what is missing for it; "" for nothing
}

// kinds are all sections in their order, most stable first.
var kinds = []kind{
	{id: "identity", about: "what the agent is", full: true},
	{id: "worker", about: "what a worker is: its role, rules, form of the result, what it must not do, whether it may spawn (the \"subagent context\" that all workers share)", minimal: true},
	{id: "tooling", about: "how tools are used", when: "if there are any", title: "Tooling", full: true, minimal: true, lacks: (*builder).noTools},
	{id: "safety", about: "what it must not do", title: "Safety", full: true, minimal: true},
	{id: "delegation", about: "how workers are spawned", when: "with `sessions_spawn`", title: "Workers", full: true, lacks: without("sessions_spawn", "no sessions_spawn tool")},
	{id: "agents", about: "the definitions that may be spawned, with tools, timeout and an example", when: "with `sessions_spawn`, if there are definitions", title: "Available subagents", full: true, minimal: true, lacks: (*builder).noWorkers},
	{id: "memory", about: "looking up what was remembered", when: "with `memory_search`", title: "Memory recall", full: true, lacks: without("memory_search", "no memory tools")},
	{id: "user", about: "who its person is, and their time zone", when: "if either is known", title: "Your person", full: true, lacks: (*builder).noUser},
	{id: "messaging", about: "where replies go", when: "in a channel, or with `message`", title: "Messaging", full: true, lacks: (*builder).noMessaging},
	{id: "reply_tags", about: "answering one message", when: "in a channel", title: "Reply tags", full: true, lacks: (*builder).noChannel},
	{id: "silent", about: "`NO_REPLY`", title: "Silent replies", full: true},
	{id: "heartbeat", about: "heartbeat turns", when: "if configured", title: "Heartbeats", full: true, lacks: (*builder).noHeartbeat},
	{id: "aliases", about: "short names of models", when: "if there are any", title: "Model aliases", full: true, lacks: (*builder).noAliases},
	{id: "docs", about: "where GoClaw is documented", when: "with `context.docs`", title: "Documentation", full: true, lacks: (*builder).noDocs},
	{id: "update", about: "updating GoClaw", when: "with an `update` tool", title: "Self-update", full: true, lacks: without("update", "no update tool")},
	{id: "voice", about: "speaking", when: "with a `tts` tool", title: "Voice", full: true, lacks: without("tts", "no tts tool")},
	{id: "workspace", about: "the working directory", title: "Workspace", full: true, minimal: true},
	{id: "skills", about: "the skills there are", when: "if there are any", title: "Skills", full: true, minimal: true, lacks: (*builder).noSkills},
	{id: "context", about: "the workspace files that follow", full: true, minimal: true, when: "if it sees any"},
	{id: "runtime", about: "host, system, model", title: "Runtime", full: true, minimal: true},
}

// Row describes a section for the table of docs/context.md.
type Row struct {
	ID    string
	About string
	When  string // the condition for it; "" if there is none
}

// Catalog lists all sections in their order, the definition's body first and
// each workspace file after the section that introduces them.
func Catalog() []Row {
	rows := []Row{{ID: "definition", About: "the definition's body, byte for byte", When: "if the worker has one"}}
	for _, k := range kinds {
		rows = append(rows, Row{ID: k.id, About: k.about, When: k.when})
		if k.id == "context" {
			for _, name := range fileOrder {
				rows = append(rows, Row{ID: "file:" + name, About: fileAbout[name]})
			}
		}
	}
	return rows
}

var fileAbout = map[string]string{
	"AGENTS.md": "how work is done", "TOOLS.md": "notes on this place", "SOUL.md": "who the agent is",
	"IDENTITY.md": "its card", "USER.md": "its person", "HEARTBEAT.md": "what to look at regularly",
	"MEMORY.md": "what lasts", "BOOTSTRAP.md": "the first conversation; the agent removes it, and it never comes back",
}

// SectionIDs lists the sections that a person may replace.
func SectionIDs() []string {
	var ids []string
	for _, k := range kinds {
		if k.id != "context" {
			ids = append(ids, k.id)
		}
	}
	return ids
}

func without(tool, why string) func(*builder) string {
	return func(b *builder) string {
		if b.has(tool) {
			return ""
		}
		return why
	}
}

func (b *builder) noTools() string {
	if len(b.in.Tools) == 0 {
		return "no tools"
	}
	return ""
}

func (b *builder) noWorkers() string {
	switch {
	case !b.has("sessions_spawn"):
		return "no sessions_spawn tool"
	case len(b.in.Workers) == 0:
		return "no definitions"
	}
	return ""
}

func (b *builder) noUser() string {
	if len(b.in.Facts.Owner) == 0 && b.in.Facts.Zone == "" {
		return "neither context.owner nor a time zone is known"
	}
	return ""
}

func (b *builder) noChannel() string {
	if b.in.Session.Kind != goclaw.KindChannel {
		return "no channel session"
	}
	return ""
}

func (b *builder) noMessaging() string {
	if b.noChannel() != "" && !b.has("message") {
		return "no channel session, and no message tool"
	}
	return ""
}

func (b *builder) noHeartbeat() string {
	if b.in.Facts.Heartbeats[b.in.Profile.Agent] == "" {
		return "no heartbeat is configured"
	}
	return ""
}

func (b *builder) noAliases() string {
	if len(b.in.Facts.Aliases) == 0 {
		return "models.aliases is empty"
	}
	return ""
}

func (b *builder) noDocs() string {
	if b.in.Facts.Docs == "" {
		return "context.docs is not set"
	}
	return ""
}

func (b *builder) noSkills() string {
	switch {
	case b.in.Skills.Text == "" && len(b.in.Profile.Skills) > 0:
		return "none of the skills that are named for it can be used"
	case b.in.Skills.Text == "" && !b.full():
		return "no skill is named for this worker"
	case b.in.Skills.Text == "":
		return "no skills"
	case !b.has("read"):
		return "no read tool to open them"
	}
	return ""
}

// section adds a section, or says why it is left out.
func (b *builder) section(k kind) {
	if b.full() && !k.full {
		return
	}
	if !b.full() && !k.minimal {
		b.omit("section "+k.id, "not for workers")
		return
	}
	title := k.title
	if k.id == "worker" && b.in.Body != "" {
		title = "Worker"
	}
	if r, ok := b.in.Replaced[k.id]; ok {
		if text := strings.TrimSpace(r.Text); text != "" {
			b.add(k.id, title, r.Source, b.fill(text))
		} else {
			b.omit("section "+k.id, "left out by "+r.Source)
		}
		return
	}
	if k.lacks != nil {
		if why := k.lacks(b); why != "" {
			b.omit("section "+k.id, why)
			return
		}
	}
	b.add(k.id, title, "built-in", b.text(k.id))
}

// text is a built-in section's own.
func (b *builder) text(id string) string {
	text := b.fill(builtIn(id))
	switch id {
	case "skills":
		text += "\n" + b.in.Skills.Text
	case "memory":
		for _, tool := range []string{"memory_get", "memory_write"} {
			if b.has(tool) {
				text += " " + builtIn(tool)
			}
		}
	case "messaging":
		switch {
		case b.noChannel() != "":
			text = builtIn("messaging_tool")
		case b.has("message"):
			text += " " + builtIn("messaging_tool")
		}
	}
	return text
}

func builtIn(id string) string {
	text, err := sectionFiles.ReadFile("sections/" + id + ".md")
	if err != nil {
		panic("prompt: no built-in section " + id) // a name in this package is wrong
	}
	return strings.TrimSpace(string(text))
}

// fill puts facts in the place of {{name}}. What workers are not told stays as
// it is written in a section of theirs.
func (b *builder) fill(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	spawning := "spawn_no"
	if b.has("sessions_spawn") {
		spawning = "spawn_yes"
	}
	facts := []string{
		"{{spawning}}", builtIn(spawning),
		"{{workspace}}", b.in.Profile.Workspace,
		"{{agents}}", b.workers(),
		"{{runtime}}", b.runtime(),
	}
	if b.full() {
		facts = append(facts,
			"{{user}}", b.user(),
			"{{heartbeat}}", b.in.Facts.Heartbeats[b.in.Profile.Agent],
			"{{aliases}}", b.aliases(),
			"{{docs}}", b.in.Facts.Docs,
		)
	}
	return strings.NewReplacer(facts...).Replace(text)
}

func (b *builder) user() string {
	var parts []string
	if len(b.in.Facts.Owner) > 0 {
		parts = append(parts, "Known as: "+strings.Join(b.in.Facts.Owner, ", ")+". Treat messages of others as those of strangers.")
	}
	if b.in.Facts.Zone != "" {
		parts = append(parts, "Time zone: "+b.in.Facts.Zone+".")
	}
	return strings.Join(parts, " ")
}

func (b *builder) aliases() string {
	var lines []string
	for _, short := range slices.Sorted(maps.Keys(b.in.Facts.Aliases)) {
		lines = append(lines, "- "+short+": "+b.in.Facts.Aliases[short])
	}
	return strings.Join(lines, "\n")
}

func (b *builder) workers() string {
	var lines []string
	for _, w := range b.in.Workers {
		timeout := "none"
		if w.TimeoutSeconds > 0 {
			timeout = fmt.Sprintf("%d s", w.TimeoutSeconds)
		}
		tools := strings.Join(w.Tools, ", ")
		if tools == "" {
			tools = "none"
		}
		lines = append(lines, fmt.Sprintf("- %s: %s\n  Tools: %s. Timeout: %s. Example: %s", w.Name, w.Description, tools, timeout, w.Example))
	}
	return strings.Join(lines, "\n")
}

func (b *builder) runtime() string {
	text := fmt.Sprintf("host=%s | os=%s | model=%s", b.in.Facts.Host, b.in.Facts.OS, b.in.Profile.Model)
	if t := b.in.Profile.Thinking; t != "" && t != "off" {
		text += " | thinking=" + t
	}
	return text
}
