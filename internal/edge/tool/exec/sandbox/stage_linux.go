package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const stagePrefix = "goclaw-stage-"

// stage stands in for the root of a workspace that has private entries. It is
// locked while it is in use.
type stage struct {
	path    string
	job     Job
	lock    *os.File
	placed  map[string]inode // what was put there, by name
	folders []string         // names whose content is the workspace's own
	files   []string         // the same for files that could not be linked
}

type inode struct{ dev, ino uint64 }

// newStage builds a stage for job. place puts a folder, or a file that can't
// be linked, where the command will find the workspace's own.
func newStage(job Job, place func(host, staged string, isDir bool) error) (*stage, error) {
	sweep(job.StageDir)
	path, lock, err := lockedFolder(job.StageDir)
	if err != nil {
		return nil, fmt.Errorf("stage the workspace: %w", err)
	}
	s := &stage{path: path, job: job, lock: lock, placed: map[string]inode{}}
	err = os.Chmod(path, 0o755)
	if err == nil {
		err = s.fill(place)
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("stage the workspace: %w", err)
	}
	return s, nil
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

func (s *stage) fill(place func(host, staged string, isDir bool) error) error {
	entries, err := os.ReadDir(s.job.Workspace)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if s.job.Private(name) {
			continue
		}
		host, staged := filepath.Join(s.job.Workspace, name), filepath.Join(s.path, name)
		switch mode := e.Type(); {
		case mode.IsDir():
			s.folders = append(s.folders, name)
			err = place(host, staged, true)
		case mode&fs.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(host); err == nil {
				err = os.Symlink(target, staged)
			}
		case mode.IsRegular():
			if os.Link(host, staged) != nil {
				s.files = append(s.files, name)
				err = place(host, staged, false)
			}
		default:
			continue // devices, pipes and sockets are not shown
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return err
		}
		if info, err := os.Lstat(staged); err == nil {
			s.placed[name] = inodeOf(info)
		}
	}
	return nil
}

func inodeOf(info fs.FileInfo) inode {
	st := info.Sys().(*syscall.Stat_t) // always, on Linux
	return inode{uint64(st.Dev), st.Ino}
}

// settle does to the workspace what the command did to the stage, and removes
// the stage. It reports what it didn't do.
func (s *stage) settle() (discarded []string, err error) {
	defer s.remove()
	src, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("settle the stage: %w", err)
	}
	defer src.Close()
	dst, err := os.Open(s.job.Workspace)
	if err != nil {
		return nil, fmt.Errorf("settle the stage: %w", err)
	}
	defer dst.Close()
	names, err := src.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("settle the stage: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if why := s.settleOne(src, dst, name); why != "" {
			discarded = append(discarded, name+": "+why)
		}
	}
	for name, was := range s.placed {
		if slices.Contains(names, name) {
			continue
		}
		if slices.Contains(s.folders, name) || slices.Contains(s.files, name) {
			discarded = append(discarded, name+": can't be removed or renamed by this command")
			continue
		}
		path := filepath.Join(s.job.Workspace, name)
		info, err := os.Lstat(path)
		if err != nil || info.Mode().IsRegular() && inodeOf(info) != was {
			continue // gone or replaced since by somebody else
		}
		if err := os.Remove(path); err != nil {
			discarded = append(discarded, fmt.Sprintf("%s: not removed: %v", name, err))
		}
	}
	slices.Sort(discarded)
	return discarded, nil
}

func (s *stage) settleOne(src, dst *os.File, name string) (why string) {
	info, err := os.Lstat(filepath.Join(s.path, name))
	if err != nil {
		return err.Error()
	}
	if inodeOf(info) == s.placed[name] {
		return ""
	}
	if s.job.Private(name) {
		return "the name is private"
	}
	if m := info.Mode(); !m.IsRegular() && !m.IsDir() && m&fs.ModeSymlink == 0 {
		return "neither a file, a folder nor a link"
	}
	if err := merge(src, dst, name); err != nil {
		return err.Error()
	}
	return ""
}

// merge moves name from one folder to another. Files replace files; folders
// that are on both sides are merged. No link is followed.
func merge(src, dst *os.File, name string) error {
	err := unix.Renameat(int(src.Fd()), name, int(dst.Fd()), name)
	if err == nil || !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return err
	}
	from, err := openFolder(src, name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openFolder(dst, name)
	if err != nil {
		return err
	}
	defer to.Close()
	names, err := from.Readdirnames(-1)
	for _, n := range names {
		err = errors.Join(err, merge(from, to, n))
	}
	return err
}

func openFolder(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (s *stage) remove() {
	// What is left is empty mount points and second names of files; the next
	// job sweeps what can't be removed now.
	_ = os.RemoveAll(s.path)
	s.lock.Close()
}

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
