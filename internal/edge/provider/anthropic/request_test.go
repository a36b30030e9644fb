package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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

func call(id, name, arguments string) goclaw.Part {
	return goclaw.Part{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: id, Name: name, Arguments: arguments}}
}

func result(id, content string, failed bool) goclaw.Part {
	return goclaw.Part{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: id, Content: content, IsError: failed}}
}

func text(s string) goclaw.Part { return goclaw.Part{Kind: goclaw.PartText, Text: s} }

func thinking(s, opaque, provider string) goclaw.Part {
	return goclaw.Part{Kind: goclaw.PartThinking, Text: s, Opaque: opaque, Provider: provider}
}

func TestRequestGolden(t *testing.T) {
	temperature := 0.5
	req := goclaw.ModelRequest{
		Model: "claude-sonnet-4-5",
		System: []goclaw.SystemBlock{
			{Text: "Who you are."}, {Text: ""}, {Text: "Files.", StableUntil: true}, {Text: "Changes."},
		},
		Tools: []goclaw.ToolSpec{
			{Name: "exec", Description: "Runs.", Schema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)},
			{Name: "read"},
		},
		Messages: []goclaw.Message{
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{text("one")}},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{text("two"), text(" \n")}},
			{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
				thinking("hm", "c2ln", "anthropic"), thinking("", "redacted_thinking:ZGF0YQ==", "anthropic"),
				thinking("other", "x", "openai"), thinking("unsigned", "", "anthropic"),
				text("Looking."), call("call_1", "read", `{"b":1,"a":2}`), call("functions.exec:0", "exec", `{"cmd`),
			}},
			{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{text("")}},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{
				text("late"), result("call_1", "", false), result("functions.exec:0", "no", true),
			}},
			{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{text("Fine.")}},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{text("three")}},
		},
		MaxTokens: 100, Temperature: &temperature, Stop: []string{"</plan>", ""},
	}
	same(t, encode(t, New(Options{}), req), `{
	"model": "claude-sonnet-4-5", "max_tokens": 100, "temperature": 0.5, "stop_sequences": ["</plan>"],
	"tools": [
		{"name": "exec", "description": "Runs.", "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}}},
		{"name": "read", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}],
	"system": [
		{"type": "text", "text": "Who you are."},
		{"type": "text", "text": "Files.", "cache_control": {"type": "ephemeral"}},
		{"type": "text", "text": "Changes."}],
	"messages": [
		{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
		{"role": "assistant", "content": [
			{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
			{"type": "redacted_thinking", "data": "ZGF0YQ=="},
			{"type": "text", "text": "Looking."},
			{"type": "tool_use", "id": "call_1", "name": "read", "input": {"b": 1, "a": 2}},
			{"type": "tool_use", "id": "functions_exec_0", "name": "exec", "input": {"_malformed": "{\"cmd"}}]},
		{"role": "user", "content": [
			{"type": "tool_result", "tool_use_id": "call_1"},
			{"type": "tool_result", "tool_use_id": "functions_exec_0", "is_error": true, "content": [{"type": "text", "text": "no"}]},
			{"type": "text", "text": "late", "cache_control": {"type": "ephemeral"}}]},
		{"role": "assistant", "content": [{"type": "text", "text": "Fine."}]},
		{"role": "user", "content": [{"type": "text", "text": "three", "cache_control": {"type": "ephemeral"}}]}]}`)
}

