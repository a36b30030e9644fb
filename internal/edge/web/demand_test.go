package web_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"goclaw"
)

// TestToolChoice: what tool_choice makes of the tools, in the words of both APIs.
func TestToolChoice(t *testing.T) {
	for _, tc := range []struct {
		chat, responses string
		offered, must   []string
	}{
		{`null`, `null`, []string{"a", "b"}, nil},
		{`"auto"`, `"auto"`, []string{"a", "b"}, nil},
		{`"none"`, `"none"`, nil, nil},
		{`"required"`, `"required"`, []string{"a", "b"}, []string{"a", "b"}},
		{`{"type":"function","function":{"name":"b"}}`, `{"type":"function","name":"b"}`, []string{"a", "b"}, []string{"b"}},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"b"}}]}}`,
			`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"b"}]}`, []string{"b"}, nil},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"a"}}]}}`,
			`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"}]}`, []string{"a"}, []string{"a"}},
	} {
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"goclaw","messages":[{"role":"user","content":"x"}],"tool_choice":` + tc.chat +
				`,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]}`,
			"/v1/responses": `{"model":"goclaw","input":"x","tool_choice":` + tc.responses +
				`,"tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]}`,
		} {
			f := &fake{}
			if w := ask(gateway(f), "POST", path, body, nil); w.Code != 200 {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
				continue
			}
			var offered []string
			for _, tool := range f.received[0].Caller {
				offered = append(offered, tool.Name)
			}
			if !slices.Equal(offered, tc.offered) || !slices.Equal(f.received[0].MustCall, tc.must) {
				t.Errorf("%s %s: offered %v, must call %v", path, tc.chat, offered, f.received[0].MustCall)
			}
		}
	}
}

// TestRequiredAgain: a request that brings results and requires a call once more
// is a turn of its own, which the requirement holds for.
func TestRequiredAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		l := newLoop([]goclaw.ToolCall{look("1", `{"at":"a"}`)})
		c := sdk(t, gateway(l.fake))
		p := chatParams(openai.UserMessage("look"))
		p.ToolChoice.OfAuto = openai.String("required")
		m := complete(t, c, false, p).Choices[0].Message
		p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("saw a", m.ToolCalls[0].ID))
		if !again {
			p.ToolChoice.OfAuto = openai.String("auto")
		}
		complete(t, c, false, p)
		if turns := len(l.received); (turns == 2) != again {
			t.Errorf("required again: %v; %d turns", again, turns)
		}
		if last := l.received[len(l.received)-1]; !slices.Equal(last.MustCall, []string{"look"}) {
			t.Errorf("must call %v", last.MustCall)
		}
	}
}

