package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"goclaw"
)

// words are texts to look for: in JSON one, or a list.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

// match is a rule's condition; see the package documentation.
type match struct {
	Contains      words  `json:"contains"`
	Not           words  `json:"not"`
	Anywhere      words  `json:"anywhere"`
	Role          string `json:"role"`
	Wire          string `json:"wire"`
	Model         string `json:"model"`
	HasToolResult *bool  `json:"hasToolResult"`
	Nth           int64  `json:"nth"`
}

type scriptedAnswer struct {
	Text         string            `json:"text"`
	Thinking     string            `json:"thinking"`
	Signature    string            `json:"signature"`
	Redacted     string            `json:"redacted"`
	Calls        []scriptedCall    `json:"calls"`
	Usage        *goclaw.Usage     `json:"usage"`
	Stop         goclaw.StopReason `json:"stop"`
	DelayMs      int64             `json:"delayMs"`
	ChunkDelayMs int64             `json:"chunkDelayMs"`
	ChunkSize    int               `json:"chunkSize"`
	Fault        Fault             `json:"fault"`
}

type scriptedCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object, or a text that is sent as it is
}

type rule struct {
	Match  match          `json:"match"`
	Answer scriptedAnswer `json:"answer"`

	fits atomic.Int64 // requests that fit all but nth
}

// ParseScript reads a script in JSON; the package documentation describes it.
// Unknown fields are errors.
func ParseScript(raw []byte) (Script, error) {
	var rules []*rule
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rules); err != nil {
		return nil, fmt.Errorf("parse script: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("parse script: something follows the list of rules")
	}
	for i, r := range rules {
		if r == nil {
			return nil, fmt.Errorf("parse script: rule %d is null", i+1)
		}
		if role := r.Match.Role; role != "" && role != "main" && role != "worker" {
			return nil, fmt.Errorf("parse script: rule %d: role %q: want main or worker", i+1, role)
		}
	}
	return func(r *Request) Answer {
		for _, rule := range rules {
			if !rule.Match.fits(r) {
				continue
			}
			if n := rule.fits.Add(1); rule.Match.Nth != 0 && rule.Match.Nth != n {
				continue
			}
			return rule.Answer.fill(r)
		}
		body, _ := json.Marshal(errorBody(r.Wire, "invalid_request_error", fmt.Sprintf("script: no rule matches request %d", r.N)))
		return Answer{Fault: Status(http.StatusBadRequest, "", string(body))}
	}, nil
}

// fits checks all but nth.
func (m match) fits(r *Request) bool {
	results := r.NewestResults()
	texts := []string{r.NewestText()}
	for _, result := range results {
		texts = append(texts, result.Content)
	}
	newest := strings.Join(texts, "\n")
	within := func(text string) func(string) bool {
		return func(word string) bool { return strings.Contains(text, word) }
	}
	lacks := func(text string, w words) bool {
		return slices.ContainsFunc(w, func(word string) bool { return !strings.Contains(text, word) })
	}
	switch {
	case lacks(newest, m.Contains), slices.ContainsFunc(m.Not, within(newest)):
		return false
	case len(m.Anywhere) > 0 && lacks(r.everything(), m.Anywhere):
		return false
	case m.Role != "" && (m.Role == "worker") != r.Worker():
		return false
	case m.Wire != "" && m.Wire != r.Wire, m.Model != "" && m.Model != r.Model:
		return false
	}
	return m.HasToolResult == nil || *m.HasToolResult == (len(results) > 0)
}

// everything is all text of the request.
func (r *Request) everything() string {
	texts := []string{r.System}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			texts = append(texts, p.Text)
			if p.Call != nil {
				texts = append(texts, p.Call.Arguments)
			}
			if p.Result != nil {
				texts = append(texts, p.Result.Content)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// fill makes the answer to r.
func (s scriptedAnswer) fill(r *Request) Answer {
	result := ""
	if results := r.NewestResults(); len(results) > 0 {
		result = results[len(results)-1].Content
	}
	values := []string{"{{task}}", r.Task(), "{{result}}", result, "{{n}}", strconv.Itoa(r.N)}
	text := strings.NewReplacer(values...)
	for i := 1; i < len(values); i += 2 {
		quoted, _ := json.Marshal(values[i]) // a string always encodes
		values[i] = string(quoted[1 : len(quoted)-1])
	}
	inJSON := strings.NewReplacer(values...)

	a := Answer{
		Text: text.Replace(s.Text), Thinking: text.Replace(s.Thinking), Signature: s.Signature, Redacted: s.Redacted,
		Usage: s.Usage, Stop: s.Stop, ChunkSize: s.ChunkSize, Fault: s.Fault,
		Delay:      time.Duration(s.DelayMs) * time.Millisecond,
		ChunkDelay: time.Duration(s.ChunkDelayMs) * time.Millisecond,
	}
	for _, c := range s.Calls {
		call := Call{ID: c.ID, Name: c.Name, Arguments: "{}"}
		if len(c.Arguments) > 0 {
			call.Arguments = string(c.Arguments)
			_ = json.Unmarshal(c.Arguments, &call.Arguments) // stays if it is no text
		}
		call.Arguments = inJSON.Replace(call.Arguments)
		a.Calls = append(a.Calls, call)
	}
	return a
}
