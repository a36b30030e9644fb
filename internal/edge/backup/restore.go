package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Target is where an archive is restored to.
type Target struct {
	Home string // absolute
	Now  time.Time

	Force   bool // a home that is not empty is moved aside
	Outside bool // also the workspaces outside of the home, to where they were

	// CheckDatabase reads a whole database, and refuses one that is damaged or
	// newer than this program.
	CheckDatabase func(ctx context.Context, path string) (schema int, err error)
}

// Restored is what Restore has done.
type Restored struct {
	File  string `json:"file"`
	Home  string `json:"home"`
	Aside string `json:"aside,omitempty"` // where that is which was in the home before
	Files int    `json:"files"`

	Version   string    `json:"goclaw"`
	CreatedAt time.Time `json:"createdAt"`
	Database  string    `json:"database"`
	Schema    int       `json:"schema,omitempty"`

	Workspaces []Workspace `json:"workspaces"` // outside of the home, which were restored
	Unrestored []Workspace `json:"unrestored"` // those in the archive which were not
	Withheld   []string    `json:"withheld"`
}

// Restore makes a home of an archive. It touches nothing before all of the
// archive was unpacked beside the home and found to be what its manifest says.
func Restore(ctx context.Context, file string, t Target) (Restored, error) {
	r, err := restore(ctx, file, t)
	switch {
	case errors.Is(err, errHalf):
		return Restored{}, fmt.Errorf("restore %s: %w", file, err)
	case err != nil && strings.HasSuffix(err.Error(), unchanged):
		return Restored{}, fmt.Errorf("restore %s: %w", file, err)
	case err != nil:
		return Restored{}, fmt.Errorf("restore %s: %w%s", file, err, unchanged)
	}
	return r, nil
}

// unchanged ends what is said of a failure; the database's own may say it too.
const unchanged = "; nothing was changed"

// errHalf says that some folders were moved and could not be moved back.
var errHalf = errors.New("what was moved could not be moved back: look beside these folders for the old ones")

func restore(ctx context.Context, file string, t Target) (_ Restored, err error) {
	z, err := zip.OpenReader(file)
	switch {
	case errors.Is(err, zip.ErrFormat):
		return Restored{}, errors.New("it is no backup of goclaw, or was cut")
	case err != nil:
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return Restored{}, err
	}
	defer func() { _ = z.Close() }() // it was only read
	m, files, err := readManifest(&z.Reader)
	if err != nil {
		return Restored{}, err
	}
	done := Restored{
		File: file, Home: t.Home, Version: m.Version, CreatedAt: m.CreatedAt, Database: m.Database, Schema: m.Schema,
		Workspaces: []Workspace{}, Unrestored: []Workspace{}, Withheld: append([]string{}, m.Withheld...),
	}
	moves, err := plan(m, t, &done)
	if err != nil {
		return Restored{}, err
	}
	defer func() {
		for _, move := range moves {
			err = errors.Join(err, os.RemoveAll(move.from)) // nothing is there any more once it was moved
		}
	}()
	for i := range moves {
		n, err := moves[i].unpack(ctx, m, files)
		if err != nil {
			return Restored{}, err
		}
		done.Files += n
	}
	if m.Database == "sqlite" {
		schema, err := t.CheckDatabase(ctx, filepath.Join(moves[0].from, databaseName))
		if err != nil {
			return Restored{}, err
		}
		if schema != m.Schema {
			return Restored{}, fmt.Errorf("its database has schema version %d, not %d", schema, m.Schema)
		}
	}
	return done, carryOut(slices.Clone(moves))
}

// move is a folder of the archive that becomes one of the disk.
type move struct {
	in    string // the archive's folder, with its slash
	to    string
	aside string // where to is moved first; "": it is not there, or empty
	name  string // what aside becomes in the new folder, where it is as private as it was
	from  string // where it was unpacked
}

// asidePrefix begins the name of a home that was moved into the one that took
// its place.
const asidePrefix = "before-restore-"

