package file

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"syscall"

	"goclaw/internal/edge/tool"
)

const (
	maxReadLines = 2000
	maxLineBytes = 2000
	sniffBytes   = 8192
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (c *call) read(ctx context.Context, a readArgs) (string, error) {
	if s, rel, ok := c.shelf(a.Path); ok {
		f, info, err := openShelved(s, rel)
		if err != nil {
			return "", explainShelved(s, a.Path, err)
		}
		defer f.Close()
		text, _, err := c.page(ctx, a, f, info)
		return text, err
	}
	dir, name, err := c.locate(a.Path)
	if err != nil {
		return "", c.explain(ctx, a.Path, err)
	}
	defer dir.Close()
	f, info, err := dir.OpenFile(name)
	if err != nil {
		return "", c.explain(ctx, a.Path, err)
	}
	defer f.Close()
	text, sum, err := c.page(ctx, a, f, info)
	if sum != nil {
		c.seen.note(c.session, c.key(dir, name), digest(sum))
	}
	return text, err
}

// page returns the lines of a file that are asked for, and the hash of the
// whole file once it was read to its end.
func (c *call) page(ctx context.Context, a readArgs, f io.Reader, info fs.FileInfo) (text string, hash []byte, err error) {
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil, fmt.Errorf("%s: %w", a.Path, err)
	}
	head = head[:n]
	if isBinary(head) {
		return "", nil, notText(a.Path, head, info.Size())
	}
	page := pager{first: max(a.Offset, 1), limit: a.Limit, max: c.options.MaxOutput}
	if page.limit <= 0 || page.limit > maxReadLines {
		page.limit = maxReadLines
	}
	sum := sha256.New()
	src := io.TeeReader(io.MultiReader(bytes.NewReader(head), until(ctx, f)), sum)
	if err := page.scan(src); err != nil {
		return "", nil, fmt.Errorf("%s: %w", a.Path, err)
	}
	hash = sum.Sum(nil)
	if page.first > page.total && page.first > 1 {
		return "", hash, fmt.Errorf("%s: offset %d is beyond the end: the file has %d lines", a.Path, a.Offset, page.total)
	}
	return page.String(), hash, nil
}

// pager keeps the lines from first on, as many as fit, and counts them all.
type pager struct {
	first, limit, max int

	out   strings.Builder
	last  int // last line kept
	total int
	full  bool
}

func (p *pager) scan(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, cut, err := readLine(in, maxLineBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.total++
		if p.total >= p.first && !p.full {
			p.keep(line, cut)
		}
	}
}

func (p *pager) keep(line []byte, cut int) {
	text := fmt.Sprintf("%d\t%s", p.total, bytes.ToValidUTF8(line, []byte("\uFFFD")))
	if cut > 0 {
		text += fmt.Sprintf(" [%d bytes of this line cut]", cut)
	}
	if p.total-p.first >= p.limit || p.out.Len() > 0 && p.out.Len()+len(text) > p.max {
		p.full = true
		return
	}
	p.out.WriteString(text)
	p.out.WriteByte('\n')
	p.last = p.total
}

func (p *pager) String() string {
	if p.total == 0 {
		return "[empty file]"
	}
	if p.last < p.total {
		return fmt.Sprintf("%s[lines %d-%d of %d; read on with offset %d]", p.out.String(), p.first, p.last, p.total, p.last+1)
	}
	return strings.TrimSuffix(p.out.String(), "\n")
}

// readLine returns the next line without its end, at most limit bytes of it
// (cut counts the others). The slice is valid until the next call.
func readLine(in *bufio.Reader, limit int) (line []byte, cut int, err error) {
	some := false
	for {
		part, err := in.ReadSlice('\n')
		some = some || len(part) > 0
		if errors.Is(err, io.EOF) && some {
			err = nil
			if len(part) == 0 {
				return trimEnd(line), cut, nil
			}
		} else if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, 0, err
		}
		more := errors.Is(err, bufio.ErrBufferFull)
		if line == nil && !more && len(part) <= limit {
			return trimEnd(part), 0, nil
		}
		room := max(0, limit-len(line))
		end := trimEnd(part)
		line = append(line, end[:min(room, len(end))]...)
		cut += max(0, len(end)-room)
		if !more {
			return line, cut, nil
		}
	}
}

func trimEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}

// readFunc is a reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// until reads from r until ctx ends.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	})
}

func isBinary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

func notText(name string, head []byte, size int64) error {
	kind := http.DetectContentType(head)
	if strings.HasPrefix(kind, "image/") {
		return fmt.Errorf("%s: an image (%s, %d bytes): read returns text only", name, kind, size)
	}
	return fmt.Errorf("%s: binary (%s, %d bytes): read returns text only; use exec to inspect it", name, kind, size)
}

// locate resolves a path and enters the folder that holds it.
func (c *call) locate(p string) (*tool.Dir, string, error) {
	rel, err := c.reach.Resolve(p)
	if err != nil {
		return nil, "", err
	}
	if rel == "." {
		return nil, "", fmt.Errorf("%s: %w", p, syscall.EISDIR)
	}
	dir, err := c.reach.Dir(path.Dir(rel))
	if err != nil {
		return nil, "", err
	}
	if info, err := dir.Lstat(path.Base(rel)); err == nil && info.IsDir() {
		dir.Close()
		return nil, "", fmt.Errorf("%s: %w", p, syscall.EISDIR)
	}
	return dir, path.Base(rel), nil
}

// key names a file in the ledger.
func (c *call) key(dir *tool.Dir, name string) string {
	return path.Join(c.reach.Base(), dir.Path, name)
}

// explain adds to the error of a path what the model can do about it.
func (c *call) explain(ctx context.Context, p string, err error) error {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s: is a folder; use ls", p)
	case errors.Is(err, tool.ErrIrregular):
		return fmt.Errorf("%s: not a regular file (a device, pipe or socket)", p)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if near := c.suggest(ctx, p); len(near) > 0 {
			return fmt.Errorf("%s: no such file; did you mean %s?", p, strings.Join(near, ", "))
		}
		return fmt.Errorf("%s: no such file in the workspace; use ls or glob to find it", p)
	}
	return err
}
