package prompt_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/tool/artifact"
	crontool "goclaw/internal/edge/tool/cron"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/file"
	"goclaw/internal/edge/tool/memory"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/edge/tool/web"
	"goclaw/internal/edge/workspace"
)

var update = flag.Bool("update", false, "write the golden files anew")

const workspaceDir = "/home/ann/.goclaw/workspace"

// realTools are the specs of the tools with these names; none means all.
func realTools(names ...string) []goclaw.ToolSpec {
	tools := append(file.Tools(file.Options{}), exec.New(exec.Options{}))
	tools = append(tools, sessions.Tools(nil, nil, nil)...)
	tools = append(tools, crontool.New(nil, time.UTC))
	tools = append(tools, artifact.Tools(nil)...)
	tools = append(tools, memory.Tools(nil, nil, time.UTC)...)
	tools = append(tools, web.Fetch(web.FetchOptions{}))
	var specs []goclaw.ToolSpec
	for _, t := range tools {
		if s := t.Spec(); len(names) == 0 || slices.Contains(names, s.Name) {
			specs = append(specs, s)
		}
	}
	return specs
}

func workerTools() []goclaw.ToolSpec {
	return realTools("read", "write", "edit", "ls", "grep", "glob", "exec", "artifact_list", "artifact_read", "artifact_write", "web_fetch")
}

// freshFiles are the files of a workspace as a new person gets it, under a
// path that is the same everywhere.
func freshFiles(t *testing.T) []goclaw.WorkspaceFile {
	t.Helper()
	dir := t.TempDir()
	if _, err := workspace.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	files, err := workspace.NewLoader(workspace.Options{}).Files(dir, workspace.Names())
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i].Path = workspaceDir + "/" + files[i].Name
	}
	return files
}

func mainProfile() goclaw.Profile {
	return goclaw.Profile{
		Agent: "main", Workspace: workspaceDir, Model: "anthropic/claude-sonnet-5-5", Thinking: "off",
		PromptMode: goclaw.PromptFull, Inherit: prompt.MainFiles(), MaxSpawnDepth: 1, MaxChildren: 5,
	}
}

func workerProfile() goclaw.Profile {
	p := mainProfile()
	p.PromptMode, p.Inherit, p.Strict = goclaw.PromptMinimal, prompt.WorkerFiles(), true
	return p
}

func input(p goclaw.Profile, files []goclaw.WorkspaceFile, tools []goclaw.ToolSpec) prompt.Input {
	return prompt.Input{Profile: p, Files: files, Tools: tools, Facts: prompt.Facts{Host: "box", OS: "linux/amd64"}}
}

// show is a prompt as a person reads it: the text that is sent, then what was
// left out.
func show(p goclaw.Prompt) string {
	var b strings.Builder
	for _, block := range prompt.Render(p) {
		b.WriteString(block.Text)
	}
	names := make([]string, len(p.Tools))
	for i, t := range p.Tools {
		names[i] = t.Name
	}
	fmt.Fprintf(&b, "\n\n=== tools: %s\n", strings.Join(names, " "))
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "=== %s, %d tokens, from %s\n", s.ID, s.Tokens, s.Source)
	}
	for _, o := range p.Omitted {
		fmt.Fprintf(&b, "=== left out: %s (%s)\n", o.Source, o.Why)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "=== warning: %s\n", w)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test -update accepts it):\n%s", path, diff)
	}
}

