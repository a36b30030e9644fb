//go:build unix

package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/edge/tool/file"
)

// library is a desk whose workspace lies in a home that nobody may see, but for
// one shelf of it. A second shelf is in the program.
func library(t testing.TB) (d *desk, shelf string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shelf = filepath.Join(home, "skills", "tides")
	var root *os.Root // of the shelf, opened below
	d = newDesk(t, file.Options{
		Home: home,
		Shelves: func(p goclaw.Profile) []goclaw.Shelf {
			if p.Skills != nil && !slices.Contains(p.Skills, "tides") {
				return nil
			}
			return []goclaw.Shelf{
				{Prefix: shelf + "/", FS: root.FS(), Dir: shelf},
				{Prefix: "goclaw://skills/inner/", FS: fstest.MapFS{"SKILL.md": {Data: []byte("inner\nlow tide")}, "a/b.md": {Data: []byte("b")}}},
			}
		},
	})
	d.ws = filepath.Join(home, "workspace")
	for _, dir := range []string{d.ws, filepath.Join(shelf, "scripts"), filepath.Join(home, "skills", "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for p, text := range map[string]string{
		filepath.Join(home, "goclaw.db"):                   "SECRET",
		filepath.Join(home, "skills", "other", "SKILL.md"): "SECRET",
		filepath.Join(shelf, "SKILL.md"):                   "high tide\nlow tide\n",
		filepath.Join(shelf, "scripts", "tides.sh"):        "echo tide",
		filepath.Join(d.ws, "MEMORY.md"):                   "SECRET of the main agent",
		filepath.Join(d.ws, "plan.md"):                     "tide",
	} {
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"up": "../..", "db": "../../goclaw.db", "abs": home, "in": "scripts", "ws": d.ws} {
		if err := os.Symlink(target, filepath.Join(shelf, link)); err != nil {
			t.Fatal(err)
		}
	}
	if root, err = os.OpenRoot(shelf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return d, shelf
}

func TestShelves(t *testing.T) {
	d, shelf := library(t)
	expect(t, "read", d.ok("read", args{"path": shelf + "/SKILL.md"}), "1\thigh tide\n2\tlow tide")
	expect(t, "part", d.ok("read", args{"path": shelf + "/scripts/../SKILL.md", "offset": 2}), "2\tlow tide")
	expect(t, "bundled", d.ok("read", args{"path": "goclaw://skills/inner/SKILL.md", "limit": 1}), "1\tinner\n[lines 1-1 of 2; read on with offset 2]")
	expect(t, "ls", d.ok("ls", args{"path": shelf}), "SKILL.md 19\nabs@\ndb@\nin@\nscripts/\nup@\nws@")
	expect(t, "ls bundled", d.ok("ls", args{"path": "goclaw://skills/inner"}), "SKILL.md 14\na/")
	expect(t, "glob", d.ok("glob", args{"pattern": "**/*.sh", "path": shelf}), shelf+"/scripts/tides.sh")
	expect(t, "glob bundled", d.ok("glob", args{"pattern": "goclaw://skills/inner/**/*.md", "path": "x"}), "goclaw://skills/inner/SKILL.md\ngoclaw://skills/inner/a/b.md")
	expect(t, "grep", d.ok("grep", args{"pattern": "low", "path": shelf}), shelf+"/SKILL.md:2: low tide")
	expect(t, "grep a file", d.ok("grep", args{"pattern": "tide", "path": "goclaw://skills/inner/SKILL.md", "glob": "*.go"}), "goclaw://skills/inner/SKILL.md:2: low tide")
	expect(t, "grep in the workspace", d.ok("grep", args{"pattern": "^tide"}), "plan.md:1: tide")

	d.fails("read", args{"path": shelf}, "is a folder; use ls")
	d.fails("read", args{"path": shelf + "/none"}, "no such file; ls "+shelf+"/ shows")
	d.fails("ls", args{"path": shelf + "/SKILL.md"}, "is a file; use read")
	d.fails("read", args{"path": shelf + "/../other/SKILL.md"}, "outside the workspace")
	d.fails("read", args{"path": shelf + "/../../goclaw.db"}, "outside the workspace")
	d.fails("read", args{"path": shelf + "/db"}, "escapes")
	d.fails("ls", args{"path": filepath.Dir(shelf)}, "outside the workspace")
	for _, path := range []string{shelf + "/SKILL.md", shelf + "/new.md", "goclaw://skills/inner/SKILL.md"} {
		d.fails("write", args{"path": path, "content": "x"}, "can only be read")
		d.fails("edit", args{"path": path, "old": "low", "new": "high"}, "copy its folder into skills/")
	}
	d.fails("write", args{"path": "goclaw://x/y", "content": "x"}, "is part of GoClaw")
	if _, err := os.Stat(filepath.Join(d.ws, "goclaw:")); err == nil {
		t.Error("a folder was made for a path of the program")
	}
}

// A run has only the shelves of the skills that its profile names.
func TestShelvesOfAProfile(t *testing.T) {
	d, shelf := library(t)
	d.skills = []string{}
	d.fails("read", args{"path": shelf + "/SKILL.md"}, "outside the workspace")
	d.fails("read", args{"path": "goclaw://skills/inner/SKILL.md"}, "no such file in the workspace")
	d.skills, d.strict = []string{"tides"}, true
	expect(t, "named", d.ok("read", args{"path": shelf + "/SKILL.md", "limit": 1}), "1\thigh tide\n[lines 1-1 of 2; read on with offset 2]")
	d.fails("read", args{"path": shelf + "/ws/MEMORY.md"}, "escapes")
}

// TestShelvesHaveNoWayOut has a worker try random paths from a shelf.
func TestShelvesHaveNoWayOut(t *testing.T) {
	d, shelf := library(t)
	d.strict = true
	parts := []string{"..", ".", "", "up", "db", "abs", "in", "ws", "scripts", "SKILL.md", "goclaw.db", "MEMORY.md", "workspace", "skills", "other", "tides", "tides.sh"}
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 3 {
			p := rapid.SampledFrom([]string{shelf, "goclaw://skills/inner", "goclaw://skills/inner/" + shelf}).Draw(t, "start") +
				"/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 6).Draw(t, "parts"), "/")
			for name, a := range map[string]args{
				"read": {"path": p}, "ls": {"path": p}, "grep": {"path": p, "pattern": "."}, "glob": {"path": p, "pattern": "**"},
				"write": {"path": p, "content": "x"},
			} {
				res := d.call(d.t.Context(), name, a)
				if strings.Contains(res.Content, "SECRET") || name == "ls" && !res.IsError && strings.Contains(res.Content, "goclaw.db") {
					t.Fatalf("%s %s: %s", name, p, res.Content)
				}
				if name == "read" && !res.IsError {
					read++
				}
			}
		}
	})
	if read == 0 {
		t.Error("nothing was ever read: the test shows nothing")
	}
	_ = filepath.WalkDir(filepath.Dir(filepath.Dir(shelf)), func(p string, e fs.DirEntry, err error) error {
		own := strings.HasPrefix(p, d.ws+"/") && e.Name() != "MEMORY.md" // a path from a shelf may lead there
		if data, _ := os.ReadFile(p); string(data) == "x" && !own {
			t.Errorf("%s was written", p)
		}
		return err
	})
}
