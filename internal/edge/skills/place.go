package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	maxBytes   = 1 << 20 // of a SKILL.md
	maxFolders = 2000    // of a place

	// racyWindow is the age below which a time stamp can't tell two writes
	// apart on any file system in use.
	racyWindow = 20 * time.Millisecond
)

// place is a folder with skill folders in it, as it was found. It holds as
// long as nothing that it was made of has changed.
type place struct {
	info    fs.FileInfo // of the folder; nil: its names must be read again
	folders []entry
	problem string
	files   []found
}

// entry is a name in a place.
type entry struct {
	name string
	link bool
}

// found is a SKILL.md in a place, or what stands there instead.
type found struct {
	folder string // its name
	at     string // where its folder is, relative to the place, without links
	name   string // SKILL.md, as it is spelled
	info   fs.FileInfo
	data   []byte

	refused, hint string
}

// look returns a place as it is now: the same one as last time if nothing has
// changed.
func (l *Library) look(dir string) *place {
	old := l.places[dir]
	p := l.names(dir, old)
	same := p == old
	if p.info == nil && p.folders == nil {
		l.places[dir] = p
		return p
	}
	files := make([]found, 0, len(p.folders))
	for i, e := range p.folders {
		var before *found
		if same && i < len(old.files) {
			before = &old.files[i]
		} else if old != nil {
			before = old.file(e.name)
		}
		f, kept := l.file(dir, e, before)
		same = same && kept
		files = append(files, f)
	}
	if same {
		return old
	}
	next := &place{info: p.info, folders: p.folders, problem: p.problem, files: files}
	next.refuseLinks()
	l.places[dir] = next
	return next
}

func (p *place) file(folder string) *found {
	for i := range p.files {
		if p.files[i].folder == folder {
			return &p.files[i]
		}
	}
	return nil
}

// names reads which folders there are, or returns old if they are as they
// were.
func (l *Library) names(dir string, old *place) *place {
	info, err := os.Stat(dir)
	if err != nil {
		return failed(old, "the folder can't be read: "+reason(err))
	}
	if !info.IsDir() {
		return failed(old, "is no folder; put a folder in its place")
	}
	if old != nil && old.info != nil && unchanged(old.info, info) {
		return old
	}
	began := time.Now()
	l.reads.Add(1)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return failed(old, "the folder can't be read: "+reason(err))
	}
	p := &place{folders: []entry{}}
	for _, e := range entries {
		link := e.Type()&fs.ModeSymlink != 0
		if strings.EqualFold(e.Name(), fileName) {
			p.problem = e.Name() + " lies directly in it; put it into a folder with the skill's name"
		}
		if !e.IsDir() && !link || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		if len(p.folders) == maxFolders {
			p.problem = fmt.Sprintf("it has more than %d folders; the others were left out", maxFolders)
			break
		}
		p.folders = append(p.folders, entry{e.Name(), link})
	}
	if age := began.Sub(info.ModTime()); age < 0 || age > racyWindow {
		p.info = info
	}
	return p
}

// failed is a place that can't be looked into.
func failed(old *place, why string) *place {
	if old != nil && old.problem == why && old.folders == nil {
		return old
	}
	return &place{problem: why}
}

