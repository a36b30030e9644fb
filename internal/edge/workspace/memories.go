package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw"
)

const (
	memoryFile  = "MEMORY.md"
	maxMemory   = 4 << 20 // bytes of one note that is searched
	maxMemories = 20_000  // notes of one workspace that are
)

// Memories are the notes of workspaces that an agent's memory is made of:
// MEMORY.md and what lies below memory/. Its zero value is ready; it is safe
// for concurrent use.
type Memories struct{}

// Notes lists them in the order of their paths. What is wrong with one is in
// its Problem; a workspace or a folder that is not there yet has none.
func (Memories) Notes(workspace string) ([]goclaw.MemoryFile, error) {
	names, problems, err := memoryNames(workspace)
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	// The eight files are looked at as well: a note may be another name of one.
	names = append(Names(), names...)
	at := folder{dir: workspace}
	files, infos := make([]goclaw.WorkspaceFile, len(names)), make([]fs.FileInfo, len(names))
	for i, name := range names {
		files[i].Name = name
		infos[i], files[i].Warning, err = at.look(name)
		files[i].Missing = errors.Is(err, fs.ErrNotExist)
	}
	at.refuseShared(files, infos)
	found := problems
	for i, f := range files {
		if f.Missing || i < len(Names()) && f.Name != memoryFile {
			continue
		}
		note := goclaw.MemoryFile{Path: f.Name, Problem: f.Warning}
		if info := infos[i]; info != nil && f.Warning == "" {
			note.At, note.Bytes, note.Version = goclaw.At(info.ModTime()), info.Size(), versionOf(info)
			if info.Size() > maxMemory {
				note.Problem = fmt.Sprintf("has %.1f MB and is not searched; split it into files of at most %d MB", float64(info.Size())/(1<<20), maxMemory>>20)
			}
		}
		found = append(found, note)
	}
	slices.SortFunc(found, func(a, b goclaw.MemoryFile) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// memoryNames walks the memory folder, and follows no linked folder.
func memoryNames(workspace string) (names []string, problems []goclaw.MemoryFile, err error) {
	problem := func(name, what string) {
		problems = append(problems, goclaw.MemoryFile{Path: name, Problem: what})
	}
	if info, err := os.Lstat(filepath.Join(workspace, memoryDir)); err == nil && !info.IsDir() {
		problem(memoryDir, "is "+kind(info.Mode())+", not a folder; its notes are not searched")
		return nil, problems, nil
	}
	err = filepath.WalkDir(filepath.Join(workspace, memoryDir), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(workspace, p)
		if relErr != nil {
			return relErr
		}
		name := filepath.ToSlash(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			problem(name, "can't be read: "+reason(err))
			return nil
		case d.IsDir():
			return nil
		case len(names) == maxMemories:
			problem(memoryDir, fmt.Sprintf("holds more than %d notes; the others are not searched", maxMemories))
			return fs.SkipAll
		case strings.EqualFold(path.Ext(name), ".md"):
			names = append(names, name)
		case d.Type()&fs.ModeSymlink != 0:
			if info, err := os.Stat(p); err == nil && info.IsDir() {
				problem(name, "is a link to a folder; what it holds is not searched")
			}
		}
		return nil
	})
	return names, problems, err
}

// versionOf tells whether a file has changed; "" where it may have been changed
// again since, too soon for its time stamp to tell.
func versionOf(info fs.FileInfo) string {
	if age := time.Since(info.ModTime()); age >= 0 && age <= racyWindow {
		return ""
	}
	return fmt.Sprintf("%d %d %s", info.ModTime().UnixNano(), info.Size(), inode(info))
}

// Note reads a note. The error says in a few words, which follow on its name,
// why it can't be.
func (Memories) Note(workspace, name string) (string, error) {
	at := folder{dir: workspace}
	info, warning, err := at.look(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("is not there")
	case warning != "":
		return "", errors.New(warning)
	case err != nil:
		return "", fmt.Errorf("can't be examined: %s", reason(err))
	case info.Size() > maxMemory:
		return "", fmt.Errorf("is larger than %d MB; it was not read", maxMemory>>20)
	}
	files, infos := []goclaw.WorkspaceFile{}, []fs.FileInfo{}
	for _, other := range Names() {
		f := goclaw.WorkspaceFile{Name: other}
		var otherInfo fs.FileInfo
		if other != name {
			otherInfo, f.Warning, _ = at.look(other) // one that can't be looked at shares nothing
		}
		files, infos = append(files, f), append(infos, otherInfo)
	}
	files, infos = append(files, goclaw.WorkspaceFile{Name: name}), append(infos, info)
	at.refuseShared(files, infos)
	if shared := files[len(files)-1].Warning; shared != "" {
		return "", errors.New(shared)
	}
	data, _, err := (&Loader{open: openFile}).bytes(workspace, name, info)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("is not there any more")
	}
	if err != nil {
		return "", err
	}
	text, warning := clean(data)
	if warning != "" {
		return "", errors.New(strings.Replace(warning, "bytes were replaced; save", "bytes can't be read, and it is not searched; save", 1))
	}
	return text, nil
}
