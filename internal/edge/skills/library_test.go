//go:build unix

package skills_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"goclaw/internal/edge/skills"
)

// world is a home with a workspace beside it.
type world struct {
	t       testing.TB
	base    string
	home    string
	ws      string
	extra   string
	trusted bool
	lib     *skills.Library
}

func newWorld(t testing.TB) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, base: base, home: filepath.Join(base, "home"), ws: filepath.Join(base, "ws"), extra: filepath.Join(base, "extra"), trusted: true}
	for _, dir := range []string{w.home, w.ws, w.extra} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.age("extra", time.Hour)
	w.lib = skills.New(skills.Options{
		Home: w.home, Extra: []string{w.extra},
		Trusted: func(string) (bool, error) { return w.trusted, nil },
	})
	return w
}

// put writes a file that is old enough to be remembered.
func (w *world) put(rel, text string) {
	w.t.Helper()
	p := filepath.Join(w.base, rel)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.age(rel, time.Hour)
}

// age makes a file and the folders around it as old as they would be.
func (w *world) age(rel string, by time.Duration) {
	w.t.Helper()
	then := time.Now().Add(-by)
	for p := filepath.Join(w.base, rel); len(p) > len(w.base); p = filepath.Dir(p) {
		if err := os.Chtimes(p, then, then); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) link(target, rel string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.base, rel)); err != nil {
		w.t.Fatal(err)
	}
}

// found are the files but the bundled ones: where they are, and what is wrong.
func (w *world) found() (lines []string) {
	w.t.Helper()
	t := w.lib.Scan(w.ws)
	for _, f := range t.Files {
		if f.Scope == skills.Bundled {
			continue
		}
		line := fmt.Sprintf("%s %d %s", f.Scope, f.Rank, strings.TrimPrefix(f.Location, w.base+"/"))
		if f.Untrusted {
			line += " untrusted"
		}
		if f.Refused != "" {
			line += ": " + strings.ReplaceAll(f.Refused, w.base, "")
		} else {
			line += " = " + string(f.Data)
		}
		lines = append(lines, line)
	}
	for _, warning := range t.Warnings {
		lines = append(lines, "! "+strings.ReplaceAll(warning, w.base, ""))
	}
	return lines
}

