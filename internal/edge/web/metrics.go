package web

import (
	"net/http"

	"goclaw/internal/edge/web/openapi"
)

// Metrics counts requests, and tells a scraper what was counted.
type Metrics interface {
	http.Handler
	// Request counts a request of a route, "" for none; the returned function
	// is called with its answer's status. Safe for concurrent use.
	Request(route string) func(status int)
}

func (s *server) metricsRoutes() []route {
	return []route{{pattern: "GET /metrics", handle: s.getMetrics, op: openapi.Operation{
		ID: "getMetrics", Tag: "gateway", Summary: "What the process has counted, for Prometheus",
		Answers: []openapi.Answer{{Status: http.StatusOK, About: "metrics in Prometheus's text format", Media: "text/plain"}},
		Errors:  []int{http.StatusNotFound},
	}}}
}

func (s *server) getMetrics(w http.ResponseWriter, r *http.Request) {
	if s.Metrics == nil {
		s.fail(w, r, failure{Status: http.StatusNotFound, Detail: "this gateway counts nothing"})
		return
	}
	s.Metrics.ServeHTTP(w, r)
}

// pageRoute is the route of the web page's own files.
const pageRoute = "page"

// counted begins to count a request; the caller calls what it returns when the
// request is over.
func (s *server) counted(w http.ResponseWriter, pattern string, page bool) func() {
	tracked, ok := w.(*trackedWriter)
	if s.Metrics == nil || !ok {
		return func() {}
	}
	if page {
		pattern = pageRoute
	}
	end := s.Metrics.Request(pattern)
	return func() { end(tracked.status) }
}
