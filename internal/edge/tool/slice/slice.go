package slice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"goclaw"
	"goclaw/internal/edge/tool"
)

// The bounds of what is read.
const (
	MaxFile  = 1 << 20 // bytes of one file
	MaxFiles = 200     // files that one glob matches
	MaxTotal = 8 << 20 // bytes of one reading
)

// Want is what to read. Exactly one of File and Glob is set; both are relative
// to the workspace, with slashes.
type Want struct {
	Name     string // of the slice, for errors
	File     string
	Glob     string // doublestar's; links and .git are not entered
	Optional bool   // nothing there is no error
	Lenient  bool   // whatever can't be read is left out
	Limit    int    // bytes of one file; 0 and more than MaxFile mean MaxFile
}

// Found is a text file.
type Found struct {
	Source string // its path in the workspace, with slashes
	Text   string
	Size   int // bytes
}

// Reader reads files of workspaces. It is safe for concurrent use.
type Reader struct {
	Home string // GOCLAW_HOME, which nobody is shown
}

// Read returns the files that want names and access may see, in the order of
// want, those of one glob by path. The error names the slice and the path, and
// wraps tool.ErrPrivate, tool.ErrHome, tool.ErrOutside or fs.ErrNotExist where
// it is about that.
func (r Reader) Read(ctx context.Context, workspace string, access goclaw.Access, want []Want) ([]Found, error) {
	reach, err := tool.Open(tool.Scope{Workspace: workspace, Home: r.Home, Access: access})
	if err != nil {
		return nil, fmt.Errorf("slices: %w", err)
	}
	defer reach.Close()
	reading := reading{ctx: ctx, reach: reach}
	for _, w := range want {
		if err := reading.read(w); err != nil {
			return nil, fmt.Errorf("slice %s: %w", w.Name, err)
		}
	}
	return reading.found, nil
}

type reading struct {
	ctx   context.Context
	reach *tool.Reach
	found []Found
	total int
}

func (r *reading) read(w Want) error {
	if w.Limit <= 0 || w.Limit > MaxFile {
		w.Limit = MaxFile
	}
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	if w.Glob != "" {
		return r.glob(w)
	}
	rel, err := r.reach.Resolve(w.File)
	if err == nil {
		var dir *tool.Dir
		if dir, err = r.reach.Dir(path.Dir(rel)); err == nil {
			defer dir.Close()
			err = r.file(dir, path.Base(rel), w)
		}
	}
	switch missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR); {
	case err == nil, w.Lenient && r.ctx.Err() == nil && !errors.Is(err, errTotal):
		return nil
	case missing && w.Optional:
		return nil
	case missing:
		return fmt.Errorf("%s: %w", w.File, errMissing)
	}
	return err
}

// What is wrong with a file, beside what the reach says.
var (
	errMissing = missingError{}
	errTotal   = fmt.Errorf("together with those before it, more than %d bytes; name fewer files", MaxTotal)
)

type missingError struct{}

func (missingError) Error() string {
	return "no such file in the workspace; create it, or write optional: true"
}

func (missingError) Is(target error) bool { return target == fs.ErrNotExist }

// file reads one file of an entered folder.
func (r *reading) file(dir *tool.Dir, name string, w Want) error {
	rel := path.Join(dir.Path, name)
	if info, err := dir.Lstat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%s: is a folder; name a file, or use glob", rel)
	}
	f, info, err := dir.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > int64(w.Limit) {
		return tooLarge(rel, info.Size(), w.Limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(w.Limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", rel, err)
	case len(data) > w.Limit:
		return tooLarge(rel, int64(len(data)), w.Limit)
	case bytes.IndexByte(data, 0) >= 0:
		return fmt.Errorf("%s: binary; a slice is text", rel)
	case !utf8.Valid(data):
		return fmt.Errorf("%s: not UTF-8; save it as UTF-8", rel)
	}
	if r.total += len(data); r.total > MaxTotal {
		return fmt.Errorf("%s: %w", rel, errTotal)
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	r.found = append(r.found, Found{Source: rel, Text: text, Size: len(text)})
	return nil
}

func tooLarge(rel string, size int64, limit int) error {
	return fmt.Errorf("%s: %d bytes or more; a slice's file may have %d, so name a smaller one or let the worker read it", rel, size, limit)
}

// glob reads the files that a pattern matches.
func (r *reading) glob(w Want) error {
	if !doublestar.ValidatePattern(w.Glob) {
		return fmt.Errorf("%s: not a glob; e.g. src/**/*.go", w.Glob)
	}
	base, pattern := doublestar.SplitPattern(w.Glob)
	start, err := r.reach.Resolve(base)
	var dir *tool.Dir
	if err == nil {
		dir, err = r.reach.Dir(start)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return none(w, 0)
	case err != nil:
		return err
	}
	defer dir.Close()
	skip := func(e tool.Entry) bool { return e.Name() == ".git" }
	before, matched := len(r.found), 0
	hidden, err := dir.Walk(r.ctx, skip, func(in *tool.Dir, e tool.Entry) error {
		rel := e.Path
		if dir.Path != "." {
			rel = strings.TrimPrefix(rel, dir.Path+"/")
		}
		if !e.Mode().IsRegular() || !doublestar.MatchUnvalidated(pattern, rel) {
			return nil
		}
		if matched++; matched > MaxFiles {
			return fmt.Errorf("%s: matches more than %d files; narrow it", w.Glob, MaxFiles)
		}
		return r.file(in, e.Name(), w)
	})
	if err != nil {
		return err
	}
	if len(r.found) == before {
		return none(w, hidden)
	}
	return nil
}

// none is the error of a glob without a match.
func none(w Want, hidden int) error {
	switch {
	case w.Optional, w.Lenient:
		return nil
	case hidden > 0:
		return fmt.Errorf("%s: no file matches that this worker may see (%d entries are %w); %w", w.Glob, hidden, tool.ErrPrivate, errMissing)
	}
	return fmt.Errorf("%s: no file matches: %w", w.Glob, errMissing)
}
