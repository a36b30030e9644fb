package web

import (
	"net/http"
	"strings"

	"goclaw"
)

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
	parked, err := s.Backend.RetryParked(r.Context(), r.PathValue("id"))
	s.reply(w, r, parked, err)
}

// dismissParked answers with the delivery that was given up.
func (s *server) dismissParked(w http.ResponseWriter, r *http.Request) {
	parked, err := s.Backend.DismissParked(r.Context(), r.PathValue("id"))
	s.reply(w, r, parked, err)
}

// getUsage sums model calls; by names what to group them by, with commas.
func (s *server) getUsage(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "by", "since", "until", "agent", "tree")
	query := goclaw.UsageQuery{Since: q.text("since"), Until: q.text("until"), Agent: q.text("agent"), Tree: q.text("tree")}
	if by := q.text("by"); by != "" {
		query.By = strings.Split(by, ",")
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
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
	var body struct {
		Why string `json:"why"`
	}
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
