package definitions_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/internal/core/definition"
	"goclaw/internal/edge/definitions"
)

// write makes a file with a time stamp that is old enough for the cache.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, path, time.Minute)
}

func age(t *testing.T, path string, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// found maps each file that is not built in to its scope.
func found(files []definitions.File) map[string]definitions.File {
	m := map[string]definitions.File{}
	for _, f := range files {
		if f.Scope != definitions.ScopeBuiltin {
			m[f.Path] = f
		}
	}
	return m
}

func TestScopes(t *testing.T) {
	home, ws := t.TempDir(), t.TempDir()
	want := map[string]string{
		filepath.Join(home, "a.md"):                         definitions.ScopeHome,
		filepath.Join(ws, ".goclaw/agents/a.md"):            definitions.ScopeWorkspace,
		filepath.Join(ws, ".goclaw/agents/more/b.md"):       definitions.ScopeWorkspace,
		filepath.Join(ws, ".claude/agents/a.md"):            definitions.ScopeClaude,
		filepath.Join(ws, ".opencode/agent/a.md"):           definitions.ScopeOpenCode,
		filepath.Join(ws, ".opencode/agents/core/dev/a.md"): definitions.ScopeOpenCode,
	}
	for path := range want {
		write(t, path, path)
	}
	for _, other := range []string{"README.md", ".hidden.md", "notes.txt", "x.md~", ".git/x.md"} {
		write(t, filepath.Join(ws, ".goclaw/agents", other), "not this")
	}
	s := definitions.New(definitions.Options{Home: home, Compat: true, Trusted: func(dir string) bool { return dir == ws }})
	files := s.List(ws)
	got := found(files)
	for path, scope := range want {
		if f := got[path]; f.Scope != scope || string(f.Data) != path || f.Problem != "" || !f.Trusted {
			t.Errorf("%s: %+v", path, f)
		}
	}
	if len(got) != len(want) || len(files) != len(want)+3 {
		t.Errorf("%d files: %v", len(files), got)
	}
	for i := 1; i < len(files); i++ {
		if files[i].Rank < files[i-1].Rank {
			t.Errorf("%s comes after %s", files[i].Path, files[i-1].Path)
		}
	}

	strict := definitions.New(definitions.Options{Home: home})
	if got := found(strict.List(ws)); len(got) != 3 || got[filepath.Join(ws, ".goclaw/agents/a.md")].Trusted || !got[filepath.Join(home, "a.md")].Trusted {
		t.Errorf("without compat: %v", got)
	}
	if got := found(strict.List("")); len(got) != 1 {
		t.Errorf("without a workspace: %v", got)
	}
	if got := found(definitions.New(definitions.Options{Home: filepath.Join(home, "none")}).List(filepath.Join(ws, "none"))); len(got) != 0 {
		t.Errorf("of folders that are not there: %v", got)
	}
}

func TestChangesAreSeen(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "a.md")
	write(t, path, "one")
	s := definitions.New(definitions.Options{Home: home})
	look := func() definitions.File { return found(s.List(""))[path] }
	first := look()
	if again := look(); again.Serial != first.Serial || string(again.Data) != "one" {
		t.Errorf("read again without a change: %+v", again)
	}

	write(t, path, "two") // of the same size; the time differs
	age(t, path, time.Hour)
	second := look()
	if string(second.Data) != "two" || second.Serial == first.Serial {
		t.Errorf("after a change: %+v", second)
	}

	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(home, "new")
	write(t, other, "six")
	if err := os.Chtimes(other, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil { // as editors do: time and size are the same
		t.Fatal(err)
	}
	if third := look(); string(third.Data) != "six" {
		t.Errorf("after a replacement: %+v", third)
	}

	if err := os.WriteFile(path, []byte("ten"), 0o600); err != nil { // just now: two such writes can't be told apart
		t.Fatal(err)
	}
	if fresh := look(); string(fresh.Data) != "ten" {
		t.Errorf("after a fresh write: %+v", fresh)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if gone := look(); gone.Path != "" {
		t.Errorf("after the removal: %+v", gone)
	}
}

func TestWhatIsNotRead(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret.md"), "secret")
	write(t, filepath.Join(home, "good.md"), "good")
	write(t, filepath.Join(home, "huge.md"), strings.Repeat("x", definitions.MaxFile+1))
	write(t, filepath.Join(home, "binary.md"), "\xff\x00")
	for name, target := range map[string]string{
		"out.md": filepath.Join(outside, "secret.md"), "nowhere.md": "none.md", "loop.md": "loop.md", "in.md": "good.md",
	} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "folder.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := found(definitions.New(definitions.Options{Home: home}).List(""))
	for name, want := range map[string]string{
		"good.md": "", "in.md": "", "binary.md": "", "huge.md": "it has 1048577 bytes", "out.md": "it can't be read: path escapes from parent",
		"nowhere.md": "it can't be read: no such file or directory", "loop.md": "it can't be read: too many levels of symbolic links",
	} {
		f, ok := got[filepath.Join(home, name)]
		if !ok || f.Problem != want || (want == "") != (f.Data != nil) || (want == "") != (f.Hint == "") {
			t.Errorf("%s: %v %+v", name, ok, f.Problem)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d files", len(got))
	}

	ws := t.TempDir()
	if err := os.Mkdir(filepath.Join(ws, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(ws, ".claude/agents")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(ws, ".goclaw/agents"), "a file")
	for path, f := range found(definitions.New(definitions.Options{Compat: true}).List(ws)) {
		if f.Problem == "" || f.Data != nil {
			t.Errorf("%s was read: %+v", path, f)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub/a.md"), "a")
	files, err := definitions.Find(dir)
	if err != nil || len(files) != 1 || files[0].Path != filepath.Join(dir, "sub/a.md") {
		t.Errorf("%v %+v", err, files)
	}
	files, err = definitions.Find(filepath.Join(dir, "sub/a.md"))
	if err != nil || len(files) != 1 || string(files[0].Data) != "a" {
		t.Errorf("%v %+v", err, files)
	}
	if _, err := definitions.Find(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestBuiltins(t *testing.T) {
	names := definitions.BuiltinNames()
	if strings.Join(names, " ") != "code-explorer planner research-assistant" {
		t.Errorf("%v", names)
	}
	for _, name := range names {
		data, ok := definitions.Builtin(name)
		if d := definition.Parse(name+".md", data, definition.Options{}); !ok || d.Status != definition.StatusOK || d.Name != name || len(d.Problems) > 0 {
			t.Errorf("%s: %s %+v", name, d.Status, d.Problems)
		}
	}
	if _, ok := definitions.Builtin("none"); ok {
		t.Error("there is none")
	}
}

// A stamp changes with every change that a List would find, once it has looked.
func TestStamp(t *testing.T) {
	home := t.TempDir()
	s := definitions.New(definitions.Options{Home: home})
	file := filepath.Join(home, "a.md")
	long := time.Now().Add(-time.Hour) // so that a change shows whatever the clock's grain
	if err := errors.Join(os.Mkdir(filepath.Join(home, "sub"), 0o700), os.Chtimes(filepath.Join(home, "sub"), long, long), os.Chtimes(home, long, long)); err != nil {
		t.Fatal(err)
	}
	s.List("")
	last := s.Stamp("")
	changes := func(what string, change func() error) {
		t.Helper()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now := s.Stamp("")
		if now == last {
			t.Errorf("%s: nothing has changed", what)
		}
		s.List("")
		last = s.Stamp("")
		if again := s.Stamp(""); again != last {
			t.Errorf("%s: it changes by itself", what)
		}
	}
	changes("a new file", func() error { return os.WriteFile(file, []byte("x"), 0o600) })
	changes("another text", func() error { return os.WriteFile(file, []byte("xy"), 0o600) })
	changes("another time", func() error { return os.Chtimes(file, time.Now(), time.Now().Add(time.Hour)) })
	changes("a file in an empty folder", func() error { return os.WriteFile(filepath.Join(home, "sub", "b.md"), []byte("x"), 0o600) })
	changes("no file", func() error { return os.Remove(file) })
}
