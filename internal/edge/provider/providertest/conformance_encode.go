package providertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"goclaw"
)

// RunEncode is the part of the suite that a provider with unusual options is
// worth to pass once more: what it says that it sends is what it sends.
func RunEncode(t *testing.T, open func(t *testing.T, baseURL string) goclaw.Provider) {
	testEncode(t, fixture{open: open})
}

// testEncode compares what Encode gives with what arrives, for many requests.
func testEncode(t *testing.T, f fixture) {
	p, s := f.answer(t, Answer{Text: "ok"})
	encoder, ok := p.(goclaw.Encoder)
	if !ok {
		t.Fatalf("%T is no goclaw.Encoder", p)
	}
	const requests = 300
	for seed := range uint64(requests) {
		req := draw{rand.New(rand.NewPCG(seed, 1))}.request(p.Name())
		want, err := encoder.Encode(req)
		if err != nil {
			t.Fatalf("seed %d: Encode: %v\n%+v", seed, err, req)
		}
		_, err = p.Stream(t.Context(), req, nil)
		if err != nil {
			t.Fatalf("seed %d: Stream: %v\n%+v", seed, err, req)
		}
		sent := s.Requests()
		if got := string(sent[len(sent)-1].Raw); got != string(want) {
			t.Fatalf("seed %d: sent\n%s\nencoded\n%s", seed, got, want)
		}
		if again, err := encoder.Encode(req); err != nil || string(again) != string(want) {
			t.Fatalf("seed %d: encoded once more (%v):\n%s\nbefore\n%s", seed, err, again, want)
		}
	}
}

// draw makes random requests.
type draw struct{ *rand.Rand }

func (d draw) bool() bool { return d.IntN(2) == 0 }

func pick[T any](d draw, from ...T) T { return from[d.IntN(len(from))] }

func (d draw) text() string {
	return pick(d, "hello", "", " ", unicodeText, "<b>&amp;</b> \u2028", "bad \xff\xfe UTF-8", "a \"quote\" and \\ more", "line\r\nline\n\n")
}

func (d draw) arguments() string {
	return pick(d, `{"path":"a/b.go"}`, ` { "n" : 1.50 , "deep": {"list":[1, 2]} } `, "", "{}", "[1]", BrokenArguments, `"text"`, `{"html":"<a&b>"}`)
}

func (d draw) request(provider string) goclaw.ModelRequest {
	req := goclaw.ModelRequest{
		Model:     pick(d, "test-model", "claude-sonnet-4-5", "claude-opus-4-7", "claude-3-7-sonnet-20250219", "gpt-5"),
		Thinking:  pick(d, "", "off", "low", "medium", "high"),
		MaxTokens: pick(d, 0, 1, 1500, 40_000),
		Session:   pick(d, "", "agent:main:main"),
		Messages:  []goclaw.Message{goclaw.Text(goclaw.RoleUser, "begin")},
	}
	if d.bool() {
		temperature := d.Float64()
		req.Temperature = &temperature
	}
	for range d.IntN(3) {
		req.Stop = append(req.Stop, pick(d, "</plan>", "STOP", ""))
	}
	req.Schema = pick(d, nil, nil, json.RawMessage(`{"type":"array"}`), json.RawMessage(`{"type":"object","properties":{"b":{"type":"string","maxLength":3},"a":{"type":"string"}}}`),
		json.RawMessage("{\"type\": \"object\",\n \"required\": [\"z\", \"a\"], \"additionalProperties\": false, \"properties\": {\"z\": {\"type\": \"integer\"}, \"a\": {\"enum\": [\"<\"], \"type\": \"string\"}}}"))
	for range d.IntN(4) {
		req.System = append(req.System, goclaw.SystemBlock{Text: d.text(), StableUntil: d.bool()})
	}
	for i := range d.IntN(4) {
		req.Tools = append(req.Tools, goclaw.ToolSpec{
			Name: fmt.Sprintf("tool_%d", i), Description: d.text(), Idempotent: d.bool(),
			Schema: pick(d, nil, json.RawMessage(`{"type":"object"}`),
				json.RawMessage("{\n  \"type\": \"object\",\n  \"properties\": {\"b\": {\"type\": \"string\", \"description\": \"<é>\"}, \"a\": {}}\n}")),
		})
	}
	for i := range d.IntN(5) {
		req.Messages = append(req.Messages, d.exchange(i, provider)...)
	}
	return req
}

// exchange is a reply, the results of its calls, and what the user says next.
func (d draw) exchange(n int, provider string) []goclaw.Message {
	reply, next := goclaw.Message{Role: goclaw.RoleAssistant}, goclaw.Message{Role: goclaw.RoleUser}
	if d.bool() {
		reply.Parts = append(reply.Parts, goclaw.Part{
			Kind: goclaw.PartThinking, Text: d.text(), Opaque: pick(d, "", "c2ln", "redacted_thinking:data"), Provider: pick(d, provider, "another"),
		})
	}
	if d.bool() {
		reply.Parts = append(reply.Parts, goclaw.Part{Kind: goclaw.PartText, Text: d.text()})
	}
	for i := range d.IntN(3) {
		call := goclaw.ToolCall{ID: fmt.Sprintf("call:%d/%d", n, i), Name: "tool_0", Arguments: d.arguments()}
		reply.Parts = append(reply.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: &call})
		next.Parts = append(next.Parts, goclaw.Part{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{
			CallID: call.ID, Name: call.Name, Content: d.text(), IsError: d.bool(),
		}})
	}
	if len(next.Parts) == 0 || d.bool() {
		next.Parts = append(next.Parts, goclaw.Part{Kind: goclaw.PartText, Text: pick(d, "go on", d.text()+".")})
	}
	return []goclaw.Message{reply, next}
}
