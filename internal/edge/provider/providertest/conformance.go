package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
)

// RunConformance runs the suite over real HTTP. open returns a provider whose
// server is at baseURL (an address without a path), whose idle timeout is at
// most two seconds and whose connections are closed at the test's end. The
// caller checks for leaked goroutines when all tests are done.
func RunConformance(t *testing.T, open func(t *testing.T, baseURL string) goclaw.Provider) {
	suite := []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"text", testText},
		{"unicode", testUnicode},
		{"empty reply", testEmpty},
		{"tool calls", testToolCalls},
		{"round trip", testRoundTrip},
		{"malformed arguments", testMalformedArguments},
		{"thinking", testThinking},
		{"usage", testUsage},
		{"stop reasons", testStops},
		{"framing", testFraming},
		{"http errors", testHTTPErrors},
		{"error events", testErrorEvents},
		{"cut anywhere", testCuts},
		{"stall", testStall},
		{"network", testNetwork},
		{"cancel", testCancel},
		{"parallel", testParallel},
		{"encode", testEncode},
	}
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) { c.run(t, fixture{open: open}) })
	}
}

// fixture opens providers on servers.
type fixture struct {
	open func(t *testing.T, baseURL string) goclaw.Provider
}

// serve opens a provider on a server that answers as script says.
func (f fixture) serve(t *testing.T, script Script, opts ...Option) (goclaw.Provider, *Server) {
	t.Helper()
	server := New(script, opts...)
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return f.open(t, url), server
}

// answer opens a provider on a server that always gives a.
func (f fixture) answer(t *testing.T, a Answer) (goclaw.Provider, *Server) {
	t.Helper()
	return f.serve(t, func(*Request) Answer { return a })
}

func hello() goclaw.ModelRequest {
	return goclaw.ModelRequest{
		Model:    "test-model",
		System:   []goclaw.SystemBlock{{Text: "You are a test.", StableUntil: true}},
		Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hello")},
	}
}

// stream fails the test on an error and checks that the deltas are the reply's
// text.
func stream(t *testing.T, p goclaw.Provider, req goclaw.ModelRequest) goclaw.ModelReply {
	t.Helper()
	var text, thinking strings.Builder
	reply, err := p.Stream(t.Context(), req, func(d goclaw.Delta) {
		if d.Kind == goclaw.NoticeThinking {
			thinking.WriteString(d.Text)
		} else {
			text.WriteString(d.Text)
		}
	})
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	if got := reply.Message.PlainText(); got != text.String() {
		t.Errorf("deltas %q, reply %q", text.String(), got)
	}
	var thought string
	for _, part := range reply.Message.Parts {
		if part.Kind == goclaw.PartThinking {
			thought += part.Text
		}
	}
	if thought != thinking.String() {
		t.Errorf("thinking deltas %q, reply %q", thinking.String(), thought)
	}
	return reply
}

// failure wants a *goclaw.ProviderError.
func failure(t *testing.T, p goclaw.Provider, req goclaw.ModelRequest) *goclaw.ProviderError {
	t.Helper()
	reply, err := p.Stream(t.Context(), req, nil)
	var failed *goclaw.ProviderError
	if !errors.As(err, &failed) {
		t.Fatalf("Stream: %v (reply %+v), want a ProviderError", err, reply)
	}
	if failed.Provider != p.Name() {
		t.Errorf("Provider %q, want %q", failed.Provider, p.Name())
	}
	return failed
}

func once(t *testing.T, s *Server) {
	t.Helper()
	if n := s.Total(); n != 1 {
		t.Errorf("%d requests for one Stream", n)
	}
}

