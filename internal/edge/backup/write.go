package backup

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tempPrefix begins the names of what exists only while a backup is written or
// restored.
const tempPrefix = ".goclaw-backup-"

// Source is what goes into an archive.
type Source struct {
	Home    string // absolute
	Version string
	Now     time.Time

	// Database says where the record is kept: sqlite, postgres or none. Of
	// sqlite, Copy writes a consistent copy to a new file and returns its schema's
	// version.
	Database string
	Copy     func(ctx context.Context, to string) (schema int, err error)

	// Config is goclaw.json as it is to be kept, nil if there is none in the
	// home. Withheld are the keys whose secrets it lacks.
	Config   []byte
	Withheld []string

	Workspaces []Workspace // their agents and paths
	Outside    bool        // also those outside of the home
	Secrets    bool        // also the token and the key of the secrets
	Left       []Left      // what the caller leaves out
}

// Report is what Write has written.
type Report struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	Manifest
}

// Write writes an archive for its owner only. The file is there under its name
// only once it is whole and on disk; one that is there already is not touched.
func Write(ctx context.Context, file string, s Source) (Report, error) {
	r, err := write(ctx, file, s)
	if err != nil {
		return Report{}, fmt.Errorf("backup %s: %w", file, err)
	}
	return r, nil
}

