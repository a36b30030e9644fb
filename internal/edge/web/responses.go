package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"goclaw"
)

// response is OpenAI's object of that name. What an agent decides itself is
// null.
type response struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	CompletedAt        *int64            `json:"completed_at"`
	Status             string            `json:"status"`
	Background         bool              `json:"background"`
	Error              *responseError    `json:"error"`
	IncompleteDetails  *incomplete       `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int64            `json:"max_output_tokens"`
	MaxToolCalls       *int64            `json:"max_tool_calls"`
	Model              string            `json:"model"`
	Output             []outputItem      `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Reasoning          reasoning         `json:"reasoning"`
	Store              bool              `json:"store"`
	Temperature        *float64          `json:"temperature"`
	Text               textConfig        `json:"text"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	Tools              []responseTool    `json:"tools"`
	TopP               *float64          `json:"top_p"`
	Truncation         string            `json:"truncation"`
	Usage              *responseUsage    `json:"usage"`
	User               *string           `json:"user"`
	Metadata           map[string]string `json:"metadata"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// incomplete says why an answer is not all that the model would have said.
type incomplete struct {
	Reason string `json:"reason"`
}

type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type textConfig struct {
	Format responseFormat `json:"format"`
}

type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// responseUsage is goclaw.Usage in the terms of responses.
type responseUsage struct {
	Input        int64        `json:"input_tokens"`
	InputDetails inputDetails `json:"input_tokens_details"`
	Output       int64        `json:"output_tokens"`
	// OutputDetails: the thinking is not counted apart.
	OutputDetails outputDetails `json:"output_tokens_details"`
	Total         int64         `json:"total_tokens"`
}

type inputDetails struct {
	Cached     int64 `json:"cached_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
}

type outputDetails struct {
	Reasoning int64 `json:"reasoning_tokens"`
}

// outputItem is a message or a call of a caller's tool.
type outputItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`

	Role    string        `json:"role,omitempty"`
	Content *[]outputText `json:"content,omitempty"`

	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

type outputText struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
	Logprobs    []struct{} `json:"logprobs"`
}

func newText(text string) outputText {
	return outputText{Type: "output_text", Text: text, Annotations: []struct{}{}, Logprobs: []struct{}{}}
}

func newMessage(id, status string, parts ...outputText) outputItem {
	if parts == nil {
		parts = []outputText{}
	}
	return outputItem{ID: id, Type: "message", Status: status, Role: "assistant", Content: &parts}
}

func functionCall(c goclaw.ToolCall, status, arguments string) outputItem {
	return outputItem{ID: fcID(c.ID), Type: "function_call", Status: status, CallID: c.ID, Name: c.Name, Arguments: &arguments}
}

// newResponse is a response under way.
func newResponse(id, model string, created int64) *response {
	r := &response{ID: id, Object: "response", CreatedAt: created, Status: "in_progress", Model: model, Output: []outputItem{},
		ParallelToolCalls: true, Store: true, ToolChoice: json.RawMessage(`"auto"`), Tools: []responseTool{}, Truncation: "disabled",
		Metadata: map[string]string{}}
	r.Text.Format.Type = "text"
	return r
}

func (r *response) offer(tools []goclaw.ToolSpec) {
	for _, t := range tools {
		r.Tools = append(r.Tools, responseTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema, Strict: true})
	}
}

func (r *response) fail(a said) {
	r.Status, r.Error = "failed", &responseError{Code: "server_error", Message: a.failed().Detail}
}

// conclude sets what is known at the end, but for the output.
func (r *response) conclude(a said, now time.Time) {
	switch a.state {
	case goclaw.StateQueued:
		r.Status = "queued"
	case goclaw.StateCompleted:
		r.Status = "completed"
	case goclaw.StateCancelled:
		r.Status = "cancelled"
	case goclaw.StateFailed, goclaw.StateTimeout:
		r.Status = "failed"
	case goclaw.StateRunning, goclaw.StateWaiting, goclaw.StateInterrupted:
		r.Status = "in_progress"
	}
	switch {
	case len(a.calls) > 0:
		r.Status = "completed"
	case a.cut:
		r.Status, r.IncompleteDetails = "incomplete", &incomplete{"max_output_tokens"}
	}
	if r.Status == "failed" {
		r.fail(a)
	}
	if r.Status == "queued" || r.Status == "in_progress" {
		return
	}
	r.Usage = &responseUsage{Input: a.usage.Input, Output: a.usage.Output, Total: a.usage.Input + a.usage.Output,
		InputDetails: inputDetails{Cached: a.usage.CacheRead, CacheWrite: a.usage.CacheWrite}}
	if r.Status == "completed" {
		at := now.Unix()
		r.CompletedAt = &at
	}
}