func TestGoldenPrompts(t *testing.T) {
	fresh := freshFiles(t)
	missing := slices.Clone(fresh)
	for i := range missing {
		missing[i].Missing, missing[i].Content = true, ""
	}
	cut := slices.Clone(fresh)
	for i := range cut {
		cut[i].Warning = "cut: 100 characters were dropped"
		if cut[i].Name == "TOOLS.md" {
			cut[i].Content = " \n"
		}
	}
	spawner := workerProfile()
	spawner.MaxSpawnDepth, spawner.Thinking = 2, "high"
	lifted := workerProfile()
	lifted.Inherit = []string{"USER.md", "AGENTS.md"}
	none := workerProfile()
	none.PromptMode = goclaw.PromptNone
	alone := mainProfile()
	alone.Inherit = []string{}
	more := mainProfile()
	more.Inherit = append(more.Inherit, "docs/STYLE.md", "docs/GONE.md", "memory", "memory/2026-11-21.md", "memory/2026-11-20.md")
	added := []goclaw.WorkspaceFile{
		{Name: "docs/STYLE.md", Path: workspaceDir + "/docs/STYLE.md", Content: "Short lines."},
		{Name: "docs/GONE.md", Path: workspaceDir + "/docs/GONE.md", Missing: true},
		{Name: "memory/2026-11-21.md", Path: workspaceDir + "/memory/2026-11-21.md", Content: "Ann came back."},
		{Name: "memory/2026-11-20.md", Path: workspaceDir + "/memory/2026-11-20.md", Missing: true},
	}
	for _, tc := range []struct {
		name string
		in   prompt.Input
	}{
		{"main", input(mainProfile(), fresh, realTools())},
		{"main-missing", input(mainProfile(), missing, realTools())},
		{"main-no-files", input(alone, fresh, realTools("read"))},
		{"worker", input(workerProfile(), fresh, workerTools())},
		{"worker-spawner", input(spawner, fresh, append(workerTools(), realTools("sessions_spawn", "subagents", "memory_get", "memory_search")...))},
		{"worker-lifted", input(lifted, cut, workerTools())},
		{"none", input(none, fresh, workerTools())},
		{"main-few-tools", input(mainProfile(), fresh, realTools("memory_search"))},
		{"main-no-tools", input(mainProfile(), fresh, nil)},
		{"cron", cron(input(workerProfile(), fresh, workerTools()))},
		{"everything", everything(input(mainProfile(), fresh, realTools()))},
		{"everything-worker", everything(input(spawner, fresh, append(workerTools(), realTools("sessions_spawn", "subagents", "memory_get", "memory_search")...)))},
		{"definition", bodied(input(workerProfile(), fresh, workerTools()))},
		{"definition-none", bodied(input(none, fresh, workerTools()))},
		{"more-files", input(more, append(slices.Clone(fresh), added...), realTools("read"))},
		{"replaced", replaced(input(mainProfile(), fresh, realTools("read")))},
	} {
		t.Run(tc.name, func(t *testing.T) { golden(t, tc.name, show(prompt.Assemble(tc.in))) })
	}
}

// everything is a prompt with all that a section can speak of.
func everything(in prompt.Input) prompt.Input {
	for _, name := range []string{"message", "tts", "update"} {
		in.Tools = append(in.Tools, goclaw.ToolSpec{Name: name, Description: "A tool.", Schema: json.RawMessage(`{"type":"object"}`)})
	}
	in.Session = goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: "telegram", PeerKind: "direct", Peer: "7"}
	in.Skills = prompt.SkillList{
		Text:    "<available_skills>\n<skill><name>tides</name><description>Reads tide tables.</description><location>skills/tides/SKILL.md</location></skill>\n</available_skills>",
		Omitted: []goclaw.Omission{{Source: "skill glaciers", Why: "needs the program glacier"}},
	}
	in.Workers = []prompt.WorkerCard{
		{Name: "code-explorer", Description: "Finds where things are in a code base.", Tools: []string{"grep", "read"}, TimeoutSeconds: 600, Example: `{"agent":"code-explorer","task":"Where are tides computed?","context":"Go, module tides"}`},
		{Name: "thinker", Description: "Thinks.", Example: `{"agent":"thinker","task":"Which of the two?","context":"…"}`},
	}
	in.Facts = prompt.Facts{
		Host: "box", OS: "linux/amd64", Owner: []string{"Ann", "+49 170 1"}, Zone: "Europe/Berlin", Heartbeats: map[string]string{"main": "30m"},
		Aliases: map[string]string{"fast": "anthropic/claude-haiku-4-5", "deep": "anthropic/claude-opus-5"}, Docs: "docs/goclaw",
	}
	return in
}

func cron(in prompt.Input) prompt.Input {
	in.Session = goclaw.CronKey("main", "nightly")
	return in
}

func bodied(in prompt.Input) prompt.Input {
	in.Profile.Definition, in.Body = "explorer", "\n# Explorer \n\nYou explore.\n"
	return in
}

