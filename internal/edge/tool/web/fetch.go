package web

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"goclaw"
)

// The names of the tools.
const (
	FetchName  = "web_fetch"
	SearchName = "web_search"
)

const (
	maxBody   = 4 << 20  // bytes of a page that are read, after decompression
	maxHeader = 64 << 10 // bytes of an answer's head
	maxURL    = 4096
	maxTitle  = 300 // characters

	octets = "application/octet-stream"
)

// The descriptions and schemas are sent with every model call.
var (
	//go:embed fetch.md
	fetchDescription string
	//go:embed fetch.json
	fetchSchema string
)

// FetchOptions configure web_fetch. AllowHosts are hosts that may be fetched
// wherever they are: host:port, or host for its ports 80 and 443.
type FetchOptions struct {
	MaxChars     int           // shown by one call
	Timeout      time.Duration // of a call
	MaxRedirects int
	UserAgent    string
	AllowHosts   []string
}

// Fetch is web_fetch.
func Fetch(o FetchOptions) goclaw.Tool { return newFetcher(o, newGuard(o.AllowHosts)) }

type fetcher struct {
	FetchOptions
	client *http.Client
}

func newFetcher(o FetchOptions, g *guard) *fetcher {
	f := &fetcher{FetchOptions: o}
	f.client = &http.Client{
		CheckRedirect: f.redirect,
		Transport: &http.Transport{
			Proxy: nil, DialContext: g.dial,
			// A kept connection would pass by the guard.
			DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
		},
	}
	return f
}

// Spec implements goclaw.Tool.
func (f *fetcher) Spec() goclaw.ToolSpec { return spec(FetchName, fetchDescription, fetchSchema) }

func spec(name, description, schema string) goclaw.ToolSpec {
	return goclaw.ToolSpec{
		Name: name, Description: strings.TrimSpace(description), Schema: json.RawMessage(strings.TrimSpace(schema)), Idempotent: true,
	}
}

// Call implements goclaw.Tool.
func (f *fetcher) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	var args struct {
		URL    string
		Offset int
		// MaxChars stands in no schema, which costs tokens in every request;
		// models that know it from elsewhere give it all the same.
		MaxChars int
	}
	if err := json.Unmarshal([]byte(in.Call.Arguments), &args); err != nil {
		return goclaw.ToolError(FetchName + ": arguments: " + err.Error())
	}
	if args.Offset < 0 || args.MaxChars < 0 {
		return goclaw.ToolError(FetchName + ": offset and maxChars can't be negative")
	}
	text, err := f.fetch(ctx, args.URL, args.Offset, min(cmp.Or(args.MaxChars, f.MaxChars), f.MaxChars))
	switch {
	case err == nil:
		return goclaw.ToolOK(text)
	case ctx.Err() != nil:
		return goclaw.ToolError(context.Cause(ctx).Error())
	}
	return goclaw.ToolError(FetchName + ": " + line(err.Error(), 500))
}

func (f *fetcher) fetch(ctx context.Context, address string, offset, most int) (string, error) {
	u, err := parseURL(address)
	if err != nil {
		return "", err
	}
	slow := fmt.Errorf("%s took longer than %s", u.Host, f.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout, slow)
	defer cancel()
	res, err := f.get(ctx, u)
	if err != nil {
		return "", f.reason(ctx, u, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as wanted
	p, err := read(ctx, res)
	if err != nil {
		return "", f.reason(ctx, res.Request.URL, err)
	}
	return p.show(offset, most)
}

func parseURL(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("the address has %d bytes, at most %d are allowed", len(address), maxURL)
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return nil, errors.New("the address can't be read; write http://… or https://…")
	}
	return u, checkURL(u)
}

// checkURL holds for the first address and for every redirect.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return failure("only http://… and https://… are fetched")
	case u.User != nil:
		return failure("an address with a user name or password is not fetched")
	}
	return nil
}

func (f *fetcher) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > f.MaxRedirects {
		return failure(fmt.Sprintf("more than %d redirects", f.MaxRedirects))
	}
	r.Header.Del("Referer")
	return checkURL(r.URL)
}

