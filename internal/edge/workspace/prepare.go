package workspace

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

//go:embed templates
var templates embed.FS

// Names returns the workspace files in the order in which they are read.
func Names() []string {
	return []string{
		"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md",
		"USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md",
	}
}

// Prepare makes dir a workspace if it is a fresh one: it creates dir as needed
// and, if not one of the eight files is there, writes all of them from the
// templates. created lists what it wrote. Nothing is ever overwritten; when
// writing fails half-way, what was written is taken back, so that the next
// call finds a fresh folder again.
func Prepare(dir string) (created []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("prepare workspace: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("prepare workspace: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range Names() {
		_, err := root.Lstat(name)
		if err == nil {
			return nil, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("prepare workspace: %w", err)
		}
	}
	for _, name := range Names() {
		wrote, err := writeNew(root, name)
		if err != nil {
			for _, c := range created {
				err = errors.Join(err, root.Remove(c))
			}
			return nil, fmt.Errorf("prepare workspace: %w", err)
		}
		if wrote {
			created = append(created, name)
		}
	}
	return created, nil
}

// writeNew writes a template unless the file has appeared in the meantime:
// another process may prepare the same folder.
func writeNew(root *os.Root, name string) (wrote bool, err error) {
	text, err := templates.ReadFile("templates/" + name)
	if err != nil {
		return false, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, errors.Join(err, root.Remove(name))
	}
	return true, nil
}
