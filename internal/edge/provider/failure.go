package provider

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"goclaw"
)

const (
	maxErrorBody    = 64 << 10
	maxErrorMessage = 2000
	maxDelay        = 7 * 24 * time.Hour
)

// errMalformed marks a reply that is no sensible stream.
var errMalformed = errors.New("malformed reply")

// Malformed marks err as a reply that is no sensible stream.
func Malformed(err error) error { return fmt.Errorf("%w: %w", errMalformed, err) }

// Line is what the failures of one provider's calls are worded with.
type Line struct {
	Provider string        // its name
	Key      string        // its key, which no message may hold
	Idle     time.Duration // the longest silence of the server
}

// Failure turns what ended a call early into a *goclaw.ProviderError. The
// order matters: a cancelled context shows up as all sorts of read errors.
func (l Line) Failure(ctx, call context.Context, w *Watch, err error) error {
	var known *goclaw.ProviderError
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case ctx.Err() != nil:
		return l.Cancelled(ctx)
	case errors.Is(context.Cause(call), errStall):
		return l.fail("stall", fmt.Sprintf("no data for %v", l.Idle), errStall)
	case errors.As(err, &known):
		return known
	case errors.Is(err, errMalformed), errors.As(err, &syntax), errors.As(err, &mismatch), errors.Is(err, bufio.ErrTooLong):
		return l.fail("malformed", err.Error(), err)
	case w.answer != nil:
		return l.fail("cut", "the stream ended before the reply was complete", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return l.Unreachable(err)
}

// Unreachable is the failure of a call that no server answered.
func (l Line) Unreachable(err error) error {
	var where *url.Error // its text repeats the URL
	if errors.As(err, &where) {
		err = where.Err
	}
	return l.fail("network", err.Error(), err)
}

// Refused is the failure of a call that is no stream and was answered so.
func (l Line) Refused(res *http.Response) error { return l.refusal(res) }

// Cancelled is the failure of a call whose context has ended.
func (l Line) Cancelled(ctx context.Context) error {
	cause := context.Cause(ctx)
	return &goclaw.ProviderError{Provider: l.Provider, Kind: "cancelled", Message: cause.Error(), Err: cause}
}

// fail is a failure that the server did not report itself; all such may be
// tried again.
func (l Line) fail(kind, message string, err error) error {
	return &goclaw.ProviderError{Provider: l.Provider, Kind: kind, Message: l.clean(message), Retry: true, Err: err}
}

// Event is the failure that an error event tells of, in a stream that began
// well.
func (l Line) Event(body []byte) error {
	said := errorBody(body)
	kind := cmp.Or(said.kind, "api_error")
	e := &goclaw.ProviderError{
		Provider: l.Provider, Status: http.StatusOK, Kind: kind,
		Message: l.clean(cmp.Or(said.message, "the server reported an error")),
		Retry:   !slices.Contains(finalKinds(), kind),
	}
	if said.status != 0 { // what the status would have been, had it come in time
		e.Status = said.status
		e.Kind = cmp.Or(said.kind, statusKind(said.status))
		e.Retry = retryStatus(said.status, e.Kind)
	}
	if tooLong(said.kind, said.message) {
		e.Kind, e.Retry = "context_length", false
	}
	return e
}

// finalKinds are the errors that the same request meets again.
func finalKinds() []string {
	return []string{
		"invalid_request_error", "invalid_prompt", "authentication_error", "invalid_api_key", "permission_error",
		"not_found_error", "model_not_found", "insufficient_quota", "billing_hard_limit_reached",
		"billing_error", "request_too_large", "content_filter", "context_length",
	}
}

// refusal returns an error unless res is the stream that was asked for.
func (l Line) refusal(res *http.Response) error {
	contentType := res.Header.Get("Content-Type")
	if res.StatusCode == http.StatusOK && !strings.Contains(contentType, "json") && !strings.Contains(contentType, "html") {
		return nil
	}
	// A body that breaks off still comes with a status, which says more.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	said := errorBody(body)
	e := &goclaw.ProviderError{
		Provider: l.Provider,
		Status:   res.StatusCode,
		Kind:     cmp.Or(said.kind, statusKind(res.StatusCode)),
		Message:  l.clean(cmp.Or(said.message, plainText(contentType, body), http.StatusText(res.StatusCode))),
		After:    retryAfter(res),
	}
	e.Retry = retryable(res, e.Kind)
	switch {
	case tooLong(said.kind, said.message) && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		e.Kind, e.Retry = "context_length", false
	case res.StatusCode == http.StatusOK && said == (spoken{}):
		e.Kind, e.Retry = "malformed", true
		e.Message = l.clean(fmt.Sprintf("a stream was asked for, %q came", contentType))
	}
	return e
}

func retryable(res *http.Response, kind string) bool {
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	return retryStatus(res.StatusCode, kind)
}

func retryStatus(status int, kind string) bool {
	switch {
	case kind == "insufficient_quota", kind == "billing_hard_limit_reached":
		return false
	case status == http.StatusOK:
		return !slices.Contains(finalKinds(), kind)
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests:
		return true
	}
	return kind == "overloaded_error" || status >= 500 && status != http.StatusNotImplemented
}

// statusKind names the error of a server that doesn't.
func statusKind(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable, status == 529:
		return "overloaded_error"
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}

// spoken is what a server says about a failure.
type spoken struct {
	kind    string // code, or type where there is no code
	message string
	status  int // where the code is a number
}

// errorBody finds the server's own words in the forms that servers use:
// {"error": {"type", "code", "message"}}, the same in an array or without the
// envelope, {"error": "text"} and {"detail"}.
func errorBody(body []byte) spoken {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	type words struct {
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	var envelope struct {
		words
		Error  json.RawMessage `json:"error"`
		Detail string          `json:"detail"`
	}
	// What doesn't fit is left out: servers differ in the types of fields.
	_ = json.Unmarshal(body, &envelope)
	inner := envelope.words
	var text string
	if json.Unmarshal(envelope.Error, &text) != nil && len(envelope.Error) > 0 {
		inner = words{}
		_ = json.Unmarshal(envelope.Error, &inner)
	}
	said := spoken{kind: inner.Type, message: cmp.Or(text, inner.Message, envelope.Detail)}
	var code string
	switch {
	case json.Unmarshal(inner.Code, &said.status) == nil:
		if said.status < 400 || said.status > 599 {
			said.status = 0
		}
	case json.Unmarshal(inner.Code, &code) == nil && code != "":
		said.kind = code
	}
	return said
}

// plainText returns a body that a person can read.
func plainText(contentType string, body []byte) string {
	body = bytes.TrimSpace(body)
	if strings.Contains(contentType, "html") || bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	return string(body)
}

// tooLong recognises a prompt beyond the model's window, in the words of this
// API and of servers that imitate it.
func tooLong(kind, message string) bool {
	if kind == "context_length_exceeded" || kind == "exceed_context_size_error" {
		return true
	}
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"context length", "context window", "context size", "context limit", "prompt is too long", "too many tokens",
		"input token count", "input is too long",
	}, func(words string) bool { return strings.Contains(message, words) })
}

