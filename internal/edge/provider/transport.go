package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

var (
	errStall = errors.New("the server fell silent")
	errDrain = errors.New("the reply is complete")
)

const (
	idlePerHost  = 32 // concurrent runs talk to one host
	drainTimeout = 50 * time.Millisecond
	drainLimit   = 4096

	// connBuffer is the size of a connection's two buffers. What is larger
	// passes them by; what waits for a model holds them all the while.
	connBuffer = 1 << 10
)

// Client copies c, or makes a client, that never follows a redirect: a
// redirect would be a second request, and would carry the key elsewhere.
func Client(c *http.Client) *http.Client {
	var client http.Client
	if c != nil {
		client = *c
	} else if base, ok := http.DefaultTransport.(*http.Transport); ok {
		transport := base.Clone()
		transport.MaxIdleConnsPerHost = idlePerHost
		transport.ReadBufferSize, transport.WriteBufferSize = connBuffer, connBuffer
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// Watch follows one request: it cancels the call when the server is silent for
// too long, and turns a response that is no stream into an error.
type Watch struct {
	idle   time.Duration
	stop   context.CancelCauseFunc
	refuse func(*http.Response) error

	answer  *http.Response // once headers were received
	body    io.ReadCloser  // the response's, once there is one
	silence *time.Timer
	closed  bool
}

// Watch returns a watch over one call, which stop cancels.
func (l Line) Watch(stop context.CancelCauseFunc) *Watch {
	return &Watch{idle: l.Idle, stop: stop, refuse: l.refusal}
}

// Response is the answer to the call, whose body is the watch; nil before there
// is one.
func (w *Watch) Response() *http.Response { return w.answer }

// Do is the middleware of the SDKs.
func (w *Watch) Do(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	sent := sendOnce(req)
	w.silence = time.AfterFunc(w.idle, func() { w.stop(errStall) })
	defer w.silence.Stop()
	res, err := next(req)
	if err != nil {
		return nil, err
	}
	sent.forget()
	w.answer = res
	w.body = res.Body
	res.Body = w
	if err := w.refuse(res); err != nil {
		_ = w.Close()
		return nil, err
	}
	return res, nil
}

// Read reads the body. Only waiting for the server counts as silence: a slow
// reader is no stall.
func (w *Watch) Read(p []byte) (int, error) {
	w.silence.Reset(w.idle)
	defer w.silence.Stop()
	return w.body.Read(p)
}

// Close reads what little follows a complete reply, so that the connection can
// be used again, and closes the body.
func (w *Watch) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	timer := time.AfterFunc(drainTimeout, func() { w.stop(errDrain) })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(w.body, drainLimit))
	return w.body.Close()
}