const person = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`

// TestAnswerOfAForm: the schema goes to the agent, the answer is JSON, and a
// stream shows nothing that might be sent back for its form.
func TestAnswerOfAForm(t *testing.T) {
	const said = `{"name":"Ann"}`
	for _, streamed := range []bool{false, true} {
		f := &fake{}
		scripted(f, goclaw.Outcome{Status: goclaw.StateCompleted, Reply: said, Replies: []string{said}, Turns: 1}, func(r goclaw.Run) []goclaw.Notice {
			return []goclaw.Notice{say(r.Session, r.ID, "Her name is Ann."), ended(r, said)}
		})
		c := sdk(t, gateway(f))
		got := complete(t, c, streamed, openai.ChatCompletionNewParams{
			Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("who?")},
			ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Strict: openai.Bool(true), Schema: json.RawMessage(person)}}},
		})
		if got.Choices[0].Message.Content != said || got.Choices[0].FinishReason != "stop" {
			t.Errorf("%+v", got.Choices[0])
		}
		object := openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("who?")}}
		object.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
		complete(t, c, streamed, object)

		p := responses.ResponseNewParams{Model: "goclaw"}
		p.Input.OfString = openai.String("who?")
		p.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "person", Schema: map[string]any{"type": "object"}}
		r := respond(t, c, streamed, p)
		if r.OutputText() != said || r.Text.Format.Type != "json_schema" || r.Text.Format.Name != "person" {
			t.Errorf("%s", r.RawJSON())
		}
		var schemas []string
		for _, in := range f.received {
			schemas = append(schemas, string(in.OutputSchema))
		}
		if diff := cmp.Diff([]string{person, `{"type":"object"}`, `{"type":"object"}`}, schemas); diff != "" {
			t.Error(diff)
		}
	}
}

// TestAnswerOfAnotherForm: results that come with another form than the run
// began with are a new turn.
func TestAnswerOfAnotherForm(t *testing.T) {
	l := newLoop([]goclaw.ToolCall{look("1", `{"at":"a"}`)})
	c := sdk(t, gateway(l.fake))
	p := chatParams(openai.UserMessage("look"))
	m := complete(t, c, false, p).Choices[0].Message
	p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("saw a", m.ToolCalls[0].ID))
	p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	complete(t, c, false, p)
	if len(l.received) != 2 {
		t.Errorf("%d turns", len(l.received))
	}
}

// TestCutAnswers: an answer that ends at the model's limit says so.
func TestCutAnswers(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		f := &fake{}
		scripted(f, goclaw.Outcome{Status: goclaw.StateCompleted, Reply: "Once", Replies: []string{"Once"}, Turns: 1, Cut: true}, func(r goclaw.Run) []goclaw.Notice {
			return []goclaw.Notice{say(r.Session, r.ID, "Once"), ended(r, "Once")}
		})
		c := sdk(t, gateway(f))
		got := complete(t, c, streamed, openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("tell")}})
		if got.Choices[0].FinishReason != "length" {
			t.Errorf("%+v", got.Choices[0])
		}
		p := responses.ResponseNewParams{Model: "goclaw"}
		p.Input.OfString = openai.String("tell")
		r := respond(t, c, streamed, p)
		if r.Status != "incomplete" || r.IncompleteDetails.Reason != "max_output_tokens" || r.OutputText() != "Once" {
			t.Errorf("%s", r.RawJSON())
		}
	}
	run := goclaw.Run{ID: "run-1", Session: goclaw.MainKey("main"), State: goclaw.StateCompleted, Result: "Once"}
	f := &fake{logs: map[string]goclaw.RunLog{"run-1": {Run: run, Events: []goclaw.Event{
		{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, "Once"), Stop: goclaw.StopMaxTokens}},
	}}}}
	if w := ask(gateway(f), "GET", "/v1/responses/resp_run-1_0", "", nil); !strings.Contains(w.Body.String(), `"status":"incomplete"`) {
		t.Errorf("%s", w.Body)
	}
}

// TestKeyOfAnotherRequest: a key names one body, whichever of the APIs it came
// by; the same body again is no other one.
func TestKeyOfAnotherRequest(t *testing.T) {
	f := &fake{}
	c := sdk(t, gateway(f))
	for _, text := range []string{"one", "one", "two"} {
		complete(t, c, false, openai.ChatCompletionNewParams{Model: "goclaw",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}, option.WithHeader("Idempotency-Key", "k"))
		p := responses.ResponseNewParams{Model: "goclaw"}
		p.Input.OfInputItemList = responses.ResponseInputParam{userItem(text)}
		respond(t, c, false, p, option.WithHeader("Idempotency-Key", "k"))
	}
	for i, in := range f.received[:2] {
		if first, again, other := in.Digest, f.received[2+i].Digest, f.received[4+i].Digest; first == "" || first != again || first == other {
			t.Errorf("%q, again %q, of another %q", first, again, other)
		}
	}
	f = &fake{fail: goclaw.ErrReused}
	if w := ask(gateway(f), "POST", "/v1/responses", `{"model":"goclaw","input":"x"}`, map[string]string{"Idempotency-Key": "k"}); w.Code != 422 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
