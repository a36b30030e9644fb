package gateway

import (
	"context"
	"slices"

	"goclaw"
	"goclaw/internal/core/turn"
)

// AnswerCalls hands a turn the results of the tools that its caller runs:
// goclaw.ErrEnded if it waits for none any more.
func (g *Gateway) AnswerCalls(ctx context.Context, run string, results []goclaw.ToolResult) (goclaw.Run, error) {
	return g.o.Runner.AnswerCalls(ctx, run, results)
}

// callerCalls are the calls that a waiting run's caller is to make, without
// those whose results are on their way to it.
func (g *Gateway) callerCalls(ctx context.Context, r goclaw.Run) ([]goclaw.ToolCall, error) {
	if r.State != goclaw.StateWaiting || r.WaitsFor != goclaw.WaitCaller {
		return nil, nil
	}
	// The results first: taking them records their events in the same instant, so
	// that they are missed by one of the two looks at most.
	items, err := g.o.Record.Pending(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(items, func(it goclaw.InboxItem) bool { return it.Kind == goclaw.ItemResults && it.Group == r.ID }) {
		return nil, nil
	}
	events, err := g.o.Record.Events(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return turn.CallerCalls(r, turn.Fold(events)).Open, nil
}
