package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
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

// ok is the only answer of most routes.
func ok(about string, v any) []openapi.Answer {
	return []openapi.Answer{{Status: http.StatusOK, About: about, Body: v}}
}

// polled are the answers of a long poll.
func polled(about string, v any) []openapi.Answer {
	return append(ok(about, v), openapi.Answer{Status: http.StatusNoContent, About: "not yet: ask again"})
}

// seconds is how long a poll may take.
func seconds() openapi.Param {
	return openapi.Param{Name: "timeout", Type: openapi.Number, Least: 1, Most: maxPoll,
		About: "seconds after which the answer is 204; default: none"}
}

// named is a path's variable that is the beginning of an id.
func named(name, what string) openapi.Param {
	return openapi.Param{Name: name, About: "the id of " + what + ", or at least four of its first characters, if they are unambiguous"}
}

func sessionKey(name, about string) openapi.Param {
	return openapi.Param{Name: name, Type: openapi.Key, About: about}
}

func (s *server) healthRoutes() []route {
	text := []openapi.Answer{{Status: http.StatusOK, About: "ok", Media: "text/plain"}}
	return []route{
		{pattern: "GET /healthz", open: true, handle: s.healthz, op: openapi.Operation{
			ID: "healthz", Tag: "gateway", Summary: "Whether the process answers", Answers: text,
		}},
		{pattern: "GET /readyz", open: true, handle: s.readyz, op: openapi.Operation{
			ID: "readyz", Tag: "gateway", Summary: "Whether the gateway works", Answers: text,
		}},
		{pattern: "GET /api/status", handle: s.getStatus, op: openapi.Operation{
			ID: "getStatus", Tag: "gateway", Summary: "The process, and what it does", Answers: ok("the status", goclaw.Status{}),
		}},
	}
}

func (s *server) messageRoutes() []route {
	return []route{
		{pattern: "POST /api/messages", handle: s.postMessage, op: openapi.Operation{
			ID: "postMessage", Tag: "messages", Summary: "Send a message to a session",
			About:   "A slash command is answered at once, anything else becomes a run, which outlives the request.",
			Headers: []openapi.Param{idempotencyKey("key")}, Body: goclaw.Inbound{},
			Answers: []openapi.Answer{
				{Status: http.StatusAccepted, About: "the run that it became", Body: goclaw.Receipt{}},
				{Status: http.StatusOK, About: "the reply to a slash command", Body: goclaw.Receipt{}},
			},
			Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
		}},
		{pattern: "GET /api/messages/{run}", handle: s.awaitMessage, op: openapi.Operation{
			ID: "awaitMessage", Tag: "messages", Summary: "Wait for the outcome of a message",
			Path: []openapi.Param{named("run", "the message's run")},
			Query: []openapi.Param{
				{Name: "workers", Type: openapi.Flag, About: "wait also for the workers that it started and the turns that announce them"}, seconds(),
			},
			Answers: polled("the outcome", goclaw.Outcome{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

func (s *server) sessionRoutes() []route {
	return []route{
		{pattern: "GET /api/sessions", handle: s.listSessions, op: openapi.Operation{
			ID: "listSessions", Tag: "sessions", Summary: "The sessions, the last used first",
			Query:   []openapi.Param{limit(), sessionKey("before", "only those that this list has after this one")},
			Answers: ok("sessions", []goclaw.Session{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "POST /api/sessions/{key}/reset", handle: s.resetSession, op: openapi.Operation{
			ID: "resetSession", Tag: "sessions", Summary: "Begin a conversation anew, as /new does",
			About: "What was said before is kept, but no longer shown to the model.",
			Path:  []openapi.Param{sessionKey("key", "the session")}, Body: struct{}{}, Optional: true,
			Answers: ok("the session", goclaw.Session{}),
		}},
		{pattern: "GET /api/sessions/{key}/history", handle: s.getHistory, op: openapi.Operation{
			ID: "getHistory", Tag: "sessions", Summary: "The runs of a session since its last /new, oldest first, with their events",
			Path: []openapi.Param{sessionKey("key", "the session")}, Answers: ok("the runs", []goclaw.RunLog{}), Errors: []int{http.StatusNotFound},
		}},
	}
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
		s.fail(w, r, wrong("session", `field "session" is required: the key of a session, such as agent:main:main`))
		return
	case m.Text == "":
		s.fail(w, r, wrong("text", `field "text" is required`))
		return
	}
	if m.Key = cmp.Or(m.Key, once(r)); m.Key != "" {
		m.Digest = digest(m)
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
	q := given(r)
	ctx, cancel := polling(r, q.Number("timeout"))
	defer cancel()
	out, err := s.Backend.Await(ctx, q.Text("run"), q.Flag("workers"))
	if err != nil && elapsed(ctx) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	out.Replies, out.Runs = list(out.Replies), list(out.Runs)
	s.reply(w, r, out, err)
}

// polling bounds a long poll by some seconds; 0 leaves it unbounded.
func polling(r *http.Request, seconds int) (context.Context, context.CancelFunc) {
	if seconds == 0 {
		return r.Context(), func() {}
	}
	return context.WithTimeoutCause(r.Context(), time.Duration(seconds)*time.Second, errElapsed)
}

func (s *server) listSessions(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	sessions, err := s.Backend.Sessions(r.Context())
	if before := q.Key("before"); err == nil && !before.IsZero() {
		i := slices.IndexFunc(sessions, func(s goclaw.Session) bool { return s.Key == before })
		if i < 0 {
			err = fmt.Errorf("session %s: %w", before, goclaw.ErrNotFound)
		}
		sessions = sessions[i+1:]
	}
	if most := q.Number("limit"); most > 0 && len(sessions) > most {
		sessions = sessions[:most]
	}
	s.reply(w, r, list(sessions), err)
}

func (s *server) resetSession(w http.ResponseWriter, r *http.Request) {
	if err := readJSON(r, &struct{}{}, true); err != nil {
		s.fail(w, r, err)
		return
	}
	session, err := s.Backend.ResetSession(r.Context(), given(r).Key("key"))
	s.reply(w, r, session, err)
}

func (s *server) getHistory(w http.ResponseWriter, r *http.Request) {
	logs, err := s.Backend.History(r.Context(), given(r).Key("key"))
	shown := make([]goclaw.RunLog, len(logs)) // the store may share what it returned
	for i, l := range logs {
		shown[i] = goclaw.RunLog{Run: l.Run, Events: list(l.Events)}
	}
	s.reply(w, r, shown, err)
}

func (s *server) getStatus(w http.ResponseWriter, r *http.Request) {
	status, err := s.Backend.Status(r.Context())
	status.Providers = list(status.Providers)
	s.reply(w, r, status, err)
}
