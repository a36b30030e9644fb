package exec_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// secrets puts a canary into every private file, in history, behind links and
// into the home.
func (f *fixture) secrets() {
	f.t.Helper()
	for _, p := range []string{"SOUL.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md", "memory/day.md", "memory/deep/er.md"} {
		f.write(p, canary)
	}
	f.write("notes/n.md", "public")
	f.write(".goclaw/output/other-run/exec.txt", canary)
	f.write("../goclaw.db", canary)
	f.write("../agents/x.md", canary)
	f.git("init", "-q")
	f.git("add", "-f", "SOUL.md", "MEMORY.md", "memory")
	f.git("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "memories")
	for name, old := range map[string]string{"notes/hard.md": "MEMORY.md", "notes/hard2.md": "memory/day.md", "hard3": "SOUL.md", "notes/db": "../goclaw.db"} {
		if err := os.Link(filepath.Join(f.ws, old), filepath.Join(f.ws, name)); err != nil {
			f.t.Fatal(err)
		}
	}
	for name, old := range map[string]string{"soft.md": "MEMORY.md", "notes/soft.md": "../memory/day.md", "notes/up": "../..", "notes/dir": "../memory"} {
		if err := os.Symlink(old, filepath.Join(f.ws, name)); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) git(args ...string) {
	f.t.Helper()
	cmd := osexec.Command("git", args...)
	cmd.Dir = f.ws
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("git: %v\n%s", err, out)
	}
}

// attacks try to read private files. W is the workspace, H the home. The
// second field says whether the main agent succeeds with it.
var attacks = []struct {
	command string
	works   bool
}{
	{"cat SOUL.md IDENTITY.md USER.md HEARTBEAT.md BOOTSTRAP.md MEMORY.md memory/*", true},
	{"cat W/MEMORY.md", true},
	{"cp MEMORY.md x.txt; cat x.txt", true},
	{"base64 -w0 MEMORY.md | base64 -d", true},
	{"cd memory && cat day.md deep/er.md", true},
	{"cat notes/hard.md; cat notes/hard2.md; cat hard3", true},
	{"cat soft.md; cat notes/soft.md; cat notes/dir/day.md", true},
	{"ln MEMORY.md y.txt; cat y.txt", true},
	{"ln -s MEMORY.md z.txt; cat z.txt", true},
	{"ln -s W/memory notes/q; cat notes/q/day.md", true},
	{"mv memory m2; cat m2/day.md; mv m2 memory", true},
	{"cp -r . /tmp/c 2>/dev/null || cp -r . $TMPDIR/c; cat /tmp/c/MEMORY.md $TMPDIR/c/MEMORY.md", true},
	{"tar cf - . | tar xf - -C ${TMPDIR}; cat $TMPDIR/MEMORY.md", true},
	{"git show HEAD:MEMORY.md; git log -p", true},
	{"git --git-dir=W/.git show HEAD:memory/day.md", true},
	{"find / -name '*.md' -newermt 2020-01-01 -exec grep -h CANARY {} + 2>/dev/null", true},
	{"find . -type f -exec cat {} +", true},
	{"grep -rh CANARY . W", true},
	{"cat .goclaw/output/other-run/exec.txt", true},
	{"cat /proc/self/root/W/MEMORY.md", true},
	{"cat /proc/self/cwd/MEMORY.md", true},
	{"cat /proc/1/root/W/MEMORY.md /proc/1/cwd/MEMORY.md", true},
	{"for p in /proc/[0-9]*; do cat $p/root/W/MEMORY.md $p/cwd/MEMORY.md; done", true},
	{"umount W/memory; umount -l W; cat memory/day.md MEMORY.md", true},
	{"unshare -Urm sh -c 'umount -l W; cat W/MEMORY.md'", false},
	{"mount --bind W /mnt; cat /mnt/MEMORY.md", false},
	{"chroot /proc/1/root cat W/MEMORY.md", false},
	{"cat H/goclaw.db; cat H/agents/x.md; cat ../goclaw.db ../agents/x.md", false},
	{"cat notes/db notes/up/goclaw.db", false},
	{"ls -laR H", false},
	{"cat /proc/*/environ | tr '\\0' '\\n'; env", false},
	{"cat /proc/*/cmdline | tr '\\0' ' '", false},
	{"cat /etc/shadow; cat ~/.goclaw/goclaw.db; cat /root/.ssh/*", false},
}

func TestPrivateFilesStayPrivate(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", canary)
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		for _, strict := range []bool{true, false} {
			f := newFixture(t, box)
			f.secrets()
			f.strict = strict
			for _, a := range attacks {
				command := strings.NewReplacer("/W", f.ws, "W", f.ws, "H", f.home).Replace(strings.ReplaceAll(a.command, "HEA", "\x00"))
				command = strings.ReplaceAll(command, "\x00", "HEA")
				res := f.run(command)
				leaked := strings.Contains(res.Content, canary)
				switch {
				case leaked && (strict || !a.works):
					t.Errorf("strict=%v $ %s\n%s", strict, command, res.Content)
				case !leaked && a.works && !strict && box.Name() == "bubblewrap":
					t.Errorf("the main agent can't either: the test shows nothing\n$ %s\n%s", command, res.Content)
				}
			}
			if got := f.content("MEMORY.md") + f.content("memory/day.md"); got != canary+canary {
				t.Errorf("strict=%v: the private files hold %q", strict, got)
			}
		}
	})
}

