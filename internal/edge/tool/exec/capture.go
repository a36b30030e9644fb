package exec

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxKept bounds a file of kept output.
const maxKept = 64 << 20

// capture collects a command's output: the head and the tail in memory and,
// once it is longer, all of it in a file. Only one goroutine may write.
type capture struct {
	max    int
	create func() (f io.WriteCloser, name string, err error)

	head  []byte // the first half
	tail  []byte // the last bytes, up to twice what is shown
	total int64

	file io.WriteCloser
	name string
	err  error // why the output is not kept, or not all of it
}

// newCapture returns a capture of at most limit bytes that opens its file with
// create when it needs one.
func newCapture(limit int, create func() (io.WriteCloser, string, error)) *capture {
	return &capture{max: limit, create: create}
}

// Write implements io.Writer. It never fails: a command isn't to die of its
// output.
func (c *capture) Write(p []byte) (int, error) {
	c.keep(p)
	c.total += int64(len(p))
	n := len(p)
	room := min(c.max/2-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	p = p[room:]
	half := c.max - c.max/2
	if len(p) > half {
		c.tail = append(c.tail[:0], p[len(p)-half:]...)
	} else {
		c.tail = append(c.tail, p...)
	}
	if len(c.tail) > 2*half {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-half:]...)
	}
	return n, nil
}

// keep copies p to the file, which it opens when the output gets too long.
func (c *capture) keep(p []byte) {
	if c.err != nil || c.total+int64(len(p)) <= int64(c.max) {
		return
	}
	if c.file == nil {
		if c.file, c.name, c.err = c.create(); c.err != nil {
			return
		}
		// Until now nothing was dropped.
		if _, c.err = c.file.Write(append(c.head[:len(c.head):len(c.head)], c.tail...)); c.err != nil {
			return
		}
	}
	if c.total >= maxKept {
		c.err = fmt.Errorf("only the first %d MB were kept", maxKept>>20)
		return
	}
	_, c.err = c.file.Write(p)
}

// finish closes the file and returns what the model is shown.
func (c *capture) finish() string {
	if c.file != nil {
		c.err = errors.Join(c.err, c.file.Close())
	}
	if c.total <= int64(c.max) {
		return clean(append(c.head, c.tail...))
	}
	half := c.max - c.max/2
	tail := c.tail[max(0, len(c.tail)-half):]
	head, tail := wholeRunes(c.head, tail)
	where := "the whole output is in " + c.name
	if c.err != nil {
		where = fmt.Sprintf("not all of it was kept: %v", c.err)
		if c.name != "" {
			where += "; see " + c.name
		}
	}
	dropped := c.total - int64(len(head)+len(tail))
	return fmt.Sprintf("%s\n[… %d bytes left out; %s …]\n%s", clean(head), dropped, where, clean(tail))
}

// wholeRunes drops the parts of characters that were cut in two.
func wholeRunes(head, tail []byte) ([]byte, []byte) {
	for i := 1; i <= min(utf8.UTFMax, len(head)); i++ {
		if c := head[len(head)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(head[len(head)-i:]) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return head, tail
}

// clean makes output fit for a transcript.
func clean(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}
