package web

import (
	"context"
	"math"
	"net/http"
	"time"

	"goclaw"
)

// maxPoll bounds a long poll, in seconds.
const maxPoll = 600

// list is v, or an empty list rather than null.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok"))
}

func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			writeFailure(w, r, failure{Status: http.StatusServiceUnavailable, Detail: err.Error()})
			return
		}
	}
	s.healthz(w, r)
}

// postMessage takes a message in: 202 with the run that it became, or 200
// with the reply to a slash command.
func (s *server) postMessage(w http.ResponseWriter, r *http.Request) {
	var m goclaw.Inbound
	if err := readJSON(r, &m, false); err != nil {
		s.fail(w, r, err)
		return
	}
	switch {
	case m.Session.IsZero():
		s.fail(w, r, invalid("session", `field "session" is required: the key of a session, such as agent:main:main`))
		return
	case m.Text == "":
		s.fail(w, r, invalid("text", `field "text" is required`))
		return
	}
	receipt, err := s.Backend.Receive(r.Context(), m)
	if err == nil && receipt.Run != nil {
		writeJSON(w, http.StatusAccepted, receipt)
		return
	}
	s.reply(w, r, receipt, err)
}

// awaitMessage blocks until a message's run has ended: 200 with its outcome,
// or 204 when timeout seconds are over before; the caller then asks again.
func (s *server) awaitMessage(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "workers", "timeout")
	workers, seconds := q.flag("workers"), q.number("timeout", maxPoll)
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	ctx := r.Context()
	if seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(seconds)*time.Second, errElapsed)
		defer cancel()
	}
	out, err := s.Backend.Await(ctx, r.PathValue("run"), workers)
	if err != nil && elapsed(ctx) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	out.Replies, out.Runs = list(out.Replies), list(out.Runs)
	s.reply(w, r, out, err)
}

func (s *server) listRuns(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "session", "requester", "parent", "trigger", "active", "ended", "limit")
	f := goclaw.RunFilter{
		Session:   q.key("session"),
		Requester: q.key("requester"),
		Parent:    q.text("parent"),
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
	s.reply(w, r, list(runs), err)
}

func (s *server) getRun(w http.ResponseWriter, r *http.Request) {
	log, err := s.Backend.RunLog(r.Context(), r.PathValue("id"))
	s.reply(w, r, log.Run, err)
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

func (s *server) listSessions(w http.ResponseWriter, r *http.Request) {
	sessions, err := s.Backend.Sessions(r.Context())
	s.reply(w, r, list(sessions), err)
}

func (s *server) getHistory(w http.ResponseWriter, r *http.Request) {
	key, err := goclaw.ParseSessionKey(r.PathValue("key"))
	if err != nil {
		s.fail(w, r, invalid("key", "%v", err))
		return
	}
	logs, err := s.Backend.History(r.Context(), key)
	for i, l := range logs {
		logs[i].Events = list(l.Events)
	}
	s.reply(w, r, list(logs), err)
}

// getContext takes at most one of session, agent and run; none means the
// default agent's main session.
func (s *server) getContext(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "session", "agent", "run")
	if len(q.values) > 1 {
		q.bad("", "give one of session, agent and run")
	}
	query := goclaw.ContextQuery{Session: q.key("session"), Agent: q.text("agent"), Run: q.text("run")}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	if query == (goclaw.ContextQuery{}) {
		query.Agent = s.Agents[0]
	}
	prompt, err := s.Backend.Context(r.Context(), query)
	prompt.Sections, prompt.Tools = list(prompt.Sections), list(prompt.Tools)
	s.reply(w, r, prompt, err)
}

func (s *server) getStatus(w http.ResponseWriter, r *http.Request) {
	status, err := s.Backend.Status(r.Context())
	status.Providers = list(status.Providers)
	s.reply(w, r, status, err)
}