func replaced(in prompt.Input) prompt.Input {
	in.Replaced = map[string]prompt.Replacement{
		"safety": {Text: "Be kind. You work in {{workspace}}.\n", Source: "/etc/goclaw/safety.md"},
		"silent": {Source: "/etc/goclaw/empty.md"},
		"voice":  {Text: "Speak softly.", Source: "/etc/goclaw/voice.md"},
		"worker": {Text: "Not for main sessions.", Source: "/etc/goclaw/worker.md"},
	}
	return in
}

// A definition's body is what the model reads first, byte for byte.
func TestBodyVerbatim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := input(workerProfile(), nil, workerTools())
		in.Body = rapid.StringN(1, -1, -1).Draw(t, "body")
		in.Profile.PromptMode = rapid.SampledFrom([]goclaw.PromptMode{goclaw.PromptMinimal, goclaw.PromptNone}).Draw(t, "mode")
		got := prompt.Render(prompt.Assemble(in))[0].Text
		if !strings.HasPrefix(got, in.Body) || in.Profile.PromptMode == goclaw.PromptNone && got != in.Body {
			t.Fatalf("%q begins with %q", in.Body, got[:min(len(got), len(in.Body)+20)])
		}
	})
}

// The table of docs/context.md is what the assembler does.
func TestTableOfSections(t *testing.T) {
	columns := []goclaw.Prompt{
		prompt.Assemble(everything(input(mainProfile(), freshFiles(t), realTools()))),
		prompt.Assemble(bodied(everything(input(spawning(), freshFiles(t), realTools())))),
		prompt.Assemble(bodied(input(noneProfile(), freshFiles(t), realTools()))),
	}
	var b strings.Builder
	b.WriteString("| section | what it is about | main (full) | worker, cron (minimal) | none |\n|---|---|---|---|---|\n")
	for _, row := range prompt.Catalog() {
		fmt.Fprintf(&b, "| `%s` | %s |", row.ID, row.About)
		for _, p := range columns {
			i := slices.IndexFunc(p.Sections, func(s goclaw.Section) bool { return s.ID == row.ID })
			switch {
			case i < 0:
				b.WriteString(" no |")
			case row.When != "":
				b.WriteString(" " + row.When + " |")
			default:
				b.WriteString(" yes |")
			}
		}
		b.WriteString("\n")
	}
	path := filepath.Join("..", "..", "..", "docs", "context.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- made by the test TestTableOfSections -->\n", "<!-- to here -->\n"
	head, rest, ok := strings.Cut(string(page), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(old, b.String()); diff != "" {
		t.Errorf("%s differs (go test -update accepts it):\n%s", path, diff)
	}
}

func spawning() goclaw.Profile {
	p := workerProfile()
	p.MaxSpawnDepth, p.Skills = 2, []string{"tides"}
	return p
}

func noneProfile() goclaw.Profile {
	p := workerProfile()
	p.PromptMode = goclaw.PromptNone
	return p
}

func TestGoldenEnvelopes(t *testing.T) {
	now := time.Date(2026, 11, 21, 11, 5, 0, 0, time.FixedZone("", 3600))
	run := goclaw.Run{
		Session: goclaw.SubagentKey("main", "77"), Requester: goclaw.MainKey("main"), Trigger: goclaw.TriggerSpawn,
		Depth: 1, Label: "tides", Task: "Find what the files say about tides.", Profile: workerProfile(),
	}
	informed := run
	informed.Requester = goclaw.SessionKey{Agent: "main", Kind: goclaw.KindChannel, Channel: "telegram", PeerKind: "direct", Peer: "7"}
	informed.Context = "They are in docs/."
	user := goclaw.Run{Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser}
	channel := goclaw.Run{Session: informed.Requester, Trigger: goclaw.TriggerUser}
	api := goclaw.Run{Session: goclaw.APIKey("main", "bob"), Trigger: goclaw.TriggerUser}
	announced := goclaw.Run{Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerAnnouncement}
	var b strings.Builder
	for _, turn := range []prompt.Turn{
		{Run: user, Text: "hello", Now: now},
		{Run: user, Text: "how is it going?", Now: now, Active: []string{"tides", "glaciers"}},
		{Run: channel, Text: "hello", Now: now},
		{Run: api, Text: "hello", Now: now},
		{Run: announced, Text: "[Subagent: tides] Complete.", Now: now},
		{Run: run, Now: now, Active: []string{"glaciers"}},
		{Run: informed, Now: now},
	} {
		m := prompt.Envelope(turn)
		if m.Role != goclaw.RoleUser {
			t.Errorf("an envelope speaks as %s", m.Role)
		}
		fmt.Fprintf(&b, "%s\n--------\n", m.PlainText())
	}
	golden(t, "envelopes", b.String())
}

// What is private is in no worker's prompt, whatever files lie there and
// whatever they are called, unless the profile names the file.
func TestAllowlist(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := append(prompt.MainFiles(), "agents.md", "AGENTS.md.bak", "SECRETS.md", "../AGENTS.md", "memory/2026-11-21.md", "")
		names = rapid.Permutation(names).Draw(t, "order")
		inherit := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "inherit")
		files := make([]goclaw.WorkspaceFile, len(names))
		marker := map[string]string{}
		for i, n := range names {
			marker[n] = fmt.Sprintf("unique-%d-text", i)
			files[i] = goclaw.WorkspaceFile{
				Name: n, Path: workspaceDir + "/" + n, Content: "x " + marker[n] + " y",
				Missing: rapid.Bool().Draw(t, "missing"), Warning: rapid.SampledFrom([]string{"", "cut"}).Draw(t, "warning"),
			}
			if files[i].Missing {
				files[i].Content = ""
			}
		}
		p := workerProfile()
		p.Inherit = inherit
		p.PromptMode = rapid.SampledFrom([]goclaw.PromptMode{goclaw.PromptFull, goclaw.PromptMinimal, goclaw.PromptNone}).Draw(t, "mode")
		got := prompt.Assemble(input(p, files, workerTools()))
		raw, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			there := strings.Contains(string(raw), marker[f.Name])
			may := slices.Contains(inherit, f.Name)
			if there && !may {
				t.Fatalf("%q is in the prompt, but only %q are allowed", f.Name, inherit)
			}
			if may && !there && !f.Missing && p.PromptMode != goclaw.PromptNone {
				t.Fatalf("%q is allowed, but not in the prompt", f.Name)
			}
		}
	})
}

