package prompt

import (
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

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

// moreFiles are those of a profile's files that are none of the eight and can
// be shown: not the folders that are only named to be in reach.
func moreFiles(inherit []string) []string {
	return slices.DeleteFunc(slices.Clone(inherit), func(name string) bool {
		return slices.Contains(fileOrder, name) || name == "memory" || name == ".git"
	})
}

// Input is what a prompt is made of.
type Input struct {
	Profile goclaw.Profile
	Session goclaw.SessionKey      // its kind says how replies reach the person
	Files   []goclaw.WorkspaceFile // all there are; the profile decides what is seen
	Tools   []goclaw.ToolSpec      // those that the profile allows
	Skills  SkillList              // those that the profile may know
	Workers []WorkerCard           // definitions that may be spawned
	Body    string                 // of the worker's definition, "" if it has none
	Facts   Facts

	// Replaced are the sections that the person has written, by id.
	Replaced map[string]Replacement
}

// Facts hold for the process, or for all sessions of its person.
type Facts struct {
	Host    string
	OS      string
	Owner   []string          // how the agent knows its person
	Zone    string            // the person's time zone
	Aliases map[string]string // short names of models
	Docs    string            // where the agent may look up how it works; "" for nowhere

	// Heartbeats say how often an agent looks after things by itself, such as
	// 30m; none for an agent that does not.
	Heartbeats map[string]string
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

// Equal reports whether two cards say the same.
func (w WorkerCard) Equal(o WorkerCard) bool {
	return w.Name == o.Name && w.Description == o.Description && slices.Equal(w.Tools, o.Tools) &&
		w.TimeoutSeconds == o.TimeoutSeconds && w.Example == o.Example
}

// Replacement is a section's text as the person wants it; "" leaves it out.
type Replacement struct {
	Text   string
	Source string // the file
	Entry  string // the private file of the workspace that it is; "" for none
}

// Unfit is why a section may not stand in a prompt of this session, "" if it
// may: who may not see a private file is not shown it in a section's place
// either.
func (r Replacement) Unfit(id string, p goclaw.Profile, a goclaw.Access) string {
	if r.Entry == "" || p.PromptMode == goclaw.PromptNone || !slices.ContainsFunc(kinds, func(k kind) bool {
		return k.id == id && (k.full && p.PromptMode == goclaw.PromptFull || k.minimal && p.PromptMode == goclaw.PromptMinimal)
	}) {
		return ""
	}
	if ok, why := a.MaySee(goclaw.Thing{Entry: r.Entry}); !ok {
		return fmt.Sprintf("context.sections.%s: %s is %s of the workspace, %s, and this session would be shown it; name another file, or lift this one in subagents.inherit", id, r.Source, r.Entry, why)
	}
	return ""
}

// Assemble builds the prompt. Token counts are four bytes each.
func Assemble(in Input) goclaw.Prompt {
	p := goclaw.Prompt{
		Tools: slices.Clone(in.Tools), Model: in.Profile.Model, Thinking: in.Profile.Thinking,
	}
	slices.SortFunc(p.Tools, func(a, b goclaw.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	b := builder{prompt: &p, in: in}
	b.body()
	if in.Profile.PromptMode == goclaw.PromptNone {
		return p
	}
	for _, k := range kinds {
		switch k.id {
		case "context":
			b.files()
		default:
			b.section(k)
		}
	}
	p.Lifted = in.Profile.Access(in.Session, "").Lifted()
	p.Omitted = append(p.Omitted, in.Skills.Omitted...)
	return p
}

// Render is the text that is sent: one block that is stable to its end. The
// first section stands there byte for byte.
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

// Rewritten is the prompt with the sections that a hook has made of its own:
// counted anew, all of them stable. It accounts for those that are gone.
func Rewritten(p goclaw.Prompt, sections []goclaw.Section) goclaw.Prompt {
	was := p.Sections
	p.Sections = slices.Clone(sections)
	left := map[string]bool{}
	for i := range p.Sections {
		s := &p.Sections[i]
		s.Stable, s.Tokens = true, Tokens(len(s.Text))
		left[s.ID] = true
	}
	p.Omitted = slices.Clone(p.Omitted)
	for _, s := range was {
		if left[s.ID] {
			continue
		}
		what := "section " + s.ID
		if strings.HasPrefix(s.ID, "file:") {
			what = s.Source
		}
		p.Omitted = append(p.Omitted, goclaw.Omission{Source: what, Why: "taken out by context.hook"})
	}
	return p
}

// Tokens converts bytes to tokens where no provider counted them (spec
// section 3.2: a token is four bytes).
func Tokens(bytes int) int { return (bytes + 3) / 4 }

type builder struct {
	prompt *goclaw.Prompt
	in     Input
}

// full reports whether this is a main session's prompt.
func (b *builder) full() bool { return b.in.Profile.PromptMode == goclaw.PromptFull }

func (b *builder) has(tool string) bool {
	return slices.ContainsFunc(b.in.Tools, func(t goclaw.ToolSpec) bool { return t.Name == tool })
}

// body puts a definition's body first, as it is.
func (b *builder) body() {
	if b.in.Body != "" {
		b.add("definition", "", "definition "+b.in.Profile.Definition, b.in.Body)
	}
}

func (b *builder) add(id, title, source, text string) {
	b.prompt.Sections = append(b.prompt.Sections, goclaw.Section{
		ID: id, Title: title, Source: source, Stable: true, Text: text,
		Tokens: Tokens(len(text)),
	})
}

func (b *builder) omit(source, why string) {
	b.prompt.Omitted = append(b.prompt.Omitted, goclaw.Omission{Source: source, Why: why})
}

// files adds the workspace files that the profile names, and accounts for all
// others.
func (b *builder) files() {
	byName := map[string]goclaw.WorkspaceFile{}
	for _, f := range b.in.Files {
		byName[f.Name] = f
		shown := slices.Contains(b.in.Profile.Inherit, f.Name)
		if !shown && !f.Missing {
			b.omit(f.Path, b.unseen(f.Name))
		}
		if f.Warning != "" && shown {
			b.prompt.Warnings = append(b.prompt.Warnings, f.Name+": "+f.Warning)
		}
	}
	intro := len(b.prompt.Sections)
	for _, name := range append(slices.Clone(fileOrder), moreFiles(b.in.Profile.Inherit)...) {
		if f, known := byName[name]; known && slices.Contains(b.in.Profile.Inherit, name) {
			b.file(f)
		}
	}
	if len(b.prompt.Sections) == intro {
		return
	}
	text := builtIn("context")
	if b.full() && slices.ContainsFunc(b.prompt.Sections[intro:], func(s goclaw.Section) bool { return s.ID == "file:SOUL.md" }) {
		text += " " + builtIn("persona")
	}
	b.prompt.Sections = slices.Insert(b.prompt.Sections, intro, goclaw.Section{
		ID: "context", Title: "Project Context", Source: "built-in", Stable: true,
		Text: text, Tokens: Tokens(len(text)),
	})
}

func (b *builder) unseen(name string) string {
	if b.full() {
		return "not in context.files"
	}
	if slices.Contains(goclaw.PrivateEntries(), name) {
		return "private to main sessions: not on this session's allowlist"
	}
	return "not on this session's allowlist"
}

func (b *builder) file(f goclaw.WorkspaceFile) {
	must := slices.Contains(expected, f.Name) || !slices.Contains(fileOrder, f.Name)
	daily := strings.HasPrefix(f.Name, "memory/")
	switch {
	case f.Missing && must && !daily:
		b.add("file:"+f.Name, f.Name, f.Path, "[MISSING] Expected at: "+f.Path)
	case f.Missing:
		b.omit(f.Path, "not there, and may be absent")
	case strings.TrimSpace(f.Content) == "" && f.Warning != "":
		b.omit(f.Path, f.Warning)
	case strings.TrimSpace(f.Content) == "":
		b.omit(f.Path, "empty")
	default:
		b.add("file:"+f.Name, f.Name, f.Path, strings.TrimSpace(f.Content))
	}
}
