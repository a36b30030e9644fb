package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/anthropic"
	"goclaw/internal/edge/provider/providertest"
)

// serve answers every request with the given body.
func serve(t *testing.T, contentType, body string) goclaw.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return open(t, server.URL)
}

func request() goclaw.ModelRequest {
	return goclaw.ModelRequest{Model: "m", Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, e)
	}
	return b.String()
}

// TestUsageMerge: servers tell the usage at the start, at the end, or both.
func TestUsageMerge(t *testing.T) {
	cases := map[string]struct{ start, end string }{
		"as documented":      {`"usage":{"input_tokens":10,"cache_read_input_tokens":70,"cache_creation_input_tokens":20,"output_tokens":1}`, `"usage":{"output_tokens":5}`},
		"all at the end":     {`"usage":{"input_tokens":0,"output_tokens":0}`, `"usage":{"input_tokens":10,"cache_read_input_tokens":70,"cache_creation_input_tokens":20,"output_tokens":5}`},
		"zeros at the end":   {`"usage":{"input_tokens":10,"cache_read_input_tokens":70,"cache_creation_input_tokens":20,"output_tokens":5}`, `"usage":{"input_tokens":0,"output_tokens":0}`},
		"nothing at the end": {`"usage":{"input_tokens":10,"cache_read_input_tokens":70,"cache_creation_input_tokens":20,"output_tokens":5}`, `"x":1`},
		"null":               {`"usage":null`, `"usage":{"input_tokens":10,"cache_read_input_tokens":70,"cache_creation_input_tokens":20,"output_tokens":5}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := serve(t, "text/event-stream", sse(
				`{"type":"message_start","message":{"type":"message","model":"served","content":[],`+c.start+`}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},`+c.end+`}`,
				`{"type":"message_stop"}`))
			reply, err := p.Stream(t.Context(), request(), nil)
			want := goclaw.Usage{Input: 100, Output: 5, CacheRead: 70, CacheWrite: 20}
			if err != nil || reply.Usage != want || reply.Model != "served" {
				t.Errorf("reply %+v, %v", reply, err)
			}
		})
	}
}

func TestOddStreams(t *testing.T) {
	start := `{"type":"message_start","message":{"model":"m","usage":{}}}`
	cases := []struct {
		name, contentType, body, kind string
	}{
		{"no JSON", "text/event-stream", "event: message_start\ndata: {oops\n\n", "malformed"},
		{"a delta without its block", "text/event-stream", sse(start, `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}`), "malformed"},
		{"nothing", "text/event-stream", "", "cut"},
		{"an error in JSON after 200", "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, "overloaded_error"},
		{"an error event without JSON", "text/event-stream", "event: error\ndata: boom\n\n", "api_error"},
		{"too long, in the stream", "text/event-stream", sse(start, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 199 + 20 > 200"}}`), "context_length"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := serve(t, c.contentType, c.body).Stream(t.Context(), request(), nil)
			var e *goclaw.ProviderError
			if !errors.As(err, &e) || e.Kind != c.kind || e.Retry != (c.kind != "context_length") {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestSignatureWithoutText(t *testing.T) {
	p := serve(t, "text/event-stream", sse(
		`{"type":"message_start","message":{"model":"m","usage":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"read","input":{"a":1}}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"at once"}}`,
		`{"type":"message_stop"}`))
	reply, err := p.Stream(t.Context(), request(), nil)
	if err != nil || len(reply.Message.Parts) != 3 {
		t.Fatalf("reply %+v, %v", reply, err)
	}
	if part := reply.Message.Parts[0]; part.Opaque != "c2ln" || part.Text != "" {
		t.Errorf("thinking %+v", part)
	}
	if got := reply.Message.Calls()[0].Arguments; got != `{"a":1}` {
		t.Errorf("arguments %q", got)
	}
	if reply.Message.PlainText() != "at once" || reply.Stop != goclaw.StopTools {
		t.Errorf("reply %+v", reply)
	}
}

// TestRateLimitReset: without Retry-After, the limit that is used up tells the
// delay.
func TestRateLimitReset(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	p, s := answer(t, providertest.Answer{Fault: providertest.Fault{Status: 429, Header: map[string]string{
		"Date":                                    now.Format(http.TimeFormat),
		"Anthropic-Ratelimit-Requests-Remaining":  "3",
		"Anthropic-Ratelimit-Requests-Reset":      now.Add(time.Hour).Format(time.RFC3339),
		"Anthropic-Ratelimit-Tokens-Remaining":    "0",
		"Anthropic-Ratelimit-Tokens-Reset":        now.Add(12 * time.Second).Format(time.RFC3339),
		"Anthropic-Ratelimit-Input-Tokens-Reset":  "soon",
		"Anthropic-Ratelimit-Output-Tokens-Reset": now.Add(time.Hour).Format(time.RFC3339),
	}}})
	_, err := p.Stream(t.Context(), request(), nil)
	var e *goclaw.ProviderError
	if !errors.As(err, &e) || e.After != 12*time.Second || s.Total() != 1 {
		t.Errorf("got %+v", e)
	}
}

func answer(t *testing.T, a providertest.Answer) (goclaw.Provider, *providertest.Server) {
	t.Helper()
	s := providertest.New(func(*providertest.Request) providertest.Answer { return a })
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return open(t, url+"/v1/"), s // the version is tolerated
}

func TestKey(t *testing.T) {
	p, s := answer(t, providertest.Answer{Fault: providertest.Status(401, "", `{"error":{"type":"authentication_error","message":"the key sk-ant-secret is bad"}}`)})
	_, err := p.Stream(t.Context(), request(), nil)
	if err == nil || strings.Contains(err.Error(), "sk-ant-secret") || !strings.Contains(err.Error(), "[key]") {
		t.Errorf("error %v", err)
	}
	if got := s.Requests()[0].Header.Get("X-Api-Key"); got != "sk-ant-secret" {
		t.Errorf("key sent: %q", got)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	connections := map[string]bool{}
	s := providertest.New(func(*providertest.Request) providertest.Answer { return providertest.Answer{Text: "x"} })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		s.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := open(t, server.URL)
	for range 5 {
		if _, err := p.Stream(t.Context(), request(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(connections) != 1 {
		t.Errorf("%d connections", len(connections))
	}
}

func Example() {
	server := providertest.New(func(r *providertest.Request) providertest.Answer {
		return providertest.Answer{Text: "You said: " + r.NewestText()}
	})
	url, err := server.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()

	p := anthropic.New(anthropic.Options{APIKey: "a key", BaseURL: url})
	defer p.CloseIdleConnections()
	reply, err := p.Stream(context.Background(), goclaw.ModelRequest{
		Model:    "claude-opus-5-5",
		Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hello")},
	}, nil)
	fmt.Println(reply.Message.PlainText(), reply.Stop, err)
	// Output: You said: hello end <nil>
}
