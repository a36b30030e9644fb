package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"goclaw/internal/edge/web"
)

// tally is metrics that only write down.
type tally struct{ seen []string }

func (c *tally) Request(route string) func(int) {
	return func(status int) { c.seen = append(c.seen, fmt.Sprint(route, " ", status)) }
}

func (c *tally) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("counted 1\n"))
}

func TestRequestsAreCounted(t *testing.T) {
	c := &tally{}
	s := newSite(t, func(o *web.Options) { o.Metrics = c })
	s.signIn()
	s.want(200, "GET", "/", nil)
	s.want(404, "GET", "/api/made/up", nil)
	s.want(401, "GET", "/metrics", map[string]string{"Cookie": ""})
	s.want(200, "GET", "/metrics", nil)
	s.want(403, "GET", "/api/status", map[string]string{"Host": "evil.example"})
	got := c.seen
	want := []string{
		"POST /api/login-links 201", "GET /login 303", "page 200", " 404", "GET /metrics 401", "GET /metrics 200",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