// The order in which files and tools are handed in, and what happened before,
// change no byte: a prefix stays cached.
func TestEqualInputsGiveEqualBytes(t *testing.T) {
	fresh := freshFiles(t)
	want, _, _ := strings.Cut(show(prompt.Assemble(input(mainProfile(), fresh, realTools()))), "=== left out")
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.Permutation(fresh).Draw(t, "files")
		tools := rapid.Permutation(realTools()).Draw(t, "tools")
		got := show(prompt.Assemble(input(mainProfile(), files, tools)))
		if sent, _, _ := strings.Cut(got, "=== left out"); sent != want {
			t.Fatal(cmp.Diff(want, sent))
		}
	})
}

// The sections' tokens are what the sections cost.
func TestTokens(t *testing.T) {
	for _, s := range prompt.Assemble(input(mainProfile(), freshFiles(t), realTools())).Sections {
		if want := (len(s.Text) + 3) / 4; s.Tokens != want || !s.Stable || s.Source == "" {
			t.Errorf("%s: %d tokens, stable %v, from %q; want %d tokens", s.ID, s.Tokens, s.Stable, s.Source, want)
		}
	}
	for bytes, want := range map[int]int{0: 0, 1: 1, 4: 1, 5: 2} {
		if got := prompt.Tokens(bytes); got != want {
			t.Errorf("%d bytes are %d tokens, want %d", bytes, got, want)
		}
	}
}

// A caller's lists are its own.
func TestListsAreCopies(t *testing.T) {
	prompt.MainFiles()[0], prompt.WorkerFiles()[0] = "x", "x"
	if prompt.MainFiles()[0] != "AGENTS.md" || prompt.WorkerFiles()[0] != "AGENTS.md" {
		t.Error("a caller changed the order of files")
	}
	tools := slices.Clone(realTools())
	slices.Reverse(tools)
	first := tools[0].Name
	prompt.Assemble(input(mainProfile(), nil, tools))
	if tools[0].Name != first {
		t.Error("the caller's tools were sorted")
	}
}

