package web

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"goclaw"
)

// The services that web_search can ask.
const (
	Brave   = "brave"
	SearXNG = "searxng"
)

const (
	maxCount   = 20
	maxAnswer  = 2 << 20 // bytes of a service's answer
	maxQuery   = 400     // characters
	maxSnippet = 500

	tries   = 3                // of one search that the service puts off
	patient = 10 * time.Second // the longest that a service may put it off
)

var (
	//go:embed search.md
	searchDescription string
	//go:embed search.json
	searchSchema string
)

// SearchOptions configure web_search.
type SearchOptions struct {
	Provider   string // Brave or SearXNG
	APIKey     string // Brave's
	BaseURL    string // SearXNG's; of Brave "" for its own
	MaxResults int    // of a search that doesn't say
	Timeout    time.Duration
	UserAgent  string

	Transport http.RoundTripper // nil: one that takes a proxy from the environment, as model calls do
}

// Search is web_search.
func Search(o SearchOptions) goclaw.Tool {
	s := &searcher{SearchOptions: o}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader}
	}
	s.client = &http.Client{
		Transport: transport,
		// The key goes to the service that was configured, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

type searcher struct {
	SearchOptions
	client *http.Client
}

// hit is one result of any service.
type hit struct{ title, url, snippet, age string }

// Spec implements goclaw.Tool.
func (s *searcher) Spec() goclaw.ToolSpec { return spec(SearchName, searchDescription, searchSchema) }

// Call implements goclaw.Tool.
func (s *searcher) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	var args struct {
		Query string
		Count int
	}
	if err := json.Unmarshal([]byte(in.Call.Arguments), &args); err != nil {
		return goclaw.ToolError(SearchName + ": arguments: " + err.Error())
	}
	query := line(args.Query, maxQuery)
	if query == "" {
		return goclaw.ToolError(SearchName + ": query is empty; say what to look for")
	}
	count := cmp.Or(args.Count, s.MaxResults)
	if count < 1 || count > maxCount {
		return goclaw.ToolError(fmt.Sprintf("%s: count is %d; ask for 1 to %d", SearchName, count, maxCount))
	}
	hits, err := s.search(ctx, query, count)
	switch {
	case err == nil:
		return goclaw.ToolOK(listing(query, hits[:min(len(hits), count)]))
	case ctx.Err() != nil:
		return goclaw.ToolError(context.Cause(ctx).Error())
	}
	return goclaw.ToolError(SearchName + ": " + line(err.Error(), 500))
}

func listing(query string, hits []hit) string {
	if len(hits) == 0 {
		return fmt.Sprintf("Nothing was found for %q. Try other words.", query)
	}
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. %s\n%s\n", i+1, line(h.title, 200), line(h.url, maxURL))
		if h.age != "" {
			fmt.Fprintf(&b, "(%s) ", line(h.age, 60))
		}
		fmt.Fprintf(&b, "%s\n\n", line(h.snippet, maxSnippet))
	}
	return wrap(strings.TrimSpace(b.String()))
}

func (s *searcher) search(ctx context.Context, query string, count int) ([]hit, error) {
	slow := fmt.Errorf("%s took longer than %s", s.Provider, s.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, slow)
	defer cancel()
	hits, err := s.ask(ctx, query, count)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return hits, err
}

// ask asks the service, and asks again when it says so.
func (s *searcher) ask(ctx context.Context, query string, count int) ([]hit, error) {
	for try := 1; ; try++ {
		r, err := s.request(ctx, query, count)
		if err != nil {
			return nil, err
		}
		status, header, body, err := s.send(r)
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusOK && s.Provider == Brave:
			return braveHits(body)
		case status == http.StatusOK:
			return searxngHits(body)
		case status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable:
			return nil, s.refusal(status)
		}
		wait, told := retryAfter(header, time.Now())
		if !told {
			wait = time.Second
		}
		if try == tries || wait > patient {
			return nil, fmt.Errorf("%s takes no more searches now (%d); try again in %s or later", s.Provider, status, wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *searcher) request(ctx context.Context, query string, count int) (*http.Request, error) {
	base, q := s.BaseURL, url.Values{"q": {query}}
	if s.Provider == Brave {
		base = strings.TrimSuffix(cmp.Or(base, braveURL), "/") + bravePath
		q.Set("count", strconv.Itoa(count))
	} else {
		base = strings.TrimSuffix(base, "/") + "/search"
		q.Set("format", "json")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", s.UserAgent)
	r.Header.Set("Accept", "application/json")
	if s.Provider == Brave {
		r.Header.Set("X-Subscription-Token", s.APIKey)
	}
	return r, nil
}

func (s *searcher) send(r *http.Request) (status int, header http.Header, body []byte, err error) {
	res, err := s.client.Do(r)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // without the query
		}
		return 0, nil, nil, fmt.Errorf("%s can't be reached: %w", s.Provider, err)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("its answer has more than %d MB", maxAnswer>>20)
	}
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%s: %w", s.Provider, err)
	}
	return res.StatusCode, res.Header, body, nil
}

// refusal says what a status of the service means; what it writes itself may
// repeat the key.
func (s *searcher) refusal(status int) error {
	hint := "try again later"
	switch {
	case s.Provider == SearXNG && status == http.StatusForbidden:
		hint = "its settings.yml must list json under search.formats"
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusUnprocessableEntity && s.Provider == Brave:
		hint = "a person should check tools.web.search.apiKey"
	case status/100 == 3, status == http.StatusNotFound:
		hint = "a person should check tools.web.search.baseURL"
	}
	return fmt.Errorf("%s answered %d %s: %s", s.Provider, status, http.StatusText(status), hint)
}

// retryAfter is how long a server wants to be left alone.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 && seconds <= 1<<30 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now).Round(time.Second), 0), true
	}
	return 0, false
}
