package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"goclaw/internal/edge/tool/exec/sandbox"
)

// Commands that run at the same time on one workspace change the same files
// as they would without a sandbox: nothing that one has done is lost, and it
// is in the workspace when its Run returns.
func TestTogether(t *testing.T) {
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) {
			box := find(t, name)
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			stages := t.TempDir()
			write(t, ws, "old/log", "")
			write(t, ws, "MEMORY.md", "canary")
			job := func(command string) sandbox.Job {
				return sandbox.Job{
					Command: command, Dir: ws, Workspace: ws, StageDir: stages, Output: new(bytes.Buffer),
					Private: func(name string) bool { return name == "MEMORY.md" },
				}
			}
			const n = 20
			var wg sync.WaitGroup
			long := job("mkdir early; echo begin >> early/log; while [ ! -e stop ]; do sleep 0.01; done; echo late >> effects; mkdir -p out; echo late >> out/log; cat MEMORY.md")
			wg.Go(func() { must(t, box, long) })
			for count(t, filepath.Join(ws, "early/log"), "begin") == 0 {
				must(t, box, job("true")) // publishes what the long command has done
			}
			write(t, ws, "early/theirs", "theirs")
			for i := range n {
				wg.Go(func() {
					id := fmt.Sprintf("w%d", i)
					must(t, box, job(fmt.Sprintf("echo %[1]s >> effects; mkdir -p out/deep; echo %[1]s >> out/log; echo %[1]s > out/deep/%[1]s; echo %[1]s >> old/log; cat early/theirs && echo %[1]s >> early/log", id)))
					for _, file := range []string{"effects", "out/log", "out/deep/" + id, "old/log", "early/log"} {
						if got := count(t, filepath.Join(ws, file), id); got != 1 {
							t.Errorf("when %s returned its line was in %s %d times", id, file, got)
						}
					}
				})
				if i == n/2 { // somebody else works in the same place
					replace(t, ws, "MEMORY.md", "canary")
					write(t, ws, "theirs", "theirs")
				}
			}
			wg.Go(func() {
				for count(t, filepath.Join(ws, "effects"), "") < n {
					if t.Failed() {
						break
					}
				}
				write(t, ws, "stop", "")
				// The long command began before this file: another job brings it.
				must(t, box, job("true"))
			})
			wg.Wait()
			for _, file := range []string{"effects", "out/log", "old/log", "early/log"} {
				for i := range n {
					if got := count(t, filepath.Join(ws, file), fmt.Sprintf("w%d", i)); got != 1 {
						t.Errorf("in the end w%d is in %s %d times", i, file, got)
					}
				}
			}
			for _, file := range []string{"effects", "out/log"} {
				if got := count(t, filepath.Join(ws, file), "late"); got != 1 {
					t.Errorf("in the end the long command's line is in %s %d times", file, got)
				}
			}
			if out := long.Output.(*bytes.Buffer).String(); strings.Contains(out, "canary") {
				t.Errorf("a private file was seen: %s", out)
			}
			if left, _ := os.ReadDir(stages); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if odd, _ := filepath.Glob(filepath.Join(ws, "*conflict*")); len(odd) > 0 {
				t.Errorf("conflicts: %v", odd)
			}
		})
	}
}

func must(t *testing.T, box sandbox.Sandbox, job sandbox.Job) {
	t.Helper()
	res, err := box.Run(context.WithoutCancel(t.Context()), job)
	if err != nil || len(res.Discarded) > 0 {
		t.Errorf("%s: %+v, %v: %s", job.Command, res, err, job.Output)
	}
}

// count is how often the line is in a file; "" counts all lines.
func count(t *testing.T, file, line string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	lines := strings.Fields(string(b))
	if line == "" {
		return len(lines)
	}
	return len(slices.DeleteFunc(lines, func(l string) bool { return l != line }))
}

// What a command does to a file that somebody else replaces meanwhile is kept,
// and so is theirs.
func TestReplacedMeanwhile(t *testing.T) {
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) {
			box := find(t, name)
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			write(t, ws, "log", "old\n")
			write(t, ws, "sync/off", "")
			res, err := box.Run(t.Context(), sandbox.Job{
				Command: "echo go; while [ ! -e sync/on ]; do sleep 0.01; done; echo mine >> log",
				Dir:     ws, Workspace: ws, StageDir: t.TempDir(),
				Output:  &trigger{act: func() { replace(t, ws, "log", "theirs"); write(t, ws, "sync/on", "") }},
				Private: func(name string) bool { return name == "MEMORY.md" },
			})
			if err != nil || len(res.Discarded) != 1 {
				t.Fatalf("%+v, %v", res, err)
			}
			for file, want := range map[string]string{"log": "old\nmine\n", "log.conflict-1": "theirs"} {
				if b, err := os.ReadFile(filepath.Join(ws, file)); err != nil || string(b) != want {
					t.Errorf("%s: %q, %v, want %q", file, b, err, want)
				}
			}
		})
	}
}

// Jobs with other private entries do not meet on one stage.
func TestRulesDoNotMix(t *testing.T) {
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) {
			box := find(t, name)
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			stages := t.TempDir()
			write(t, ws, "MEMORY.md", "canary")
			write(t, ws, "sync/off", "")
			var out bytes.Buffer
			var wg sync.WaitGroup
			wg.Go(func() {
				must(t, box, sandbox.Job{
					Command: "echo > sync/ready; while [ ! -e sync/on ]; do cat MEMORY.md; sleep 0.01; done 2>/dev/null; true",
					Dir:     ws, Workspace: ws, StageDir: stages, Output: &out,
					Private: func(name string) bool { return name == "MEMORY.md" },
				})
			})
			must(t, box, sandbox.Job{
				Command: "while [ ! -e sync/ready ]; do sleep 0.01; done; cat MEMORY.md; sleep 0.1; echo > sync/on",
				Dir:     ws, Workspace: ws, StageDir: stages, Output: new(bytes.Buffer), Rule: "other",
				Private: func(name string) bool { return name == "home" },
			})
			wg.Wait()
			if strings.Contains(out.String(), "canary") {
				t.Errorf("a job saw what is private to it: %s", &out)
			}
		})
	}
}
