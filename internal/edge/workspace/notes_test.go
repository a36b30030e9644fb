package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const noteDay = "2026-11-21"

func notes(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "memory", noteDay+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRemember(t *testing.T) {
	for before, want := range map[string]string{
		"":           "<!-- run 7 -->\nthe port is 8080\n\n<!-- run 8 -->\nand 9090\n",
		"mine":       "mine\n\n<!-- run 7 -->\nthe port is 8080\n\n<!-- run 8 -->\nand 9090\n",
		"mine\n":     "mine\n\n<!-- run 7 -->\nthe port is 8080\n\n<!-- run 8 -->\nand 9090\n",
		"mine\n\n":   "mine\n\n<!-- run 7 -->\nthe port is 8080\n\n<!-- run 8 -->\nand 9090\n",
		"mine\r\n":   "mine\r\n\n<!-- run 7 -->\nthe port is 8080\n\n<!-- run 8 -->\nand 9090\n",
		"\uFEFFmine": "\uFEFFmine\n\n<!-- run 7 -->\nthe port is 8080\n\n<!-- run 8 -->\nand 9090\n",
	} {
		dir := t.TempDir()
		if before != "" {
			put(t, dir, "memory/"+noteDay+".md", before)
		}
		for _, n := range []struct{ mark, text string }{{"run 7", "the port is 8080\n\n"}, {"run 7", "something else"}, {"run 8", "\r\nand 9090"}, {"run 7", "x"}} {
			if err := (Notes{}).Remember(dir, noteDay, n.mark, n.text); err != nil {
				t.Fatal(err)
			}
		}
		if got := notes(t, dir); got != want {
			t.Errorf("after %q: %q", before, got)
		}
		for path, mode := range map[string]os.FileMode{"memory": 0o700, "memory/" + noteDay + ".md": 0o600} {
			if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
}

func TestRememberTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			text := fmt.Sprintf("begin %d %s end %d", i, strings.Repeat("x", 5000), i)
			if err := (Notes{}).Remember(dir, noteDay, fmt.Sprint("run ", i), text); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := notes(t, dir)
	for i := range 16 {
		if want := fmt.Sprintf("<!-- run %d -->\nbegin %d %s end %d\n", i, i, strings.Repeat("x", 5000), i); strings.Count(got, want) != 1 {
			t.Errorf("the note of run %d is not whole", i)
		}
	}
}

func TestRememberRefuses(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, "target.md", "theirs")
	day := "memory/" + noteDay + ".md"
	link := func(target, name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Skip(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		prepare         func(t *testing.T, dir string)
		day, mark, want string
	}{
		"a link outside":     {link(filepath.Join(outside, "target.md"), day), noteDay, "m", "it is a link, not a file"},
		"a link inside":      {link("../SOUL.md", day), noteDay, "m", "it is a link, not a file"},
		"a dangling link":    {link("none", day), noteDay, "m", "it is a link, not a file"},
		"a linked folder":    {link(outside, "memory"), noteDay, "m", "memory is a link, not a folder"},
		"no folder":          {func(t *testing.T, dir string) { put(t, dir, "memory", "x") }, noteDay, "m", "not a folder"},
		"no file":            {func(t *testing.T, dir string) { put(t, dir, day+"/x", "x") }, noteDay, "m", "it is a folder, not a file"},
		"no UTF-8":           {func(t *testing.T, dir string) { put(t, dir, day, "caf\xe9") }, noteDay, "m", "it is not UTF-8"},
		"too long":           {func(t *testing.T, dir string) { put(t, dir, day, strings.Repeat("x", maxNoteBytes)) }, noteDay, "m", "larger than 8 MB"},
		"no day":             {nil, "../../x", "m", "the day must be written as 2006-01-02"},
		"no mark":            {nil, noteDay, "", "can't be a mark"},
		"a mark of lines":    {nil, noteDay, "a\nb", "can't be a mark"},
		"a mark that closes": {nil, noteDay, "a -- b", "can't be a mark"},
		"another name": {func(t *testing.T, dir string) {
			p := put(t, dir, day, "x")
			if err := os.Link(p, filepath.Join(dir, "docs.md")); err != nil {
				t.Skip(err)
			}
		}, noteDay, "m", "one file under several names"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.prepare != nil {
				tt.prepare(t, dir)
			}
			err := (Notes{}).Remember(dir, tt.day, tt.mark, "private")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "remember in memory/"+tt.day+".md of "+dir+": ") {
				t.Errorf("got %v", err)
			}
		})
	}
	if text, err := os.ReadFile(filepath.Join(outside, "target.md")); err != nil || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := (Notes{}).Remember(filepath.Join(outside, "none"), noteDay, "m", "x"); err == nil {
		t.Error("there is no workspace")
	}
}
