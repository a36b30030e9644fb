package web_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"goclaw"
)

// toolu is an id as Anthropic makes them; it has as many characters as fit.
const toolu = "toolu_01A09q90qw90lq917835lq9a"

func chatParams(messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "goclaw", Messages: messages,
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "look", Description: param.NewOpt("Looks."), Parameters: lookSchema,
		})},
	}
}

// complete makes a completion, streamed or not, and checks what a stream is made
// of by the client's own accumulator.
func complete(t *testing.T, c openai.Client, streamed bool, p openai.ChatCompletionNewParams, opts ...option.RequestOption) openai.ChatCompletion {
	t.Helper()
	if !streamed {
		got, err := c.Chat.Completions.New(t.Context(), p, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return *got
	}
	p.StreamOptions.IncludeUsage = param.NewOpt(true)
	s := c.Chat.Completions.NewStreaming(t.Context(), p, opts...)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Errorf("chunk does not fit: %s", s.Current().RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return acc.ChatCompletion
}

var clientID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// TestChatToolLoop goes the ordinary, stateless way: every request carries the
// whole conversation, and nothing but the ids of the calls leads back.
func TestChatToolLoop(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		l := newLoop(
			[]goclaw.ToolCall{look(toolu, `{"at":"a"}`), look("call:1 ü", `{"at":"b"}`)},
			[]goclaw.ToolCall{look(toolu, `{"at":"c"}`)},
		)
		c := sdk(t, gateway(l.fake))
		messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage("look around")}
		var ids []string
		for round, calls := range []int{2, 1} {
			got := complete(t, c, streamed, chatParams(messages...))
			m := got.Choices[0]
			if m.FinishReason != "tool_calls" || m.Message.Content != fmt.Sprintf("Round %d.", round+1) || len(m.Message.ToolCalls) != calls {
				t.Fatalf("%+v", m)
			}
			if got.Usage.TotalTokens != 11 {
				t.Errorf("round %d: usage %+v", round, got.Usage)
			}
			messages = append(messages, m.Message.ToParam())
			for _, call := range m.Message.ToolCalls {
				ids = append(ids, call.ID)
				messages = append(messages, openai.ToolMessage("saw "+call.Function.Arguments, call.ID))
			}
		}
		got := complete(t, c, streamed, chatParams(messages...))
		if m := got.Choices[0]; m.FinishReason != "stop" || m.Message.Content != `I got saw {"at":"a"}, saw {"at":"b"}, saw {"at":"c"}` || len(m.Message.ToolCalls) != 0 {
			t.Errorf("%+v", m)
		}
		if got.ID != "chatcmpl-"+loopRun || got.Usage.TotalTokens != 11 {
			t.Errorf("%s %+v", got.ID, got.Usage)
		}
		for i, id := range ids {
			if !clientID.MatchString(id) || strings.HasSuffix(id, toolu) != (i != 1) {
				t.Errorf("id %q of %d characters", id, len(id))
			}
		}
		if len(l.received) != 1 {
			t.Fatalf("%d turns", len(l.received))
		}
		if err := offers(l.received[0].Caller); err != nil {
			t.Error(err)
		}
		// The same results again, after all is over: the answer again.
		if again := complete(t, c, streamed, chatParams(messages...)); again.Choices[0].Message.Content != got.Choices[0].Message.Content || len(l.received) != 1 {
			t.Errorf("%+v; %d turns", again.Choices[0].Message, len(l.received))
		}
	}
}

func TestOneCallAtATime(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		l := newLoop([]goclaw.ToolCall{look("1", `{"at":"a"}`), look("2", `{"at":"b"}`)})
		c := sdk(t, gateway(l.fake))
		p := chatParams(openai.UserMessage("look"))
		p.ParallelToolCalls = param.NewOpt(false)
		m := complete(t, c, streamed, p).Choices[0].Message
		if len(m.ToolCalls) != 1 {
			t.Fatalf("%+v", m.ToolCalls)
		}
		p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("saw a", m.ToolCalls[0].ID))
		got := complete(t, c, streamed, p).Choices[0].Message.Content
		if !strings.HasPrefix(got, "I got saw a, This call was not made") {
			t.Error(got)
		}
	}
}

