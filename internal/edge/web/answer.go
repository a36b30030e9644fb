package web

import (
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

// failure is an error answer, in the terms of both shapes that it may take.
type failure struct {
	Status int
	Detail string // one sentence for a person
	Code   string // for programs; "" gives none
	Param  string // the field or parameter that is wrong, if one is

	RetryAfter time.Duration // when to try again, if that may help
}

// Error makes a failure an error, so that parsers can return it.
func (f failure) Error() string { return f.Detail }

// invalid is the failure of a request that can't be understood.
func invalid(param, format string, args ...any) failure {
	return failure{Status: http.StatusBadRequest, Param: param, Detail: fmt.Sprintf(format, args...)}
}

// openAIError is the error object of OpenAI's API.
type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (f failure) openAI() map[string]openAIError {
	e := openAIError{Message: f.Detail, Type: "invalid_request_error"}
	switch {
	case f.Status == http.StatusUnauthorized:
		e.Type = "authentication_error"
	case f.Status >= 500:
		e.Type = "server_error"
	}
	if f.Param != "" {
		e.Param = &f.Param
	}
	if f.Code != "" {
		e.Code = &f.Code
	}
	return map[string]openAIError{"error": e}
}

// problem is RFC 9457's object.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Param  string `json:"param,omitempty"`
}

// writeFailure answers with f in the shape that r's path promises.
func writeFailure(w http.ResponseWriter, r *http.Request, f failure) {
	retryAfter(w.Header(), f.RetryAfter)
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="goclaw"`)
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		writeJSON(w, f.Status, f.openAI())
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, f.Status, problem{Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status, Detail: f.Detail, Param: f.Param})
}

// asFailure decides how to answer an error.
func asFailure(err error) failure {
	if f, ok := errors.AsType[failure](err); ok {
		return f
	}
	if errors.Is(err, goclaw.ErrNotFound) {
		return failure{Status: http.StatusNotFound, Detail: err.Error(), Code: "not_found"}
	}
	if errors.Is(err, goclaw.ErrEnded) {
		return failure{Status: http.StatusConflict, Detail: err.Error(), Code: "ended"}
	}
	if goclaw.IsBadRequest(err) {
		return failure{Status: http.StatusBadRequest, Detail: err.Error()}
	}
	return failure{Status: http.StatusInternalServerError, Detail: err.Error()}
}

// stopping is the failure of a request that the gateway's stop ended.
func stopping() failure {
	return failure{
		Status: http.StatusServiceUnavailable, Code: "stopping",
		Detail: "the gateway is stopping; what it accepted is kept, and goes on at its next start",
	}
}

// fail answers r with err, and logs what is the gateway's own fault: as a
// warning, for the caller is told as well. A request that the gateway's stop
// ended says so; a client that has gone does not hear it.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := asFailure(err)
	switch {
	case r.Context().Err() != nil:
		f = stopping()
	case f.Status >= 500:
		s.Logger.Warn("request failed", "method", r.Method, "path", r.URL.Path, "status", f.Status, "error", err)
	}
	writeFailure(w, r, f)
}

// reply answers r with v, or with err if there is one.
func (s *server) reply(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, v)
}

// writeTimeout is how long a client may keep an answer, or one event of a
// stream, from being written.
const writeTimeout = time.Minute

// writeJSON sends v. Only a client that is gone makes it fail, so there is
// nobody to tell.
func writeJSON(w http.ResponseWriter, status int, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	// In memory there is no deadline to set: the reader's context ends a write.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// readJSON decodes the body of r into v, strictly. An empty body leaves v as
// it is if optional.
func readJSON(r *http.Request, v any, optional bool) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if errors.Is(err, io.EOF) {
		if optional {
			return nil
		}
		return invalid("", "the body is empty: it must be a JSON object")
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			return invalid("", "the body goes on after its JSON object")
		}
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f // of a field's own UnmarshalJSON
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failure{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body is larger than %d bytes", maxBody)}
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		return invalid(t.Field, "field %q can't be a %s", t.Field, t.Value)
	}
	// encoding/json has no error type for these; its text names the field.
	what := strings.TrimPrefix(err.Error(), "json: ")
	if name, ok := strings.CutPrefix(what, "unknown field "); ok {
		field, _ := strconv.Unquote(name)
		return invalid(field, "unknown field %s", name)
	}
	return invalid("", "the body is no valid request: %s", what)
}

// query reads URL parameters and keeps the first thing that is wrong.
type query struct {
	values url.Values
	err    error
}

// parseQuery refuses parameters that are not known, lest a misspelt filter
// selects everything.
func parseQuery(r *http.Request, known ...string) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.err = invalid("", "unreadable query: %v", err)
	}
	for name := range values {
		if !slices.Contains(known, name) {
			q.bad(name, "unknown parameter %q (known: %s)", name, strings.Join(known, ", "))
		}
	}
	return q
}

func (q *query) bad(param, format string, args ...any) {
	if q.err == nil {
		q.err = invalid(param, format, args...)
	}
}

func (q *query) text(name string) string {
	if len(q.values[name]) > 1 {
		q.bad(name, "parameter %q is given twice", name)
	}
	return q.values.Get(name)
}

func (q *query) flag(name string) bool {
	text := q.text(name)
	if text == "" {
		return false
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		q.bad(name, "parameter %q: want true or false, not %q", name, text)
	}
	return on
}

// number reads an integer from 1 to most; 0 means that it is absent.
func (q *query) number(name string, most int) int {
	text := q.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.bad(name, "parameter %q: want a number from 1 to %d, not %q", name, most, text)
	}
	return n
}

func (q *query) key(name string) goclaw.SessionKey {
	text := q.text(name)
	if text == "" {
		return goclaw.SessionKey{}
	}
	key, err := goclaw.ParseSessionKey(text)
	if err != nil {
		q.bad(name, "parameter %q: %v", name, err)
	}
	return key
}

// errElapsed is the cause of the end of a long poll's context.
var errElapsed = errors.New("the poll's time is over")

// elapsed reports whether ctx ended because the poll's time was over.
func elapsed(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errElapsed) }