// answer words a response from an answer.
type responseAnswer struct {
	*response
	message string // its text's item id
	now     func() time.Time
	seq     int

	open bool // the message has begun
	text strings.Builder
}

func (s *server) createResponse(w http.ResponseWriter, r *http.Request) {
	body, q, err := s.readResponse(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.ask(w, r, q, body.Background, func(t turn) wording {
		id := responseID(t.place(), q.one)
		a := &responseAnswer{message: messageID(t.place()), now: s.Now}
		created := t.run.CreatedAt.Time().Unix()
		if t.run.ID == "" { // an id of its own, by which the session is found if it is known
			id, a.message = commandID(body.PreviousResponseID), "msg_"+uuid.NewString()
			created = s.Now().Unix()
		}
		a.response = newResponse(id, q.model, created)
		a.echo(body, q)
		return a
	})
}

// echo repeats what was asked for.
func (a *responseAnswer) echo(b responseRequest, q question) {
	a.offer(q.tools)
	a.ParallelToolCalls, a.Background = !q.one, b.Background
	if len(b.ToolChoice) > 0 {
		a.ToolChoice = b.ToolChoice
	}
	if b.Text.Format.Type != "" {
		a.Text.Format = b.Text.Format
	}
	if b.Metadata != nil {
		a.Metadata = b.Metadata
	}
	for _, echo := range []struct {
		to   **string
		text string
	}{{&a.Instructions, string(b.Instructions)}, {&a.PreviousResponseID, b.PreviousResponseID}, {&a.User, b.User}} {
		if echo.text != "" {
			*echo.to = &echo.text
		}
	}
}

func (a *responseAnswer) whole(done said) (int, any) {
	a.put(done, strings.Join(done.replies, blank))
	return http.StatusOK, a.response
}

// put sets the output, and the rest.
func (a *responseAnswer) put(done said, text string) {
	if text != "" {
		status := "completed"
		if done.cut {
			status = "incomplete"
		}
		a.Output = append(a.Output, newMessage(a.message, status, newText(text)))
	}
	for _, c := range done.calls {
		a.Output = append(a.Output, functionCall(c, "completed", c.Arguments))
	}
	a.conclude(done, a.now())
}

func (s *server) getResponse(w http.ResponseWriter, r *http.Request) {
	if given(r).Flag("stream") {
		s.fail(w, r, invalid("stream", "a response that was created can't be streamed again: ask for it whole"))
		return
	}
	found, err := s.responseOf(r)
	s.reply(w, r, found, err)
}

// cancelResponse ends the response's run, and all that it started.
func (s *server) cancelResponse(w http.ResponseWriter, r *http.Request) {
	id := given(r).Text("id")
	p, one, ok := parsePlace("resp_", id)
	_, err := s.recorded(r.Context(), p, ok && id == responseID(p, one))
	if err == nil {
		_, err = s.Backend.Cancel(r.Context(), p.run, "cancelled by the client that asked")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	found, err := s.responseOf(r)
	s.reply(w, r, found, err)
}

// responseOf reads a response from the record. What the request said besides
// its text was not kept.
func (s *server) responseOf(r *http.Request) (*response, error) {
	id := given(r).Text("id")
	p, one, ok := parsePlace("resp_", id)
	log, err := s.recorded(r.Context(), p, ok && id == responseID(p, one))
	if err != nil {
		return nil, err
	}
	run := log.Run
	answer := recordedAnswer(log, p.reply, one)
	if run.CancelAt != 0 && !run.State.Ended() {
		answer = said{state: goclaw.StateCancelled}
	}
	a := &responseAnswer{response: newResponse(id, "goclaw/"+run.Session.Agent, run.CreatedAt.Time().Unix()),
		message: messageID(p), now: func() time.Time { return run.FinishedAt.Time() }}
	if run.FinishedAt == 0 {
		a.now = s.Now
	}
	a.offer(run.Profile.Caller)
	a.ParallelToolCalls = !one
	a.put(answer, strings.Join(answer.replies, blank))
	return a.response, nil
}
