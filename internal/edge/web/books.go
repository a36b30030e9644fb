package web

import (
	"net/http"
	"strings"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

func (s *server) parkedRoutes() []route {
	id := []openapi.Param{named("id", "a delivery")}
	return []route{
		{pattern: "GET /api/parked", handle: s.listParked, op: openapi.Operation{
			ID: "listParked", Tag: "parked", Summary: "The results and replies that could not be delivered, oldest first",
			Answers: ok("the deliveries", []goclaw.Parked{}),
		}},
		{pattern: "POST /api/parked/{id}/retry", handle: s.retryParked, op: openapi.Operation{
			ID: "retryParked", Tag: "parked", Summary: "Deliver one again", Path: id, Body: struct{}{}, Optional: true,
			Answers: ok("the delivery, pending again", goclaw.Parked{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "DELETE /api/parked/{id}", handle: s.dismissParked, op: openapi.Operation{
			ID: "dismissParked", Tag: "parked", Summary: "Give one up", Path: id,
			Answers: ok("the delivery that was given up", goclaw.Parked{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

func (s *server) spendRoutes() []route {
	day := "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
	return []route{
		{pattern: "GET /api/usage", handle: s.getUsage, op: openapi.Operation{
			ID: "getUsage", Tag: "usage", Summary: "Sums of model calls: tokens, cost, and the share that caches had of the input",
			Query: []openapi.Param{
				{Name: "by", Pattern: "^(agent|definition|model|day|tree|run|trigger)(,(agent|definition|model|day|tree|run|trigger))*$",
					About: "what to group by: some of agent, definition, model, day, tree, run and trigger, with commas; default: one sum"},
				{Name: "since", Pattern: day, About: "the first day, as 2026-01-31"},
				{Name: "until", Pattern: day, About: "the last day, as 2026-01-31"},
				{Name: "agent", About: "only this agent's"},
				{Name: "tree", About: "only the tree of this run"},
			},
			Answers: ok("the sums", []goclaw.UsageRow{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/pause", handle: s.getPause, op: openapi.Operation{
			ID: "getPause", Tag: "usage", Summary: "Whether model calls are stopped", Answers: ok("since when, and why; empty: they are not", goclaw.Pause{}),
		}},
		{pattern: "PUT /api/pause", handle: s.putPause, op: openapi.Operation{
			ID: "putPause", Tag: "usage", Summary: "Stop all model calls", Body: reason{}, Optional: true, Answers: ok("since when, and why", goclaw.Pause{}),
		}},
		{pattern: "DELETE /api/pause", handle: s.deletePause, op: openapi.Operation{
			ID: "deletePause", Tag: "usage", Summary: "Let models be called again", Answers: ok("empty", goclaw.Pause{}),
		}},
	}
}

func (s *server) listParked(w http.ResponseWriter, r *http.Request) {
	parked, err := s.Backend.Parked(r.Context())
	s.reply(w, r, list(parked), err)
}

// retryParked answers with the delivery that is pending again.
func (s *server) retryParked(w http.ResponseWriter, r *http.Request) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	parked, err := s.Backend.RetryParked(r.Context(), given(r).Text("id"))
	s.reply(w, r, parked, err)
}

// dismissParked answers with the delivery that was given up.
func (s *server) dismissParked(w http.ResponseWriter, r *http.Request) {
	parked, err := s.Backend.DismissParked(r.Context(), given(r).Text("id"))
	s.reply(w, r, parked, err)
}

// getUsage sums model calls; by names what to group them by, with commas.
func (s *server) getUsage(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	query := goclaw.UsageQuery{Since: q.Text("since"), Until: q.Text("until"), Agent: q.Text("agent"), Tree: q.Text("tree")}
	if by := q.Text("by"); by != "" {
		query.By = strings.Split(by, ",")
	}
	rows, err := s.Backend.Usage(r.Context(), query)
	s.reply(w, r, list(rows), err)
}

func (s *server) getPause(w http.ResponseWriter, r *http.Request) {
	pause, err := s.Backend.Paused(r.Context())
	s.reply(w, r, pause, err)
}

// putPause stops all model calls.
func (s *server) putPause(w http.ResponseWriter, r *http.Request) {
	var body reason
	if err := readJSON(r, &body, true); err != nil {
		s.fail(w, r, err)
		return
	}
	pause, err := s.Backend.SetPause(r.Context(), true, body.Why)
	s.reply(w, r, pause, err)
}

// deletePause lets models be called again.
func (s *server) deletePause(w http.ResponseWriter, r *http.Request) {
	pause, err := s.Backend.SetPause(r.Context(), false, "")
	s.reply(w, r, pause, err)
}
