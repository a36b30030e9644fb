package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/config"
	"goclaw/internal/edge/trust"
)

// shelved is a home with one skill and a workspace in it with another.
func shelved(t *testing.T) (h home, s *skillset, main goclaw.Profile) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h = home(base)
	for name, dir := range map[string]string{"tides": h.path("skills"), "winds": h.path("workspace/skills")} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("---\nname: %s\ndescription: About %s.\n---\nLook.\n", name, name)
		if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = newSkillset(h, trust.New(base), config.Skills{Limits: config.SkillLimits{MaxSkillsInPrompt: 10, MaxSkillsPromptChars: 4000}}, func(string) string { return "" })
	return h, s, goclaw.Profile{Agent: "main", Workspace: h.path("workspace"), PromptMode: goclaw.PromptFull}
}

func TestSkillsOfAWorker(t *testing.T) {
	h, s, main := shelved(t)
	worker := main
	worker.PromptMode, worker.Strict, worker.Skills = goclaw.PromptMinimal, true, []string{}
	list, warnings, err := s.List(worker)
	if list.Text != "" || list.Omitted != nil || warnings != nil || err != nil || s.Shelves(worker) != nil {
		t.Errorf("%+v, %q, %v", list, warnings, err)
	}
	if n := s.library.Reads(); n != 0 {
		t.Errorf("%d reads for a worker that knows of no skill", n)
	}
	worker.Skills = []string{"tides", "tide"}
	list, warnings, err = s.List(worker)
	if err != nil || len(list.Listed) != 1 || list.Listed[0].Location != filepath.ToSlash(h.path("skills/tides/SKILL.md")) {
		t.Errorf("%+v, %v", list, err)
	}
	if want := `skills of the worker: there is no skill "tide"; did you mean tides?`; len(warnings) != 1 || warnings[0] != want {
		t.Errorf("%q", warnings)
	}
	if shelves := s.Shelves(worker); len(shelves) != 1 || shelves[0].Dir != h.path("skills/tides") {
		t.Errorf("%+v", shelves)
	}
	list, warnings, err = s.List(main)
	if err != nil || len(list.Listed) != 3 || len(warnings) != 0 || len(list.Omitted) != 0 {
		t.Errorf("%+v, %q, %v", list, warnings, err)
	}
	if shelves := s.Shelves(main); len(shelves) != 2 {
		t.Errorf("the workspace needs no shelf: %+v", shelves)
	}
}

func TestOnlyWhatWasMadeFromNothingIsTrusted(t *testing.T) {
	base := t.TempDir()
	store := trust.New(base)
	prepare := func(dir string) (fresh, trusted bool) {
		t.Helper()
		fresh, err := prepareWorkspace(definition.Agent{ID: "a", Workspace: dir}, store, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if trusted, err = store.Trusted(dir); err != nil {
			t.Fatal(err)
		}
		return fresh, trusted
	}
	outside := t.TempDir()
	cloned := filepath.Join(outside, "cloned")
	if err := os.MkdirAll(filepath.Join(cloned, "skills"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir            string
		fresh, trusted bool
	}{
		{filepath.Join(outside, "new"), true, true},
		{filepath.Join(outside, "new"), false, true},
		{cloned, true, false},
		{cloned, false, false},
		{filepath.Join(base, "workspace"), true, true},
	} {
		if fresh, trusted := prepare(tt.dir); fresh != tt.fresh || trusted != tt.trusted {
			t.Errorf("%s: fresh %v, trusted %v", tt.dir, fresh, trusted)
		}
	}
	if list, err := store.List(); err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Workspace, "new") {
		t.Errorf("%+v, %v", list, err)
	}
}

func BenchmarkSkillList(b *testing.B) {
	base := b.TempDir()
	for i := range 50 {
		dir := filepath.Join(base, "skills", fmt.Sprintf("skill-%d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		text := fmt.Sprintf("---\nname: skill-%d\ndescription: %s\n---\nLook.\n", i, strings.Repeat("Use it. ", 20))
		file := filepath.Join(dir, "SKILL.md")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		for _, p := range []string{file, filepath.Join(base, "skills")} {
			if err := os.Chtimes(p, old, old); err != nil {
				b.Fatal(err)
			}
		}
	}
	s := newSkillset(home(base), trust.New(base), config.Skills{Limits: config.SkillLimits{MaxSkillsInPrompt: 150, MaxSkillsPromptChars: 8000}}, os.Getenv)
	p := goclaw.Profile{Agent: "main", Workspace: b.TempDir(), PromptMode: goclaw.PromptFull}
	for b.Loop() {
		if _, _, err := s.List(p); err != nil {
			b.Fatal(err)
		}
	}
}
