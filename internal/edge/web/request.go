package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/edge/web/openapi"
)

// inputKey is where a request's context holds its input.
type inputKey struct{}

// input is what a route's description makes of a request.
type input struct {
	values openapi.Values
	check  func(body []byte) error // nil: the body is read by its type alone
}

// given are the parameters of r, as its route describes them.
func given(r *http.Request) openapi.Values {
	in, _ := r.Context().Value(inputKey{}).(input)
	return in.values
}

// checked hands on what the route's description allows.
func (s *server) checked(rt route) http.HandlerFunc {
	strict := rt.op.Body != nil && strings.Contains(rt.pattern, " /api/") // /v1 is OpenAI's
	check := sync.OnceValues(rt.op.CheckBody)
	return func(w http.ResponseWriter, r *http.Request) {
		var in input
		var err error
		if in.values, err = readParams(r, rt.op); err == nil && rt.op.Body != nil {
			err = checkEncoding(r)
		}
		if err == nil && strict {
			if err = checkMedia(r); err == nil {
				in.check, err = check()
			}
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		rt.handle(w, r.WithContext(context.WithValue(r.Context(), inputKey{}, in)))
	}
}

func readParams(r *http.Request, op openapi.Operation) (openapi.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("", "unreadable query: %v", err)
	}
	values, err := op.Read(query, r.PathValue, r.Header.Values)
	if e, ok := errors.AsType[*openapi.Invalid](err); ok {
		return nil, invalid(e.Param, "%s", e.Why)
	}
	return values, err
}

// checkMedia refuses a body that says that it is something else than JSON:
// that is what a page's form could send without asking.
func checkMedia(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	if given == "" || r.ContentLength == 0 {
		return nil
	}
	if media, _, err := mime.ParseMediaType(given); err != nil || media != "application/json" {
		return failure{Status: http.StatusUnsupportedMediaType, Param: "Content-Type",
			Detail: fmt.Sprintf("a body of type %q is not accepted: send application/json", given)}
	}
	return nil
}

// checkEncoding refuses a compressed body: none is unpacked here.
func checkEncoding(r *http.Request) error {
	if given := r.Header.Get("Content-Encoding"); given != "" && !strings.EqualFold(given, "identity") {
		return failure{Status: http.StatusUnsupportedMediaType, Param: "Content-Encoding",
			Detail: fmt.Sprintf("a body with the encoding %q is not accepted: send it as it is", given)}
	}
	return nil
}

// readJSON decodes the body of r into v, strictly. An empty body leaves v as
// it is if optional.
func readJSON(r *http.Request, v any, optional bool) error {
	data, err := io.ReadAll(r.Body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failure{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body is larger than %d bytes", maxBody)}
	}
	switch {
	case err != nil:
		return invalid("", "the body broke off: %v", err)
	case len(bytes.TrimSpace(data)) == 0 && optional:
		return nil
	case len(bytes.TrimSpace(data)) == 0:
		return invalid("", "the body is empty: it must be a JSON object")
	case !utf8.Valid(data):
		return invalid("", "the body is not UTF-8")
	case bytes.TrimSpace(data)[0] != '{':
		return invalid("", "the body is no valid request: it must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return unreadable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("", "the body goes on after its JSON object")
	}
	if err := unique(data); err != nil {
		return err
	}
	if in, _ := r.Context().Value(inputKey{}).(input); in.check != nil {
		if e, ok := errors.AsType[*openapi.InvalidBody](in.check(data)); ok {
			return failure{Status: http.StatusBadRequest, Pointer: e.Pointer, Detail: e.Why}
		}
	}
	return nil
}

// unreadable words why a body could not be decoded.
func unreadable(err error) error {
	if f, ok := errors.AsType[failure](err); ok {
		return f // of a field's own UnmarshalJSON
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		field := t.Field
		if embedded, rest, ok := strings.Cut(field, "."); ok && unicode.IsUpper(rune(embedded[0])) {
			field = rest // encoding/json names the embedded struct as well
		}
		return wrong(field, "field %q can't be a %s", field, t.Value)
	}
	// encoding/json has no error type for these; its text names the field.
	what := strings.TrimPrefix(err.Error(), "json: ")
	if name, ok := strings.CutPrefix(what, "unknown field "); ok {
		field, _ := strconv.Unquote(name)
		return wrong(field, "unknown field %s", name)
	}
	return invalid("", "the body is no valid request: %s", what)
}

// unique refuses valid JSON in which an object has a name twice: readers
// differ in which of the two they take.
func unique(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	var open []map[string]bool // the names of the objects around; nil for a list
	name := false              // the next token is an object's name, or its end
	for {
		token, err := d.Token()
		if err != nil {
			return nil //nolint:nilerr // the end: the data is valid
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			name = len(open) > 0 && open[len(open)-1] != nil
			continue
		case string:
			if name {
				names := open[len(open)-1]
				if names[t] {
					return wrong(t, "field %q is given twice", t)
				}
				names[t], name = true, false
				continue
			}
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}
