package web

import (
	"context"
	"encoding/json"
	"math"
	"net/http"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

func (s *server) runRoutes() []route {
	id := []openapi.Param{named("id", "a run")}
	return []route{
		{pattern: "GET /api/runs", handle: s.listRuns, op: openapi.Operation{
			ID: "listRuns", Tag: "runs", Summary: "Runs, newest first",
			Query: []openapi.Param{
				sessionKey("session", "only the runs of this session"),
				sessionKey("requester", "only the runs that this session asked for"),
				{Name: "parent", About: "only the runs that this run started: its whole id"},
				{Name: "root", About: "only the runs of the tree that this run is at the top of: its whole id"},
				{Name: "trigger", Type: openapi.Choice, Repeated: true, About: "only runs that were started so; may be given several times",
					Choices: []string{string(goclaw.TriggerUser), string(goclaw.TriggerAnnouncement), string(goclaw.TriggerSpawn),
						string(goclaw.TriggerCron), string(goclaw.TriggerHeartbeat), string(goclaw.TriggerCompact)}},
				{Name: "active", Type: openapi.Flag, About: "only runs that have not ended"},
				{Name: "ended", Type: openapi.Flag, About: "only runs that have ended"},
				{Name: "before", Type: openapi.Number, Least: 1, Most: math.MaxInt64, About: "only runs with a smaller ordinal: that of the last run of the page before"},
				limit(),
			},
			Answers: ok("the runs", []placedRun{}),
		}},
		{pattern: "GET /api/runs/{id}", handle: s.getRun, op: openapi.Operation{
			ID: "getRun", Tag: "runs", Summary: "One run", Path: id, Answers: ok("the run", placedRun{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/runs/{id}/log", handle: s.getRunLog, op: openapi.Operation{
			ID: "getRunLog", Tag: "runs", Summary: "One run with its events", Path: id,
			Answers: ok("the run and its record", goclaw.RunLog{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/runs/{id}/wait", handle: s.waitRun, op: openapi.Operation{
			ID: "waitRun", Tag: "runs", Summary: "Wait until a run has ended", Path: id, Query: []openapi.Param{seconds()},
			Answers: polled("the run, ended", goclaw.Run{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "POST /api/runs/{id}/cancel", handle: s.cancelRun, op: openapi.Operation{
			ID: "cancelRun", Tag: "runs", Summary: "Cancel a run and its descendants", Path: id, Body: reason{}, Optional: true,
			Answers: ok("the runs that were marked; none if it had ended", []goclaw.Run{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

// limit bounds a list.
func limit() openapi.Param {
	return openapi.Param{Name: "limit", Type: openapi.Number, Least: 1, Most: math.MaxInt32, About: "at most so many; default: all"}
}

// reason is the body of a request that may say why.
type reason struct {
	Why string `json:"why,omitempty" jsonschema:"shown to whoever asks"`
}

func (s *server) listRuns(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	f := goclaw.RunFilter{
		Session:   q.Key("session"),
		Requester: q.Key("requester"),
		Parent:    q.Text("parent"),
		Root:      q.Text("root"),
		Before:    int64(q.Number("before")),
		Active:    q.Flag("active"),
		Ended:     q.Flag("ended"),
		Limit:     q.Number("limit"),
	}
	for _, trigger := range q["trigger"] {
		f.Triggers = append(f.Triggers, goclaw.Trigger(trigger))
	}
	runs, err := s.Backend.Runs(r.Context(), f)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	placed, err := s.placed(r.Context(), runs...)
	s.reply(w, r, placed, err)
}

// placedRun is a run with its place in the queue, from 1; 0 if it is not in it.
type placedRun struct {
	goclaw.Run
	Position int `json:"position,omitempty"`

	// Output is the result as JSON, of a worker whose answer has that form.
	Output json.RawMessage `json:"output,omitempty"`
}

func (s *server) placed(ctx context.Context, runs ...goclaw.Run) ([]placedRun, error) {
	places, err := s.Backend.Positions(ctx, runs)
	placed := make([]placedRun, len(runs))
	for i, run := range runs {
		placed[i] = placedRun{run, places[run.ID], run.Info().Output}
	}
	return placed, err
}

func (s *server) getRun(w http.ResponseWriter, r *http.Request) {
	log, err := s.Backend.RunLog(r.Context(), given(r).Text("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	placed, err := s.placed(r.Context(), log.Run)
	s.reply(w, r, placed[0], err)
}

func (s *server) getRunLog(w http.ResponseWriter, r *http.Request) {
	log, err := s.Backend.RunLog(r.Context(), given(r).Text("id"))
	log.Events = list(log.Events)
	s.reply(w, r, log, err)
}

// cancelRun answers with the runs that it marked: none if the run had ended.
func (s *server) cancelRun(w http.ResponseWriter, r *http.Request) {
	var body reason
	if err := readJSON(r, &body, true); err != nil {
		s.fail(w, r, err)
		return
	}
	runs, err := s.Backend.Cancel(r.Context(), given(r).Text("id"), body.Why)
	s.reply(w, r, list(runs), err)
}

// waitRun blocks until a run has ended: 200 with it, or 204 when timeout
// seconds are over before; the caller then asks again.
func (s *server) waitRun(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	ctx, cancel := polling(r, q.Number("timeout"))
	defer cancel()
	run, err := s.Backend.WaitRun(ctx, q.Text("id"))
	if err != nil && elapsed(ctx) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.reply(w, r, run, err)
}
