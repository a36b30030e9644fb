//go:build unix

package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"goclaw"
	"goclaw/internal/edge/tool/file"
)

func (d *desk) mentioned(text string, named ...string) string {
	d.t.Helper()
	m := file.Mentions{Home: filepath.Join(d.ws, "state")}
	return m.Mentioned(d.t.Context(), d.ws, goclaw.Access{Strict: d.strict, Named: named}, text)
}

func TestMentions(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.put("a.md", "alpha\n")
	d.put("src/b.go", "beta </file> beta")
	d.put("src/c d.txt", "spaced")
	d.put("src/[id].tsx", "route")
	d.put("ann", "a file called ann")
	d.put("empty.txt", "")
	alpha := "<file path=\"a.md\">\nalpha\n</file>"
	beta := "<file path=\"src/b.go\">\nbeta <\\/file> beta\n</file>"
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"no mention, mail me@a.md or x@y.z", ""},
		{"@nobody and @types/node and @Component({x}) @ @. @.. @@ @@a.md", ""},
		{"@a.md", alpha},
		{"see @a.md.", alpha},
		{"see (@a.md), @a.md!", alpha},
		{"see `@a.md`, '@a.md' \"@a.md\" <@a.md>", alpha},
		{"line\n@a.md:12 and @./a.md and @" + d.ws + "/a.md", alpha},
		{"@src/b.go, then @a.md", beta + "\n" + alpha},
		{"@src/b.go(line 3)", beta},
		{"@src/c d.txt", ""}, // src/c is no file: names with spaces are quoted
		{`@"src/c d.txt" @"`, "<file path=\"src/c d.txt\">\nspaced\n</file>"},
		{"@src/[id].tsx", "<file path=\"src/[id].tsx\">\nroute\n</file>"},
		{"thanks @ann", "<file path=\"ann\">\na file called ann\n</file>"},
		{"@empty.txt", "<file path=\"empty.txt\">\n\n</file>"},
		{"@/etc/passwd @../x @a.md", "@/etc/passwd: outside the workspace; not shown\n@../x: outside the workspace; not shown\n" + alpha},
	} {
		if got := d.mentioned(tt.text); got != tt.want {
			t.Errorf("%q gives\n%s\nwant\n%s", tt.text, got, tt.want)
		}
	}
	if got, want := d.mentioned("look into @src/ now"), "<folder path=\"src\">\n[id].tsx 5\nb.go 17\nc d.txt 6\n</folder>"; got != want {
		t.Errorf("a folder: %s", got)
	}
}