// plan decides what goes where: the home first.
func plan(m Manifest, t Target, done *Restored) ([]move, error) {
	home := t.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	moves := []move{{in: homePrefix, to: home}}
	entries, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !fleeting(e.Name()) }) {
		if !t.Force {
			return nil, fmt.Errorf("%s is not empty; --force moves what is there aside, or set another GOCLAW_HOME", home)
		}
		name := asidePrefix + t.Now.Format("20060102-150405")
		moves[0].aside, moves[0].name = home+"."+name, name
		if _, err := os.Lstat(moves[0].aside); err == nil {
			return nil, fmt.Errorf("%s is there already; try again in a second", moves[0].aside)
		}
		done.Aside = filepath.Join(t.Home, name)
	}
	for _, w := range m.Workspaces {
		switch {
		case !strings.HasPrefix(w.In, outsideRoot):
		case !t.Outside:
			done.Unrestored = append(done.Unrestored, w)
		default:
			if entries, err := os.ReadDir(w.Path); err == nil && len(entries) > 0 {
				return nil, fmt.Errorf("workspace %s of agent %s is not empty; move it away, or leave --workspaces out", w.Path, w.Agent)
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if !slices.ContainsFunc(moves, func(mv move) bool { return mv.in == w.In+"/" }) {
				moves = append(moves, move{in: w.In + "/", to: w.Path})
			}
			done.Workspaces = append(done.Workspaces, w)
		}
	}
	return moves, nil
}

// unpack writes the folder beside where it goes, on the same disk, and returns
// how many files it has.
func (mv *move) unpack(ctx context.Context, m Manifest, files map[string]*zip.File) (n int, err error) {
	beside := filepath.Dir(mv.to)
	for {
		if _, err := os.Stat(beside); err == nil || beside == filepath.Dir(beside) {
			break
		}
		beside = filepath.Dir(beside)
	}
	if mv.from, err = os.MkdirTemp(beside, tempPrefix+"*"); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(mv.from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var folders []Entry
	for _, e := range m.Entries {
		rel, ours := strings.CutPrefix(e.Path, mv.in)
		if !ours {
			continue
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if e.isDir() {
			rel = strings.TrimSuffix(rel, "/")
			if rel == "" {
				rel = "."
			}
			if err := root.MkdirAll(filepath.FromSlash(rel), 0o700); err != nil {
				return 0, err
			}
			folders = append(folders, Entry{Path: rel, Mode: e.Mode})
			continue
		}
		if err := unpackFile(root, filepath.FromSlash(rel), e, files[e.Path]); err != nil {
			return 0, fmt.Errorf("its entry %q: %w", e.Path, err)
		}
		n++
	}
	// A folder that may not be written to is one only now.
	for _, e := range slices.Backward(folders) {
		if err := root.Chmod(filepath.FromSlash(e.Path), e.perm()); err != nil {
			return 0, err
		}
	}
	return n, syncDir(mv.from)
}

func unpackFile(root *os.Root, path string, e Entry, z *zip.File) error {
	if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	r, err := z.Open()
	if err != nil {
		return err
	}
	f, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, e.Size+1))
	if err == nil && (n != e.Size || hex.EncodeToString(sum.Sum(nil)) != e.SHA256) {
		err = errors.New("it is not what the manifest says; the archive is damaged")
	}
	if err := errors.Join(err, r.Close(), f.Chmod(e.perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Chtimes(path, z.Modified, z.Modified)
}

// carryOut puts everything in its place, or nothing.
func carryOut(moves []move) (err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				if failed := f(); failed != nil {
					err = fmt.Errorf("%w (%w; %w)", errHalf, err, failed)
				}
			}
		}
	}()
	rename := func(from, to string) error {
		if err := os.Rename(from, to); err != nil {
			return err
		}
		undo = append(undo, func() error { return os.Rename(to, from) })
		return nil
	}
	// What lies in another one of them comes after that.
	slices.SortStableFunc(moves, func(a, b move) int { return len(a.to) - len(b.to) })
	for _, mv := range moves {
		if mv.aside != "" {
			err = rename(mv.to, mv.aside)
		} else {
			err = clear(mv.to)
		}
		if err == nil {
			err = rename(mv.from, mv.to)
		}
		if err == nil && mv.aside != "" {
			err = rename(mv.aside, filepath.Join(mv.to, mv.name))
		}
		if err == nil {
			err = syncDir(filepath.Dir(mv.to))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clear removes a folder in which there is nothing that matters, and makes the
// one that it is in.
func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(dir), 0o700)
	}
	for _, e := range entries {
		if fleeting(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// syncDir waits until the disk has a folder's entries.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // it can't, and need not
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
