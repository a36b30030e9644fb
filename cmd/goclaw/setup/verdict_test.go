package setup

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"goclaw"
)

func TestJudge(t *testing.T) {
	claude := Plan{Model: "anthropic/claude-x", KeyFrom: KeyNew}
	local := Plan{Model: "local/m", URL: "http://127.0.0.1:8000/v1", KeyFrom: KeyNone}
	status := func(code int, kind, message string) *goclaw.ProviderError {
		return &goclaw.ProviderError{Provider: "p", Status: code, Kind: kind, Message: message}
	}
	network := func(err error) *goclaw.ProviderError {
		return &goclaw.ProviderError{Provider: "p", Kind: "network", Message: err.Error(), Err: err, Retry: true}
	}
	for _, tt := range []struct {
		name   string
		plan   Plan
		failed error
		want   string
		next   int
	}{
		{"right", claude, nil, "anthropic/claude-x answers.", 0},
		{"wrong key", claude, status(401, "authentication_error", "invalid x-api-key"), "Wrong key: api.anthropic.com refuses it (invalid x-api-key); copy it", otherKey},
		{"OpenAI's wrong key", claude, status(401, "invalid_api_key", "Incorrect API key provided: [key]."), "Wrong key: ", otherKey},
		{"no key", local, status(401, "authentication_error", "no auth"), "A key is missing: 127.0.0.1:8000 wants one (no auth).", otherKey},
		{"Anthropic's empty account", claude, status(400, "invalid_request_error", "Your credit balance is too low to access the API."), "No credit: the key is right", otherKey},
		{"OpenAI's empty account", claude, status(429, "insufficient_quota", "You exceeded your current quota."), "No credit: ", otherKey},
		{"OpenRouter's empty account", local, status(402, "402", "Insufficient credits"), "No credit: ", otherKey},
		{"Anthropic's unknown model", claude, status(404, "not_found_error", "model: claude-x"), "Unknown model: api.anthropic.com has no anthropic/claude-x for this key", otherModel},
		{"OpenAI's unknown model", local, status(404, "model_not_found", "The model `m` does not exist"), "Unknown model: ", otherModel},
		{"a local server's unknown model", local, status(400, "invalid_request_error", "m is not a valid model ID"), "Unknown model: ", otherModel},
		{"no API there", local, status(404, "not_found_error", "Not Found"), "Wrong address: what answers at 127.0.0.1:8000 does not speak this API (HTTP 404)", otherAddress},
		{"a web page", local, status(200, "malformed", "a stream was asked for"), "Wrong address: ", otherAddress},
		{"a redirect", local, status(301, "invalid_request_error", "Moved"), "Wrong address: ", otherAddress},
		{"no JSON", local, &goclaw.ProviderError{Kind: "malformed", Message: "x"}, "Wrong address: ", otherAddress},
		{"not allowed", claude, status(403, "permission_error", "not in this region"), "Not allowed: api.anthropic.com knows the key", otherKey},
		{"too many", claude, status(429, "rate_limit_error", "slow down"), "Too many requests: ", onceMore},
		{"overloaded", claude, status(529, "overloaded_error", "Overloaded"), "Out of order: api.anthropic.com can't answer now (HTTP 529, Overloaded)", onceMore},
		{"another refusal", claude, status(400, "invalid_request_error", "max_tokens is too large"), "Refused: api.anthropic.com says \"max_tokens is too large\" (HTTP 400).", otherModel},
		{"an unknown name", claude, network(&net.DNSError{Name: "api.anthropic.com"}), "No network, or a wrong address: the name api.anthropic.com is not known", otherAddress},
		{"nothing there", local, network(syscall.ECONNREFUSED), "Nothing answers at 127.0.0.1:8000: the connection is refused", otherAddress},
		{"no way there", claude, network(syscall.ENETUNREACH), "No network: api.anthropic.com can't be reached", onceMore},
		{"cut", local, network(errors.New("connection reset")), "No answer from 127.0.0.1:8000 (connection reset)", onceMore},
		{"too slow", local, &goclaw.ProviderError{Kind: "cancelled", Err: context.DeadlineExceeded}, "Too slow: 127.0.0.1:8000 did not answer in time", onceMore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := judge(tt.failed, tt.plan, vendors()[0])
			if err != nil || got.works != (tt.failed == nil) || !strings.HasPrefix(got.text, tt.want) || got.next != tt.next || strings.Contains(got.text, "\n") {
				t.Errorf("%+v, %v; want %s, then %d", got, err, tt.want, tt.next)
			}
		})
	}
	gone := errors.New("interrupted")
	if _, err := judge(gone, claude, vendors()[0]); !errors.Is(err, gone) {
		t.Errorf("the person left, and it says %v", err)
	}
}
