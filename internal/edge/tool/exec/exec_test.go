package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/exec/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	if ws := os.Getenv(victimWorkspace); ws != "" {
		beVictim(ws)
	}
	os.Exit(m.Run())
}

const canary = "CANARY-OF-THE-MAIN-AGENT"

// fixture is a workspace with a GOCLAW_HOME around or beside it.
type fixture struct {
	t      testing.TB
	ws     string
	home   string
	tool   *exec.Tool
	strict bool
	runID  string
}

// eachSandbox runs a test in every sandbox that works here.
func eachSandbox(t *testing.T, f func(t *testing.T, box sandbox.Sandbox)) {
	t.Helper()
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) { f(t, find(t, name)) })
	}
}

func find(t testing.TB, name string) sandbox.Sandbox {
	t.Helper()
	box, why := sandbox.Find(t.Context(), name)
	if box == nil {
		t.Skipf("NOT TESTED: %s", why)
	}
	return box
}

func newFixture(t testing.TB, box sandbox.Sandbox, change ...func(*exec.Options)) *fixture {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	f := &fixture{t: t, ws: filepath.Join(home, "workspace"), home: home, runID: "run-1"}
	if err := os.MkdirAll(f.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	o := exec.Options{Home: home, Sandbox: box}
	for _, c := range change {
		c(&o)
	}
	f.tool = exec.New(o)
	return f
}

func (f *fixture) write(rel, content string) {
	f.t.Helper()
	path := filepath.Join(f.ws, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) content(rel string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.ws, rel))
	if err != nil {
		f.t.Error(err)
	}
	return string(b)
}

func (f *fixture) missing(rel string) {
	f.t.Helper()
	if _, err := os.Lstat(filepath.Join(f.ws, rel)); err == nil {
		f.t.Errorf("%s exists", rel)
	}
}

func (f *fixture) call(ctx context.Context, args map[string]any) goclaw.ToolResult {
	f.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.tool.Call(ctx, goclaw.Invocation{
		Call:    goclaw.ToolCall{ID: "1", Name: "exec", Arguments: string(raw)},
		Fence:   goclaw.Fence{Run: f.runID},
		Profile: goclaw.Profile{Workspace: f.ws, Strict: f.strict},
	})
}

func (f *fixture) run(command string) goclaw.ToolResult {
	f.t.Helper()
	return f.call(f.t.Context(), map[string]any{"command": command})
}

// says runs a command and compares the whole result.
func (f *fixture) says(command, want string) {
	f.t.Helper()
	if got := f.run(command).Content; strings.TrimSpace(got) != want {
		f.t.Errorf("strict=%v $ %s\n%s\nwant\n%s", f.strict, command, got, want)
	}
}

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

// waitFor polls until ok, for at most ten seconds.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it never happened")
		}
	}
}

func TestWorkersChangeTheWorkspace(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.strict = true
		f.write("MEMORY.md", canary)
		f.write("src/a.txt", "a")
		f.write("b.txt", "b")
		f.write("c.txt", "c")
		f.write("d.txt", "d")
		f.says("cat src/a.txt b.txt", "ab")
		f.says("cat "+f.ws+"/src/a.txt "+f.ws+"/b.txt", "ab")
		f.says("echo 1 > src/new; echo 2 > top; mkdir -p dir/sub; echo 3 > dir/sub/x; echo 4 >> b.txt", "[no output]")
		f.says("rm c.txt; mv d.txt e.txt; ln -s src/a.txt link; sed -i s/b/B/ b.txt", "[no output]")
		for p, want := range map[string]string{"src/new": "1\n", "top": "2\n", "dir/sub/x": "3\n", "b.txt": "B4\n", "e.txt": "d", "link": "a"} {
			if got := f.content(p); got != want {
				t.Errorf("%s holds %q, want %q", p, got, want)
			}
		}
		f.missing("c.txt")
		f.missing("d.txt")
		f.says("cd dir && pwd -P | sed 's/.*\\(dir\\)/\\1/'; cat ../src/a.txt", "dir\na")
		f.says("mkdir pipe-less; mkfifo pipe", "[not kept: pipe: neither a file, a folder nor a link]")
		if res := f.call(t.Context(), map[string]any{"command": "ls", "cwd": "dir"}); res.Content != "sub\n" {
			t.Errorf("in dir: %+v", res)
		}
		for _, cwd := range []string{"memory", "..", "/etc", "missing", "b.txt"} {
			if res := f.call(t.Context(), map[string]any{"command": "pwd", "cwd": cwd}); !res.IsError || !strings.Contains(res.Content, "cwd: ") {
				t.Errorf("cwd %s: %+v", cwd, res)
			}
		}
	})
}

