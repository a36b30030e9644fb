package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileID names a file apart from its path.
type fileID struct{ dev, ino uint64 }

// aliasError says whether the file id, which has several names, is private
// under one of them.
func (r *Reach) aliasError(id fileID) error {
	r.aliases.Do(r.findAliases)
	return r.aliasErrors[id]
}

// findAliases collects the files in private folders that have more than one
// name. Only those can be reached by another.
func (r *Reach) findAliases() {
	r.aliasErrors = map[fileID]error{}
	for _, x := range r.rules {
		if errors.Is(x.err, ErrOutside) || x.info == nil && !x.inside {
			continue
		}
		// What can't be read here can't be linked to by name here either.
		_ = filepath.WalkDir(x.path, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if d.IsDir() {
				key := fold(r.relative(path))
				if path == r.base || key == StageDir || x.inside && x.lifts(key) {
					return fs.SkipDir // what is here is in reach
				}
				return nil
			}
			info, err := d.Info()
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
			if id, links, ok := identify(info); ok && links > 1 {
				r.aliasErrors[id] = x.err
			}
			return nil
		})
	}
}

func (r *Reach) relative(path string) string {
	rel, err := filepath.Rel(r.base, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// Hidden is what a sandbox must keep from a command that sees the workspace.
type Hidden struct {
	// Paths are absolute: private folders and files inside the workspace
	// below its root entries, other names of private files, and GOCLAW_HOME
	// wherever it lies.
	Paths []string
	// Shown are folders beneath Paths that may be read.
	Shown []string
	// Private reports whether an entry at the workspace's root must neither
	// be seen nor be made. It is nil when there is none.
	Private func(name string) bool
	// Kept reports whether an entry at the root may be seen, and neither be
	// changed nor be made. It is nil when Private is.
	Kept func(name string) bool
	// Lent are the files that may be read although they lie in a folder that
	// Private hides.
	Lent []Lent
	// Rule tells two answers of Private and Kept apart.
	Rule string
}

// Lent is a file in reach within a folder that is not.
type Lent struct {
	Name string // as it is known: relative to the workspace, with slashes
	Path string // where it is: absolute, without links
}

// Hidden collects what to hide. It walks the workspace only if a private file
// has a second name.
func (r *Reach) Hidden(ctx context.Context) (Hidden, error) {
	var h Hidden
	for _, x := range r.rules {
		if errors.Is(x.err, ErrOutside) || x.lifted {
			continue
		}
		h.Paths = append(h.Paths, x.path)
		if errors.Is(x.err, ErrPrivate) && x.key != "" && !x.inside && !atRoot(x.key) && x.info != nil && !x.info.IsDir() {
			// A command's view of one file can be undone by replacing the
			// file from outside, a folder's can't.
			h.Paths = append(h.Paths, filepath.Dir(x.path))
		}
		if x.inside && len(x.except) > 0 {
			own := filepath.Join(x.path, r.scope.Access.Run)
			if info, err := os.Lstat(own); err == nil && info.IsDir() {
				h.Shown = append(h.Shown, own)
			}
		}
	}
	r.aliases.Do(r.findAliases)
	if len(r.aliasErrors) > 0 || r.rootFileLinked() {
		others, err := r.otherNames(ctx)
		if err != nil {
			return Hidden{}, err
		}
		h.Paths = append(h.Paths, others...)
	}
	slices.Sort(h.Paths)
	h.Paths = slices.Compact(h.Paths)
	if !r.strict() {
		return h, nil
	}
	h.Private = func(name string) bool { return r.Allow(name, r.rootEntry(name)) != nil || r.lends(name) }
	h.Kept = func(name string) bool { return r.keeps(name, r.rootEntry(name)) }
	h.Rule = strings.Join(r.scope.Access.Lifted(), "\n")
	var err error
	h.Lent, err = r.lent(ctx)
	return h, err
}

// rootEntry looks at an entry of the workspace's root; nil if there is none.
func (r *Reach) rootEntry(name string) fs.FileInfo {
	info, err := r.root.Lstat(name)
	if err != nil {
		return nil
	}
	return info
}

// lends reports whether an entry of the root is a private folder in which some
// path was lifted.
func (r *Reach) lends(name string) bool {
	key := fold(name)
	return slices.ContainsFunc(r.rules, func(x rule) bool { return x.key == key && len(x.except) > 0 })
}

// lent finds the files that were lifted within private folders.
func (r *Reach) lent(ctx context.Context) ([]Lent, error) {
	var found []Lent
	for _, name := range r.scope.Access.Lifted() {
		if !strings.Contains(name, "/") || !r.lends(strings.SplitN(name, "/", 2)[0]) {
			continue
		}
		rel, err := r.resolve(name)
		if err != nil {
			continue // not there, or leads to what is private
		}
		if info, err := r.root.Lstat(filepath.FromSlash(rel)); err == nil && info.Mode().IsRegular() {
			found = append(found, Lent{name, filepath.Join(r.base, filepath.FromSlash(rel))})
			continue
		}
		dir, err := r.Dir(rel)
		if err != nil {
			continue
		}
		_, err = dir.Walk(ctx, func(Entry) bool { return false }, func(_ *Dir, e Entry) error {
			if e.Mode().IsRegular() {
				found = append(found, Lent{name + strings.TrimPrefix(e.Path, rel), filepath.Join(r.base, filepath.FromSlash(e.Path))})
			}
			return nil
		})
		dir.Close()
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rootFileLinked reports whether a private file at the root has another name.
func (r *Reach) rootFileLinked() bool {
	return slices.ContainsFunc(r.rules, func(x rule) bool {
		if x.info == nil || x.info.IsDir() {
			return false
		}
		_, links, ok := identify(x.info)
		return !ok || links > 1
	})
}

// otherNames finds the files of the workspace that are private by identity.
func (r *Reach) otherNames(ctx context.Context) ([]string, error) {
	var found []string
	err := filepath.WalkDir(r.base, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil || path == r.base {
			return nil
		}
		if r.Allow(r.relative(path), info) == nil {
			return nil
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		found = append(found, path)
		return nil
	})
	return found, err
}

func atRoot(key string) bool { return filepath.Dir(filepath.FromSlash(key)) == "." }
