package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	maxPath  = 4096
	maxLinks = 40
)

// Resolve follows a path as an agent wrote it, relative to the workspace or
// absolute, through all links and returns where it leads, relative to the
// workspace and with slashes ("." for the workspace). What it names need not
// exist. The error is about path and wraps ErrOutside, ErrHome or ErrPrivate
// when it is out of reach.
func (r *Reach) Resolve(path string) (string, error) {
	rel, err := r.resolve(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return rel, nil
}

func (r *Reach) resolve(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", errors.New("the path holds a NUL character")
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	full := filepath.Clean(path)
	start := r.base
	if filepath.IsAbs(full) {
		start = filepath.VolumeName(full) + string(filepath.Separator)
	}
	real, err := follow(start, strings.TrimPrefix(full, start))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.base, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", ErrOutside
	}
	rel = filepath.ToSlash(rel)
	if rel == "." {
		return rel, nil
	}
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.base, filepath.FromSlash(rel[:i])))
		if err != nil {
			info = nil
		}
		if err := r.Allow(rel[:i], info); err != nil {
			return "", err
		}
	}
	return rel, nil
}

// follow resolves path from the folder start, which holds no links. Unlike
// filepath.EvalSymlinks it also says where a path leads that doesn't exist
// yet, so that a link to a missing file can't be written through.
func follow(start, path string) (string, error) {
	cur, rest, hops := start, split(path), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		info, err := os.Lstat(next)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", unwrapPath(err)
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			cur = next
			continue
		}
		if hops++; hops > maxLinks {
			return "", errors.New("too many symbolic links")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", unwrapPath(err)
		}
		if filepath.IsAbs(target) {
			cur = filepath.VolumeName(target) + string(filepath.Separator)
			target = strings.TrimPrefix(target, cur)
		}
		rest = append(split(target), rest...)
	}
	return cur, nil
}

// split lists the components of a path, without "." and empty ones.
func split(path string) []string {
	var parts []string
	for _, p := range strings.FieldsFunc(path, func(c rune) bool { return c < 0x80 && os.IsPathSeparator(uint8(c)) }) {
		if p != "." {
			parts = append(parts, p)
		}
	}
	return parts
}

// unwrapPath drops the path from an error whose reader knows it.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
