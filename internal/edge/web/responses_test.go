package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"goclaw"
)

func responseParams(input ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
	p := responses.ResponseNewParams{Model: "goclaw", Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
		Name: "look", Description: param.NewOpt("Looks."), Parameters: lookSchema, Strict: param.NewOpt(true),
	}}}}
	p.Input.OfInputItemList = input
	return p
}

func userItem(text string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser)
}

func outputFor(call, text string) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(text)
	item.OfFunctionCallOutput.CallID = param.NewOpt(call)
	return item
}

// respond asks for a response, streamed or not. A stream is checked against the
// client's accumulator, which rebuilds the response from its pieces.
func respond(t *testing.T, c openai.Client, streamed bool, p responses.ResponseNewParams, opts ...option.RequestOption) *responses.Response {
	t.Helper()
	if !streamed {
		got, err := c.Responses.New(t.Context(), p, opts...)
		if e, ok := errors.AsType[*openai.Error](err); ok {
			t.Fatal(e.RawJSON())
		}
		return got
	}
	s := c.Responses.NewStreaming(t.Context(), p, opts...)
	var acc responses.ResponseAccumulator
	var kinds []string
	var pieces, last string
	for s.Next() {
		e := s.Current()
		if int(e.SequenceNumber) != len(kinds) {
			t.Errorf("event %d has the number %d", len(kinds), e.SequenceNumber)
		}
		kinds = append(kinds, e.Type)
		last = e.Type
		if last == "response.completed" || last == "response.incomplete" || last == "response.failed" { // or it would only repeat it
			pieces = acc.Snapshot().OutputText()
		}
		var same responses.ResponsesServerEventUnion
		if err := json.Unmarshal([]byte(e.RawJSON()), &same); err != nil {
			t.Fatal(err)
		}
		if err := acc.AddEvent(same); err != nil {
			t.Fatalf("%s: %v", e.RawJSON(), err)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	got, err := acc.ReconstructedResponse()
	if err != nil {
		t.Fatalf("%v: %v", err, kinds)
	}
	if !slices.Equal(kinds[:2], []string{"response.created", "response.in_progress"}) || pieces != got.OutputText() {
		t.Errorf("%v; pieces %q of %q", kinds, pieces, got.OutputText())
	}
	return got
}

func callsOf(r *responses.Response) (calls []responses.ResponseFunctionToolCall) {
	for _, o := range r.Output {
		if o.Type == "function_call" {
			calls = append(calls, o.AsFunctionCall())
		}
	}
	return calls
}

func TestResponse(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		f := &fake{}
		scripted(f, answer, func(r goclaw.Run) []goclaw.Notice {
			return []goclaw.Notice{say(r.Session, r.ID, "Hello"), say(r.Session, r.ID, " there"), ended(r, "Hello there")}
		})
		c := sdk(t, gateway(f))
		p := responses.ResponseNewParams{
			Model: "goclaw/coder", User: param.NewOpt("ann"), Instructions: param.NewOpt("Be brief."), Temperature: param.NewOpt(0.2),
			Metadata: map[string]string{"k": "v"}, Store: param.NewOpt(true), MaxOutputTokens: param.NewOpt[int64](9),
		}
		p.Input.OfString = param.NewOpt("hi")
		got := respond(t, c, streamed, p, option.WithHeader("Idempotency-Key", "k1"))
		if got.OutputText() != "Hello there" || got.Status != "completed" || got.ID != "resp_run-1_0" || got.Model != "goclaw/coder" {
			t.Errorf("%s", got.RawJSON())
		}
		if got.Instructions.OfString != "Be brief." || got.Metadata["k"] != "v" || got.Usage.TotalTokens != 105 || got.Usage.InputTokensDetails.CachedTokens != 80 {
			t.Errorf("%s", got.RawJSON())
		}
		want := []goclaw.Inbound{{Session: goclaw.APIKey("coder", "ann"), Sender: "ann", Key: "k1",
			Text: "[Instructions of the client for this message]\nBe brief.\n[End of the instructions]\n\nhi"}}
		if len(f.received) != 1 || f.received[0].Digest == "" {
			t.Fatalf("%+v", f.received)
		}
		want[0].Digest = f.received[0].Digest
		if diff := cmp.Diff(want, f.received); diff != "" {
			t.Error(diff)
		}
	}
}

// TestResponseEvents holds the order of a stream's events.
func TestResponseEvents(t *testing.T) {
	l := newLoop([]goclaw.ToolCall{look("1", `{}`)})
	w := ask(gateway(l.fake), "POST", "/v1/responses", `{"model":"goclaw","stream":true,"input":"hi","tools":[{"type":"function","name":"look","parameters":null}]}`, nil)
	var kinds []string
	for line := range strings.Lines(w.Body.String()) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, strings.TrimSpace(strings.TrimPrefix(kind, "response.")))
		}
	}
	want := strings.Fields(`created in_progress output_item.added content_part.added output_text.delta output_text.done content_part.done
		output_item.done output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed`)
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("%s\n%s", diff, w.Body)
	}
}

