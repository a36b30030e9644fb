//go:build unix

package tool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/edge/tool"
)

const (
	privateCanary = "CANARY-OF-THE-MAIN-AGENT"
	homeCanary    = "CANARY-OF-THE-HOME"
)

// privateFiles hold privateCanary.
var privateFiles = []string{
	"SOUL.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md",
	"memory/2026-01-01.md", "memory/deep/er.md", ".git/objects/ab/cdef", ".git/config",
	".goclaw/output/other/exec.txt",
}

// world builds a workspace full of private files and of ways to them, with a
// GOCLAW_HOME inside it.
func world(t testing.TB) (ws, home string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws = filepath.Join(base, "ws")
	home = filepath.Join(ws, "state")
	put := func(rel, content string) {
		p := filepath.Join(ws, rel)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range privateFiles {
		put(p, privateCanary)
	}
	put("state/goclaw.db", homeCanary)
	put("state/agents/x.md", homeCanary)
	put("README.md", "public")
	put("src/main.go", "public")
	put("src/SOUL.md", "public: only the one at the root is private")
	put(".goclaw/output/mine/exec.txt", "public")
	if err := os.WriteFile(filepath.Join(base, "outside.txt"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"to-soul": "SOUL.md", "to-memory": "memory", "to-git": ".git", "to-home": "state",
		"src/up": "..", "src/abs": ws, "src/soul": "../SOUL.md", "to-outside": "../outside.txt",
		"to-root": "/", "chain": "to-soul", "loop": "loop", "to-missing": "IDENTITY.md.bak",
	} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{
		"hard-soul": "SOUL.md", "src/hard-memory": "memory/deep/er.md",
		"src/hard-git": ".git/objects/ab/cdef", "hard-db": "state/goclaw.db",
		"src/hard-output": ".goclaw/output/other/exec.txt",
	} {
		if err := os.Link(filepath.Join(ws, file), filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	return ws, home
}

func open(t testing.TB, s tool.Scope) *tool.Reach {
	t.Helper()
	r, err := tool.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// readThrough reads a file as the tools do.
func readThrough(r *tool.Reach, p string) (string, error) {
	rel, err := r.Resolve(p)
	if err != nil {
		return "", err
	}
	dir, err := r.Dir(path.Dir(rel))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, _, err := dir.OpenFile(path.Base(rel))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func TestReachOfWorkers(t *testing.T) {
	ws, home := world(t)
	r := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true, Run: "mine"}})
	tests := []struct {
		path string
		want error // nil: it is in reach
	}{
		{"README.md", nil},
		{ws + "/README.md", nil},
		{"src/../README.md", nil},
		{"src/up/README.md", nil},
		{"src/abs/README.md", nil},
		{"src/SOUL.md", nil},
		{"new/file.txt", nil},
		{"", nil},
		{".", nil},
		{ws, nil},
		{".goclaw/output/mine/exec.txt", nil},
		{"SOUL.md.bak", nil},
		{"memories.md", nil},

		{"SOUL.md", tool.ErrPrivate},
		{"./SOUL.md", tool.ErrPrivate},
		{"src/../SOUL.md", tool.ErrPrivate},
		{ws + "/SOUL.md", tool.ErrPrivate},
		{"soul.MD", tool.ErrPrivate},
		{"SOUL.md.", tool.ErrPrivate},
		{"SOUL.md ", tool.ErrPrivate},
		{"SOUL.md::$DATA", tool.ErrPrivate},
		{"SO\u200cUL.md", tool.ErrPrivate},
		{"ＳＯＵＬ.md", tool.ErrPrivate},
		{"\u017foul.md", tool.ErrPrivate},
		{"memory", tool.ErrPrivate},
		{"memory/", tool.ErrPrivate},
		{"Memory/2026-01-01.md", tool.ErrPrivate},
		{"memory/new.md", tool.ErrPrivate},
		{".git/config", tool.ErrPrivate},
		{".GIT/config", tool.ErrPrivate},
		{".git", tool.ErrPrivate},
		{"to-soul", tool.ErrPrivate},
		{"chain", tool.ErrPrivate},
		{"src/soul", tool.ErrPrivate},
		{"src/up/SOUL.md", tool.ErrPrivate},
		{"src/abs/memory/deep/er.md", tool.ErrPrivate},
		{"to-memory/2026-01-01.md", tool.ErrPrivate},
		{"to-git/config", tool.ErrPrivate},
		{"hard-soul", tool.ErrPrivate},
		{"src/hard-memory", tool.ErrPrivate},
		{"src/hard-git", tool.ErrPrivate},
		{"src/hard-output", tool.ErrPrivate},
		{".goclaw/output/other/exec.txt", tool.ErrPrivate},
		{".goclaw/output/.stages/stage-1/x", tool.ErrPrivate},

		{"state/goclaw.db", tool.ErrHome},
		{"State/goclaw.db", tool.ErrHome},
		{"to-home/goclaw.db", tool.ErrHome},
		{"hard-db", tool.ErrHome},

		{"..", tool.ErrOutside},
		{"../outside.txt", tool.ErrOutside},
		{"to-outside", tool.ErrOutside},
		{"to-root/etc/passwd", tool.ErrOutside},
		{"/etc/passwd", tool.ErrOutside},
		{"/proc/self/environ", tool.ErrOutside},
		{"/proc/self/root" + ws + "/README.md", nil}, // a detour, but it leads inside
		{"/proc/self/root" + ws + "/SOUL.md", tool.ErrPrivate},
	}
	for _, tt := range tests {
		_, err := r.Resolve(tt.path)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("Resolve(%q) = %v, want %v", tt.path, err, tt.want)
		}
	}
	for _, p := range []string{"a\x00b", "loop", strings.Repeat("x/", 4000)} {
		if _, err := r.Resolve(p); err == nil {
			t.Errorf("Resolve(%.20q) succeeded", p)
		}
	}
}

// TestReachOfMain is the positive control: what is refused to workers exists.
func TestReachOfMain(t *testing.T) {
	ws, home := world(t)
	r := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Run: "mine"}})
	for _, p := range append(slices.Clone(privateFiles), "to-soul", "hard-soul", "src/hard-memory", "src/abs/MEMORY.md") {
		if text, err := readThrough(r, p); err != nil || text != privateCanary {
			t.Errorf("main reads %s: %q, %v", p, text, err)
		}
	}
	for _, p := range []string{"state/goclaw.db", "hard-db", "to-home/goclaw.db", "src/up/state/agents/x.md"} {
		if _, err := readThrough(r, p); !errors.Is(err, tool.ErrHome) {
			t.Errorf("main reads %s: %v", p, err)
		}
	}
}

