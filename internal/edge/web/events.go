package web

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// heartbeat is how often a quiet stream says that it lives, so that proxies
// leave it open and clients notice when it doesn't.
const heartbeat = 15 * time.Second

// stream writes server-sent events. Every event is flushed.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newStream sends the header of an event stream.
func newStream(w http.ResponseWriter) (*stream, error) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would collect events
	w.WriteHeader(http.StatusOK)
	st := &stream{w: w, control: http.NewResponseController(w)}
	return st, st.write([]byte(": open\n\n"))
}

// event sends v as JSON; kind "" gives an event without a name.
func (st *stream) event(kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b []byte
	if kind != "" {
		b = append(append(append(b, "event: "...), kind...), '\n')
	}
	b = append(append(append(b, "data: "...), data...), "\n\n"...)
	return st.write(b)
}

// alive sends a comment, which readers skip.
func (st *stream) alive() error { return st.write([]byte(": alive\n\n")) }

func (st *stream) write(b []byte) error {
	_ = st.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := st.w.Write(b); err != nil {
		return err
	}
	return st.control.Flush()
}

func (s *server) eventRoutes() []route {
	var kinds []openapi.Event
	for _, k := range []goclaw.NoticeKind{
		goclaw.NoticeRun, goclaw.NoticeText, goclaw.NoticeThinking, goclaw.NoticeReset, goclaw.NoticeToolCall, goclaw.NoticeToolResult,
		goclaw.NoticeUsage, goclaw.NoticeRetry, goclaw.NoticeWarning, goclaw.NoticeCompact, goclaw.NoticeEvent, goclaw.NoticeLag,
	} {
		kinds = append(kinds, openapi.Event{Name: string(k), Body: goclaw.Notice{}})
	}
	return []route{
		{pattern: "GET /api/events", handle: s.events, op: openapi.Operation{
			ID: "streamNotices", Tag: "events", Summary: "Live notices of a session and its workers, or of all",
			About:   "Best effort: nothing is replayed, and a slow reader gets a lag in place of what it lost.",
			Query:   []openapi.Param{sessionKey("session", "only of this session and the workers that it led to")},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "a stream without end", Media: "text/event-stream", Events: kinds}},
		}},
	}
}

// events streams notices as they happen: of one session and its workers, or of
// all. Nothing is replayed; a client that connects again reads the record.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	key := given(r).Key("session")
	ctx := r.Context()
	f := newFamily(key)
	match := f.match
	if key.IsZero() {
		match = func(goclaw.Notice) bool { return true }
	}
	notices, stop := s.subscribe(ctx, match)
	defer stop()
	if !key.IsZero() {
		if err := f.adopt(ctx, s.Backend, key); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	st, err := newStream(w)
	if err != nil || r.Method == http.MethodHead {
		return
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for err == nil {
		select {
		case n, open := <-notices:
			if !open {
				return
			}
			err = st.event(string(n.Kind), n)
		case <-ticker.C:
			err = st.alive()
		case <-ctx.Done():
			return
		}
	}
}

// subscribe also returns what ends the subscription and waits for its end.
func (s *server) subscribe(ctx context.Context, match func(goclaw.Notice) bool) (<-chan goclaw.Notice, func()) {
	ctx, cancel := context.WithCancel(ctx)
	notices := s.Backend.Subscribe(ctx, match)
	return notices, func() {
		cancel()
		for range notices { //nolint:revive // what is left is of no use
		}
	}
}

// family is a session and the sessions of the workers that it led to. It
// learns of new ones from the notices that pass by. It is safe for concurrent
// use.
type family struct {
	mu       sync.Mutex
	sessions map[goclaw.SessionKey]bool
	runs     map[string]bool // unended runs of those sessions
}

func newFamily(root goclaw.SessionKey) *family {
	return &family{sessions: map[goclaw.SessionKey]bool{root: true}, runs: map[string]bool{}}
}

// match reports whether n is about the family.
func (f *family) match(n goclaw.Notice) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.Kind == goclaw.NoticeLag {
		return true
	}
	if n.Run != nil && f.takesIn(*n.Run) {
		return true
	}
	return f.sessions[n.Session] || f.runs[n.RunID]
}

// takesIn notes a run that belongs to the family; f.mu is held.
func (f *family) takesIn(r goclaw.Run) bool {
	if !f.sessions[r.Session] && !f.sessions[r.Requester] {
		return false
	}
	f.sessions[r.Session] = true
	if f.runs[r.ID] = true; r.State.Ended() {
		delete(f.runs, r.ID)
	}
	return true
}

// adopt takes in the workers of root that are under way already, and theirs.
func (f *family) adopt(ctx context.Context, runs Runs, root goclaw.SessionKey) error {
	seen := map[goclaw.SessionKey]bool{root: true}
	for open := []goclaw.SessionKey{root}; len(open) > 0; open = open[1:] {
		active, err := runs.Runs(ctx, goclaw.RunFilter{Requester: open[0], Active: true})
		if err != nil {
			return err
		}
		f.mu.Lock()
		for _, r := range active {
			f.takesIn(r)
			if !seen[r.Session] {
				seen[r.Session] = true
				open = append(open, r.Session)
			}
		}
		f.mu.Unlock()
	}
	return nil
}
