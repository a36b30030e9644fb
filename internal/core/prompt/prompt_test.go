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
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/file"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/edge/workspace"
)

var update = flag.Bool("update", false, "write the golden files anew")

const workspaceDir = "/home/ann/.goclaw/workspace"

// realTools are the specs of the tools with these names; none means all.
func realTools(names ...string) []goclaw.ToolSpec {
	tools := append(file.Tools(file.Options{}), exec.New(exec.Options{}))
	tools = append(tools, sessions.Tools(nil, nil, nil)...)
	var specs []goclaw.ToolSpec
	for _, t := range tools {
		if s := t.Spec(); len(names) == 0 || slices.Contains(names, s.Name) {
			specs = append(specs, s)
		}
	}
	return specs
}

func workerTools() []goclaw.ToolSpec {
	return realTools("read", "write", "edit", "ls", "grep", "glob", "exec")
}

// freshFiles are the files of a workspace as a new person gets it, under a
// path that is the same everywhere.
func freshFiles(t *testing.T) []goclaw.WorkspaceFile {
	t.Helper()
	dir := t.TempDir()
	if _, err := workspace.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	files, err := workspace.NewLoader(workspace.Options{}).Files(dir)
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
	for _, tc := range []struct {
		name string
		in   prompt.Input
	}{
		{"main", input(mainProfile(), fresh, realTools())},
		{"main-missing", input(mainProfile(), missing, realTools())},
		{"main-no-files", input(alone, fresh, realTools("read"))},
		{"worker", input(workerProfile(), fresh, workerTools())},
		{"worker-spawner", input(spawner, fresh, append(workerTools(), realTools("sessions_spawn", "subagents")...))},
		{"worker-lifted", input(lifted, cut, workerTools())},
		{"none", input(none, fresh, workerTools())},
	} {
		t.Run(tc.name, func(t *testing.T) { golden(t, tc.name, show(prompt.Assemble(tc.in))) })
	}
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
			may := slices.Contains(inherit, f.Name) && slices.Contains(prompt.MainFiles(), f.Name)
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
	want := show(prompt.Assemble(input(mainProfile(), fresh, realTools())))
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
