//go:build unix

package file_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/tool/file"
)

// desk is a workspace with the tools on it.
type desk struct {
	t      testing.TB
	ws     string
	tools  map[string]goclaw.Tool
	strict bool
	named  []string
	skills []string
	peer   string // whose session calls
}

func newDesk(t testing.TB, o file.Options) *desk {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, ws: ws, tools: map[string]goclaw.Tool{}, peer: "a"}
	for _, tool := range file.Tools(o) {
		d.tools[tool.Spec().Name] = tool
	}
	return d
}

type args map[string]any

func (d *desk) call(ctx context.Context, name string, a args) goclaw.ToolResult {
	d.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.tools[name].Call(ctx, goclaw.Invocation{
		Call:    goclaw.ToolCall{ID: "1", Name: name, Arguments: string(raw)},
		Fence:   goclaw.Fence{Run: "mine"},
		Session: goclaw.APIKey("main", d.peer),
		Profile: goclaw.Profile{Workspace: d.ws, Strict: d.strict, Inherit: d.named, Skills: d.skills},
	})
}

// ok calls a tool that must succeed.
func (d *desk) ok(name string, a args) string {
	d.t.Helper()
	res := d.call(d.t.Context(), name, a)
	if res.IsError {
		d.t.Fatalf("%s %v: %s", name, a, res.Content)
	}
	return res.Content
}

// fails calls a tool that must fail and say want.
func (d *desk) fails(name string, a args, want string) {
	d.t.Helper()
	res := d.call(d.t.Context(), name, a)
	if !res.IsError || !strings.Contains(res.Content, want) {
		d.t.Errorf("%s %v: %q (error %v), want an error with %q", name, a, res.Content, res.IsError, want)
	}
}

func (d *desk) put(rel, content string) {
	d.t.Helper()
	p := filepath.Join(d.ws, rel)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) content(rel string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.ws, rel))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%q\nwant\n%q", what, got, want)
	}
}

