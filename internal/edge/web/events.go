package web

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
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
func (st *stream) event(kind string, v any) error { return st.numbered("", kind, v) }

// numbered is event with an id, by which a client that connects again says how
// far it has got; "" gives none.
func (st *stream) numbered(id, kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := make([]byte, 0, len(data)+64)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
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
		goclaw.NoticeUsage, goclaw.NoticeRetry, goclaw.NoticeWarning, goclaw.NoticeCompact, goclaw.NoticeLag,
	} {
		kinds = append(kinds, openapi.Event{Name: string(k), Body: goclaw.Notice{}})
	}
	return []route{
		{pattern: "GET /api/runs/{id}/events", handle: s.runEvents, op: openapi.Operation{
			ID: "followRun", Tag: "events", Summary: "The events of a run, from the beginning or from where a reader broke off",
			About: "Each event comes once and in order, whoever reads how slowly: its id is its number, after which the next request goes on. " +
				"Between them come, without an id and best effort, streamed pieces and other notices; seq names the event that will hold a piece. " +
				"After the run's last event comes end, and the stream is over.",
			Path:    []openapi.Param{named("id", "a run")},
			Query:   []openapi.Param{{Name: "after", Type: openapi.Number, Most: math.MaxInt32, About: "only events with a greater number"}},
			Headers: []openapi.Param{{Name: "Last-Event-ID", Type: openapi.Number, Most: math.MaxInt32, About: "as after; the greater of both holds"}},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "a stream until the run's end", Media: "text/event-stream", Events: []openapi.Event{
				{Name: "event", About: "an event on record", Body: goclaw.Event{}},
				{Name: "end", About: "the run has ended: close the stream", Body: goclaw.Run{}},
				{Name: "run", About: "it changed its state", Body: goclaw.Notice{}},
				{Name: "text", About: "a piece of the reply", Body: goclaw.Notice{}},
				{Name: "thinking", About: "a piece of its thinking", Body: goclaw.Notice{}},
				{Name: "reset", About: "the pieces so far are void: the call is made again", Body: goclaw.Notice{}},
				{Name: "usage", About: "what it has used so far", Body: goclaw.Notice{}},
				{Name: "retry", About: "the call is made again later", Body: goclaw.Notice{}},
				{Name: "warning", About: "something of the context is wrong", Body: goclaw.Notice{}},
				{Name: "compact", About: "the session was shortened", Body: goclaw.Notice{}},
				{Name: "lag", About: "the reader was slow: some of what has no id was lost", Body: goclaw.Notice{}},
			}}},
			Errors: []int{http.StatusNotFound},
		}},
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
	// Recorded events are for those who follow a run: they would double what
	// this stream tells.
	notices, stop := s.subscribe(ctx, func(n goclaw.Notice) bool { return n.Kind != goclaw.NoticeEvent && match(n) })
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

// runEvents streams a run's record and what passes between its events.
func (s *server) runEvents(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	after := -1
	for _, name := range []string{"after", "Last-Event-ID"} {
		if q.Text(name) != "" {
			after = max(after, q.Number(name))
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	notices, err := s.Backend.Follow(ctx, q.Text("id"), after)
	if err != nil {
		cancel()
		s.fail(w, r, err)
		return
	}
	defer func() {
		cancel()
		for range notices { //nolint:revive // until following has ended
		}
	}()
	st, err := newStream(w)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for err == nil {
		select {
		case n, open := <-notices:
			switch {
			case !open:
				return
			case n.Kind == goclaw.NoticeEvent:
				err = st.numbered(strconv.Itoa(n.Event.Seq), "event", n.Event)
			case n.Kind == goclaw.NoticeRun && n.Run.State.Ended():
				err = st.event("end", n.Run)
			default:
				err = st.event(string(n.Kind), n)
			}
		case <-ticker.C:
			err = st.alive()
		case <-ctx.Done():
			return
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
