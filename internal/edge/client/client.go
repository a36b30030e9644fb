package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"

	"goclaw"
)

// ErrNoGateway says that there is no server at the address: the connection
// could not be made.
var ErrNoGateway = errors.New("no gateway is running")

// Error is an answer of the server that is no success.
type Error struct {
	Status int    // HTTP status
	Detail string // the server's words, in one line
}

// Error returns what the server said.
func (e *Error) Error() string { return e.Detail }

// Unwrap gives goclaw.ErrNotFound for a 404, goclaw.ErrEnded for a 409, a
// goclaw.BadRequest for what the caller can mend, else nil.
func (e *Error) Unwrap() error {
	switch e.Status {
	case http.StatusNotFound:
		return goclaw.ErrNotFound
	case http.StatusConflict:
		return goclaw.ErrEnded
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return goclaw.BadRequest(e.Detail)
	}
	return nil
}

// Client calls one gateway. It is safe for concurrent use.
type Client struct {
	base  string
	token atomic.Pointer[string]
	http  *http.Client
	renew func() (string, error)
}

// New returns a client of the gateway at baseURL (http://HOST:PORT). hc nil
// means http.DefaultClient's settings; it should have no Timeout, which would
// cut streams.
func New(baseURL, token string, hc *http.Client) *Client {
	if hc == nil {
		hc = http.DefaultClient
	}
	own := *hc
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{base: strings.TrimRight(baseURL, "/"), http: &own}
	c.token.Store(&token)
	return c
}

// Renewing makes c ask for the token anew when the gateway refuses the one that
// it has, which was changed meanwhile. It returns c, and must be called before
// its first use.
func (c *Client) Renewing(token func() (string, error)) *Client {
	c.renew = token
	return c
}

// InProcess returns a client that calls h in memory. Requests name the host
// localhost; answers are streamed as the handler writes them.
func InProcess(h http.Handler, token string) *Client {
	return New("http://localhost", token, &http.Client{Transport: transport{handler: h}})
}

// do makes one request and returns the response if its status is a success.
// The caller closes the body. once ("" is none) is the key by which the server
// knows a request that is sent again.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body any, once string) (*http.Response, error) {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	token := *c.token.Load()
	res, err := c.send(ctx, method, target, payload, once, token)
	if err == nil && res.StatusCode == http.StatusUnauthorized && c.renew != nil {
		if other, rerr := c.renew(); rerr == nil && other != token {
			res.Body.Close()
			c.token.Store(&other)
			res, err = c.send(ctx, method, target, payload, once, other)
		}
	}
	if err != nil {
		return nil, unreachable(ctx, c.base, err)
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refusal(res)
}

// send makes one request; a payload of nil is none.
func (c *Client) send(ctx context.Context, method, target string, payload []byte, once, token string) (*http.Response, error) {
	var body io.Reader
	if payload != nil {
		body = bytes.NewReader(payload)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if once != "" {
		req.Header.Set("Idempotency-Key", once)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(req)
}

// call makes one request and decodes its JSON answer into out, unless out is
// nil. It returns the answer's status.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, out any) (int, error) {
	return c.callOnce(ctx, method, path, query, body, out, "")
}

// callOnce is call with a key by which the server knows it again.
func (c *Client) callOnce(ctx context.Context, method, path string, query url.Values, body, out any, once string) (int, error) {
	res, err := c.do(ctx, method, path, query, body, once)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if out == nil || res.StatusCode == http.StatusNoContent {
		return res.StatusCode, nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, fmt.Errorf("unreadable answer: %w", err)
	}
	return res.StatusCode, nil
}

// unreachable turns the failure of a request that got no answer into one line.
func unreachable(ctx context.Context, base string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the caller names the operation; the URL is noise
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Errorf("%w at %s (%w)", ErrNoGateway, base, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("the gateway at %s broke the connection off (%w)", base, err)
	}
	return err
}

// refusal reads the problem details of an answer that is no success.
func refusal(res *http.Response) error {
	var problem struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media == "application/problem+json" {
		// A body that can't be read leaves the status to tell what happened.
		_ = json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&problem)
	}
	detail := problem.Detail
	if detail == "" {
		detail = problem.Title
	}
	if detail == "" {
		detail = fmt.Sprintf("the server answered HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	if res.StatusCode == http.StatusUnauthorized {
		detail = "the gateway refused the token: it is in the file token of its GOCLAW_HOME; use the same home or set GOCLAW_TOKEN"
	}
	return &Error{Status: res.StatusCode, Detail: strings.Join(strings.Fields(detail), " ")}
}
