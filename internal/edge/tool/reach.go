package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"goclaw"
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
	// ErrReadOnly: it may be read, and the run is a worker's.
	ErrReadOnly = errors.New("only the main agent changes it")
	// ErrHome: GoClaw's state, which no agent's tools may touch.
	ErrHome = errors.New("part of GoClaw's own state, outside every agent's reach")
	// ErrOutside: not in the workspace.
	ErrOutside = errors.New("outside the workspace")
	// ErrIrregular: neither a regular file nor a folder.
	ErrIrregular = errors.New("not a regular file")
	// ErrMoved: the path changed while it was being opened.
	ErrMoved = errors.New("changed while it was being opened; try again")
)

// Scope says whose reach it is.
type Scope struct {
	Workspace string // absolute; must exist
	Home      string // GOCLAW_HOME, hidden wherever it lies; "" for none
	Access    goclaw.Access
}

// Reach decides about the paths of one workspace for one run. It is a snapshot
// of where the private files were when it was opened, so open one per call.
// It is safe for concurrent use.
type Reach struct {
	scope Scope
	base  string // the workspace with all links resolved
	root  *os.Root
	rules []rule
	kept  []rule // what may be read, and not changed

	aliases     sync.Once
	aliasErrors map[fileID]error
}

// rule keeps one path, and what it names, out of reach.
type rule struct {
	key    string // folded path relative to the workspace; "" matches by identity alone
	path   string // the same as it is on disk
	info   fs.FileInfo
	except []string // folded paths beneath key that stay in reach
	inside bool     // only what lies beneath is out of reach, not the folder itself
	lifted bool     // in reach by this name; other names of the same files are not
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
	if !r.strict() {
		return nil
	}
	lifted := r.scope.Access.Lifted()
	for _, name := range r.scope.Access.Hidden() {
		r.addPrivate(name, rule{err: ErrPrivate, except: beneath(lifted, name)})
	}
	for _, name := range lifted {
		if !strings.Contains(name, "/") {
			r.addPrivate(name, rule{err: ErrPrivate, lifted: true})
		}
	}
	r.addGitDir()
	output := rule{err: ErrPrivate, inside: true}
	if run := r.scope.Access.Run; run != "" {
		output.except = []string{run}
	}
	r.addPrivate(OutputDir, output)
	for _, name := range r.scope.Access.ReadOnly() {
		for _, path := range r.leads(name) {
			if x, ok := r.complete(rule{path: path, err: ErrReadOnly}); ok {
				r.kept = append(r.kept, x)
			}
		}
	}
	return nil
}

func (r *Reach) strict() bool { return r.scope.Access.Strict }

// beneath lists the paths that lie beneath dir, relative to it.
func beneath(paths []string, dir string) []string {
	var found []string
	for _, p := range paths {
		if rel, ok := strings.CutPrefix(p, dir+"/"); ok {
			found = append(found, rel)
		}
	}
	return found
}

// leads returns where a workspace path is on disk, and where it leads if there
// is a link on the way.
func (r *Reach) leads(rel string) []string {
	path := filepath.Join(r.base, filepath.FromSlash(rel))
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return []string{path, real}
	}
	return []string{path}
}

// addPrivate adds a rule for a workspace path and one for where it leads.
func (r *Reach) addPrivate(rel string, x rule) {
	for _, x.path = range r.leads(rel) {
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

func (r *Reach) addRule(x rule) {
	if x, ok := r.complete(x); ok {
		r.rules = append(r.rules, x)
	}
}

// complete fills in x from its path; ok is false if it can match nothing.
func (r *Reach) complete(x rule) (_ rule, ok bool) {
	if info, err := os.Stat(x.path); err == nil && !x.inside {
		x.info = info
	}
	rel, err := filepath.Rel(r.base, x.path)
	if err == nil && rel != "." && filepath.IsLocal(rel) {
		x.key = fold(filepath.ToSlash(rel))
		except := make([]string, len(x.except))
		for i, e := range x.except {
			except[i] = x.key + "/" + fold(e)
		}
		x.except = except
		return x, true
	}
	// Else nothing that a file in the workspace could be another name of?
	return x, x.info != nil && !errors.Is(x.err, ErrOutside) && (!within(r.base, x.path) || errors.Is(x.err, ErrHome))
}

// Allow decides whether the run may touch rel, a slash-separated path with all
// links resolved, relative to the workspace. info is what is there, or nil if
// nothing is. The decision is about this path and what lies above it by name;
// that each folder on the way was asked about with its info is up to the
// caller (Resolve and Dir do so).
func (r *Reach) Allow(rel string, info fs.FileInfo) error {
	key := fold(rel)
	if r.strict() && strings.HasPrefix(key, tempPrefix) {
		return ErrPrivate // what is being written may become a private file
	}
	lifted := false
	for _, x := range r.rules {
		if x.matches(key, info) {
			return x.err
		}
		lifted = lifted || x.lifts(key)
	}
	if lifted || info == nil || info.IsDir() {
		return nil
	}
	if id, links, ok := identify(info); ok && links > 1 {
		return r.aliasError(id)
	}
	return nil
}

// AllowChange decides whether the run may create, replace or remove rel, a
// result of Resolve, or make folders on the way there.
func (r *Reach) AllowChange(rel string) error {
	for i := 0; len(r.kept) > 0 && i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.base, filepath.FromSlash(rel[:i])))
		if err != nil {
			info = nil
		}
		if r.keeps(rel[:i], info) {
			return ErrReadOnly
		}
	}
	return nil
}

// keeps reports whether what is at rel may be read, and not changed.
func (r *Reach) keeps(rel string, info fs.FileInfo) bool {
	key := fold(rel)
	return slices.ContainsFunc(r.kept, func(x rule) bool { return x.matches(key, info) })
}

// matches reports whether the rule is about what key names.
func (x rule) matches(key string, info fs.FileInfo) bool {
	if x.key != "" && within(key, x.key) {
		return !x.passes(key, info)
	}
	return x.info != nil && info != nil && os.SameFile(x.info, info)
}

// passes reports whether key, which is x.key or beneath it, stays in reach: it
// is an exception, or a folder on the way to one.
func (x rule) passes(key string, info fs.FileInfo) bool {
	if x.inside && key == x.key || x.lifts(key) {
		return true
	}
	return info != nil && info.IsDir() && slices.ContainsFunc(x.except, func(e string) bool { return within(e, key) })
}

// lifts reports whether key is in reach because the rule makes an exception.
func (x rule) lifts(key string) bool {
	if x.lifted && x.key != "" && within(key, x.key) {
		return true
	}
	return slices.ContainsFunc(x.except, func(e string) bool { return within(key, e) })
}

// within reports whether path is dir or lies beneath it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}
