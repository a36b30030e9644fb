package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Dir is a folder of the workspace that was entered one component at a time,
// each allowed and none of them a link. The names given to its methods are
// single components. The caller closes it.
type Dir struct {
	*os.Root
	Path  string // relative to the workspace, with slashes
	reach *Reach
}

// Entry is one entry of a Dir.
type Entry struct {
	fs.FileInfo
	Path string // relative to the workspace, with slashes
}

// Dir enters rel, a result of Resolve.
func (r *Reach) Dir(rel string) (*Dir, error) { return r.enter(rel, false) }

// MakeDir enters rel, a result of Resolve, and creates what is missing.
func (r *Reach) MakeDir(rel string) (*Dir, error) { return r.enter(rel, true) }

func (r *Reach) enter(rel string, create bool) (*Dir, error) {
	root, err := r.root.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	dir := &Dir{Root: root, Path: ".", reach: r}
	if rel == "." {
		return dir, nil
	}
	for name := range strings.SplitSeq(rel, "/") {
		if create {
			if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				dir.Close()
				return nil, fmt.Errorf("%s: %w", rel, unwrapPath(err))
			}
		}
		sub, err := dir.Sub(name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = sub
	}
	return dir, nil
}

// Sub enters a folder of d.
func (d *Dir) Sub(name string) (*Dir, error) {
	rel := path.Join(d.Path, name)
	info, err := d.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rel, unwrapPath(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", rel, syscall.ENOTDIR)
	}
	if err := d.reach.Allow(rel, info); err != nil {
		return nil, fmt.Errorf("%s: %w", rel, err)
	}
	sub, err := d.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rel, unwrapPath(err))
	}
	if opened, err := sub.Stat("."); err != nil || !os.SameFile(opened, info) {
		sub.Close()
		return nil, fmt.Errorf("%s: %w", rel, ErrMoved)
	}
	return &Dir{Root: sub, Path: rel, reach: d.reach}, nil
}

// OpenFile opens a regular file of d for reading.
func (d *Dir) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	rel := path.Join(d.Path, name)
	f, info, err := d.open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", rel, unwrapPath(err))
	}
	if err := d.reach.Allow(rel, info); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", rel, err)
	}
	return f, info, nil
}

// open opens a regular file that is no link; nothing it does can block.
func (d *Dir) open(name string) (*os.File, fs.FileInfo, error) {
	info, err := d.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, ErrIrregular
	}
	f, err := d.Root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err != nil || !os.SameFile(opened, info) {
		f.Close()
		return nil, nil, ErrMoved
	}
	return f, opened, nil
}

// List returns the entries of d that are in reach, by name, and how many are
// not. A link is in reach if it leads to something that is.
func (d *Dir) List() (entries []Entry, hidden int, err error) {
	f, err := d.Open(".")
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", d.Path, unwrapPath(err))
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", d.Path, unwrapPath(err))
	}
	slices.Sort(names)
	for _, name := range names {
		rel := path.Join(d.Path, name)
		info, err := d.Lstat(name)
		if err != nil {
			continue // gone since
		}
		refused := d.reach.Allow(rel, info)
		if refused == nil && info.Mode()&fs.ModeSymlink != 0 {
			if _, refused = d.reach.resolve(rel); errors.Is(refused, ErrOutside) {
				refused = nil // its name is no secret, and following it fails
			}
		}
		if refused != nil {
			hidden++
			continue
		}
		entries = append(entries, Entry{FileInfo: info, Path: rel})
	}
	return entries, hidden, nil
}

// Walk visits what lies beneath d in order of names, without following links
// or entering folders that skip names. It returns how many entries were out of
// reach. An error of visit ends the walk; fs.SkipAll ends it without error.
// Folders that can't be read are passed over.
func (d *Dir) Walk(ctx context.Context, skip func(Entry) bool, visit func(*Dir, Entry) error) (hidden int, err error) {
	hidden, err = d.walk(ctx, skip, visit)
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return hidden, err
}

func (d *Dir) walk(ctx context.Context, skip func(Entry) bool, visit func(*Dir, Entry) error) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	entries, hidden, err := d.List()
	if err != nil {
		return hidden, nil
	}
	for _, e := range entries {
		if e.IsDir() && skip(e) {
			continue
		}
		if err := visit(d, e); err != nil {
			return hidden, err
		}
		if !e.IsDir() {
			continue
		}
		sub, err := d.Sub(e.Name())
		if err != nil {
			continue
		}
		n, err := sub.walk(ctx, skip, visit)
		sub.Close()
		hidden += n
		if err != nil {
			return hidden, err
		}
	}
	return hidden, nil
}
