package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// early is long before a command would end by itself, also on a busy machine.
const early = time.Minute

func TestTimeout(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box, func(o *exec.Options) { o.MaxTimeout = time.Second })
		mark := tag()
		start := time.Now()
		res := f.call(t.Context(), map[string]any{"command": "echo partial; sleep " + mark, "timeoutSeconds": 3600})
		if took := time.Since(start); took > early {
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
				if took := time.Since(start); took > early {
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
			if took := time.Since(start); took > early {
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
	fmt.Println("ready")
	exec.New(exec.Options{Sandbox: box}).Call(context.Background(), goclaw.Invocation{
		Call: goclaw.ToolCall{Arguments: string(raw)}, Profile: goclaw.Profile{Workspace: ws, Strict: true},
	})
	os.Exit(0)
}

// victim starts a process that runs a command in the sandbox, and returns when
// it is about to.
func (f *fixture) victim(box sandbox.Sandbox, command string) *osexec.Cmd {
	f.t.Helper()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimWorkspace+"="+f.ws,
		"GOCLAW_EXEC_TEST_SANDBOX="+box.Name(), "GOCLAW_EXEC_TEST_COMMAND="+command)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 100)) // it is ready
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return cmd
}

// TestKilledGateway kills the process that runs a command without warning.
func TestKilledGateway(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		f.write("a.txt", "a")
		mark := tag()
		cmd := f.victim(box, "echo new > new.txt; setsid sleep "+mark+" & sleep "+mark)
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

// TestKilledWhileStarting kills it at all moments of the sandbox's setting up.
func TestKilledWhileStarting(t *testing.T) {
	eachSandbox(t, func(t *testing.T, box sandbox.Sandbox) {
		f := newFixture(t, box)
		mark := tag()
		for i := range 40 {
			cmd := f.victim(box, "sleep "+mark)
			moment := time.Now().Add(time.Duration(i) * 300 * time.Microsecond)
			for time.Now().Before(moment) { // a timer would be late
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
		}
		waitFor(t, func() bool { return len(processes(mark)) == 0 })
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