func testText(t *testing.T, f fixture) {
	want := strings.Repeat("A line of text.\n", 40)
	p, s := f.answer(t, Answer{Text: want})
	reply := stream(t, p, hello())
	if got := reply.Message.PlainText(); got != want {
		t.Errorf("text %q", got)
	}
	if reply.Message.Role != goclaw.RoleAssistant || reply.Stop != goclaw.StopEnd || reply.Model != "test-model" {
		t.Errorf("reply %+v", reply)
	}
	once(t, s)
	got := s.Requests()[0]
	if got.System != "You are a test." || got.FirstText() != "hello" || !got.Stream {
		t.Errorf("request %+v", got.Request)
	}
	if _, err := p.Stream(t.Context(), hello(), nil); err != nil {
		t.Errorf("without emit: %v", err)
	}
}

const unicodeText = "Grüße, мир, 世界, 🙂👩‍👩‍👧, \u202e, \u0000 and \"quotes\" \\ </script>\r\n\tend"

func testUnicode(t *testing.T, f fixture) {
	for _, fault := range []Fault{{}, {SplitUTF8: true}, {SplitUTF8: true, CRLF: true}} {
		p, s := f.answer(t, Answer{Text: unicodeText, ChunkSize: 1, Fault: fault})
		req := hello()
		req.Messages[0] = goclaw.Text(goclaw.RoleUser, unicodeText)
		if got := stream(t, p, req).Message.PlainText(); got != unicodeText {
			t.Errorf("%+v: text %q", fault, got)
		}
		if got := s.Requests()[0].FirstText(); got != unicodeText {
			t.Errorf("sent %q", got)
		}
	}
}

func testEmpty(t *testing.T, f fixture) {
	p, s := f.answer(t, Answer{})
	reply := stream(t, p, hello())
	if len(reply.Message.Parts) != 0 || reply.Stop != goclaw.StopEnd {
		t.Errorf("reply %+v", reply)
	}
	// An empty reply in the transcript does no harm.
	req := hello()
	req.Messages = append(req.Messages, reply.Message, goclaw.Text(goclaw.RoleUser, "still there?"))
	stream(t, p, req)
	if got := s.Requests()[1].NewestText(); !strings.HasSuffix(got, "still there?") {
		t.Errorf("newest text %q", got)
	}
}

// longArguments is long, and full of what can be split badly.
func longArguments() string {
	raw, err := json.Marshal(map[string]any{"path": "a/b.go", "text": strings.Repeat(unicodeText, 60), "n": 1.5})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func testToolCalls(t *testing.T, f fixture) {
	calls := []Call{
		{ID: "call_a", Name: "write", Arguments: longArguments()},
		{ID: "call_b", Name: "read", Arguments: `{"path": "x"}`},
		{ID: "call_c", Name: "read", Arguments: `{"path": "y"}`},
		{ID: "call_d", Name: "now", Arguments: ""},
	}
	for _, size := range []int{1, 7, 1 << 20} {
		p, s := f.answer(t, Answer{Text: "Working.", Calls: calls, ChunkSize: size})
		reply := stream(t, p, hello())
		if reply.Stop != goclaw.StopTools || reply.Message.PlainText() != "Working." {
			t.Errorf("reply %+v", reply)
		}
		got := reply.Message.Calls()
		if len(got) != len(calls) {
			t.Fatalf("%d calls, want %d", len(got), len(calls))
		}
		for i, c := range calls {
			want := goclaw.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
			if want.Arguments == "" {
				want.Arguments = "{}"
			}
			if got[i] != want {
				t.Errorf("chunks of %d: call %d is %+v, want %+v", size, i, got[i], want)
			}
		}
		once(t, s)
	}
}

func testRoundTrip(t *testing.T, f fixture) {
	p, s := f.answer(t, Answer{Text: "ok"})
	req := hello()
	req.Tools = []goclaw.ToolSpec{
		{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","required":["z","a"],"properties":{"z":{"type":"string"},"a":{"type":"integer"}}}`)},
		{Name: "write", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	calls := []goclaw.ToolCall{{ID: "call_1", Name: "read", Arguments: `{"z":"1","a":2}`}, {ID: "call_2", Name: "write", Arguments: `{}`}}
	req.Messages = append(req.Messages,
		goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
			{Kind: goclaw.PartText, Text: "Let me look."},
			{Kind: goclaw.PartToolCall, Call: &calls[0]}, {Kind: goclaw.PartToolCall, Call: &calls[1]},
		}},
		goclaw.Message{Role: goclaw.RoleUser, Parts: []goclaw.Part{
			{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: "call_1", Name: "read", Content: "found"}},
			{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: "call_2", Name: "write", Content: "denied", IsError: true}},
		}},
		goclaw.Text(goclaw.RoleUser, "and hurry"),
	)
	stream(t, p, req)
	got := s.Requests()[0]
	if !reflect.DeepEqual(got.Tools, []string{"read", "write"}) {
		t.Errorf("tools %q", got.Tools)
	}
	for _, spec := range req.Tools {
		if !strings.Contains(string(got.Raw), string(spec.Schema)) {
			t.Errorf("the schema's bytes changed: %s", got.Raw)
		}
	}
	if sent := got.Messages[1].Calls(); !reflect.DeepEqual(sent, calls) {
		t.Errorf("calls %+v, want %+v", sent, calls)
	}
	results := got.NewestResults()
	if len(results) != 2 || results[0].CallID != "call_1" || results[0].Content != "found" || results[0].IsError {
		t.Fatalf("results %+v", results)
	}
	if r := results[1]; r.CallID != "call_2" || !strings.Contains(r.Content, "denied") || !r.IsError {
		t.Errorf("failed result %+v", r)
	}
	if got.NewestText() != "and hurry" {
		t.Errorf("newest text %q", got.NewestText())
	}
}

