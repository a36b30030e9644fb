package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"goclaw"
	"goclaw/internal/edge/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "the-persons-words"

// turn is a run that did a bit of everything.
func turn() goclaw.RunLog {
	cost := 0.25
	call := func(id, name string) goclaw.Part {
		return goclaw.Part{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: id, Name: name, Arguments: `{"task":"` + secret + `"}`}}
	}
	return goclaw.RunLog{
		Run: goclaw.Run{
			ID: "run-1", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerAnnouncement, Parent: "run-0", Root: "run-0",
			Profile: goclaw.Profile{Agent: "main", Model: "anthropic/claude-x"}, Task: secret, State: goclaw.StateFailed, Error: secret,
			CreatedAt: 1000, StartedAt: 1100, FinishedAt: 9000, Usage: goclaw.Usage{Input: 70, Output: 7, CostUSD: &cost},
			Recovery: &goclaw.Recovery{Times: 2},
		},
		Events: []goclaw.Event{
			{Seq: 0, Kind: goclaw.EventPrompt, At: 1100, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, secret), Inbox: []string{"worker-1", "worker-2"}}},
			{Seq: 1, Kind: goclaw.EventModel, At: 2100, Model: &goclaw.ModelEvent{
				Message: goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{{Kind: goclaw.PartText, Text: secret}, call("c1", "sessions_spawn"), call("c2", "exec"), call("c3", "read")}},
				Stop:    goclaw.StopTools, Usage: goclaw.Usage{Input: 50, Output: 5, CacheRead: 40, CacheWrite: 3, CostUSD: &cost}, Model: "claude-x-2026", TookMs: 900, Tries: 2, MaxTokens: 100,
			}},
			{Seq: 2, Kind: goclaw.EventIntent, At: 2200, Intent: &goclaw.IntentEvent{Calls: []goclaw.Intent{{CallID: "c1", Name: "sessions_spawn"}, {CallID: "c2", Name: "exec"}, {CallID: "c3", Name: "read"}}}},
			{Seq: 3, Kind: goclaw.EventResult, At: 2300, Result: &goclaw.ToolResult{CallID: "c1", Name: "sessions_spawn", Content: `{"status":"accepted","runId":"worker-3"}`}},
			{Seq: 4, Kind: goclaw.EventResult, At: 2900, Result: &goclaw.ToolResult{CallID: "c2", Name: "exec", Content: secret, IsError: true}},
			{Seq: 5, Kind: goclaw.EventResumed, At: 3000, Resumed: &goclaw.ResumedEvent{Step: 2}},
			{Seq: 6, Kind: goclaw.EventCompact, At: 3500, Compact: &goclaw.CompactEvent{Summary: secret, Before: 900, After: 90, Call: &goclaw.ModelEvent{TookMs: 300, Stop: goclaw.StopEnd}}},
			{Seq: 7, Kind: goclaw.EventWaiting, At: 4000, Waiting: &goclaw.WaitingEvent{For: goclaw.WaitWorkers}},
			{Seq: 8, Kind: goclaw.EventInput, At: 8000, Input: &goclaw.InputEvent{Message: goclaw.Text(goclaw.RoleUser, secret), Inbox: []string{"worker-3"}}},
			{Seq: 9, Kind: goclaw.EventHandoff, At: 8500, Handoff: &goclaw.HandoffEvent{Attempt: 2, Text: secret, Before: 5}},
			{Seq: 10, Kind: goclaw.EventEnd, At: 9000, End: &goclaw.EndEvent{State: goclaw.StateFailed, Error: secret}},
		},
	}
}

func find(t *testing.T, spans []*tracev1.Span, name string) *tracev1.Span {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q", name)
	return nil
}

// attrs are a span's attributes as text.
func attrs(list []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		s := kv.Value.String()
		if v, ok := kv.Value.Value.(*common.AnyValue_StringValue); ok {
			s = v.StringValue
		}
		out[kv.Key] = strings.ReplaceAll(s, " ", "") // the text form of protobuf varies in blanks
	}
	return out
}

