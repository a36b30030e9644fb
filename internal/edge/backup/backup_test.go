package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/edge/backup"
)

var now = time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC)

// lay makes files of a folder: text by path. A path with a slash at its end is
// a folder.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(path, "/") {
			err = os.MkdirAll(at, 0o755)
		} else {
			err = os.WriteFile(at, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree lists what is in a folder, with modes and the texts of files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %v", filepath.ToSlash(rel), info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(data)
		}
		list = append(list, line)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

// site is a home with something of everything, and a workspace outside of it.
type site struct {
	dir, home, outside string
}

func newSite(t *testing.T) site {
	t.Helper()
	dir := t.TempDir()
	s := site{dir: dir, home: filepath.Join(dir, "home"), outside: filepath.Join(dir, "far", "project")}
	lay(t, s.home, map[string]string{
		"goclaw.json": "the file's own text", "goclaw.db": "live", "goclaw.db-wal": "log", "goclaw.db.before-0002": "old",
		"lock": "", "gateway.json": "{}", "token": "hush", "secrets.key": "hush", "secrets.age": "sealed", "secrets.json": "names",
		"trusted.json": "trusted", "agents/a.md": "definition", "agents/team/b.md": "other", "skills/s/SKILL.md": "skill",
		"workspace/AGENTS.md": "rules", "workspace/memory/day ☀.md": "note", "workspace/.git/refs/tags/": "",
		"strange.txt": "?", "memory.db": "index", "goclaw.json.new": "half",
	})
	lay(t, s.outside, map[string]string{"README.md": "far", "bin/run": "#!"})
	if err := os.Chmod(filepath.Join(s.outside, "bin", "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s site) source() backup.Source {
	return backup.Source{
		Home: s.home, Version: "1.2.3", Now: now, Database: "sqlite",
		Copy: func(_ context.Context, to string) (int, error) {
			return 7, os.WriteFile(to, []byte("a copy of the database"), 0o600)
		},
		Config: []byte("{}"), Withheld: []string{"gateway.token"},
		Workspaces: []backup.Workspace{{Agent: "main", Path: filepath.Join(s.home, "workspace")}, {Agent: "coder", Path: s.outside}},
	}
}

func (s site) target() backup.Target {
	return backup.Target{
		Home: filepath.Join(s.dir, "new", "home"), Now: now,
		CheckDatabase: func(_ context.Context, path string) (int, error) {
			data, err := os.ReadFile(path)
			if err == nil && string(data) != "a copy of the database" {
				err = errors.New("it is damaged; nothing was changed")
			}
			return 7, err
		},
	}
}

func (s site) write(t *testing.T, source backup.Source) backup.Report {
	t.Helper()
	r, err := backup.Write(t.Context(), filepath.Join(s.dir, "out.zip"), source)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// left are the names of what a report says was left out.
func left(r backup.Report) string {
	var names []string
	for _, l := range r.Left {
		names = append(names, filepath.Base(l.Path))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestRoundTrip(t *testing.T) {
	s := newSite(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(s.home, "workspace", "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(s.home, "workspace", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	lay(t, s.home, map[string]string{"workspace/odd\\name": "x"})
	old := now.Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.home, "workspace", "AGENTS.md"), old, old); err != nil {
		t.Fatal(err)
	}
	before := tree(t, s.home)
	r := s.write(t, s.source())
	if after := tree(t, s.home); !slices.Equal(after, before) {
		t.Errorf("the home was changed:\n%q\n%q", before, after)
	}
	if info, err := os.Stat(r.File); err != nil || info.Mode().Perm() != 0o600 || info.Size() != r.Size {
		t.Errorf("archive %v, error %v", info, err)
	}
	if got, want := left(r), `goclaw.db.before-0002 link memory.db odd\name pipe project secrets.key strange.txt token`; got != want {
		t.Errorf("left out: %s\nwant: %s", got, want)
	}
	if r.Schema != 7 || r.Home != s.home || !r.CreatedAt.Equal(now) || r.Secrets {
		t.Errorf("manifest %+v", r.Manifest)
	}

	target := s.target()
	done, err := backup.Restore(t.Context(), r.File, target)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"agents drwx------", "agents/a.md -rw------- definition", "agents/team drwx------", "agents/team/b.md -rw------- other",
		"goclaw.db -rw------- a copy of the database", "goclaw.json -rw------- {}",
		"secrets.age -rw------- sealed", "secrets.json -rw------- names",
		"skills drwx------", "skills/s drwx------", "skills/s/SKILL.md -rw------- skill", "trusted.json -rw------- trusted",
		"workspace drwx------", "workspace/.git drwx------", "workspace/.git/refs drwx------", "workspace/.git/refs/tags drwxr-xr-x",
		"workspace/AGENTS.md -rw------- rules", "workspace/memory drwx------", "workspace/memory/day ☀.md -rw------- note",
	}
	if got := tree(t, target.Home); !slices.Equal(got, want) {
		t.Errorf("restored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if info, err := os.Stat(filepath.Join(target.Home, "workspace", "AGENTS.md")); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("%v, error %v", info, err)
	}
	if done.Files != 10 || done.Aside != "" || done.Schema != 7 || done.Version != "1.2.3" || !slices.Equal(done.Withheld, []string{"gateway.token"}) {
		t.Errorf("report %+v", done)
	}
	if info, err := os.Stat(target.Home); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("home %v, error %v", info, err)
	}
	if beside := tree(t, filepath.Dir(target.Home)); len(beside) != len(want)+1 {
		t.Errorf("something is left beside the home: %q", beside)
	}
}

func TestSecrets(t *testing.T) {
	s := newSite(t)
	source := s.source()
	source.Secrets = true
	r := s.write(t, source)
	if got := left(r); strings.Contains(got, "token") || strings.Contains(got, "secrets.key") || !r.Manifest.Secrets {
		t.Errorf("left out: %s", got)
	}
	if _, err := backup.Restore(t.Context(), r.File, s.target()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"token", "secrets.key"} {
		if data, err := os.ReadFile(filepath.Join(s.target().Home, name)); err != nil || string(data) != "hush" {
			t.Errorf("%s: %q, error %v", name, data, err)
		}
	}
}

// TestOutside keeps workspaces from outside of the home, two agents' common one
// once, and puts them back only where nothing is.
func TestOutside(t *testing.T) {
	s := newSite(t)
	source := s.source()
	source.Outside = true
	// The home lies in a workspace, and a workspace in another one.
	source.Workspaces = append(source.Workspaces, backup.Workspace{Agent: "twin", Path: s.outside},
		backup.Workspace{Agent: "inner", Path: filepath.Join(s.home, "workspace", "memory")},
		backup.Workspace{Agent: "none", Path: filepath.Join(s.dir, "nowhere")},
		backup.Workspace{Agent: "all", Path: s.dir}, backup.Workspace{Agent: "self", Path: s.home})
	r := s.write(t, source)
	if got, want := left(r), "goclaw.db.before-0002 home home memory.db nowhere secrets.key strange.txt token"; got != want {
		t.Errorf("left out: %s\nwant: %s", got, want)
	}
	for _, e := range r.Entries {
		if strings.Contains(e.Path, "out.zip") || strings.HasPrefix(e.Path, "workspaces/all/home") || strings.HasPrefix(e.Path, "workspaces/twin") ||
			strings.HasPrefix(e.Path, "workspaces/all/far/project") {
			t.Errorf("entry %s", e.Path)
		}
	}
	target := s.target()
	target.Outside = true
	beside := tree(t, s.dir)
	if _, err := backup.Restore(t.Context(), r.File, target); err == nil || !strings.Contains(err.Error(), "is not empty; move it away") {
		t.Fatalf("over a workspace: error %v", err)
	}
	if !slices.Equal(tree(t, s.dir), beside) {
		t.Error("something was touched")
	}
	elsewhere := t.TempDir()
	archive := filepath.Join(elsewhere, "out.zip")
	if err := os.Rename(r.File, archive); err != nil {
		t.Fatal(err)
	}
	project := tree(t, s.outside)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	target.Outside = false
	done, err := backup.Restore(t.Context(), archive, target)
	if err != nil || len(done.Workspaces) != 0 || len(done.Unrestored) != 3 {
		t.Fatalf("report %+v, error %v", done, err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	target.Home, target.Outside = filepath.Join(elsewhere, "home"), true
	done, err = backup.Restore(t.Context(), archive, target)
	if err != nil || len(done.Workspaces) != 3 {
		t.Fatalf("report %+v, error %v", done, err)
	}
	if got := tree(t, s.outside); !slices.Equal(got, project) {
		t.Errorf("restored: %q, want %q", got, project)
	}
}

// TestPostgres leaves a database in the home alone that is not used.
func TestPostgres(t *testing.T) {
	s := newSite(t)
	source := s.source()
	source.Database, source.Copy = "postgres", nil
	r := s.write(t, source)
	if !strings.Contains(left(r), "goclaw.db ") || r.Database != "postgres" || r.Schema != 0 {
		t.Errorf("left out: %s; %+v", left(r), r.Manifest)
	}
	done, err := backup.Restore(t.Context(), r.File, s.target())
	if err != nil || done.Database != "postgres" {
		t.Errorf("report %+v, error %v", done, err)
	}
}

// TestWriteFails leaves nothing behind, and never writes over anything.
func TestWriteFails(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(s.dir, "out.zip")
	source := s.source()
	source.Copy = func(context.Context, string) (int, error) { return 0, errors.New("the disk is full") }
	before := tree(t, s.dir)
	if _, err := backup.Write(t.Context(), file, source); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got error %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := backup.Write(ended, file, s.source()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if !slices.Equal(tree(t, s.dir), before) {
		t.Errorf("left behind: %q", tree(t, s.dir))
	}
	lay(t, s.dir, map[string]string{"out.zip": "mine"})
	if _, err := backup.Write(t.Context(), file, s.source()); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("got error %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("%q, error %v", data, err)
	}
}

// TestForce moves aside what is there, and only if it is told to.
func TestForce(t *testing.T) {
	s := newSite(t)
	r := s.write(t, s.source())
	target := s.target()
	lay(t, target.Home, map[string]string{"lock": "", "gateway.json": "{}", ".goclaw-backup-left/goclaw.db": "half"})
	if _, err := backup.Restore(t.Context(), r.File, target); err != nil {
		t.Fatalf("into a home with nothing in it: %v", err)
	}
	lay(t, target.Home, map[string]string{"workspace/mine.md": "newer"})
	before := tree(t, filepath.Dir(target.Home))
	if _, err := backup.Restore(t.Context(), r.File, target); err == nil || !strings.Contains(err.Error(), "is not empty; --force") {
		t.Fatalf("got error %v", err)
	}
	if !slices.Equal(tree(t, filepath.Dir(target.Home)), before) {
		t.Error("something was touched")
	}
	there := tree(t, target.Home)
	target.Force = true
	done, err := backup.Restore(t.Context(), r.File, target)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(target.Home, "before-restore-20260301-102030"); done.Aside != want || !slices.Equal(tree(t, done.Aside), there) {
		t.Errorf("aside: %s %q", done.Aside, tree(t, done.Aside))
	}
	if _, err := os.Stat(filepath.Join(target.Home, "workspace", "mine.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("mixed with what was there: %v", err)
	}
	lay(t, filepath.Dir(target.Home), map[string]string{"home.before-restore-20260301-102030/x": ""})
	if _, err := backup.Restore(t.Context(), r.File, target); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("beside what a restore has left that was killed: error %v", err)
	}
	// A home that is a link stays one.
	real := filepath.Join(s.dir, "real")
	target.Home = filepath.Join(s.dir, "linked")
	lay(t, real, map[string]string{"token": "old"})
	if err := os.Symlink(real, target.Home); err != nil {
		t.Fatal(err)
	}
	if done, err = backup.Restore(t.Context(), r.File, target); err != nil || done.Aside != filepath.Join(target.Home, "before-restore-20260301-102030") {
		t.Fatalf("aside %s, error %v", done.Aside, err)
	}
	if info, err := os.Lstat(target.Home); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v, error %v", info, err)
	}
	if data, err := os.ReadFile(filepath.Join(done.Aside, "token")); err != nil || string(data) != "old" {
		t.Errorf("aside: %q, error %v", data, err)
	}
}
