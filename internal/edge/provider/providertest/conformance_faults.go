package providertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"goclaw"
)

// wireError is an error body that both wires' providers understand.
func wireError(kind, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
}

func testHTTPErrors(t *testing.T, f fixture) {
	tooLong := "prompt is too long: 250000 tokens > 200000 maximum"
	window := "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
	cases := []struct {
		name    string
		fault   Fault
		kind    string
		message string
		retry   bool
		after   time.Duration
	}{
		{"bad request", Status(400, "", wireError("invalid_request_error", "tools.0: bad")), "invalid_request_error", "tools.0: bad", false, 0},
		{"no key", Status(401, "", wireError("authentication_error", "invalid x-api-key")), "authentication_error", "invalid x-api-key", false, 0},
		{"forbidden", Status(403, "", ""), "permission_error", "Forbidden", false, 0},
		{"unknown model", Status(404, "", wireError("not_found_error", "model: none")), "not_found_error", "model: none", false, 0},
		{"request timeout", Status(408, "", ""), "invalid_request_error", "Request Timeout", true, 0},
		{"conflict", Status(409, "", ""), "invalid_request_error", "Conflict", true, 0},
		{"rate limit", Status(429, "7", wireError("rate_limit_error", "slow down")), "rate_limit_error", "slow down", true, 7 * time.Second},
		{"fraction", Status(429, "0.5", ""), "rate_limit_error", "Too Many Requests", true, 500 * time.Millisecond},
		{"internal", Status(500, "", wireError("api_error", "oops")), "api_error", "oops", true, 0},
		{"gateway page", Status(502, "", "<html><h1>Bad Gateway</h1></html>"), "api_error", "Bad Gateway", true, 0},
		{"plain text", Status(503, "2", "upstream connect error"), "overloaded_error", "upstream connect error", true, 2 * time.Second},
		{"gateway timeout", Status(504, "", ""), "api_error", "Gateway Timeout", true, 0},
		{"overloaded", Status(529, "", wireError("overloaded_error", "Overloaded")), "overloaded_error", "Overloaded", true, 0},
		{"too long", Status(400, "", wireError("invalid_request_error", tooLong)), "context_length", tooLong, false, 0},
		{"too long, other words", Status(400, "", wireError("invalid_request_error", window)), "context_length", window, false, 0},
		{"milliseconds", Fault{Status: 429, Header: map[string]string{"Retry-After-Ms": "1500"}}, "rate_limit_error", "Too Many Requests", true, 1500 * time.Millisecond},
		{"date", Fault{Status: 429, RetryAfter: "Sat, 01 Jan 2050 00:00:30 GMT", Header: map[string]string{"Date": "Sat, 01 Jan 2050 00:00:00 GMT"}}, "rate_limit_error", "Too Many Requests", true, 30 * time.Second},
		{"told not to retry", Fault{Status: 429, Header: map[string]string{"X-Should-Retry": "false"}}, "rate_limit_error", "Too Many Requests", false, 0},
		{"redirect", Fault{Status: 307, Header: map[string]string{"Location": "/v1/elsewhere"}}, "invalid_request_error", "Temporary Redirect", false, 0},
		{"no stream", Fault{Status: 200, Body: `{"id":"x"}`}, "malformed", "a stream was asked for", true, 0},
		{"a page", Fault{Status: 200, Body: "<html>log in</html>", Header: map[string]string{"Content-Type": "text/html"}}, "malformed", "a stream was asked for", true, 0},
		{"an empty body", Fault{Status: 500, Body: "{}"}, "api_error", "", true, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, s := f.answer(t, Answer{Fault: c.fault})
			e := failure(t, p, hello())
			if e.Status != c.fault.Status || e.Kind != c.kind || !strings.Contains(e.Message, c.message) || e.Retry != c.retry || e.After != c.after {
				t.Errorf("got %+v", e)
			}
			once(t, s)
		})
	}
	t.Run("long message", func(t *testing.T) {
		p, _ := f.answer(t, Answer{Fault: Status(500, "", strings.Repeat("ü", 1<<20))})
		if e := failure(t, p, hello()); len(e.Message) > 3000 {
			t.Errorf("a message of %d bytes", len(e.Message))
		}
	})
}

