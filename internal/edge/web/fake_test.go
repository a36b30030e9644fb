package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "the-token"

var mainKey = goclaw.MainKey("main")

// fake is a gateway in which nothing happens by itself. Functions that are nil
// give zero values.
type fake struct {
	receive func(context.Context, goclaw.Inbound) (goclaw.Receipt, error)
	await   func(ctx context.Context, run string, workers bool) (goclaw.Outcome, error)
	wait    func(ctx context.Context, run string) (goclaw.Run, error)
	follow  chan goclaw.Notice
	places  map[string]int
	refusal goclaw.SpawnReply
	parked  []goclaw.Parked
	memory  goclaw.MemoryAnswer
	left    []goclaw.Artifact
	pause   goclaw.Pause
	runs    func(goclaw.RunFilter) []goclaw.Run
	logs    map[string]goclaw.RunLog
	history map[goclaw.SessionKey][]goclaw.RunLog
	status  goclaw.Status
	fail    error // every question's answer

	answerCalls func(run string, results []goclaw.ToolResult) error
	runLog      func(id string) (goclaw.RunLog, error)

	mu       sync.Mutex
	subs     map[chan goclaw.Notice]func(goclaw.Notice) bool
	received []goclaw.Inbound
	asked    []any
}

func (f *fake) note(v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, v)
}

func (f *fake) Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
	f.mu.Lock()
	f.received = append(f.received, in)
	f.mu.Unlock()
	if f.receive != nil {
		return f.receive(ctx, in)
	}
	return goclaw.Receipt{Run: &goclaw.Run{ID: "run-1", Session: in.Session, Task: in.Text}}, f.fail
}

func (f *fake) Subscribe(ctx context.Context, match func(goclaw.Notice) bool) <-chan goclaw.Notice {
	ch := make(chan goclaw.Notice, 64)
	f.mu.Lock()
	if f.subs == nil {
		f.subs = map[chan goclaw.Notice]func(goclaw.Notice) bool{}
	}
	f.subs[ch] = match
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, ch)
		close(ch)
	})
	return ch
}

// publish drops what a subscriber has no room for.
func (f *fake) publish(notices ...goclaw.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range notices {
		for ch, match := range f.subs {
			if match(n) {
				select {
				case ch <- n:
				default:
				}
			}
		}
	}
}

func (f *fake) subscribers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs)
}

func (f *fake) Await(ctx context.Context, run string, workers bool) (goclaw.Outcome, error) {
	if f.await != nil {
		return f.await(ctx, run, workers)
	}
	return goclaw.Outcome{Status: goclaw.StateCompleted, Reply: "hello", Replies: []string{"hello"}, Turns: 1}, f.fail
}

func (f *fake) AnswerCalls(_ context.Context, run string, results []goclaw.ToolResult) (goclaw.Run, error) {
	f.note([]any{run, results})
	if f.answerCalls != nil {
		if err := f.answerCalls(run, results); err != nil {
			return goclaw.Run{}, err
		}
	}
	return f.find(run)
}

func (f *fake) Runs(_ context.Context, filter goclaw.RunFilter) ([]goclaw.Run, error) {
	f.note(filter)
	if f.runs == nil {
		return nil, f.fail
	}
	return f.runs(filter), f.fail
}

func (f *fake) RunLog(_ context.Context, id string) (goclaw.RunLog, error) {
	if f.runLog != nil {
		return f.runLog(id)
	}
	log, ok := f.logs[id]
	if !ok && f.fail == nil {
		return log, fmt.Errorf("run %q: %w", id, goclaw.ErrNotFound)
	}
	return log, f.fail
}

func (f *fake) Cancel(_ context.Context, id, why string) ([]goclaw.Run, error) {
	f.note([2]string{id, why})
	log, ok := f.logs[id]
	if !ok && f.fail == nil {
		return nil, fmt.Errorf("run %q: %w", id, goclaw.ErrNotFound)
	}
	return []goclaw.Run{log.Run}, f.fail
}

func (f *fake) Positions(context.Context, []goclaw.Run) (map[string]int, error) {
	return f.places, f.fail
}

