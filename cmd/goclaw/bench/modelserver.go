package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// What a request to the model server is.
const (
	kindTurn     = "turn"         // a person's message
	kindSpawn    = "spawn"        // a person's message that the model answers by spawning
	kindResult   = "result"       // the results of tool calls
	kindWorker   = "worker"       // a worker's
	kindAnnounce = "announcement" // the results of workers
)

// What a message says to make the model server behave. A worker with stallTask
// gets the beginning of a reply and then nothing more; one with holdTask gets
// nothing until all are released. eachMode before a task has its worker
// announced by itself.
const (
	spawnOrder = "bench spawn "
	stallTask  = "stall"
	holdTask   = "wait for the others"
	quickTask  = "answer at once"
	eachMode   = "each: "
)

// What makes a turn go on for some steps, each a streamed reply that ends with a
// tool call; chatterOrder has the replies say much in small pieces.
const (
	followOrder  = "bench follow "
	chatterOrder = "bench chatter "
)

// stallBytes of a reply arrive before it stalls: its header and first events.
const stallBytes = 1000

// mark is when a request reached the model server and when its reply had left,
// in nanoseconds since the server began; Left is 0 before.
type mark struct {
	Kind    string `json:"kind"`
	Arrived int64  `json:"arrived"`
	Left    int64  `json:"left"`
}

// marks are what the server noted since the last reset.
type marks struct {
	Requests []mark                     `json:"requests"`
	Released int64                      `json:"released"` // 0: not yet
	Bodies   map[string]json.RawMessage `json:"bodies"`   // the last one of each kind
}

// modelServer answers at once, and notes when.
type modelServer struct {
	models *providertest.Server
	wire   http.Handler
	began  time.Time

	mu     sync.Mutex
	noted  marks
	offset int           // of the numbers given before the last reset
	gate   chan struct{} // closed by the release
}

// markHeader carries a request's number from the HTTP layer to the script.
const markHeader = "X-Bench-Mark"

// ServeModel is the model server's process: it says where it listens, and ends
// with ctx or when in, which its parent holds, is closed.
func ServeModel(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &modelServer{began: time.Now(), gate: make(chan struct{})}
	s.models = providertest.New(s.script, providertest.WithoutRecording())
	defer s.models.Close()
	defer s.release() // first: the server waits for its requests
	s.wire = s.models.Handler()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("model server: %w", err)
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		defer stop() // ends with the process if in stays open
		_, _ = io.Copy(io.Discard, in)
	}()
	fmt.Fprintln(out, "ready http://"+l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("model server: %w", err)
	}
	return nil
}

func (s *modelServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bench/marks", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(s.noted) // the client may have left
	})
	mux.HandleFunc("GET /bench/count/{kind}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, s.count(r.PathValue("kind")))
	})
	mux.HandleFunc("POST /bench/reset", func(http.ResponseWriter, *http.Request) {
		s.release() // whoever waits for it has left
		s.mu.Lock()
		defer s.mu.Unlock()
		s.offset += len(s.noted.Requests)
		s.noted = marks{}
		s.gate = make(chan struct{})
	})
	mux.HandleFunc("POST /bench/release", func(http.ResponseWriter, *http.Request) { s.release() })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		n := s.arrived()
		r.Header.Set(markHeader, strconv.Itoa(n))
		defer s.change(n, func(m *mark) { m.Left = s.now() })
		s.wire.ServeHTTP(w, r)
	})
	return mux
}

// release lets the held workers go, once between two resets.
func (s *modelServer) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noted.Released == 0 {
		s.noted.Released = s.now()
		close(s.gate)
	}
}

func (s *modelServer) now() int64 { return int64(time.Since(s.began)) }

func (s *modelServer) arrived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted.Requests = append(s.noted.Requests, mark{Arrived: s.now()})
	return s.offset + len(s.noted.Requests) - 1
}