func TestTraceOfARun(t *testing.T) {
	spans := telemetry.Spans(turn(), false)
	var got []string
	for _, s := range spans {
		got = append(got, s.Name)
	}
	want := []string{
		"invoke_agent main", "queue", "chat claude-x", "execute_tool sessions_spawn", "execute_tool exec",
		"compact", "chat claude-x", "wait workers", "handoff", "execute_tool read",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("spans %q, want %q", got, want)
	}
	root := spans[0]
	seen := map[string]bool{}
	for _, s := range spans {
		if !bytes.Equal(s.TraceId, root.TraceId) || len(s.TraceId) != 16 || len(s.SpanId) != 8 || seen[string(s.SpanId)] {
			t.Errorf("%s: ids %x %x", s.Name, s.TraceId, s.SpanId)
		}
		seen[string(s.SpanId)] = true
		if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano {
			t.Errorf("%s: from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}
	for _, s := range spans[1:] {
		if !seen[string(s.ParentSpanId)] {
			t.Errorf("%s has no parent in the trace", s.Name)
		}
	}
	if len(root.ParentSpanId) != 0 || root.StartTimeUnixNano != 1e9 || root.EndTimeUnixNano != 9e9 || root.Status.Code != tracev1.Status_STATUS_CODE_ERROR {
		t.Errorf("root: %v", root)
	}
	for name, want := range map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-x",
		"gen_ai.agent.name": "main", "gen_ai.conversation.id": "agent:main:main", "goclaw.run.id": "run-1", "error.type": "failed",
		"gen_ai.usage.input_tokens": "int_value:70", "goclaw.usage.cost_usd": "double_value:0.25", "goclaw.run.takeovers": "int_value:2",
	} {
		if got := attrs(root.Attributes)[name]; got != want {
			t.Errorf("root: %s is %q, want %q", name, got, want)
		}
	}
	chat := find(t, spans, "chat claude-x")
	for name, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.response.model": "claude-x-2026", "gen_ai.usage.output_tokens": "int_value:5",
		"gen_ai.usage.cache_read.input_tokens": "int_value:40", "gen_ai.usage.cache_creation.input_tokens": "int_value:3",
		"gen_ai.request.max_tokens": "int_value:100", "goclaw.request.tries": "int_value:2",
		"gen_ai.response.finish_reasons": `array_value:{values:{string_value:"tool_call"}}`,
	} {
		if got := attrs(chat.Attributes)[name]; got != want {
			t.Errorf("chat: %s is %q, want %q", name, got, want)
		}
	}
	if chat.Kind != tracev1.Span_SPAN_KIND_CLIENT || chat.StartTimeUnixNano != 1200e6 || chat.EndTimeUnixNano != 2100e6 {
		t.Errorf("chat: %v", chat)
	}
	if tool := find(t, spans, "execute_tool exec"); attrs(tool.Attributes)["error.type"] != "tool_error" || tool.StartTimeUnixNano != 2200e6 || tool.EndTimeUnixNano != 2900e6 {
		t.Errorf("tool: %v", tool)
	}
	if tool := find(t, spans, "execute_tool read"); attrs(tool.Attributes)["error.type"] != "unknown_outcome" {
		t.Errorf("a call without a result: %v", tool)
	}
	if !bytes.Equal(spans[6].ParentSpanId, spans[5].SpanId) {
		t.Error("the compaction's model call is not below it")
	}
}

// Links lead to where the other run's trace is, or will be.
func TestLinks(t *testing.T) {
	spans := telemetry.Spans(turn(), false)
	rootOf := func(id string) *tracev1.Span {
		return telemetry.Spans(goclaw.RunLog{Run: goclaw.Run{ID: id}}, false)[0]
	}
	linked := func(s *tracev1.Span) (all []string) {
		for _, l := range s.Links {
			id := attrs(l.Attributes)["goclaw.run.id"]
			if to := rootOf(id); !bytes.Equal(l.TraceId, to.TraceId) || !bytes.Equal(l.SpanId, to.SpanId) {
				t.Errorf("the link to %s leads elsewhere", id)
			}
			all = append(all, attrs(l.Attributes)["goclaw.link"]+" "+id)
		}
		return all
	}
	if got, want := linked(spans[0]), []string{"spawned_by run-0", "announces worker-1", "announces worker-2"}; !slices.Equal(got, want) {
		t.Errorf("root: %q, want %q", got, want)
	}
	if got, want := linked(find(t, spans, "execute_tool sessions_spawn")), []string{"spawns worker-3"}; !slices.Equal(got, want) {
		t.Errorf("spawn: %q, want %q", got, want)
	}
}

func TestContent(t *testing.T) {
	encode := func(content bool) []byte {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&tracev1.ScopeSpans{Spans: telemetry.Spans(turn(), content)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if bytes.Contains(encode(false), []byte(secret)) {
		t.Error("content leaves unasked")
	}
	// Asked for: the input, a reply's text and its three calls' arguments twice, a
	// result, the run's error.
	if n := bytes.Count(encode(true), []byte(secret)); n < 7 {
		t.Errorf("of what was asked for only %d pieces leave", n)
	}
	if !bytes.Equal(encode(true), encode(true)) {
		t.Error("a trace that is sent twice differs")
	}
}

// receiver is a collector.
type receiver struct {
	mu     sync.Mutex
	status []int // of the next answers; then 200
	header http.Header
	got    []*collector.ExportTraceServiceRequest
	asked  int
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if len(c.status) > 0 {
		w.WriteHeader(c.status[0])
		c.status = c.status[1:]
		return
	}
	body, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &req) != nil || r.Method != "POST" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.header = r.Header
	c.got = append(c.got, &req)
}

func (c *receiver) traces() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, req := range c.got {
		for _, s := range req.ResourceSpans[0].ScopeSpans[0].Spans {
			n[string(s.TraceId)]++
		}
	}
	return n
}

func ended(id string) goclaw.Notice {
	return goclaw.Notice{Kind: goclaw.NoticeRun, RunID: id, Run: &goclaw.Run{ID: id, State: goclaw.StateCompleted}}
}

func record(_ context.Context, id string) (goclaw.RunLog, error) {
	if id == "gone" {
		return goclaw.RunLog{}, errors.New("it is gone")
	}
	log := turn()
	log.Run.ID = id
	return log, nil
}

func TestSending(t *testing.T) {
	c := &receiver{}
	srv := httptest.NewServer(c)
	defer srv.Close()
	e := telemetry.New(telemetry.Options{
		URL: srv.URL + "/v1/traces", Headers: map[string]string{"api-key": "k"}, Resource: map[string]string{"service.name": "goclaw", "a": "b"},
	}, record)
	for _, n := range []goclaw.Notice{
		ended("one"), ended("gone"), ended("two"), {Kind: goclaw.NoticeText},
		{Kind: goclaw.NoticeRun, Run: &goclaw.Run{ID: "three", State: goclaw.StateRunning}},
	} {
		e.Observe(n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what has ended is sent all the same
	e.Run(ctx)
	if n := c.traces(); len(n) != 2 {
		t.Errorf("%d traces, want 2", len(n))
	}
	if c.header.Get("api-key") != "k" {
		t.Errorf("header %v", c.header)
	}
	if got := attrs(c.got[0].ResourceSpans[0].Resource.Attributes); got["service.name"] != "goclaw" || got["a"] != "b" {
		t.Errorf("resource %v", got)
	}
}

// pipes serves c in a bubble, where connections wait on its clock.
func pipes(t *testing.T, c http.Handler) *http.Client {
	conns := make(chan net.Conn)
	l := listener{conns, make(chan struct{})}
	srv := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		conns <- far
		return near, nil
	}}}
}