func TestPrivateFilesCantBeChangedOrPlanted(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.secrets()
		if err := os.Remove(filepath.Join(f.ws, "SOUL.md")); err != nil {
			t.Fatal(err)
		}
		f.strict = true
		for _, command := range []string{
			"echo planted > MEMORY.md", "echo planted > W/MEMORY.md", "echo planted > SOUL.md", "echo planted > W/SOUL.md",
			"echo planted > x; mv x SOUL.md", "echo planted > x; mv x W/SOUL.md", "echo planted > soul.md",
			"ln -s notes/n.md SOUL.md", "mkdir memory; echo planted > memory/day.md", "mkdir -p .git/hooks; echo planted > .git/hooks/pre-commit",
			"rm -f MEMORY.md W/MEMORY.md; rm -rf memory W/memory", "rm -rf W/.git .git; git init -q .", "echo planted > notes/hard.md",
			"echo planted > notes/dir/day.md", "echo planted > notes/soft.md", "mkfifo MEMORY.md", "mkdir -p .goclaw/output/other-run && echo planted > .goclaw/output/other-run/exec.txt",
			"echo planted > .goclaw/output/.gitignore",
		} {
			f.run(strings.ReplaceAll(command, "W", f.ws))
		}
		for _, p := range []string{"MEMORY.md", "memory/day.md", "memory/deep/er.md", "USER.md", ".goclaw/output/other-run/exec.txt"} {
			if got := f.content(p); got != canary {
				t.Errorf("%s now holds %q", p, got)
			}
		}
		if got := f.content(".goclaw/output/.gitignore"); got != "*\n" {
			t.Errorf(".gitignore now holds %q", got)
		}
		f.missing("SOUL.md")
		f.missing("soul.md")
		f.missing(".git/hooks/pre-commit")
		f.git("fsck")
		if left, _ := filepath.Glob(filepath.Join(f.ws, ".goclaw/output/.stages/*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if got := f.run("echo planted > SOUL.md").Content; !strings.Contains(got, "[not kept: SOUL.md: the name is private]") {
			t.Errorf("the worker isn't told: %s", got)
		}
	})
}

// TestReplacedPrivateFiles replaces a private file while a command waits, as
// editors do: masks over files would come off.
func TestReplacedPrivateFiles(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.strict = true
		f.write("MEMORY.md", "old")
		f.write("go/x", "")
		done := make(chan goclaw.ToolResult)
		go func() {
			done <- f.run("touch go/started; while [ ! -e go/on ]; do sleep 0.01; done; cat MEMORY.md W/MEMORY.md; cat USER.md " + f.ws + "/*.md")
		}()
		waitFor(t, func() bool { _, err := os.Stat(filepath.Join(f.ws, "go/started")); return err == nil })
		f.write("MEMORY.tmp", canary)
		if err := os.Rename(filepath.Join(f.ws, "MEMORY.tmp"), filepath.Join(f.ws, "MEMORY.md")); err != nil {
			t.Fatal(err)
		}
		f.write("USER.md", canary)
		f.write("go/on", "")
		if res := <-done; strings.Contains(res.Content, canary) {
			t.Errorf("the command saw the new file: %s", res.Content)
		}
		if f.content("MEMORY.md") != canary || f.content("USER.md") != canary {
			t.Error("what was written meanwhile is gone")
		}
	})
}

// TestHomeInsideTheWorkspace: somebody's home folder may be the workspace.
func TestHomeInsideTheWorkspace(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.ws = filepath.Dir(f.home)
		f.write("home/goclaw.db", canary)
		f.write("docs/a.txt", "a")
		if err := os.Link(filepath.Join(f.home, "goclaw.db"), filepath.Join(f.ws, "docs/alias")); err != nil {
			t.Fatal(err)
		}
		for _, f.strict = range []bool{false, true} {
			for _, command := range []string{"cat home/goclaw.db", "cat docs/alias", "find . -type f -exec cat {} +", "echo planted > home/goclaw.db; echo planted > docs/alias; rm -rf home; mv home h2; cat h2/*"} {
				if res := f.run(command); strings.Contains(res.Content, canary) {
					t.Errorf("strict=%v $ %s\n%s", f.strict, command, res.Content)
				}
			}
			f.says("cat docs/a.txt; echo b > new.txt; cat new.txt", "ab")
			if got := f.content("home/goclaw.db") + f.content("new.txt"); got != canary+"b\n" {
				t.Errorf("strict=%v: %q", f.strict, got)
			}
		}
	})
}
