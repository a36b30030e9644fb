package web

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"goclaw"
)

// chatUsage is goclaw.Usage in the terms of chat completions.
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
	Index        int         `json:"index"`
	Message      *chatOutput `json:"message,omitempty"`
	Delta        *chatDelta  `json:"delta,omitempty"`
	FinishReason *string     `json:"finish_reason"`
}

// chatOutput is a whole message: its content is null if there are only calls.
type chatOutput struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

// chat words an answer as a chat completion.
type chat struct {
	id    string
	at    int64
	model string
	usage bool // a stream ends with it
}

func (s *server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	body, q, err := s.readChat(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.ask(w, r, q, false, func(t turn) wording {
		c := &chat{id: "chatcmpl-" + t.run.ID, at: s.Now().Unix(), model: q.model, usage: body.StreamOptions.IncludeUsage}
		if t.run.ID == "" {
			c.id += uuid.NewString()
		}
		return c
	})
}

func (c *chat) whole(a said) (int, any) {
	if f := a.failed(); f != nil {
		return f.Status, f.openAI()
	}
	text := strings.Join(a.replies, blank)
	out := &chatOutput{Role: "assistant", Content: &text}
	if len(a.calls) > 0 && text == "" {
		out.Content = nil
	}
	for _, call := range a.calls {
		out.ToolCalls = append(out.ToolCalls, chatCall{ID: call.ID, Type: "function", Function: chatCalled{call.Name, call.Arguments}})
	}
	return http.StatusOK, chatAnswer{ID: c.id, Object: "chat.completion", Created: c.at, Model: c.model, Usage: usageOf(a.usage),
		Choices: []chatChoice{{Message: out, FinishReason: finished(a)}}}
}

// finished is why the answer ends.
func finished(a said) *string {
	why := "stop"
	switch {
	case len(a.calls) > 0:
		why = "tool_calls"
	case a.cut:
		why = "length"
	}
	return &why
}

func (c *chat) begin(st *stream) error {
	empty := ""
	return st.event("", c.chunk(chatDelta{Role: "assistant", Content: &empty}, nil))
}

func (c *chat) chunk(delta chatDelta, finish *string) chatAnswer {
	return chatAnswer{ID: c.id, Object: "chat.completion.chunk", Created: c.at, Model: c.model,
		Choices: []chatChoice{{Delta: &delta, FinishReason: finish}}}
}

func (c *chat) say(st *stream, text string) error {
	return st.event("", c.chunk(chatDelta{Content: &text}, nil))
}

func (c *chat) end(st *stream, a said) error {
	if f := a.failed(); f != nil {
		return c.broken(st, *f)
	}
	for i, call := range a.calls {
		head := chatCall{Index: &i, ID: call.ID, Type: "function", Function: chatCalled{Name: call.Name}}
		rest := chatCall{Index: &i, Function: chatCalled{Arguments: call.Arguments}}
		for _, piece := range []chatCall{head, rest} {
			if err := st.event("", c.chunk(chatDelta{ToolCalls: []chatCall{piece}}, nil)); err != nil {
				return err
			}
		}
	}
	if err := st.event("", c.chunk(chatDelta{}, finished(a))); err != nil {
		return err
	}
	if c.usage {
		last := c.chunk(chatDelta{}, nil)
		last.Choices, last.Usage = []chatChoice{}, usageOf(a.usage)
		if err := st.event("", last); err != nil {
			return err
		}
	}
	return st.write([]byte("data: [DONE]\n\n"))
}

func (c *chat) broken(st *stream, f failure) error { return st.event("", f.openAI()) }
