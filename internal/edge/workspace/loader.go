package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"goclaw"
)

// The caps that hold when Options name none, in characters.
const (
	DefaultFileMaxChars  = 20_000
	DefaultTotalMaxChars = 150_000
)

// maxFileBytes bounds what is read into memory; a file beyond it is refused.
const maxFileBytes = 8 << 20

// racyWindow is the age below which a file's time stamp can't tell two writes
// apart on any file system in use.
const racyWindow = 20 * time.Millisecond

// Options set a Loader's caps in characters; 0 stands for the default.
type Options struct {
	FileMaxChars  int // of one file
	TotalMaxChars int // of all eight together, spent in their order
}

// Loader reads workspaces. It is safe for concurrent use.
type Loader struct {
	opts  Options
	reads atomic.Int64

	mu    sync.Mutex
	cache map[string]entry // by absolute path
}

// entry is a file as it was read. It holds while the file's time, size and
// inode do.
type entry struct {
	info    fs.FileInfo
	text    string
	warning string
}

// NewLoader returns a Loader with an empty cache.
func NewLoader(opts Options) *Loader {
	if opts.FileMaxChars <= 0 {
		opts.FileMaxChars = DefaultFileMaxChars
	}
	if opts.TotalMaxChars <= 0 {
		opts.TotalMaxChars = DefaultTotalMaxChars
	}
	return &Loader{opts: opts, cache: map[string]entry{}}
}

// Reads counts the files that were opened so far, for tests of the cache.
func (l *Loader) Reads() int64 { return l.reads.Load() }

// Files returns the eight workspace files of dir, in the order of Names. What
// is wrong with one file is in its Warning; the error is for dir itself, and
// wraps fs.ErrNotExist if there is none.
func (l *Loader) Files(dir string, more ...string) ([]goclaw.WorkspaceFile, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("read workspace: %s is not a folder", abs)
	}
	names := Names()
	files := make([]goclaw.WorkspaceFile, len(names))
	infos := make([]fs.FileInfo, len(names))
	for i, name := range names {
		files[i] = goclaw.WorkspaceFile{Name: name, Path: filepath.Join(abs, name)}
		infos[i], files[i].Warning, err = l.look(abs, name)
		files[i].Missing = errors.Is(err, fs.ErrNotExist)
	}
	refuseShared(files, infos)
	left := l.opts.TotalMaxChars
	for i := range files {
		f := &files[i]
		if f.Missing || f.Warning != "" {
			continue
		}
		e := l.load(abs, f.Name, infos[i])
		if f.Missing = e.info == nil && e.warning == ""; f.Missing {
			continue
		}
		f.Content, f.Warning = e.text, e.warning
		cut(f, min(l.opts.FileMaxChars, left), left < l.opts.FileMaxChars)
		left -= chars(f.Content)
	}
	return files, nil
}

// look examines one file without opening it. The info is the file's own, at
// the end of any link; a warning means that it is not to be read.
func (l *Loader) look(dir, name string) (info fs.FileInfo, warning string, err error) {
	path := filepath.Join(dir, name)
	info, err = os.Lstat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
		return nil, "can't be examined: " + reason(err), err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, warning = follow(dir, name); warning != "" {
			return nil, warning, nil
		}
	}
	if !info.Mode().IsRegular() {
		return nil, "is " + kind(info.Mode()) + ", not a file; it was not read", nil
	}
	return info, "", nil
}

// follow resolves a link and refuses one that leaves the workspace or leads to
// private content under another name.
func follow(dir, name string) (fs.FileInfo, string) {
	home, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, "is a link in a folder that can't be resolved: " + reason(err)
	}
	target, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return nil, "is a link that leads nowhere: " + reason(err)
	}
	rel, err := filepath.Rel(home, target)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "is a link that leaves the workspace; it was not followed"
	}
	if strings.EqualFold(strings.Split(filepath.ToSlash(rel), "/")[0], "memory") {
		return nil, "is a link into memory/, which is private; it was not followed"
	}
	for _, other := range Names() {
		if strings.EqualFold(rel, other) {
			return nil, "is a link to " + other + "; it was not followed"
		}
	}
	info, err := os.Lstat(target)
	if err != nil {
		return nil, "is a link that can't be followed: " + reason(err)
	}
	return info, ""
}

// refuseShared refuses files that are one file under several names: who may
// see the one name must not get the other's content.
func refuseShared(files []goclaw.WorkspaceFile, infos []fs.FileInfo) {
	for i := range files {
		for j := range files {
			if i != j && infos[i] != nil && infos[j] != nil && os.SameFile(infos[i], infos[j]) {
				files[i].Warning = "is the same file as " + files[j].Name + "; neither was read"
			}
		}
	}
}

// load returns the file's text, from the cache if the file is as it was. An
// entry without info and warning means that the file has vanished.
func (l *Loader) load(dir, name string, info fs.FileInfo) entry {
	path := filepath.Join(dir, name)
	l.mu.Lock()
	old, ok := l.cache[path]
	l.mu.Unlock()
	if ok && unchanged(old.info, info) {
		return old
	}
	began := time.Now()
	e := l.read(dir, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.cache, path)
	if e.info != nil {
		if age := began.Sub(e.info.ModTime()); age < 0 || age > racyWindow {
			l.cache[path] = e
		}
	}
	return e
}

func unchanged(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// read opens the file within dir, so that a link put there in the meantime
// can't lead out of it, and without waiting for a pipe's other end.
func (l *Loader) read(dir, name string) entry {
	refused := func(format string, args ...any) entry {
		return entry{warning: fmt.Sprintf(format, args...)}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return refused("can't be read: %s", reason(err))
	}
	defer root.Close()
	l.reads.Add(1)
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}
	}
	if err != nil {
		return refused("can't be read: %s", reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return refused("can't be read: %s", reason(err))
	}
	if !info.Mode().IsRegular() {
		return refused("is %s, not a file; it was not read", kind(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return refused("can't be read: %s", reason(err))
	}
	if len(data) > maxFileBytes {
		return refused("is larger than %d MB; it was not read", maxFileBytes>>20)
	}
	e := entry{info: info}
	e.text, e.warning = clean(data)
	return e
}

// reason is the cause of err without the path, which the reader knows.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func kind(m fs.FileMode) string {
	kinds := []struct {
		bit  fs.FileMode
		name string
	}{
		{fs.ModeDir, "a folder"},
		{fs.ModeNamedPipe, "a pipe"},
		{fs.ModeSocket, "a socket"},
		{fs.ModeDevice, "a device"},
		{fs.ModeSymlink, "a link"},
	}
	for _, k := range kinds {
		if m&k.bit != 0 {
			return k.name
		}
	}
	return "something special"
}
