package skills

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"goclaw"
)

//go:embed bundled
var bundled embed.FS

// The scopes, farthest first.
const (
	Bundled   = "bundled"
	Home      = "home"
	Extra     = "extra"
	Workspace = "workspace"
)

// BundledPrefix begins the locations of bundled skills.
const BundledPrefix = "goclaw://skills/"

// fileName is what makes a folder a skill.
const fileName = "SKILL.md"

// maxMemo bounds the workspaces and places that are kept in memory.
const maxMemo = 256

// Options say where to look.
type Options struct {
	Home  string   // GOCLAW_HOME
	Extra []string // further folders, the nearest last

	// Trusted reports whether a workspace's own skills are used. With an error
	// they are not.
	Trusted func(workspace string) (bool, error)
}

// File is a SKILL.md, or what stands in its place.
type File struct {
	Path     string // for people
	Folder   string // the name of its folder
	Scope    string
	Rank     int    // of two with one name the higher one's is nearer
	Location string // what the read tool takes
	Data     []byte // nil if Refused

	Refused, Hint string // why it was not read, and what to do
	Untrusted     bool

	place, dir string // the folder it was found in, and its own; "" if bundled
}

// Tree is what a workspace's agent has. It is shared: don't change it.
type Tree struct {
	Files    []File   // by scope, farthest first, then by name
	Warnings []string // of places that could not be looked into

	// Workspace is the folder whose skills are not used because nobody trusts
	// it; "" if there is none, or its skills are used.
	Workspace string

	parts []part // what it was made of
}

// Library finds skills. It is safe for concurrent use.
type Library struct {
	opts  Options
	own   []File
	reads atomic.Int64

	mu     sync.Mutex
	places map[string]*place // by folder
	trees  map[string]*Tree  // by workspace
}

// New returns a Library. It does no I/O.
func New(o Options) *Library {
	l := &Library{opts: o, places: map[string]*place{}, trees: map[string]*Tree{}}
	entries, err := bundled.ReadDir(Bundled)
	if err != nil {
		panic("skills: the embedded folder is missing: " + err.Error())
	}
	for _, e := range entries {
		data, err := bundled.ReadFile(path.Join(Bundled, e.Name(), fileName))
		if err != nil {
			panic("skills: " + err.Error())
		}
		at := BundledPrefix + e.Name() + "/" + fileName
		l.own = append(l.own, File{Path: at, Location: at, Folder: e.Name(), Scope: Bundled, Data: data})
	}
	return l
}

// Reads counts the files and folders that were read so far, for tests.
func (l *Library) Reads() int64 { return l.reads.Load() }

// Scan finds the skills of an agent with this workspace.
func (l *Library) Scan(workspace string) *Tree {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.places) > maxMemo || len(l.trees) > maxMemo {
		clear(l.places)
		clear(l.trees)
	}
	t := &Tree{}
	l.add(t, Home, 1, filepath.Join(l.opts.Home, "skills"))
	for i, dir := range l.opts.Extra {
		l.add(t, Extra, 2+i, dir)
	}
	l.addWorkspace(t, workspace)
	if old := l.trees[workspace]; old != nil && slices.Equal(old.parts, t.parts) && slices.Equal(old.Warnings, t.Warnings) {
		return old
	}
	t.Files = slices.Clone(l.own)
	for _, p := range t.parts {
		t.addFiles(p)
		if !p.trusted && len(p.files) > 0 {
			t.Workspace = workspace
		}
	}
	l.refuseAround(t, workspace)
	l.trees[workspace] = t
	return t
}

// part is a place and what it is to a tree.
type part struct {
	*place
	dir     string
	scope   string
	rank    int
	trusted bool
}

// add looks into a folder that the person has named, links and all. Only the
// home's may miss.
func (l *Library) add(t *Tree, scope string, rank int, dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && scope == Home {
		return
	}
	if err != nil {
		t.Warnings = append(t.Warnings, fmt.Sprintf("skills in %s: the folder can't be read: %v; mend skills.extraDirs, or the folder", dir, reason(err)))
		return
	}
	l.collect(t, part{dir: real, scope: scope, rank: rank, trusted: true})
}