// TestNoSpellingLeaks tries random spellings of everything.
func TestNoSpellingLeaks(t *testing.T) {
	ws, home := world(t)
	worker := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true, Run: "mine"}})
	targets := append([]string{
		"README.md", "src/main.go", "src/SOUL.md", ".goclaw/output/mine/exec.txt", "state/goclaw.db",
		"state/agents/x.md", "to-soul", "chain", "hard-soul", "hard-db", "src/soul", "src/hard-memory",
		"src/hard-git", "src/hard-output", "to-memory/2026-01-01.md", "to-memory/deep/er.md",
		"to-git/objects/ab/cdef", "to-home/goclaw.db",
	}, privateFiles...)
	detours := []string{
		"", "", "", "./", "src/../", "src/up/", "src/abs/", "memory/../", "to-memory/../", ws + "/",
		"/proc/self/root" + ws + "/", "to-root" + ws + "/", "missing/../", "src//",
	}
	mangle := []func(string) string{
		func(s string) string { return s }, func(s string) string { return s },
		func(s string) string { return s }, func(s string) string { return s },
		strings.ToUpper, strings.ToLower,
		func(s string) string { return s + "/" },
		func(s string) string { return "./" + s },
		func(s string) string { return s + "." },
		func(s string) string { return s + "/../" + s },
		func(s string) string { return strings.Replace(s, "o", "\u200bo", 1) },
	}
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		var p string
		for range rapid.IntRange(0, 3).Draw(t, "detours") {
			p += rapid.SampledFrom(detours).Draw(t, "detour")
		}
		parts := strings.Split(rapid.SampledFrom(targets).Draw(t, "target"), "/")
		for i, word := range parts {
			parts[i] = rapid.SampledFrom(mangle).Draw(t, "mangle")(word)
		}
		p += strings.Join(parts, "/")
		text, err := readThrough(worker, p)
		if err == nil {
			reached++
		}
		if strings.Contains(text, "CANARY") {
			t.Fatalf("%q gives %q", p, text)
		}
		if rel, err := worker.Resolve(p); err == nil {
			if real, err := filepath.EvalSymlinks(filepath.Join(ws, rel)); err == nil && real != ws && !strings.HasPrefix(real, ws+"/") {
				t.Fatalf("%q leads to %s", p, real)
			}
		}
	})
	if reached == 0 {
		t.Error("no spelling reached a file: the test shows nothing")
	}
}

