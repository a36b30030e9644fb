//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWhatIsNoFile(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := write(t, outside, "secret", "secret")
	if err := os.Mkdir(filepath.Join(dir, "AGENTS.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "memory"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "memory/day.md", "private")
	if err := syscall.Mkfifo(filepath.Join(dir, "SOUL.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "USER.md", "private")
	links := map[string]string{
		"TOOLS.md":     "USER.md",
		"IDENTITY.md":  secret,
		"HEARTBEAT.md": "nowhere",
		"BOOTSTRAP.md": "memory/day.md",
		"MEMORY.md":    filepath.Join("..", filepath.Base(outside), "secret"),
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files := load(t, NewLoader(Options{}), dir)
	for name, want := range map[string]string{
		"AGENTS.md": "is a folder", "SOUL.md": "is a pipe", "TOOLS.md": "link to USER.md",
		"IDENTITY.md": "leaves the workspace", "HEARTBEAT.md": "leads nowhere",
		"BOOTSTRAP.md": "private", "MEMORY.md": "link that",
	} {
		if f := files[name]; !strings.Contains(f.Warning, want) || f.Content != "" || f.Missing {
			t.Errorf("%s: %+v, want a warning with %q", name, f, want)
		}
	}
	if f := files["USER.md"]; f.Content != "private" || f.Warning != "" {
		t.Errorf("the target of a refused link suffers: %+v", f)
	}
}