// TestSiblings has workers make the same folder at the same time.
func TestSiblings(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.strict = true
		f.write("shared.txt", "")
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				f.run(fmt.Sprintf("mkdir -p out/sub; echo %d > out/sub/%d; echo %d > top-%d; echo x >> shared.txt; rm -f none", i, i, i, i))
			})
		}
		wg.Wait()
		for i := range 6 {
			want := fmt.Sprintln(i)
			if a, b := f.content(fmt.Sprintf("out/sub/%d", i)), f.content(fmt.Sprintf("top-%d", i)); a != want || b != want {
				t.Errorf("worker %d left %q and %q", i, a, b)
			}
		}
		if got := f.content("shared.txt"); got != strings.Repeat("x\n", 6) {
			t.Errorf("shared.txt holds %q", got)
		}
	})
}

func TestResult(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		for _, tt := range []struct {
			command, want string
			failed        bool
		}{
			{"echo hi; echo there >&2", "hi\nthere\n", false},
			{"true", "[no output]", false},
			{"printf x; exit 3", "x\n[exit code 3]", true},
			{"kill -9 $$", "[exit code 137]", true},
			{"no-such-program-here", "", true},
			{"cat", "[no output]", false}, // there is nothing to read
			{"[[ a == a ]] && echo bash", "bash\n", false},
			{"printf 'a\\0b\\377'", "a\uFFFDb\uFFFD", false},
		} {
			res := f.run(tt.command)
			if res.IsError != tt.failed || tt.want != "" && res.Content != tt.want {
				t.Errorf("$ %s\n%q (error %v), want %q", tt.command, res.Content, res.IsError, tt.want)
			}
		}
		if res := f.run(""); !res.IsError {
			t.Error("an empty command ran")
		}
	})
}

func TestEnvironmentIsCleared(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", canary)
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box, func(o *exec.Options) { o.Env = []string{"EXTRA=yes"} })
		var names []string
		for line := range strings.SplitSeq(f.run("env").Content, "\n") {
			if name, _, ok := strings.Cut(line, "="); ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		want := []string{"EXTRA", "HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "USER", "_"}
		if !slices.Equal(names, want) {
			t.Errorf("the environment has %v, want %v", names, want)
		}
		f.says("echo $EXTRA; cd; touch x && cat x; touch $TMPDIR/y && echo ok; ulimit -c", "yes\nok\n0")
	})
}

// TestInheritedFilesAreClosed leaves a file open as a careless parent might.
func TestInheritedFilesAreClosed(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.write("../goclaw.db", canary)
		fd, err := syscall.Open(filepath.Join(f.home, "goclaw.db"), syscall.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		if res := f.run(fmt.Sprintf("cat <&%d", fd)); !res.IsError || strings.Contains(res.Content, canary) {
			t.Errorf("%+v", res)
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

func TestNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	command := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo connected", l.Addr().(*net.TCPAddr).Port)
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		if got := newFixture(t, box).run(command); strings.Contains(got.Content, "connected") {
			t.Errorf("without network: %+v", got)
		}
		open := newFixture(t, box, func(o *exec.Options) { o.Network = true })
		if got := open.run(command); got.Content != "connected\n" {
			t.Errorf("with network: %+v", got)
		}
	})
}

// TestSocketsUnderLandlock: a host's daemons listen on Unix sockets.
func TestSocketsUnderLandlock(t *testing.T) {
	if _, err := osexec.LookPath("python3"); err != nil {
		t.Skip("NOT TESTED: needs python3")
	}
	f := newFixture(t, find(t, "landlock"))
	f.says(`python3 -c '
import socket
for family in socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK:
    try:
        socket.socket(family, socket.SOCK_DGRAM); print("open")
    except PermissionError: print("closed")
a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(4).decode())'`, "closed\nclosed\nclosed\nclosed\npair")
}

