package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"goclaw"
)

// sdk is the official client, pointed at h.
func sdk(t *testing.T, h http.Handler) openai.Client {
	srv := serve(t, h)
	return openai.NewClient(option.WithBaseURL(srv.URL+"/v1"), option.WithAPIKey(token), option.WithHTTPClient(srv.Client()))
}

func say(key goclaw.SessionKey, run, text string) goclaw.Notice {
	return goclaw.Notice{Kind: goclaw.NoticeText, Session: key, RunID: run, Text: text}
}

func ended(r goclaw.Run, result string) goclaw.Notice {
	r.State, r.Result = goclaw.StateCompleted, result
	return goclaw.Notice{Kind: goclaw.NoticeRun, Session: r.Session, RunID: r.ID, Run: &r}
}

// scripted makes f publish the notices of a turn once its message is in, and
// end it with out.
func scripted(f *fake, out goclaw.Outcome, notices func(goclaw.Run) []goclaw.Notice) {
	f.receive = func(_ context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
		r := goclaw.Run{ID: "run-1", Session: in.Session, Trigger: goclaw.TriggerUser}
		f.publish(notices(r)...)
		return goclaw.Receipt{Run: &r}, nil
	}
	f.await = func(context.Context, string, bool) (goclaw.Outcome, error) { return out, nil }
}

var answer = goclaw.Outcome{Status: goclaw.StateCompleted, Reply: "Hello there", Replies: []string{"Hello there"}, Turns: 1,
	Usage: goclaw.Usage{Input: 100, Output: 5, CacheRead: 80}}

func TestCompletion(t *testing.T) {
	f := &fake{}
	scripted(f, answer, func(goclaw.Run) []goclaw.Notice { return nil })
	var res *http.Response
	c := sdk(t, gateway(f))
	got, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model:       "goclaw/coder",
		User:        param.NewOpt("a:nn"),
		Temperature: param.NewOpt(0.3),
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{openai.TextContentPart("one"), openai.TextContentPart("two")}),
			openai.UserMessage("three"),
		},
	}, option.WithHeader("Idempotency-Key", "k1"), option.WithResponseInto(&res))
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Choices[0]; m.Message.Content != "Hello there" || m.FinishReason != "stop" || m.Message.Role != "assistant" {
		t.Errorf("%+v", m)
	}
	if got.ID != "chatcmpl-run-1" || got.Model != "goclaw/coder" || got.Created != 1700000000 || got.Object != "chat.completion" {
		t.Errorf("%+v", got)
	}
	if u := got.Usage; u.PromptTokens != 100 || u.CompletionTokens != 5 || u.TotalTokens != 105 || u.PromptTokensDetails.CachedTokens != 80 {
		t.Errorf("%+v", u)
	}
	if res.Header.Get("X-GoClaw-Session") != "agent:coder:api:user:a%3Ann" || res.Header.Get("X-GoClaw-Run") != "run-1" {
		t.Errorf("%v", res.Header)
	}
	want := []goclaw.Inbound{{Session: goclaw.APIKey("coder", "a:nn"), Text: "one\ntwo\n\nthree", Sender: "a:nn", Key: "k1", Digest: f.received[0].Digest}}
	if diff := cmp.Diff(want, f.received); diff != "" {
		t.Error(diff)
	}
}

func TestCompletionStream(t *testing.T) {
	for _, usage := range []bool{false, true} {
		f := &fake{}
		scripted(f, answer, func(r goclaw.Run) []goclaw.Notice {
			return []goclaw.Notice{say(r.Session, "another", "no"), say(r.Session, r.ID, "Hello"), say(mainKey, r.ID, "no"), say(r.Session, r.ID, " there"), ended(r, "Hello there")}
		})
		c := sdk(t, gateway(f))
		params := openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
		if usage {
			params.StreamOptions.IncludeUsage = param.NewOpt(true)
		}
		s := c.Chat.Completions.NewStreaming(t.Context(), params)
		var acc openai.ChatCompletionAccumulator
		var pieces []string
		for s.Next() {
			chunk := s.Current()
			if !acc.AddChunk(chunk) {
				t.Errorf("chunk does not fit: %+v", chunk)
			}
			if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
				pieces = append(pieces, chunk.Choices[0].Delta.Content)
			}
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"Hello", " there"}, pieces); diff != "" {
			t.Error(diff)
		}
		if m := acc.Choices[0]; m.Message.Content != "Hello there" || m.FinishReason != "stop" {
			t.Errorf("%+v", m)
		}
		if got := acc.Usage.TotalTokens; usage != (got == 105) {
			t.Errorf("usage %v: %d tokens", usage, got)
		}
	}
}

// slowWriter is a client that takes a second for each piece.
type slowWriter struct{ *httptest.ResponseRecorder }