// clean makes a server's text fit for logs: short, and without the key.
func (l Line) clean(message string) string {
	if l.Key != "" {
		message = strings.ReplaceAll(message, l.Key, "[key]")
	}
	message = strings.ToValidUTF8(strings.TrimSpace(message), "")
	if len(message) > maxErrorMessage {
		message = strings.ToValidUTF8(message[:maxErrorMessage], "") + "…"
	}
	return message
}

// retryAfter reads the server's delay: Retry-After-Ms, Retry-After, or the
// latest reset of a rate limit that is used up.
func retryAfter(res *http.Response) time.Duration {
	h := res.Header
	if d := delay(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	after := h.Get("Retry-After")
	if d := delay(after, time.Second); d > 0 {
		return d
	}
	now := time.Now()
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // the server's clock, which its times are told by
	}
	if t, err := http.ParseTime(after); err == nil {
		return max(0, t.Sub(now))
	}
	if res.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	return max(untilReset(h, now), afterReset(h))
}

// untilReset is the latest reset, in Anthropic's headers, of a limit that is
// used up.
func untilReset(h http.Header, now time.Time) (longest time.Duration) {
	for _, limit := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		prefix := "Anthropic-Ratelimit-" + limit
		if h.Get(prefix+"-Remaining") != "0" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, h.Get(prefix+"-Reset")); err == nil {
			longest = max(longest, t.Sub(now))
		}
	}
	return longest
}

// afterReset is the same in OpenAI's headers.
func afterReset(h http.Header) (longest time.Duration) {
	for _, limit := range []string{"Requests", "Tokens"} {
		if left := h.Get("X-Ratelimit-Remaining-" + limit); left != "0" && left != "" {
			continue
		}
		if d, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + limit)); err == nil && d < maxDelay {
			longest = max(longest, d)
		}
	}
	return longest
}

// delay reads a number of units; 0 is none, or none that makes sense.
func delay(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0 && n*unit.Seconds() < maxDelay.Seconds()) {
		return 0
	}
	return time.Duration(n * float64(unit))
}