func (f *fake) WaitRun(ctx context.Context, id string) (goclaw.Run, error) {
	if f.wait != nil {
		return f.wait(ctx, id)
	}
	return f.find(id)
}

// Follow passes on what the test sends, and notes when it is over.
func (f *fake) Follow(ctx context.Context, id string, after int) (<-chan goclaw.Notice, error) {
	f.note([]any{id, after})
	if _, err := f.find(id); err != nil {
		return nil, err
	}
	out := make(chan goclaw.Notice)
	go func() {
		defer close(out)
		for {
			select {
			case n, open := <-f.follow:
				if !open {
					return
				}
				select {
				case out <- n:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (f *fake) find(id string) (goclaw.Run, error) {
	log, err := f.RunLog(context.Background(), id)
	return log.Run, err
}

func (f *fake) Spawn(_ context.Context, session goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error) {
	f.note([]any{session, q, once})
	if f.refusal.Error != "" {
		return f.refusal, f.fail
	}
	return goclaw.SpawnReply{Status: "accepted", RunID: "w1", SessionKey: "agent:main:subagent:1"}, f.fail
}

func (f *fake) Steer(_ context.Context, id, text, once string) (goclaw.Run, error) {
	f.note([3]string{id, text, once})
	run, err := f.find(id)
	if err == nil && run.State.Ended() {
		return goclaw.Run{}, fmt.Errorf("run %s: %w", id, goclaw.ErrEnded)
	}
	return run, err
}

func (f *fake) Resume(_ context.Context, id string) (goclaw.Run, error) { return f.find(id) }

func (f *fake) Artifacts(_ context.Context, q goclaw.ArtifactFilter) ([]goclaw.Artifact, error) {
	f.note(q)
	return f.left, f.fail
}

func (f *fake) Artifact(_ context.Context, run, name string) (goclaw.Artifact, []byte, error) {
	f.note([2]string{run, name})
	for _, a := range f.left {
		if a.Run == run && a.Name == name {
			return a, []byte("content of " + name + "\x00"), f.fail
		}
	}
	return goclaw.Artifact{}, nil, errors.Join(f.fail, fmt.Errorf("artifact %q: %w", name, goclaw.ErrNotFound))
}

func (f *fake) Parked(context.Context) ([]goclaw.Parked, error) { return f.parked, f.fail }

func (f *fake) decide(what, id string) (goclaw.Parked, error) {
	f.note([2]string{what, id})
	for _, p := range f.parked {
		if p.ID == id {
			return p, f.fail
		}
	}
	return goclaw.Parked{}, errors.Join(f.fail, fmt.Errorf("parked delivery %q: %w", id, goclaw.ErrNotFound))
}

func (f *fake) RetryParked(_ context.Context, id string) (goclaw.Parked, error) {
	return f.decide("retry", id)
}

func (f *fake) DismissParked(_ context.Context, id string) (goclaw.Parked, error) {
	return f.decide("dismiss", id)
}

func (f *fake) Usage(_ context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error) {
	f.note(q)
	return []goclaw.UsageRow{{Model: "m", Calls: 2, Unpriced: 2}}, f.fail
}

func (f *fake) Paused(context.Context) (goclaw.Pause, error) { return f.pause, f.fail }

func (f *fake) SetPause(_ context.Context, on bool, why string) (goclaw.Pause, error) {
	if f.pause = (goclaw.Pause{}); on {
		f.pause = goclaw.Pause{At: 7, Why: why}
	}
	return f.pause, f.fail
}

func (f *fake) Sessions(context.Context) ([]goclaw.Session, error) {
	var all []goclaw.Session
	for key := range f.history {
		all = append(all, goclaw.Session{Key: key, Agent: key.Agent})
	}
	return all, f.fail
}

func (f *fake) ResetSession(_ context.Context, key goclaw.SessionKey) (goclaw.Session, error) {
	f.note([2]string{"reset", key.String()})
	return goclaw.Session{Key: key, Agent: key.Agent, ResetAt: 3}, f.fail
}

func (f *fake) Definitions(_ context.Context, agent string) ([]goclaw.DefinitionReport, error) {
	f.note([2]string{"definitions", agent})
	return []goclaw.DefinitionReport{{Kind: "definition", Name: "one", Status: goclaw.DefinitionOK}}, f.fail
}

func (f *fake) Definition(_ context.Context, agent, name string) (goclaw.DefinitionReport, error) {
	f.note([3]string{"definition", agent, name})
	if name != "one" {
		return goclaw.DefinitionReport{}, fmt.Errorf("definition %q: %w", name, goclaw.ErrNotFound)
	}
	return goclaw.DefinitionReport{Kind: "definition", Name: "one", Body: "text"}, f.fail
}

func (f *fake) History(_ context.Context, key goclaw.SessionKey) ([]goclaw.RunLog, error) {
	return f.history[key], f.fail
}

func (f *fake) Context(_ context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error) {
	f.note(q)
	return goclaw.Prompt{Model: "m", Sections: []goclaw.Section{{ID: "identity", Text: "<you>", Stable: true}}}, f.fail
}

func (f *fake) AsSent(_ context.Context, run string, step int) (goclaw.Sent, error) {
	f.note([]any{run, step})
	log, err := f.RunLog(context.Background(), run)
	return goclaw.Sent{Run: goclaw.Run{ID: log.Run.ID}, Session: log.Run.Session, Model: "p/m", Step: max(step, 1), Steps: 4, Body: []byte(rawBody)}, err
}

// rawBody is JSON that no encoder would write so.
const rawBody = "{ \"model\" :\"m\",\"text\":\"\\u003c\\/\u2028\"}"

func (f *fake) ContextDiff(_ context.Context, a, b string) (goclaw.SentDiff, error) {
	f.note([2]string{a, b})
	return goclaw.SentDiff{Bytes: 5, Tokens: 2, Before: "<a>", A: goclaw.SentSide{Session: mainKey, Part: "tool x"}, B: goclaw.SentSide{Session: mainKey}}, f.fail
}

func (f *fake) Status(context.Context) (goclaw.Status, error) {
	if f.status.Version == "panic" {
		panic("the secret plan")
	}
	return f.status, f.fail
}

// gateway returns the surface over f with a log that nobody reads.
func gateway(f *fake, change ...func(*web.Options)) http.Handler {
	o := web.Options{
		Token: token, Backend: f, Version: "1.2.3",
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now:    func() time.Time { return time.Unix(1700000000, 0) },
		Agents: []string{"main", "coder"},
	}
	for _, c := range change {
		c(&o)
	}
	return web.New(o)
}

// serve starts a real server, which ends with the test.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// eachTransport runs test over a socket and in memory.
func eachTransport(t *testing.T, test func(t *testing.T, connect func(http.Handler) *client.Client)) {
	t.Run("socket", func(t *testing.T) {
		test(t, func(h http.Handler) *client.Client {
			srv := serve(t, h)
			return client.New(srv.URL, token, srv.Client())
		})
	})
	t.Run("memory", func(t *testing.T) {
		test(t, func(h http.Handler) *client.Client { return client.InProcess(h, token) })
	})
}

var errBroken = errors.New("the database is locked")

func (f *fake) RunFlow(_ context.Context, session goclaw.SessionKey, file, text string, input json.RawMessage, once string) (goclaw.SpawnReply, error) {
	f.note([]any{session, file, text, string(input), once})
	if f.refusal.Error != "" {
		return f.refusal, f.fail
	}
	return goclaw.SpawnReply{Status: "accepted", RunID: "f1", SessionKey: "agent:main:subagent:2"}, f.fail
}

func (f *fake) SearchMemory(_ context.Context, q goclaw.MemoryQuery) (goclaw.MemoryAnswer, error) {
	f.note(q)
	return f.memory, f.fail
}

func (f *fake) MemoryStatus(_ context.Context, agent string) (goclaw.MemoryStatus, error) {
	f.note(agent)
	return goclaw.MemoryStatus{Agent: agent, Chunks: 3}, f.fail
}

func (f *fake) ReindexMemory(context.Context) ([]goclaw.MemoryStatus, error) {
	return []goclaw.MemoryStatus{{Agent: "main", Chunks: 3}}, f.fail
}
