package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"goclaw"
)

// failure is an error answer, in the terms of both shapes that it may take.
type failure struct {
	Status int
	Detail string // one sentence for a person
	Code   string // for programs; "" gives none

	// Param is the parameter or header that is wrong, Pointer (a JSON Pointer)
	// the field of the body; "" if none is.
	Param   string
	Pointer string

	RetryAfter time.Duration // when to try again, if that may help
}

// Error makes a failure an error, so that parsers can return it.
func (f failure) Error() string { return f.Detail }

// invalid is the failure of a request that can't be understood.
func invalid(param, format string, args ...any) failure {
	return failure{Status: http.StatusBadRequest, Param: param, Detail: fmt.Sprintf(format, args...)}
}

// wrong is the failure of a body of which a field can't be accepted: its name,
// or names with dots between them.
func wrong(field, format string, args ...any) failure {
	f := failure{Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
	if field != "" {
		f.Pointer = "/" + strings.ReplaceAll(strings.NewReplacer("~", "~0", "/", "~1").Replace(field), ".", "/")
	}
	return f
}

// openAIError is the error object of OpenAI's API.
type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openAIFailure is the body of an error under /v1.
type openAIFailure struct {
	Error openAIError `json:"error"`
}

func (f failure) openAI() openAIFailure {
	e := openAIError{Message: f.Detail, Type: "invalid_request_error"}
	switch {
	case f.Status == http.StatusUnauthorized:
		e.Type = "authentication_error"
	case f.Status >= 500:
		e.Type = "server_error"
	}
	if param := cmp.Or(f.Param, strings.TrimPrefix(f.Pointer, "/")); param != "" {
		e.Param = &param
	}
	if f.Code != "" {
		e.Code = &f.Code
	}
	return openAIFailure{e}
}

// problem is RFC 9457's object.
type problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Param   string `json:"param,omitempty"`   // the parameter or header that is wrong
	Pointer string `json:"pointer,omitempty"` // into the body: the field that is
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
	writeJSON(w, f.Status, problem{Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status, Detail: f.Detail, Param: f.Param, Pointer: f.Pointer})
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
	if errors.Is(err, goclaw.ErrReused) {
		return failure{Status: http.StatusUnprocessableEntity, Detail: err.Error(), Code: "key_reused", Param: "Idempotency-Key"}
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
	f.Detail = s.Redact(f.Detail)
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

// errElapsed is the cause of the end of a long poll's context.
var errElapsed = errors.New("the poll's time is over")

// elapsed reports whether ctx ended because the poll's time was over.
func elapsed(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errElapsed) }
