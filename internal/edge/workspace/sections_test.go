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
	first, err := s.Texts()
	if err != nil {
		t.Fatal(err)
	}
	if want := (SectionText{"be\nkind", safety}); len(first) != 2 || first["safety"] != want || first["silent"] != (SectionText{"", empty}) {
		t.Errorf("%+v", first)
	}
	second, err := s.Texts()
	if err != nil || unsafe.StringData(second["safety"].Text) != unsafe.StringData(first["safety"].Text) {
		t.Errorf("an unchanged file was read again: %v", err)
	}
	put(t, dir, "safety.md", "be kinder")
	if got, err := s.Texts(); err != nil || got["safety"].Text != "be kinder" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := NewSections(nil).Texts(); err != nil || len(got) != 0 {
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
		if got, err := s.Texts(); err != nil || got["safety"].Text != text {
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
		texts, err := NewSections(map[string]string{"safety": p}).Texts()
		if want := "context.sections.safety: " + p + " " + tt.want; err == nil || err.Error() != want || texts != nil {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