func TestListsHidePrivateNames(t *testing.T) {
	ws, home := world(t)
	r := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true, Run: "mine"}})
	root, err := r.Dir(".")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var seen []string
	hidden, err := root.Walk(t.Context(), func(tool.Entry) bool { return false }, func(_ *tool.Dir, e tool.Entry) error {
		seen = append(seen, e.Path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".goclaw", ".goclaw/output", ".goclaw/output/mine", ".goclaw/output/mine/exec.txt", "README.md",
		"src", "src/SOUL.md", "src/abs", "src/main.go", "src/up", "to-missing", "to-outside", "to-root",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("a worker sees\n%v, want\n%v", seen, want)
	}
	if hidden < len(privateFiles)/2 {
		t.Errorf("%d entries counted as hidden", hidden)
	}
}

func TestMissingPrivateFilesCantBeMade(t *testing.T) {
	ws := t.TempDir()
	if err := os.Symlink("SOUL.md", filepath.Join(ws, "plan.md")); err != nil {
		t.Fatal(err)
	}
	r := open(t, tool.Scope{Workspace: ws, Access: goclaw.Access{Strict: true}})
	for _, p := range []string{"SOUL.md", "plan.md", "memory/x.md", ".git/hooks/pre-commit", "Memory/x.md"} {
		if _, err := r.Resolve(p); !errors.Is(err, tool.ErrPrivate) {
			t.Errorf("Resolve(%q) = %v", p, err)
		}
	}
}

func TestLinkedPrivateFiles(t *testing.T) {
	ws := t.TempDir()
	for _, dir := range []string{"notes", "diary", "repo/.git-real"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for p, content := range map[string]string{
		"notes/m.md": privateCanary, "notes/open.md": "public", "diary/d.md": privateCanary,
		"repo/.git-real/config": privateCanary, ".git": "gitdir: repo/.git-real\n",
	} {
		if err := os.WriteFile(filepath.Join(ws, p), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"MEMORY.md": "notes/m.md", "memory": "diary"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, tool.Scope{Workspace: ws, Access: goclaw.Access{Strict: true}})
	for _, p := range []string{"notes/m.md", "diary/d.md", "diary", "MEMORY.md", "memory/d.md", "repo/.git-real/config"} {
		if _, err := r.Resolve(p); !errors.Is(err, tool.ErrPrivate) {
			t.Errorf("Resolve(%q) = %v", p, err)
		}
	}
	if text, err := readThrough(r, "notes/open.md"); err != nil || text != "public" {
		t.Errorf("notes/open.md: %q, %v", text, err)
	}
	hidden, err := r.Hidden(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(hidden.Paths, filepath.Join(r.Base(), "notes")) {
		t.Errorf("a command could see notes, where a private file lies: %v", hidden.Paths)
	}
}

func TestHomeAroundTheWorkspace(t *testing.T) {
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{filepath.Join(ws, "a.txt"), filepath.Join(home, "goclaw.db")} {
		if err := os.WriteFile(p, []byte(p), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(home, "goclaw.db"), filepath.Join(ws, "alias")); err != nil {
		t.Fatal(err)
	}
	r := open(t, tool.Scope{Workspace: ws, Home: home})
	if _, err := readThrough(r, "a.txt"); err != nil {
		t.Error(err)
	}
	if _, err := readThrough(r, "alias"); !errors.Is(err, tool.ErrHome) {
		t.Errorf("alias: %v", err)
	}
	if _, err := tool.Open(tool.Scope{Workspace: home, Home: home}); !errors.Is(err, tool.ErrHome) {
		t.Errorf("the home as workspace: %v", err)
	}
	hidden, err := r.Hidden(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(hidden.Paths, filepath.Join(r.Base(), "alias")) || hidden.Private != nil {
		t.Errorf("hidden: %+v", hidden)
	}
}

// TestNothingBlocks opens what would block or isn't a file.
func TestNothingBlocks(t *testing.T) {
	ws := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o644); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	r := open(t, tool.Scope{Workspace: ws})
	done := make(chan error, 1)
	go func() {
		_, err := readThrough(r, "pipe")
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, tool.ErrIrregular) {
			t.Errorf("pipe: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("opening a pipe blocks")
	}
}

// TestSwappingLinks races a reader against somebody who swaps a folder and a
// file for links to private ones.
func TestSwappingLinks(t *testing.T) {
	ws, home := world(t)
	r := open(t, tool.Scope{Workspace: ws, Home: home, Access: goclaw.Access{Strict: true}})
	if err := os.MkdirAll(filepath.Join(ws, "box/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"box/deep/er.md", "swap.md"} {
		if err := os.WriteFile(filepath.Join(ws, p), []byte("public"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		at := func(p string) string { return filepath.Join(ws, p) }
		for ctx.Err() == nil {
			// A failure to swap only makes the race less hard.
			_ = os.Rename(at("box"), at("box.real"))
			_ = os.Symlink("memory", at("box"))
			_ = os.Rename(at("swap.md"), at("swap.real"))
			_ = os.Symlink("memory/2026-01-01.md", at("swap.md"))
			_ = os.Remove(at("box"))
			_ = os.Rename(at("box.real"), at("box"))
			_ = os.Remove(at("swap.md"))
			_ = os.Rename(at("swap.real"), at("swap.md"))
		}
	}()
	defer func() { stop(); <-done }()
	read := 0
	for range 30000 {
		for _, p := range []string{"box/deep/er.md", "swap.md"} {
			text, err := readThrough(r, p)
			if err == nil {
				read++
			}
			if strings.Contains(text, "CANARY") {
				t.Fatalf("%s gave a private file", p)
			}
		}
	}
	if read == 0 {
		t.Error("nothing was ever read: the test shows nothing")
	}
}

func TestOpenRefusesBadWorkspaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, ws := range []string{"", "relative", file, filepath.Join(file, "missing"), filepath.Join(filepath.Dir(file), "missing")} {
		if r, err := tool.Open(tool.Scope{Workspace: ws}); err == nil {
			r.Close()
			t.Errorf("Open(%q) succeeded", ws)
		}
	}
}

func ExampleReach_Resolve() {
	ws, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(ws)
	reach, err := tool.Open(tool.Scope{Workspace: ws, Access: goclaw.Access{Strict: true}})
	if err != nil {
		panic(err)
	}
	defer reach.Close()
	fmt.Println(reach.Resolve("src/./main.go"))
	fmt.Println(reach.Resolve("src/../Soul.md"))
	// Output:
	// src/main.go <nil>
	//  src/../Soul.md: private to the main agent, outside this worker's reach
}

// A file that is being written may be about to become a private one.
func TestTemporaryNamesArePrivate(t *testing.T) {
	for strict, want := range map[bool]error{true: tool.ErrPrivate, false: nil} {
		r, err := tool.Open(tool.Scope{Workspace: t.TempDir(), Access: goclaw.Access{Strict: strict}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Allow(".goclaw-x.tmp", nil); !errors.Is(err, want) {
			t.Errorf("strict %v: %v", strict, err)
		}
	}
}