func (w *world) finds(want ...string) {
	w.t.Helper()
	if got := w.found(); !slices.Equal(got, want) {
		w.t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestScopes(t *testing.T) {
	w := newWorld(t)
	w.finds()
	w.put("home/skills/a/SKILL.md", "home a")
	w.put("extra/a/SKILL.md", "extra a")
	w.put("extra/b/skill.md", "extra b")
	w.put("extra/.git/SKILL.md", "no")
	w.put("extra/_parts/x", "no")
	w.put("extra/README.md", "no")
	w.put("ws/skills/c/SKILL.md", "ws c")
	w.finds("home 1 home/skills/a/SKILL.md = home a", "extra 2 extra/a/SKILL.md = extra a",
		"extra 2 extra/b/skill.md = extra b", "workspace 3 skills/c/SKILL.md = ws c")
	w.trusted = false
	w.finds("home 1 home/skills/a/SKILL.md = home a", "extra 2 extra/a/SKILL.md = extra a",
		"extra 2 extra/b/skill.md = extra b", "workspace 3 skills/c/SKILL.md untrusted = ws c")
	if got := w.lib.Scan(w.ws).Workspace; got != w.ws {
		t.Errorf("the untrusted workspace is %q", got)
	}
	if err := os.RemoveAll(w.extra); err != nil {
		t.Fatal(err)
	}
	w.finds("home 1 home/skills/a/SKILL.md = home a", "workspace 3 skills/c/SKILL.md untrusted = ws c",
		"! skills in /extra: the folder can't be read: no such file or directory; mend skills.extraDirs, or the folder")
}

// TestOddities: what is no plain file is told, and nothing hangs.
func TestOddities(t *testing.T) {
	w := newWorld(t)
	w.put("secret/SKILL.md", "SECRET")
	w.put("extra/good/SKILL.md", "good")
	w.put("extra/good/README.md", "readme")
	w.put("extra/empty/notes.txt", "x")
	w.put("extra/folder/SKILL.md/x", "x")
	w.put("extra/huge/SKILL.md", strings.Repeat("x", 1<<20+1))
	w.put("extra/inner/x", "x")
	w.put("extra/SKILL.md", "x")
	w.put("extra/out/x", "x")
	w.put("extra/pipe/x", "x")
	w.link("../../secret/SKILL.md", "extra/out/SKILL.md")
	w.link("../secret", "extra/outlink")
	w.link("good", "extra/twin")
	w.link("nowhere", "extra/dangling")
	w.link("SKILL.md", "extra/tofile")
	w.link("x", "extra/inner/SKILL.md")
	if err := syscall.Mkfifo(filepath.Join(w.extra, "pipe", "SKILL.md"), 0o644); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	w.link("../secret", "ws/skills")
	want := []string{
		"extra 2 extra/dangling/SKILL.md: is a link that leads to no SKILL.md",
		"extra 2 extra/empty/SKILL.md: the folder holds no SKILL.md",
		"extra 2 extra/folder/SKILL.md: is a folder, not a file; it was not read",
		"extra 2 extra/good/SKILL.md = good",
		"extra 2 extra/huge/SKILL.md: is larger than 1 MB; it was not read",
		"extra 2 extra/inner/SKILL.md = x",
		"extra 2 extra/out/SKILL.md: is a link out of the folder of skills; it was not followed",
		"extra 2 extra/outlink/SKILL.md: is a link out of the folder of skills; it was not followed",
		"extra 2 extra/pipe/SKILL.md: is a pipe, not a file; it was not read",
		"extra 2 extra/tofile/SKILL.md: is a link to a file, not to a folder",
		"extra 2 extra/good/SKILL.md: is a link to good, which is listed itself",
		"! skills in /extra: SKILL.md lies directly in it; put it into a folder with the skill's name",
		"! skills in /ws/skills: is a link, which is not followed; make it a folder, or name its target in skills.extraDirs",
	}
	w.finds(want...)
	w.finds(want...)
	if os.Geteuid() != 0 {
		w.put("extra/locked/SKILL.md", "x")
		if err := os.Chmod(filepath.Join(w.extra, "locked", "SKILL.md"), 0); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.found(), "\n"); !strings.Contains(got, "locked/SKILL.md: can't be read: permission denied") {
			t.Error(got)
		}
	}
}

func TestUnchangedCostsNoRead(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.put(fmt.Sprintf("ws/skills/s%02d/SKILL.md", i), "x")
	}
	w.put("home/skills/h/SKILL.md", "h")
	first, reads := w.lib.Scan(w.ws), w.lib.Reads()
	if again := w.lib.Scan(w.ws); again != first || w.lib.Reads() != reads {
		t.Errorf("%d more reads, the same tree: %v", w.lib.Reads()-reads, again == first)
	}
	w.put("ws/skills/s03/SKILL.md", "y")
	w.age("ws/skills/s03/SKILL.md", 2*time.Hour)
	for name, change := range map[string]func(){
		"a file's time": func() { w.age("home/skills/h/SKILL.md", 3*time.Hour) },
		"a file's size": func() { w.put("home/skills/h/SKILL.md", "longer") },
		"another file of the same size and time": func() {
			w.put("new", "LONGER")
			if err := os.Rename(filepath.Join(w.base, "new"), filepath.Join(w.home, "skills", "h", "SKILL.md")); err != nil {
				t.Fatal(err)
			}
		},
		"a new folder": func() { w.put("home/skills/i/SKILL.md", "i"); w.age("home/skills", 4*time.Hour) },
		"a folder less": func() {
			if err := os.RemoveAll(filepath.Join(w.ws, "skills", "s04")); err != nil {
				t.Fatal(err)
			}
			w.age("ws/skills", 5*time.Hour)
		},
	} {
		before := w.lib.Scan(w.ws)
		change()
		after := w.lib.Scan(w.ws)
		if before == after {
			t.Errorf("%s: not seen", name)
		}
		if again := w.lib.Scan(w.ws); again != after {
			t.Errorf("%s: seen twice", name)
		}
	}
	w.trusted = false
	if w.lib.Scan(w.ws) == w.lib.Scan(w.ws+"/../ws") || w.lib.Scan(w.ws).Workspace != w.ws {
		t.Error("the loss of trust was not seen")
	}
}

func TestFolderThatHoldsTheHome(t *testing.T) {
	w := newWorld(t)
	lib := skills.New(skills.Options{Home: w.home, Extra: []string{filepath.Dir(w.base)}, Trusted: func(string) (bool, error) { return true, nil }})
	w.put("SKILL.md", "x")
	var seen []string
	for _, f := range lib.Scan(w.ws).Files {
		if f.Folder == filepath.Base(w.base) {
			seen = append(seen, f.Refused)
		}
	}
	if len(seen) != 1 || !strings.HasPrefix(seen[0], "its folder holds ") {
		t.Errorf("%q", seen)
	}
}

