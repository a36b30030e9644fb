package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"goclaw/internal/edge/provider/providertest"
)

// forecast is the model of the tests with a caller's tool: it asks for Berlin,
// beside a tool of the gateway, then for Paris, and says what it was told.
func forecast(stalled *atomic.Bool) providertest.Script {
	ask := func(city string) providertest.Call {
		return providertest.Call{Name: "weather", Arguments: arguments(args{"city": city})}
	}
	return func(r *providertest.Request) providertest.Answer {
		var told []string
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				if p.Result != nil {
					told = append(told, p.Result.Content)
				}
			}
		}
		switch {
		case !slices.Contains(r.Tools, "weather"):
			return providertest.Answer{Text: "I have no weather. " + r.NewestText()}
		case len(told) == 0:
			return providertest.Answer{Text: "Let me look.", Calls: []providertest.Call{
				ask("Berlin"), {Name: "read", Arguments: arguments(args{"path": "fact.txt"})}}}
		case len(told) == 2:
			return providertest.Answer{Calls: []providertest.Call{ask("Paris")}}
		case stalled.CompareAndSwap(true, false): // once: the next process is answered
			return providertest.Answer{Text: "lost words", Fault: providertest.StallAfter(300)}
		}
		return providertest.Answer{Text: strings.Join(told, " / ")}
	}
}

// openAI is the official client, pointed at the gateway.
func (g *gatewayProcess) openAI() openai.Client {
	return openai.NewClient(option.WithBaseURL(g.url+"/v1"), option.WithAPIKey(g.token), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
}

// killed kills the gateway, and starts another at the same home.
func (h *e2e) killed(g *gatewayProcess) *gatewayProcess {
	g.signal(syscall.SIGKILL)
	g.wait()
	return h.gateway()
}

// TestChatToolLoopAcrossKills: a stateless client's loop of two steps, each on
// another gateway process. The last dies while it answers.
func TestChatToolLoopAcrossKills(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		var stalled atomic.Bool
		stalled.Store(true)
		h := newE2E(t, wire, forecast(&stalled))
		h.file("fact.txt", "FACT")
		p := openai.ChatCompletionNewParams{
			Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage("weather?")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
				Name: "weather", Parameters: map[string]any{"type": "object", "required": []string{"city"},
					"properties": map[string]any{"city": map[string]any{"type": "string"}}},
			})},
		}
		ask := func(ctx context.Context, g *gatewayProcess) (openai.ChatCompletionMessage, error) {
			c := g.openAI()
			s := c.Chat.Completions.NewStreaming(ctx, p)
			var acc openai.ChatCompletionAccumulator
			for s.Next() {
				if !acc.AddChunk(s.Current()) {
					t.Errorf("chunk does not fit: %s", s.Current().RawJSON())
				}
			}
			if s.Err() != nil {
				return openai.ChatCompletionMessage{}, s.Err()
			}
			return acc.Choices[0].Message, nil
		}
		g := h.gateway()
		for _, city := range []string{"Berlin", "Paris"} {
			m, err := ask(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Arguments != fmt.Sprintf(`{"city":%q}`, city) || (m.Content == "Let me look.") != (city == "Berlin") {
				t.Fatalf("%+v", m)
			}
			g = h.killed(g)
			p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage(city+": sun", m.ToolCalls[0].ID))
		}
		cut := make(chan error, 1)
		go func() {
			_, err := ask(t.Context(), g)
			cut <- err
		}()
		eventually(t, "the model is asked for the answer", func() bool { return h.server.Total() == 3 })
		g = h.killed(g)
		if err := <-cut; err == nil {
			t.Error("a cut stream looks complete")
		}
		const want = "Berlin: sun / 1\tFACT / Paris: sun"
		for range 2 { // the second time when all is over
			m, err := ask(t.Context(), g)
			if err != nil || m.Content != want || len(m.ToolCalls) != 0 {
				t.Errorf("%q, %v; want %q", m.Content, err, want)
			}
		}
		g.stop()
		if n := len(h.server.Requests()); n != 4 {
			t.Errorf("%d model calls", n)
		}
	})
}

