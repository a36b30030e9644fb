package goclaw

import (
	"context"
	"encoding/json"
)

// ToolSpec is what a model is told about a tool.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the arguments, an object

	// Idempotent tools may run again when a crash left their result
	// unrecorded. It is not sent to the model.
	Idempotent bool `json:"idempotent,omitempty"`

	// Ordered calls of one reply run one after the other, in its order, also
	// if they are idempotent. It is not sent to the model.
	Ordered bool `json:"ordered,omitempty"`
}

// Tokens is what t takes of a request, four bytes each.
func (t ToolSpec) Tokens() int { return (len(t.Name) + len(t.Description) + len(t.Schema) + 3) / 4 }

// Invocation is one tool call with what the tool may know about its caller.
type Invocation struct {
	Call    ToolCall // Arguments have been validated against the schema
	Fence   Fence    // the calling run
	Session SessionKey
	Depth   int
	Profile Profile
	Root    string     // of the calling run
	Lane    SessionKey // of the calling run
	Since   Millis     // when the call's intent was recorded
}

// Tool is the port to something that an agent can do.
type Tool interface {
	// Spec is constant for the life of the value.
	Spec() ToolSpec

	// Call runs the tool. A failure is a result with IsError for the model,
	// never a panic. Call returns within a second of ctx's end, having ended
	// every process that it started. It is safe for concurrent use. The
	// caller sets CallID and Name of the result.
	Call(ctx context.Context, in Invocation) ToolResult
}

// PathTool is a Tool whose calls are each about one place of the workspace.
type PathTool interface {
	Tool

	// Target is where a call leads: relative to the workspace, links followed,
	// with slashes. It changes nothing. An error is one that Call gives as well.
	Target(in Invocation) (string, error)
}

// ToolError is a failed result that the model can act on.
func ToolError(text string) ToolResult { return ToolResult{Content: text, IsError: true} }

// ToolOK is a successful result.
func ToolOK(text string) ToolResult { return ToolResult{Content: text} }
