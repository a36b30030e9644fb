package openai_test

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

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/provider/openai"
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

// chunks frames deltas of choice 0, the last with finish, and then tail.
func chunks(finish, tail string, deltas ...string) string {
	var b strings.Builder
	for i, d := range deltas {
		reason := "null"
		if i == len(deltas)-1 && finish != "" {
			reason = `"` + finish + `"`
		}
		fmt.Fprintf(&b, `data: {"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", d, reason)
	}
	return b.String() + tail
}

const done = "data: [DONE]\n\n"

// TestToolCallDialects: servers differ in how they number and name the pieces
// of calls.
func TestToolCallDialects(t *testing.T) {
	want := []goclaw.ToolCall{{ID: "a", Name: "read", Arguments: `{"x":1}`}, {ID: "b", Name: "read", Arguments: `{"x":2}`}}
	piece := func(index, id, name, arguments string) string {
		fields := []string{}
		if index != "" {
			fields = append(fields, `"index":`+index)
		}
		if id != "" {
			fields = append(fields, `"id":"`+id+`"`)
		}
		if name != "" {
			name = `"name":"` + name + `",`
		}
		fields = append(fields, fmt.Sprintf(`"function":{%s"arguments":%q}`, name, arguments))
		return `{"tool_calls":[{` + strings.Join(fields, ",") + `}]}`
	}
	cases := map[string][]string{
		"as documented":       {piece("0", "a", "read", ""), piece("0", "", "", `{"x"`), piece("0", "", "", `:1}`), piece("1", "b", "read", ""), piece("1", "", "", `{"x":2}`)},
		"interleaved":         {piece("0", "a", "read", ""), piece("1", "b", "read", ""), piece("0", "", "", `{"x":1`), piece("1", "", "", `{"x":2}`), piece("0", "", "", `}`)},
		"id repeated":         {piece("0", "a", "read", `{"x"`), piece("0", "a", "read", `:1}`), piece("1", "b", "read", `{"x":2}`)},
		"a new id each piece": {piece("0", "a", "read", `{"x"`), piece("0", "other", "", `:1}`), piece("1", "b", "read", `{"x":2}`)},
		"no index":            {piece("", "a", "read", `{"x"`), piece("", "", "", `:1}`), piece("", "b", "read", `{"x":2}`)},
		"no index, id":        {piece("", "a", "read", `{"x"`), piece("", "b", "read", `{"x":`), piece("", "a", "", `:1}`), piece("", "b", "", `2}`)},
		"always index 0":      {piece("0", "a", "read", `{"x":1}`), piece("0", "b", "read", `{"x":2}`)},
		"all in one":          {`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"x\":1}"}},{"index":1,"id":"b","function":{"name":"read","arguments":"{\"x\":2}"}}]}`},
	}
	for name, deltas := range cases {
		t.Run(name, func(t *testing.T) {
			for _, finish := range []string{"tool_calls", "stop"} {
				reply, err := serve(t, "text/event-stream", chunks(finish, done, deltas...)).Stream(t.Context(), request(), nil)
				if err != nil || reply.Stop != goclaw.StopTools {
					t.Fatalf("reply %+v, %v", reply, err)
				}
				if diff := cmp.Diff(want, reply.Message.Calls()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			}
		})
	}
	t.Run("no id", func(t *testing.T) {
		body := chunks("tool_calls", done, piece("", "", "read", `{"x":1}`), piece("", "", "read", `{"x":2}`))
		reply, err := serve(t, "text/event-stream", body).Stream(t.Context(), request(), nil)
		if err != nil {
			t.Fatal(err)
		}
		calls := reply.Message.Calls()
		if len(calls) != 2 || calls[0].ID == "" || calls[0].ID == calls[1].ID || calls[1].Arguments != `{"x":2}` {
			t.Errorf("calls %+v", calls)
		}
	})
}

func TestDialects(t *testing.T) {
	usage := func(s string) string { return `data: {"model":"m","choices":[],"usage":{` + s + `}}` + "\n\n" }
	cases := []struct {
		name, body string
		want       goclaw.ModelReply
	}{
		{"usage with the last chunk, no done", `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n\n",
			goclaw.ModelReply{Stop: goclaw.StopEnd, Usage: goclaw.Usage{Input: 3, Output: 2}}},
		{"hit tokens", chunks("stop", usage(`"prompt_tokens":30,"completion_tokens":2,"prompt_cache_hit_tokens":20`)+done, `{"content":"x"}`),
			goclaw.ModelReply{Stop: goclaw.StopEnd, Usage: goclaw.Usage{Input: 30, Output: 2, CacheRead: 20}}},
		{"usage null until the end", `data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}` + "\n\n" + chunks("stop", usage(`"prompt_tokens":3,"completion_tokens":2`)+done, `{}`),
			goclaw.ModelReply{Stop: goclaw.StopEnd, Usage: goclaw.Usage{Input: 3, Output: 2}}},
		{"comments", ": PROCESSING\n\n" + chunks("length", ": bye\n\n"+done, `{"content":"x"}`), goclaw.ModelReply{Stop: goclaw.StopMaxTokens}},
		{"unknown reason", chunks("eos", done, `{"content":"x"}`), goclaw.ModelReply{Stop: goclaw.StopEnd}},
		{"refusal", chunks("stop", done, `{"refusal":"x"}`), goclaw.ModelReply{Stop: goclaw.StopRefusal}},
		{"reasoning", chunks("stop", done, `{"reasoning":"hm","content":null}`, `{"content":"x"}`), goclaw.ModelReply{Stop: goclaw.StopEnd}},
		{"another choice", chunks("stop", done, `{"content":"x"}`) + `data: {"choices":[{"index":1,"delta":{"content":"y"}}]}`, goclaw.ModelReply{Stop: goclaw.StopEnd}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := serve(t, "text/event-stream", c.body).Stream(t.Context(), request(), nil)
			if err != nil || got.Message.PlainText() != "x" || got.Stop != c.want.Stop || got.Usage != c.want.Usage {
				t.Errorf("got %+v, %v", got, err)
			}
			if part := got.Message.Parts[0]; c.name == "reasoning" && (part.Kind != goclaw.PartThinking || part.Text != "hm") {
				t.Errorf("part %+v", part)
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	cases := []struct {
		name, contentType, body string
		want                    goclaw.ProviderError
	}{
		{"no JSON", "text/event-stream", "data: {oops\n\n", goclaw.ProviderError{Kind: "malformed", Retry: true}},
		{"done at once", "text/event-stream", done, goclaw.ProviderError{Kind: "cut", Retry: true}},
		{"no finish", "text/event-stream", chunks("", done, `{"content":"x"}`), goclaw.ProviderError{Kind: "cut", Retry: true}},
		{"code", "text/event-stream", `data: {"error":{"message":"busy","code":503}}` + "\n\n", goclaw.ProviderError{Status: 503, Kind: "overloaded_error", Retry: true}},
		{"code, final", "text/event-stream", `data: {"error":{"message":"no","code":401}}` + "\n\n", goclaw.ProviderError{Status: 401, Kind: "authentication_error"}},
		{"text", "text/event-stream", `data: {"error":"model crashed"}` + "\n\n", goclaw.ProviderError{Status: 200, Kind: "api_error", Retry: true}},
		{"object", "text/event-stream", `data: {"object":"error","message":"oops","type":"InternalServerError","code":500}` + "\n\n", goclaw.ProviderError{Status: 500, Kind: "InternalServerError", Retry: true}},
		{"quota", "text/event-stream", `data: {"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}` + "\n\n", goclaw.ProviderError{Status: 200, Kind: "insufficient_quota"}},
		{"JSON after 200", "application/json", `{"error":{"message":"maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, goclaw.ProviderError{Status: 200, Kind: "context_length"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := serve(t, c.contentType, c.body).Stream(t.Context(), request(), nil)
			var e *goclaw.ProviderError
			if !errors.As(err, &e) || e.Kind != c.want.Kind || e.Retry != c.want.Retry || e.Status != c.want.Status {
				t.Errorf("got %+v, want %+v", e, c.want)
			}
		})
	}
}

func TestHTTPErrors(t *testing.T) {
	cases := []struct {
		name  string
		fault providertest.Fault
		want  goclaw.ProviderError
	}{
		{"key", providertest.Status(401, "", `{"error":{"message":"Incorrect API key provided: sk-secret.","type":"invalid_request_error","code":"invalid_api_key"}}`),
			goclaw.ProviderError{Kind: "invalid_api_key", Message: "Incorrect API key provided: [key]."}},
		{"context", providertest.Status(400, "", `{"error":{"message":"too much","type":"invalid_request_error","code":"context_length_exceeded"}}`),
			goclaw.ProviderError{Kind: "context_length", Message: "too much"}},
		{"quota", providertest.Status(429, "", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`),
			goclaw.ProviderError{Kind: "insufficient_quota", Message: "You exceeded your current quota"}},
		{"array", providertest.Status(429, "", `[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]`),
			goclaw.ProviderError{Kind: "rate_limit_error", Message: "Resource exhausted", Retry: true}},
		{"text", providertest.Status(404, "", `{"error":"model 'x' not found, try pulling it first"}`),
			goclaw.ProviderError{Kind: "not_found_error", Message: "model 'x' not found, try pulling it first"}},
		{"flat", providertest.Status(400, "", `{"object":"error","message":"bad","type":"BadRequestError","code":400}`),
			goclaw.ProviderError{Kind: "BadRequestError", Message: "bad"}},
		{"detail", providertest.Status(422, "", `{"detail":"field required"}`),
			goclaw.ProviderError{Kind: "invalid_request_error", Message: "field required"}},
		{"reset", providertest.Fault{Status: 429, Body: `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`, Header: map[string]string{
			"X-Ratelimit-Remaining-Requests": "5", "X-Ratelimit-Reset-Requests": "1h0m0s", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1m2.5s"}},
			goclaw.ProviderError{Kind: "rate_limit_exceeded", Message: "Rate limit reached", Retry: true, After: 62500 * time.Millisecond}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := providertest.New(func(*providertest.Request) providertest.Answer { return providertest.Answer{Fault: c.fault} })
			url, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			_, err = open(t, url).Stream(t.Context(), request(), nil)
			var e *goclaw.ProviderError
			if !errors.As(err, &e) || e.Kind != c.want.Kind || e.Message != c.want.Message || e.Retry != c.want.Retry || e.After != c.want.After || e.Status != c.fault.Status {
				t.Errorf("got %+v, want %+v", e, c.want)
			}
			if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer sk-secret" {
				t.Errorf("authorization %q", got)
			}
		})
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

	p := openai.New(openai.Options{BaseURL: url + "/v1", LegacyMaxTokens: true})
	defer p.CloseIdleConnections()
	reply, err := p.Stream(context.Background(), goclaw.ModelRequest{
		Model:    "local-model",
		Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hello")},
	}, nil)
	fmt.Println(reply.Message.PlainText(), reply.Stop, err)
	// Output: You said: hello end <nil>
}