func TestSystemIsReadOnly(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		for _, dir := range []string{"/usr", "/usr/local/bin", "/etc/ssl/certs", f.home} {
			if res := f.run("touch " + dir + "/goclaw-was-here && test -e " + dir + "/goclaw-was-here"); !res.IsError && dir != f.home {
				t.Errorf("%s is writable: %s", dir, res.Content)
			}
			if _, err := os.Stat(filepath.Join(dir, "goclaw-was-here")); err == nil {
				os.Remove(filepath.Join(dir, "goclaw-was-here"))
				t.Errorf("a command wrote to %s", dir)
			}
		}
		extra := t.TempDir()
		if err := os.WriteFile(filepath.Join(extra, "data"), []byte("data"), 0o644); err != nil {
			t.Fatal(err)
		}
		f.says("cat "+extra+"/data 2>/dev/null || echo no", "no")
		f = newFixture(t, box, func(o *exec.Options) { o.ReadOnly = []string{extra, filepath.Dir(o.Home)} })
		f.write("../goclaw.db", canary)
		f.says("cat "+extra+"/data; echo x 2>/dev/null > "+extra+"/data || echo no", "datano")
		f.says("cat "+f.home+"/goclaw.db 2>/dev/null || echo no; echo fine > y; cat y", "no\nfine")
	})
}

func TestLongOutput(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		for _, strict := range []bool{false, true} {
			f := newFixture(t, box, func(o *exec.Options) { o.MaxOutput = 1000 })
			f.strict = strict
			f.says("seq 1 200 | tr -d '\\n' | wc -c", "492")
			res := f.run("seq 1 10000; echo the end")
			if len(res.Content) > 1200 || !strings.HasPrefix(res.Content, "1\n2\n") || !strings.HasSuffix(res.Content, "\nthe end\n") {
				t.Fatalf("%d bytes: %.80q … %q", len(res.Content), res.Content, res.Content[max(0, len(res.Content)-40):])
			}
			m := regexp.MustCompile(`\n\[… (\d+) bytes left out; the whole output is in (\S+) …\]\n`).FindStringSubmatch(res.Content)
			if m == nil {
				t.Fatalf("no marker in %q", res.Content)
			}
			if whole := f.content(m[2]); len(whole) != 48894+8 || !strings.HasPrefix(m[2], ".goclaw/output/run-1/") {
				t.Errorf("%s holds %d bytes", m[2], len(whole))
			}
			f.says("tail -n 1 "+m[2], "the end")
			f.runID = "run-2"
			if got := f.run("tail -n 1 " + m[2]).Content; strict && strings.Contains(got, "the end") {
				t.Errorf("another worker reads it: %s", got)
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box, func(o *exec.Options) { o.MaxTimeout = time.Second })
		mark := tag()
		start := time.Now()
		res := f.call(t.Context(), map[string]any{"command": "echo partial; sleep " + mark, "timeoutSeconds": 3600})
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if want := "partial\n[timed out after 1s; all processes were ended]"; !res.IsError || res.Content != want {
			t.Errorf("%+v", res)
		}
		gone(t, mark)
	})
}

// hideouts are ways for processes to outlive their command.
var hideouts = []string{
	"sleep TAG",
	"sleep TAG & sleep TAG & wait",
	"setsid sleep TAG & sleep TAG",
	"(setsid setsid sh -c 'trap \"\" TERM HUP; sleep TAG & sleep TAG' &) ; sleep TAG",
	"trap '' TERM HUP INT; nohup sleep TAG; sleep TAG",
	"setsid sh -c 'while :; do setsid sleep TAG & sleep 0.01; done' & sleep TAG",
}

func TestCancelEndsEveryProcess(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		for _, strict := range []bool{false, true} {
			f.strict = strict
			for _, hideout := range hideouts {
				mark := tag()
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan goclaw.ToolResult)
				go func() {
					done <- f.call(ctx, map[string]any{"command": "echo before; " + strings.ReplaceAll(hideout, "TAG", mark)})
				}()
				waitFor(t, func() bool { return slices.Contains(processes(mark), "sleep "+mark) })
				start := time.Now()
				cancel(errors.New("the user said stop"))
				res := <-done
				if took := time.Since(start); took > time.Second {
					t.Errorf("%s: it took %v", hideout, took)
				}
				if !res.IsError || res.Content != "before\n[stopped: the user said stop; all processes were ended]" {
					t.Errorf("%s: %+v", hideout, res)
				}
				gone(t, mark)
			}
		}
	})
}