func testErrorEvents(t *testing.T, f fixture) {
	for kind, retry := range map[string]bool{"overloaded_error": true, "api_error": true, "rate_limit_error": true, "invalid_request_error": false} {
		for _, after := range []int{0, 1, 4} {
			p, s := f.answer(t, Answer{Text: strings.Repeat("words ", 50), Fault: ErrorEventAfter(after, kind)})
			e := failure(t, p, hello())
			if e.Kind != kind || e.Retry != retry || e.Message != "injected fault" || e.Status != http.StatusOK {
				t.Errorf("after %d events: %+v", after, e)
			}
			once(t, s)
		}
	}
}

// testCuts ends the stream at many places: a reply that is returned must be
// whole.
func testCuts(t *testing.T, f fixture) {
	answer := Answer{
		Text:  strings.Repeat("Grüße ", 20),
		Calls: []Call{{ID: "call_1", Name: "read", Arguments: `{"path":"ä/b"}`}, {ID: "call_2", Name: "read", Arguments: `{"path":"c"}`}},
	}
	for name, fault := range map[string]func(int) Fault{"cut": CutAfter, "end": EndAfter} {
		t.Run(name, func(t *testing.T) {
			n := 0
			p, s := f.serve(t, func(*Request) Answer {
				a := answer
				a.Fault = fault(n)
				return a
			})
			failed := 0
			for ; n < 1<<16; n += 41 {
				reply, err := p.Stream(t.Context(), hello(), nil)
				var cut *goclaw.ProviderError
				switch {
				case errors.As(err, &cut):
					failed++
					if cut.Kind != "cut" || !cut.Retry {
						t.Fatalf("at %d: %+v", n, cut)
					}
					continue
				case err != nil:
					t.Fatalf("at %d: %v", n, err)
				}
				if reply.Message.PlainText() != answer.Text || len(reply.Message.Calls()) != 2 || reply.Message.Calls()[1].Arguments != `{"path":"c"}` {
					t.Fatalf("at %d: half a reply: %+v", n, reply)
				}
				break
			}
			if failed < 10 || s.Total() != failed+1 {
				t.Errorf("%d requests, %d failed", s.Total(), failed)
			}
		})
	}
}

func testStall(t *testing.T, f fixture) {
	faults := map[string]Answer{
		"headers": {Text: "never", Delay: time.Minute},
		"start":   {Text: "never", Fault: StallAfter(0)},
		"middle":  {Text: strings.Repeat("words ", 50), Fault: StallAfter(900)},
	}
	for name, answer := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := f.answer(t, answer)
			begin := time.Now()
			e := failure(t, p, hello())
			if e.Kind != "stall" || !e.Retry {
				t.Errorf("got %+v", e)
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("noticed after %v", took)
			}
			once(t, s)
		})
	}
}

func testNetwork(t *testing.T, f fixture) {
	s := New(func(*Request) Answer { return Answer{} })
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	e := failure(t, f.open(t, url), hello())
	if e.Kind != "network" || !e.Retry || e.Status != 0 || e.Err == nil {
		t.Errorf("got %+v", e)
	}
}

func testCancel(t *testing.T, f fixture) {
	why := errors.New("the user pressed stop")
	for name, answer := range map[string]Answer{
		"before headers": {Delay: time.Minute},
		"after headers":  {Fault: StallAfter(0)},
		"within text":    {Text: strings.Repeat("words ", 500), ChunkDelay: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{})
			p, s := f.serve(t, func(*Request) Answer { close(arrived); return answer })
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cancelled := make(chan time.Time, 1)
			go func() {
				<-arrived
				cancelled <- time.Now()
				cancel(why)
			}()
			_, err := p.Stream(ctx, hello(), nil)
			if took := time.Since(<-cancelled); took > time.Second {
				t.Errorf("returned %v after the end of its context", took)
			}
			if !errors.Is(err, why) {
				t.Errorf("error %v does not wrap the cause", err)
			}
			once(t, s)
		})
	}
	t.Run("already over", func(t *testing.T) {
		p, s := f.answer(t, Answer{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := p.Stream(ctx, hello(), nil); !errors.Is(err, why) || s.Total() != 0 {
			t.Errorf("error %v, %d requests", err, s.Total())
		}
	})
	t.Run("deadline", func(t *testing.T) {
		p, _ := f.answer(t, Answer{Fault: StallAfter(0)})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
		defer cancel()
		var e *goclaw.ProviderError
		if _, err := p.Stream(ctx, hello(), nil); !errors.Is(err, why) || errors.As(err, &e) && e.Retry {
			t.Errorf("error %v", err)
		}
	})
}
