package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"goclaw"
)

// reachOnly are the private folders at a workspace's root.
func reachOnly() []string { return []string{"memory", ".git"} }

// folder is a workspace while its files are looked at.
type folder struct {
	dir     string
	private map[string]fs.FileInfo // reachOnly, once it was wanted
}

// look examines one file without opening it. The info is the file's own, at
// the end of any link; a warning means that it is not to be read.
func (w *folder) look(name string) (info fs.FileInfo, warning string, err error) {
	if !fs.ValidPath(name) || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, "is no path within the workspace; it was not read", nil
	}
	if own := respelled(name); own != "" {
		return nil, "is " + own + " in another spelling; it was not read", nil
	}
	linked, warning, err := w.lookAtFolders(name)
	if warning != "" || err != nil {
		return nil, warning, err
	}
	info, err = os.Lstat(w.path(name))
	if err != nil {
		return nil, unexamined(err), err
	}
	if linked || info.Mode()&fs.ModeSymlink != 0 {
		if info, warning = w.follow(name); warning != "" {
			return nil, warning, nil
		}
	}
	if !info.Mode().IsRegular() {
		return nil, "is " + kind(info.Mode()) + ", not a file; it was not read", nil
	}
	return info, "", nil
}

func (w *folder) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func unexamined(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return "can't be examined: " + reason(err)
}

// lookAtFolders examines the folders that name leads through. linked reports a
// link among them.
func (w *folder) lookAtFolders(name string) (linked bool, warning string, err error) {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		info, err := os.Lstat(w.path(name[:i]))
		if err != nil {
			return false, unexamined(err), err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return true, "", nil // follow looks at the rest
		}
		if at := w.privateFolder(info); at != "" && at != entryOf(name) {
			return false, "is in " + at + " under another name, which is private; it was not read", nil
		}
	}
	return false, "", nil
}

// entryOf is the first part of a name: the entry at the workspace's root.
func entryOf(name string) string {
	entry, _, _ := strings.Cut(name, "/")
	return entry
}

// respelled is the private entry or workspace file that name means on some
// file systems without being spelled so; "" for none.
func respelled(name string) string {
	entry := entryOf(name)
	for _, own := range slices.Concat(Names(), reachOnly()) {
		if strings.EqualFold(own, entry) && own != entry {
			return own
		}
	}
	return ""
}

// privateFolder is which of reachOnly a folder is, whatever it is called here.
func (w *folder) privateFolder(info fs.FileInfo) string {
	if w.private == nil {
		w.private = map[string]fs.FileInfo{}
		for _, name := range reachOnly() {
			if info, err := os.Stat(w.path(name)); err == nil {
				w.private[name] = info
			}
		}
	}
	for name, private := range w.private {
		if os.SameFile(info, private) {
			return name
		}
	}
	return ""
}

// follow resolves links and refuses what leaves the workspace or leads to
// private content under another name.
func (w *folder) follow(name string) (fs.FileInfo, string) {
	home, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		return nil, "is a link in a folder that can't be resolved: " + reason(err)
	}
	target, err := filepath.EvalSymlinks(w.path(name))
	if err != nil {
		return nil, "is a link that leads nowhere: " + strings.TrimPrefix(reason(err), "EvalSymlinks: ")
	}
	rel, err := filepath.Rel(home, target)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "is a link that leaves the workspace; it was not followed"
	}
	rel = filepath.ToSlash(rel)
	for at := rel; ; at = path.Dir(at) {
		private := ""
		for _, own := range slices.Concat(Names(), reachOnly()) {
			if strings.EqualFold(own, at) {
				private = own
			}
		}
		if info, err := os.Lstat(filepath.Join(home, filepath.FromSlash(at))); err == nil && private == "" {
			private = w.privateFolder(info)
		}
		switch {
		case private == "" || private == entryOf(name):
		case slices.Contains(reachOnly(), private):
			return nil, "is a link into " + private + "/, which is private; it was not followed"
		default:
			return nil, "is a link to " + private + "; it was not followed"
		}
		if path.Dir(at) == "." {
			break
		}
	}
	info, err := os.Lstat(target)
	if err != nil {
		return nil, "is a link that can't be followed: " + reason(err)
	}
	return info, ""
}

// refuseShared refuses files that are one file under several names: who may
// see the one name must not get the other's content.
func (w *folder) refuseShared(files []goclaw.WorkspaceFile, infos []fs.FileInfo) {
	own, private := len(Names()), goclaw.PrivateEntries()
	for i := range files {
		if infos[i] == nil {
			continue
		}
		inPrivate := slices.Contains(reachOnly(), entryOf(files[i].Name))
		for j := range own {
			if i == j || infos[j] == nil || !os.SameFile(infos[i], infos[j]) {
				continue
			}
			if inPrivate && !slices.Contains(private, files[j].Name) {
				continue // it is the other that is out of place
			}
			what := "; it was not read"
			if i < own {
				what = "; neither was read"
			}
			files[i].Warning = "is the same file as " + files[j].Name + what
		}
		if files[i].Warning == "" && !inPrivate {
			if at := w.alias(infos[i]); at != "" {
				files[i].Warning = "is the same file as " + at + ", which is private; it was not read"
			}
		}
	}
}

// alias is the name that a file has in a private folder as well; "" for none.
// Only files with several names cost a look.
func (w *folder) alias(info fs.FileInfo) (name string) {
	if only, known := onlyName(info); known && only {
		return ""
	}
	for _, private := range reachOnly() {
		// What can't be listed here can't be told apart either: it is left out.
		_ = filepath.WalkDir(w.path(private), func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir() && private == ".git" && d.Name() == "objects":
				return fs.SkipDir // compressed: no text
			case d.IsDir():
				return nil
			}
			other, err := d.Info()
			if err == nil && os.SameFile(info, other) {
				if rel, err := filepath.Rel(w.dir, p); err == nil {
					name = filepath.ToSlash(rel)
				}
				return fs.SkipAll
			}
			return nil
		})
	}
	return name
}

// privateEntry is which private file of the workspace dir a file is, wherever
// it lies and whatever it is called; "" for none.
func privateEntry(dir, file string) string {
	at := folder{dir: dir}
	info, err := os.Stat(file)
	home, err2 := filepath.EvalSymlinks(dir)
	target, err3 := filepath.EvalSymlinks(file)
	if errors.Join(err, err2, err3) != nil {
		return "" // it is not there, or there is nothing that it could be
	}
	for _, name := range goclaw.PrivateEntries() {
		if own, err := os.Stat(at.path(name)); err == nil && os.SameFile(own, info) {
			return name
		}
	}
	for inner, outer := target, filepath.Dir(target); outer != inner; inner, outer = outer, filepath.Dir(outer) {
		above, err := os.Lstat(outer)
		if err != nil {
			continue
		}
		if name := at.privateFolder(above); name != "" {
			return name + strings.TrimPrefix(filepath.ToSlash(target), filepath.ToSlash(outer))
		}
		if outer == home {
			break
		}
	}
	return at.alias(info)
}

func kind(m fs.FileMode) string {
	kinds := []struct {
		bit  fs.FileMode
		name string
	}{
		{fs.ModeDir, "a folder"},
		{fs.ModeNamedPipe, "a pipe"},
		{fs.ModeSocket, "a socket"},
		{fs.ModeDevice, "a device"},
		{fs.ModeSymlink, "a link"},
	}
	for _, k := range kinds {
		if m&k.bit != 0 {
			return k.name
		}
	}
	return "something special"
}
