package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// memoryDir is the folder of a workspace that holds the notes of days.
const memoryDir = "memory"

// maxNoteBytes bounds a note of a day; what is longer is not added to.
const maxNoteBytes = maxFileBytes

// Notes writes what an agent shall remember into its memory folder. Its zero
// value is ready; it is safe for concurrent use, by many processes as well.
type Notes struct{}

// Remember adds text to memory/DAY.md (day is 2006-01-02), below a comment that
// holds mark, and is durable when it returns. If the mark is there already
// nothing is written. What the file holds is kept. Calls with the same mark
// must not overlap; others may.
//
// A folder or file that is a link is refused: the note stays in the workspace.
func (Notes) Remember(workspace, day, mark, text string) error {
	if err := remember(workspace, day, mark, text); err != nil {
		return fmt.Errorf("remember in %s/%s.md of %s: %w", memoryDir, day, workspace, err)
	}
	return nil
}

func remember(workspace, day, mark, text string) (err error) {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return errors.New("the day must be written as 2006-01-02")
	}
	if mark == "" || strings.ContainsAny(mark, "\r\n<>") || strings.Contains(mark, "--") {
		return fmt.Errorf("%q can't be a mark: it is to stand in a comment", mark)
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	made, err := makeMemory(root)
	if err != nil {
		return err
	}
	name := memoryDir + "/" + day + ".md"
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("it is %s, not a file", kind(info.Mode()))
	}
	f, err := root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	created, err := add(f, mark, text)
	if err != nil {
		return err
	}
	if created {
		made = append(made, memoryDir)
	}
	for _, dir := range made {
		if err := syncDir(root, dir); err != nil {
			return err
		}
	}
	return nil
}

// makeMemory makes the folder if it is missing. made are the folders that hold
// a new entry.
func makeMemory(root *os.Root) (made []string, err error) {
	err = root.Mkdir(memoryDir, 0o700)
	if err == nil {
		return []string{"."}, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := root.Lstat(memoryDir)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is %s, not a folder", memoryDir, kind(info.Mode()))
	}
	return nil, err
}

// add appends a paragraph in one write. created reports that the file was
// empty before.
func add(f *os.File, mark, text string) (created bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("it is %s, not a file", kind(info.Mode()))
	}
	if only, known := onlyName(info); known && !only {
		return false, errors.New("it is one file under several names; leave it only this one")
	}
	was, err := io.ReadAll(io.LimitReader(f, maxNoteBytes+1))
	if err != nil {
		return false, err
	}
	if !utf8.Valid(was) || bytes.IndexByte(was, 0) >= 0 {
		return false, errors.New("it is not UTF-8; save it as UTF-8")
	}
	head := "<!-- " + mark + " -->"
	if bytes.Contains(was, []byte(head)) {
		return false, f.Sync() // it may have been written by a process that died before this
	}
	if len(was)+len(text) > maxNoteBytes {
		return false, fmt.Errorf("it would be larger than %d MB", maxNoteBytes>>20)
	}
	between := ""
	switch {
	case len(was) == 0, bytes.HasSuffix(was, []byte("\n\n")):
	case bytes.HasSuffix(was, []byte("\n")):
		between = "\n"
	default:
		between = "\n\n"
	}
	text = strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n")
	// One write: what others append at the same time comes before or after it.
	if n, err := f.WriteString(between + head + "\n" + text + "\n"); err != nil {
		return false, errors.Join(err, takeBack(f, int64(len(was)), int64(n)))
	}
	return len(was) == 0, f.Sync()
}

// takeBack removes the beginning of a note whose rest could not be written (a
// full disk), unless somebody has written behind it.
func takeBack(f *os.File, before, written int64) error {
	if info, err := f.Stat(); err != nil || info.Size() != before+written {
		return err
	}
	return f.Truncate(before)
}

// syncDir makes new entries of a folder last. Some systems can't, and need not.
func syncDir(root *os.Root, name string) (err error) {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