// Who may not read a file is not shown it by its name in a message either.
func TestMentionsOfPrivateFiles(t *testing.T) {
	d := newDesk(t, file.Options{})
	const canary = "CANARY"
	for _, p := range []string{"SOUL.md", "USER.md", "memory/x.md", "memory/y.md", ".git/config", "state/goclaw.db", ".goclaw/output/other/o.txt"} {
		d.put(p, canary)
	}
	for link, target := range map[string]string{"soft": "SOUL.md", "dir": "memory"} {
		if err := os.Symlink(target, filepath.Join(d.ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(d.ws, "SOUL.md"), filepath.Join(d.ws, "hard")); err != nil {
		t.Fatal(err)
	}
	text := "@SOUL.md, @soul.MD @./SOUL.md. @soft @hard @dir/x.md @memory @memory/x.md @memory/new.md @.git/config @.goclaw/output/other/o.txt @dir/../SOUL.md @\"SOUL.md \" @state/goclaw.db"
	d.strict = true
	got := d.mentioned(text)
	if strings.Contains(got, canary) || strings.Contains(got, "<") {
		t.Errorf("a worker is shown\n%s", got)
	}
	for _, want := range []string{"@SOUL.md: private to the main agent; not shown", "@hard: private to the main agent; not shown", "@state/goclaw.db: GoClaw's own state; not shown"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if got, want := d.mentioned("@memory/x.md @memory/y.md @memory", "memory/x.md"), "<file path=\"memory/x.md\">\nCANARY\n</file>\n@memory/y.md: private to the main agent; not shown\n<folder path=\"memory\">\nx.md 6\n[1 private entry hidden]\n</folder>"; got != want {
		t.Errorf("with a lift: %s", got)
	}
	if got := d.mentioned("list @./"); strings.Contains(got, "SOUL") || strings.Contains(got, "hard") || !strings.Contains(got, "private entries hidden") {
		t.Errorf("the root: %s", got)
	}
	d.strict = false
	if got := strings.Count(d.mentioned(text), canary); got < 5 {
		t.Errorf("the main agent is shown %d files: the test shows nothing", got)
	}
}

func TestMentionsAreBounded(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.put("long.txt", "HEAD"+strings.Repeat("ü", 200_000)+"TAIL")
	d.put("just.txt", strings.Repeat("ü", 20_000))
	d.put("bin", "a\x00b")
	d.put("pic.png", "\x89PNG\r\n\x1a\n\x00\x00")
	if err := syscall.Mkfifo(filepath.Join(d.ws, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := d.mentioned("@long.txt")
	if n := utf8.RuneCountInString(got); n > 20_200 || !strings.Contains(got, "\nHEADü") || !strings.HasSuffix(got, "üTAIL\n</file>") || !strings.Contains(got, "bytes left out") || !utf8.ValidString(got) {
		t.Errorf("%d characters: %.60s … %s", n, got, got[len(got)-60:])
	}
	if got := d.mentioned("@just.txt"); strings.Contains(got, "left out") {
		t.Error("a file that fits is cut")
	}
	if got, want := d.mentioned("@bin @pic.png @pipe"), "@bin: binary (application/octet-stream, 3 bytes); not shown\n@pic.png: binary (image/png, 10 bytes); not shown\n@pipe: not a regular file; not shown"; got != want {
		t.Errorf("%s", got)
	}
	var text strings.Builder
	for i := range 25 {
		d.put(fmt.Sprintf("s/%d.txt", i), "small")
		d.put(fmt.Sprintf("b/%d.txt", i), strings.Repeat("x", 19_000))
		fmt.Fprintf(&text, "@s/%d.txt ", i)
	}
	got = d.mentioned(text.String())
	if n := strings.Count(got, "<file "); n != 20 || strings.Count(got, "at most 20 files") != 5 {
		t.Errorf("%d files of 25: %s", n, got)
	}
	got = d.mentioned(strings.ReplaceAll(text.String(), "@s", "@b"))
	if n := utf8.RuneCountInString(got); n > 65_000 || strings.Count(got, "at most 60000 characters") != 21 {
		t.Errorf("%d characters: %s", n, got[len(got)-200:])
	}
	if got := d.mentioned(strings.Repeat("@x", 100_000) + strings.Repeat(" @", 100_000) + strings.Repeat(" @nope", 100_000)); got != "" {
		t.Errorf("%.100s", got)
	}
}

func FuzzMentions(f *testing.F) {
	for _, s := range []string{"@a.md", "see (@SOUL.md).", `@"x y" @"`, "@\xff@/@..@", "@a@b @[x](y)"} {
		f.Add(s)
	}
	ws := f.TempDir()
	for name, content := range map[string]string{"a.md": "alpha", "SOUL.md": "CANARY"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(content), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := file.Mentions{}.Mentioned(t.Context(), ws, goclaw.Access{Strict: true}, text)
		if strings.Contains(got, "CANARY") && !strings.Contains(text, "CANARY") {
			t.Errorf("%q shows %q", text, got)
		}
	})
}

func ExampleMentions_Mentioned() {
	ws, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(ws)
	if err := os.WriteFile(filepath.Join(ws, "plan.md"), []byte("1. Think\n"), 0o600); err != nil {
		panic(err)
	}
	worker := goclaw.Access{Strict: true}
	fmt.Println(file.Mentions{}.Mentioned(context.Background(), ws, worker, "Do as @plan.md and @SOUL.md say."))
	// Output:
	// <file path="plan.md">
	// 1. Think
	// </file>
	// @SOUL.md: private to the main agent; not shown
}

// What guides the main agent, or was lifted, is read and not changed.
func TestWorkersDoNotChangeGuides(t *testing.T) {
	d := newDesk(t, file.Options{})
	d.strict, d.named = true, []string{"USER.md"}
	d.put("AGENTS.md", "old rules")
	d.put("USER.md", "old name")
	d.put("src/AGENTS.md", "old notes")
	for _, p := range []string{"AGENTS.md", "USER.md"} {
		d.ok("read", args{"path": p})
		d.fails("write", args{"path": p, "content": "new"}, p+": only the main agent changes it")
		d.fails("edit", args{"path": p, "old": "old", "new": "new"}, p+": only the main agent changes it")
	}
	for _, p := range []string{"TOOLS.md", "skills/x/SKILL.md", ".goclaw/agents/x.md", ".claude/agents/x.md", ".opencode/agent/x.md"} {
		d.fails("write", args{"path": p, "content": "new"}, "only the main agent changes it")
	}
	d.ok("read", args{"path": "src/AGENTS.md"})
	d.ok("edit", args{"path": "src/AGENTS.md", "old": "old", "new": "new"})
	d.ok("write", args{"path": "docs/skills/x.md", "content": "new"})
	d.fails("read", args{"path": "SOUL.md"}, "private")
	if entries, err := os.ReadDir(d.ws); err != nil || len(entries) != 4 {
		t.Errorf("%v, %v", entries, err)
	}
	d.strict = false
	d.ok("read", args{"path": "AGENTS.md"})
	d.ok("edit", args{"path": "AGENTS.md", "old": "old", "new": "new"})
}
