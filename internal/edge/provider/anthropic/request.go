package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"goclaw"
)

// redactedPrefix marks an Opaque that is no signature. Signatures are base64
// and hold no underscore or colon.
const redactedPrefix = "redacted_thinking:"

// cachedTurns is how many of the last user turns end in a breakpoint: the
// newest one writes the cache that the next request reads at the older one.
const cachedTurns = 2

// params translates req.
func (p *Provider) params(req goclaw.ModelRequest) sdk.MessageNewParams {
	params := sdk.MessageNewParams{
		Model:         req.Model,
		System:        systemBlocks(req.System),
		Tools:         tools(req.Tools),
		Messages:      p.messageParams(req.Messages),
		StopSequences: slices.DeleteFunc(slices.Clone(req.Stop), blank),
	}
	setThinking(&params, req.Thinking, req.MaxTokens, req.Temperature)
	setSchema(&params, req.Schema)
	markTurns(params.Messages)
	return params
}

// systemBlocks sets the breakpoint on the last block of the stable part.
func systemBlocks(blocks []goclaw.SystemBlock) []sdk.TextBlockParam {
	var out []sdk.TextBlockParam
	stable := 0 // blocks of out up to the stable part's end
	for _, b := range blocks {
		if !blank(b.Text) {
			out = append(out, sdk.TextBlockParam{Text: b.Text})
		}
		if b.StableUntil {
			stable = len(out)
		}
	}
	if stable > 0 {
		out[stable-1].CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	return out
}

func tools(specs []goclaw.ToolSpec) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, spec := range specs {
		schema := spec.Schema
		if len(bytes.TrimSpace(schema)) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		tool := &sdk.ToolParam{
			Name:        spec.Name,
			InputSchema: param.Override[sdk.ToolInputSchemaParam](schema),
		}
		if spec.Description != "" {
			tool.Description = sdk.String(spec.Description)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: tool})
	}
	if n := len(out); n > 0 {
		out[n-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	return out
}

// messageParams merges consecutive messages of one role and drops empty ones.
func (p *Provider) messageParams(messages []goclaw.Message) []sdk.MessageParam {
	out := make([]sdk.MessageParam, 0, len(messages))
	for _, m := range messages {
		blocks := p.blocks(m)
		if len(blocks) == 0 {
			continue
		}
		role := sdk.MessageParamRoleUser
		if m.Role == goclaw.RoleAssistant {
			role = sdk.MessageParamRoleAssistant
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	for _, m := range out {
		if m.Role == sdk.MessageParamRoleUser {
			slices.SortStableFunc(m.Content, resultsFirst)
		}
	}
	return out
}

// resultsFirst orders tool results before all else, as the API demands.
func resultsFirst(a, b sdk.ContentBlockParamUnion) int {
	switch {
	case a.OfToolResult != nil && b.OfToolResult == nil:
		return -1
	case a.OfToolResult == nil && b.OfToolResult != nil:
		return 1
	}
	return 0
}

func (p *Provider) blocks(m goclaw.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, part := range m.Parts {
		switch {
		case part.Kind == goclaw.PartText && !blank(part.Text):
			out = append(out, sdk.NewTextBlock(part.Text))
		case part.Kind == goclaw.PartThinking && part.Opaque != "" && part.Provider == p.line.Provider:
			if data, ok := strings.CutPrefix(part.Opaque, redactedPrefix); ok {
				out = append(out, sdk.NewRedactedThinkingBlock(data))
			} else {
				out = append(out, sdk.NewThinkingBlock(part.Opaque, part.Text))
			}
		case part.Kind == goclaw.PartToolCall && part.Call != nil:
			out = append(out, sdk.NewToolUseBlock(wireID(part.Call.ID), object(part.Call.Arguments), part.Call.Name))
		case part.Kind == goclaw.PartToolResult && part.Result != nil:
			out = append(out, sdk.ContentBlockParamUnion{OfToolResult: toolResult(*part.Result)})
		}
	}
	return out
}

func toolResult(r goclaw.ToolResult) *sdk.ToolResultBlockParam {
	block := &sdk.ToolResultBlockParam{ToolUseID: wireID(r.CallID)}
	if r.IsError {
		block.IsError = sdk.Bool(true)
	}
	if !blank(r.Content) {
		block.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: r.Content}}}
	}
	return block
}

// markTurns sets a breakpoint on the last block of the last user turns.
func markTurns(messages []sdk.MessageParam) {
	left := cachedTurns
	for _, m := range slices.Backward(messages) {
		if m.Role != sdk.MessageParamRoleUser {
			continue
		}
		if left--; left < 0 {
			return
		}
		if control := m.Content[len(m.Content)-1].GetCacheControl(); control != nil {
			*control = sdk.NewCacheControlEphemeralParam()
		}
	}
}

// object returns arguments as the object that the API wants: what the model
// wrote if it is one, else a wrapper around it.
func object(arguments string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(arguments))
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	if raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	// A map of strings can't fail to marshal.
	wrapped, _ := json.Marshal(map[string]string{"_malformed": arguments})
	return wrapped
}

// wireID replaces what the API doesn't allow in the id of a call, which may
// come from another provider.
func wireID(id string) string {
	if id == "" {
		return "call"
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