// TestResultsThatLeadNowhere begin a new turn with all that the client said:
// nothing of it is lost silently.
func TestResultsThatLeadNowhere(t *testing.T) {
	const other = "call_d5so42cr5k8t30f0018b8l23f0_1_x" // of another home
	for _, tc := range []struct {
		name    string
		user    string
		id      string // "" is the call's own
		content string
		more    string // the user says besides
		change  func(*loop, *openai.ChatCompletionNewParams)
		session string // "same" is the loop's
		text    []string
	}{
		{name: "other home", id: other, session: "new",
			text: []string{"user: look\nassistant: Round 1.\n[called look as " + other + ": {}]\ntool " + other + ": saw", "go on from there"}},
		{name: "no id of a goclaw", id: "call_1", session: "new", text: []string{"tool call_1: saw"}},
		{name: "ended", session: "new", change: func(l *loop, _ *openai.ChatCompletionNewParams) { l.end(goclaw.StateCancelled, "no") },
			text: []string{"[Earlier conversation, as the client sent it]\nuser: look\nassistant: Round 1.", ": saw", "go on from there"}},
		{name: "ended, in a session", user: "u", session: "same", change: func(l *loop, _ *openai.ChatCompletionNewParams) { l.end(goclaw.StateFailed, "no") },
			text: []string{"[Results of tool calls, as the client sent them]\nassistant: Round 1.\n[called look as", ": saw", "go on from there"}},
		{name: "with new text", more: "and now?", session: "same",
			text: []string{"[Results of tool calls, as the client sent them]\nassistant: Round 1.\n[called look as", ": saw\n[End of the results]\n\nand now?"}},
		{name: "other tools", session: "same", change: func(_ *loop, p *openai.ChatCompletionNewParams) { p.Tools = nil },
			text: []string{": saw", "go on from there"}},
		{name: "tools no more", session: "same", change: func(_ *loop, p *openai.ChatCompletionNewParams) {
			p.ToolChoice.OfAuto = param.NewOpt("none")
		}, text: []string{": saw", "go on from there"}},
		{name: "another agent", session: "new", change: func(_ *loop, p *openai.ChatCompletionNewParams) { p.Model = "goclaw/coder" },
			text: []string{"[Earlier conversation", ": saw"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLoop([]goclaw.ToolCall{look("1", `{}`)})
			c := sdk(t, gateway(l.fake))
			p := chatParams(openai.UserMessage("look"))
			if tc.user != "" {
				p.User = param.NewOpt(tc.user)
			}
			m := complete(t, c, false, p).Choices[0].Message
			if tc.id != "" {
				m.ToolCalls[0].ID = tc.id
			}
			p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("saw", m.ToolCalls[0].ID))
			if tc.more != "" {
				p.Messages = append(p.Messages, openai.UserMessage(tc.more))
			}
			if tc.change != nil {
				tc.change(l, &p)
			}
			complete(t, c, false, p)
			if len(l.received) != 2 {
				t.Fatalf("%d turns", len(l.received))
			}
			first, second := l.received[0], l.received[1]
			if same := first.Session == second.Session; same != (tc.session == "same") {
				t.Errorf("sessions %s and %s", first.Session, second.Session)
			}
			for _, want := range tc.text {
				if !strings.Contains(second.Text, want) {
					t.Errorf("no %q in:\n%s", want, second.Text)
				}
			}
		})
	}
}

func TestMissingResultIsRefused(t *testing.T) {
	l := newLoop([]goclaw.ToolCall{look("1", `{}`), look("2", `{}`)})
	h := gateway(l.fake)
	c := sdk(t, h)
	p := chatParams(openai.UserMessage("look"))
	m := complete(t, c, false, p).Choices[0].Message
	p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("saw", m.ToolCalls[0].ID))
	_, err := c.Chat.Completions.New(t.Context(), p)
	e, ok := errors.AsType[*openai.Error](err)
	if !ok || e.StatusCode != 400 || e.Param != "messages" || !strings.Contains(e.Message, "missing for "+m.ToolCalls[1].ID) {
		t.Error(err)
	}
}

func TestRetriedRequestKeepsItsSession(t *testing.T) {
	f := &fake{}
	h := gateway(f)
	for range 2 {
		ask(h, "POST", "/v1/chat/completions", `{"model":"goclaw","messages":[{"role":"user","content":"x"}]}`, map[string]string{"Idempotency-Key": "k"})
	}
	if diff := cmp.Diff(f.received[0], f.received[1]); diff != "" {
		t.Error(diff)
	}
}
