package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"goclaw"
	"pgregory.net/rapid"
)

func Example() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	created, err := Prepare(dir)
	fmt.Println(len(created), err)
	files, err := NewLoader(Options{}).Files(dir, Names())
	fmt.Println(files[0].Name, strings.SplitN(files[0].Content, "\n", 2)[0], err)
	// Output:
	// 8 <nil>
	// AGENTS.md # AGENTS.md - how work is done here <nil>
}

func TestTemplatesAreSmall(t *testing.T) {
	total, shared := 0, 0
	for _, name := range Names() {
		text, err := templates.ReadFile("templates/" + name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
		if name == "AGENTS.md" || name == "TOOLS.md" {
			shared += len(text)
		}
		if !strings.HasSuffix(string(text), "\n") || !strings.HasPrefix(string(text), "# "+name) {
			t.Errorf("%s: begins or ends wrongly", name)
		}
	}
	if total > 4600 || shared > 1500 {
		t.Errorf("templates have %d bytes (want at most 4600), those for workers %d (1500)", total, shared)
	}
	heartbeat, err := templates.ReadFile("templates/HEARTBEAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(heartbeat)) {
		if !strings.HasPrefix(l, "#") {
			t.Errorf("HEARTBEAT.md is not empty: %q", l)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, p)
	return p
}

// age makes a file older than the window in which the cache mistrusts it.
func age(t *testing.T, p string) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(p, old, old); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, l *Loader, dir string) map[string]goclaw.WorkspaceFile {
	t.Helper()
	files, err := l.Files(dir, Names())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]goclaw.WorkspaceFile{}
	for i, f := range files {
		if f.Name != Names()[i] || f.Path != filepath.Join(dir, f.Name) {
			t.Errorf("file %d is %s at %s", i, f.Name, f.Path)
		}
		byName[f.Name] = f
	}
	return byName
}

func TestPrepareFresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "workspace")
	created, err := Prepare(dir)
	if err != nil || !slices.Equal(created, Names()) {
		t.Fatalf("created %v, %v", created, err)
	}
	for name, f := range load(t, NewLoader(Options{}), dir) {
		want, err := templates.ReadFile("templates/" + name)
		if err != nil || f.Content != string(want) || f.Warning != "" || f.Missing {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "BOOTSTRAP.md")); err != nil {
		t.Fatal(err)
	}
	if created, err := Prepare(dir); err != nil || created != nil {
		t.Errorf("a second time: created %v, %v", created, err)
	}
	if f := load(t, NewLoader(Options{}), dir)["BOOTSTRAP.md"]; !f.Missing {
		t.Error("BOOTSTRAP.md is back")
	}
}

