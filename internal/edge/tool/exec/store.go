package exec

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"goclaw/internal/edge/tool"
)

// store is the folder of the workspace where output is kept.
type store struct {
	dir    *tool.Dir
	stages string // absolute path of the folder for stages
	run    string
	sub    *tool.Dir // the run's own folder, once needed
}

// openStore makes the folder, and keeps it out of version control.
func openStore(reach *tool.Reach, run string) (*store, error) {
	rel, err := reach.Resolve(tool.OutputDir)
	if err != nil {
		return nil, err
	}
	dir, err := reach.MakeDir(rel)
	if err != nil {
		return nil, err
	}
	name := path.Base(tool.StageDir)
	if err := dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		dir.Close()
		return nil, fmt.Errorf("%s: %w", rel, err)
	}
	if info, err := dir.Lstat(name); err != nil || !info.IsDir() {
		dir.Close()
		return nil, fmt.Errorf("%s: is not a folder", tool.StageDir)
	}
	f, err := dir.Root.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.WriteString("*\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		dir.Close()
		return nil, fmt.Errorf("%s: %w", rel, err)
	}
	return &store{dir: dir, stages: filepath.Join(reach.Base(), filepath.FromSlash(rel), name), run: run}, nil
}

// create opens a new file for the run's output.
func (s *store) create() (io.WriteCloser, string, error) {
	if s.run == "" || strings.ContainsAny(s.run, `/\`) || !fs.ValidPath(s.run) {
		return nil, "", errors.New("the call belongs to no run")
	}
	if s.sub == nil {
		if err := s.dir.Mkdir(s.run, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, "", err
		}
		sub, err := s.dir.Sub(s.run)
		if err != nil {
			return nil, "", err
		}
		s.sub = sub
	}
	name := "exec-" + strings.ToLower(rand.Text()[:8]) + ".txt"
	f, err := s.sub.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, "", err
	}
	return f, path.Join(s.sub.Path, name), nil
}

func (s *store) close() {
	if s.sub != nil {
		s.sub.Close()
	}
	s.dir.Close()
}