// TestResponsesToolLoopAcrossKills goes by previous_response_id.
func TestResponsesToolLoopAcrossKills(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, forecast(&atomic.Bool{}))
		h.file("fact.txt", "FACT")
		g := h.gateway()
		p := responses.ResponseNewParams{Model: "goclaw/main", Tools: []responses.ToolUnionParam{
			responses.ToolParamOfFunction("weather", map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}, false)}}
		p.Input.OfString = param.NewOpt("weather?")
		for _, city := range []string{"Berlin", "Paris"} {
			c := g.openAI()
			got, err := c.Responses.New(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			call := got.Output[len(got.Output)-1].AsFunctionCall()
			if call.Name != "weather" || call.Arguments != fmt.Sprintf(`{"city":%q}`, city) {
				t.Fatalf("%s", got.RawJSON())
			}
			g = h.killed(g)
			p.PreviousResponseID = param.NewOpt(got.ID)
			item := responses.ResponseInputItemParamOfFunctionCallOutput(city + ": rain")
			item.OfFunctionCallOutput.CallID = param.NewOpt(call.CallID)
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{item}}
		}
		c := g.openAI()
		got, err := c.Responses.New(t.Context(), p)
		if err != nil || got.OutputText() != "Berlin: rain / 1\tFACT / Paris: rain" || got.Usage.InputTokens == 0 {
			t.Fatalf("%s, %v", got.RawJSON(), err)
		}
		g = h.killed(g)
		c = g.openAI()
		again, err := c.Responses.Get(t.Context(), got.ID, responses.ResponseGetParams{})
		if err != nil || again.OutputText() != got.OutputText() || again.Usage.TotalTokens != got.Usage.TotalTokens {
			t.Errorf("%s, %v", again.RawJSON(), err)
		}
		p = responses.ResponseNewParams{Model: "goclaw", PreviousResponseID: param.NewOpt(got.ID)}
		p.Input.OfString = param.NewOpt("thanks")
		if got, err = c.Responses.New(t.Context(), p); err != nil || !strings.Contains(got.OutputText(), "I have no weather") {
			t.Errorf("%s, %v", got.RawJSON(), err)
		}
		g.stop()
	})
}

