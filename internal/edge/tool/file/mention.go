package file

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"goclaw"
	"goclaw/internal/edge/tool"
)

// Bounds of what one message brings in.
const (
	maxMentions     = 20     // files and folders
	maxMentionRunes = 20_000 // characters of one file
	maxMentionTotal = 60_000 // characters of all
	maxTokens       = 200    // words with an @ that are looked at
	maxListed       = 200    // entries of a folder
)

// Mentions finds the files that a message names as @path, or @"path" where it
// holds spaces. It is safe for concurrent use.
type Mentions struct {
	Home string // GOCLAW_HOME, which nobody is shown
}

// Mentioned returns what is to be added to the message: a block for each text
// file and folder of the workspace that access may see, cut in its middle if it
// is long, and a line for each that is not shown. What names no file, such as
// a person's handle, is left alone. "" for nothing.
func (m Mentions) Mentioned(ctx context.Context, workspace string, access goclaw.Access, text string) string {
	tokens := mentions(text)
	if len(tokens) == 0 {
		return ""
	}
	reach, err := tool.Open(tool.Scope{Workspace: workspace, Home: m.Home, Access: access})
	if err != nil {
		return fmt.Sprintf("[files named with @ can't be read: %v]", err)
	}
	defer reach.Close()
	e := expansion{reach: reach, left: maxMentionTotal, seen: map[string]bool{}}
	for _, token := range tokens {
		if ctx.Err() != nil {
			break
		}
		e.mention(token)
	}
	return strings.Join(e.parts, "\n")
}

// mentions lists, for each word of text that begins with an @, the paths that
// it may mean, the likeliest first.
func mentions(text string) [][]string {
	var found [][]string
	before := ' '
	for i, c := range text {
		opens := unicode.IsSpace(before) || strings.ContainsRune("([{<\"'`*,;:>", before)
		before = c
		if c != '@' || !opens || len(found) == maxTokens {
			continue
		}
		rest := text[i+1:]
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if name, _, closed := strings.Cut(quoted, `"`); closed && name != "" && !strings.Contains(name, "\n") {
				found = append(found, []string{name})
			}
			continue
		}
		if end := strings.IndexFunc(rest, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("\"'`<>|@\x00", c) }); end >= 0 {
			rest = rest[:end]
		}
		if paths := candidates(rest); len(paths) > 0 {
			found = append(found, paths)
		}
	}
	return found
}

const punctuation = ".,;:!?)]}([{*_~"

// candidates are the paths that a word may mean: all of it, without the
// punctuation at its end, and up to the first that ends a path in prose.
func candidates(word string) []string {
	var paths []string
	for w := word; w != ""; {
		paths = append(paths, w)
		_, n := utf8.DecodeLastRuneInString(w)
		if !strings.ContainsAny(w[len(w)-n:], punctuation) {
			break
		}
		w = w[:len(w)-n]
	}
	if i := strings.IndexAny(word, "([{,;:!?#"); i > 0 {
		if w := strings.TrimRight(word[:i], punctuation); w != "" && !slices.Contains(paths, w) {
			paths = append(paths, w)
		}
	}
	return slices.DeleteFunc(paths, func(p string) bool { return p != "./" && strings.Trim(p, punctuation+"/\\") == "" })
}

// expansion is what a message brings in, as far as it was collected.
type expansion struct {
	reach *tool.Reach
	parts []string
	shown int
	left  int // characters
	seen  map[string]bool
}

// mention adds what the first of paths means that means something.
func (e *expansion) mention(paths []string) {
	for _, p := range paths {
		rel, err := e.reach.Resolve(p)
		switch {
		case errors.Is(err, tool.ErrPrivate):
			e.refuse(p, "private to the main agent; not shown")
			return
		case errors.Is(err, tool.ErrHome):
			e.refuse(p, "GoClaw's own state; not shown")
			return
		case errors.Is(err, tool.ErrOutside):
			e.refuse(p, "outside the workspace; not shown")
			return
		case err != nil:
			continue
		}
		known := e.seen[rel]
		if known || e.show(p, rel) {
			e.seen[rel] = true
			return
		}
	}
}

// refuse adds the line of what is not shown, once.
func (e *expansion) refuse(p, why string) {
	p = strings.TrimRight(p, punctuation)
	if line := fmt.Sprintf("@%s: %s", p, why); !slices.Contains(e.parts, line) {
		e.parts = append(e.parts, line)
	}
}