func TestBundled(t *testing.T) {
	w := newWorld(t)
	tree := w.lib.Scan(w.ws)
	if len(tree.Files) == 0 {
		t.Fatal("nothing is bundled")
	}
	for _, f := range tree.Files {
		shelf, ok := tree.Shelf(f, w.ws)
		if !ok || shelf.Dir != "" || !strings.HasPrefix(f.Location, shelf.Prefix) {
			t.Fatalf("%+v, %v", shelf, ok)
		}
		data, err := fs.ReadFile(shelf.FS, strings.TrimPrefix(f.Location, shelf.Prefix))
		if err != nil || string(data) != string(f.Data) {
			t.Error(err)
		}
	}
}

// TestShelfHasNoWayOut tries random paths, through all sorts of links.
func TestShelfHasNoWayOut(t *testing.T) {
	w := newWorld(t)
	w.put("home/goclaw.db", "SECRET")
	w.put("home/skills/other/SKILL.md", "SECRET")
	w.put("home/skills/a/SKILL.md", "open")
	w.put("home/skills/a/sub/more.md", "open")
	w.link("../../goclaw.db", "home/skills/a/db")
	w.link("../..", "home/skills/a/up")
	w.link("../other", "home/skills/a/side")
	w.link(w.home, "home/skills/a/abs")
	w.link("sub", "home/skills/a/in")
	w.link("../../../..", "home/skills/a/sub/far")
	tree := w.lib.Scan(w.ws)
	at := slices.IndexFunc(tree.Files, func(f skills.File) bool { return f.Folder == "a" })
	shelf, ok := tree.Shelf(tree.Files[at], w.ws)
	if !ok || shelf.Dir != filepath.Join(w.home, "skills", "a") || shelf.Prefix != shelf.Dir+"/" {
		t.Fatalf("%+v, %v", shelf, ok)
	}
	if data, err := fs.ReadFile(shelf.FS, "in/more.md"); err != nil || string(data) != "open" {
		t.Errorf("%q, %v", data, err)
	}
	parts := []string{"..", ".", "a", "sub", "up", "abs", "side", "db", "in", "far", "SKILL.md", "more.md", "goclaw.db", "home", "skills", "other", "", w.base}
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 6).Draw(t, "parts"), "/")
		}), 20, 20).Draw(t, "paths")
		for _, p := range names {
			names = append(names, path.Clean(p))
		}
		for _, p := range names {
			data, err := fs.ReadFile(shelf.FS, p)
			if err == nil {
				read++
			}
			if strings.Contains(string(data), "SECRET") {
				t.Fatalf("%s leads out", p)
			}
			if entries, err := fs.ReadDir(shelf.FS, p); err == nil {
				for _, e := range entries {
					if e.Name() == "goclaw.db" || e.Name() == "other" {
						t.Fatalf("%s lists %s", p, e.Name())
					}
				}
			}
		}
	})
	if read == 0 {
		t.Error("nothing was ever read: the test shows nothing")
	}
	// Someone swaps the folder for a link: it leads nowhere.
	if err := os.RemoveAll(shelf.Dir); err != nil {
		t.Fatal(err)
	}
	w.link("../..", "home/skills/a")
	if _, err := fs.ReadFile(shelf.FS, "home/goclaw.db"); err == nil || errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a swapped folder: %v", err)
	}
	if shelf, ok := tree.Shelf(tree.Files[at], w.home); ok {
		t.Errorf("in the workspace there is no need of a shelf: %+v", shelf)
	}
}

func Example() {
	lib := skills.New(skills.Options{Home: "/nonexistent", Trusted: func(string) (bool, error) { return true, nil }})
	for _, f := range lib.Scan("/nonexistent/workspace").Files {
		fmt.Println(f.Scope, f.Location)
	}
	// Output:
	// bundled goclaw://skills/goclaw/SKILL.md
}

func BenchmarkScan(b *testing.B) {
	w := newWorld(b)
	for i := range 100 {
		w.put(fmt.Sprintf("ws/skills/s%03d/SKILL.md", i), "x")
	}
	w.lib.Scan(w.ws)
	for b.Loop() {
		w.lib.Scan(w.ws)
	}
}
