package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A hidden folder that shows nonetheless, for the workspace lies in it, does
// not stand in for the masks of what is hidden in the workspace.
func TestMasksBeneathAFolderThatShows(t *testing.T) {
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	output := filepath.Join(ws, "dir", "output")
	linked := filepath.Join(ws, "dir", "linked.md")
	beneath := filepath.Join(output, "x")
	if err := os.MkdirAll(output, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{linked, beneath} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job := Job{Workspace: ws, Hidden: []string{home, output, beneath, linked}}
	got, seal := masks(job, func(path string) bool { return top(path, ws) != "" })
	want := []string{"--tmpfs", output, "--ro-bind", "/dev/null", linked}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := []string{"--remount-ro", output}; !slices.Equal(seal, want) {
		t.Errorf("sealed by %q, want %q", seal, want)
	}
}
