package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const stagePrefix = "goclaw-stage-"

// stages hands out the stages of one sandbox. Jobs that run at the same time
// on one workspace share its stage, so that what they do to the same files has
// the meaning that it would have in the workspace.
type stages struct {
	mu     sync.Mutex
	active map[place]*shared
}

// place tells stages apart: jobs with other private entries must not meet.
type place struct{ workspace, rule string }

func newStages() *stages { return &stages{active: map[place]*shared{}} }

// shared is a folder that stands in for the root of a workspace that has
// private entries. It is locked while it is in use, and guarded by stages.mu.
type shared struct {
	path string
	lock *os.File
	jobs int

	// base is what stage and workspace had in common when they were last
	// compared: the stage's entries, by path from its root. What differs from
	// it in the stage was done by a command.
	base map[string]stamp
	// lent are the copies on the stage, by path from its root.
	lent map[string]loan
}

// stage is a job's part in a shared stage.
type stage struct {
	*shared
	all     *stages
	job     Job
	placed  map[string]bool // the names that were there when the job began
	folders []string        // names whose content is the workspace's own
	files   []string        // the same for files that could not be linked
}

// stamp tells whether an entry is still what it was; zero is no entry.
type stamp struct {
	dev, ino uint64
	mtime    int64 // of files, in nanoseconds
}

// same reports whether two names are of one file.
func (s stamp) same(t stamp) bool { return s.dev == t.dev && s.ino == t.ino }

// placer puts a folder, or a file that can't be linked, where the command will
// find the workspace's own.
type placer struct {
	place  func(host, staged string, isDir bool) error
	mounts bool // what is placed is mounted over when a job begins
}

// join gives job a stage: the one that other jobs of its workspace use now,
// brought up to date, or a new one.
func (a *stages) join(job Job, p placer) (*stage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sh := a.active[job.stageKey()]
	if sh == nil {
		sweep(job.StageDir)
		path, lock, err := lockedFolder(job.StageDir)
		if err != nil {
			return nil, fmt.Errorf("stage the workspace: %w", err)
		}
		sh = &shared{path: path, lock: lock, base: map[string]stamp{}, lent: map[string]loan{}}
		if err := os.Chmod(path, 0o755); err != nil {
			sh.remove()
			return nil, fmt.Errorf("stage the workspace: %w", err)
		}
	}
	s := &stage{shared: sh, all: a, job: job, placed: map[string]bool{}}
	if err := s.fill(p); err != nil {
		if sh.jobs == 0 {
			sh.remove()
		}
		return nil, fmt.Errorf("stage the workspace: %w", err)
	}
	sh.jobs++
	a.active[job.stageKey()] = sh
	return s, nil
}

func (j Job) stageKey() place { return place{j.Workspace, j.Rule} }

// leave does to the workspace what commands did to the stage, and removes the
// stage with its last job. It reports what it didn't do.
func (s *stage) leave() (discarded []string, err error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	discarded, err = s.publish()
	s.jobs--
	if s.jobs == 0 {
		delete(s.all.active, s.job.stageKey())
		s.remove()
	}
	return discarded, err
}

// lockedFolder makes a folder that nobody sweeps while lock is open.
func lockedFolder(parent string) (path string, lock *os.File, err error) {
	for range 10 {
		path, err := os.MkdirTemp(parent, stagePrefix)
		if err != nil {
			return "", nil, err
		}
		lock, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a sweeper was faster
		}
		if err != nil {
			return "", nil, errors.Join(err, os.Remove(path))
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			if _, err := os.Stat(path); err == nil {
				return path, lock, nil
			}
		}
		lock.Close()
	}
	return "", nil, errors.New("its folder can't be locked")
}

// sweep removes what programs that were killed left behind.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stagePrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(path) // what stays is tried again by the next job
		}
		f.Close()
	}
}

