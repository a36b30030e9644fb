package provider

import (
	"io"
	"net/http"
	"sync/atomic"
)

// body is what a request sends. The HTTP client keeps a request until its reply
// has ended, which is as long as a model thinks; the bytes are needed only until
// the reply begins.
type body struct {
	open atomic.Pointer[func() (io.ReadCloser, error)] // nil once forgotten
}

// sendOnce has req send its body through the returned one. A body that can't be
// read twice stays as it is.
func sendOnce(req *http.Request) *body {
	var b body
	if req.GetBody == nil {
		return &b
	}
	open := req.GetBody
	b.open.Store(&open)
	req.GetBody = b.reader
	if first := req.Body; first != nil {
		req.Body = newReading(first)
	}
	return &b
}

// forget lets the bytes go. Readings under way go on.
func (b *body) forget() { b.open.Store(nil) }

func (b *body) reader() (io.ReadCloser, error) {
	open := b.open.Load()
	if open == nil {
		return nil, http.ErrBodyReadAfterClose
	}
	r, err := (*open)()
	if err != nil {
		return nil, err
	}
	return newReading(r), nil
}

// reading is one pass over a body; it lets the bytes go when it is closed,
// which may happen while another goroutine reads.
type reading struct{ from atomic.Pointer[io.ReadCloser] }

func newReading(r io.ReadCloser) *reading {
	var one reading
	one.from.Store(&r)
	return &one
}

func (r *reading) Read(p []byte) (int, error) {
	from := r.from.Load()
	if from == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return (*from).Read(p)
}

func (r *reading) Close() error {
	from := r.from.Swap(nil)
	if from == nil {
		return nil
	}
	return (*from).Close()
}

// Streamed adds to a request's JSON object, which is not empty, what the SDKs
// add when they ask for a stream. It may write to raw.
func Streamed(raw []byte) []byte {
	return append(raw[:len(raw)-1], `,"stream":true}`...)
}
