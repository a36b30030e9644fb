package web

import (
	"cmp"
	"context"
	"net/http"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// Definitions are the workers that files describe, as they are now, for an
// agent's workspace. An agent or a name that is not there is
// goclaw.ErrNotFound.
type Definitions interface {
	Definitions(ctx context.Context, agent string) ([]goclaw.DefinitionReport, error)
	// Definition is one, with its text.
	Definition(ctx context.Context, agent, name string) (goclaw.DefinitionReport, error)
}

func (s *server) definitionRoutes() []route {
	agent := []openapi.Param{{Name: "agent", About: "the agent whose workspace is looked at; default: the default one"}}
	return []route{
		{pattern: "GET /api/definitions", handle: s.listDefinitions, op: openapi.Operation{
			ID: "listDefinitions", Tag: "definitions", Summary: "The definitions of workers, and what is wrong with them", Query: agent,
			Answers: ok("the definitions of all scopes; one that is not active has a nearer one of its name", []goclaw.DefinitionReport{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/definitions/{name}", handle: s.getDefinition, op: openapi.Operation{
			ID: "getDefinition", Tag: "definitions", Summary: "One definition, with its text",
			Path: []openapi.Param{{Name: "name", About: "its name"}}, Query: agent,
			Answers: ok("the definition that is in use", goclaw.DefinitionReport{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

func (s *server) listDefinitions(w http.ResponseWriter, r *http.Request) {
	found, err := s.Backend.Definitions(r.Context(), cmp.Or(given(r).Text("agent"), s.Agents[0]))
	s.reply(w, r, list(found), err)
}

func (s *server) getDefinition(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	found, err := s.Backend.Definition(r.Context(), cmp.Or(q.Text("agent"), s.Agents[0]), q.Text("name"))
	s.reply(w, r, found, err)
}
