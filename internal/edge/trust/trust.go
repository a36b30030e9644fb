package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw"
)

const (
	fileName = "trusted.json"
	maxBytes = 1 << 20
	// racyWindow is the age below which a file's time can't tell two writes
	// apart.
	racyWindow = 20 * time.Millisecond
	maxTries   = 50 // against other processes that write as well
)

// Entry is one trusted workspace.
type Entry struct {
	Workspace string        `json:"workspace"` // absolute, without links
	Since     goclaw.Millis `json:"since"`
}

// Store is the list of trusted workspaces of one GOCLAW_HOME. It is safe for
// concurrent use, also by several processes.
type Store struct {
	home string

	mu      sync.Mutex
	info    fs.FileInfo // of the file that entries were read from; nil: read it
	entries []Entry
}

// New returns the store of a home. It does no I/O.
func New(home string) *Store { return &Store{home: home} }

// Path is the file that holds the list.
func (s *Store) Path() string { return filepath.Join(s.home, fileName) }

// Trusted reports whether the person trusts a workspace. With an error the
// answer is no.
func (s *Store) Trusted(workspace string) (bool, error) {
	real, err := realPath(workspace)
	if err != nil {
		return false, err
	}
	if s.inHome(real) {
		return true, nil
	}
	entries, err := s.load()
	if err != nil {
		return false, err
	}
	return find(entries, real) >= 0, nil
}

// Inherent reports whether a workspace needs nobody's word, for it lies inside
// GOCLAW_HOME.
func (s *Store) Inherent(workspace string) bool {
	real, err := realPath(workspace)
	return err == nil && s.inHome(real)
}

func (s *Store) inHome(real string) bool {
	home, err := realPath(s.home)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(home, real)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// Trust adds a workspace, which must be a folder. It returns the folder that
// is trusted now.
func (s *Store) Trust(workspace string, now time.Time) (string, error) {
	real, err := realPath(workspace)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is no folder; name the workspace's folder", workspace)
	}
	return real, s.change(func(entries []Entry) []Entry {
		if find(entries, real) >= 0 {
			return entries
		}
		return append(entries, Entry{Workspace: real, Since: goclaw.At(now)})
	})
}

// Revoke takes a workspace off the list, whether its folder still exists or
// not. found is false if it was not there.
func (s *Store) Revoke(workspace string) (found bool, err error) {
	given, err := filepath.Abs(workspace)
	if err != nil {
		return false, fmt.Errorf("%s: %w", workspace, err)
	}
	real, err := realPath(workspace)
	if err != nil {
		real = given
	}
	err = s.change(func(entries []Entry) []Entry {
		found = false
		return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
			if e.Workspace != real && e.Workspace != given {
				return false
			}
			found = true
			return true
		})
	})
	return found, err
}

// List returns the trusted workspaces, sorted.
func (s *Store) List() ([]Entry, error) {
	entries, err := s.load()
	return slices.Clone(entries), err
}

// load returns the entries, from memory if the file is as it was. The slice is
// shared.
func (s *Store) load() ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		s.info, s.entries = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, s.broken(err)
	}
	if s.info != nil && same(s.info, info) {
		return s.entries, nil
	}
	s.info, s.entries = nil, nil
	began := time.Now()
	entries, info, err := s.read()
	if err != nil {
		return nil, err
	}
	if age := began.Sub(info.ModTime()); age < 0 || age > racyWindow {
		s.info, s.entries = info, entries
	}
	return entries, nil
}

func same(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// document is the file.
type document struct {
	Trusted []Entry `json:"trusted"`
}

func (s *Store) read() ([]Entry, fs.FileInfo, error) {
	if info, err := os.Stat(s.Path()); err == nil && !info.Mode().IsRegular() {
		return nil, nil, s.broken(errors.New("it is not a file"))
	}
	f, err := os.Open(s.Path())
	if err != nil {
		return nil, nil, s.broken(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, s.broken(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, nil, s.broken(err)
	}
	if len(data) > maxBytes {
		return nil, nil, s.broken(fmt.Errorf("it is larger than %d MB", maxBytes>>20))
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, nil, s.broken(err)
	}
	return d.Trusted, info, nil
}

func (s *Store) broken(err error) error {
	return fmt.Errorf("%s can't be read: %w; mend it, or remove it and trust your workspaces again", s.Path(), reason(err))
}

// change replaces the list by what edit makes of it, again if another process
// has replaced it meanwhile.
func (s *Store) change(edit func([]Entry) []Entry) error {
	for range maxTries {
		var before fs.FileInfo
		var entries []Entry
		if _, err := os.Stat(s.Path()); !errors.Is(err, fs.ErrNotExist) {
			if entries, before, err = s.read(); err != nil {
				return err
			}
		}
		next := edit(entries)
		if slices.Equal(next, entries) {
			return nil
		}
		next = slices.Clone(next)
		slices.SortFunc(next, func(a, b Entry) int { return strings.Compare(a.Workspace, b.Workspace) })
		if done, err := s.write(next, before); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is being changed all the time by another process; try again", s.Path())
}

// write puts the list in the file's place if that is still the one that before
// describes.
func (s *Store) write(entries []Entry, before fs.FileInfo) (done bool, err error) {
	if entries == nil {
		entries = []Entry{}
	}
	data, err := json.MarshalIndent(document{entries}, "", "  ")
	if err != nil {
		return false, fmt.Errorf("%s: %w", s.Path(), err)
	}
	f, err := os.CreateTemp(s.home, fileName+".*") // mode 0600
	if err != nil {
		return false, fmt.Errorf("%s can't be written: %w", s.Path(), reason(err))
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone when all went well
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, fmt.Errorf("%s can't be written: %w", s.Path(), reason(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := os.Stat(s.Path())
	if (err != nil) != (before == nil) || err == nil && !same(now, before) {
		return false, nil
	}
	if err := os.Rename(f.Name(), s.Path()); err != nil {
		return false, fmt.Errorf("%s can't be written: %w", s.Path(), reason(err))
	}
	s.info = nil
	return true, nil
}

func find(entries []Entry, workspace string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return e.Workspace == workspace })
}

// realPath is where a path leads, absolute and without links.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, reason(err))
	}
	return real, nil
}

func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
