package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// keptReason is why a change to what was only lent isn't made.
const keptReason = "only the main agent changes it"

// loan is a copy of a file, put on the stage for reading. What a command does
// to it goes no further.
type loan struct {
	host, copy stamp // what was copied, and the copy, as they were then
}

// keeps reports whether an entry of the root may be seen, and not changed.
func (j Job) keeps(name string) bool { return j.Kept != nil && j.Kept(name) }

// lendsIn reports whether name, at the root, is a private folder of which only
// copies of some files are shown.
func (j Job) lendsIn(name string) bool {
	for _, l := range j.Lent {
		if strings.HasPrefix(l.Name, name+"/") {
			return true
		}
	}
	return false
}

// lendAll brings the copies from private folders up to date.
func (s *stage) lendAll() error {
	wanted := map[string]bool{}
	for _, l := range s.job.Lent {
		wanted[l.Name] = true
		if err := s.lend(l.Name, l.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for name := range s.lent {
		if strings.Contains(name, "/") && !wanted[name] {
			if err := s.takeBack(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// lend puts a copy of the file at host on the stage, unless it is there.
// Commands of other jobs may be busy on the stage, so all of it is done within
// the stage's root, and no link leads out of that.
func (s *stage) lend(name, host string) error {
	now := loan{stampAt(host), stampAt(filepath.Join(s.path, name))}
	if was, ok := s.lent[name]; ok && was == now {
		return nil
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := clearWay(root, name); err != nil {
		return err
	}
	temp := ".goclaw-" + rand.Text()
	if err := copyFile(root, temp, host); err != nil {
		return errors.Join(err, root.RemoveAll(temp))
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.RemoveAll(temp))
	}
	delete(s.base, name)
	s.lent[name] = loan{now.host, stampAt(filepath.Join(s.path, name))}
	return nil
}

// takeBack removes a copy, and whatever a command made of it.
func (s *stage) takeBack(name string) error {
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return err
	}
	defer root.Close()
	delete(s.lent, name)
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
	}
	return nil
}

// clearWay makes the folders above name, and removes what is in their place,
// or a folder in its own.
func clearWay(root *os.Root, name string) error {
	parts := strings.Split(name, "/")
	for i := range parts[:len(parts)-1] {
		p := path.Join(parts[:i+1]...)
		info, err := root.Lstat(p)
		if err == nil && info.IsDir() {
			continue
		}
		if err := root.RemoveAll(p); err != nil {
			return err
		}
		if err := root.Mkdir(p, 0o755); err != nil {
			return err
		}
	}
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		return root.RemoveAll(name)
	}
	return nil
}

func copyFile(root *os.Root, name, host string) error {
	fd, err := unix.Open(host, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(fd), host)
	defer from.Close()
	if info, err := from.Stat(); err != nil || !info.Mode().IsRegular() {
		return fs.ErrNotExist // replaced since by something else
	}
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// returnLoan reports what commands did to an entry of the root that they may
// only read. None of it is published.
func (p *publication) returnLoan(src *os.File, name string) {
	p.seen[name] = true
	st, err := lookAt(src, name)
	if err != nil {
		return
	}
	given := p.base[name]
	if l, ok := p.lent[name]; ok {
		given = l.copy
	}
	if st.stamp != given || st.mode == unix.S_IFDIR && !empty(src, name) {
		p.discard(name, keptReason)
	}
}

// returnLoans does the same for a private folder with copies in it.
func (p *publication) returnLoans(name string) {
	p.seen[name] = true
	root, err := os.OpenRoot(p.path)
	if err != nil {
		return
	}
	defer root.Close()
	// What can't be read isn't published either.
	_ = fs.WalkDir(root.FS(), name, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		p.seen[file] = true
		if l, ok := p.lent[file]; !ok || l.copy != stampAt(filepath.Join(p.path, file)) {
			p.discard(file, keptReason)
		}
		return nil
	})
}

// missedLoans reports the copies that commands removed.
func (p *publication) missedLoans() {
	for name := range p.lent {
		if !p.seen[name] {
			p.discard(name, keptReason)
		}
	}
}