// TestCallerThatDoesNotComeBack: the user says something else instead of giving
// the results. The turn that waited is cancelled, and what was called is told.
func TestCallerThatDoesNotComeBack(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, forecast(&atomic.Bool{}))
		h.file("fact.txt", "FACT")
		g := h.gateway()
		const tools = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"properties":{"city":{"type":"string"}}}}}]`
		status, body := g.call("POST", "/v1/chat/completions", `{"model":"goclaw","user":"u",`+tools+`,"messages":[{"role":"user","content":"weather?"}]}`)
		if status != 200 || !strings.Contains(body, `"finish_reason":"tool_calls"`) {
			t.Fatal(status, body)
		}
		status, body = g.call("POST", "/v1/chat/completions", `{"model":"goclaw","user":"u","messages":[{"role":"user","content":"never mind"}]}`)
		if status != 200 || !strings.Contains(body, "I have no weather.") || !strings.Contains(body, "never mind") {
			t.Fatal(status, body)
		}
		var runs []struct{ Status string }
		g.get("/api/runs?session=agent:main:api:user:u", &runs)
		if len(runs) != 2 || runs[0].Status != "completed" || runs[1].Status != "cancelled" {
			t.Errorf("%+v", runs)
		}
		status, body = g.call("POST", "/v1/chat/completions", `{"model":"goclaw","tools":[{"type":"function","function":{"name":"read"}}],"messages":[{"role":"user","content":"x"}]}`)
		if status != 400 || !strings.Contains(body, "the gateway has a tool of that name") {
			t.Error(status, body)
		}
		g.stop()
	})
}

// TestCallersToolsAndWorkers: a turn that calls its caller's tool and starts a
// worker at once. The last answer waits for what the agent says of the worker,
// and a request that is sent again starts nothing anew.
func TestCallersToolsAndWorkers(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		script := func(r *providertest.Request) providertest.Answer {
			results := r.NewestResults()
			switch {
			case r.Worker():
				return providertest.Answer{Text: "The tide is high."}
			case strings.Contains(r.NewestText(), "[Subagent: "):
				return providertest.Answer{Text: "News of the worker: " + r.NewestText()}
			case len(results) > 0:
				return providertest.Answer{Text: "Weather: " + results[0].Content}
			}
			return providertest.Answer{Calls: []providertest.Call{
				{Name: "weather", Arguments: arguments(args{"city": "Bonn"})}, {Name: "sessions_spawn", Arguments: arguments(args{"task": "look at the tide"})}}}
		}
		for _, stream := range []string{"false", "true"} {
			h := newE2E(t, wire, script)
			g := h.gateway()
			const tools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`
			var first struct {
				ID     string
				Output []struct {
					CallID string `json:"call_id"`
				}
			}
			for range 2 {
				status, body := g.call("POST", "/v1/responses", `{"model":"goclaw","input":"go",`+tools+`}`, "Idempotency-Key", "k", "X-GoClaw-Wait", "true")
				id := first.ID
				if err := json.Unmarshal([]byte(body), &first); err != nil || status != 200 || len(first.Output) != 1 || id != "" && first.ID != id {
					t.Fatal(status, body, err, id)
				}
			}
			body := fmt.Sprintf(`{"model":"goclaw","stream":%s,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"sun"}],%s}`,
				stream, first.ID, first.Output[0].CallID, tools)
			for range 2 {
				status, answer := g.call("POST", "/v1/responses", body, "X-GoClaw-Wait", "true")
				if status != 200 || !strings.Contains(answer, `Weather: sun`) || !strings.Contains(answer, `The tide is high.`) {
					t.Fatal(status, answer)
				}
			}
			var runs []struct{ Trigger string }
			g.get("/api/runs", &runs)
			if len(runs) != 3 {
				t.Errorf("%+v", runs)
			}
			g.stop()
		}
	})
}

// TestDemandsOfOpenAIsClients: a model that neither calls what it must nor
// answers in the form that is asked for does so when the gateway insists.
func TestDemandsOfOpenAIsClients(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, func(r *providertest.Request) providertest.Answer {
			switch text := r.NewestText(); {
			case len(r.NewestResults()) > 0:
				return providertest.Answer{Text: "It is " + r.NewestResults()[0].Content}
			case strings.HasPrefix(text, "The client that sent this message requires"):
				return providertest.Answer{Calls: []providertest.Call{{Name: "weather", Arguments: "{}"}}}
			case strings.HasPrefix(text, "Your answer was not accepted"):
				return providertest.Answer{Text: "Sorry:\n```json\n{\"sky\": \"grey\"}\n```"}
			case strings.Contains(text, "tell all"):
				return providertest.Answer{Text: "It all began", Stop: "max_tokens"}
			}
			return providertest.Answer{Text: "It will be fine."}
		})
		g := h.gateway()
		c := g.openAI()
		p := openai.ChatCompletionNewParams{
			Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("weather?")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather"})},
		}
		p.ToolChoice.OfAuto = openai.String("required")
		ask := func() openai.ChatCompletionChoice {
			t.Helper()
			got, err := c.Chat.Completions.New(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return got.Choices[0]
		}
		m := ask().Message
		if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "weather" {
			t.Fatalf("%+v", m)
		}
		p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("sun", m.ToolCalls[0].ID))
		p.ToolChoice.OfAuto = openai.String("auto")
		if got := ask(); got.Message.Content != "It is sun" {
			t.Errorf("%+v", got.Message)
		}

		p = openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("sky?")}}
		p.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "sky", Schema: map[string]any{"type": "object", "required": []string{"sky"}, "properties": map[string]any{"sky": map[string]any{"type": "string"}}}}}
		if got := ask(); got.Message.Content != `{"sky":"grey"}` || got.FinishReason != "stop" {
			t.Errorf("%+v", got)
		}
		p = openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("tell all")}}
		if got := ask(); got.FinishReason != "length" {
			t.Errorf("%+v", got)
		}
		g.stop()
	})
}
