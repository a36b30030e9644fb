package web

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

func (s *server) contextRoutes() []route {
	step := openapi.Param{Name: "step", Type: openapi.Number, Least: 1, Most: math.MaxInt32, About: "which model call of the run, from 1; default: the last"}
	request := "a run's id, id#step, or a session's key"
	return []route{
		{pattern: "GET /api/context", handle: s.getContext, op: openapi.Operation{
			ID: "getContext", Tag: "context", Summary: "A prompt by section, with its sizes",
			About: "Of at most one of session, agent and run; of none: of the default agent's main session.",
			Query: []openapi.Param{
				sessionKey("session", "whose next turn"), {Name: "agent", About: "whose main session"}, {Name: "run", About: "the prompt that this run was sent"},
				{Name: "definition", About: "of a worker that the session would start by it"},
				{Name: "input", Length: 8 << 10, About: "that worker's input, JSON"},
			},
			Answers: ok("the prompt", goclaw.PromptReport{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/context/sent", handle: s.getSent, op: openapi.Operation{
			ID: "getSent", Tag: "context", Summary: "The request of a run's model call, byte for byte as it was sent",
			Query: []openapi.Param{openapi.Param{Name: "run", About: "the id of a run; without step also " + request}.Must(), step},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "the body of the request, in the provider's form", Media: "application/json", Headers: []openapi.Param{
				{Name: "X-GoClaw-Run", About: "the run"}, {Name: "X-GoClaw-Session", About: "its session"}, {Name: "X-GoClaw-Model", About: "provider/model"},
				{Name: "X-GoClaw-Step", About: "which call"}, {Name: "X-GoClaw-Steps", About: "of how many"},
			}}},
			Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/context/diff", handle: s.diffContext, op: openapi.Operation{
			ID: "diffContext", Tag: "context", Summary: "Where two requests begin to differ",
			Query:   []openapi.Param{openapi.Param{Name: "a", About: request}.Must(), openapi.Param{Name: "b", About: request}.Must()},
			Answers: ok("the comparison", goclaw.SentDiff{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

// getContext takes at most one of session, agent and run; none means the
// default agent's main session.
func (s *server) getContext(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	query := goclaw.ContextQuery{
		Session: q.Key("session"), Agent: q.Text("agent"), Run: q.Text("run"), Definition: q.Text("definition"), Input: q.Text("input"),
	}
	var err error
	switch {
	case count(query.Session.String(), query.Agent, query.Run) > 1:
		err = invalid("session", "give one of session, agent and run")
	case query.Run != "" && query.Definition != "":
		err = invalid("definition", "a run has its own definition: give one of both")
	case query.Input != "" && (query.Definition == "" || !json.Valid([]byte(query.Input))):
		err = invalid("input", "give JSON, with definition")
	}
	if err != nil {
		s.fail(w, r, err)
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
	q := given(r)
	sent, err := s.Backend.AsSent(r.Context(), q.Text("run"), q.Number("step"))
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
	q := given(r)
	diff, err := s.Backend.ContextDiff(r.Context(), q.Text("a"), q.Text("b"))
	diff.Fields = list(diff.Fields)
	s.reply(w, r, diff, err)
}

// count counts the values that are not empty.
func count(values ...string) int {
	n := 0
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}