type listener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l listener) Close() error { close(l.done); return nil }
func (listener) Addr() net.Addr { return &net.TCPAddr{} }

// A collector that fails is tried again, said once, and disturbs nobody.
func TestFailingCollectors(t *testing.T) {
	for _, tc := range []struct {
		name          string
		status        []int
		traces, asked int
		said          int
	}{
		{"for a moment", []int{503, 429}, 3, 5, 0},
		{"for one batch", []int{503, 503, 503, 503}, 2, 6, 2}, // lost, and back
		{"by its word", []int{400}, 2, 3, 2},
		{"for good", []int{401, 401, 401}, 0, 3, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &receiver{status: tc.status}
			var log bytes.Buffer
			e := telemetry.New(telemetry.Options{
				URL: "http://user:pass@collector/v1/traces?key=hidden", Headers: map[string]string{"k": "hidden"},
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			}, record)
			telemetry.SetClient(e, pipes(t, c))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { e.Run(ctx); close(done) }()
			for _, id := range []string{"a", "b", "c"} {
				e.Observe(ended(id))
				time.Sleep(5 * time.Minute) // of the bubble
			}
			cancel()
			<-done
			if n := len(c.traces()); n != tc.traces || c.asked != tc.asked {
				t.Errorf("%s: %d traces in %d requests, want %d in %d", tc.name, n, c.asked, tc.traces, tc.asked)
			}
			if n := strings.Count(log.String(), "\n"); n != tc.said || strings.Contains(log.String(), "hidden") || strings.Contains(log.String(), "pass@") {
				t.Errorf("%s: said %d times, want %d:\n%s", tc.name, n, tc.said, log.String())
			}
		})
	}
}

// Nobody waits for a collector that hangs, not even at the end.
func TestHangingCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := telemetry.New(telemetry.Options{URL: "http://collector/v1/traces", Log: slog.New(slog.DiscardHandler)}, record)
		telemetry.SetClient(e, pipes(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })))
		defer close(release)
		began := time.Now()
		for range 5000 {
			e.Observe(ended("x"))
		}
		if time.Since(began) != 0 {
			t.Error("observing waited")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.Run(ctx)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the end took %s", took)
		}
	})
}