func (f *fetcher) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", f.UserAgent)
	r.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/json;q=0.8, text/plain;q=0.8, */*;q=0.5")
	res, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		after := ""
		if wait, ok := retryAfter(res.Header, time.Now()); ok {
			after = fmt.Sprintf("; it may be asked again in %s", wait)
		}
		_ = res.Body.Close() // nothing of it is wanted
		return nil, failure(fmt.Sprintf("it answered %d %s%s", res.StatusCode, http.StatusText(res.StatusCode), after))
	}
	return res, nil
}

// failure is a reason in words of our own: nothing in it comes from outside.
type failure string

func (f failure) Error() string { return string(f) }

// reason is why a page can't be had, in a line for the model. It stands outside
// of the marks, so it repeats nothing that a server wrote.
func (f *fetcher) reason(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var at *url.Error
	if errors.As(err, &at) { // it names the address after the last redirect
		if last, perr := url.Parse(at.URL); perr == nil {
			u = last
		}
	}
	var own failure
	var dns *net.DNSError
	var system syscall.Errno
	var certificate *tls.CertificateVerificationError
	why := "it gave no answer that can be read"
	switch {
	case errors.As(err, &own):
		why = own.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		why = "there is no such host"
	case errors.As(err, &dns):
		why = "its name can't be looked up now"
	case errors.As(err, &system):
		why = system.Error()
	case errors.As(err, &certificate):
		why = "its certificate is not valid for it"
	case errors.Is(err, io.EOF):
		why = "it ended the connection without an answer"
	}
	return fmt.Errorf("%s: %s", line(u.Host, 100), why)
}

// read takes what is wanted of an answer.
func read(ctx context.Context, res *http.Response) (page, error) {
	p := page{url: res.Request.URL, size: res.ContentLength}
	if res.Header.Get("Content-Encoding") != "" {
		return p, failure("the page is packed in a way that was not asked for")
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil && (len(body) == 0 || !errors.Is(err, io.ErrUnexpectedEOF)) {
		return p, failure("the page broke off")
	}
	p.broken = err != nil
	if p.more = len(body) > maxBody; p.more {
		body = body[:maxBody]
	} else if !p.broken {
		p.size = int64(len(body))
	}
	declared := res.Header.Get("Content-Type")
	p.kind, _, err = mime.ParseMediaType(declared)
	// A type that says nothing gives way to what the bytes say; so does one of
	// text, to a document that is none.
	found := http.DetectContentType(body)
	document := strings.HasPrefix(found, "application/") && found != octets
	if err != nil || p.kind == octets || document && isText(p.kind) {
		declared = found
		p.kind, _, _ = mime.ParseMediaType(found) // of the library's own making
	}
	return p, p.decode(ctx, body, declared)
}

// page is what was fetched.
type page struct {
	url    *url.URL
	kind   string // the media type
	size   int64  // bytes; -1: unknown
	more   bool   // the rest was not read
	broken bool   // the server ended it before its end
	title  string
	text   string
	binary bool
}

// show renders the characters from offset on, most of them.
func (p page) show(offset, most int) (string, error) {
	about := fmt.Sprintf("URL: %s\nType: %s", line(p.url.String(), maxURL), line(p.kind, 80))
	if p.binary {
		size := "unknown size"
		if p.size >= 0 {
			size = fmt.Sprintf("%d bytes", p.size)
		}
		return fmt.Sprintf("%s\n[%s, no text that can be shown]", wrap(about), size), nil
	}
	if p.title != "" {
		about += "\nTitle: " + line(p.title, maxTitle)
	}
	total := utf8.RuneCountInString(p.text)
	if offset > 0 && offset >= total {
		return "", fmt.Errorf("offset %d is past the end of the page's %d characters", offset, total)
	}
	text := skip(p.text, offset)
	shown := min(most, total-offset)
	text = text[:len(text)-len(skip(text, shown))]
	var notes []string
	switch end := offset + shown; {
	case total == 0:
		notes = append(notes, "no text: it may be made by a script, which isn't run here")
	case end < total:
		notes = append(notes, fmt.Sprintf("characters %d to %d of %d; read on with offset %d", offset, end, total, end))
	case offset > 0:
		notes = append(notes, fmt.Sprintf("characters %d to %d, the end", offset, end))
	}
	if p.more {
		notes = append(notes, fmt.Sprintf("of the page only the first %d MB were read", maxBody>>20))
	}
	if p.broken {
		notes = append(notes, "the server ended the page before its end")
	}
	out := wrap(about + "\n\n" + text)
	if len(notes) > 0 {
		out += "\n[" + strings.Join(notes, "; ") + "]"
	}
	return out, nil
}

// skip is text without its first n characters.
func skip(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[i:]
		}
		n--
	}
	return ""
}