// TestTermComesFirst: a command may clean up.
func TestTermComesFirst(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan goclaw.ToolResult)
		mark := tag()
		go func() {
			done <- f.call(ctx, map[string]any{"command": "trap 'echo bye; exit 0' TERM; sleep " + mark + " & wait"})
		}()
		waitFor(t, func() bool { return slices.Contains(processes(mark), "sleep "+mark) })
		cancel()
		if res := <-done; !res.IsError || !strings.Contains(res.Content, "bye\n[stopped: ") {
			t.Errorf("%+v", res)
		}
		gone(t, mark)
	})
}

// TestBackgroundProcessesEndWithTheCall: they hold the output open.
func TestBackgroundProcessesEndWithTheCall(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		for _, hideout := range []string{"sleep TAG &", "setsid sleep TAG &", "nohup setsid sh -c 'trap \"\" TERM; sleep TAG; sleep TAG' & sleep 0.1;"} {
			mark := tag()
			start := time.Now()
			f.says(strings.ReplaceAll(hideout, "TAG", mark)+" echo done", "done")
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: it took %v", hideout, took)
			}
			gone(t, mark)
		}
	})
}

const victimWorkspace = "GOCLAW_EXEC_TEST_WORKSPACE"

// beVictim runs a command that hides, in a process that is about to be killed.
func beVictim(ws string) {
	box, _ := sandbox.Find(context.Background(), os.Getenv("GOCLAW_EXEC_TEST_SANDBOX"))
	raw, _ := json.Marshal(map[string]string{"command": os.Getenv("GOCLAW_EXEC_TEST_COMMAND")})
	exec.New(exec.Options{Sandbox: box}).Call(context.Background(), goclaw.Invocation{
		Call: goclaw.ToolCall{Arguments: string(raw)}, Profile: goclaw.Profile{Workspace: ws, Strict: true},
	})
	os.Exit(0)
}

// TestKilledGateway kills the process that runs a command without warning.
func TestKilledGateway(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.write("a.txt", "a")
		mark := tag()
		cmd := osexec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimWorkspace+"="+f.ws, "GOCLAW_EXEC_TEST_SANDBOX="+box.Name(),
			"GOCLAW_EXEC_TEST_COMMAND=echo new > new.txt; setsid sleep "+mark+" & sleep "+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return slices.Contains(processes(mark), "sleep "+mark) })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		waitFor(t, func() bool { return len(processes(mark)) == 0 })
		stages := func() []string {
			left, _ := filepath.Glob(filepath.Join(f.ws, ".goclaw/output/.stages/*"))
			return left
		}
		if len(stages()) == 0 {
			t.Error("nothing to sweep: the test shows nothing")
		}
		f.strict = true
		f.says("cat a.txt", "a")
		if len(stages()) != 0 {
			t.Errorf("not swept: %v", stages())
		}
	})
}

// tag returns a duration that no other command sleeps.
func tag() string {
	return fmt.Sprintf("1000.%d", time.Now().UnixNano())
}

// processes lists the command lines on this machine that contain mark.
func processes(mark string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range files {
		b, err := os.ReadFile(p)
		if err == nil && strings.Contains(string(b), mark) && p != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			found = append(found, strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " ")))
		}
	}
	return found
}

func gone(t testing.TB, mark string) {
	t.Helper()
	if left := processes(mark); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

func TestRefusedWithoutSandbox(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("GOCLAW_SANDBOX_CHILD", "1") // a child doesn't have children
	f := newFixture(t, nil)
	res := f.run("echo ran")
	if !res.IsError || strings.Contains(res.Content, "ran\n") || !strings.Contains(res.Content, "bubblewrap (bwrap) is not installed; landlock: ") {
		t.Errorf("%+v", res)
	}
	if got := f.tool.Sandbox(t.Context()); !strings.HasPrefix(got, "exec is refused: ") {
		t.Errorf("Sandbox() = %q", got)
	}
}

func TestSandboxIsFoundOnce(t *testing.T) {
	f := newFixture(t, nil)
	if name := f.tool.Sandbox(t.Context()); name != "bubblewrap" && name != "landlock" {
		t.Skipf("NOT TESTED: %s", name)
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("GOCLAW_SANDBOX_CHILD", "1")
	f.says("echo ran", "ran")
}

func BenchmarkExec(b *testing.B) {
	for _, name := range []string{"bubblewrap", "landlock"} {
		for _, strict := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/strict=%v", name, strict), func(b *testing.B) {
				f := newFixture(b, find(b, name))
				f.strict = strict
				f.secrets()
				for b.Loop() {
					if res := f.run("true"); res.IsError {
						b.Fatal(res.Content)
					}
				}
			})
		}
	}
}
