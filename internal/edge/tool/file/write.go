package file

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"goclaw/internal/edge/tool"
)

// maxEditBytes bounds the files that write and edit replace: they are held in
// memory.
const maxEditBytes = 32 << 20

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (c *call) write(_ context.Context, a writeArgs) (string, error) {
	if err := c.refuseShelf(a.Path); err != nil {
		return "", err
	}
	rel, err := c.reach.Resolve(a.Path)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(a.Path, "/") {
		return "", fmt.Errorf("%s: is a folder; give a file name", a.Path)
	}
	if err := c.reach.AllowChange(rel); err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	dir, err := c.reach.MakeDir(path.Dir(rel))
	if errors.Is(err, syscall.ENOTDIR) {
		return "", fmt.Errorf("%s: a part of this path is a file, not a folder", a.Path)
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	name := path.Base(rel)
	defer c.seen.lock(c.key(dir, name))()

	verb, mode := "created", fs.FileMode(0)
	old, info, err := load(dir, name)
	switch {
	case err == nil:
		if err := c.checkSeen(a.Path, dir, name, old); err != nil {
			return "", err
		}
		verb, mode = "replaced", info.Mode()
	case errors.Is(err, syscall.EISDIR):
		return "", fmt.Errorf("%s: is a folder; give a file name", a.Path)
	case errors.Is(err, tool.ErrIrregular):
		return "", fmt.Errorf("%s: not a regular file; not replaced", a.Path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	if err := c.replace(dir, name, []byte(a.Content), mode); err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	return fmt.Sprintf("%s %s (%d bytes)", verb, a.Path, len(a.Content)), nil
}

// load reads a file that is to be replaced.
func load(dir *tool.Dir, name string) ([]byte, fs.FileInfo, error) {
	if info, err := dir.Lstat(name); err == nil && info.IsDir() {
		return nil, nil, syscall.EISDIR
	}
	f, info, err := dir.OpenFile(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > maxEditBytes {
		return nil, nil, fmt.Errorf("%d bytes are too many to replace (limit %d); use exec", info.Size(), maxEditBytes)
	}
	data, err := io.ReadAll(f)
	return data, info, err
}

// checkSeen refuses to replace what the session doesn't know.
func (c *call) checkSeen(p string, dir *tool.Dir, name string, content []byte) error {
	sum, ok := c.seen.last(c.session, c.key(dir, name))
	if !ok {
		return fmt.Errorf("%s: exists, and you have not read it; read it first", p)
	}
	if sum != sha256.Sum256(content) {
		return fmt.Errorf("%s: changed since you read it; read it again", p)
	}
	return nil
}

// replace puts a file in the place of the one called name, at once and with
// its mode, or creates it (mode 0) unless there is one by now.
func (c *call) replace(dir *tool.Dir, name string, data []byte, mode fs.FileMode) error {
	temp := ".goclaw-" + rand.Text() + ".tmp"
	f, err := dir.Root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return cause(err)
	}
	err = fill(f, data, mode)
	if err == nil && mode == 0 {
		err = publish(dir, temp, name)
	} else if err == nil {
		err = dir.Rename(temp, name)
	}
	// After a rename there is nothing left to remove.
	if rmErr := dir.Remove(temp); err == nil && rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		err = rmErr
	}
	if err != nil {
		return cause(err)
	}
	c.seen.note(c.session, c.key(dir, name), sha256.Sum256(data))
	return nil
}

func fill(f *os.File, data []byte, mode fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil && mode != 0 {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// publish gives a new file its name, which must still be free.
func publish(dir *tool.Dir, temp, name string) error {
	err := dir.Link(temp, name)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return errors.New("appeared while it was being written; read it first")
	}
	// A file system without hard links.
	return dir.Rename(temp, name)
}

// cause drops the paths of temporary files from an error.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
