//go:build unix

package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/tool"
)

// What a person named comes in reach, under every spelling, and nothing else.
func TestLifted(t *testing.T) {
	ws, home := world(t)
	put := func(rel string) {
		t.Helper()
		p := filepath.Join(ws, rel)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(privateCanary), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("memory/deep/other.md")
	put("memory/x.md")
	put("memory/x.mdx")
	for link, target := range map[string]string{"memory/to-soul.md": "../SOUL.md", "to-x": "memory/x.md", "memory/up": "../memory"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		named    []string
		see, not []string
	}{
		{
			[]string{"USER.md"},
			[]string{"USER.md", "user.md", "src/up/USER.md", ws + "/USER.md"},
			[]string{"SOUL.md", "MEMORY.md", "memory/x.md", ".git/config", "hard-soul", "src/../memory"},
		},
		{
			[]string{"memory/x.md"},
			[]string{"memory/x.md", "to-x", "to-memory/x.md", "memory/up/x.md", "memory"},
			[]string{"memory/x.mdx", "memory/2026-01-01.md", "memory/deep", "memory/deep/er.md", "memory/new.md", "memory/to-soul.md", "src/hard-memory", "memory/x.md/../2026-01-01.md"},
		},
		{
			[]string{"memory/deep/er.md"},
			[]string{"memory/deep", "memory/deep/er.md", "to-memory/deep/er.md"},
			[]string{"memory/x.md", "src/hard-memory", "memory/deep/other.md", "memory/deep/new.md"},
		},
		{
			[]string{"memory/2026-01-01.md/never"}, // a file is no way to what lies beneath it
			[]string{"memory"},
			[]string{"memory/2026-01-01.md", "memory/x.md"},
		},
		{
			[]string{"memory/to-soul.md"}, // a link lifts its name, not what it leads to
			nil,
			[]string{"memory/to-soul.md", "SOUL.md"},
		},
		{
			[]string{"memory"},
			[]string{"memory/x.md", "memory/deep/er.md", "memory/deep/other.md", "to-memory/2026-01-01.md"},
			[]string{"MEMORY.md", "src/hard-memory", "memory/to-soul.md", ".git/config"},
		},
		{
			[]string{".git/config"},
			[]string{".git/config", "to-git/config"},
			[]string{".git/objects", ".git/objects/ab/cdef", "src/hard-git"},
		},
		{
			[]string{".goclaw/output/other/exec.txt", "state/goclaw.db", "../outside.txt", "/", "."}, // not for naming
			nil,
			[]string{".goclaw/output/other/exec.txt", "state/goclaw.db", "../outside.txt", "SOUL.md"},
		},
	}
	for _, tt := range tests {
		r := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true, Named: tt.named, Run: "mine"}})
		for _, p := range tt.see {
			rel, err := r.Resolve(p)
			if err != nil {
				t.Errorf("%v: %s: %v", tt.named, p, err)
				continue
			}
			if info, err := os.Stat(filepath.Join(ws, p)); err == nil && info.Mode().IsRegular() {
				if text, err := readThrough(r, p); err != nil || text != privateCanary {
					t.Errorf("%v: %s: %q, %v", tt.named, p, text, err)
				}
				if !strings.HasPrefix(rel, "src/") {
					if err := r.AllowChange(rel); !errors.Is(err, tool.ErrReadOnly) {
						t.Errorf("%v: %s may be changed: %v", tt.named, p, err)
					}
				}
			}
		}
		for _, p := range tt.not {
			if rel, err := r.Resolve(p); err == nil {
				t.Errorf("%v: %s leads to %s", tt.named, p, rel)
			}
			if text, err := readThrough(r, p); err == nil || strings.Contains(text, "CANARY") {
				t.Errorf("%v: %s is read: %q, %v", tt.named, p, text, err)
			}
		}
	}
}

// A list shows the way to what was lifted, and no other name.
func TestListsShowWhatWasLifted(t *testing.T) {
	ws, home := world(t)
	r := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true, Named: []string{"memory/deep/er.md"}}})
	dir, err := r.Dir("memory")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var seen []string
	hidden, err := dir.Walk(t.Context(), func(tool.Entry) bool { return false }, func(_ *tool.Dir, e tool.Entry) error {
		seen = append(seen, e.Path)
		return nil
	})
	if want := []string{"memory/deep", "memory/deep/er.md"}; err != nil || !slices.Equal(seen, want) || hidden != 1 {
		t.Errorf("%v, %d hidden, %v", seen, hidden, err)
	}
	h, err := r.Hidden(t.Context())
	if err != nil || !h.Private("memory") || !h.Private("SOUL.md") || h.Private("src") || !h.Kept("AGENTS.md") || h.Kept("src") {
		t.Errorf("%+v, %v", h, err)
	}
	if want := []tool.Lent{{Name: "memory/deep/er.md", Path: filepath.Join(r.Base(), "memory/deep/er.md")}}; !slices.Equal(h.Lent, want) {
		t.Errorf("lent %v", h.Lent)
	}
}

// What guides the main agent is not for workers to change.
func TestOnlyTheMainAgentChanges(t *testing.T) {
	ws, home := world(t)
	for _, dir := range []string{"lib/skills", ".claude/agents"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"skills": "lib/skills", "AGENTS.md": "src/rules.md", "a-link": "TOOLS.md"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"src/rules.md", "TOOLS.md"} {
		if err := os.WriteFile(filepath.Join(ws, p), []byte("public"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	worker := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true}})
	main := open(t, tool.Scope{Workspace: ws, Home: home})
	for p, kept := range map[string]bool{
		"AGENTS.md": true, "agents.MD": true, "TOOLS.md": true, "a-link": true, "src/up/TOOLS.md": true,
		"src/rules.md": true, "skills": true, "skills/x/SKILL.md": true, "lib/skills/x/SKILL.md": true,
		".goclaw/agents/x.md": true, ".goclaw/hooks/a": true, ".Claude/agents/x.md": true, ".opencode/agent/x.md": true,
		"src/AGENTS.md": false, "lib/x": false, "README.md": false, "src/skills/x": false, "AGENTS.md.bak": false,
	} {
		rel, err := worker.Resolve(p)
		if err != nil {
			t.Errorf("a worker can't even see %s: %v", p, err)
			continue
		}
		if err := worker.AllowChange(rel); errors.Is(err, tool.ErrReadOnly) != kept || (err != nil) != kept {
			t.Errorf("a worker changes %s: %v", p, err)
		}
		if err := main.AllowChange(rel); err != nil {
			t.Errorf("the main agent changes %s: %v", p, err)
		}
	}
	if text, err := readThrough(worker, "AGENTS.md"); err != nil || text != "public" {
		t.Errorf("AGENTS.md: %q, %v", text, err)
	}
}
