package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

func encode(t *testing.T, p *Provider, req goclaw.ModelRequest) string {
	t.Helper()
	raw, err := json.Marshal(p.params(req))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// same compares JSON texts with the keys in any order.
func same(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("request differs (-want +got):\n%s", diff)
	}
}

func toolCall(id, name, arguments string) goclaw.Part {
	return goclaw.Part{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: id, Name: name, Arguments: arguments}}
}

func result(id, content string, failed bool) goclaw.Part {
	return goclaw.Part{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: id, Content: content, IsError: failed}}
}

func text(s string) goclaw.Part { return goclaw.Part{Kind: goclaw.PartText, Text: s} }

func TestRequestGolden(t *testing.T) {
	temperature := 0.5
	req := goclaw.ModelRequest{
		Model:  "gpt-x",
		System: []goclaw.SystemBlock{{Text: "Who you are."}, {Text: ""}, {Text: "Files.", StableUntil: true}},
		Tools: []goclaw.ToolSpec{
			{Name: "exec", Description: "Runs.", Schema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)},
			{Name: "read"},
		},
		Messages: []goclaw.Message{
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{text("one"), text("more")}},
			{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
				{Kind: goclaw.PartThinking, Text: "hm", Provider: "openai"},
				text("Looking."), toolCall("call_1", "read", `{"b":1,"a":2}`), toolCall("call_2", "exec", `{"cmd`),
			}},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{text("late"), result("call_1", "", false), result("call_2", "no", true)}},
			{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{toolCall("call_3", "read", "")}},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{result("call_3", "Error: told already", true)}},
			{Role: goclaw.RoleAssistant},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{text("two")}},
		},
		MaxTokens: 100, Temperature: &temperature, Stop: []string{"a", "", "b", "c", "d", "e"},
		Thinking: "medium", Session: "agent:main:main",
	}
	messages := `"model": "gpt-x", "stream_options": {"include_usage": true}, "temperature": 0.5, "stop": ["a", "b", "c", "d"],
	"reasoning_effort": "medium",
	"tools": [
		{"type": "function", "function": {"name": "exec", "description": "Runs.", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}},
		{"type": "function", "function": {"name": "read"}}],
	"messages": [
		{"role": "system", "content": "Who you are.\n\nFiles."},
		{"role": "user", "content": "one\n\nmore"},
		{"role": "assistant", "content": "Looking.", "tool_calls": [
			{"type": "function", "id": "call_1", "function": {"name": "read", "arguments": "{\"b\":1,\"a\":2}"}},
			{"type": "function", "id": "call_2", "function": {"name": "exec", "arguments": "{\"_malformed\":\"{\\\"cmd\"}"}}]},
		{"role": "tool", "tool_call_id": "call_1", "content": ""},
		{"role": "tool", "tool_call_id": "call_2", "content": "Error: no"},
		{"role": "user", "content": "late"},
		{"role": "assistant", "tool_calls": [{"type": "function", "id": "call_3", "function": {"name": "read", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "call_3", "content": "Error: told already"},
		{"role": "user", "content": "two"}]`
	same(t, encode(t, New(Options{}), req), `{`+messages+`, "max_completion_tokens": 100}`)
	same(t, encode(t, New(Options{LegacyMaxTokens: true, PromptCacheKey: true}), req),
		`{`+messages+`, "max_tokens": 100, "prompt_cache_key": "6d9217fe77c7f11d9cc992aabe81a2d0"}`)
}

func TestDefaultsStayOut(t *testing.T) {
	req := goclaw.ModelRequest{Model: "m", Thinking: "off", Session: "s", Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
	same(t, encode(t, New(Options{}), req),
		`{"model": "m", "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "hi"}]}`)
}

// TestStableBytes grows a conversation and wants every request to begin with
// the messages, and to repeat the tools, of the one before.
func TestStableBytes(t *testing.T) {
	p := New(Options{})
	schema := `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`
	req := goclaw.ModelRequest{
		Model:  "m",
		System: []goclaw.SystemBlock{{Text: "stable <b> & more", StableUntil: true}},
		Tools:  []goclaw.ToolSpec{{Name: "read", Schema: json.RawMessage(schema)}},
	}
	var before struct{ Tools, Messages json.RawMessage }
	for turn := range 5 {
		req.Messages = append(req.Messages, goclaw.Text(goclaw.RoleUser, fmt.Sprintf("question %d", turn)))
		var now struct{ Tools, Messages json.RawMessage }
		if err := json.Unmarshal([]byte(encode(t, p, req)), &now); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(now.Tools, []byte(schema)) {
			t.Fatalf("the schema's bytes changed: %s", now.Tools)
		}
		if turn > 0 && (!bytes.Equal(now.Tools, before.Tools) || !bytes.HasPrefix(now.Messages, bytes.TrimSuffix(before.Messages, []byte("]")))) {
			t.Errorf("turn %d: the prefix changed:\n%s\n%s", turn, before.Messages, now.Messages)
		}
		before = now
		id := fmt.Sprintf("call_%d", turn)
		req.Messages = append(req.Messages,
			goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{toolCall(id, "read", `{"z":"1"}`)}},
			goclaw.Message{Role: goclaw.RoleUser, Parts: []goclaw.Part{result(id, "contents", false)}},
			goclaw.Text(goclaw.RoleAssistant, "answer"))
	}
}
