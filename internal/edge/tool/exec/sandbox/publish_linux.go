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

	"golang.org/x/sys/unix"
)

// publication carries what commands did to a stage over to its workspace.
// Files become second names of the stage's: a command that still runs and
// holds one open goes on writing to both. All of it is done relative to open
// folders, and no link is followed: commands of other jobs may be busy on the
// stage meanwhile.
type publication struct {
	*stage
	seen      map[string]bool // paths that are on the stage
	discarded []string
}

// publish brings the workspace up to date with the stage.
func (s *stage) publish() ([]string, error) {
	src, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("publish the stage: %w", err)
	}
	defer src.Close()
	dst, err := os.Open(s.job.Workspace)
	if err != nil {
		return nil, fmt.Errorf("publish the stage: %w", err)
	}
	defer dst.Close()
	names, err := src.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("publish the stage: %w", err)
	}
	p := &publication{stage: s, seen: map[string]bool{}}
	for _, name := range names {
		_, lent := s.lent[name]
		switch {
		case s.job.lendsIn(name):
			p.returnLoans(name)
		case s.job.Private(name):
			p.discard(name, "the name is private") // it goes with the stage
		case lent || s.job.keeps(name):
			p.returnLoan(src, name)
		default:
			p.entry(src, dst, name, name)
		}
	}
	p.missedLoans()
	p.removals(dst)
	slices.Sort(p.discarded)
	return p.discarded, nil
}

func (p *publication) discard(path, why string) {
	p.discarded = append(p.discarded, path+": "+why)
}

// entry publishes name of the folder src, whose path from the stage's root is
// path, unless it is as it was.
func (p *publication) entry(src, dst *os.File, name, path string) {
	p.seen[path] = true
	st, err := lookAt(src, name)
	if err != nil || st.stamp == p.base[path] && (st.mode != unix.S_IFDIR || empty(src, name)) {
		return // gone since, or unchanged
	}
	switch st.mode {
	case unix.S_IFDIR:
		err = p.folder(src, dst, name, path, st)
	case unix.S_IFREG, unix.S_IFLNK:
		err = p.leaf(src, dst, name, path, st)
	default:
		err = errors.New("neither a file, a folder nor a link")
	}
	if err != nil {
		p.discard(path, err.Error())
	}
}

// folder publishes a folder that commands made. The last job moves it; while
// others run it stays where they use it, and the workspace gets one like it.
func (p *publication) folder(src, dst *os.File, name, path string, st entryStat) error {
	if p.jobs == 1 && !p.published(path) {
		if unix.Renameat2(int(src.Fd()), name, int(dst.Fd()), name, unix.RENAME_NOREPLACE) == nil {
			return nil
		}
	}
	if err := unix.Mkdirat(int(dst.Fd()), name, st.perm); err != nil && !errors.Is(err, unix.EEXIST) {
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
		p.entry(from, to, n, path+"/"+n)
	}
	return err
}

// published reports whether something beneath path was published before.
func (p *publication) published(path string) bool {
	for known := range p.base {
		if strings.HasPrefix(known, path+"/") {
			return true
		}
	}
	return false
}

// leaf publishes a file or a link that a command made, changed or replaced.
// What somebody else has put under that name meanwhile is kept: of two files
// the newer has the name, and the other one beside it.
func (p *publication) leaf(src, dst *os.File, name, path string, st entryStat) error {
	if there, err := lookAt(dst, name); err == nil && there.same(st.stamp) {
		p.base[path] = st.stamp
		return nil
	}
	temp := fmt.Sprintf(".goclaw-%d-%d", st.dev, st.ino)
	if err := copyName(src, name, dst, temp, st.mode); err != nil {
		return err
	}
	was := p.base[path]
	p.base[path] = st.stamp
	fd := int(dst.Fd())
	for {
		err := unix.Renameat2(fd, temp, fd, name, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) { // a file system that can't tell
			return unix.Renameat(fd, temp, fd, name)
		}
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		there, err := lookAt(dst, name)
		if err != nil {
			continue // gone since
		}
		if there.mode == unix.S_IFDIR || there.stamp != was && there.mode == unix.S_IFREG && there.mtime > st.mtime {
			as := spare(dst, name)
			p.discard(path, "it was changed meanwhile by somebody else; this command's version is kept as "+as)
			return unix.Renameat2(fd, temp, fd, as, unix.RENAME_NOREPLACE)
		}
		if err := unix.Renameat2(fd, temp, fd, name, unix.RENAME_EXCHANGE); err != nil {
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			return err
		}
		return p.retire(dst, temp, name, path, was)
	}
}

