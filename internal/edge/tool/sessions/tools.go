package sessions

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"goclaw"
)

// Spawner starts and ends runs, and reaches those under way. The engine is one.
type Spawner interface {
	Spawn(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest) (goclaw.SpawnReply, error)
	Cancel(ctx context.Context, id, why string, cascade bool) ([]goclaw.Run, error)
	// Steer hands a message to an unended worker: goclaw.ErrEnded if it has
	// ended. The same once is taken once.
	Steer(ctx context.Context, id, text, from, once string) (goclaw.Run, error)
}

// Records answers questions about runs.
type Records interface {
	Runs
	Inbox
}

// Runs are the recorded runs.
type Runs interface {
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	Events(ctx context.Context, run string) ([]goclaw.Event, error)
}

// Inbox tells what is on its way into a session, and which workers wait for a
// slot, in order.
type Inbox interface {
	Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error)
	Queue(ctx context.Context) ([]string, error)
}

// Transcripts answers questions about sessions.
type Transcripts interface {
	AllSessions(ctx context.Context) ([]goclaw.Session, error)
	History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error)
}

var (
	//go:embed spawn.json
	spawnSchema []byte
	//go:embed agent.json
	agentSchema []byte
	//go:embed subagents.json
	subagentsSchema []byte
	//go:embed list.json
	listSchema []byte
	//go:embed history.json
	historySchema []byte
	//go:embed status.json
	statusSchema []byte
)

// SpawnTools names the tools that a worker gets only where it may spawn.
func SpawnTools() []string { return []string{"sessions_spawn", "spawn_agent", "subagents"} }

// Tools returns the six tools.
func Tools(s Spawner, r Records, t Transcripts) []goclaw.Tool {
	d := deps{s, r, t}
	spec := func(name, description string, schema []byte) goclaw.ToolSpec {
		return goclaw.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(strings.TrimSpace(string(schema))), Idempotent: true}
	}
	spawn := spec("sessions_spawn", "Start a background worker in an isolated session. Returns at once; its result is announced to you when it ends.", spawnSchema)
	spawn.Ordered = true // workers are known in the order in which they were asked for
	subagents := spec("subagents", "List, inspect, steer, cancel or wait for your workers. Results come by themselves: wait only where you can't go on without them, and never poll.", subagentsSchema)
	subagents.Ordered = true // messages arrive in the order in which they were sent
	return []goclaw.Tool{
		tool{spawn, d.spawn},
		tool{spec("spawn_agent", "Start a worker by its definition and wait for its answer, which is this call's result. sessions_spawn doesn't wait.", agentSchema), d.spawnAgent},
		tool{subagents, d.subagents},
		tool{spec("sessions_list", "List your sessions, newest first.", listSchema), d.list},
		tool{spec("sessions_history", "Read the transcript of one of your sessions.", historySchema), d.history},
		tool{spec("session_status", "This session: model, tokens used, workers under way.", statusSchema), d.status},
	}
}

// tool is one of the six. All of them may run again after a crash: a spawn or
// a message is accepted once per call, and a run that was cancelled stays
// cancelled. Its answer is sent as JSON, unless it is a ToolResult.
type tool struct {
	spec goclaw.ToolSpec
	call func(context.Context, goclaw.Invocation) (any, error)
}

func (t tool) Spec() goclaw.ToolSpec { return t.spec }

func (t tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	v, err := t.call(ctx, in)
	switch {
	case err == nil:
	case goclaw.IsBadRequest(err), errors.Is(err, goclaw.ErrNotFound), errors.Is(err, goclaw.ErrEnded), errors.Is(err, goclaw.ErrFenced):
		v = goclaw.Failed(err.Error())
	default: // the store could not be asked
		return goclaw.ToolResult{Again: err}
	}
	if res, done := v.(goclaw.ToolResult); done {
		return res
	}
	b, jerr := json.Marshal(v)
	if jerr != nil {
		return goclaw.ToolError(jerr.Error())
	}
	reply, isReply := v.(goclaw.SpawnReply)
	return goclaw.ToolResult{Content: string(b), IsError: isReply && reply.Error != ""}
}

type deps struct {
	spawner     Spawner
	records     Records
	transcripts Transcripts
}

func (d deps) spawn(ctx context.Context, in goclaw.Invocation) (any, error) {
	var q goclaw.SpawnRequest
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, goclaw.BadRequest("arguments: " + err.Error())
	}
	return d.spawner.Spawn(ctx, in, q)
}
