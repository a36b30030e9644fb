//go:build unix

package workspace

import (
	"io/fs"
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

// One workspace with all that can be wrong with files: each comes with a clear
// line, nothing is waited for, and what is fine is there.
func TestAllAtOnce(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, dir, "AGENTS.md", strings.Repeat("work as agreed. ", 5<<20/16))
	if err := os.Symlink(put(t, outside, "secret", "CANARY"), filepath.Join(dir, "SOUL.md")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "TOOLS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "IDENTITY.md", "CANARY")
	put(t, dir, "USER.md", "caf\xe9")
	put(t, dir, "HEARTBEAT.md", "one\r\ntwo\r\n")
	put(t, dir, "BOOTSTRAP.md", "\uFEFFhello")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewLoader(Options{})
	l.open = func(root *os.Root, name string) (fs.File, error) {
		if name == "IDENTITY.md" { // whoever runs the tests may read everything
			return nil, &fs.PathError{Op: "openat", Path: name, Err: syscall.EACCES}
		}
		return openFile(root, name)
	}
	files, err := l.Files(dir, append(Names(), "pipe.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ name, content, warning string }{
		{"AGENTS.md", "…", "was cut: 5222938 of its 5242880 characters were dropped from the middle (context.fileMaxChars); shorten it or raise the cap"},
		{"SOUL.md", "", "is a link that leaves the workspace; it was not followed"},
		{"TOOLS.md", "", "is a pipe, not a file; it was not read"},
		{"IDENTITY.md", "", "can't be read: permission denied"},
		{"USER.md", "caf\uFFFD", "is not UTF-8: 1 bytes were replaced; save it as UTF-8"},
		{"HEARTBEAT.md", "one\ntwo\n", ""},
		{"BOOTSTRAP.md", "hello", ""},
		{"MEMORY.md", "", ""},
		{"pipe.md", "", "is a pipe, not a file; it was not read"},
	}
	for i, w := range want {
		f := files[i]
		if w.content == "…" {
			w.content = f.Content
		}
		if f.Name != w.name || f.Content != w.content || f.Warning != w.warning || f.Missing != (w.name == "MEMORY.md") {
			t.Errorf("%s: %.200q, missing %v, warning %q; want %q", f.Name, f.Content, f.Missing, f.Warning, w.warning)
		}
	}
}

func TestSectionAndNoteThatArePipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "safety.md")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSections(map[string]string{"safety": pipe}).Texts(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a pipe, not a file") {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "memory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "memory", noteDay+".md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Notes{}).Remember(dir, noteDay, "m", "x"); err == nil || !strings.Contains(err.Error(), "it is a pipe, not a file") {
		t.Error(err)
	}
}
