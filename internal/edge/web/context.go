package web

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"goclaw"
)

// getContext takes at most one of session, agent and run; none means the
// default agent's main session.
func (s *server) getContext(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "session", "agent", "run", "definition", "input")
	query := goclaw.ContextQuery{
		Session: q.key("session"), Agent: q.text("agent"), Run: q.text("run"), Definition: q.text("definition"), Input: q.text("input"),
	}
	switch {
	case named(query.Session.String(), query.Agent, query.Run) > 1:
		q.bad("", "give one of session, agent and run")
	case query.Run != "" && query.Definition != "":
		q.bad("definition", "a run has its own")
	case query.Input != "" && (query.Definition == "" || !json.Valid([]byte(query.Input))):
		q.bad("input", "give JSON, with definition")
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	if query.Session.IsZero() && query.Agent == "" && query.Run == "" {
		query.Agent = s.Agents[0]
	}
	prompt, err := s.Backend.Context(r.Context(), query)
	s.reply(w, r, prompt.Report(), err)
}

// getSent answers with the very bytes that a model was sent; headers tell of
// which call.
func (s *server) getSent(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "run", "step")
	run, step := q.text("run"), q.number("step", math.MaxInt32)
	if run == "" {
		q.bad("run", `parameter "run" is required: the id of a run`)
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	sent, err := s.Backend.AsSent(r.Context(), run, step)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	for name, value := range map[string]string{
		"Run": sent.Run.ID, "Session": sent.Session.String(), "Model": sent.Model,
		"Step": strconv.Itoa(sent.Step), "Steps": strconv.Itoa(sent.Steps),
	} {
		w.Header().Set("X-GoClaw-"+name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = w.Write(sent.Body) // the client may have left
}

// diffContext tells where two requests begin to differ.
func (s *server) diffContext(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "a", "b")
	a, b := q.text("a"), q.text("b")
	for _, p := range [][2]string{{"a", a}, {"b", b}} {
		if p[1] == "" {
			q.bad(p[0], "parameter %q is required: a session's key, a run's id, or id#step", p[0])
		}
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	diff, err := s.Backend.ContextDiff(r.Context(), a, b)
	diff.Fields = list(diff.Fields)
	s.reply(w, r, diff, err)
}

// named counts the values that are not empty.
func named(values ...string) int {
	n := 0
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}
