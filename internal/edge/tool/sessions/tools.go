package sessions

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"goclaw"
)

// Spawner starts and ends runs. The engine is one.
type Spawner interface {
	Spawn(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest) (goclaw.SpawnReply, error)
	Cancel(ctx context.Context, id, why string, cascade bool) ([]goclaw.Run, error)
}

// Records answers questions about runs.
type Records interface {
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	Events(ctx context.Context, run string) ([]goclaw.Event, error)
}

// Transcripts answers questions about sessions.
type Transcripts interface {
	AllSessions(ctx context.Context) ([]goclaw.Session, error)
	History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error)
}

var (
	//go:embed spawn.json
	spawnSchema []byte
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
func SpawnTools() []string { return []string{"sessions_spawn", "subagents"} }

// Tools returns the five tools.
func Tools(s Spawner, r Records, t Transcripts) []goclaw.Tool {
	d := deps{s, r, t}
	spec := func(name, description string, schema []byte) goclaw.ToolSpec {
		return goclaw.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(strings.TrimSpace(string(schema))), Idempotent: true}
	}
	spawn := spec("sessions_spawn", "Start a background worker in an isolated session. Returns at once; its result is announced to you when it ends.", spawnSchema)
	spawn.Ordered = true // workers are known in the order in which they were asked for
	return []goclaw.Tool{
		tool{spawn, d.spawn},
		tool{spec("subagents", "List, inspect or cancel your workers. Not for waiting: results come by themselves.", subagentsSchema), d.subagents},
		tool{spec("sessions_list", "List your sessions, newest first.", listSchema), d.list},
		tool{spec("sessions_history", "Read the transcript of one of your sessions.", historySchema), d.history},
		tool{spec("session_status", "This session: model, tokens used, workers under way.", statusSchema), d.status},
	}
}

// tool is one of the five. All of them may run again after a crash: a spawn is
// accepted once per call, and a run that was cancelled stays cancelled.
type tool struct {
	spec goclaw.ToolSpec
	call func(context.Context, goclaw.Invocation) (any, error)
}

func (t tool) Spec() goclaw.ToolSpec { return t.spec }

func (t tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	v, err := t.call(ctx, in)
	if err != nil {
		v = goclaw.Failed(err.Error())
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
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return d.spawner.Spawn(ctx, in, q)
}

// worker is what an agent is told of one of its runs.
type worker struct {
	RunID      string          `json:"runId"`
	Label      string          `json:"label"`
	Status     goclaw.RunState `json:"status"`
	SessionKey string          `json:"sessionKey"`
	Model      string          `json:"model"`
	Tokens     int64           `json:"tokens"`
	DurationMs int64           `json:"durationMs,omitempty"`
	Task       string          `json:"task,omitempty"`
	Result     string          `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func describe(r goclaw.Run) worker {
	return worker{
		RunID: r.ID, Label: r.Name(), Status: r.State, SessionKey: r.Session.String(),
		Model: r.Profile.Model, Tokens: r.Usage.Input + r.Usage.Output, DurationMs: r.DurationMs(), Error: r.Error,
	}
}

func (d deps) mine(ctx context.Context, key goclaw.SessionKey, active bool) ([]goclaw.Run, error) {
	return d.records.Runs(ctx, goclaw.RunFilter{
		Requester: key, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: active, Limit: 50,
	})
}

func (d deps) subagents(ctx context.Context, in goclaw.Invocation) (any, error) {
	var q struct{ Action, ID string }
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	runs, err := d.mine(ctx, in.Session, false)
	if err != nil {
		return nil, err
	}
	if q.Action == "list" {
		out := make([]worker, len(runs))
		for i, r := range runs {
			out[i] = describe(r)
		}
		return out, nil
	}
	run, err := find(runs, q.ID)
	if err != nil {
		return nil, err
	}
	switch q.Action {
	case "info":
		w := describe(run)
		w.Task, w.Result = run.Task, run.Result
		return w, nil
	case "log":
		events, err := d.records.Events(ctx, run.ID)
		return steps(events), err
	}
	asked, err := d.spawner.Cancel(ctx, run.ID, "cancelled by its requester", true)
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": "ok", "cancelled": len(asked)}, nil
}

func find(runs []goclaw.Run, name string) (goclaw.Run, error) {
	if name == "" {
		return goclaw.Run{}, errors.New("id is missing: name one of your workers (action list)")
	}
	var found []goclaw.Run
	for _, r := range runs {
		if r.Name() == name || strings.HasPrefix(r.ID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return goclaw.Run{}, fmt.Errorf("none of your workers is %q (action list shows them)", name)
	case 1:
		return found[0], nil
	}
	return goclaw.Run{}, fmt.Errorf("%d of your workers are called %q; use a run id", len(found), name)
}

// steps words a run's record briefly.
func steps(events []goclaw.Event) []string {
	lines := []string{}
	for _, e := range events {
		switch {
		case e.Model != nil:
			line := "model: " + clip(e.Model.Message.PlainText())
			for _, c := range e.Model.Message.Calls() {
				line += fmt.Sprintf(" [%s %s]", c.Name, clip(c.Arguments))
			}
			lines = append(lines, line)
		case e.Result != nil:
			lines = append(lines, e.Result.Name+": "+clip(e.Result.Content))
		case e.End != nil:
			lines = append(lines, strings.TrimSpace("end: "+string(e.End.State)+" "+e.End.Error))
		}
	}
	return lines
}

func clip(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
