package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// OutputDir is where commands keep output that was too long to return, one
// folder per run, relative to the workspace.
const OutputDir = ".goclaw/output"

// tempPrefix begins the names under which files at the workspace's root are
// written before they get their own.
const tempPrefix = ".goclaw-"

// StageDir is where a sandbox builds what a worker's command sees in the place
// of the workspace's root. The files there are second names of public ones.
const StageDir = OutputDir + "/.stages"

// Why a path is refused. Errors of this package wrap them.
var (
	// ErrPrivate: the main agent's own, and the run is a worker's.
	ErrPrivate = errors.New("private to the main agent, outside this worker's reach")
	// ErrHome: GoClaw's state, which no agent's tools may touch.
	ErrHome = errors.New("part of GoClaw's own state, outside every agent's reach")
	// ErrOutside: not in the workspace.
	ErrOutside = errors.New("outside the workspace")
	// ErrIrregular: neither a regular file nor a folder.
	ErrIrregular = errors.New("not a regular file")
	// ErrMoved: the path changed while it was being opened.
	ErrMoved = errors.New("changed while it was being opened; try again")
)

// privateNames are the entries at the workspace's root that belong to the main
// agent alone. The history in .git may hold any of the others.
var privateNames = [...]string{
	"SOUL.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md",
	"MEMORY.md", "memory", ".git",
}

// Scope says whose reach it is.
type Scope struct {
	Workspace string // absolute; must exist
	Home      string // GOCLAW_HOME, hidden wherever it lies; "" for none
	Strict    bool   // private files are out of reach
	Run       string // whose kept output stays in reach when Strict
}

// Reach decides about the paths of one workspace for one run. It is a snapshot
// of where the private files were when it was opened, so open one per call.
// It is safe for concurrent use.
type Reach struct {
	scope Scope
	base  string // the workspace with all links resolved
	root  *os.Root
	rules []rule

	aliases     sync.Once
	aliasErrors map[fileID]error
}

// rule keeps one path, and what it names, out of reach.
type rule struct {
	key    string // folded path relative to the workspace; "" matches by identity alone
	path   string // the same as it is on disk
	info   fs.FileInfo
	except string // folded path beneath key that stays in reach
	inside bool   // only what lies beneath is out of reach, not the folder itself
	err    error
}

// Open resolves the workspace and finds what is private in it. The caller
// closes the Reach.
func Open(s Scope) (*Reach, error) {
	if !filepath.IsAbs(s.Workspace) {
		return nil, fmt.Errorf("workspace %q: must be an absolute path", s.Workspace)
	}
	base, err := filepath.EvalSymlinks(s.Workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	r := &Reach{scope: s, base: base, root: root}
	if err := r.findRules(); err != nil {
		root.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the workspace.
func (r *Reach) Close() error { return r.root.Close() }

// Base is the workspace's path with all links resolved.
func (r *Reach) Base() string { return r.base }

func (r *Reach) findRules() error {
	for _, sys := range []string{"/proc", "/sys", "/dev"} {
		r.addRule(rule{path: sys, err: ErrOutside})
	}
	if r.scope.Home != "" {
		home, err := filepath.Abs(r.scope.Home)
		if err != nil {
			return fmt.Errorf("GOCLAW_HOME: %w", err)
		}
		r.addRule(rule{path: home, err: ErrHome})
		if real, err := filepath.EvalSymlinks(home); err == nil {
			if real == r.base {
				return fmt.Errorf("workspace %s is GOCLAW_HOME itself: %w", r.base, ErrHome)
			}
			r.addRule(rule{path: real, err: ErrHome})
		}
	}
	if !r.scope.Strict {
		return nil
	}
	for _, name := range privateNames {
		r.addPrivate(name, rule{err: ErrPrivate})
	}
	r.addGitDir()
	r.addPrivate(OutputDir, rule{err: ErrPrivate, inside: true, except: r.scope.Run})
	return nil
}

// addPrivate adds a rule for a workspace path and one for where it leads.
func (r *Reach) addPrivate(rel string, x rule) {
	x.path = filepath.Join(r.base, filepath.FromSlash(rel))
	r.addRule(x)
	if real, err := filepath.EvalSymlinks(x.path); err == nil && real != x.path {
		x.path = real
		r.addRule(x)
	}
}

// addGitDir follows a .git file to the repository that it names.
func (r *Reach) addGitDir() {
	f, _, err := (&Dir{Root: r.root}).open(".git")
	if err != nil {
		return
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := f.Read(head)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(head[:n])), "gitdir: ")
	if !ok {
		return
	}
	if filepath.IsAbs(dir) {
		r.addRule(rule{path: dir, err: ErrPrivate})
		return
	}
	r.addPrivate(dir, rule{err: ErrPrivate})
}

// addRule completes x from its path and keeps it if it can match anything.
func (r *Reach) addRule(x rule) {
	if info, err := os.Stat(x.path); err == nil && !x.inside {
		x.info = info
	}
	rel, err := filepath.Rel(r.base, x.path)
	if err == nil && rel != "." && filepath.IsLocal(rel) {
		x.key = fold(filepath.ToSlash(rel))
		if x.except != "" {
			x.except = x.key + "/" + fold(x.except)
		}
	} else if x.info == nil || errors.Is(x.err, ErrOutside) || within(r.base, x.path) && !errors.Is(x.err, ErrHome) {
		return // nothing that a file in the workspace could be another name of
	}
	r.rules = append(r.rules, x)
}

// Allow decides whether the run may touch rel, a slash-separated path with all
// links resolved, relative to the workspace. info is what is there, or nil if
// nothing is. The decision is about this path and what lies above it by name;
// that each folder on the way was asked about with its info is up to the
// caller (Resolve and Dir do so).
func (r *Reach) Allow(rel string, info fs.FileInfo) error {
	key := fold(rel)
	if r.scope.Strict && strings.HasPrefix(key, tempPrefix) {
		return ErrPrivate // what is being written may become a private file
	}
	for _, x := range r.rules {
		if x.covers(key) || x.info != nil && info != nil && os.SameFile(x.info, info) {
			return x.err
		}
	}
	if info == nil || info.IsDir() {
		return nil
	}
	if id, links, ok := identify(info); ok && links > 1 {
		return r.aliasError(id)
	}
	return nil
}

func (x rule) covers(key string) bool {
	if x.key == "" || !within(key, x.key) || x.inside && key == x.key {
		return false
	}
	return x.except == "" || !within(key, x.except)
}

// within reports whether path is dir or lies beneath it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}
