package file

import (
	"context"
	"encoding/json"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/tool"
)

// DefaultMaxOutput bounds a result when Options.MaxOutput is 0.
const DefaultMaxOutput = 30_000

// Options configure the file tools.
type Options struct {
	// Home is GOCLAW_HOME, hidden even where a workspace contains it. A
	// workspace inside it is in reach.
	Home string
	// Shelves are the folders outside the workspace that a run may read, and
	// only read; nil: none. It is asked at each call for a path that may lie in
	// one.
	Shelves func(goclaw.Profile) []goclaw.Shelf
	// MaxOutput bounds the bytes of a result; 0 means DefaultMaxOutput.
	MaxOutput int
}

// Tools returns read, write, edit, ls, grep and glob, which share the record
// of what each session has read.
func Tools(o Options) []goclaw.Tool {
	if o.MaxOutput <= 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	k := &kit{options: o, seen: newLedger(maxSeen)}
	return []goclaw.Tool{
		newTool(k, readSpec, (*call).read),
		newTool(k, writeSpec, (*call).write),
		newTool(k, editSpec, (*call).edit),
		newTool(k, lsSpec, (*call).ls),
		newTool(k, grepSpec, (*call).grep),
		newTool(k, globSpec, (*call).glob),
	}
}

// kit is what the tools share.
type kit struct {
	options Options
	seen    *ledger
}

// call is one call under way.
type call struct {
	*kit
	reach   *tool.Reach
	session string
	profile goclaw.Profile
}

// handler is a tool with arguments of type A. Its error is the failed result.
type handler[A any] struct {
	kit  *kit
	spec goclaw.ToolSpec
	run  func(*call, context.Context, A) (string, error)
}

func newTool[A any](k *kit, spec goclaw.ToolSpec, run func(*call, context.Context, A) (string, error)) goclaw.Tool {
	return handler[A]{kit: k, spec: spec, run: run}
}

// Spec implements goclaw.Tool.
func (h handler[A]) Spec() goclaw.ToolSpec { return h.spec }

// Target implements goclaw.PathTool.
func (h handler[A]) Target(in goclaw.Invocation) (string, error) {
	var args struct{ Path string }
	if err := json.Unmarshal([]byte(in.Call.Arguments), &args); err != nil {
		return "", err
	}
	reach, err := h.open(in)
	if err != nil {
		return "", err
	}
	defer reach.Close()
	return reach.Resolve(args.Path)
}

func (h handler[A]) open(in goclaw.Invocation) (*tool.Reach, error) {
	return tool.Open(tool.Scope{
		Workspace: in.Profile.Workspace, Home: h.kit.options.Home,
		Access: in.Profile.Access(in.Session, in.Fence.Run),
	})
}

// Call implements goclaw.Tool.
func (h handler[A]) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	var args A
	if err := json.Unmarshal([]byte(in.Call.Arguments), &args); err != nil {
		return goclaw.ToolError(fmt.Sprintf("%s: arguments: %v", h.spec.Name, err))
	}
	reach, err := h.open(in)
	if err != nil {
		return goclaw.ToolError(fmt.Sprintf("%s: %v", h.spec.Name, err))
	}
	defer reach.Close()
	text, err := h.run(&call{kit: h.kit, reach: reach, session: in.Session.String(), profile: in.Profile}, ctx, args)
	if err != nil {
		return goclaw.ToolError(err.Error())
	}
	return goclaw.ToolOK(text)
}