func TestPrepareLeavesWhatIsThere(t *testing.T) {
	for _, name := range Names() {
		dir := t.TempDir()
		write(t, dir, name, "mine")
		created, err := Prepare(dir)
		if err != nil || created != nil {
			t.Fatalf("%s: created %v, %v", name, created, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(outside, filepath.Join(dir, "SOUL.md")); err != nil {
		t.Skip(err)
	}
	if created, err := Prepare(dir); err != nil || created != nil {
		t.Errorf("dangling link: created %v, %v", created, err)
	}
	if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link was written through")
	}
}

func TestPrepareFails(t *testing.T) {
	p := write(t, t.TempDir(), "file", "x")
	if _, err := Prepare(p); err == nil {
		t.Error("a file was taken for a folder")
	}
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if created, err := Prepare(dir); err == nil || created != nil {
		t.Errorf("created %v, %v", created, err)
	}
}

func TestPrepareConcurrently(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := Prepare(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for name, f := range load(t, NewLoader(Options{}), dir) {
		if f.Missing || f.Content == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestFilesOfNoFolder(t *testing.T) {
	l := NewLoader(Options{})
	if _, err := l.Files(filepath.Join(t.TempDir(), "none"), Names()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := l.Files(write(t, t.TempDir(), "f", ""), Names()); err == nil {
		t.Error("a file was taken for a folder")
	}
	for name, f := range load(t, l, t.TempDir()) {
		if !f.Missing || f.Warning != "" || f.Content != "" {
			t.Errorf("%s in an empty folder: %+v", name, f)
		}
	}
}

func TestContentIsCleaned(t *testing.T) {
	tests := []struct{ name, in, want, warning string }{
		{"plain", "a\nb\n", "a\nb\n", ""},
		{"empty", "", "", ""},
		{"byte order mark", "\uFEFFa", "a", ""},
		{"CRLF", "a\r\nb\r\n", "a\nb\n", ""},
		{"lone CR", "a\rb", "a\rb", ""},
		{"Latin-1", "caf\xe9 \uFFFD", "caf\uFFFD \uFFFD", "is not UTF-8: 1 bytes were replaced"},
		{"UTF-16", "\xff\xfea\x00", "", "is UTF-16"},
		{"binary", "a\x00b", "", "zero bytes"},
		{"too large", strings.Repeat("x", maxFileBytes+1), "", "larger than 8 MB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "SOUL.md", tt.in)
			f := load(t, NewLoader(Options{}), dir)["SOUL.md"]
			if f.Content != tt.want || f.Missing || (tt.warning == "") != (f.Warning == "") || !strings.Contains(f.Warning, tt.warning) {
				t.Errorf("got %q, missing %v, warning %q", f.Content, f.Missing, f.Warning)
			}
		})
	}
}

func TestHardLinksAmongTheEight(t *testing.T) {
	dir := t.TempDir()
	p := write(t, dir, "MEMORY.md", "private")
	if err := os.Link(p, filepath.Join(dir, "AGENTS.md")); err != nil {
		t.Skip(err)
	}
	files := load(t, NewLoader(Options{}), dir)
	for _, name := range []string{"AGENTS.md", "MEMORY.md"} {
		if f := files[name]; f.Content != "" || !strings.Contains(f.Warning, "same file") {
			t.Errorf("%+v", f)
		}
	}
}

func TestLinkInsideIsFollowed(t *testing.T) {
	dir := t.TempDir()
	target := write(t, dir, "CLAUDE.md", "one")
	if err := os.Symlink("CLAUDE.md", filepath.Join(dir, "AGENTS.md")); err != nil {
		t.Skip(err)
	}
	l := NewLoader(Options{})
	for range 2 {
		if f := load(t, l, dir)["AGENTS.md"]; f.Content != "one" || f.Warning != "" {
			t.Errorf("%+v", f)
		}
	}
	if l.Reads() != 1 {
		t.Errorf("%d reads", l.Reads())
	}
	write(t, dir, "CLAUDE.md", "two!")
	if f := load(t, l, dir)["AGENTS.md"]; f.Content != "two!" {
		t.Errorf("the change of %s goes unseen: %+v", target, f)
	}
}

func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("needs permissions that hold")
	}
	dir := t.TempDir()
	if err := os.Chmod(write(t, dir, "SOUL.md", "x"), 0); err != nil {
		t.Fatal(err)
	}
	if f := load(t, NewLoader(Options{}), dir)["SOUL.md"]; f.Missing || !strings.Contains(f.Warning, "permission denied") {
		t.Errorf("%+v", f)
	}
}

func TestUnchangedCostsNoRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		age(t, filepath.Join(dir, name))
	}
	l := NewLoader(Options{})
	load(t, l, dir)
	if l.Reads() != 8 {
		t.Errorf("%d reads at first", l.Reads())
	}
	for range 5 {
		load(t, l, dir)
	}
	if l.Reads() != 8 {
		t.Errorf("%d reads of an unchanged workspace", l.Reads())
	}

	soul := filepath.Join(dir, "SOUL.md")
	info, err := os.Stat(soul)
	if err != nil {
		t.Fatal(err)
	}
	same := strings.Repeat("x", int(info.Size()))
	changes := []struct {
		name string
		do   func() error
		want string
	}{
		{"size", func() error { write(t, dir, "SOUL.md", "other"); return nil }, "other"},
		{"time", func() error {
			write(t, dir, "SOUL.md", "OTHER")
			return os.Chtimes(soul, time.Time{}, info.ModTime().Add(-time.Hour))
		}, "OTHER"},
		{"inode", func() error {
			p := write(t, dir, "new", "third")
			if err := os.Chtimes(p, time.Time{}, info.ModTime().Add(-time.Hour)); err != nil {
				return err
			}
			return os.Rename(p, soul)
		}, "third"},
		{"all", func() error { write(t, dir, "SOUL.md", same); return nil }, same},
	}
	for _, c := range changes {
		before := l.Reads()
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if f := load(t, l, dir)["SOUL.md"]; f.Content != c.want {
			t.Errorf("changed %s: got %q", c.name, f.Content)
		}
		if n := l.Reads() - before; n != 1 {
			t.Errorf("changed %s: %d reads", c.name, n)
		}
	}
	if err := os.Remove(soul); err != nil {
		t.Fatal(err)
	}
	if f := load(t, l, dir)["SOUL.md"]; !f.Missing || f.Content != "" {
		t.Errorf("removed: %+v", f)
	}
}

// A file that was written a moment ago may be written again without a new time
// stamp: it is not trusted to be unchanged.
func TestFreshFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	p := write(t, dir, "SOUL.md", "one")
	l := NewLoader(Options{})
	for _, text := range []string{"one", "two"} {
		write(t, dir, "SOUL.md", text)
		now := time.Now()
		if err := os.Chtimes(p, now, now); err != nil {
			t.Fatal(err)
		}
		if f := load(t, l, dir)["SOUL.md"]; f.Content != text {
			t.Errorf("got %q, want %q", f.Content, text)
		}
	}
}

func TestConcurrentFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	l := NewLoader(Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				files, err := l.Files(dir, Names())
				if err != nil || len(files) != 8 || files[0].Content == "" {
					t.Errorf("%v, %v", files, err)
				}
				if i == 0 {
					name := filepath.Join(dir, "MEMORY.md")
					if err := os.WriteFile(name, []byte(strings.Repeat("m", i+1)), 0o600); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestCaps(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "AGENTS.md", strings.Repeat("ä", 500)+"middle"+strings.Repeat("ö", 500))
	write(t, dir, "SOUL.md", strings.Repeat("s", 300))
	write(t, dir, "USER.md", strings.Repeat("u", 300))
	write(t, dir, "MEMORY.md", "m")
	files := load(t, NewLoader(Options{FileMaxChars: 400, TotalMaxChars: 760}), dir)

	a := files["AGENTS.md"]
	if n := utf8.RuneCountInString(a.Content); n > 400 || n < 395 {
		t.Errorf("AGENTS.md has %d characters", n)
	}
	if !strings.HasPrefix(a.Content, "ääää") || !strings.HasSuffix(a.Content, "öööö") || strings.Contains(a.Content, "middle") {
		t.Errorf("head and tail are not kept: %q", a.Content)
	}
	if !strings.Contains(a.Content, fmt.Sprintf("[... %d characters of AGENTS.md dropped here ...]", a.Dropped)) ||
		!strings.Contains(a.Warning, "context.fileMaxChars") {
		t.Errorf("dropped %d, warning %q: %q", a.Dropped, a.Warning, a.Content)
	}
	kept := strings.Count(a.Content, "ä") + strings.Count(a.Content, "ö")
	if kept+a.Dropped != 1006 {
		t.Errorf("%d kept and %d dropped of 1006", kept, a.Dropped)
	}
	if s := files["SOUL.md"]; s.Dropped != 0 || s.Warning != "" || len(s.Content) != 300 {
		t.Errorf("SOUL.md: %+v", s)
	}
	if u := files["USER.md"]; u.Dropped == 0 || !strings.Contains(u.Warning, "context.totalMaxChars") {
		t.Errorf("USER.md: %+v", u)
	}
	if m := files["MEMORY.md"]; m.Content != "m" && m.Dropped != 1 {
		t.Errorf("MEMORY.md: %+v", m)
	}
}

func TestCutKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.StringN(0, 400, -1).Draw(t, "text")
		n := utf8.RuneCountInString(whole)
		limit := rapid.IntRange(0, 420).Draw(t, "cap of a file")
		most := rapid.IntRange(0, limit).Draw(t, "room")
		p := keep(whole, limit).cut("SOUL.md", room{most: most, total: most < limit})
		if p.chars != utf8.RuneCountInString(p.text) || p.chars > most {
			t.Fatalf("%d characters, said to be %d, at most %d allowed", utf8.RuneCountInString(p.text), p.chars, most)
		}
		if (p.dropped > 0) != (n > most) || (p.warning != "") != (p.dropped > 0) || p.dropped == 0 && p.text != whole {
			t.Fatalf("%d characters, room %d: dropped %d, warning %q, text %q", n, most, p.dropped, p.warning, p.text)
		}
		if p.text == "" || p.dropped == 0 {
			return
		}
		head, tail, ok := strings.Cut(p.text, marker("SOUL.md", p.dropped))
		kept := utf8.RuneCountInString(head) + utf8.RuneCountInString(tail)
		if !ok || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || kept != n-p.dropped || len(head)+len(tail) > len(whole) {
			t.Fatalf("%d characters, %d dropped: head %q, tail %q", n, p.dropped, head, tail)
		}
	})
}
