package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

// maxSectionBytes bounds a file that replaces a section of the prompt.
const maxSectionBytes = 64 << 10

// SectionText is what stands in a built-in section's place; a Text of "" leaves
// the section out.
type SectionText struct {
	Text   string
	Source string // the file
	Entry  string // the private file of the workspace that it is, under whatever name; "" for none
}

// Sections reads the person's own sections of prompts. It is safe for
// concurrent use.
type Sections struct {
	files map[string]string // by section id

	mu    sync.Mutex
	cache map[string]section
}

// section is a file as it was read; it holds as an entry does.
type section struct {
	info fs.FileInfo
	text string
}

// NewSections returns the Sections of these files, given by section id.
func NewSections(files map[string]string) *Sections {
	return &Sections{files: maps.Clone(files), cache: map[string]section{}}
}

// Texts returns all texts by section id; those that are private files of the
// workspace ("" for none) have their Entry. A file that can't be taken as it
// stands is an error, which says what to do: nothing may silently miss in a
// prompt. Unchanged files cost no read.
func (s *Sections) Texts(workspace string) (map[string]SectionText, error) {
	texts := make(map[string]SectionText, len(s.files))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.files)) {
		path := s.files[id]
		text, err := s.text(path)
		if err != nil {
			return nil, fmt.Errorf("context.sections.%s: %s %w", id, path, err)
		}
		entry := ""
		if workspace != "" {
			entry = privateEntry(workspace, path)
		}
		texts[id] = SectionText{Text: text, Source: path, Entry: entry}
	}
	return texts, nil
}

func (s *Sections) text(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", unusable(err)
	}
	if old, ok := s.cache[path]; ok && unchanged(old.info, info) {
		return old.text, nil
	}
	delete(s.cache, path)
	began := time.Now()
	data, info, err := readSection(path)
	if err != nil {
		return "", err
	}
	data = []byte(strings.TrimPrefix(string(data), "\uFEFF"))
	switch {
	case !utf8.Valid(data):
		return "", errors.New("is not UTF-8; save it as UTF-8")
	case slices.Contains(data, 0):
		return "", errors.New("holds zero bytes and is no text; write a text file there")
	}
	text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if age := began.Sub(info.ModTime()); age < 0 || age > racyWindow {
		s.cache[path] = section{info, text}
	}
	return text, nil
}

// readSection reads a regular file of a bearable size.
func readSection(path string) ([]byte, fs.FileInfo, error) {
	// Opening a pipe must not wait for its other end.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, unusable(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, unusable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("is %s, not a file; write a text file there, or remove the key", kind(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSectionBytes+1))
	if err != nil {
		return nil, nil, unusable(err)
	}
	if len(data) > maxSectionBytes {
		return nil, nil, fmt.Errorf("is larger than %d KB; shorten it", maxSectionBytes>>10)
	}
	return data, info, nil
}

func unusable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("is missing; write it (an empty file leaves the section out), or remove the key")
	}
	return fmt.Errorf("can't be read: %s; make it readable, or remove the key", reason(err))
}
