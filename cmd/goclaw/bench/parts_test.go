package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/store/sqlite"
)

func TestWALCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commits := s.Commits()
	w, err := followWAL(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	// Far enough for the log to be begun afresh more than once.
	for i := range 600 {
		if err := cycle(t.Context(), s, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.count(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := w.commits, int(s.Commits()-commits); got != want || want != 4*600 {
		t.Errorf("%d commits in the log; the store made %d, four for each of 600 runs", got, want)
	}
}

func TestInitLine(t *testing.T) {
	m := initLine.FindAllStringSubmatch("x\ninit net/http @6.7 ms, 0.058 ms clock, 4712 bytes, 49 allocs\ninit a.b/c @1 ms, 1.2 ms clock, 0 bytes, 0 allocs\n", -1)
	if len(m) != 2 || !slices.Equal(m[0][1:], []string{"net/http", "0.058", "4712"}) || m[1][1] != "a.b/c" {
		t.Errorf("parsed %q", m)
	}
}

func TestCleanEnv(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "GOCLAW_HOME=/h", "X_API_KEY=k", "OPENAI_BASE_URL=u", "GOCLAW_MODEL=m", "GOCLAW_TEST_X=1"})
	if !slices.Equal(got, []string{"PATH=/bin", "GOCLAW_TEST_X=1"}) {
		t.Errorf("kept %q", got)
	}
}

// modelProcess serves the model server until the test ends.
func modelProcess(t *testing.T) *bench {
	t.Helper()
	in, hold := io.Pipe()
	out, said := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- ServeModel(context.Background(), in, said) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		hold.Close() // as when the parent has died
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	url := strings.TrimSpace(strings.TrimPrefix(line, "ready "))
	return &bench{models: &process{url: url}, http: &http.Client{Transport: transport}}
}

func TestModelServer(t *testing.T) {
	b := modelProcess(t)
	p := anthropic.New(anthropic.Options{BaseURL: b.models.url})
	defer p.CloseIdleConnections()
	user := func(text string) []goclaw.Message { return []goclaw.Message{goclaw.Text(goclaw.RoleUser, text)} }
	ask := func(msgs []goclaw.Message) goclaw.ModelReply {
		t.Helper()
		reply, err := p.Stream(t.Context(), goclaw.ModelRequest{Model: modelName, Messages: msgs}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if got := ask(user("hello")).Message.PlainText(); got != "Hello." {
		t.Errorf("a turn is answered with %q", got)
	}
	calls := ask(user(spawnOrder + "3 " + quickTask)).Message.Calls()
	if len(calls) != 3 || calls[2].Name != "sessions_spawn" || calls[2].Arguments != `{"announce":"together","task":"`+quickTask+`"}` {
		t.Errorf("spawned %+v", calls)
	}
	ask(user("[Subagent Context] …\n[Subagent Task]: " + quickTask))
	ask(user("[Subagent: one] Complete."))
	m, err := b.marks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range m.Requests {
		kinds = append(kinds, r.Kind)
		if r.Arrived <= 0 || r.Left < r.Arrived {
			t.Errorf("%s arrived at %d and left at %d", r.Kind, r.Arrived, r.Left)
		}
	}
	if want := []string{kindTurn, kindSpawn, kindWorker, kindAnnounce}; !slices.Equal(kinds, want) {
		t.Errorf("noted %q; want %q", kinds, want)
	}
	if !json.Valid(m.Bodies[kindTurn]) {
		t.Errorf("the turn's body is %q", m.Bodies[kindTurn])
	}
	if err := errors.Join(b.reset(t.Context()), b.arrive(t.Context(), kindTurn, 0, spawnWait)); err != nil {
		t.Error(err)
	}
	if m, err = b.marks(t.Context()); err != nil || len(m.Requests) != 0 {
		t.Errorf("after the reset: %+v (%v)", m.Requests, err)
	}
}