func (w slowWriter) Write(b []byte) (int, error) {
	<-time.After(time.Second)
	return w.ResponseRecorder.Write(b)
}

// TestSlowStreamIsWhole: what was said before the outcome was known is told
// first, however slowly the client reads.
func TestSlowStreamIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var words []string
		f := &fake{}
		scripted(f, answer, func(r goclaw.Run) (all []goclaw.Notice) {
			for i := range 20 {
				words = append(words, fmt.Sprintf("word%d ", i))
				all = append(all, say(r.Session, r.ID, words[i]))
			}
			return append(all, goclaw.Notice{Kind: goclaw.NoticeUsage, Session: r.Session, RunID: r.ID},
				say(r.Session, r.ID, "Hello there"), ended(r, "Hello there"))
		})
		r := request("POST", "/v1/chat/completions", `{"model":"goclaw","stream":true,"messages":[{"role":"user","content":"hi"}]}`, nil)
		w := slowWriter{httptest.NewRecorder()}
		gateway(f).ServeHTTP(w, r.WithContext(t.Context()))
		for _, word := range append(words, "Hello there") {
			if !strings.Contains(w.Body.String(), word+`"`) {
				t.Fatalf("no %q in:\n%s", word, w.Body)
			}
		}
	})
}

// TestStreamIsLive publishes each piece only after the one before has arrived.
func TestStreamIsLive(t *testing.T) {
	f, release := &fake{}, make(chan struct{})
	f.await = func(ctx context.Context, _ string, _ bool) (goclaw.Outcome, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return goclaw.Outcome{}, ctx.Err()
		}
		return answer, nil
	}
	key := goclaw.APIKey("main", "u")
	c := sdk(t, gateway(f))
	s := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "goclaw", User: param.NewOpt("u"), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
	defer s.Close()
	next := func(want string) {
		t.Helper()
		if !s.Next() || s.Current().Choices[0].Delta.Content != want {
			t.Fatalf("want %q, got %+v, %v", want, s.Current(), s.Err())
		}
	}
	next("")
	for _, piece := range []string{"Hello", " there"} {
		f.publish(say(key, "run-1", piece))
		next(piece)
	}
	close(release)
	for s.Next() {
		if text := s.Current().Choices[0].Delta.Content; text != "" {
			t.Errorf("more text: %q", text)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

func TestWaitingCarriesTheWorkersAnnouncement(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		f := &fake{}
		out := answer
		out.Reply, out.Replies, out.Turns = "It says 42.", []string{"I asked.", "It says 42."}, 2
		scripted(f, out, func(r goclaw.Run) []goclaw.Notice {
			news := goclaw.Run{ID: "run-2", Session: r.Session, Trigger: goclaw.TriggerAnnouncement}
			return []goclaw.Notice{say(r.Session, r.ID, "I asked."), ended(r, "I asked."), ended(news, "It says 42.")}
		})
		body := fmt.Sprintf(`{"model":"goclaw","stream":%v,"messages":[{"role":"user","content":"ask"}]}`, streamed)
		w := ask(gateway(f), "POST", "/v1/chat/completions", body, map[string]string{"X-GoClaw-Wait": "true"})
		want := `"content":"I asked.\n\nIt says 42."`
		if streamed {
			want = `"content":"\n\nIt says 42."`
		}
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

func TestSessionAndInputOfACompletion(t *testing.T) {
	const (
		first  = `{"role":"user","content":"first"}`
		reply  = `{"role":"assistant","content":"answer"}`
		second = `{"role":"user","content":"second"}`
		rules  = `{"role":"system","content":"be brief"}`
	)
	earlier := "[Earlier conversation, as the client sent it]\nsystem: be brief\nuser: first\nassistant: answer\n[End of the earlier conversation]\n\nsecond"
	known := goclaw.APIKey("main", "known")
	for _, tc := range []struct {
		name, fields, header, messages string
		session                        string // "" is a one-off
		text                           string
	}{
		{"one-off", "", "", first, "", "first"},
		{"one-off with a past", "", "", rules + "," + first + "," + reply + "," + second, "", earlier},
		{"new session with a past", `,"user":"new"`, "", rules + "," + first + "," + reply + "," + second, "agent:main:api:user:new", earlier},
		{"known session", `,"user":"known"`, "", rules + "," + first + "," + reply + "," + second, "agent:main:api:user:known", "second"},
		{"by header", `,"user":"known"`, "agent:coder:main", second, "agent:coder:main", "second"},
		{"tool calls of the past", "", "", `{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"assistant","content":"a"},` + second, "",
			"[Earlier conversation, as the client sent it]\nuser: q\nassistant: [called f as 1: {}]\ntool 1: r\nassistant: a\n[End of the earlier conversation]\n\nsecond"},
	} {
		f := &fake{runs: func(q goclaw.RunFilter) []goclaw.Run {
			if q.Session == known && q.Limit == 1 {
				return []goclaw.Run{{ID: "old"}}
			}
			return nil
		}}
		w := ask(gateway(f), "POST", "/v1/chat/completions", `{"model":"goclaw"`+tc.fields+`,"messages":[`+tc.messages+`]}`, map[string]string{"X-GoClaw-Session": tc.header})
		if w.Code != 200 {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
			continue
		}
		in := f.received[0]
		oneOff := in.Session.Kind == goclaw.KindAPI && strings.HasPrefix(in.Session.Peer, "req-")
		if tc.session == "" && !oneOff || tc.session != "" && in.Session.String() != tc.session {
			t.Errorf("%s: session %s", tc.name, in.Session)
		}
		if diff := cmp.Diff(tc.text, in.Text); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if got := w.Header().Get("X-GoClaw-Session"); got != in.Session.String() {
			t.Errorf("%s: header %s", tc.name, got)
		}
	}
}

func TestCompletionsThatAreRefused(t *testing.T) {
	h := gateway(&fake{})
	const messages = `"messages":[{"role":"user","content":"x"}]`
	for _, tc := range []struct {
		body, header string
		status       int
		says         string
	}{
		{`{"model":"gpt-5",` + messages + `}`, "", 404, "model_not_found"},
		{`{"model":"goclaw/nobody",` + messages + `}`, "", 404, "model_not_found"},
		{`{` + messages + `}`, "", 404, "model_not_found"},
		{`{"model":"goclaw"}`, "", 400, "required"},
		{`{"model":"goclaw","temprature":1,` + messages + `}`, "", 400, `unknown field \"temprature\"`},
		{`{"model":"goclaw","tools":[{"type":"function"}],` + messages + `}`, "", 400, "needs its"},
		{`{"model":"goclaw","tools":[{"type":"function","function":{}}],` + messages + `}`, "", 400, "needs a name"},
		{`{"model":"goclaw","tools":[{"type":"function","function":{"name":"f","params":{}}}],` + messages + `}`, "", 400, `unknown field \"params\"`},
		{`{"model":"goclaw","tools":[{"type":"custom","custom":{"name":"f"}}],` + messages + `}`, "", 400, `type \"custom\"`},
		{`{"model":"goclaw","tool_choice":"required",` + messages + `}`, "", 400, "not in "},
		{`{"model":"goclaw","tool_choice":{"type":"custom","custom":{"name":"f"}},` + messages + `}`, "", 400, `\"custom\" is not available`},
		{`{"model":"goclaw","tool_choice":5,` + messages + `}`, "", 400, "unreadable tool_choice"},
		{`{"model":"goclaw","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}},` + messages + `}`,
			"", 400, `allowed_tools names \"f\"`},
		{`{"model":"goclaw","tool_choice":{"type":"function","function":{"name":"f"}},` + messages + `}`, "", 400, "not in "},
		{`{"model":"goclaw","functions":[{}],` + messages + `}`, "", 400, "replaced by tools"},
		{`{"model":"goclaw","messages":[{"role":"function","name":"f","content":"y"}]}`, "", 400, "replaced by role tool"},
		{`{"model":"goclaw","n":2,` + messages + `}`, "", 400, "one choice"},
		{`{"model":"goclaw","logprobs":true,` + messages + `}`, "", 400, "log probabilities"},
		{`{"model":"goclaw","modalities":["audio"],` + messages + `}`, "", 400, "only text"},
		{`{"model":"goclaw","response_format":{"type":"grammar"},` + messages + `}`, "", 400, "response_format"},
		{`{"model":"goclaw","response_format":{"type":"json_schema","json_schema":{"name":"x"}},` + messages + `}`, "", 400, "needs its"},
		{`{"model":"goclaw","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "", 400, `\"image_url\" are not accepted`},
		{`{"model":"goclaw","messages":[{"role":"user","content":5}]}`, "", 400, "number"},
		{`{"model":"goclaw","messages":[{"role":"user","content":" "}]}`, "", 400, "no new text"},
		{`{"model":"goclaw","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, "", 400, "no new text"},
		{`{"model":"goclaw","messages":[{"role":"user","content":"x"},{"role":"tool","content":"y"}]}`, "", 400, "tool_call_id"},
		{`{"model":"goclaw","messages":[{"role":"robot","content":"x"}]}`, "", 400, "robot"},
		{`{"model":"goclaw/coder",` + messages + `}`, "agent:main:main", 400, "not of the agent"},
		{`{"model":"goclaw",` + messages + `}`, "main", 400, "X-GoClaw-Session"},
	} {
		w := ask(h, "POST", "/v1/chat/completions", tc.body, map[string]string{"X-GoClaw-Session": tc.header})
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s: %d %s; want %d with %q", tc.body, w.Code, w.Body, tc.status, tc.says)
		}
		checkErrorShape(t, "/v1/chat/completions", w)
	}
	for wait, fields := range map[string]string{"maybe": "", "true": `"response_format":{"type":"json_object"},`} {
		w := ask(h, "POST", "/v1/chat/completions", `{"model":"goclaw",`+fields+messages+`}`, map[string]string{"X-GoClaw-Wait": wait})
		if w.Code != 400 || !strings.Contains(w.Body.String(), "X-GoClaw-Wait") {
			t.Errorf("X-GoClaw-Wait: %d %s", w.Code, w.Body)
		}
	}
}

func TestFailedRunIsAnError(t *testing.T) {
	messages := []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}
	for state, status := range map[goclaw.RunState]int{goclaw.StateFailed: 500, goclaw.StateCancelled: 500, goclaw.StateTimeout: 504} {
		f := &fake{}
		scripted(f, goclaw.Outcome{Status: state, Error: "out of luck", Turns: 1}, func(r goclaw.Run) []goclaw.Notice {
			return []goclaw.Notice{say(r.Session, r.ID, "Hel")}
		})
		c := sdk(t, gateway(f))
		_, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "goclaw", Messages: messages})
		if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != status || e.Code != "run_"+string(state) || !strings.Contains(e.Message, "out of luck") {
			t.Errorf("%s: %v", state, err)
		}
		if len(f.received) != 1 {
			t.Errorf("%s: sent %d times", state, len(f.received))
		}
		s := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "goclaw", Messages: messages})
		for s.Next() {
			if s.Current().Choices[0].FinishReason != "" {
				t.Error("a failed stream looks finished")
			}
		}
		if s.Err() == nil || !strings.Contains(s.Err().Error(), "out of luck") {
			t.Errorf("%s: %v", state, s.Err())
		}
	}
}

func TestSlashCommandIsAnsweredAtOnce(t *testing.T) {
	f := &fake{receive: func(context.Context, goclaw.Inbound) (goclaw.Receipt, error) {
		return goclaw.Receipt{Reply: "all well"}, nil
	}}
	c := sdk(t, gateway(f))
	params := openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("/status")}}
	got, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil || got.Choices[0].Message.Content != "all well" {
		t.Errorf("%+v, %v", got, err)
	}
	s := c.Chat.Completions.NewStreaming(t.Context(), params)
	var text string
	for s.Next() {
		text += s.Current().Choices[0].Delta.Content
	}
	if s.Err() != nil || text != "all well" {
		t.Errorf("%q, %v", text, s.Err())
	}
}

// TestClientThatLeavesCancelsNothing also shows that its handler ends.
func TestClientThatLeavesCancelsNothing(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		entered, left := make(chan struct{}), make(chan struct{})
		f := &fake{await: func(ctx context.Context, _ string, _ bool) (goclaw.Outcome, error) {
			defer close(left)
			close(entered)
			<-ctx.Done()
			return goclaw.Outcome{}, ctx.Err()
		}}
		c := sdk(t, gateway(f))
		ctx, cancel := context.WithCancel(t.Context())
		params := openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
		go func() {
			<-entered
			cancel()
		}()
		if streamed {
			s := c.Chat.Completions.NewStreaming(ctx, params)
			for s.Next() { //nolint:revive // until the context ends
			}
			if s.Err() == nil {
				t.Error("a cut stream looks complete")
			}
		} else if _, err := c.Chat.Completions.New(ctx, params); err == nil {
			t.Error("no error")
		}
		<-left
		if len(f.asked) != 0 {
			t.Errorf("asked for %v", f.asked)
		}
	}
}

func TestAwaitThatPanicsEndsOneStreamOnly(t *testing.T) {
	f := &fake{await: func(context.Context, string, bool) (goclaw.Outcome, error) { panic("the secret plan") }}
	const body = `{"model":"goclaw","stream":true,"messages":[{"role":"user","content":"x"}]}`
	w := ask(gateway(f), "POST", "/v1/chat/completions", body, nil)
	if got := w.Body.String(); !strings.Contains(got, `"server_error"`) || strings.Contains(got, "secret") || strings.Contains(got, "[DONE]") {
		t.Error(got)
	}
}

func TestModels(t *testing.T) {
	c := sdk(t, gateway(&fake{}))
	page, err := c.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range page.Data {
		ids = append(ids, m.ID)
	}
	if diff := cmp.Diff([]string{"goclaw", "goclaw/main", "goclaw/coder"}, ids); diff != "" {
		t.Error(diff)
	}
	if m, err := c.Models.Get(t.Context(), "goclaw/coder"); err != nil || m.ID != "goclaw/coder" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.Models.Get(t.Context(), "gpt-5"); err == nil {
		t.Error("no error")
	}
}
