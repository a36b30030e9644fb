package providertest

import (
	"time"

	"goclaw"
)

// Answer is what the server replies. Its parts are sent in the order thinking,
// text, calls.
type Answer struct {
	Text     string
	Thinking string

	// Signature comes with Thinking, and Redacted is the data of a redacted
	// block after it; both on Anthropic's wire only.
	Signature string
	Redacted  string

	Calls []Call

	// Usage replaces the counted one; as everywhere, Input includes the cache.
	Usage *goclaw.Usage

	// Stop is tools or end by default.
	Stop goclaw.StopReason

	Delay      time.Duration // before the first byte
	ChunkDelay time.Duration // before each event

	// ChunkSize is how many characters one event carries; 0 is 24.
	ChunkSize int

	Fault Fault
}

// Call is a tool call. Arguments is sent as it is, even if it is no JSON.
type Call struct {
	ID        string // made up if empty
	Name      string
	Arguments string
}

// Fault is what goes wrong with an answer. Faults combine where that makes
// sense; the zero value is none. The byte counts are of the stream's body.
type Fault struct {
	// Status refuses the request with this status, RetryAfter as its header
	// and Body, or a body in the style of the wire.
	Status     int               `json:"status,omitempty"`
	RetryAfter string            `json:"retryAfter,omitempty"`
	Header     map[string]string `json:"header,omitempty"`
	Body       string            `json:"body,omitempty"`

	CutAfter   *int `json:"cutAfter,omitempty"`   // breaks the connection
	EndAfter   *int `json:"endAfter,omitempty"`   // ends the body in good order
	StallAfter *int `json:"stallAfter,omitempty"` // sends nothing more, until the client leaves

	// ErrorEventAfter sends an error event of kind ErrorKind, default
	// overloaded_error, after that many events, and ends.
	ErrorEventAfter *int   `json:"errorEventAfter,omitempty"`
	ErrorKind       string `json:"errorKind,omitempty"`

	CRLF               bool `json:"crlf,omitempty"`               // line ends
	SplitUTF8          bool `json:"splitUTF8,omitempty"`          // one to three bytes per write
	MalformedArguments bool `json:"malformedArguments,omitempty"` // of every call
	NoUsage            bool `json:"noUsage,omitempty"`
	DuplicateDone      bool `json:"duplicateDone,omitempty"` // the end is sent twice
}

// BrokenArguments is what MalformedArguments sends.
const BrokenArguments = `{"path": "unclosed`

// Status refuses with an HTTP status; retryAfter and body may be empty.
func Status(code int, retryAfter, body string) Fault {
	return Fault{Status: code, RetryAfter: retryAfter, Body: body}
}

// CutAfter breaks the connection after n bytes of the stream.
func CutAfter(n int) Fault { return Fault{CutAfter: &n} }

// EndAfter ends the stream after n bytes as if it were complete.
func EndAfter(n int) Fault { return Fault{EndAfter: &n} }

// StallAfter falls silent after n bytes of the stream.
func StallAfter(n int) Fault { return Fault{StallAfter: &n} }

// ErrorEventAfter sends an error event after n events of the stream.
func ErrorEventAfter(n int, kind string) Fault { return Fault{ErrorEventAfter: &n, ErrorKind: kind} }

const defaultChunk = 24

// pieces splits s into chunks of whole characters.
func (a Answer) pieces(s string) []string {
	size := a.ChunkSize
	if size <= 0 {
		size = defaultChunk
	}
	var out []string
	start, n := 0, 0
	for i := range s {
		if n == size {
			out = append(out, s[start:i])
			start, n = i, 0
		}
		n++
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// stop returns the stop reason.
func (a Answer) stop() goclaw.StopReason {
	switch {
	case a.Stop != "":
		return a.Stop
	case len(a.Calls) > 0:
		return goclaw.StopTools
	}
	return goclaw.StopEnd
}

// usage returns the answer's own usage, or counts four bytes a token.
func (a Answer) usage(r *Request, cacheRead, cacheWrite int64) goclaw.Usage {
	if a.Usage != nil {
		return *a.Usage
	}
	out := len(a.Text) + len(a.Thinking)
	for _, c := range a.Calls {
		out += len(c.Name) + len(c.Arguments)
	}
	input := max(1, int64(len(r.Raw)/4))
	return goclaw.Usage{
		Input:      input,
		Output:     max(1, int64(out/4)),
		CacheRead:  min(cacheRead, input),
		CacheWrite: min(cacheWrite, input-min(cacheRead, input)),
	}
}
