package prompt

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

//go:embed sections/*.md
var sectionFiles embed.FS

// The workspace files, in the order in which they stand in a prompt.
var fileOrder = []string{
	"AGENTS.md", "TOOLS.md", "SOUL.md", "IDENTITY.md", "USER.md",
	"HEARTBEAT.md", "MEMORY.md", "BOOTSTRAP.md",
}

// expected files show a line when they are missing; the others may be absent.
var expected = []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md"}

// MainFiles is what a main session sees, WorkerFiles the most that a worker
// sees unless a person lifts it by name (spec section 3.2).
func MainFiles() []string { return slices.Clone(fileOrder) }

// WorkerFiles returns a fresh copy of the workers' allowlist.
func WorkerFiles() []string { return []string{"AGENTS.md", "TOOLS.md"} }

// Input is what a prompt is made of.
type Input struct {
	Profile goclaw.Profile
	Files   []goclaw.WorkspaceFile // all there are; the profile decides what is seen
	Tools   []goclaw.ToolSpec      // those that the profile allows
	Session goclaw.SessionKey      // its kind says how replies reach the person
	Skills  SkillList              // those that the profile may know
	Workers []WorkerCard           // definitions that may be spawned
	Facts   Facts

	// Replaced are the sections that the person has written, by id.
	Replaced map[string]Replacement
}

// Facts hold for the process, or for all sessions of its person.
type Facts struct {
	Host      string
	OS        string
	Owner     []string          // how the agent knows its person
	Zone      string            // the person's time zone
	Aliases   map[string]string // short names of models
	Docs      string            // where the agent may look up how it works; "" for nowhere
	Heartbeat string            // how often it looks after things by itself, such as 30m; "": never
}

// SkillList is the list of skills as a prompt has it.
type SkillList struct {
	Text    string // <available_skills>…; "" if there is none
	Listed  []goclaw.Skill
	Omitted []goclaw.Omission // those that are left out, and why
}

// WorkerCard is what the requester's prompt says of a definition.
type WorkerCard struct {
	Name           string
	Description    string
	Tools          []string
	TimeoutSeconds int    // 0: none
	Example        string // a call with context, as JSON
}

// Replacement is a section's text as the person wants it; "" leaves it out.
type Replacement struct {
	Text   string
	Source string // the file
}

// Assemble builds the prompt. Token counts are four bytes each.
func Assemble(in Input) goclaw.Prompt {
	p := goclaw.Prompt{
		Tools: slices.Clone(in.Tools), Model: in.Profile.Model, Thinking: in.Profile.Thinking,
	}
	slices.SortFunc(p.Tools, func(a, b goclaw.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	b := builder{prompt: &p, in: in}
	switch in.Profile.PromptMode {
	case goclaw.PromptFull:
		b.full()
	case goclaw.PromptMinimal:
		b.minimal()
	}
	return p
}

// Render is the text that is sent: one block that is stable to its end.
func Render(p goclaw.Prompt) []goclaw.SystemBlock {
	var out strings.Builder
	for _, s := range p.Sections {
		if out.Len() > 0 {
			out.WriteString("\n\n")
		}
		if s.Title != "" {
			out.WriteString("## " + s.Title + "\n")
		}
		out.WriteString(s.Text)
	}
	if out.Len() == 0 {
		return nil
	}
	return []goclaw.SystemBlock{{Text: out.String(), StableUntil: true}}
}

type builder struct {
	prompt *goclaw.Prompt
	in     Input
}

func (b *builder) full() {
	b.fixed("identity", "")
	b.fixed("tooling", "Tooling")
	b.fixed("safety", "Safety")
	if b.has("sessions_spawn") {
		b.fixed("delegation", "Workers")
	}
	b.fixed("silent", "Silent replies")
	b.fixed("workspace", "Workspace")
	b.files()
	b.runtime()
}

func (b *builder) minimal() {
	b.fixed("worker", "")
	b.fixed("tooling", "Tooling")
	b.fixed("safety", "Safety")
	b.fixed("workspace", "Workspace")
	b.files()
	b.runtime()
}

func (b *builder) has(tool string) bool {
	return slices.ContainsFunc(b.in.Tools, func(t goclaw.ToolSpec) bool { return t.Name == tool })
}

// fixed adds the built-in section of that id.
func (b *builder) fixed(id, title string) {
	spawning := "spawn_no"
	if b.has("sessions_spawn") {
		spawning = "spawn_yes"
	}
	text := builtIn(id)
	text = strings.ReplaceAll(text, "{{spawning}}", builtIn(spawning))
	text = strings.ReplaceAll(text, "{{workspace}}", b.in.Profile.Workspace)
	b.add(id, title, "built-in", text)
}

func builtIn(id string) string {
	text, err := sectionFiles.ReadFile("sections/" + id + ".md")
	if err != nil {
		panic("prompt: no built-in section " + id) // a name in this file is wrong
	}
	return strings.TrimSpace(string(text))
}

func (b *builder) add(id, title, source, text string) {
	b.prompt.Sections = append(b.prompt.Sections, goclaw.Section{
		ID: id, Title: title, Source: source, Stable: true, Text: text,
		Tokens: Tokens(len(text)),
	})
}

// files adds the workspace files that the profile names, and accounts for all
// others.
func (b *builder) files() {
	byName := map[string]goclaw.WorkspaceFile{}
	for _, f := range b.in.Files {
		byName[f.Name] = f
		if !slices.Contains(b.in.Profile.Inherit, f.Name) && !f.Missing {
			b.omit(f.Path, "private to main sessions: not on this session's allowlist")
		}
		if f.Warning != "" && slices.Contains(b.in.Profile.Inherit, f.Name) {
			b.prompt.Warnings = append(b.prompt.Warnings, f.Name+": "+f.Warning)
		}
	}
	intro := len(b.prompt.Sections)
	for _, name := range fileOrder {
		f, known := byName[name]
		if !known || !slices.Contains(b.in.Profile.Inherit, name) {
			continue
		}
		switch {
		case f.Missing && slices.Contains(expected, name):
			b.add("file:"+name, name, f.Path, "[MISSING] Expected at: "+f.Path)
		case f.Missing:
			b.omit(f.Path, "not there, and may be absent")
		case strings.TrimSpace(f.Content) == "":
			b.omit(f.Path, "empty")
		default:
			b.add("file:"+name, name, f.Path, strings.TrimSpace(f.Content))
		}
	}
	if len(b.prompt.Sections) == intro {
		return
	}
	text := builtIn("context")
	if b.in.Profile.PromptMode == goclaw.PromptFull {
		text += " " + builtIn("persona")
	}
	b.prompt.Sections = slices.Insert(b.prompt.Sections, intro, goclaw.Section{
		ID: "context", Title: "Project Context", Source: "built-in", Stable: true,
		Text: text, Tokens: Tokens(len(text)),
	})
}

func (b *builder) omit(source, why string) {
	b.prompt.Omitted = append(b.prompt.Omitted, goclaw.Omission{Source: source, Why: why})
}

func (b *builder) runtime() {
	text := fmt.Sprintf("host=%s | os=%s | model=%s", b.in.Facts.Host, b.in.Facts.OS, b.in.Profile.Model)
	if t := b.in.Profile.Thinking; t != "" && t != "off" {
		text += " | thinking=" + t
	}
	b.add("runtime", "Runtime", "built-in", text)
}

// Tokens converts bytes to tokens where no provider counted them (spec
// section 3.2: a token is four bytes).
func Tokens(bytes int) int { return (bytes + 3) / 4 }
