package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"goclaw/internal/edge/tool"
)

const (
	maxEntries = 500 // that ls shows
	maxFiles   = 200 // that glob shows
)

type lsArgs struct {
	Path string `json:"path"`
}

func (c *call) ls(ctx context.Context, a lsArgs) (string, error) {
	if a.Path == "" {
		a.Path = "."
	}
	if s, rel, ok := c.shelf(a.Path); ok {
		return c.lsShelf(s, rel, a.Path)
	}
	dir, err := c.folder(a.Path)
	if errors.Is(err, syscall.ENOTDIR) {
		return "", fmt.Errorf("%s: is a file; use read", a.Path)
	}
	if err != nil {
		return "", c.explain(ctx, a.Path, err)
	}
	defer dir.Close()
	entries, hidden, err := dir.List()
	if err != nil {
		return "", err
	}
	out := lines{max: c.options.MaxOutput}
	for i, e := range entries {
		if i == maxEntries || !out.add(e.Name()+suffix(e)) {
			out.end(fmt.Sprintf("[%d more entries; use glob to narrow]", len(entries)-i))
			break
		}
	}
	if len(entries) == 0 {
		out.end("[empty]")
	}
	out.noteHidden(hidden)
	return out.String(), nil
}

// suffix says what an entry is: its size, or what ls -F would put there.
func suffix(e fs.FileInfo) string {
	switch mode := e.Mode(); {
	case mode.IsDir():
		return "/"
	case mode&fs.ModeSymlink != 0:
		return "@"
	case !mode.IsRegular():
		return " (special)"
	}
	return fmt.Sprintf(" %d", e.Size())
}

// folder enters the folder that a path names.
func (c *call) folder(p string) (*tool.Dir, error) {
	rel, err := c.reach.Resolve(p)
	if err != nil {
		return nil, err
	}
	return c.reach.Dir(rel)
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (c *call) glob(ctx context.Context, a globArgs) (string, error) {
	if a.Pattern == "" || !doublestar.ValidatePattern(a.Pattern) {
		return "", fmt.Errorf("pattern %q: not a glob; e.g. **/*.go", a.Pattern)
	}
	base, pattern := doublestar.SplitPattern(a.Pattern)
	start := base
	if !path.IsAbs(base) && !strings.HasPrefix(base, scheme) {
		start = join(a.Path, base)
	}
	if start == "" {
		start = "."
	}
	if s, rel, ok := c.shelf(start); ok {
		return c.globShelf(ctx, s, rel, pattern)
	}
	dir, err := c.folder(start)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Sprintf("[no files match: there is no folder %s]", start), nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	skip := isGit
	if strings.Contains(a.Pattern, ".git") {
		skip = func(tool.Entry) bool { return false }
	}
	var found []tool.Entry
	hidden, err := dir.Walk(ctx, skip, func(_ *tool.Dir, e tool.Entry) error {
		rel := e.Path
		if dir.Path != "." {
			rel = strings.TrimPrefix(rel, dir.Path+"/")
		}
		if !e.IsDir() && doublestar.MatchUnvalidated(pattern, rel) {
			found = append(found, e)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("glob: %w", err)
	}
	return c.matches(found, hidden), nil
}

// matches words what glob has found.
func (c *call) matches(found []tool.Entry, hidden int) string {
	slices.SortStableFunc(found, func(a, b tool.Entry) int { return b.ModTime().Compare(a.ModTime()) })
	out := lines{max: c.options.MaxOutput}
	for i, e := range found {
		if i == maxFiles || !out.add(e.Path) {
			out.end(fmt.Sprintf("[%d more files; narrow the pattern]", len(found)-i))
			break
		}
	}
	if len(found) == 0 {
		out.end("[no files match]")
	}
	out.noteHidden(hidden)
	return out.String()
}

// lines collects the lines of a bounded result.
type lines struct {
	max  int
	text []string
	size int
}

// add appends a line unless the result is full.
func (l *lines) add(s string) bool {
	if l.size+len(s) > l.max && l.size > 0 {
		return false
	}
	l.end(s)
	return true
}

// end appends a line in any case.
func (l *lines) end(s string) {
	l.text = append(l.text, s)
	l.size += len(s) + 1
}

func (l *lines) noteHidden(n int) {
	switch {
	case n == 1:
		l.end("[1 private entry hidden]")
	case n > 1:
		l.end(fmt.Sprintf("[%d private entries hidden]", n))
	}
}

func (l *lines) String() string { return strings.Join(l.text, "\n") }
