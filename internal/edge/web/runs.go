package web

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"

	"goclaw"
)

func (s *server) listRuns(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "session", "requester", "parent", "root", "trigger", "active", "ended", "limit")
	f := goclaw.RunFilter{
		Session:   q.key("session"),
		Requester: q.key("requester"),
		Parent:    q.text("parent"),
		Root:      q.text("root"),
		Active:    q.flag("active"),
		Ended:     q.flag("ended"),
		Limit:     q.number("limit", math.MaxInt32),
	}
	for _, text := range q.values["trigger"] {
		switch t := goclaw.Trigger(text); t {
		case goclaw.TriggerUser, goclaw.TriggerAnnouncement, goclaw.TriggerSpawn, goclaw.TriggerCron, goclaw.TriggerHeartbeat:
			f.Triggers = append(f.Triggers, t)
		default:
			q.bad("trigger", "parameter \"trigger\": %q is none of user, announcement, spawn, cron, heartbeat", text)
		}
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
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
	log, err := s.Backend.RunLog(r.Context(), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	placed, err := s.placed(r.Context(), log.Run)
	s.reply(w, r, placed[0], err)
}

func (s *server) getRunLog(w http.ResponseWriter, r *http.Request) {
	log, err := s.Backend.RunLog(r.Context(), r.PathValue("id"))
	log.Events = list(log.Events)
	s.reply(w, r, log, err)
}

// cancelRun answers with the runs that it marked: none if the run had ended.
func (s *server) cancelRun(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Why string `json:"why"`
	}
	if err := readJSON(r, &body, true); err != nil {
		s.fail(w, r, err)
		return
	}
	runs, err := s.Backend.Cancel(r.Context(), r.PathValue("id"), body.Why)
	s.reply(w, r, list(runs), err)
}

// spawnRun starts a worker: 202 with its ids. A refusal by policy is a 403.
func (s *server) spawnRun(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Session        goclaw.SessionKey `json:"session"`
		Task           string            `json:"task"`
		Context        string            `json:"context"`
		Label          string            `json:"label"`
		Model          string            `json:"model"`
		Thinking       string            `json:"thinking"`
		TimeoutSeconds *int              `json:"timeoutSeconds"`
		Cleanup        goclaw.Cleanup    `json:"cleanup"`
		Agent          string            `json:"agent"`
		AgentID        string            `json:"agentId"`

		Input        json.RawMessage     `json:"input"`
		OutputSchema json.RawMessage     `json:"outputSchema"`
		Announce     goclaw.AnnounceMode `json:"announce"`
	}
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Task == "" {
		s.fail(w, r, invalid("task", `field "task" is required: what the worker shall do`))
		return
	}
	if body.Session.IsZero() {
		body.Session = goclaw.MainKey(s.Agents[0])
	}
	reply, err := s.Backend.Spawn(r.Context(), body.Session, goclaw.SpawnRequest{
		Task: body.Task, Context: body.Context, Label: body.Label, Model: body.Model, Thinking: body.Thinking,
		TimeoutSeconds: body.TimeoutSeconds, Cleanup: body.Cleanup, Agent: body.Agent, AgentID: body.AgentID,
		Input: body.Input, OutputSchema: body.OutputSchema, Announce: body.Announce,
	}, once(r))
	s.accepted(w, r, reply, err)
}

// runFlow starts a flow: 202 with the ids of its run.
func (s *server) runFlow(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Session goclaw.SessionKey `json:"session"`
		File    string            `json:"file"` // for messages
		Flow    string            `json:"flow"` // its text
		Input   json.RawMessage   `json:"input"`
	}
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Session.IsZero() {
		body.Session = goclaw.MainKey(s.Agents[0])
	}
	reply, err := s.Backend.RunFlow(r.Context(), body.Session, cmp.Or(body.File, "flow.yaml"), body.Flow, body.Input, once(r))
	s.accepted(w, r, reply, err)
}

// accepted answers a request that starts a run.
func (s *server) accepted(w http.ResponseWriter, r *http.Request, reply goclaw.SpawnReply, err error) {
	switch {
	case err != nil:
		s.fail(w, r, err)
	case reply.Status == "forbidden":
		s.fail(w, r, failure{Status: http.StatusForbidden, Detail: reply.Error})
	case reply.Error != "":
		s.fail(w, r, invalid("", "%s", reply.Error))
	default:
		writeJSON(w, http.StatusAccepted, reply)
	}
}

// once is the key by which a request that is sent again is known.
func once(r *http.Request) string { return r.Header.Get("Idempotency-Key") }

// waitRun blocks until a run has ended: 200 with it, or 204 when timeout
// seconds are over before; the caller then asks again.
func (s *server) waitRun(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "timeout")
	seconds := q.number("timeout", maxPoll)
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	ctx, cancel := polling(r, seconds)
	defer cancel()
	run, err := s.Backend.WaitRun(ctx, r.PathValue("id"))
	if err != nil && elapsed(ctx) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.reply(w, r, run, err)
}

// steerRun hands a message to a worker under way; a 409 says that it has ended.
func (s *server) steerRun(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Message string `json:"message"`
	}
	if err := readJSON(r, &body, false); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Message == "" {
		s.fail(w, r, invalid("message", `field "message" is required`))
		return
	}
	run, err := s.Backend.Steer(r.Context(), r.PathValue("id"), body.Message, once(r))
	s.reply(w, r, run, err)
}

func (s *server) resumeRun(w http.ResponseWriter, r *http.Request) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.Backend.Resume(r.Context(), r.PathValue("id"))
	s.reply(w, r, run, err)
}
