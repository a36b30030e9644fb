package slice_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/tool"
	"goclaw/internal/edge/tool/slice"
)

func workspace(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var worker = goclaw.Access{Strict: true}

func read(dir string, access goclaw.Access, want ...slice.Want) ([]slice.Found, error) {
	return slice.Reader{}.Read(context.Background(), dir, access, want)
}

func TestRead(t *testing.T) {
	dir := workspace(t, map[string]string{
		"a.md": "\ufeffeins", "src/b.go": "b", "src/a.go": "a", "src/sub/c.go": "c", "src/d.txt": "d", ".git/x.go": "no", "empty": "",
	})
	got, err := read(dir, worker,
		slice.Want{Name: "go", Glob: "src/**/*.go"}, slice.Want{Name: "one", File: "./a.md"},
		slice.Want{Name: "gone", File: "gone.md", Optional: true}, slice.Want{Name: "none", Glob: "nowhere/*.md", Optional: true},
		slice.Want{Name: "empty", File: "empty"}, slice.Want{Name: "all", Glob: "**/*.go", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []slice.Found{
		{"src/a.go", "a", 1}, {"src/b.go", "b", 1}, {"src/sub/c.go", "c", 1}, {"a.md", "eins", 4}, {"empty", "", 0},
		{"src/a.go", "a", 1}, {"src/b.go", "b", 1}, {"src/sub/c.go", "c", 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRefusals(t *testing.T) {
	files := map[string]string{
		"nul": "a\x00b", "latin": "caf\xe9", "big": strings.Repeat("x", slice.MaxFile+1), "dir/x": "x",
		"SOUL.md": "canary", "memory/a.md": "canary", "MEMORY.md": "canary",
	}
	for i := range slice.MaxFiles + 1 {
		files[fmt.Sprintf("many/%03d.md", i)] = "x"
	}
	dir := workspace(t, files)
	for link, target := range map[string]string{"link.md": "SOUL.md", "out.md": filepath.Join(t.TempDir(), "x"), "mem": "memory"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "SOUL.md"), filepath.Join(dir, "hard.md")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want slice.Want
		is   error
		says string
	}{
		{slice.Want{File: "gone.md"}, fs.ErrNotExist, "slice s: gone.md: no such file"},
		{slice.Want{File: "nul/gone.md"}, fs.ErrNotExist, "no such file"},
		{slice.Want{Glob: "*.none"}, fs.ErrNotExist, "slice s: *.none: no file matches"},
		{slice.Want{Glob: "gone/*"}, fs.ErrNotExist, "no file matches"},
		{slice.Want{File: "nul"}, nil, "nul: binary"},
		{slice.Want{File: "latin"}, nil, "latin: not UTF-8"},
		{slice.Want{File: "big"}, nil, "big: 1048577 bytes"},
		{slice.Want{File: "dir/x", Limit: 0}, nil, ""},
		{slice.Want{File: "latin", Limit: 2}, nil, "may have 2"},
		{slice.Want{File: "dir"}, nil, "dir: is a folder"},
		{slice.Want{File: "."}, nil, "is a folder"},
		{slice.Want{Glob: "many/*.md"}, nil, "more than 200"},
		{slice.Want{Glob: "[a"}, nil, "not a glob"},
		{slice.Want{File: "SOUL.md"}, tool.ErrPrivate, "SOUL.md"},
		{slice.Want{File: "soul.MD", Optional: true}, tool.ErrPrivate, ""},
		{slice.Want{File: "dir/../memory/a.md"}, tool.ErrPrivate, ""},
		{slice.Want{File: "link.md"}, tool.ErrPrivate, "link.md"},
		{slice.Want{File: "hard.md"}, tool.ErrPrivate, "hard.md"},
		{slice.Want{File: "mem/a.md"}, tool.ErrPrivate, ""},
		{slice.Want{Glob: "memory/*.md"}, tool.ErrPrivate, ""},
		{slice.Want{Glob: "S*.md"}, tool.ErrPrivate, "no file matches that this worker may see"},
		{slice.Want{File: "../x"}, tool.ErrOutside, ""},
		{slice.Want{File: "out.md"}, tool.ErrOutside, ""},
		{slice.Want{Glob: "../*"}, tool.ErrOutside, ""},
		{slice.Want{File: "/etc/passwd"}, tool.ErrOutside, ""},
	} {
		c.want.Name = "s"
		got, err := read(dir, worker, c.want)
		if c.says == "" && c.is == nil {
			if err != nil {
				t.Errorf("%+v: %v", c.want, err)
			}
			continue
		}
		if err == nil || len(got) > 0 || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%+v: %v, error %v", c.want, got, err)
		}
		c.want.Lenient = true
		if got, err := read(dir, worker, c.want); c.want.File != "" && (err != nil || len(got) > 0) {
			t.Errorf("lenient %+v: %v, error %v", c.want, got, err)
		}
	}
}

// A glob never brings what a worker may not see, and the main agent sees it.
func TestGlobPassesPrivateFilesOver(t *testing.T) {
	dir := workspace(t, map[string]string{"SOUL.md": "canary", "memory/a.md": "canary", "AGENTS.md": "rules", "x/USER.md": "public"})
	got, err := read(dir, worker, slice.Want{Name: "all", Glob: "**/*.md"})
	if err != nil || strings.Contains(fmt.Sprint(got), "canary") || len(got) != 2 {
		t.Errorf("%v, error %v", got, err)
	}
	if got, err := read(dir, goclaw.Access{}, slice.Want{Name: "all", Glob: "**/*.md"}); err != nil || len(got) != 4 {
		t.Errorf("the main agent: %v, error %v", got, err)
	}
	named := goclaw.Access{Strict: true, Named: []string{"SOUL.md"}}
	if got, err := read(dir, named, slice.Want{Name: "soul", File: "SOUL.md"}); err != nil || len(got) != 1 {
		t.Errorf("named: %v, error %v", got, err)
	}
}

func TestTotalAndCancel(t *testing.T) {
	files := map[string]string{}
	for i := range 9 {
		files[fmt.Sprintf("%d.md", i)] = strings.Repeat("x", 1<<20)
	}
	dir := workspace(t, files)
	if _, err := read(dir, worker, slice.Want{Name: "all", Glob: "*.md"}); err == nil || !strings.Contains(err.Error(), "name fewer files") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	cancel(stop)
	for _, w := range []slice.Want{{File: "1.md", Lenient: true}, {Glob: "*.md", Optional: true}} {
		if _, err := (slice.Reader{}).Read(ctx, dir, worker, []slice.Want{w}); !errors.Is(err, stop) {
			t.Errorf("cancelled: %v", err)
		}
	}
}
