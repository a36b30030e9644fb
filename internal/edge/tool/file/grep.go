package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"goclaw/internal/edge/tool"
)

const (
	defaultMatches = 100
	maxMatches     = 1000
	maxContext     = 20
	maxMatchBytes  = 400     // of a line that is shown
	maxSearchBytes = 1 << 20 // of a line that is searched
)

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Context int    `json:"context"`
	Limit   int    `json:"limit"`
}

func (c *call) grep(ctx context.Context, a grepArgs) (string, error) {
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	if a.Glob != "" && !doublestar.ValidatePattern(a.Glob) {
		return "", fmt.Errorf("glob %q: not a glob; e.g. *.go", a.Glob)
	}
	if a.Path == "" {
		a.Path = "."
	}
	if a.Limit <= 0 {
		a.Limit = defaultMatches
	}
	s := &search{
		re: re, glob: a.Glob, around: min(max(a.Context, 0), maxContext),
		left: min(a.Limit, maxMatches), out: lines{max: c.options.MaxOutput},
	}
	hidden, err := c.searchPath(ctx, s, a.Path)
	if err != nil {
		return "", c.explain(ctx, a.Path, err)
	}
	if s.full {
		s.out.end("[more matches were left out; narrow the search or raise limit]")
	} else if len(s.out.text) == 0 {
		s.out.end(fmt.Sprintf("[no match in %d files]", s.files))
	}
	s.out.noteHidden(hidden)
	return s.out.String(), nil
}

// searchPath searches a file, or the files beneath a folder.
func (c *call) searchPath(ctx context.Context, s *search, p string) (hidden int, err error) {
	if shelf, rel, ok := c.shelf(p); ok {
		return 0, searchShelf(ctx, s, shelf, rel, p)
	}
	dir, err := c.folder(p)
	if errors.Is(err, syscall.ENOTDIR) {
		dir, name, err := c.locate(p)
		if err != nil {
			return 0, err
		}
		defer dir.Close()
		if err := s.file(ctx, dir, name, path.Join(dir.Path, name)); err != nil && !errors.Is(err, fs.SkipAll) {
			return 0, err
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	return dir.Walk(ctx, isGit, func(d *tool.Dir, e tool.Entry) error {
		if !e.Mode().IsRegular() || !s.wants(e.Path) {
			return nil
		}
		err := s.file(ctx, d, e.Name(), e.Path)
		if errors.Is(err, fs.SkipAll) || ctx.Err() != nil {
			return err
		}
		return nil // a file that can't be read is no match
	})
}

// search is a grep under way.
type search struct {
	re     *regexp.Regexp
	glob   string
	around int

	left  int // matches that may still be shown
	files int
	out   lines
	full  bool
}

// wants applies the glob: to the name, or to the path if it has a slash.
func (s *search) wants(rel string) bool {
	if s.glob == "" {
		return true
	}
	if !strings.Contains(s.glob, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(s.glob, rel)
}

// file searches one file. It returns fs.SkipAll once the result is full.
func (s *search) file(ctx context.Context, dir *tool.Dir, name, rel string) error {
	f, _, err := dir.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.scan(ctx, f, rel)
}

// scan searches what r gives. It returns fs.SkipAll once the result is full.
func (s *search) scan(ctx context.Context, r io.Reader, rel string) error {
	in := bufio.NewReaderSize(until(ctx, r), 64<<10)
	head, err := in.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if isBinary(head) {
		return nil
	}
	s.files++
	var before []string // the lines before, unless shown already
	after, shown := 0, 0
	for n := 1; ; n++ {
		line, _, err := readLine(in, maxSearchBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case s.re.Match(line):
			if s.left == 0 {
				s.full = true
				return fs.SkipAll
			}
			s.left--
			if s.around > 0 && shown > 0 && n-len(before) > shown+1 {
				s.out.end("--")
			}
			for i, b := range before {
				s.out.add(fmt.Sprintf("%s-%d- %s", rel, n-len(before)+i, b))
			}
			if !s.out.add(fmt.Sprintf("%s:%d: %s", rel, n, clip(line))) {
				s.full = true
				return fs.SkipAll
			}
			before, after, shown = nil, s.around, n
		case after > 0:
			s.out.add(fmt.Sprintf("%s-%d- %s", rel, n, clip(line)))
			after--
			shown = n
		case s.around > 0:
			before = append(before, clip(line))
			before = before[max(0, len(before)-s.around):]
		}
	}
}

// clip makes a line fit to be shown.
func clip(line []byte) string {
	text := string(line)
	if len(text) > maxMatchBytes {
		return strings.ToValidUTF8(text[:maxMatchBytes], "") + fmt.Sprintf(" [%d bytes cut]", len(line)-maxMatchBytes)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
