package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
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
		if s.job.Private(name) {
			p.discard(name, "the name is private")
			_ = os.RemoveAll(s.path + "/" + name)
			continue
		}
		p.entry(src, dst, name, name)
	}
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
	if err != nil || st.inode == p.base[path] && (st.mode != unix.S_IFDIR || empty(src, name)) {
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

// leaf publishes a file or a link that a command made or replaced. What
// somebody else has put under that name meanwhile is kept beside it.
func (p *publication) leaf(src, dst *os.File, base, path string, st entryStat) error {
	name := base // in the workspace
	was, known := p.base[path]
	there, err := lookAt(dst, name)
	changed := !known || there.inode != was
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case there.inode == st.inode:
		p.base[path] = st.inode
		return nil
	case there.mode == unix.S_IFDIR:
		as := spare(dst, name)
		p.discard(path, "a folder of that name was made meanwhile by somebody else; this command's version is kept as "+as)
		name = as
	case changed && there.mode == unix.S_IFREG:
		as := spare(dst, name)
		if err := unix.Renameat2(int(dst.Fd()), name, int(dst.Fd()), as, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		p.discard(path, "it was changed meanwhile by somebody else, whose version is kept as "+as)
	}
	temp := fmt.Sprintf(".goclaw-%d-%d", st.inode.dev, st.inode.ino)
	if st.mode == unix.S_IFLNK {
		var target string
		if target, err = readLink(src, base); err == nil {
			err = unix.Symlinkat(target, int(dst.Fd()), temp)
		}
	} else {
		err = unix.Linkat(int(src.Fd()), base, int(dst.Fd()), temp, 0)
	}
	if err != nil {
		return err
	}
	if err := unix.Renameat(int(dst.Fd()), temp, int(dst.Fd()), name); err != nil {
		return errors.Join(err, unix.Unlinkat(int(dst.Fd()), temp, 0))
	}
	p.base[path] = st.inode
	return nil
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
		if slices.Contains(p.folders, path) || slices.Contains(p.files, path) {
			p.discard(path, "can't be removed or renamed by this command")
			continue
		}
		if err := p.removal(dst, path, was); err != nil {
			p.discard(path, "not removed: "+err.Error())
		}
	}
}

func (p *publication) removal(dst *os.File, path string, was inode) error {
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
	if err != nil || there.mode == unix.S_IFREG && there.inode != was {
		return nil // gone, or replaced since by somebody else
	}
	return unix.Unlinkat(int(dst.Fd()), name, 0)
}

// entryStat is what is known of a folder's entry.
type entryStat struct {
	inode inode
	mode  uint32 // its type
	perm  uint32
}

func lookAt(dir *os.File, name string) (entryStat, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return entryStat{}, err
	}
	return entryStat{inode{uint64(st.Dev), st.Ino}, st.Mode & unix.S_IFMT, st.Mode & 0o7777}, nil
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
