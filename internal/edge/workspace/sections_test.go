package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestSections(t *testing.T) {
	dir := t.TempDir()
	safety := put(t, dir, "safety.md", "\uFEFFbe\r\nkind\n")
	empty := put(t, dir, "empty.md", "\n")
	s := NewSections(map[string]string{"safety": safety, "silent": empty})
	first, err := s.Texts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if want := (SectionText{Text: "be\nkind", Source: safety}); len(first) != 2 || first["safety"] != want || first["silent"] != (SectionText{Source: empty}) {
		t.Errorf("%+v", first)
	}
	second, err := s.Texts(t.TempDir())
	if err != nil || unsafe.StringData(second["safety"].Text) != unsafe.StringData(first["safety"].Text) {
		t.Errorf("an unchanged file was read again: %v", err)
	}
	put(t, dir, "safety.md", "be kinder")
	if got, err := s.Texts(t.TempDir()); err != nil || got["safety"].Text != "be kinder" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := NewSections(nil).Texts(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A file that was written a moment ago may be written again without a new time
// stamp.
func TestFreshSectionIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "safety.md")
	s := NewSections(map[string]string{"safety": p})
	for _, text := range []string{"one", "two"} {
		put(t, dir, "safety.md", text)
		now := time.Now()
		if err := os.Chtimes(p, now, now); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Texts(t.TempDir()); err != nil || got["safety"].Text != text {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestBadSections(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ text, want string }{
		"none":   {"", "is missing; write it (an empty file leaves the section out), or remove the key"},
		"folder": {"", "is a folder, not a file; write a text file there, or remove the key"},
		"latin":  {"caf\xe9", "is not UTF-8; save it as UTF-8"},
		"zero":   {"a\x00b", "holds zero bytes and is no text; write a text file there"},
		"large":  {strings.Repeat("x", maxSectionBytes+1), "is larger than 64 KB; shorten it"},
	} {
		p := filepath.Join(dir, name)
		switch name {
		case "none":
		case "folder":
			if err := os.Mkdir(p, 0o700); err != nil {
				t.Fatal(err)
			}
		default:
			put(t, dir, name, tt.text)
		}
		texts, err := NewSections(map[string]string{"safety": p}).Texts(t.TempDir())
		if want := "context.sections.safety: " + p + " " + tt.want; err == nil || err.Error() != want || texts != nil {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// A section's file is known for the private file that it is, whatever it is
// called and wherever it lies.
func TestPrivateSections(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, sub := range []string{"memory/deep", "docs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "USER.md", "private")
	put(t, dir, "SOUL.md", "private, too")
	put(t, dir, "AGENTS.md", "public")
	put(t, dir, "memory/deep/note.md", "a note")
	linked := filepath.Join(elsewhere, "ws")
	for from, to := range map[string]string{
		filepath.Join(elsewhere, "soft"): filepath.Join(dir, "USER.md"), linked: dir,
		filepath.Join(dir, "docs", "mem"): filepath.Join(dir, "memory"),
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		filepath.Join(dir, "USER.md"):                       "USER.md",
		filepath.Join(linked, "SOUL.md"):                    "SOUL.md",
		filepath.Join(elsewhere, "soft"):                    "USER.md",
		filepath.Join(dir, "memory", "deep", "note.md"):     "memory/deep/note.md",
		filepath.Join(dir, "docs", "mem", "deep/note.md"):   "memory/deep/note.md",
		filepath.Join(dir, "AGENTS.md"):                     "",
		put(t, elsewhere, "USER.md", "somebody else's own"): "",
	}
	if only, known := onlyName(stat(t, filepath.Join(dir, "USER.md"))); known && only {
		for name, of := range map[string]string{"hard": "SOUL.md", "hardnote": "memory/deep/note.md"} {
			if err := os.Link(filepath.Join(dir, of), filepath.Join(elsewhere, name)); err != nil {
				t.Fatal(err)
			}
			want[filepath.Join(elsewhere, name)] = of
		}
	}
	for file, entry := range want {
		s := NewSections(map[string]string{"safety": file})
		for workspace, entry := range map[string]string{dir: entry, linked: entry, "": ""} {
			if got, err := s.Texts(workspace); err != nil || got["safety"].Entry != entry {
				t.Errorf("%s in %q: %q, %v; want %q", file, workspace, got["safety"].Entry, err, entry)
			}
		}
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