func write(ctx context.Context, file string, s Source) (_ Report, err error) {
	if _, err := os.Lstat(file); err == nil {
		return Report{}, errors.New("there is such a file already; name another one")
	}
	f, err := os.CreateTemp(filepath.Dir(file), tempPrefix+"*")
	if err != nil {
		return Report{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignore(f.Close(), fs.ErrClosed), ignore(os.Remove(f.Name()), fs.ErrNotExist))
		}
	}()
	self, err := f.Stat()
	if err != nil {
		return Report{}, err
	}
	a := &archive{zip: zip.NewWriter(f), self: self, seen: map[string]bool{}, m: Manifest{
		Format: format, Version: s.Version, CreatedAt: s.Now.UTC().Truncate(time.Second), Home: s.Home,
		Database: cmp.Or(s.Database, "none"), Secrets: s.Secrets,
		Workspaces: []Workspace{}, Withheld: append([]string{}, s.Withheld...), Left: append([]Left{}, s.Left...), Entries: []Entry{},
	}}
	if a.home, err = filepath.EvalSymlinks(s.Home); err != nil {
		return Report{}, err
	}
	if err := a.fill(ctx, s); err != nil {
		return Report{}, err
	}
	if err := errors.Join(a.finish(), f.Sync(), f.Close()); err != nil {
		return Report{}, err
	}
	// A link fails where a rename would overwrite what has come meanwhile.
	if err := os.Link(f.Name(), file); err != nil {
		if err := os.Rename(f.Name(), file); err != nil {
			return Report{}, err
		}
	} else if err := os.Remove(f.Name()); err != nil {
		return Report{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return Report{}, err
	}
	return Report{File: file, Size: info.Size(), Manifest: a.m}, syncDir(filepath.Dir(file))
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// archive is one that is being written.
type archive struct {
	zip  *zip.Writer
	m    Manifest
	home string      // without links
	self fs.FileInfo // of the archive itself
	seen map[string]bool
	far  []fs.FileInfo // the workspaces outside of the home that are kept
}

func (a *archive) leave(path, why string) { a.m.Left = append(a.m.Left, Left{path, why}) }

// fill adds all but the manifest.
func (a *archive) fill(ctx context.Context, s Source) error {
	if s.Database == "sqlite" {
		if err := a.database(ctx, s); err != nil {
			return err
		}
	}
	if s.Config != nil {
		if err := a.add(homePrefix+"goclaw.json", 0o600, s.Now, bytes.NewReader(s.Config)); err != nil {
			return err
		}
	}
	var inside []string // the workspaces in the home, relative to it
	for _, w := range s.Workspaces {
		rel, err := a.place(&w, s.Outside)
		if err != nil {
			return err
		}
		if rel != "" {
			inside = append(inside, rel)
		}
		a.m.Workspaces = append(a.m.Workspaces, w)
	}
	if err := a.top(ctx, s, inside); err != nil {
		return err
	}
	for _, rel := range inside {
		if err := a.tree(ctx, filepath.Join(a.home, rel), homePrefix+filepath.ToSlash(rel)); err != nil {
			return err
		}
	}
	for _, w := range a.m.Workspaces {
		if strings.HasPrefix(w.In, outsideRoot) {
			if err := a.tree(ctx, w.Path, w.In); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *archive) database(ctx context.Context, s Source) error {
	dir, err := os.MkdirTemp(a.home, tempPrefix+"*") // where there is room for databases
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is named by the next backup
	made := filepath.Join(dir, databaseName)
	if a.m.Schema, err = s.Copy(ctx, made); err != nil {
		return err
	}
	f, err := os.Open(made)
	if err != nil {
		return err
	}
	return errors.Join(a.add(homePrefix+databaseName, 0o600, s.Now, f), f.Close())
}

// place settles where a workspace lies and where in the archive it goes. It
// returns its path relative to the home, "" if it is not in it.
func (a *archive) place(w *Workspace, outside bool) (string, error) {
	real, err := filepath.EvalSymlinks(w.Path)
	if errors.Is(err, fs.ErrNotExist) {
		a.leave(w.Path, "there is no such folder yet")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("workspace of agent %s: %w", w.Agent, err)
	}
	rel, err := filepath.Rel(a.home, real)
	switch {
	case err == nil && rel == ".":
		a.leave(w.Path, "the workspace of agent "+w.Agent+" is GOCLAW_HOME itself; of that, only what GoClaw knows is kept")
		return "", nil
	case err == nil && filepath.IsLocal(rel):
		w.In = homePrefix + filepath.ToSlash(rel)
		return rel, nil
	case !outside:
		a.leave(w.Path, "the workspace of agent "+w.Agent+" lies outside of GOCLAW_HOME; --workspaces keeps it too")
		return "", nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	a.far = append(a.far, info)
	w.Path, w.In = real, outsideRoot+w.Agent
	for _, other := range a.m.Workspaces {
		if other.Path == real {
			w.In = other.In // two agents share it
		}
	}
	return "", nil
}

// top goes through the home's own files and folders.
func (a *archive) top(ctx context.Context, s Source, workspaces []string) error {
	entries, err := os.ReadDir(a.home)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(a.home, e.Name())
		switch {
		case ephemeral(name), slices.Contains(workspaces, name):
		case name == "goclaw.json":
			if s.Config == nil {
				a.leave(path, "another configuration is used (--config)")
			}
		case name == databaseName:
			if s.Database != "sqlite" {
				a.leave(path, "it is not used: the record is kept in PostgreSQL")
			}
		case name == "token" && !s.Secrets:
			a.leave(path, "it is a secret; a gateway makes a new one, --secrets keeps it")
		case name == "secrets.key" && !s.Secrets:
			a.leave(path, "it opens secrets.age; keep it elsewhere, or --secrets keeps it beside what it opens")
		case slices.Contains([]string{"goclaw.schema.json", "trusted.json", "secrets.age", "secrets.json", "token", "secrets.key", "agents", "skills"}, name):
			if err := a.tree(ctx, path, homePrefix+name); err != nil {
				return err
			}
		case strings.HasPrefix(name, databaseName+".before-"):
			a.leave(path, "a copy of the database from before a change of its schema")
		case name == "memory.db" || strings.HasPrefix(name, "memory.db-"):
			a.leave(path, "an index, which is made anew from what it indexes")
		case strings.HasPrefix(name, asidePrefix):
			a.leave(path, "what was there before a restore")
		case name == "goclaw.log":
			a.leave(path, "a log")
		case slices.ContainsFunc(workspaces, func(w string) bool { return strings.HasPrefix(w, name+string(filepath.Separator)) }):
			a.leave(path, "of this folder, only the agents' workspaces are kept")
		default:
			a.leave(path, "GoClaw does not know it")
		}
	}
	return nil
}

// tree adds a file, or a folder with all that is in it, as name. Links and what
// is neither are left out.
func (a *archive) tree(ctx context.Context, path, name string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return a.file(path, name, info, func() (fs.File, error) { return os.Open(path) })
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written to it
	return fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		at := filepath.Join(path, filepath.FromSlash(rel))
		if errors.Is(err, fs.ErrNotExist) && rel != "." {
			a.leave(at, "it was removed while the backup was written")
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			a.leave(at, "it was removed while the backup was written")
			return nil
		}
		if err != nil {
			return err
		}
		to := name
		if rel != "." {
			to += "/" + rel
		}
		if !d.IsDir() {
			return a.file(at, to, info, func() (fs.File, error) { return root.Open(rel) })
		}
		if home, err := os.Stat(a.home); err == nil && os.SameFile(home, info) {
			a.leave(at, "it is GOCLAW_HOME")
			return fs.SkipDir
		}
		if rel != "." && slices.ContainsFunc(a.far, func(root fs.FileInfo) bool { return os.SameFile(root, info) }) {
			return fs.SkipDir // it is in the archive by itself
		}
		return a.folder(at, to, info)
	})
}

func (a *archive) folder(path, name string, info fs.FileInfo) error {
	if !nameable(name) {
		a.leave(path, "its name can't be kept everywhere")
		return fs.SkipDir
	}
	if a.seen[name] {
		return nil // a workspace in another one
	}
	a.seen[name] = true
	h := &zip.FileHeader{Name: name + "/", Modified: info.ModTime()}
	h.SetMode(info.Mode().Perm() | fs.ModeDir)
	if _, err := a.zip.CreateHeader(h); err != nil {
		return err
	}
	a.m.Entries = append(a.m.Entries, Entry{Path: name + "/", Mode: octal(info.Mode())})
	return nil
}

func (a *archive) file(path, name string, info fs.FileInfo, open func() (fs.File, error)) error {
	switch {
	case os.SameFile(info, a.self):
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		a.leave(path, "it is a link")
		return nil
	case !info.Mode().IsRegular():
		a.leave(path, "it is neither a file nor a folder")
		return nil
	case !nameable(name):
		a.leave(path, "its name can't be kept everywhere")
		return nil
	case a.seen[name]:
		return nil
	}
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		a.leave(path, "it was removed while the backup was written")
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(a.add(name, info.Mode(), info.ModTime(), f), f.Close())
}

// add adds a file as it is while it is read.
func (a *archive) add(name string, mode fs.FileMode, changed time.Time, r io.Reader) error {
	a.seen[name] = true
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: changed}
	h.SetMode(mode.Perm())
	w, err := a.zip.CreateHeader(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.m.Entries = append(a.m.Entries, Entry{Path: name, Mode: octal(mode), Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func octal(mode fs.FileMode) string { return fmt.Sprintf("%04o", mode.Perm()) }

// finish adds the manifest and ends the archive.
func (a *archive) finish() error {
	text, err := json.MarshalIndent(a.m, "", "  ")
	if err != nil {
		return err
	}
	w, err := a.zip.CreateHeader(&zip.FileHeader{Name: manifestName, Method: zip.Deflate, Modified: a.m.CreatedAt})
	if err != nil {
		return err
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return err
	}
	return a.zip.Close()
}