// change edits the mark of request n, unless it was reset meanwhile.
func (s *modelServer) change(n int, edit func(*mark)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := n - s.offset; i >= 0 && i < len(s.noted.Requests) {
		edit(&s.noted.Requests[i])
	}
}

func (s *modelServer) count(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.noted.Requests {
		if m.Kind == kind {
			n++
		}
	}
	return n
}

// script answers a request and notes what it is.
func (s *modelServer) script(r *providertest.Request) providertest.Answer {
	kind, answer := reply(r)
	if n, err := strconv.Atoi(r.Header.Get(markHeader)); err == nil {
		s.change(n, func(m *mark) { m.Kind = kind })
	}
	gate := s.note(kind, r)
	if kind == kindWorker && r.Task() == holdTask {
		<-gate
	}
	return answer
}

// note keeps the body and returns what holds workers back now.
func (s *modelServer) note(kind string, r *providertest.Request) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noted.Bodies == nil {
		s.noted.Bodies = map[string]json.RawMessage{}
	}
	s.noted.Bodies[kind] = r.Raw
	return s.gate
}

func reply(r *providertest.Request) (kind string, answer providertest.Answer) {
	newest := r.NewestText()
	_, order, spawning := strings.Cut(newest, spawnOrder)
	switch {
	case r.Worker() && r.Task() == stallTask:
		return kindWorker, providertest.Answer{Text: strings.Repeat("Thinking. ", 50), Fault: providertest.StallAfter(stallBytes)}
	case r.Worker():
		return kindWorker, providertest.Answer{Text: "Done."}
	case strings.Contains(r.FirstText(), followOrder):
		return kindTurn, goOn(r, followOrder, 8*24, 24, 250*time.Millisecond)
	case strings.Contains(r.FirstText(), chatterOrder):
		return kindTurn, goOn(r, chatterOrder, 1500*8, 8, time.Millisecond)
	case len(r.NewestResults()) > 0:
		return kindResult, providertest.Answer{Text: "They are at work."}
	case strings.Contains(newest, "[Subagent: "):
		return kindAnnounce, providertest.Answer{Text: "All are done."}
	case spawning:
		return kindSpawn, spawn(order)
	}
	return kindTurn, providertest.Answer{Text: "Hello."}
}

// goOn is one of N steps: so much text in pieces, one after each pause, and a
// tool call unless it is the last.
func goOn(r *providertest.Request, order string, text, piece int, each time.Duration) providertest.Answer {
	_, number, _ := strings.Cut(r.FirstText(), order)
	steps, err := strconv.Atoi(strings.Fields(number + " -")[0])
	if err != nil {
		return providertest.Answer{Fault: providertest.Status(http.StatusBadRequest, "", "")}
	}
	step := 1
	for _, m := range r.Messages {
		if m.Role == goclaw.RoleAssistant {
			step++
		}
	}
	a := providertest.Answer{Text: strings.Repeat("so it goes. ", text/12+1)[:text], ChunkSize: piece, ChunkDelay: each}
	if step < steps {
		a.Calls = []providertest.Call{{Name: "glob", Arguments: fmt.Sprintf(`{"pattern":"step-%d-*.md"}`, step)}}
	}
	return a
}

// spawn answers "N TASK" with N calls.
func spawn(order string) providertest.Answer {
	number, task, _ := strings.Cut(strings.TrimSpace(order), " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return providertest.Answer{Fault: providertest.Status(http.StatusBadRequest, "", "")}
	}
	mode := goclaw.AnnounceTogether
	task, each := strings.CutPrefix(task, eachMode)
	if each {
		mode = goclaw.AnnounceEach
	}
	arguments, err := json.Marshal(map[string]any{"task": task, "announce": mode})
	if err != nil {
		return providertest.Answer{Fault: providertest.Status(http.StatusBadRequest, "", "")}
	}
	var a providertest.Answer
	for range n {
		a.Calls = append(a.Calls, providertest.Call{Name: "sessions_spawn", Arguments: string(arguments)})
	}
	return a
}