// retire removes what has lost its name to a command's version, unless it is
// somebody else's.
func (p *publication) retire(dst *os.File, temp, name, path string, was stamp) error {
	old, err := lookAt(dst, temp)
	if err != nil {
		return err
	}
	if old.stamp == was || old.mode == unix.S_IFLNK {
		return unix.Unlinkat(int(dst.Fd()), temp, 0)
	}
	as := spare(dst, name)
	p.discard(path, "it was changed meanwhile by somebody else, whose version is kept as "+as)
	return unix.Renameat2(int(dst.Fd()), temp, int(dst.Fd()), as, unix.RENAME_NOREPLACE)
}

// copyName gives a file a second name, or a link a copy.
func copyName(src *os.File, name string, dst *os.File, as string, mode uint32) error {
	if mode != unix.S_IFLNK {
		return unix.Linkat(int(src.Fd()), name, int(dst.Fd()), as, 0)
	}
	target, err := readLink(src, name)
	if err != nil {
		return err
	}
	return unix.Symlinkat(target, int(dst.Fd()), as)
}

// pull brings a folder that a command made on the stage, and that was
// published since, up to date with the workspace's.
func (s *stage) pull(name string) error {
	src, err := os.Open(s.job.Workspace)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer dst.Close()
	s.pullEntry(src, dst, name, name)
	return nil
}

// pullEntry leaves alone what a command has changed, and what can't be linked.
func (s *stage) pullEntry(src, dst *os.File, name, path string) {
	host, err := lookAt(src, name)
	if err != nil || slices.Contains(s.job.Hidden, filepath.Join(s.job.Workspace, path)) {
		return
	}
	if host.mode == unix.S_IFDIR {
		_ = unix.Mkdirat(int(dst.Fd()), name, host.perm) // it may be there
		from, err := openFolder(src, name)
		if err != nil {
			return
		}
		defer from.Close()
		to, err := openFolder(dst, name)
		if err != nil {
			return
		}
		defer to.Close()
		names, _ := from.Readdirnames(-1)
		for _, n := range names {
			s.pullEntry(from, to, n, path+"/"+n)
		}
		return
	}
	staged, err := lookAt(dst, name)
	if err == nil && (staged.same(host.stamp) || staged.stamp != s.base[path]) || err != nil && s.base[path] != (stamp{}) {
		return // the same, changed by a command, or removed by one
	}
	_ = unix.Unlinkat(int(dst.Fd()), name, 0)
	if copyName(src, name, dst, name, host.mode) != nil {
		return
	}
	if st, err := lookAt(dst, name); err == nil {
		s.base[path] = st.stamp
	}
}

// spare is a name beside name that nothing has.
func spare(dir *os.File, name string) string {
	for n := 1; ; n++ {
		as := fmt.Sprintf("%s.conflict-%d", name, n)
		if _, err := lookAt(dir, as); err != nil {
			return as
		}
	}
}

// removals removes from the workspace what commands have removed from the
// stage and nobody has changed since.
func (p *publication) removals(dst *os.File) {
	for path, was := range maps.Clone(p.base) {
		if p.seen[path] {
			continue
		}
		delete(p.base, path)
		if p.job.keeps(path) {
			p.discard(path, keptReason)
			continue
		}
		if slices.Contains(p.folders, path) || slices.Contains(p.files, path) {
			p.discard(path, "can't be removed or renamed by this command")
			continue
		}
		if err := p.removal(dst, path, was); err != nil {
			p.discard(path, "not removed: "+err.Error())
		}
	}
}

func (p *publication) removal(dst *os.File, path string, was stamp) error {
	parts := strings.Split(path, "/")
	for _, name := range parts[:len(parts)-1] {
		next, err := openFolder(dst, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer next.Close()
		dst = next
	}
	name := parts[len(parts)-1]
	there, err := lookAt(dst, name)
	if err != nil || there.mode == unix.S_IFREG && !there.same(was) {
		return nil // gone, or replaced since by somebody else
	}
	return unix.Unlinkat(int(dst.Fd()), name, 0)
}

// entryStat is what is known of a folder's entry.
type entryStat struct {
	stamp
	mode uint32 // its type
	perm uint32
}

// lookAt looks at an entry of dir, or at a path if dir is nil, and follows no
// link.
func lookAt(dir *os.File, name string) (entryStat, error) {
	fd := unix.AT_FDCWD
	if dir != nil {
		fd = int(dir.Fd())
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return entryStat{}, err
	}
	e := entryStat{stamp{dev: uint64(st.Dev), ino: st.Ino}, st.Mode & unix.S_IFMT, st.Mode & 0o7777}
	if e.mode == unix.S_IFREG {
		e.mtime = st.Mtim.Nano()
	}
	return e, nil
}

// empty reports whether a folder holds nothing: a mount point that is mounted
// over. A command that began before the mount point was made may have used it
// as a folder.
func empty(dir *os.File, name string) bool {
	f, err := openFolder(dir, name)
	if err != nil {
		return true
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	return err != nil || len(names) == 0
}

func readLink(dir *os.File, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func openFolder(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
