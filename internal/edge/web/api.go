package web

import (
	"context"
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
	ctx, cancel := polling(r, seconds)
	defer cancel()
	out, err := s.Backend.Await(ctx, r.PathValue("run"), workers)
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