// addWorkspace looks into the workspace's own folder. A link in its place is
// not followed: nobody has named what it leads to.
func (l *Library) addWorkspace(t *Tree, workspace string) {
	dir := filepath.Join(workspace, "skills")
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		dir = filepath.Join(real, "skills")
	}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		t.Warnings = append(t.Warnings, fmt.Sprintf("skills in %s: the folder can't be read: %v", dir, reason(err)))
		return
	case info.Mode()&fs.ModeSymlink != 0:
		t.Warnings = append(t.Warnings, fmt.Sprintf("skills in %s: is a link, which is not followed; make it a folder, or name its target in skills.extraDirs", dir))
		return
	}
	trusted, err := l.opts.Trusted(workspace)
	if err != nil {
		t.Warnings = append(t.Warnings, fmt.Sprintf("skills in %s: %v", dir, err))
	}
	l.collect(t, part{dir: dir, scope: Workspace, rank: 2 + len(l.opts.Extra), trusted: trusted && err == nil})
}

func (l *Library) collect(t *Tree, p part) {
	p.place = l.look(p.dir)
	t.parts = append(t.parts, p)
	if p.problem != "" {
		t.Warnings = append(t.Warnings, fmt.Sprintf("skills in %s: %s", p.dir, p.problem))
	}
}

func (t *Tree) addFiles(p part) {
	for _, f := range p.files {
		location := path.Join("skills", f.at, f.name)
		if p.scope != Workspace {
			location = filepath.ToSlash(filepath.Join(p.dir, f.at, f.name))
		}
		t.Files = append(t.Files, File{
			Path: filepath.Join(p.dir, f.folder, f.name), Folder: f.folder, Scope: p.scope, Rank: p.rank,
			Location: location, Data: f.data, Refused: f.refused, Hint: f.hint, Untrusted: !p.trusted,
			place: p.dir, dir: filepath.Join(p.dir, f.at),
		})
	}
}

// refuseAround refuses folders that hold more than a skill: with their files
// in reach, GoClaw's own state or the whole workspace would be.
func (l *Library) refuseAround(t *Tree, workspace string) {
	for _, inner := range []struct{ what, path string }{{"GOCLAW_HOME", l.opts.Home}, {"the workspace", workspace}} {
		real, err := filepath.EvalSymlinks(inner.path)
		if err != nil {
			continue
		}
		for i := range t.Files {
			f := &t.Files[i]
			if f.dir != "" && within(real, f.dir) {
				f.Refused, f.Hint, f.Data = "its folder holds "+inner.what, "move the skill into a folder of its own", nil
			}
		}
	}
}

// Shelf returns the folder of a file for the tools that read. ok is false if
// there is no need of one: the folder lies in the workspace.
func (t *Tree) Shelf(f File, workspace string) (shelf goclaw.Shelf, ok bool) {
	if f.Scope == Bundled {
		sub, err := fs.Sub(bundled, path.Join(Bundled, f.Folder))
		return goclaw.Shelf{Prefix: BundledPrefix + f.Folder + "/", FS: sub}, err == nil
	}
	real, err := filepath.EvalSymlinks(workspace)
	if f.dir == "" || f.Refused != "" || err != nil || within(f.dir, real) {
		return goclaw.Shelf{}, false
	}
	rel, err := filepath.Rel(f.place, f.dir)
	if err != nil {
		return goclaw.Shelf{}, false
	}
	return goclaw.Shelf{Prefix: filepath.ToSlash(f.dir) + "/", FS: folder{f.place, rel}, Dir: f.dir}, true
}

// within reports whether path is dir or lies beneath it; both are clean.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// reason is the cause of err without the path, which the reader knows.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return strings.TrimSpace(err.Error())
}