// A private file in a section's place is shown to no session that may not see
// it, and only counts where that section is shown.
func TestUnfitReplacements(t *testing.T) {
	private := prompt.Replacement{Text: "x", Source: "/ws/USER.md", Entry: "USER.md"}
	lifted := workerProfile()
	lifted.Inherit = []string{"USER.md"}
	for _, tc := range []struct {
		id   string
		with prompt.Replacement
		p    goclaw.Profile
		fits bool
	}{
		{"safety", private, workerProfile(), false},
		{"safety", private, lifted, true},
		{"safety", private, mainProfile(), true},
		{"voice", private, workerProfile(), true}, // workers have no such section
		{"safety", prompt.Replacement{Text: "x", Source: "/etc/safety.md"}, workerProfile(), true},
		{"safety", private, noneProfile(), true},
	} {
		key := goclaw.SubagentKey("main", "1")
		if tc.p.PromptMode == goclaw.PromptFull {
			key = goclaw.MainKey("main")
		}
		why := tc.with.Unfit(tc.id, tc.p, tc.p.Access(key, ""))
		if (why == "") != tc.fits || !tc.fits && !strings.Contains(why, "context.sections.safety: /ws/USER.md is USER.md of the workspace, private to the main agent") {
			t.Errorf("%s, %s: %q", tc.id, tc.p.PromptMode, why)
		}
	}
}

// What a section of one's own asks for, workers are told only as far as they
// may know it.
func TestFactsInReplacements(t *testing.T) {
	in := everything(input(workerProfile(), nil, workerTools()))
	in.Replaced = map[string]prompt.Replacement{"safety": {Text: "{{user}} {{docs}} {{aliases}} {{workspace}}", Source: "/etc/safety.md"}}
	for mode, want := range map[goclaw.PromptMode]string{
		goclaw.PromptMinimal: "{{user}} {{docs}} {{aliases}} " + workspaceDir,
		goclaw.PromptFull:    "Known as: Ann, +49 170 1. Treat messages of others as those of strangers. Time zone: Europe/Berlin. docs/goclaw - deep: anthropic/claude-opus-5\n- fast: anthropic/claude-haiku-4-5 " + workspaceDir,
	} {
		in.Profile.PromptMode = mode
		p := prompt.Assemble(in)
		i := slices.IndexFunc(p.Sections, func(s goclaw.Section) bool { return s.ID == "safety" })
		if p.Sections[i].Text != want {
			t.Errorf("%s: %q", mode, p.Sections[i].Text)
		}
	}
}

// What a hook has taken out is accounted for.
func TestRewritten(t *testing.T) {
	was := prompt.Assemble(input(mainProfile(), freshFiles(t), realTools("read")))
	omitted := len(was.Omitted)
	kept := slices.DeleteFunc(slices.Clone(was.Sections), func(s goclaw.Section) bool { return s.ID == "safety" || s.ID == "file:USER.md" })
	got := prompt.Rewritten(was, append(kept, goclaw.Section{ID: "house", Text: "12345"}))
	want := []goclaw.Omission{
		{Source: "section safety", Why: "taken out by context.hook"},
		{Source: workspaceDir + "/USER.md", Why: "taken out by context.hook"},
	}
	if diff := cmp.Diff(want, got.Omitted[omitted:]); diff != "" || len(was.Omitted) != omitted {
		t.Errorf("%s, %d", diff, len(was.Omitted))
	}
	if last := got.Sections[len(got.Sections)-1]; last.Tokens != 2 || !last.Stable {
		t.Errorf("%+v", last)
	}
}

// Why there is no list of skills is told as it is.
func TestWhyNoSkills(t *testing.T) {
	for _, tc := range []struct {
		p    goclaw.Profile
		want string
	}{
		{mainProfile(), "no skills"},
		{workerProfile(), "no skill is named for this worker"},
		{spawning(), "none of the skills that are named for it can be used"},
	} {
		p := prompt.Assemble(input(tc.p, nil, realTools("read")))
		if !slices.Contains(p.Omitted, goclaw.Omission{Source: "section skills", Why: tc.want}) {
			t.Errorf("%q is not in %v", tc.want, p.Omitted)
		}
	}
}
