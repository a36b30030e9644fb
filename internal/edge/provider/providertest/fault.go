package providertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
)

// object is a JSON object.
type object = map[string]any

// What a write ends in when the fault says so.
var (
	errCut    = errors.New("cut")
	errEnd    = errors.New("end")
	errSilent = errors.New("silent")
)

// refuse answers with the fault's status.
func (f Fault) refuse(w http.ResponseWriter, wire string) {
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Body == "" {
		refuse(w, wire, f.Status, f.kind(), http.StatusText(f.Status))
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if json.Valid([]byte(f.Body)) {
			w.Header().Set("Content-Type", "application/json")
		}
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may have left
}

// kind is the error's type for a status.
func (f Fault) kind() string {
	if f.ErrorKind != "" {
		return f.ErrorKind
	}
	kinds := map[int]string{
		http.StatusUnauthorized:    "authentication_error",
		http.StatusForbidden:       "permission_error",
		http.StatusNotFound:        "not_found_error",
		http.StatusTooManyRequests: "rate_limit_error",
		529:                        "overloaded_error",
	}
	if f.Status >= 500 {
		return cmp.Or(kinds[f.Status], "api_error")
	}
	return cmp.Or(kinds[f.Status], "invalid_request_error")
}

// errorBody is an error in the style of the wire.
func errorBody(wire, kind, message string) object {
	if wire == WireOpenAI {
		return object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}}
	}
	return object{"type": "error", "error": object{"type": kind, "message": message}}
}

func refuse(w http.ResponseWriter, wire string, status int, kind, message string) {
	writeJSON(w, status, errorBody(wire, kind, message))
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}

// faulty writes a stream with a fault.
type faulty struct {
	w       http.ResponseWriter
	flush   *http.ResponseController
	fault   Fault
	written int
	pieces  int
}

// write sends one event; its error is one of the above, or that the client left.
func (f *faulty) write(event []byte) error {
	if f.fault.CRLF {
		event = bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n"))
	}
	for len(event) > 0 {
		size := len(event)
		if f.fault.SplitUTF8 {
			size = min(size, 1+f.pieces%3)
			f.pieces++
		}
		if err := f.send(event[:size]); err != nil {
			return err
		}
		event = event[size:]
	}
	return f.check()
}

func (f *faulty) send(piece []byte) error {
	for _, limit := range []*int{f.fault.CutAfter, f.fault.EndAfter, f.fault.StallAfter} {
		if limit != nil {
			piece = piece[:min(len(piece), max(0, *limit-f.written))]
		}
	}
	n, err := f.w.Write(piece)
	f.written += n
	if err != nil {
		return err
	}
	if err := f.flush.Flush(); err != nil {
		return err
	}
	return f.check()
}

// check reports a limit that is reached.
func (f *faulty) check() error {
	for _, c := range []struct {
		limit *int
		err   error
	}{{f.fault.CutAfter, errCut}, {f.fault.EndAfter, errEnd}, {f.fault.StallAfter, errSilent}} {
		if c.limit != nil && f.written >= *c.limit {
			return c.err
		}
	}
	return nil
}