// fill brings the stage up to date with the workspace: what is new or changed
// there, and was not changed by a command here, is put on the stage.
func (s *stage) fill(p placer) error {
	entries, err := os.ReadDir(s.job.Workspace)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		if s.job.Private(e.Name()) {
			continue
		}
		there[e.Name()] = true
		if err := s.put(e, p); err != nil && !errors.Is(err, fs.ErrNotExist) { // gone since
			return err
		}
	}
	for path, was := range maps.Clone(s.base) {
		if strings.Contains(path, "/") || there[path] {
			continue
		}
		// Gone from the workspace, or private by now. A mount point that is
		// in use stays, and what commands put there counts as new.
		if staged := filepath.Join(s.path, path); stampAt(staged) == was {
			_ = os.Remove(staged)
		}
		delete(s.base, path)
	}
	for name := range maps.Clone(s.lent) {
		if !strings.Contains(name, "/") && !there[name] {
			if err := s.takeBack(name); err != nil {
				return err
			}
		}
	}
	if err := s.withdrawRenamed(); err != nil {
		return err
	}
	if err := s.lendAll(); err != nil {
		return err
	}
	staged, err := os.ReadDir(s.path)
	for _, e := range staged {
		s.placed[e.Name()] = true
	}
	return err
}

// withdrawRenamed takes back what has become private, or may be changed no
// more, since it was placed: whoever saves such a file by way of a temporary
// one may have renamed that a moment ago.
func (s *stage) withdrawRenamed() error {
	entries, err := os.ReadDir(s.job.Workspace)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !s.job.Private(e.Name()) && !s.job.keeps(e.Name()) {
			continue
		}
		private := stampAt(filepath.Join(s.job.Workspace, e.Name()))
		for path, was := range maps.Clone(s.base) {
			if was.same(private) && !strings.Contains(path, "/") && path != e.Name() {
				_ = os.Remove(filepath.Join(s.path, path))
				delete(s.base, path)
			}
		}
	}
	return nil
}

// put places one entry of the workspace, unless a command has changed or
// removed it on the stage.
func (s *stage) put(e fs.DirEntry, p placer) error {
	name := e.Name()
	host, staged := filepath.Join(s.job.Workspace, name), filepath.Join(s.path, name)
	if e.Type().IsRegular() && s.job.keeps(name) {
		return s.lend(name, host)
	}
	if _, ok := s.lent[name]; ok {
		if err := s.takeBack(name); err != nil {
			return err
		}
	}
	was, known := s.base[name]
	now := stampAt(staged)
	ours := now == was // the stage has what it was given, or neither has anything
	switch mode := e.Type(); {
	case mode.IsDir():
		if now == (stamp{}) && !known {
			if err := p.place(host, staged, true); err != nil {
				return err
			}
			s.base[name], ours = stampAt(staged), true
		}
		if ours {
			s.folders = append(s.folders, name)
			return nil
		}
		return s.pull(name)
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(host)
		if err != nil {
			return err
		}
		if placed, err := os.Readlink(staged); !ours || err == nil && placed == target {
			return nil
		}
		_ = os.Remove(staged)
		if err := os.Symlink(target, staged); err != nil {
			return err
		}
	case mode.IsRegular():
		if known && now.same(stampAt(host)) {
			s.base[name] = now // one file under two names, whoever wrote to it
			return nil
		}
		if !ours {
			return nil
		}
		_ = os.Remove(staged)
		err := os.Link(host, staged)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file, gone since
		}
		if err != nil {
			s.files = append(s.files, name)
			if err := p.place(host, staged, false); err != nil {
				return err
			}
		}
	default:
		return nil // devices, pipes and sockets are not shown
	}
	s.base[name] = stampAt(staged)
	return nil
}

// stampAt is the stamp of what is at path.
func stampAt(path string) stamp {
	st, err := lookAt(nil, path)
	if err != nil {
		return stamp{}
	}
	return st.stamp
}

func (sh *shared) remove() {
	// What is left is empty mount points and second names of files; the next
	// job sweeps what can't be removed now.
	_ = os.RemoveAll(sh.path)
	sh.lock.Close()
}

// shows reports whether name was on the stage when the job began.
func (s *stage) shows(name string) bool { return s.placed[name] }

// dir is where a path of the workspace lies on the stage.
func (s *stage) dir(path string) string {
	if path == s.job.Workspace {
		return s.path
	}
	if name := top(path, s.job.Workspace); slices.Contains(s.folders, name) {
		return path
	}
	return filepath.Join(s.path, strings.TrimPrefix(path, s.job.Workspace))
}