// TestStableBytes grows a conversation and wants every request, without its
// breakpoints, to begin with the messages, and to repeat the tools and system,
// of the one before.
func TestStableBytes(t *testing.T) {
	p := New(Options{})
	req := goclaw.ModelRequest{
		Model:  "claude-opus-5-5",
		System: []goclaw.SystemBlock{{Text: "stable <b> & more", StableUntil: true}},
		Tools:  []goclaw.ToolSpec{{Name: "read", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`)}},
	}
	var before struct{ Tools, System, Messages json.RawMessage }
	for turn := range 6 {
		req.Messages = append(req.Messages, goclaw.Text(goclaw.RoleUser, fmt.Sprintf("question %d", turn)))
		raw := encode(t, p, req)
		if n := strings.Count(raw, `"cache_control"`); n > 4 || turn > 0 && n != 4 {
			t.Errorf("turn %d: %d breakpoints", turn, n)
		}
		raw = strings.ReplaceAll(raw, `,"cache_control":{"type":"ephemeral"}`, "")
		raw = strings.ReplaceAll(raw, `"cache_control":{"type":"ephemeral"},`, "")
		var now struct{ Tools, System, Messages json.RawMessage }
		if err := json.Unmarshal([]byte(raw), &now); err != nil {
			t.Fatal(err)
		}
		if turn > 0 {
			if !bytes.Equal(now.Tools, before.Tools) || !bytes.Equal(now.System, before.System) {
				t.Errorf("turn %d: tools or system changed", turn)
			}
			if !bytes.HasPrefix(now.Messages, bytes.TrimSuffix(before.Messages, []byte("]"))) {
				t.Errorf("turn %d: messages changed:\n%s\n%s", turn, before.Messages, now.Messages)
			}
		}
		before = now
		id := fmt.Sprintf("call_%d", turn)
		req.Messages = append(req.Messages,
			goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{thinking("t", "s", "anthropic"), call(id, "read", `{"z":"1","a":"2"}`)}},
			goclaw.Message{Role: goclaw.RoleUser, Parts: []goclaw.Part{result(id, "contents", false)}},
			goclaw.Text(goclaw.RoleAssistant, "answer"))
	}
}

func TestThinkingLevels(t *testing.T) {
	adaptive := func(level string) string {
		return `"thinking":{"display":"summarized","type":"adaptive"},"output_config":{"effort":"` + level + `"},"max_tokens":32000`
	}
	cases := []struct {
		model, level string
		maxTokens    int
		want         string // fields joined by commas; those not named must be absent
	}{
		{"claude-sonnet-4-5-20250929", "", 0, `"max_tokens":16384,"temperature":1`},
		{"claude-sonnet-4-5-20250929", "off", 0, `"max_tokens":16384,"temperature":1`},
		{"claude-sonnet-4-5-20250929", "low", 0, `"thinking":{"budget_tokens":2048,"type":"enabled"},"max_tokens":18432`},
		{"claude-3-7-sonnet-20250219", "high", 0, `"thinking":{"budget_tokens":12000,"type":"enabled"},"max_tokens":28384`},
		{"claude-opus-4-20250514", "medium", 4096, `"thinking":{"budget_tokens":3072,"type":"enabled"},"max_tokens":4096`},
		{"claude-opus-4-20250514", "medium", 2000, `"max_tokens":2000,"temperature":1`},
		{"kimi-k2", "medium", 0, `"thinking":{"budget_tokens":8192,"type":"enabled"},"max_tokens":24576`},
		{"claude-opus-4-6", "high", 0, adaptive("high")},
		{"us.anthropic.claude-opus-4-6-v1:0", "low", 0, adaptive("low")},
		{"claude-opus-4-6", "off", 0, `"max_tokens":16384,"temperature":1`},
		{"claude-opus-4-8", "off", 0, `"max_tokens":16384`},
		{"anthropic/claude-sonnet-4.6", "medium", 500, `"thinking":{"display":"summarized","type":"adaptive"},"output_config":{"effort":"medium"},"max_tokens":500`},
		{"claude-mythos-preview", "medium", 0, adaptive("medium")},
		{"claude-mythos-preview", "off", 0, `"output_config":{"effort":"low"},"max_tokens":16384`},
		{"claude-fable-5-1", "off", 0, `"output_config":{"effort":"low"},"max_tokens":16384`},
		{"claude-opus-5", "off", 0, `"thinking":{"type":"disabled"},"max_tokens":16384`},
		{"claude-haiku-5-5", "off", 0, `"thinking":{"type":"disabled"},"max_tokens":16384`},
		{"claude-sonnet-5-5", "off", 0, `"thinking":{"type":"between_tools"},"max_tokens":16384`},
		{"claude-opus-5-5", "off", 0, `"output_config":{"effort":"low"},"max_tokens":16384`},
		{"claude-opus-5-5", "high", 0, adaptive("high")},
	}
	one := 1.0
	for _, c := range cases {
		t.Run(c.model+" "+c.level, func(t *testing.T) {
			req := goclaw.ModelRequest{Model: c.model, Thinking: c.level, MaxTokens: c.maxTokens, Temperature: &one,
				Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
			same(t, encode(t, New(Options{}), req), fmt.Sprintf(
				`{"model":%q,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],%s}`, c.model, c.want))
		})
	}
}

// TestThinkingMidTurn: the API refuses a budget when the tool loop under way
// began without thinking.
func TestThinkingMidTurn(t *testing.T) {
	for name, first := range map[string]goclaw.Part{"with": thinking("t", "s", "anthropic"), "without": text("ok")} {
		req := goclaw.ModelRequest{Model: "claude-haiku-4-5", Thinking: "low", Messages: []goclaw.Message{
			goclaw.Text(goclaw.RoleUser, "go"),
			{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{first, call("c", "read", "{}")}},
			{Role: goclaw.RoleUser, Parts: []goclaw.Part{result("c", "x", false)}},
		}}
		if got := strings.Contains(encode(t, New(Options{}), req), "budget_tokens"); got != (name == "with") {
			t.Errorf("%s: budget sent: %v", name, got)
		}
	}
}
