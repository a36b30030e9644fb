package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"goclaw"
)

const (
	maxStops    = 4 // the API's limit
	errorPrefix = "Error: "
)

// params translates req.
func (p *Provider) params(req goclaw.ModelRequest) sdk.ChatCompletionNewParams {
	params := sdk.ChatCompletionNewParams{
		Model:         req.Model,
		Messages:      messages(req),
		Tools:         tools(req.Tools),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	if req.Thinking != "" && req.Thinking != "off" {
		params.ReasoningEffort = shared.ReasoningEffort(req.Thinking)
	}
	if req.Temperature != nil && !reasons(req.Model) {
		params.Temperature = sdk.Float(*req.Temperature)
	}
	switch {
	case req.MaxTokens > 0 && p.legacyMax:
		params.MaxTokens = sdk.Int(int64(req.MaxTokens))
	case req.MaxTokens > 0:
		params.MaxCompletionTokens = sdk.Int(int64(req.MaxTokens))
	}
	if stops := slices.DeleteFunc(slices.Clone(req.Stop), isEmpty); len(stops) > 0 && !reasons(req.Model) {
		params.Stop.OfStringArray = stops[:min(len(stops), maxStops)]
	}
	setSchema(&params, req.Schema)
	if p.cacheKey && req.Session != "" {
		sum := sha256.Sum256([]byte(req.Session))
		params.PromptCacheKey = sdk.String(hex.EncodeToString(sum[:16]))
	}
	return params
}

func isEmpty(s string) bool { return s == "" }

// function is the wire form of a tool: the SDK's own type would lose the order
// of the schema's keys.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func tools(specs []goclaw.ToolSpec) []sdk.ChatCompletionToolUnionParam {
	var out []sdk.ChatCompletionToolUnionParam
	for _, spec := range specs {
		f := function{Name: spec.Name, Description: spec.Description, Parameters: spec.Schema}
		out = append(out, sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](f)))
	}
	return out
}

func messages(req goclaw.ModelRequest) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	var system []string
	for _, b := range req.System {
		if b.Text != "" {
			system = append(system, b.Text)
		}
	}
	if len(system) > 0 {
		out = append(out, sdk.SystemMessage(strings.Join(system, "\n\n")))
	}
	for _, m := range req.Messages {
		if m.Role == goclaw.RoleAssistant {
			out = append(out, assistantMessage(m)...)
		} else {
			out = append(out, userMessages(m)...)
		}
	}
	return out
}

// userMessages gives the tool results first: they must follow their calls.
func userMessages(m goclaw.Message) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	var texts []string
	for _, part := range m.Parts {
		switch {
		case part.Kind == goclaw.PartToolResult && part.Result != nil:
			content := part.Result.Content
			if part.Result.IsError && !strings.HasPrefix(content, errorPrefix) {
				content = errorPrefix + content
			}
			out = append(out, sdk.ToolMessage(content, part.Result.CallID))
		case part.Kind == goclaw.PartText && part.Text != "":
			texts = append(texts, part.Text)
		}
	}
	if len(texts) > 0 {
		out = append(out, sdk.UserMessage(strings.Join(texts, "\n\n")))
	}
	return out
}

// assistantMessage gives one message, or none for a reply without content.
func assistantMessage(m goclaw.Message) []sdk.ChatCompletionMessageParamUnion {
	var message sdk.ChatCompletionAssistantMessageParam
	for _, call := range m.Calls() {
		message.ToolCalls = append(message.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       call.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: object(call.Arguments)},
			},
		})
	}
	text := m.PlainText()
	if text == "" && len(message.ToolCalls) == 0 {
		return nil
	}
	if text != "" {
		message.Content.OfString = sdk.String(text)
	}
	return []sdk.ChatCompletionMessageParamUnion{{OfAssistant: &message}}
}

// object returns arguments as the text of a JSON object: what the model wrote
// if it is one, else a wrapper around it.
func object(arguments string) string {
	raw := bytes.TrimSpace([]byte(arguments))
	if len(raw) == 0 {
		return "{}"
	}
	if raw[0] == '{' && json.Valid(raw) {
		return arguments
	}
	// A map of strings can't fail to marshal.
	wrapped, _ := json.Marshal(map[string]string{"_malformed": arguments})
	return string(wrapped)
}
