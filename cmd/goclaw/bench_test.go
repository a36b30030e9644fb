package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/cmd/goclaw/bench"
)

// The whole measurement, small, on the real program: every part gives its
// figures, and nothing is left.
func TestBenchQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about ten seconds")
	}
	home, tmp := filepath.Join(t.TempDir(), "home"), t.TempDir()
	if err := os.Chmod(filepath.Dir(tmp), 0o755); err != nil { // root's PostgreSQL runs as another user
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := program(t, home, []string{"TMPDIR=" + tmp}, "bench", "--quick", "--json")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var report bench.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	seen := map[string]bool{}
	for _, f := range report.Figures {
		seen[f.ID] = true
		if f.Name == "" || f.Means == "" || f.How == "" || len(f.Values) == 0 && f.Missing == "" {
			t.Errorf("incomplete: %+v", f)
		}
	}
	for _, id := range []string{
		"fsync", "binary", "init", "init.packages", "start.existing", "start.fresh", "idle", "turn", "turn.parts", "turn.commits",
		"spawn.1", "spawn.5", "spawn.50", "runs", "runs.share", "database", "waiting", "waiting.sdk", "ends.together", "ends.each", "follow", "follow.stalled", "follow.memory", "prompt.unchanged", "request.hello", "request.worker", "request.tools",
	} {
		if !seen[id] {
			t.Errorf("no figure %s", id)
		}
	}
	if !seen["runs.postgres"] && !seen["runs.postgres.4.share"] {
		t.Error("nothing about PostgreSQL")
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the person's home was touched (%v)", err)
	}
}

func TestBenchUnknownPart(t *testing.T) {
	out, err := program(t, t.TempDir(), nil, "bench", "--only", "turn").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		t.Errorf("%v; want exit code %d", err, exitUsage)
	}
	if got := string(out); !strings.HasPrefix(got, `goclaw: no part is named "turn"; there are: disk,`) || strings.Count(got, "\n") != 1 {
		t.Errorf("said %q", got)
	}
}
