package anthropic

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

	sdk "github.com/anthropics/anthropic-sdk-go"

	"goclaw"
)

const (
	maxErrorBody    = 64 << 10
	maxErrorMessage = 2000
	maxDelay        = 7 * 24 * time.Hour
)

// errMalformed marks a reply that is no sensible stream.
var errMalformed = errors.New("malformed reply")

func malformed(err error) error { return fmt.Errorf("%w: %w", errMalformed, err) }

// failure turns what ended a call early into a *goclaw.ProviderError. The
// order matters: a cancelled context shows up as all sorts of read errors.
func (p *Provider) failure(ctx, call context.Context, w *watch, err error) error {
	var known *goclaw.ProviderError
	var event *sdk.Error
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case ctx.Err() != nil:
		return p.cancelled(ctx)
	case errors.Is(context.Cause(call), errStall):
		return p.fail("stall", fmt.Sprintf("no data for %v", p.idle), errStall)
	case errors.As(err, &known):
		return known
	case errors.As(err, &event):
		return p.eventError(event)
	case errors.Is(err, errMalformed), errors.As(err, &syntax), errors.As(err, &mismatch), errors.Is(err, bufio.ErrTooLong):
		return p.fail("malformed", err.Error(), err)
	case w.answered:
		return p.fail("cut", "the stream ended before the reply was complete", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	var where *url.Error // its text repeats the URL
	if errors.As(err, &where) {
		err = where.Err
	}
	return p.fail("network", err.Error(), err)
}

func (p *Provider) cancelled(ctx context.Context) error {
	cause := context.Cause(ctx)
	return &goclaw.ProviderError{Provider: p.name, Kind: "cancelled", Message: cause.Error(), Err: cause}
}

// fail is a failure that the server did not report itself; all such may be
// tried again.
func (p *Provider) fail(kind, message string, err error) error {
	return &goclaw.ProviderError{Provider: p.name, Kind: kind, Message: p.clean(message), Retry: true, Err: err}
}

// eventError is an error event in a stream that began well.
func (p *Provider) eventError(event *sdk.Error) error {
	kind, message := errorBody([]byte(event.RawJSON()))
	kind = cmp.Or(kind, "api_error")
	if tooLong(message) {
		kind = "context_length"
	}
	return &goclaw.ProviderError{
		Provider: p.name, Status: http.StatusOK, Kind: kind,
		Message: p.clean(cmp.Or(message, "the server reported an error")),
		Retry:   !slices.Contains(finalKinds(), kind),
	}
}

// finalKinds are the errors that the same request meets again.
func finalKinds() []string {
	return []string{
		"invalid_request_error", "authentication_error", "permission_error", "not_found_error",
		"billing_error", "request_too_large", "context_length",
	}
}

// responseError returns an error unless res is the stream that was asked for.
func (p *Provider) responseError(res *http.Response) error {
	contentType := res.Header.Get("Content-Type")
	if res.StatusCode == http.StatusOK && !strings.Contains(contentType, "json") && !strings.Contains(contentType, "html") {
		return nil
	}
	// A body that breaks off still comes with a status, which says more.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	kind, message := errorBody(body)
	e := &goclaw.ProviderError{
		Provider: p.name,
		Status:   res.StatusCode,
		Kind:     cmp.Or(kind, statusKind(res.StatusCode)),
		Message:  p.clean(cmp.Or(message, plainText(contentType, body), http.StatusText(res.StatusCode))),
		After:    retryAfter(res),
	}
	e.Retry = retryable(res, e.Kind)
	switch {
	case tooLong(message) && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		e.Kind, e.Retry = "context_length", false
	case res.StatusCode == http.StatusOK && kind == "":
		e.Kind, e.Retry = "malformed", true
		e.Message = p.clean(fmt.Sprintf("a stream was asked for, %q came", contentType))
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
	switch s := res.StatusCode; {
	case s == http.StatusOK:
		return !slices.Contains(finalKinds(), kind)
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooManyRequests:
		return true
	default:
		return kind == "overloaded_error" || s >= 500 && s != http.StatusNotImplemented
	}
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

// errorBody finds the server's own words in the forms that servers use:
// {"error": {"type", "message"}}, {"error": "text"}, {"message"} and {"detail"}.
func errorBody(body []byte) (kind, message string) {
	var envelope struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return "", ""
	}
	var inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(envelope.Error, &inner) == nil {
		return inner.Type, inner.Message
	}
	var text string
	_ = json.Unmarshal(envelope.Error, &text) // stays "" if it is something else
	return "", cmp.Or(text, envelope.Message, envelope.Detail)
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
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"prompt is too long", "context limit", "context window", "context length", "too many tokens",
		"context size", "input is too long",
	}, func(words string) bool { return strings.Contains(message, words) })
}

// clean makes a server's text fit for logs: short, and without the key.
func (p *Provider) clean(message string) string {
	if p.key != "" {
		message = strings.ReplaceAll(message, p.key, "[key]")
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
	var longest time.Duration
	if res.StatusCode != http.StatusTooManyRequests {
		return longest
	}
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

// delay reads a number of units; 0 is none, or none that makes sense.
func delay(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0 && n*unit.Seconds() < maxDelay.Seconds()) {
		return 0
	}
	return time.Duration(n * float64(unit))
}
