package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listed is a line for each note: its path, and why it can't be read.
func listed(t *testing.T, dir string) string {
	t.Helper()
	files, err := (Memories{}).Notes(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range files {
		lines = append(lines, strings.TrimSpace(f.Path+" "+f.Problem))
	}
	return strings.Join(lines, "\n")
}

func TestMemories(t *testing.T) {
	dir := t.TempDir()
	if got := listed(t, dir); got != "" {
		t.Error(got)
	}
	outside := put(t, t.TempDir(), "theirs.md", "theirs")
	put(t, dir, "MEMORY.md", "lasting")
	put(t, dir, "SOUL.md", "soul")
	put(t, dir, "notes.md", "no memory")
	put(t, dir, "memory/2026-11-20.md", "a day")
	put(t, dir, "memory/trips/rome.MD", "rome")
	put(t, dir, "memory/picture.png", "x")
	for name, target := range map[string]string{
		"memory/out.md": outside, "memory/soul.md": "../SOUL.md", "memory/in.md": "2026-11-20.md", "memory/gone.md": "none", "memory/linked": "trips", "memory/etc.md": "/etc",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "SOUL.md"), filepath.Join(dir, "memory/hard.md")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "memory/folder.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := `MEMORY.md
memory/2026-11-20.md
memory/etc.md is a link that leaves the workspace; it was not followed
memory/gone.md is a link that leads nowhere: no such file or directory
memory/hard.md is the same file as SOUL.md; it was not read
memory/in.md
memory/linked is a link to a folder; what it holds is not searched
memory/out.md is a link that leaves the workspace; it was not followed
memory/soul.md is a link to SOUL.md; it was not followed
memory/trips/rome.MD`
	if got := listed(t, dir); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, want := range map[string]string{"MEMORY.md": "lasting", "memory/2026-11-20.md": "a day", "memory/in.md": "a day", "memory/trips/rome.MD": "rome"} {
		if got, err := (Memories{}).Note(dir, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"memory/out.md": "leaves the workspace", "memory/soul.md": "link to SOUL.md", "memory/hard.md": "same file as SOUL.md", "memory/none.md": "is not there",
		"../x.md": "no path within", "memory/folder.md": "is a folder", "memory/linked/../../SOUL.md": "no path within",
	} {
		if got, err := (Memories{}).Note(dir, name); err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "memory")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "memory")); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, dir); got != "MEMORY.md\nmemory is a link, not a folder; its notes are not searched" {
		t.Error(got)
	}
}

// The version tells a change of content, of time, and of the file itself; while
// the time stamp can't tell, there is none.
func TestMemoryVersions(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "MEMORY.md", "one")
	version := func() string {
		t.Helper()
		files, err := (Memories{}).Notes(dir)
		if err != nil || len(files) != 1 {
			t.Fatalf("%+v, %v", files, err)
		}
		return files[0].Version
	}
	seen := map[string]bool{}
	old := time.Now().Add(-time.Hour)
	for i, change := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(path, []byte("three"), 0o600) },
		func() error { old = old.Add(time.Second); return nil },
		func() error {
			if err := os.WriteFile(path+".new", []byte("three"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		v := version()
		if v == "" || seen[v] || v != version() {
			t.Errorf("change %d: %q of %v", i, v, seen)
		}
		seen[v] = true
	}
	soon := time.Now().Add(time.Hour) // as a clock that was set back leaves it
	if err := os.Chtimes(path, soon, soon); err != nil {
		t.Fatal(err)
	}
	if v := version(); v == "" {
		t.Error("a file from the future is read again and again")
	}
	big := put(t, dir, "memory/big.md", strings.Repeat("x", maxMemory+1))
	if got := listed(t, dir); !strings.Contains(got, fmt.Sprintf("memory/big.md has 4.0 MB and is not searched; split it into files of at most %d MB", maxMemory>>20)) {
		t.Errorf("%s: %s", big, got)
	}
	put(t, dir, "memory/utf16.md", "\xff\xfeh\x00i\x00")
	put(t, dir, "memory/latin.md", "caf\xe9")
	for name, want := range map[string]string{"memory/utf16.md": "UTF-16", "memory/latin.md": "is not UTF-8: 1 bytes can't be read, and it is not searched; save it as UTF-8", "memory/big.md": "larger than 4 MB"} {
		if _, err := (Memories{}).Note(dir, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