func testMalformedArguments(t *testing.T, f fixture) {
	p, s := f.answer(t, Answer{Calls: []Call{{ID: "call_1", Name: "read"}}, Fault: Fault{MalformedArguments: true}})
	reply := stream(t, p, hello())
	if got := reply.Message.Calls()[0].Arguments; got != BrokenArguments {
		t.Errorf("arguments %q", got)
	}
	for _, arguments := range []string{BrokenArguments, `[1]`, `"text"`, "\xff"} {
		req := hello()
		call := &goclaw.ToolCall{ID: "call_1", Name: "read", Arguments: arguments}
		req.Messages = append(req.Messages,
			goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{{Kind: goclaw.PartToolCall, Call: call}}},
			goclaw.Message{Role: goclaw.RoleUser, Parts: []goclaw.Part{
				{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: "call_1", Content: "bad JSON", IsError: true}},
			}})
		stream(t, p, req)
		requests := s.Requests()
		sent := requests[len(requests)-1].Messages[1].Calls()[0].Arguments
		var object map[string]string
		if err := json.Unmarshal([]byte(sent), &object); err != nil || object["_malformed"] == "" {
			t.Errorf("%q was sent back as %q", arguments, sent)
		}
	}
}

func testThinking(t *testing.T, f fixture) {
	a := Answer{
		Thinking: "First, " + unicodeText, Signature: "c2lnbmF0dXJl/+==", Redacted: "ZGF0YQ==",
		Text: "Done.", Calls: []Call{{ID: "call_1", Name: "read", Arguments: "{}"}},
	}
	p, s := f.answer(t, a)
	req := hello()
	req.Thinking = "high"
	reply := stream(t, p, req)
	first := reply.Message.Parts[0]
	if first.Kind != goclaw.PartThinking || first.Text != a.Thinking || first.Provider != p.Name() {
		t.Fatalf("first part %+v", first)
	}
	req.Messages = append(req.Messages, reply.Message, goclaw.Message{Role: goclaw.RoleUser, Parts: []goclaw.Part{
		{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: "call_1", Content: "x"}},
	}})
	stream(t, p, req)
	sent := s.Requests()[1].Messages[1]
	if s.Requests()[1].Wire == WireAnthropic {
		want := []goclaw.Part{
			{Kind: goclaw.PartThinking, Text: a.Thinking, Opaque: a.Signature},
			{Kind: goclaw.PartThinking, Opaque: a.Redacted, Provider: "redacted"},
		}
		if !reflect.DeepEqual(sent.Parts[:2], want) {
			t.Errorf("sent back %+v, want %+v", sent.Parts[:2], want)
		}
	}
	// Another provider's thinking stays out.
	for i := range reply.Message.Parts {
		if reply.Message.Parts[i].Kind == goclaw.PartThinking {
			reply.Message.Parts[i].Provider = "another"
		}
	}
	stream(t, p, req)
	for _, part := range s.Requests()[2].Messages[1].Parts {
		if part.Kind == goclaw.PartThinking {
			t.Errorf("another provider's thinking was sent: %+v", part)
		}
	}
}

