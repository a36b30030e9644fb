package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const maxBody = 64 << 20

// Script decides what to answer. It is called concurrently.
type Script func(r *Request) Answer

// Recorded is a request that the server has answered, or is answering.
type Recorded struct {
	Request
	Key string // what the server counted it under
}

// Option changes a Server.
type Option func(*Server)

// WithoutRecording keeps no request, only counts.
func WithoutRecording() Option { return func(s *Server) { s.forget = true } }

// WithKey counts requests by the key that key gives each.
func WithKey(key func(*Request) string) Option { return func(s *Server) { s.key = key } }

// WithCache simulates a prompt cache and reports its use. OpenAI's wire caches
// by itself, Anthropic's only what carries breakpoints.
func WithCache() Option {
	return func(s *Server) { s.cache = &prefixCache{seen: map[uint64]struct{}{}} }
}

// Server is a model server. Make one with New.
type Server struct {
	script Script
	key    func(*Request) string
	cache  *prefixCache
	forget bool

	mu       sync.Mutex
	total    int
	counts   map[string]int
	requests []Recorded

	closed  bool           // guarded by mu
	closing chan struct{}  // ends stalled requests
	serving sync.WaitGroup // the listener and the requests
	url     string
	server  *http.Server
}

// New returns a server that answers as script says. Close it.
func New(script Script, opts ...Option) *Server {
	s := &Server{
		script:  script,
		key:     func(*Request) string { return "" },
		counts:  map[string]int{},
		closing: make(chan struct{}),
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Start serves on a free loopback port and returns the server's address,
// without a path. It is called at most once.
func (s *Server) Start() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("start model server: %w", err)
	}
	s.url = "http://" + listener.Addr().String()
	s.server = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	s.serving.Go(func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("model server: %v", err))
		}
	})
	return s.url, nil
}

// URL is the address that Start gave.
func (s *Server) URL() string { return s.url }

// Close ends all requests and, if Start was called, stops serving. It waits
// until nothing runs any more.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.closing)
	}
	if first && s.server != nil {
		_ = s.server.Close() // only the listener could fail to close
	}
	s.serving.Wait()
}

// Handler returns the HTTP interface, to be served by the caller.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/messages", s.wire(WireAnthropic))
	mux.Handle("POST /v1/chat/completions", s.wire(WireOpenAI))
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, object{"object": "list", "data": []object{{"id": "test-model", "object": "model", "type": "model"}}})
	})
	return mux
}

// Total is the number of requests so far.
func (s *Server) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Count is the number of requests so far under key.
func (s *Server) Count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[key]
}

// Requests returns the recorded requests in order of arrival.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Recorded(nil), s.requests...)
}

// admit numbers, counts and records r.
func (s *Server) admit(r *Request) {
	key := s.key(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	r.N = s.total
	s.counts[key]++
	if !s.forget {
		s.requests = append(s.requests, Recorded{Request: *r, Key: key})
	}
}

func (s *Server) wire(wire string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !s.enter() {
			refuse(w, wire, http.StatusServiceUnavailable, "overloaded_error", "the server is closing")
			return
		}
		defer s.serving.Done()
		raw, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			refuse(w, wire, http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		r, err := parseRequest(wire, raw, req.Header.Clone())
		if err != nil {
			refuse(w, wire, http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		s.admit(r)
		s.reply(req.Context(), w, r, s.script(r))
	})
}

// enter reports whether a request may begin; it is part of serving then.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.serving.Add(1)
	return true
}

// reply sends a, with its fault.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, r *Request, a Answer) {
	if !s.pause(ctx, a.Delay) {
		return
	}
	if a.Fault.Status != 0 {
		a.Fault.refuse(w, r.Wire)
		return
	}
	a = a.prepared(r.N)
	cacheRead, cacheWrite := s.cache.use(r)
	usage := a.usage(r, cacheRead, cacheWrite)
	render := anthropicWire
	if r.Wire == WireOpenAI {
		render = openAIWire
	}
	if !r.Stream {
		writeJSON(w, http.StatusOK, render(r, a, usage).whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	out := &faulty{w: w, flush: http.NewResponseController(w), fault: a.Fault}
	for _, event := range render(r, a, usage).events(a.Fault) {
		if !s.pause(ctx, a.ChunkDelay) {
			return
		}
		switch err := out.write(event); {
		case errors.Is(err, errCut):
			panic(http.ErrAbortHandler) // breaks the connection
		case errors.Is(err, errSilent):
			s.pause(ctx, forever)
			return
		case err != nil: // errEnd, or the client left
			return
		}
	}
}

// forever is longer than any test.
const forever = 24 * time.Hour

// pause waits for d and reports whether the request is still wanted.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.closing:
	}
	return false
}
