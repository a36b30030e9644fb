package web

import (
	"context"
	"net/http"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// Crontab is what agents do by the clock. A goclaw.BadRequest says what is
// wrong with a job.
type Crontab interface {
	List(ctx context.Context) ([]goclaw.CronReport, error)
	Show(ctx context.Context, id string) (goclaw.CronReport, error)
	// AddEdit adds the job that an edit describes; the same once ("" is none)
	// adds one, and another edit with it is goclaw.ErrReused.
	AddEdit(ctx context.Context, e goclaw.CronEdit, once string) (goclaw.CronReport, error)
	ChangeEdit(ctx context.Context, id string, e goclaw.CronEdit) (goclaw.CronReport, error)
	Pause(ctx context.Context, id string) (goclaw.CronReport, error)
	Resume(ctx context.Context, id string) (goclaw.CronReport, error)
	Remove(ctx context.Context, id string) error
	// RunNow fires a job by hand; the same once fires it once.
	RunNow(ctx context.Context, id, once string) (goclaw.Run, error)
	// History lists what became of its due times, newest first.
	History(ctx context.Context, id string, limit int) ([]goclaw.Firing, error)
}

func (s *server) cronRoutes() []route {
	id := []openapi.Param{{Name: "id", About: "the id of a job"}}
	report := ok("the job", goclaw.CronReport{})
	gone := []int{http.StatusNotFound}
	return []route{
		{pattern: "GET /api/cron", handle: s.listJobs, op: openapi.Operation{
			ID: "listJobs", Tag: "cron", Summary: "The jobs, by agent and id", Answers: ok("the jobs", []goclaw.CronReport{}),
		}},
		{pattern: "POST /api/cron", handle: s.addJob, op: openapi.Operation{
			ID: "addJob", Tag: "cron", Summary: "Add a job", About: "It needs name, message and one of schedule, at, every and cron.",
			Headers: []openapi.Param{idempotencyKey("")}, Body: goclaw.CronEdit{},
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "the job", Body: goclaw.CronReport{}}},
			Errors:  []int{http.StatusUnprocessableEntity},
		}},
		{pattern: "GET /api/cron/{id}", handle: s.getJob, op: openapi.Operation{
			ID: "getJob", Tag: "cron", Summary: "One job", Path: id, Answers: report, Errors: gone,
		}},
		{pattern: "PATCH /api/cron/{id}", handle: s.changeJob, op: openapi.Operation{
			ID: "changeJob", Tag: "cron", Summary: "Change a job", About: "What is not given stays as it is.",
			Path: id, Body: goclaw.CronEdit{}, Answers: report, Errors: gone,
		}},
		{pattern: "DELETE /api/cron/{id}", handle: s.removeJob, op: openapi.Operation{
			ID: "removeJob", Tag: "cron", Summary: "Remove a job; its history stays", Path: id,
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "removed"}}, Errors: gone,
		}},
		{pattern: "POST /api/cron/{id}/run", handle: s.runJob, op: openapi.Operation{
			ID: "runJob", Tag: "cron", Summary: "Fire a job by hand", Path: id, Headers: []openapi.Param{idempotencyKey("")}, Body: struct{}{}, Optional: true,
			Answers: []openapi.Answer{{Status: http.StatusAccepted, About: "the run", Body: goclaw.Run{}}}, Errors: gone,
		}},
		{pattern: "POST /api/cron/{id}/pause", handle: s.pauseJob, op: openapi.Operation{
			ID: "pauseJob", Tag: "cron", Summary: "Keep a job from firing by the clock", Path: id, Body: struct{}{}, Optional: true, Answers: report, Errors: gone,
		}},
		{pattern: "POST /api/cron/{id}/resume", handle: s.resumeJob, op: openapi.Operation{
			ID: "resumeJob", Tag: "cron", Summary: "Let a job fire again", Path: id, Body: struct{}{}, Optional: true, Answers: report, Errors: gone,
		}},
		{pattern: "GET /api/cron/{id}/history", handle: s.jobHistory, op: openapi.Operation{
			ID: "jobHistory", Tag: "cron", Summary: "What became of a job's due times, newest first; of a removed job as well",
			Path: id, Query: []openapi.Param{limit()}, Answers: ok("the firings", []goclaw.Firing{}), Errors: gone,
		}},
	}
}

func (s *server) listJobs(w http.ResponseWriter, r *http.Request) {
	jobs, err := s.Crontab.List(r.Context())
	s.reply(w, r, list(jobs), err)
}

func (s *server) getJob(w http.ResponseWriter, r *http.Request) {
	job, err := s.Crontab.Show(r.Context(), given(r).Text("id"))
	s.reply(w, r, job, err)
}

func (s *server) addJob(w http.ResponseWriter, r *http.Request) {
	var body goclaw.CronEdit
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	job, err := s.Crontab.AddEdit(r.Context(), body, once(r))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, job)
}

func (s *server) changeJob(w http.ResponseWriter, r *http.Request) {
	var body goclaw.CronEdit
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	job, err := s.Crontab.ChangeEdit(r.Context(), given(r).Text("id"), body)
	s.reply(w, r, job, err)
}

func (s *server) removeJob(w http.ResponseWriter, r *http.Request) {
	if err := s.Crontab.Remove(r.Context(), given(r).Text("id")); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) runJob(w http.ResponseWriter, r *http.Request) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.Crontab.RunNow(r.Context(), given(r).Text("id"), once(r))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusAccepted, run)
}

func (s *server) pauseJob(w http.ResponseWriter, r *http.Request) { s.switchJob(w, r, s.Crontab.Pause) }

func (s *server) resumeJob(w http.ResponseWriter, r *http.Request) {
	s.switchJob(w, r, s.Crontab.Resume)
}

func (s *server) switchJob(w http.ResponseWriter, r *http.Request, to func(context.Context, string) (goclaw.CronReport, error)) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	job, err := to(r.Context(), given(r).Text("id"))
	s.reply(w, r, job, err)
}

func (s *server) jobHistory(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	firings, err := s.Crontab.History(r.Context(), q.Text("id"), q.Number("limit"))
	s.reply(w, r, list(firings), err)
}