func testUsage(t *testing.T, f fixture) {
	want := goclaw.Usage{Input: 1000, Output: 50, CacheRead: 600, CacheWrite: 300}
	p, _ := f.answer(t, Answer{Text: "x", Usage: &want})
	if got := stream(t, p, hello()).Usage; got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	p, _ = f.answer(t, Answer{Text: "x", Fault: Fault{NoUsage: true}})
	if got := stream(t, p, hello()).Usage; !got.IsZero() {
		t.Errorf("usage %+v, none was sent", got)
	}
	p, s := f.serve(t, func(*Request) Answer { return Answer{Text: "x"} }, WithCache())
	req := hello()
	req.System[0].Text = strings.Repeat("stable words ", 400)
	first := stream(t, p, req).Usage
	second := stream(t, p, req).Usage
	if first.CacheRead != 0 || second.CacheRead < 1000 || second.CacheRead > second.Input {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if got := int64(len(s.Requests()[1].Raw) / 4); second.Input != got {
		t.Errorf("input %d, want a fourth of the bytes, %d", second.Input, got)
	}
}

func testStops(t *testing.T, f fixture) {
	for _, stop := range []goclaw.StopReason{goclaw.StopEnd, goclaw.StopMaxTokens, goclaw.StopRefusal} {
		p, _ := f.answer(t, Answer{Text: "x", Stop: stop})
		if got := stream(t, p, hello()).Stop; got != stop {
			t.Errorf("stop %q, want %q", got, stop)
		}
	}
	// A reply with calls is for the tools, whatever the server says.
	p, _ := f.answer(t, Answer{Calls: []Call{{Name: "read", Arguments: "{}"}}, Stop: goclaw.StopEnd})
	if got := stream(t, p, hello()).Stop; got != goclaw.StopTools {
		t.Errorf("stop %q with a call", got)
	}
}

func testFraming(t *testing.T, f fixture) {
	for _, fault := range []Fault{{CRLF: true}, {DuplicateDone: true}, {NoUsage: true, CRLF: true, SplitUTF8: true}} {
		p, s := f.answer(t, Answer{Text: "one two three", Calls: []Call{{ID: "c", Name: "read", Arguments: `{"a":1}`}}, Fault: fault})
		reply := stream(t, p, hello())
		if reply.Message.PlainText() != "one two three" || len(reply.Message.Calls()) != 1 {
			t.Errorf("%+v: reply %+v", fault, reply)
		}
		once(t, s)
	}
}

func testParallel(t *testing.T, f fixture) {
	p, s := f.serve(t, func(r *Request) Answer { return Answer{Text: r.NewestText(), ChunkDelay: time.Millisecond} },
		WithKey(func(r *Request) string { return r.NewestText() }), WithoutRecording())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			want := fmt.Sprintf("message %d", i)
			req := hello()
			req.Messages[0] = goclaw.Text(goclaw.RoleUser, want)
			reply, err := p.Stream(context.WithoutCancel(t.Context()), req, nil)
			if err != nil || reply.Message.PlainText() != want {
				t.Errorf("%v: %+v", err, reply)
			}
		})
	}
	wg.Wait()
	if s.Total() != 32 || s.Count("message 7") != 1 || len(s.Requests()) != 0 {
		t.Errorf("total %d, count %d, recorded %d", s.Total(), s.Count("message 7"), len(s.Requests()))
	}
}
