package exec_test

import (
	"context"
	"encoding/json"
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
	named  []string
	skills []string
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
		Profile: goclaw.Profile{Workspace: f.ws, Strict: f.strict, Inherit: f.named, Skills: f.skills},
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
	t.Setenv("GOCLAW_PASSPHRASE", canary)
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
