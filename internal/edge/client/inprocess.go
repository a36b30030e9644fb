package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
)

// transport is an http.RoundTripper that calls a handler in this process. Each
// request runs in a goroutine of its own, which has ended when the response's
// body has been closed.
type transport struct{ handler http.Handler }

// RoundTrip returns once the handler has written its header. What it writes
// afterwards waits until it is read, as with a socket whose buffers are full.
// Closing the body ends the context of the handler's request.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	pr, pw := io.Pipe()
	w := &writer{header: http.Header{}, pipe: pw, ready: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.serve(t.handler, serverRequest(req.Clone(ctx)))
		if req.Body != nil {
			_ = req.Body.Close()
		}
	}()
	// The end of the context also ends a read that waits.
	stop := context.AfterFunc(req.Context(), func() { _ = pw.CloseWithError(context.Cause(req.Context())) })
	body := &body{PipeReader: pr, end: func() {
		stop()
		cancel(context.Canceled)
		_ = pr.Close()
		<-done
	}}
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	// A handler that gives up because the context ended looks like success.
	if ctx.Err() != nil {
		body.end()
		return nil, context.Cause(ctx)
	}
	if w.failed != nil {
		body.end()
		return nil, w.failed
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.sent,
		Body:          body,
		ContentLength: -1,
		Request:       req,
	}, nil
}

// serverRequest makes of a client's request what a server would hand on.
func serverRequest(r *http.Request) *http.Request {
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = "in-process"
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	return r
}

// body is a response's body; closing it ends the handler and waits for it.
type body struct {
	*io.PipeReader
	once sync.Once
	end  func()
}

// Close is safe to call more than once.
func (b *body) Close() error {
	b.once.Do(b.end)
	return nil
}

// writer is the http.ResponseWriter of one request. As with net/http, only the
// handler's goroutine may use it; what others read is set before ready closes.
type writer struct {
	header http.Header
	pipe   *io.PipeWriter

	ready  chan struct{} // closed once sent and status, or failed, are set
	sent   http.Header
	status int
	failed error
}

// serve runs the handler. A panic before the header was written fails the
// request; a later one breaks the body off, as a cut connection would, and so
// does the end of the context: a stream that it ended must not look complete.
func (w *writer) serve(h http.Handler, r *http.Request) {
	defer func() {
		v := recover()
		if v == nil {
			w.WriteHeader(http.StatusOK)
			_ = w.pipe.CloseWithError(context.Cause(r.Context())) // nil: end of file
			return
		}
		_ = w.pipe.CloseWithError(io.ErrUnexpectedEOF)
		if w.status == 0 {
			w.failed = fmt.Errorf("the handler panicked: %v", v)
			w.status = http.StatusInternalServerError
			close(w.ready)
		}
	}()
	h.ServeHTTP(w, r)
}

// Header returns the header that WriteHeader will send.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader lets RoundTrip return. The first call counts; informational
// answers are not passed on.
func (w *writer) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, maps.Clone(w.header)
	close(w.ready)
}

// Write blocks until p was read or the body closed.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush sends the header; nothing else is ever held back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }
