package skills

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find reads the skills at a path, whatever its scope: a SKILL.md, a skill's
// folder, or a folder with such folders anywhere beneath it. Links beneath the
// path are not followed. The error is about the path itself.
func (l *Library) Find(path string) ([]File, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, reason(err))
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, reason(err))
	}
	if !info.IsDir() {
		if !strings.EqualFold(filepath.Base(abs), fileName) {
			return nil, fmt.Errorf("%s: is no SKILL.md; give one, a skill's folder, or a folder of skills", path)
		}
		return []File{l.single(path, filepath.Dir(abs))}, nil
	}
	var files []File
	err = filepath.WalkDir(abs, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if at != abs && d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if strings.EqualFold(d.Name(), fileName) {
			shown := path
			if rel, err := filepath.Rel(abs, at); err == nil {
				shown = filepath.Join(path, rel)
			}
			files = append(files, l.single(shown, filepath.Dir(at)))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, reason(err))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: holds no SKILL.md; give one, a skill's folder, or a folder of skills", path)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// single reads the SKILL.md of one folder.
func (l *Library) single(shown, dir string) File {
	f, _ := l.file(filepath.Dir(dir), entry{name: filepath.Base(dir)}, nil)
	return File{Path: shown, Folder: f.folder, Location: shown, Data: f.data, Refused: f.refused, Hint: f.hint}
}