func unchanged(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// file looks at one folder. kept reports that it is as before.
func (l *Library) file(dir string, e entry, before *found) (f found, kept bool) {
	info, name, err := statEither(filepath.Join(dir, e.name))
	if err == nil && before != nil && before.info != nil && before.name == name && unchanged(before.info, info) {
		return *before, true
	}
	f = found{folder: e.name, at: e.name, name: name}
	defer func() {
		kept = before != nil && before.info == nil && f.info == nil && f.refused != "" && f.refused == before.refused && f.name == before.name
	}()
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.link:
		if target, err := os.Stat(filepath.Join(dir, e.name)); err == nil && !target.IsDir() {
			f.refuse("is a link to a file, not to a folder", "remove it, or put a folder with a SKILL.md in its place")
			break
		}
		f.refuse("is a link that leads to no SKILL.md", "remove it, or put the folder itself in its place")
	case errors.Is(err, fs.ErrNotExist):
		f.refuse("the folder holds no SKILL.md", "add one, or move the folder elsewhere")
	case errors.Is(err, syscall.ENOTDIR):
		f.refuse("is a link to a file, not to a folder", "remove it, or put a folder with a SKILL.md in its place")
	case err != nil:
		f.refuse("can't be read: "+reason(err), "make it a file that you may read")
	case !info.Mode().IsRegular():
		f.refuse("is "+kind(info.Mode())+", not a file; it was not read", "put a file in its place")
	case info.Size() > maxBytes:
		f.refuse(tooLarge, "shorten it; long material belongs in files beside it")
	default:
		l.read(dir, e, &f)
	}
	return f, false
}

const tooLarge = "is larger than 1 MB; it was not read"

// statEither finds the file, also as skill.md, which others accept.
func statEither(folder string) (fs.FileInfo, string, error) {
	info, err := os.Stat(filepath.Join(folder, fileName))
	if !errors.Is(err, fs.ErrNotExist) {
		return info, fileName, err
	}
	if lower, lowerErr := os.Stat(filepath.Join(folder, strings.ToLower(fileName))); lowerErr == nil {
		return lower, strings.ToLower(fileName), nil
	}
	return nil, fileName, err
}

func (f *found) refuse(why, hint string) { f.refused, f.hint, f.data = why, hint, nil }

// read reads the file from within the place, so that no link, whenever it was
// made, leads out of it, and without waiting for a pipe's other end.
func (l *Library) read(dir string, e entry, f *found) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.refuse("can't be read: "+reason(err), "make it a folder that you may read")
		return
	}
	defer root.Close()
	began := time.Now()
	l.reads.Add(1)
	file, err := root.OpenFile(filepath.Join(e.name, f.name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if target, lerr := filepath.EvalSymlinks(filepath.Join(dir, e.name, f.name)); lerr == nil && !within(target, dir) {
			f.refuse("is a link out of the folder of skills; it was not followed", "put the file there itself, or name its folder in skills.extraDirs")
			return
		}
		f.refuse("can't be read: "+reason(err), "make it a file that you may read")
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		f.refuse("is "+kind(info.Mode())+", not a file; it was not read", "put a file in its place")
		return
	}
	if err == nil {
		f.data, err = io.ReadAll(io.LimitReader(file, maxBytes+1))
	}
	if err != nil {
		f.refuse("can't be read: "+reason(err), "make it a file that you may read")
		return
	}
	if len(f.data) > maxBytes {
		f.refuse(tooLarge, "shorten it; long material belongs in files beside it")
		return
	}
	if e.link {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, e.name))
		rel, relErr := filepath.Rel(dir, real)
		if err != nil || relErr != nil || !filepath.IsLocal(rel) || rel == "." {
			f.refuse("changed while it was being read", "try again")
			return
		}
		f.at = rel
	}
	if age := began.Sub(info.ModTime()); age < 0 || age > racyWindow {
		f.info = info
	}
}

// refuseLinks refuses links to folders that are listed themselves.
func (p *place) refuseLinks() {
	listed := map[string]bool{}
	for _, e := range p.folders {
		if !e.link {
			listed[e.name] = true
		}
	}
	for i := range p.files {
		f := &p.files[i]
		if f.at != f.folder && listed[f.at] {
			f.refuse("is a link to "+f.at+", which is listed itself", "remove the link")
		}
		listed[f.at] = true
	}
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}

// folder is one skill's folder for reading. It opens everything anew from the
// place that holds it, so that no link leads out of the folder.
type folder struct{ place, rel string }

// Open implements fs.FS.
func (d folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Stat implements fs.StatFS.
func (d folder) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(filepath.FromSlash(name))
}

func (d folder) root() (*os.Root, error) {
	place, err := os.OpenRoot(d.place)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	return place.OpenRoot(d.rel)
}
