package web

import (
	"net/http"
	"strings"

	"goclaw/internal/edge/web/openapi"
)

// Document describes the whole surface as OpenAPI 3.1, for a version of the
// program.
func Document(version string) (openapi.Doc, error) {
	s := &server{Options: Options{Version: version}}
	return s.document()
}

func (s *server) document() (openapi.Doc, error) {
	var routes []openapi.Route
	for _, r := range s.routes() {
		routes = append(routes, openapi.Route{Pattern: r.pattern, Open: r.open, Operation: r.op})
	}
	version := s.Version
	if version == "" {
		version = "unknown"
	}
	return openapi.Document(openapi.Info{
		Title: "GoClaw", Version: version,
		About: "The API of a GoClaw gateway: conversations, the runs that they lead to, and what these leave. Moments are Unix milliseconds.",
		Failure: func(pattern string) (any, string) {
			if strings.Contains(pattern, " /v1/") {
				return openAIFailure{}, "application/json"
			}
			return problem{}, "application/problem+json"
		},
	}, routes)
}

func (s *server) documentRoutes() []route {
	return []route{{pattern: "GET /api/openapi.json", handle: s.getDocument, op: openapi.Operation{
		ID: "getDocument", Tag: "gateway", Summary: "This document",
		Answers: []openapi.Answer{{Status: http.StatusOK, About: "OpenAPI 3.1", Media: "application/json"}},
	}}}
}

func (s *server) getDocument(w http.ResponseWriter, r *http.Request) {
	doc, err := s.document()
	s.reply(w, r, doc, err)
}
