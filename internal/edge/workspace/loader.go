package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// maxCached bounds the files that are kept: notes of days come and go.
const maxCached = 1024

// Options set a Loader's caps in characters; 0 stands for the default.
type Options struct {
	FileMaxChars  int // of one file
	TotalMaxChars int // of all files together, spent in their order
}

// Loader reads workspaces. It is safe for concurrent use.
type Loader struct {
	opts  Options
	reads atomic.Int64
	open  func(root *os.Root, name string) (fs.File, error)

	mu    sync.Mutex
	cache map[string]*entry // by absolute path
	clock int64             // of uses
}

// entry is a file as it was read. It holds while the file's time, size and
// inode do.
type entry struct {
	info    fs.FileInfo
	text    text
	warning string
	cuts    map[room]piece
	used    int64
}

// NewLoader returns a Loader with an empty cache.
func NewLoader(opts Options) *Loader {
	if opts.FileMaxChars <= 0 {
		opts.FileMaxChars = DefaultFileMaxChars
	}
	if opts.TotalMaxChars <= 0 {
		opts.TotalMaxChars = DefaultTotalMaxChars
	}
	return &Loader{opts: opts, cache: map[string]*entry{}, open: openFile}
}

// openFile doesn't wait for a pipe's other end.
func openFile(root *os.Root, name string) (fs.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Reads counts the files that were opened so far, for tests of the cache.
func (l *Loader) Reads() int64 { return l.reads.Load() }

// Files returns the eight workspace files of dir, in the order of Names, and
// then what else is to be shown, by paths below dir with slashes; memory and
// .git are folders that a session may be given, and no files. Only what is to
// be shown is read, and counts for the cap of all: of the others the caller
// learns whether they are there. What is wrong with one file is in its Warning;
// the error is for dir itself, and wraps fs.ErrNotExist if there is none.
//
// A file that hasn't changed costs one lstat, plus one for each folder in its
// name, and comes back in the same memory.
func (l *Loader) Files(dir string, show []string) ([]goclaw.WorkspaceFile, error) {
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
	for _, name := range show {
		if !slices.Contains(reachOnly(), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	// An editor may put a new file in an old one's place while it is opened.
	const tries = 3
	for try := 1; ; try++ {
		files, replaced := l.files(abs, names, show)
		if !replaced || try == tries {
			return files, nil
		}
	}
}

// files looks at all of the files and takes the texts of those to be shown.
// replaced reports that one of them was another by the time it was opened.
func (l *Loader) files(dir string, names, show []string) (files []goclaw.WorkspaceFile, replaced bool) {
	files = make([]goclaw.WorkspaceFile, len(names))
	infos := make([]fs.FileInfo, len(names))
	at := folder{dir: dir}
	for i, name := range names {
		files[i] = file(dir, name)
		var err error
		infos[i], files[i].Warning, err = at.look(name)
		files[i].Missing = errors.Is(err, fs.ErrNotExist)
	}
	at.refuseShared(files, infos)
	left := l.opts.TotalMaxChars
	for i := range files {
		f := &files[i]
		if f.Missing || f.Warning != "" || !slices.Contains(show, f.Name) {
			continue
		}
		p, err := l.load(dir, f, infos[i], room{min(l.opts.FileMaxChars, left), left < l.opts.FileMaxChars})
		if f.Missing = errors.Is(err, fs.ErrNotExist); f.Missing {
			continue
		}
		replaced = replaced || errors.Is(err, errReplaced)
		if err != nil {
			f.Warning = err.Error()
			continue
		}
		f.Content, f.Dropped, f.Warning = p.text, p.dropped, p.warning
		left -= p.chars
	}
	return files, replaced
}

func file(dir, name string) goclaw.WorkspaceFile {
	return goclaw.WorkspaceFile{Name: name, Path: filepath.Join(dir, filepath.FromSlash(name))}
}

// errReplaced is what a file comes to that is another one by the time it is
// opened.
var errReplaced = errors.New("was replaced while it was opened; it was not read")

// load returns what of a file fits in, from the cache if the file is as it
// was. The error is a warning in words, or wraps fs.ErrNotExist if the file
// has vanished.
func (l *Loader) load(dir string, f *goclaw.WorkspaceFile, info fs.FileInfo, r room) (piece, error) {
	l.mu.Lock()
	e, ok := l.cache[f.Path]
	if ok && unchanged(e.info, info) {
		defer l.mu.Unlock()
		return l.use(e, f.Name, r), nil
	}
	l.mu.Unlock()
	began := time.Now()
	e, err := l.read(dir, f.Name, info)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.cache, f.Path)
	if err != nil {
		return piece{}, err
	}
	if age := began.Sub(e.info.ModTime()); age < 0 || age > racyWindow {
		l.forget()
		l.cache[f.Path] = e
	}
	return l.use(e, f.Name, r), nil
}

func unchanged(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// use cuts the entry's text, once for each room.
func (l *Loader) use(e *entry, name string, r room) piece {
	l.clock++
	e.used = l.clock
	if r.most >= e.text.chars {
		r = room{most: e.text.chars}
	}
	p, ok := e.cuts[r]
	if !ok {
		p = e.text.cut(name, r)
		p.warning = warnings(e.warning, p.warning)
		const most = 8 // caps that differ from turn to turn, by what other files left over
		if e.cuts == nil || len(e.cuts) >= most {
			e.cuts = map[room]piece{}
		}
		e.cuts[r] = p
	}
	return p
}

// forget makes room in a full cache: the half that was used last stays.
func (l *Loader) forget() {
	if len(l.cache) < maxCached {
		return
	}
	uses := make([]int64, 0, len(l.cache))
	for _, e := range l.cache {
		uses = append(uses, e.used)
	}
	slices.Sort(uses)
	middle := uses[len(uses)/2]
	for path, e := range l.cache {
		if e.used < middle {
			delete(l.cache, path)
		}
	}
}

// read opens the file within dir, so that a link put there in the meantime
// can't lead out of it, and takes it only if it is the one that was looked at.
func (l *Loader) read(dir, name string, looked fs.FileInfo) (*entry, error) {
	data, info, err := l.bytes(dir, name, looked)
	if err != nil {
		return nil, err
	}
	text, warning := clean(data)
	return &entry{info: info, text: keep(text, l.opts.FileMaxChars), warning: warning}, nil
}

func (l *Loader) bytes(dir, name string, looked fs.FileInfo) ([]byte, fs.FileInfo, error) {
	tooLarge := fmt.Errorf("is larger than %d MB; it was not read", maxFileBytes>>20)
	if looked.Size() > maxFileBytes {
		return nil, nil, tooLarge
	}
	unread := func(err error) error { return fmt.Errorf("can't be read: %s", reason(err)) }
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, unread(err)
	}
	defer root.Close()
	l.reads.Add(1)
	f, err := l.open(root, filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, unread(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, nil, unread(err)
	}
	if !os.SameFile(info, looked) {
		return nil, nil, errReplaced
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, nil, unread(err)
	}
	if len(data) > maxFileBytes {
		return nil, nil, tooLarge
	}
	return data, info, nil
}

// reason is the cause of err without the path, which the reader knows.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
