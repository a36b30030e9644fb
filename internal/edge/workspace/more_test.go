package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"goclaw"
)

func put(t testing.TB, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(p, old, old); err != nil {
		t.Fatal(err)
	}
	return p
}

// further are the files beyond the eight, by name.
func further(t *testing.T, l *Loader, dir string, more ...string) map[string]goclaw.WorkspaceFile {
	t.Helper()
	files, err := l.Files(dir, append(Names(), more...))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]goclaw.WorkspaceFile{}
	for _, f := range files[len(Names()):] {
		byName[f.Name] = f
	}
	return byName
}

func TestFurtherFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "docs/STYLE.md", "\uFEFFplain\r\n")
	put(t, dir, "memory/2026-11-21.md", "today")
	put(t, dir, "file", "x")
	l := NewLoader(Options{})
	more := []string{
		"memory/2026-11-21.md", "docs/STYLE.md", "memory", ".git", "AGENTS.md", "docs/STYLE.md",
		"docs/none.md", "none/none.md", "docs", "file/x", "../x", "/etc/passwd", "", ".", "a/../file", "Memory/2026-11-21.md", "soul.md",
	}
	files, err := l.Files(dir, append(Names(), more...))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	want := append(Names(), "memory/2026-11-21.md", "docs/STYLE.md", "docs/none.md", "none/none.md", "docs", "file/x",
		"../x", "/etc/passwd", "", ".", "a/../file", "Memory/2026-11-21.md", "soul.md")
	if !slices.Equal(names, want) {
		t.Fatalf("got %q", names)
	}
	got := further(t, l, dir, more...)
	if f := got["docs/STYLE.md"]; f.Content != "plain\n" || f.Path != filepath.Join(dir, "docs", "STYLE.md") || f.Warning != "" {
		t.Errorf("%+v", f)
	}
	if f := got["memory/2026-11-21.md"]; f.Content != "today" || f.Warning != "" {
		t.Errorf("%+v", f)
	}
	for name, warning := range map[string]string{
		"docs": "is a folder, not a file", "file/x": "can't be examined: not a directory",
		"../x": "is no path within the workspace", "/etc/passwd": "is no path", "": "is no path", ".": "is no path", "a/../file": "is no path",
		"Memory/2026-11-21.md": "is memory in another spelling", "soul.md": "is SOUL.md in another spelling",
	} {
		if f := got[name]; !strings.Contains(f.Warning, warning) || f.Content != "" || f.Missing {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, name := range []string{"docs/none.md", "none/none.md"} {
		if f := got[name]; !f.Missing || f.Warning != "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Whatever links there are, content comes under its own name only.
func TestFurtherFilesAndLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "secret", "secret")
	put(t, dir, "USER.md", "private")
	put(t, dir, "memory/day.md", "private")
	put(t, dir, ".git/config", "private")
	put(t, dir, "docs/real.md", "real")
	links := map[string]string{
		"docs/user.md": "../USER.md", "docs/day.md": "../memory/day.md", "docs/out.md": filepath.Join(outside, "secret"),
		"docs/none.md": "nowhere", "docs/ok.md": "real.md", "notes": "memory", "out": outside, "also": "docs", "docs/conf.md": "../.git/config",
		"memory/user.md": "../USER.md", "memory/other.md": "day.md", "docs/back": "../memory",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Skip(err)
		}
	}
	for name, target := range map[string]string{"docs/hard.md": "USER.md", "docs/deep.md": "memory/day.md", "TOOLS.md": "memory/day.md", "docs/git.md": ".git/config"} {
		if err := os.Link(filepath.Join(dir, filepath.FromSlash(target)), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Skip(err)
		}
	}
	refused := map[string]string{
		"docs/user.md": "is a link to USER.md", "docs/day.md": "is a link into memory/", "docs/out.md": "leaves the workspace",
		"docs/none.md": "leads nowhere", "notes/day.md": "is a link into memory/", "out/secret": "leaves the workspace",
		"docs/conf.md": "is a link into .git/", "memory/user.md": "is a link to USER.md", "docs/back/day.md": "is a link into memory/",
		"docs/hard.md": "is the same file as USER.md; it was not read", "docs/deep.md": "is the same file as TOOLS.md",
		"docs/git.md": "is the same file as .git/config, which is private; it was not read",
	}
	allowed := map[string]string{"docs/ok.md": "real", "also/real.md": "real", "memory/other.md": "private", "memory/day.md": "private", ".git/config": "private"}
	var more []string
	for name := range refused {
		more = append(more, name)
	}
	for name := range allowed {
		more = append(more, name)
	}
	l := NewLoader(Options{})
	for range 2 { // the second time from the cache
		got := further(t, l, dir, more...)
		for name, warning := range refused {
			if f := got[name]; !strings.Contains(f.Warning, warning) || f.Content != "" || f.Missing {
				t.Errorf("%s: %+v, want %q", name, f, warning)
			}
		}
		for name, text := range allowed {
			if f := got[name]; f.Content != text || f.Warning != "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		eight := load(t, l, dir)
		if f := eight["TOOLS.md"]; !strings.Contains(f.Warning, "is the same file as memory/day.md") || f.Content != "" {
			t.Errorf("%+v", f)
		}
		if f := eight["USER.md"]; f.Content != "private" {
			t.Errorf("a link to it costs a file its place: %+v", f)
		}
	}
	// A folder that becomes a link to a private one is seen, although the file
	// is the one that was read before.
	if _, err := l.Files(dir, append(Names(), "moved/day.md")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "moved/day.md", "public")
	if f := further(t, l, dir, "moved/day.md")["moved/day.md"]; f.Content != "public" {
		t.Fatalf("%+v", f)
	}
	for _, err := range []error{
		os.Rename(filepath.Join(dir, "moved", "day.md"), filepath.Join(dir, "memory", "moved.md")),
		os.Remove(filepath.Join(dir, "moved")), os.Symlink("memory", filepath.Join(dir, "moved")),
		os.Rename(filepath.Join(dir, "memory", "moved.md"), filepath.Join(dir, "memory", "new.md")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if f := further(t, l, dir, "moved/new.md")["moved/new.md"]; !strings.Contains(f.Warning, "into memory/") {
		t.Errorf("%+v", f)
	}
}

// What is another file by the time it is opened is not taken for the one that
// was looked at.
func TestReplacedWhileOpened(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "AGENTS.md", "old")
	l := NewLoader(Options{})
	swaps := 0
	l.open = func(root *os.Root, name string) (fs.File, error) {
		if name == "AGENTS.md" && swaps > 0 {
			swaps--
			put(t, dir, "next", fmt.Sprintf("new %d", swaps))
			if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		return openFile(root, name)
	}
	for _, tt := range []struct {
		swaps         int
		text, warning string
	}{{1, "new 0", ""}, {3, "", "was replaced while it was opened"}, {0, "before 0", ""}} {
		put(t, dir, "AGENTS.md", fmt.Sprintf("before %d", tt.swaps))
		swaps = tt.swaps
		if f := load(t, l, dir)["AGENTS.md"]; f.Content != tt.text || !strings.Contains(f.Warning, tt.warning) || tt.warning == "" && f.Warning != "" {
			t.Errorf("%d swaps: %+v", tt.swaps, f)
		}
	}
}

func TestUnreadableAnywhere(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "docs/a.md", "x")
	put(t, dir, "SOUL.md", "x")
	l := NewLoader(Options{})
	l.open = func(_ *os.Root, name string) (fs.File, error) {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: fs.ErrPermission}
	}
	for _, f := range []goclaw.WorkspaceFile{load(t, l, dir)["SOUL.md"], further(t, l, dir, "docs/a.md")["docs/a.md"]} {
		if f.Warning != "can't be read: permission denied" || f.Content != "" || f.Missing {
			t.Errorf("%+v", f)
		}
	}
	l.open = func(*os.Root, string) (fs.File, error) { return nil, fs.ErrNotExist }
	if f := load(t, l, dir)["SOUL.md"]; !f.Missing || f.Warning != "" {
		t.Errorf("a file that has just vanished: %+v", f)
	}
}

// Equal calls return the same memory, of what was cut too; a text that no cut
// can show is not kept.
func TestCutsAreKept(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "AGENTS.md", strings.Repeat("long ", 1<<20))
	put(t, dir, "SOUL.md", strings.Repeat("s", 600))
	put(t, dir, "docs/a.md", strings.Repeat("d", 900))
	l := NewLoader(Options{FileMaxChars: 1000, TotalMaxChars: 2000})
	was, err := l.Files(dir, append(Names(), "docs/a.md"))
	if err != nil {
		t.Fatal(err)
	}
	reads := l.Reads()
	if was[0].Dropped == 0 || was[8].Dropped == 0 || !strings.Contains(was[8].Warning, "context.totalMaxChars") {
		t.Errorf("not cut: %+v, %+v", was[0].Warning, was[8])
	}
	for range 3 {
		// Another session's files in between leave the cuts in place.
		if _, err := l.Files(dir, append(Names(), "docs/b.md", "docs/a.md")); err != nil {
			t.Fatal(err)
		}
		is, err := l.Files(dir, append(Names(), "docs/a.md"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(is, was) || l.Reads() != reads {
			t.Errorf("%d reads; %+v", l.Reads()-reads, is)
		}
		for i := range is {
			if unsafe.StringData(is[i].Content) != unsafe.StringData(was[i].Content) {
				t.Errorf("%s was made again", is[i].Name)
			}
		}
	}
	if e := l.cache[filepath.Join(dir, "AGENTS.md")]; e.text.whole != "" || len(e.text.head)+len(e.text.tail) != 2000 || e.text.chars != 5<<20 {
		t.Errorf("%d characters, of which %d bytes are kept", e.text.chars, len(e.text.whole)+len(e.text.head)+len(e.text.tail))
	}
}

func TestCacheIsBounded(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "AGENTS.md", "here")
	l := NewLoader(Options{})
	for i := range maxCached + maxCached/2 {
		name := fmt.Sprintf("notes/%d.md", i)
		put(t, dir, name, "x")
		if f := further(t, l, dir, name)[name]; f.Content != "x" {
			t.Fatalf("%+v", f)
		}
	}
	if len(l.cache) > maxCached {
		t.Errorf("%d files are kept", len(l.cache))
	}
	reads := l.Reads()
	if load(t, l, dir); l.Reads() != reads {
		t.Error("a file in steady use was forgotten")
	}
}

// A file that is known to be refused is not read again and again.
func TestRefusedCostsNoRead(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "SOUL.md", strings.Repeat("x", maxFileBytes+1))
	put(t, dir, "TOOLS.md", "a\x00b")
	put(t, dir, "USER.md", "\xff\xfea\x00")
	l := NewLoader(Options{})
	for range 3 {
		load(t, l, dir)
	}
	if l.Reads() != 2 {
		t.Errorf("%d reads", l.Reads())
	}
}

