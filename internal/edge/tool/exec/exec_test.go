package exec_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/exec/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// fixture is a workspace with a GOCLAW_HOME beside it, and a call's frame.
type fixture struct {
	t      *testing.T
	ws     string
	home   string
	tool   *exec.Tool
	strict bool
}

// eachSandbox runs a test in every sandbox that works here.
func eachSandbox(t *testing.T, f func(t *testing.T, box sandbox.Sandbox)) {
	t.Helper()
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) {
			box, why := sandbox.Find(t.Context(), name)
			if box == nil {
				t.Skipf("NOT TESTED: %s", why)
			}
			f(t, box)
		})
	}
}

func newFixture(t *testing.T, box sandbox.Sandbox, change ...func(*exec.Options)) *fixture {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ws: filepath.Join(base, "ws"), home: filepath.Join(base, "home")}
	for _, dir := range []string{f.ws, f.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := exec.Options{Home: f.home, Sandbox: box}
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

func (f *fixture) call(ctx context.Context, args map[string]any) goclaw.ToolResult {
	f.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.tool.Call(ctx, goclaw.Invocation{
		Call:    goclaw.ToolCall{ID: "1", Name: "exec", Arguments: string(raw)},
		Fence:   goclaw.Fence{Run: "run-1"},
		Profile: goclaw.Profile{Workspace: f.ws, Strict: f.strict},
	})
}

func (f *fixture) run(command string) goclaw.ToolResult {
	f.t.Helper()
	return f.call(f.t.Context(), map[string]any{"command": command})
}

func TestSmoke(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.write("SOUL.md", "canary")
		f.write("src/a.txt", "hello")
		f.write("top.txt", "top")
		for _, strict := range []bool{false, true} {
			f.strict = strict
			for _, c := range strings.Split(`pwd; ls -la; cat src/a.txt top.txt
cat SOUL.md
echo hi > new.txt; echo x >> top.txt; echo y > src/b; mkdir -p d/e; echo z > d/e/f
env; id; ps aux; ls -l /proc/self/fd; ls /; ls -la /etc /root /home /tmp; ulimit -u
rm new.txt; mv top.txt top2.txt; echo evil > SOUL.md; mkdir memory; ls
ls -la; cat */* ; rm -r d
echo hi | tee /dev/stderr; exit 3`, "\n") {
				r := f.run(c)
				t.Logf("strict=%v $ %s\n%s (error %v)", strict, c, r.Content, r.IsError)
			}
		}
	})
}