// show adds a file or a folder; false if there is none.
func (e *expansion) show(p, rel string) bool {
	folder, err := e.reach.Dir(rel)
	if err == nil {
		defer folder.Close()
		if e.room(p) {
			e.folder(folder)
		}
		return true
	}
	dir, err := e.reach.Dir(path.Dir(rel))
	if err != nil {
		return false
	}
	defer dir.Close()
	if _, err := dir.Lstat(path.Base(rel)); err != nil {
		return false
	}
	f, info, err := dir.OpenFile(path.Base(rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case errors.Is(err, tool.ErrPrivate):
		e.refuse(p, "private to the main agent; not shown")
	case errors.Is(err, tool.ErrIrregular):
		e.refuse(p, "not a regular file; not shown")
	case errors.Is(err, syscall.EACCES):
		e.refuse(p, "may not be read by this program; not shown")
	case err != nil:
		e.refuse(p, cause(err).Error()+"; not shown")
	default:
		defer f.Close()
		if e.room(p) {
			e.file(p, rel, f, info.Size())
		}
	}
	return true
}

// room reports whether more may be shown, and says it if not.
func (e *expansion) room(p string) bool {
	switch {
	case e.shown == maxMentions:
		e.refuse(p, fmt.Sprintf("left out: a message brings in at most %d files; read it when needed", maxMentions))
	case e.left <= 0:
		e.refuse(p, fmt.Sprintf("left out: a message brings in at most %d characters; read it when needed", maxMentionTotal))
	default:
		e.shown++
		return true
	}
	return false
}

func (e *expansion) file(p, rel string, f *os.File, size int64) {
	text, err := excerpt(f, size, min(maxMentionRunes, e.left))
	var binary notTextError
	switch {
	case errors.As(err, &binary):
		e.shown--
		e.refuse(p, fmt.Sprintf("binary (%s, %d bytes); not shown", binary.kind, size))
		return
	case err != nil:
		e.shown--
		e.refuse(p, cause(err).Error()+"; not shown")
		return
	}
	e.block("file", rel, text)
}

func (e *expansion) folder(d *tool.Dir) {
	entries, hidden, err := d.List()
	if err != nil {
		e.refuse(d.Path, cause(err).Error()+"; not shown")
		return
	}
	out := lines{max: min(maxMentionRunes, e.left)}
	for i, entry := range entries {
		if i == maxListed || !out.add(entry.Name()+suffix(entry)) {
			out.end(fmt.Sprintf("[%d more entries]", len(entries)-i))
			break
		}
	}
	if len(entries) == 0 {
		out.end("[empty]")
	}
	out.noteHidden(hidden)
	e.block("folder", d.Path, out.String())
}

// block adds what is shown. Its own end can't stand in it.
func (e *expansion) block(tag, rel, text string) {
	e.left -= utf8.RuneCountInString(text)
	text = strings.ReplaceAll(text, "</"+tag, "<\\/"+tag)
	e.parts = append(e.parts, fmt.Sprintf("<%s path=\"%s\">\n%s\n</%s>", tag, html.EscapeString(rel), strings.TrimSuffix(text, "\n"), tag))
}

// notTextError says what a file holds instead of text.
type notTextError struct{ kind string }

func (e notTextError) Error() string { return e.kind }

// excerpt reads a text of at most limit characters: all of a file, or its head
// and its tail.
func excerpt(f io.ReaderAt, size int64, limit int) (string, error) {
	most := int64(limit) * utf8.UTFMax
	head, err := readAt(f, 0, min(size, most))
	if err != nil {
		return "", err
	}
	if isBinary(head[:min(len(head), sniffBytes)]) {
		return "", notTextError{http.DetectContentType(head)}
	}
	start := []rune(strings.ToValidUTF8(string(head), "\uFFFD"))
	if size <= most && len(start) <= limit {
		return string(start), nil
	}
	tail := head
	if size > most {
		if tail, err = readAt(f, size-most, most); err != nil {
			return "", err
		}
	}
	end := []rune(strings.ToValidUTF8(string(tail), "\uFFFD"))
	front, back := string(start[:limit*3/4]), string(end[len(end)-min(limit/4, len(end)):])
	left := size - int64(len(front)) - int64(len(back))
	return fmt.Sprintf("%s\n[… %d bytes left out; read the file for the rest …]\n%s", front, max(0, left), back), nil
}

// readAt reads n bytes from offset on; fewer if the file ends before.
func readAt(f io.ReaderAt, offset, n int64) ([]byte, error) {
	buf := make([]byte, n)
	got, err := f.ReadAt(buf, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:got], err
}