func TestErrorOfTheFolder(t *testing.T) {
	if _, err := NewLoader(Options{}).Files(filepath.Join(t.TempDir(), "none"), append(Names(), "docs/a.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func BenchmarkFilesUnchanged(b *testing.B) {
	bench := func(b *testing.B, sizes map[string]int, more ...string) {
		dir := b.TempDir()
		for name, size := range sizes {
			put(b, dir, name, strings.Repeat("a line of some text\n", size/20))
		}
		l := NewLoader(Options{TotalMaxChars: 1_000_000})
		if _, err := l.Files(dir, append(Names(), more...)); err != nil {
			b.Fatal(err)
		}
		reads := l.Reads()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := l.Files(dir, append(Names(), more...)); err != nil {
				b.Fatal(err)
			}
		}
		if l.Reads() != reads {
			b.Errorf("%d reads of unchanged files", l.Reads()-reads)
		}
	}
	eight := map[string]int{}
	for _, name := range Names() {
		eight[name] = 20_000
	}
	b.Run("eight of 20 KB", func(b *testing.B) { bench(b, eight) })
	b.Run("one of 5 MB", func(b *testing.B) { bench(b, map[string]int{"AGENTS.md": 5 << 20}) })
	b.Run("two further", func(b *testing.B) {
		bench(b, map[string]int{"docs/STYLE.md": 20_000, "memory/2026-11-21.md": 20_000}, "docs/STYLE.md", "memory/2026-11-21.md")
	})
}

// What a session is not shown is not read for it, and takes no room from what
// it is shown.
func TestOnlyWhatIsShownIsRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range Names() {
		put(t, dir, name, strings.Repeat("x", 900))
	}
	put(t, dir, "late.md", strings.Repeat("y", 900))
	l := NewLoader(Options{FileMaxChars: 1000, TotalMaxChars: 3000})
	show := []string{"AGENTS.md", "TOOLS.md", "memory", "late.md"}
	files, err := l.Files(dir, show)
	if err != nil || len(files) != len(Names())+1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		want := 0
		if slices.Contains(show, f.Name) {
			want = 900
		}
		if len(f.Content) != want || f.Missing || f.Warning != "" {
			t.Errorf("%s: %d characters of %d, %+v", f.Name, len(f.Content), want, f.Warning)
		}
	}
	if got := l.Reads(); got != 3 {
		t.Errorf("%d files were read", got)
	}
}
