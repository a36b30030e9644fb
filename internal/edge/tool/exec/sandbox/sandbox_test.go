package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw/internal/edge/tool/exec/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

func find(t *testing.T, name string) sandbox.Sandbox {
	t.Helper()
	box, why := sandbox.Find(t.Context(), name)
	if box == nil {
		t.Skipf("NOT TESTED: %s", why)
	}
	return box
}

func TestDetect(t *testing.T) {
	box, why := sandbox.Detect(t.Context())
	if (box == nil) == (why == "") {
		t.Errorf("Detect() = %v, %q", box, why)
	}
	if box, why := sandbox.Find(t.Context(), "tent"); box != nil || why == "" {
		t.Errorf("Find(tent) = %v, %q", box, why)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if box, why := sandbox.Detect(ctx); box != nil || !strings.Contains(why, "cancel") {
		t.Errorf("Detect, cancelled: %v, %q", box, why)
	}
}

func TestRun(t *testing.T) {
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) {
			box := find(t, name)
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			job := sandbox.Job{Command: "pwd; exit 7", Dir: ws, Workspace: ws, Output: &out}
			res, err := box.Run(t.Context(), job)
			if err != nil || res.ExitCode != 7 || out.String() != ws+"\n" {
				t.Errorf("%+v, %v, %q", res, err, out.String())
			}

			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
			defer cancel()
			job.Command = "sleep 100"
			if _, err := box.Run(ctx, job); err == nil || err.Error() != "enough" {
				t.Errorf("stopped: %v", err)
			}

			job.Dir = filepath.Join(ws, "missing")
			if _, err := box.Run(t.Context(), job); err == nil {
				t.Error("it ran in a folder that doesn't exist")
			}
			job.Dir, job.Workspace = "/", "/"
			if _, err := box.Run(t.Context(), job); err == nil {
				t.Error("it ran with the whole system as its workspace")
			}
		})
	}
}

// TestSettling has the command and somebody else change the same entries.
func TestSettling(t *testing.T) {
	for _, name := range []string{"bubblewrap", "landlock"} {
		t.Run(name, func(t *testing.T) {
			box := find(t, name)
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			stages := t.TempDir()
			for _, p := range []string{"kept", "both", "gone", "theirs", "sync/off"} {
				write(t, ws, p, "old")
			}
			pipe := &trigger{act: func() {
				write(t, ws, "new-both/theirs", "theirs")
				write(t, ws, "file-or-folder/theirs", "theirs")
				replace(t, ws, "both", "theirs")
				replace(t, ws, "gone", "theirs")
				replace(t, ws, "theirs", "theirs")
				replace(t, ws, "new-file", "theirs")
				write(t, ws, "sync/on", "")
			}}
			res, err := box.Run(t.Context(), sandbox.Job{
				Command: "echo go; while [ ! -e sync/on ]; do sleep 0.01; done; echo mine > new-file; mkdir new-both; echo mine > new-both/mine; " +
					"echo mine > file-or-folder; echo mine > x; mv x both; rm gone; mkdir secret; ls > kept",
				Dir: ws, Workspace: ws, StageDir: stages, Output: pipe,
				Private: func(name string) bool { return name == "secret" },
			})
			if err != nil || res.ExitCode != 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			for p, want := range map[string]string{
				"both": "mine\n", "gone": "theirs", "theirs": "theirs", "new-file": "mine\n",
				"new-both/mine": "mine\n", "new-both/theirs": "theirs", "file-or-folder/theirs": "theirs",
				"both.conflict-1": "theirs", "new-file.conflict-1": "theirs", "file-or-folder.conflict-1": "mine\n",
			} {
				if b, err := os.ReadFile(filepath.Join(ws, p)); err != nil || string(b) != want {
					t.Errorf("%s: %q, %v, want %q", p, b, err, want)
				}
			}
			want := []string{
				"both: it was changed meanwhile by somebody else, whose version is kept as both.conflict-1",
				"file-or-folder: it was changed meanwhile by somebody else; this command's version is kept as file-or-folder.conflict-1",
				"new-file: it was changed meanwhile by somebody else, whose version is kept as new-file.conflict-1",
				"secret: the name is private",
			}
			if !slices.Equal(res.Discarded, want) {
				t.Errorf("discarded: %q", res.Discarded)
			}
			if left, _ := os.ReadDir(stages); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// trigger acts at the first output of a command.
type trigger struct{ act func() }

func (w *trigger) Write(p []byte) (int, error) {
	if w.act != nil {
		w.act()
		w.act = nil
	}
	return len(p), nil
}

func write(t *testing.T, ws, rel, content string) {
	t.Helper()
	p := filepath.Join(ws, rel)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
		t.Error(err)
	}
}

// replace writes as editors do.
func replace(t *testing.T, ws, rel, content string) {
	t.Helper()
	write(t, ws, rel+".tmp", content)
	if err := os.Rename(filepath.Join(ws, rel+".tmp"), filepath.Join(ws, rel)); err != nil {
		t.Error(err)
	}
}

func Example() {
	box, why := sandbox.Detect(context.Background())
	if box == nil {
		fmt.Println("commands are refused:", why)
		return
	}
	ws, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(ws)
	if ws, err = filepath.EvalSymlinks(ws); err != nil {
		panic(err)
	}
	res, err := box.Run(context.Background(), sandbox.Job{
		Command: "cat /etc/shadow 2>/dev/null || echo hidden", Dir: ws, Workspace: ws, Output: os.Stdout,
	})
	fmt.Println(res.ExitCode, err)
	// Output:
	// hidden
	// 0 <nil>
}
