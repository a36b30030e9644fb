package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"goclaw"
	"goclaw/internal/edge/tool"
)

// scheme begins the paths of what is in the program and on no disk.
const scheme = "goclaw://"

// shelf finds the shelf that a path lies on, and the path within it. What
// leads out of a shelf by ".." lies on none.
func (c *call) shelf(p string) (s goclaw.Shelf, rel string, ok bool) {
	if c.options.Shelves == nil || !filepath.IsAbs(p) && !strings.HasPrefix(p, scheme) {
		return goclaw.Shelf{}, "", false
	}
	p = join(p, "")
	for _, s := range c.options.Shelves(c.profile) {
		if p+"/" == s.Prefix {
			return s, ".", true
		}
		if rest, in := strings.CutPrefix(p, s.Prefix); in {
			return s, rest, true
		}
	}
	return goclaw.Shelf{}, "", false
}

// join appends a relative path, and cleans the whole.
func join(p, rel string) string {
	if rest, ok := strings.CutPrefix(p, scheme); ok {
		return scheme + strings.TrimPrefix(path.Join("/", rest, rel), "/")
	}
	if filepath.IsAbs(p) {
		p = filepath.ToSlash(filepath.Clean(p))
	}
	return path.Join(p, rel)
}

// refuseShelf says why a path can't be written that lies on a shelf.
func (c *call) refuseShelf(p string) error {
	s, _, ok := c.shelf(p)
	switch {
	case ok:
		return fmt.Errorf("%s: can only be read: %s belongs to a skill; to change it, copy its folder into skills/ of the workspace", p, strings.TrimSuffix(s.Prefix, "/"))
	case strings.HasPrefix(p, scheme):
		return fmt.Errorf("%s: can't be written: what begins with %s is part of GoClaw; give a path in the workspace", p, scheme)
	}
	return nil
}

// openShelved opens a regular file of a shelf.
func openShelved(s goclaw.Shelf, rel string) (fs.File, fs.FileInfo, error) {
	f, err := s.FS.Open(rel)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = syscall.EISDIR
	}
	if err == nil && !info.Mode().IsRegular() {
		err = tool.ErrIrregular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// explainShelved adds to the error of a path on a shelf what the model can do.
func explainShelved(s goclaw.Shelf, p string, err error) error {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s: is a folder; use ls", p)
	case errors.Is(err, tool.ErrIrregular):
		return fmt.Errorf("%s: not a regular file (a device, pipe or socket)", p)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrInvalid):
		return fmt.Errorf("%s: no such file; ls %s shows those there are", p, s.Prefix)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", p, err)
}

func (c *call) lsShelf(s goclaw.Shelf, rel, p string) (string, error) {
	if info, err := fs.Stat(s.FS, rel); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s: is a file; use read", p)
	}
	entries, err := fs.ReadDir(s.FS, rel)
	if err != nil {
		return "", explainShelved(s, p, err)
	}
	out := lines{max: c.options.MaxOutput}
	for i, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone since
		}
		if i == maxEntries || !out.add(e.Name()+suffix(info)) {
			out.end(fmt.Sprintf("[%d more entries; use glob to narrow]", len(entries)-i))
			break
		}
	}
	if len(entries) == 0 {
		out.end("[empty]")
	}
	return out.String(), nil
}

func (c *call) globShelf(ctx context.Context, s goclaw.Shelf, rel, pattern string) (string, error) {
	var found []tool.Entry
	err := walkShelf(ctx, s, rel, func(name string, info fs.FileInfo) error {
		beneath := name
		if rel != "." {
			beneath = strings.TrimPrefix(name, rel+"/")
		}
		if doublestar.MatchUnvalidated(pattern, beneath) {
			found = append(found, tool.Entry{FileInfo: info, Path: s.Prefix + name})
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("glob: %w", err)
	}
	return c.matches(found, 0), nil
}

// searchShelf searches a file of a shelf, or those beneath a folder.
func searchShelf(ctx context.Context, s *search, shelf goclaw.Shelf, rel, p string) error {
	info, err := fs.Stat(shelf.FS, rel)
	if err != nil {
		return explainShelved(shelf, p, err)
	}
	single := !info.IsDir()
	err = walkShelf(ctx, shelf, rel, func(name string, _ fs.FileInfo) error {
		if !single && !s.wants(name) {
			return nil
		}
		f, _, err := openShelved(shelf, name)
		if err != nil {
			return nil // a file that can't be read is no match
		}
		defer f.Close()
		if err := s.scan(ctx, f, shelf.Prefix+name); errors.Is(err, fs.SkipAll) || ctx.Err() != nil {
			return err
		}
		return nil
	})
	return err
}

// walkShelf visits the regular files at and beneath rel without following
// links. fs.SkipAll ends it without error.
func walkShelf(ctx context.Context, s goclaw.Shelf, rel string, visit func(string, fs.FileInfo) error) error {
	return fs.WalkDir(s.FS, rel, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return nil // what can't be read is passed over
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		return visit(name, info)
	})
}
