package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FindOpenClaw returns the workspace of OpenClaw in a person's home folder, ""
// if there is none.
func FindOpenClaw(home string) string {
	if home == "" {
		return ""
	}
	dir := filepath.Join(home, ".openclaw", "workspace")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// CopyWorkspace copies a workspace to a folder that is empty or not there yet:
// all of it or nothing. Links are copied as links.
func CopyWorkspace(from, to string) (err error) {
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty; choose another, or share the workspace", to)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("copy workspace: %w", err)
	}
	half, err := os.MkdirTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return fmt.Errorf("copy workspace: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy workspace: %w", err), os.RemoveAll(half))
		}
	}()
	if err := os.CopyFS(half, os.DirFS(from)); err != nil {
		return err
	}
	if err := sameModes(from, half); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(half, to)
}

// sameModes keeps what was private so; the folder itself is the owner's alone.
func sameModes(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == from || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(to, rel), info.Mode().Perm())
	})
}
