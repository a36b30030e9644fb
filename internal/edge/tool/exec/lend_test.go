package exec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// Commands read what was lifted, and nothing else that is private; what they
// do to it is not kept.
func TestLiftedFiles(t *testing.T) {
	const lifted = "LIFTED"
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		for _, named := range []string{"USER.md", "memory/day.md", "memory/deep/er.md", "memory/deep", "memory"} {
			f := newFixture(t, box)
			f.secrets()
			f.strict, f.named = true, []string{named}
			file := named
			switch named {
			case "memory":
				file = "memory/a/b.md"
				f.write("memory/day.md", "")
				f.write("memory/deep/er.md", "")
			case "memory/deep":
				file = "memory/deep/b.md"
				f.write("memory/deep/er.md", "")
			}
			f.write(file, lifted)
			for _, command := range []string{
				"cat F", "cat W/F", "cat ./deep/../F F 2>/dev/null | head -c 6; cat F", "grep -Rh LIFT . 2>/dev/null | head -1", "cd $(dirname F) && cat $(basename F)",
			} {
				command = strings.NewReplacer("W/F", filepath.Join(f.ws, file), "F", file).Replace(strings.ReplaceAll(command, "LIFT", "LI.TED"))
				if res := f.run(command); !strings.Contains(res.Content, lifted) || strings.Contains(res.Content, canary) {
					t.Errorf("%s $ %s\n%s", named, command, res.Content)
				}
			}
			for _, a := range attacks {
				command := strings.NewReplacer("/W", f.ws, "W", f.ws, "H", f.home).Replace(strings.ReplaceAll(a.command, "HEA", "\x00"))
				if res := f.run(strings.ReplaceAll(command, "\x00", "HEA")); strings.Contains(res.Content, canary) {
					t.Errorf("%s leaks: $ %s\n%s", named, command, res.Content)
				}
			}
			for _, command := range []string{
				"echo evil > F", "echo evil >> W/F", "rm -f F W/F", "chmod 666 F; echo evil > F", "echo x > x; mv -f x F", "mv F gone", "rm -rf memory USER.md",
				"ln -sf ../SOUL.md F; ln -sf /etc/passwd F", "mkdir -p memory/deep; echo evil > memory/evil.md", "rm -rf memory; mkdir -p memory/deep; echo evil > memory/day.md",
				"rm -rf memory; ln -s W/notes memory; ls memory",
			} {
				f.run(strings.NewReplacer("W", f.ws, "F", file).Replace(command))
			}
			if got := f.content(file); got != lifted {
				t.Errorf("%s now holds %q", file, got)
			}
			if got := f.content("MEMORY.md") + f.content("SOUL.md"); got != canary+canary {
				t.Errorf("%s: private files hold %q", named, got)
			}
			f.missing("memory/evil.md")
			f.missing("notes/er.md")
			f.says("cat "+file, lifted) // the next command finds it as it is
		}
	})
}

// A command can read what guides the main agent, and neither change nor plant
// it.
func TestGuidesAreKept(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.strict = true
		f.write("AGENTS.md", "rules")
		f.write("skills/s/SKILL.md", "skill")
		f.write(".goclaw/agents/a.md", "agent")
		f.write("README.md", "old")
		if err := os.Link(filepath.Join(f.ws, "AGENTS.md"), filepath.Join(f.ws, "CLAUDE.md")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("AGENTS.md", filepath.Join(f.ws, "GEMINI.md")); err != nil {
			t.Fatal(err)
		}
		f.says("cat AGENTS.md CLAUDE.md GEMINI.md skills/s/SKILL.md .goclaw/agents/a.md", "rulesrulesrulesskillagent")
		for _, command := range []string{
			"echo evil > AGENTS.md", "chmod 666 AGENTS.md; echo evil > AGENTS.md", "echo evil >> W/AGENTS.md", "rm -f AGENTS.md", "mv AGENTS.md x.md", "echo evil > y; mv -f y AGENTS.md",
			"echo evil >> CLAUDE.md", "echo evil >> GEMINI.md", "echo evil > TOOLS.md", "echo evil > W/tools.MD", "ln -s README.md TOOLS.md", "mkdir TOOLS.md",
			"echo evil > skills/s/SKILL.md", "mkdir -p skills/t; echo evil > skills/t/SKILL.md", "echo evil > W/skills/s/SKILL.md", "rm -rf skills", "mv skills sk; cp -r sk skills",
			"ln skills/s/SKILL.md hard; echo evil >> hard", "ln AGENTS.md hard2; echo evil >> hard2", "mkdir -p .claude/agents; echo evil > .claude/agents/x.md", "ln -s . .opencode",
			"echo evil > .goclaw/agents/a.md", "echo evil > .goclaw/agents/b.md", "echo evil > .goclaw/evil", "mount -o remount,rw W/skills; echo evil > skills/s/SKILL.md",
		} {
			f.run(strings.ReplaceAll(command, "W", f.ws))
		}
		for p, want := range map[string]string{"AGENTS.md": "rules", "CLAUDE.md": "rules", "GEMINI.md": "rules", "skills/s/SKILL.md": "skill", ".goclaw/agents/a.md": "agent"} {
			if got := f.content(p); got != want {
				t.Errorf("%s now holds %q", p, got)
			}
		}
		for _, p := range []string{"TOOLS.md", "tools.MD", "skills/t", ".claude", ".opencode", ".goclaw/agents/b.md", ".goclaw/evil"} {
			f.missing(p)
		}
		f.says("echo evil > TOOLS.md; echo new > README.md; cat README.md", "new\n[not kept: TOOLS.md: only the main agent changes it]")
		if got := f.content("README.md"); got != "new\n" {
			t.Errorf("ordinary work is lost: %q", got)
		}
		f.strict = false
		f.says("echo better > AGENTS.md; echo more > TOOLS.md; cat AGENTS.md TOOLS.md", "better\nmore")
		f.strict = true
		f.says("cat AGENTS.md TOOLS.md", "better\nmore")
	})
}

// Workers with and without a lift are at work on one workspace at once.
func TestLiftsDoNotMeet(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.strict = true
		f.write("USER.md", canary)
		f.write("go/x", "")
		plain, lifted := *f, *f
		lifted.named = []string{"USER.md"}
		done := make(chan goclaw.ToolResult)
		go func() {
			done <- lifted.run("touch go/started; while [ ! -e go/on ]; do sleep 0.01; done; cat USER.md; cp USER.md go/copy 2>/dev/null; rm go/copy")
		}()
		waitFor(t, func() bool { _, err := os.Stat(filepath.Join(f.ws, "go/started")); return err == nil })
		res := plain.run("cat USER.md; cat " + f.ws + "/USER.md; find . -type f -exec cat {} +; touch go/on")
		if strings.Contains(res.Content, canary) {
			t.Errorf("a worker without the lift sees it: %s", res.Content)
		}
		if res := <-done; !strings.Contains(res.Content, canary) {
			t.Errorf("the one with it doesn't: %s", res.Content)
		}
	})
}
