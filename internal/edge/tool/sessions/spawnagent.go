package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"goclaw"
)

// spawnAgent starts a worker by its definition and answers with what it said:
// until then the call is suspended. Made again, it finds the same worker.
func (d deps) spawnAgent(ctx context.Context, in goclaw.Invocation) (any, error) {
	var q goclaw.SpawnRequest
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, goclaw.BadRequest("arguments: " + err.Error())
	}
	q.Announce = goclaw.AnnounceNone // the result is the call's
	reply, err := d.spawner.Spawn(ctx, in, q)
	if err != nil || reply.RunID == "" {
		return reply, err
	}
	run, err := d.records.Run(ctx, reply.RunID)
	switch {
	case err != nil:
		return nil, err
	case !run.State.Ended():
		return goclaw.ToolResult{Suspend: &goclaw.WaitingEvent{For: goclaw.WaitWorkers}}, nil
	}
	text, next := piece(run.Result, 0)
	if next > 0 {
		text += fmt.Sprintf("\n\n[cut here; subagents info %s with offset %d reads on]", run.ID, next)
	}
	if run.State != goclaw.StateCompleted {
		text = strings.TrimSpace(fmt.Sprintf("The worker %s ended: %s. %s\n\n%s", run.Name(), run.State, run.Error, text))
	}
	return goclaw.ToolResult{Content: text, IsError: run.State != goclaw.StateCompleted}, nil
}