// TestResponsesToolLoop goes both ways: by previous_response_id with the new
// items alone, and with all items, some of them by reference.
func TestResponsesToolLoop(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("streamed %v, whole %v", streamed, whole), func(t *testing.T) {
				l := newLoop([]goclaw.ToolCall{look(toolu, `{"at":"a"}`), look("2", `{"at":"b"}`)}, []goclaw.ToolCall{look("3", `{"at":"c"}`)})
				c := sdk(t, gateway(l.fake))
				p := responseParams(userItem("look around"))
				var shown []*responses.Response
				for round, count := range []int{2, 1} {
					got := respond(t, c, streamed, p)
					calls := callsOf(got)
					if len(calls) != count || got.Status != "completed" || got.OutputText() != fmt.Sprintf("Round %d.", round+1) || got.Usage.TotalTokens != 11 {
						t.Fatalf("%s", got.RawJSON())
					}
					shown = append(shown, got)
					input := p.Input.OfInputItemList
					if !whole {
						p.PreviousResponseID, input = param.NewOpt(got.ID), nil
					} else {
						input = append(input, responses.ResponseInputItemParamOfItemReference(got.Output[0].ID))
					}
					for _, call := range calls { // each followed by its output
						if whole {
							input = append(input, responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name))
						}
						input = append(input, outputFor(call.CallID, "saw "+call.Arguments))
					}
					p.Input.OfInputItemList = input
				}
				got := respond(t, c, streamed, p)
				if got.OutputText() != `I got saw {"at":"a"}, saw {"at":"b"}, saw {"at":"c"}` || len(l.received) != 1 || got.Usage.TotalTokens != 11 {
					t.Errorf("%d turns, %s", len(l.received), got.RawJSON())
				}
				if err := offers(l.received[0].Caller); err != nil {
					t.Error(err)
				}
				for _, was := range append(shown, got) {
					again, err := c.Responses.Get(t.Context(), was.ID, responses.ResponseGetParams{})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(parts(was), parts(again)); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// parts is what of a response is to be found again.
func parts(r *responses.Response) []string {
	all := []string{r.ID, string(r.Status), r.OutputText(), fmt.Sprint(r.Usage.TotalTokens, r.CreatedAt, len(r.Tools))}
	for _, o := range r.Output {
		all = append(all, o.ID)
	}
	for _, c := range callsOf(r) {
		all = append(all, c.ID, c.CallID, c.Name, c.Arguments)
	}
	return all
}

func TestResponsesGoOn(t *testing.T) {
	l := newLoop()
	c := sdk(t, gateway(l.fake))
	p := responseParams(userItem("one"))
	first := respond(t, c, false, p)
	l.receive = func(context.Context, goclaw.Inbound) (goclaw.Receipt, error) {
		return goclaw.Receipt{Reply: "all well"}, nil
	}
	p = responseParams(userItem("/status"))
	p.PreviousResponseID = param.NewOpt(first.ID)
	command := respond(t, c, true, p)
	if command.OutputText() != "all well" || command.PreviousResponseID != first.ID {
		t.Errorf("%s", command.RawJSON())
	}
	if _, err := c.Responses.Get(t.Context(), command.ID, responses.ResponseGetParams{}); err == nil {
		t.Error("a slash command's answer is found")
	}
	l.receive = l.accept
	p = responseParams(responses.ResponseInputItemParamOfMessage("Shout.", responses.EasyInputMessageRoleDeveloper), userItem("two"))
	p.PreviousResponseID = param.NewOpt(command.ID)
	respond(t, c, false, p)
	if len(l.received) != 3 || l.received[0].Session != l.received[1].Session || l.received[1].Session != l.received[2].Session {
		t.Fatalf("%+v", l.received)
	}
	if want := "[Instructions of the client for this message]\nShout.\n[End of the instructions]\n\ntwo"; l.received[2].Text != want {
		t.Errorf("%q", l.received[2].Text)
	}
}

func TestBackgroundResponse(t *testing.T) {
	f := &fake{receive: func(_ context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
		return goclaw.Receipt{Run: &goclaw.Run{ID: loopRun, Session: in.Session, State: goclaw.StateQueued}}, nil
	}}
	f.await = func(context.Context, string, bool) (goclaw.Outcome, error) {
		return goclaw.Outcome{}, errors.New("nobody was to wait")
	}
	c := sdk(t, gateway(f))
	p := responseParams(userItem("hi"))
	p.Background = param.NewOpt(true)
	got := respond(t, c, false, p)
	if got.Status != "queued" || !got.Background || len(got.Output) != 0 {
		t.Errorf("%s", got.RawJSON())
	}
	run := goclaw.Run{ID: loopRun, State: goclaw.StateRunning}
	for _, tc := range []struct {
		change func()
		status responses.ResponseStatus
		text   string
	}{
		{func() {}, "in_progress", ""},
		{func() { run.CancelAt = 1 }, "cancelled", ""},
		{func() { run.State = goclaw.StateCancelled }, "cancelled", ""},
		{func() { run.State, run.Error = goclaw.StateTimeout, "too slow" }, "failed", ""},
		{func() { run.State, run.Result = goclaw.StateCompleted, "done" }, "completed", "done"},
	} {
		tc.change()
		f.logs = map[string]goclaw.RunLog{loopRun: {Run: run}}
		got, err := c.Responses.Get(t.Context(), got.ID, responses.ResponseGetParams{})
		if err != nil || got.Status != tc.status || got.OutputText() != tc.text || (got.Error.Message != "") != (got.Status == "failed") {
			t.Errorf("want %s: %s, %v", tc.status, got.RawJSON(), err)
		}
	}
	f.logs = map[string]goclaw.RunLog{loopRun: {Run: goclaw.Run{ID: loopRun, CancelAt: 1, State: goclaw.StateRunning}}}
	if got, err := c.Responses.Cancel(t.Context(), got.ID); err != nil || got.Status != "cancelled" || len(f.asked) == 0 {
		t.Errorf("%+v, %v, %v", got, err, f.asked)
	}
}

func TestFailedResponse(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		f := &fake{}
		scripted(f, goclaw.Outcome{Status: goclaw.StateFailed, Error: "out of luck", Turns: 1}, func(r goclaw.Run) []goclaw.Notice {
			return []goclaw.Notice{say(r.Session, r.ID, "Hel")}
		})
		c := sdk(t, gateway(f))
		if got := respond(t, c, streamed, responseParams(userItem("hi"))); got.Status != "failed" || !strings.Contains(got.Error.Message, "out of luck") {
			t.Errorf("%s", got.RawJSON())
		}
	}
	f := &fake{await: func(context.Context, string, bool) (goclaw.Outcome, error) { return goclaw.Outcome{}, errBroken }}
	w := ask(gateway(f), "POST", "/v1/responses", `{"model":"goclaw","stream":true,"input":"hi"}`, nil)
	if got := w.Body.String(); !strings.Contains(got, "event: error\n") || !strings.Contains(got, errBroken.Error()) || strings.Contains(got, "response.completed") {
		t.Error(got)
	}
}

func TestResponsesThatAreRefused(t *testing.T) {
	h := gateway(&fake{logs: map[string]goclaw.RunLog{loopRun: {Run: goclaw.Run{ID: loopRun, Session: goclaw.MainKey("main")}}}})
	for _, tc := range []struct {
		body   string
		status int
		says   string
	}{
		{`{"model":"gpt-5","input":"x"}`, 404, "model_not_found"},
		{`{"model":"goclaw"}`, 400, `\"input\" is required`},
		{`{"model":"goclaw","input":5}`, 400, "a text or a list"},
		{`{"model":"goclaw","input":" "}`, 400, "no new text"},
		{`{"model":"goclaw","inputs":"x"}`, 400, `unknown field \"inputs\"`},
		{`{"model":"goclaw","input":"x","conversation":"conv_1"}`, 400, "previous_response_id"},
		{`{"model":"goclaw","input":"x","prompt":{"id":"p"}}`, 400, "stored prompts"},
		{`{"model":"goclaw","input":"x","text":{"format":{"type":"json_schema","name":"n"}}}`, 400, "text.format"},
		{`{"model":"goclaw","input":"x","tools":[{"type":"web_search"}]}`, 400, `type \"web_search\"`},
		{`{"model":"goclaw","input":"x","tools":[{"type":"function"}]}`, 400, "needs a name"},
		{`{"model":"goclaw","input":"x","tool_choice":"required"}`, 400, "tool_choice"},
		{`{"model":"goclaw","input":"x","previous_response_id":"resp_1"}`, 400, "previous_response_not_found"},
		{`{"model":"goclaw","input":"x","previous_response_id":"resp_run-9_0"}`, 400, "previous_response_not_found"},
		{`{"model":"goclaw","input":"x","user":"u","previous_response_id":"resp_` + loopRun + `_0"}`, 400, "of the session agent:main:main"},
		{`{"model":"goclaw/coder","input":"x","previous_response_id":"resp_` + loopRun + `_0"}`, 400, "of the session agent:main:main"},
		{`{"model":"goclaw","input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`, 400, "no item msg_1"},
		{`{"model":"goclaw","input":[{"type":"item_reference","id":"fc_run-9_1_x"},{"role":"user","content":"x"}]}`, 400, "no item fc_run-9_1_x"},
		{`{"model":"goclaw","input":[{"type":"web_search_call","id":"w"}]}`, 400, "web_search_call"},
		{`{"model":"goclaw","input":[{"role":"robot","content":"x"}]}`, 400, "robot"},
		{`{"model":"goclaw","input":[{"type":"function_call_output","output":"x"}]}`, 400, "call_id"},
		{`{"model":"goclaw","input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, 400, "input_image"},
	} {
		w := ask(h, "POST", "/v1/responses", tc.body, nil)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s: %d %s; want %d with %q", tc.body, w.Code, w.Body, tc.status, tc.says)
		}
		checkErrorShape(t, "/v1/responses", w)
	}
	for _, path := range []string{"GET /v1/responses/x", "GET /v1/responses/resp_run-9_0", "POST /v1/responses/resp_run-9_0/cancel"} {
		method, path, _ := strings.Cut(path, " ")
		if w := ask(h, method, path, "", nil); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(h, "GET", "/v1/responses/resp_"+loopRun+"_0?stream=true", "", nil); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
