package web

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// settle is how long a stream waits, after the outcome is known, for notices
// of it that are still on their way, so that the text between tool calls isn't
// left out. The answer itself doesn't depend on them.
const settle = 200 * time.Millisecond

// chatUsage is goclaw.Usage in OpenAI's terms.
type chatUsage struct {
	Prompt     int64       `json:"prompt_tokens"`
	Completion int64       `json:"completion_tokens"`
	Total      int64       `json:"total_tokens"`
	Details    chatDetails `json:"prompt_tokens_details"`
}

type chatDetails struct {
	Cached int64 `json:"cached_tokens"`
}

func usageOf(u goclaw.Usage) *chatUsage {
	return &chatUsage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output, Details: chatDetails{Cached: u.CacheRead}}
}

// chatAnswer is a completion, or one chunk of its stream.
type chatAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

type chatChoice struct {
	Index        int      `json:"index"`
	Message      *chatOut `json:"message,omitempty"`
	Delta        *chatOut `json:"delta,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

type chatOut struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// chat is one request on its way to its answer.
type chat struct {
	*server
	w    http.ResponseWriter
	r    *http.Request
	q    chatRequest
	wait bool
	id   string
	at   int64
}

func (s *server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	q, in, wait, err := s.readChat(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	// Listening begins before the message is in, or its first words are lost.
	notices, stop := s.listen(r.Context(), q.Stream, in.Session)
	defer stop()
	receipt, err := s.Backend.Receive(r.Context(), in)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	c := &chat{server: s, w: w, r: r, q: q, wait: wait, at: s.Now().Unix()}
	if receipt.Run == nil {
		w.Header().Set("X-GoClaw-Session", in.Session.String())
		c.id = "chatcmpl-" + uuid.NewString()
		c.known(goclaw.Outcome{Status: goclaw.StateCompleted, Reply: receipt.Reply, Replies: []string{receipt.Reply}})
		return
	}
	w.Header().Set("X-GoClaw-Session", receipt.Run.Session.String())
	w.Header().Set("X-GoClaw-Run", receipt.Run.ID)
	c.id = "chatcmpl-" + receipt.Run.ID
	if !q.Stream {
		out, err := s.Backend.Await(r.Context(), receipt.Run.ID, wait)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		c.known(out)
		return
	}
	c.follow(*receipt.Run, notices)
}

// listen subscribes to a session if its text is to be streamed.
func (s *server) listen(ctx context.Context, streamed bool, key goclaw.SessionKey) (<-chan goclaw.Notice, func()) {
	if !streamed {
		return nil, func() {}
	}
	return s.subscribe(ctx, func(n goclaw.Notice) bool { return n.Session == key || n.Kind == goclaw.NoticeLag })
}

// failed says why an outcome is no answer, or nil. The run is over: the same
// request would only do its work again, so clients are told not to.
func (c *chat) failed(out goclaw.Outcome) error {
	if out.Status == goclaw.StateCompleted {
		return nil
	}
	f := failure{Status: http.StatusInternalServerError, Code: "run_" + string(out.Status), Detail: "the run ended " + string(out.Status)}
	if out.Status == goclaw.StateTimeout {
		f.Status = http.StatusGatewayTimeout
	}
	if out.Error != "" {
		f.Detail += ": " + out.Error
	}
	return f
}

// known answers with an outcome that is known already.
func (c *chat) known(out goclaw.Outcome) {
	if c.q.Stream {
		st, err := c.begin()
		if err == nil {
			_ = c.finish(st, &shown{}, out) // fails only if the client is gone
		}
		return
	}
	if err := c.failed(out); err != nil {
		c.w.Header().Set("X-Should-Retry", "false")
		c.fail(c.w, c.r, err)
		return
	}
	text := out.Reply
	if c.wait {
		text = strings.Join(out.Replies, blank)
	}
	stop := "stop"
	writeJSON(c.w, http.StatusOK, chatAnswer{ID: c.id, Object: "chat.completion", Created: c.at, Model: c.q.Model, Usage: usageOf(out.Usage),
		Choices: []chatChoice{{Message: &chatOut{Role: "assistant", Content: &text}, FinishReason: &stop}}})
}

// begin sends the header of a stream and who speaks.
func (c *chat) begin() (*stream, error) {
	st, err := newStream(c.w)
	if err != nil {
		return nil, err
	}
	empty := ""
	return st, st.event("", c.chunk(chatOut{Role: "assistant", Content: &empty}, nil))
}

func (c *chat) chunk(delta chatOut, finish *string) chatAnswer {
	return chatAnswer{ID: c.id, Object: "chat.completion.chunk", Created: c.at, Model: c.q.Model,
		Choices: []chatChoice{{Delta: &delta, FinishReason: finish}}}
}

// say streams text, if there is any.
func (c *chat) say(st *stream, text string) error {
	if text == "" {
		return nil
	}
	return st.event("", c.chunk(chatOut{Content: &text}, nil))
}

// finish streams what of the outcome was not shown yet, and the end.
func (c *chat) finish(st *stream, sh *shown, out goclaw.Outcome) error {
	replies := []string{out.Reply}
	if c.wait {
		replies = out.Replies
	}
	if err := c.say(st, sh.rest(replies)); err != nil {
		return err
	}
	if err := c.failed(out); err != nil {
		return st.event("", asFailure(err).openAI())
	}
	stop := "stop"
	if err := st.event("", c.chunk(chatOut{}, &stop)); err != nil {
		return err
	}
	if c.q.StreamOptions.IncludeUsage {
		last := c.chunk(chatOut{}, nil)
		last.Choices, last.Usage = []chatChoice{}, usageOf(out.Usage)
		if err := st.event("", last); err != nil {
			return err
		}
	}
	return st.write([]byte("data: [DONE]\n\n"))
}

// ending is what Await returned.
type ending struct {
	out goclaw.Outcome
	err error
}

// await waits for the run beside the handler, until stop has returned.
func (c *chat) await(run string) (end <-chan ending, stop func()) {
	ctx, cancel := context.WithCancel(c.r.Context())
	ch, done := make(chan ending, 1), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { // here a panic would end the process, not the request
			if v := recover(); v != nil {
				c.Logger.Error("await panicked", "run", run, "panic", v, "stack", string(debug.Stack()))
				ch <- ending{err: fmt.Errorf("internal error; the gateway's log has the details")}
			}
		}()
		out, err := c.Backend.Await(ctx, run, c.wait)
		ch <- ending{out, err}
	}()
	return ch, func() { cancel(); <-done }
}

// follow streams a run's text as it comes, until its outcome is known.
func (c *chat) follow(run goclaw.Run, notices <-chan goclaw.Notice) {
	st, err := c.begin()
	if err != nil {
		return
	}
	awaited, stop := c.await(run.ID)
	defer stop()
	sh := &shown{wait: c.wait, tracked: map[string]bool{run.ID: true}}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	var end *ending
	var settled <-chan time.Time
	for err == nil && (end == nil || !sh.complete(end.out)) {
		select {
		case n, open := <-notices:
			if !open {
				notices = nil
				continue
			}
			err = c.say(st, sh.see(n))
		case e := <-awaited:
			end, awaited = &e, nil
			if e.err != nil {
				err = e.err
				break
			}
			settled = time.After(settle)
		case <-settled:
			sh.settled = true
		case <-ticker.C:
			err = st.alive()
		case <-c.r.Context().Done():
			err = c.r.Context().Err()
		}
	}
	switch {
	case c.r.Context().Err() != nil: // the client has gone, or the gateway stops
		err = st.event("", stopping().openAI())
	case end != nil && end.err != nil:
		c.Logger.Error("await failed", "run", run.ID, "error", end.err)
		err = st.event("", asFailure(end.err).openAI())
	case err == nil:
		err = c.finish(st, sh, end.out)
	}
	if err != nil {
		c.Logger.Debug("stream cut", "run", run.ID, "error", err)
	}
}

func (s *server) v1Routes() []route {
	headers := []openapi.Param{
		sessionKey("X-GoClaw-Session", "whose conversation it is; default: that of the field user, else a new one"),
		{Name: "X-GoClaw-Wait", Type: openapi.Flag, About: "hold the answer until the workers that it started are announced"},
		idempotencyKey(""),
	}
	answered := []openapi.Param{{Name: "X-GoClaw-Session", About: "the session"}, {Name: "X-GoClaw-Run", About: "the run"}}
	return []route{
		{pattern: "POST /v1/chat/completions", handle: s.chatCompletions, op: openapi.Operation{
			ID: "createChatCompletion", Tag: "openai", Summary: "OpenAI's chat completions, by an agent",
			Headers: headers, Body: chatRequest{},
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "the completion; with stream its chunks, and [DONE]", Body: chatAnswer{}, Headers: answered},
				{Status: http.StatusOK, Media: "text/event-stream", Events: []openapi.Event{{About: "a chunk, or an error", Body: chatAnswer{}}}},
			},
			Errors: []int{http.StatusNotFound, http.StatusGatewayTimeout},
		}},
		{pattern: "GET /v1/models", handle: s.models, op: openapi.Operation{
			ID: "listModels", Tag: "openai", Summary: "The agents, as models", Answers: ok("the models", chatModels{}),
		}},
		{pattern: "GET /v1/models/{model...}", handle: s.model, op: openapi.Operation{
			ID: "getModel", Tag: "openai", Summary: "One agent, as a model", Path: []openapi.Param{{Name: "model", About: "goclaw or goclaw/AGENT"}},
			Answers: ok("the model", chatModel{}), Errors: []int{http.StatusNotFound},
		}},
	}
}

// chatModels is the list of them.
type chatModels struct {
	Object string      `json:"object"`
	Data   []chatModel `json:"data"`
}

// chatModel is one entry of /v1/models.
type chatModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (s *server) modelNamed(id string) chatModel {
	return chatModel{ID: id, Object: "model", Created: s.started.Unix(), OwnedBy: "goclaw"}
}

func (s *server) models(w http.ResponseWriter, _ *http.Request) {
	data := []chatModel{s.modelNamed("goclaw")}
	for _, agent := range s.Agents {
		data = append(data, s.modelNamed("goclaw/"+agent))
	}
	writeJSON(w, http.StatusOK, chatModels{Object: "list", Data: data})
}

func (s *server) model(w http.ResponseWriter, r *http.Request) {
	id := given(r).Text("model")
	_, _, err := s.agentOf(id)
	s.reply(w, r, s.modelNamed(id), err)
}