func TestRead(t *testing.T) {
	d := newDesk(t, file.Options{MaxOutput: 2000})
	d.put("a.txt", "one\ntwo\r\nthree")
	d.put("empty", "")
	d.put("newline", "\n")
	d.put("bin", "a\x00b")
	d.put("pic.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	d.put("latin1.txt", "caf\xe9")
	d.put("wide.txt", strings.Repeat("é", 3000)+"\nnext")
	d.put("long.txt", strings.Repeat("0123456789\n", 1000))
	expect(t, "whole", d.ok("read", args{"path": "a.txt"}), "1\tone\n2\ttwo\n3\tthree")
	expect(t, "part", d.ok("read", args{"path": "a.txt", "offset": 2, "limit": 1}), "2\ttwo\n[lines 2-2 of 3; read on with offset 3]")
	expect(t, "rest", d.ok("read", args{"path": d.ws + "/a.txt", "offset": 3}), "3\tthree")
	expect(t, "empty", d.ok("read", args{"path": "empty"}), "[empty file]")
	expect(t, "newline", d.ok("read", args{"path": "newline"}), "1\t")
	expect(t, "latin1", d.ok("read", args{"path": "latin1.txt"}), "1\tcaf\uFFFD")
	if got := d.ok("read", args{"path": "wide.txt"}); len(got) > 2200 || !strings.HasSuffix(got, "[4000 bytes of this line cut]\n[lines 1-1 of 2; read on with offset 2]") {
		t.Errorf("wide: %d bytes, ends in %q", len(got), got[max(0, len(got)-100):])
	}
	got := d.ok("read", args{"path": "long.txt"})
	if len(got) > 2100 || !strings.Contains(got, "of 1000; read on with offset ") {
		t.Errorf("long: %d bytes, ends in %q", len(got), got[max(0, len(got)-100):])
	}
	d.fails("read", args{"path": "a.txt", "offset": 9}, "the file has 3 lines")
	d.fails("read", args{"path": "bin"}, "binary")
	d.fails("read", args{"path": "pic.png"}, "an image (image/png")
	d.fails("read", args{"path": "."}, "use ls")
	d.fails("read", args{"path": "../x"}, "outside the workspace")
	d.fails("read", args{"path": "/etc/passwd"}, "outside the workspace")
	d.fails("read", args{"path": "a\x00"}, "NUL")
}

func TestReadSuggests(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.put("docs/README.md", "x")
	d.put("src/handler.go", "x")
	d.put("MEMORY.md", "x")
	d.fails("read", args{"path": "docs/REDME.md"}, "did you mean docs/README.md?")
	d.fails("read", args{"path": "handler.go"}, "did you mean src/handler.go?")
	d.fails("read", args{"path": "src/handler.go/x"}, "no such file")
	d.fails("read", args{"path": "nothing-like-it"}, "use ls or glob")
	d.strict = true
	if res := d.call(t.Context(), "read", args{"path": "MEMORIE.md"}); strings.Contains(res.Content, "MEMORY.md") {
		t.Errorf("a worker is told of a private file: %s", res.Content)
	}
}

func TestWriteNeedsReading(t *testing.T) {
	d := newDesk(t, file.Options{})
	expect(t, "new", d.ok("write", args{"path": "deep/er/a.txt", "content": "one"}), "created deep/er/a.txt (3 bytes)")
	expect(t, "own", d.ok("write", args{"path": "deep/er/a.txt", "content": "two"}), "replaced deep/er/a.txt (3 bytes)")

	d.put("b.txt", "theirs")
	d.fails("write", args{"path": "b.txt", "content": "mine"}, "read it first")
	d.fails("edit", args{"path": "b.txt", "old": "theirs", "new": "mine"}, "read it first")
	d.ok("read", args{"path": "b.txt"})
	d.put("b.txt", "changed")
	d.fails("write", args{"path": "b.txt", "content": "mine"}, "changed since you read it")
	d.fails("edit", args{"path": "b.txt", "old": "changed", "new": "mine"}, "changed since you read it")
	d.ok("read", args{"path": "b.txt"})
	d.peer = "b"
	d.fails("write", args{"path": "b.txt", "content": "mine"}, "read it first")
	d.peer = "a"
	d.ok("write", args{"path": "./b.txt", "content": "mine"})
	expect(t, "b.txt", d.content("b.txt"), "mine")

	restarted := newDesk(t, file.Options{})
	restarted.ws = d.ws
	restarted.fails("write", args{"path": "b.txt", "content": "x"}, "read it first")

	if err := os.Remove(filepath.Join(d.ws, "b.txt")); err != nil {
		t.Fatal(err)
	}
	d.ok("write", args{"path": "b.txt", "content": "again"})
}

func TestWriteKeepsModeAndFolders(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.put("run.sh", "old")
	if err := os.Chmod(filepath.Join(d.ws, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run.sh", filepath.Join(d.ws, "link")); err != nil {
		t.Fatal(err)
	}
	d.ok("read", args{"path": "link"})
	d.ok("write", args{"path": "link", "content": "new"})
	info, err := os.Stat(filepath.Join(d.ws, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o750 || d.content("run.sh") != "new" {
		t.Errorf("run.sh: %v, %v", info.Mode(), err)
	}
	if _, err := os.Readlink(filepath.Join(d.ws, "link")); err != nil {
		t.Error("the link was replaced, not what it leads to")
	}
	d.put("folder/x", "")
	d.fails("write", args{"path": "folder", "content": ""}, "is a folder")
	d.fails("write", args{"path": "new/", "content": ""}, "is a folder")
	d.fails("write", args{"path": "run.sh/x", "content": ""}, "a file, not a folder")
	d.fails("write", args{"path": "../x", "content": ""}, "outside the workspace")
	d.fails("write", args{"path": strings.Repeat("n", 300), "content": ""}, "name too long")
	for _, e := range mustGlob(t, d.ws, ".goclaw-*") {
		t.Errorf("left behind: %s", e)
	}
}

func mustGlob(t testing.TB, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestParallelWriters lets several sessions create and change one file.
// A call leads to one place, however it is spelt.
func TestTarget(t *testing.T) {
	d := newDesk(t, file.Options{})
	if err := os.MkdirAll(filepath.Join(d.ws, "src", "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("src", filepath.Join(d.ws, "docs")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"src/a": "src/a", "./src//in/../a": "src/a", "docs/a": "src/a", "docs/in/new": "src/in/new",
		d.ws + "/docs/a": "src/a", "": ".", "../x": "outside", "/etc/passwd": "outside",
	} {
		raw, err := json.Marshal(args{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		tool, ok := d.tools["write"].(goclaw.PathTool)
		if !ok {
			t.Fatal("write is about no place")
		}
		got, err := tool.Target(goclaw.Invocation{Call: goclaw.ToolCall{Arguments: string(raw)}, Profile: goclaw.Profile{Workspace: d.ws}})
		if err != nil {
			got = "outside"
		}
		if got != want {
			t.Errorf("%q leads to %q, want %q", path, got, want)
		}
	}
}

func TestParallelWriters(t *testing.T) {
	d := newDesk(t, file.Options{})
	var wg sync.WaitGroup
	results := make([]goclaw.ToolResult, 8)
	for i := range results {
		wg.Go(func() {
			results[i] = d.call(t.Context(), "write", args{"path": "a.txt", "content": fmt.Sprint(i)})
		})
	}
	wg.Wait()
	created := 0
	for _, r := range results {
		if strings.HasPrefix(r.Content, "created") {
			created++
		}
	}
	if created != 1 {
		t.Errorf("%d calls created the file: %v", created, results)
	}
	d.put("n.txt", strings.Repeat("x", 8))
	d.ok("read", args{"path": "n.txt"})
	for i := range results {
		wg.Go(func() {
			results[i] = d.call(t.Context(), "edit", args{"path": "n.txt", "old": "x", "new": "y", "all": true})
		})
	}
	wg.Wait()
	expect(t, "n.txt", d.content("n.txt"), "yyyyyyyy")
}

func TestEdit(t *testing.T) {
	tests := []struct {
		name, text, old, new string
		all                  bool
		want, says           string // want "" for an error
	}{
		{"once", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", "edited f at line 2"},
		{"across lines", "a\nb\nc\n", "a\nb", "x", false, "x\nc\n", "at line 1"},
		{"delete", "a\nb\n", "b\n", "", false, "a\n", "at line 2"},
		{"all", "a b\na\n", "a", "x", true, "x b\nx\n", "2 replacements, at lines 1, 2"},
		{"crlf kept", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", "at line 1"},
		{"crlf in new", "a\r\nb\r\n", "a", "x\ny", false, "x\r\ny\r\nb\r\n", "at line 1"},
		{"mixed ends", "a\nb\r\nc\n", "a\n", "x\n", false, "x\nb\r\nc\n", "at line 1"},
		{"special characters", "cost $1 \\1 %d\n", "$1 \\1", "$2", false, "cost $2 %d\n", "at line 1"},

		{"several", "a\nb\na\n", "a", "x", false, "", "occurs 2 times, at lines 1, 3"},
		{"many", strings.Repeat("a\n", 20), "a", "x", false, "", "and 10 more"},
		{"empty old", "a", "", "x", false, "", "old is empty"},
		{"same", "a", "a", "a", false, "", "nothing to do"},
		{"whitespace", "\tif x {\n", "  if x {", "y", false, "", `line 1 begins like it: "\tif x {"`},
		{"close", "func Foo(a int) {\n", "func Foo(a string) {", "y", false, "", "the closest line is 1"},
		{"nothing like it", "abc\n", "qqqqqq", "y", false, "", "nor anything like it"},
		{"numbers pasted", "abc\n", "1\tabc\n", "y", false, "", "line numbers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t, file.Options{})
			d.put("f", tt.text)
			d.ok("read", args{"path": "f"})
			a := args{"path": "f", "old": tt.old, "new": tt.new, "all": tt.all}
			if tt.want == "" {
				d.fails("edit", a, tt.says)
				expect(t, "f", d.content("f"), tt.text)
				return
			}
			if got := d.ok("edit", a); !strings.Contains(got, tt.says) {
				t.Errorf("it says %q, want %q", got, tt.says)
			}
			expect(t, "f", d.content("f"), tt.want)
		})
	}
	d := newDesk(t, file.Options{})
	d.fails("edit", args{"path": "missing", "old": "a", "new": "b"}, "no such file")
	d.fails("edit", args{"path": ".", "old": "a", "new": "b"}, "is a folder")
}

func TestEditAgainWithoutReading(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.ok("write", args{"path": "f", "content": "a b"})
	d.ok("edit", args{"path": "f", "old": "a", "new": "x"})
	d.ok("edit", args{"path": "f", "old": "b", "new": "y"})
	expect(t, "f", d.content("f"), "x y")
}

func TestLs(t *testing.T) {
	d := newDesk(t, file.Options{})
	expect(t, "empty", d.ok("ls", args{}), "[empty]")
	d.put("b.txt", "12345")
	d.put("a/x", "")
	if err := os.Symlink("b.txt", filepath.Join(d.ws, "c")); err != nil {
		t.Fatal(err)
	}
	expect(t, "root", d.ok("ls", args{}), "a/\nb.txt 5\nc@")
	expect(t, "folder", d.ok("ls", args{"path": "a/"}), "x 0")
	d.fails("ls", args{"path": "b.txt"}, "is a file; use read")
	d.fails("ls", args{"path": "none"}, "no such file")
	d.fails("ls", args{"path": ".."}, "outside the workspace")
	for i := range 600 {
		d.put(fmt.Sprintf("many/%03d", i), "")
	}
	if got := d.ok("ls", args{"path": "many"}); !strings.HasSuffix(got, "\n[100 more entries; use glob to narrow]") {
		t.Errorf("many: ends in %q", got[len(got)-60:])
	}
}

func TestGlob(t *testing.T) {
	d := newDesk(t, file.Options{})
	start := time.Now().Add(-time.Hour)
	for i, p := range []string{"a.go", "src/b.go", "src/deep/c.go", "src/deep/d.ts", ".git/e.go"} {
		d.put(p, "")
		when := start.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(d.ws, p), when, when); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ pattern, path, want string }{
		{"**/*.go", "", "src/deep/c.go\nsrc/b.go\na.go"},
		{"*.go", "", "a.go"},
		{"src/**/*.{go,ts}", "", "src/deep/d.ts\nsrc/deep/c.go\nsrc/b.go"},
		{"**/*.go", "src/deep", "src/deep/c.go"},
		{"deep/*", "src", "src/deep/d.ts\nsrc/deep/c.go"},
		{d.ws + "/src/*.go", "", "src/b.go"},
		{"src/b.go", "", "src/b.go"},
		{"*.rs", "", "[no files match]"},
		{"none/*.rs", "", "[no files match: there is no folder none]"},
		{".git/*", "", ".git/e.go"},
	}
	for _, tt := range tests {
		expect(t, tt.pattern, d.ok("glob", args{"pattern": tt.pattern, "path": tt.path}), tt.want)
	}
	d.fails("glob", args{"pattern": "[a"}, "not a glob")
	d.fails("glob", args{"pattern": "../*"}, "outside the workspace")
	for i := range 250 {
		d.put(fmt.Sprintf("many/%03d", i), "")
	}
	if got := d.ok("glob", args{"pattern": "many/*"}); !strings.HasSuffix(got, "\n[50 more files; narrow the pattern]") {
		t.Errorf("many: ends in %q", got[len(got)-60:])
	}
}

func TestGrep(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.put("a.go", "one\ntwo\nthree\nfour\nfive\n")
	d.put("src/b.go", "two and two\r\n")
	d.put("src/c.txt", "two\n")
	d.put("bin", "two\x00")
	d.put(".git/x", "two")
	d.put("wide", strings.Repeat("x", 5000)+"two")
	if err := syscall.Mkfifo(filepath.Join(d.ws, "pipe"), 0o644); err != nil {
		t.Logf("without a pipe: %v", err)
	}
	wide := "wide:1: " + strings.Repeat("x", 400) + " [4603 bytes cut]"
	tests := []struct {
		a    args
		want string
	}{
		{args{"pattern": "two"}, "a.go:2: two\nsrc/b.go:1: two and two\nsrc/c.txt:1: two\n" + wide},
		{args{"pattern": "two$", "glob": "*.go"}, "a.go:2: two\nsrc/b.go:1: two and two"},
		{args{"pattern": "two", "glob": "src/**"}, "src/b.go:1: two and two\nsrc/c.txt:1: two"},
		{args{"pattern": "two", "path": "src/c.txt"}, "src/c.txt:1: two"},
		{args{"pattern": "t(wo|hree)", "path": "a.go", "context": 1}, "a.go-1- one\na.go:2: two\na.go:3: three\na.go-4- four"},
		{args{"pattern": "one|five", "path": "a.go", "context": 1}, "a.go:1: one\na.go-2- two\n--\na.go-4- four\na.go:5: five"},
		{args{"pattern": "two", "limit": 1}, "a.go:2: two\n[more matches were left out; narrow the search or raise limit]"},
		{args{"pattern": "(?i)TWO", "path": "src", "glob": "*.txt"}, "src/c.txt:1: two"},
		{args{"pattern": "absent", "path": "src"}, "[no match in 2 files]"},
	}
	for _, tt := range tests {
		expect(t, fmt.Sprint(tt.a), d.ok("grep", tt.a), tt.want)
	}
	d.fails("grep", args{"pattern": "("}, "missing closing )")
	d.fails("grep", args{"pattern": "x", "path": "none"}, "no such file")
	d.fails("grep", args{"pattern": "x", "glob": "[a"}, "not a glob")
}

func TestCancelledSearch(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.put("a.txt", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, a := range map[string]args{"grep": {"pattern": "x"}, "glob": {"pattern": "**"}} {
		if res := d.call(ctx, name, a); !res.IsError || !strings.Contains(res.Content, "cancel") {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// probe tries all tools on the private files and what leads to them.
func (d *desk) probe(home string, private []string) (all []goclaw.ToolResult) {
	paths := append([]string{"notes/link", "notes/dir/day.md", "plan.md", "notes/home/goclaw.db", "notes/hard", "notes/hard2", "notes/hard3",
		"memory", ".git", "soul.md", "notes/../MEMORY.md", d.ws + "/USER.md", "/proc/self/cwd", home + "/goclaw.db"}, private...)
	for _, p := range paths {
		for _, a := range []struct {
			tool string
			args args
		}{
			{"read", args{"path": p}}, {"ls", args{"path": p}}, {"grep", args{"pattern": ".", "path": p}},
			{"glob", args{"pattern": "**", "path": p}}, {"glob", args{"pattern": p}},
			{"write", args{"path": p, "content": "planted"}}, {"edit", args{"path": p, "old": "CANARY", "new": "planted"}},
		} {
			if !d.strict && (a.tool == "write" || a.tool == "edit") {
				continue
			}
			all = append(all, d.call(d.t.Context(), a.tool, a.args))
		}
	}
	for _, a := range []args{{"pattern": "CANARY"}, {"pattern": ".", "glob": "**/*.md"}} {
		all = append(all, d.call(d.t.Context(), "grep", a))
	}
	return append(all, d.call(d.t.Context(), "ls", args{}), d.call(d.t.Context(), "glob", args{"pattern": "**"}))
}

// TestWorkersReachNothingPrivate has a canary in every private file and in the
// home, and looks for it in whatever the tools say.
func TestWorkersReachNothingPrivate(t *testing.T) {
	const canary = "CANARY"
	home := filepath.Join(t.TempDir(), "home")
	d := newDesk(t, file.Options{Home: home})
	private := []string{"SOUL.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md", "memory/day.md", ".git/index"}
	for _, p := range private {
		d.put(p, canary)
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "goclaw.db"), []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	d.put("notes/n.md", "public")
	link := func(f func(old, name string) error, old, name string) {
		if err := f(old, filepath.Join(d.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(os.Symlink, "../MEMORY.md", "notes/link")
	link(os.Symlink, "../memory", "notes/dir")
	link(os.Symlink, "SOUL.md", "plan.md")
	link(os.Symlink, home, "notes/home")
	link(os.Link, filepath.Join(d.ws, "USER.md"), "notes/hard")
	link(os.Link, filepath.Join(d.ws, "memory/day.md"), "notes/hard2")
	link(os.Link, filepath.Join(home, "goclaw.db"), "notes/hard3")

	d.strict = true
	for _, res := range d.probe(home, private) {
		if strings.Contains(res.Content, canary) && !strings.Contains(res.Content, "[no match") || strings.Contains(res.Content, "day.md") && !strings.Contains(res.Content, "outside this worker's reach") {
			t.Errorf("a worker was told %q", res.Content)
		}
	}
	for _, p := range private {
		expect(t, p, d.content(p), canary)
	}
	expect(t, "ls", d.ok("ls", args{}), "notes/\n[9 private entries hidden]")
	d.fails("write", args{"path": "memory/new.md", "content": "planted"}, "private to the main agent, outside this worker's reach")
	if err := os.Remove(filepath.Join(d.ws, "SOUL.md")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"SOUL.md", "plan.md"} {
		d.fails("write", args{"path": p, "content": "planted"}, "outside this worker's reach")
	}
	d.put("SOUL.md", canary)

	d.strict = false
	found := 0
	for _, res := range d.probe(home, private) {
		found += strings.Count(res.Content, canary)
	}
	if found < 2*len(private) {
		t.Errorf("the main agent finds only %d canaries", found)
	}
	for _, p := range []string{"notes/hard3", "notes/home/goclaw.db", home + "/goclaw.db"} {
		if res := d.call(t.Context(), "read", args{"path": p}); !res.IsError || strings.Contains(res.Content, canary) {
			t.Errorf("the main agent reads %s: %+v", p, res)
		}
	}
}
