package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// worker is what an agent is told of one of its runs.
type worker struct {
	RunID      string            `json:"runId"`
	Label      string            `json:"label"`
	Status     goclaw.RunState   `json:"status"`
	Position   int               `json:"position,omitempty"`
	WaitsFor   goclaw.WaitReason `json:"waitsFor,omitempty"`
	SessionKey string            `json:"sessionKey"`
	Model      string            `json:"model"`
	Tokens     int64             `json:"tokens"`
	DurationMs int64             `json:"durationMs,omitempty"`
	Task       string            `json:"task,omitempty"`
	Result     string            `json:"result,omitempty"`
	NextOffset int               `json:"nextOffset,omitempty"` // where the rest of the result begins
	Error      string            `json:"error,omitempty"`
}

func describe(r goclaw.Run) worker {
	return worker{
		RunID: r.ID, Label: r.Name(), Status: r.State, WaitsFor: r.WaitsFor, SessionKey: r.Session.String(),
		Model: r.Profile.Model, Tokens: r.Usage.Input + r.Usage.Output, DurationMs: r.DurationMs(), Error: r.Error,
	}
}

// request is what an agent asks of its workers.
type request struct {
	Action         string
	ID             string
	Message        string
	Offset         int
	TimeoutSeconds int
}

func (d deps) subagents(ctx context.Context, in goclaw.Invocation) (any, error) {
	var q request
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return nil, goclaw.BadRequest("arguments: " + err.Error())
	}
	switch {
	case q.Action == "list":
		return d.listWorkers(ctx, in.Session)
	case q.Action == "wait" && q.ID == "":
		return d.waitAll(ctx, in, q)
	}
	run, err := d.find(ctx, in.Session, q.ID)
	if err != nil {
		return nil, err
	}
	switch q.Action {
	case "info":
		w := describe(run)
		w.Task = run.Task
		w.Result, w.NextOffset = piece(run.Result, q.Offset)
		return w, nil
	case "log":
		events, err := d.records.Events(ctx, run.ID)
		return steps(events), err
	case "steer":
		return d.steer(ctx, in, run, q.Message)
	case "wait":
		return d.wait(ctx, in, q, []goclaw.Run{run})
	}
	asked, err := d.spawner.Cancel(ctx, run.ID, "cancelled by its requester", true)
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": "ok", "cancelled": len(asked)}, nil
}

func (d deps) listWorkers(ctx context.Context, key goclaw.SessionKey) (any, error) {
	runs, err := d.mine(ctx, key, goclaw.RunFilter{Limit: mostListed})
	if err != nil {
		return nil, err
	}
	var queue []string
	if slices.ContainsFunc(runs, func(r goclaw.Run) bool { return r.State == goclaw.StateQueued }) {
		if queue, err = d.records.Queue(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]worker, len(runs))
	for i, r := range runs {
		out[i] = describe(r)
		out[i].Position = slices.Index(queue, r.ID) + 1
	}
	return out, nil
}

// mine lists the runs that a session asked for, newest first.
func (d deps) mine(ctx context.Context, key goclaw.SessionKey, f goclaw.RunFilter) ([]goclaw.Run, error) {
	f.Requester, f.Triggers = key, []goclaw.Trigger{goclaw.TriggerSpawn}
	return d.records.Runs(ctx, f)
}

// mostListed bounds how many runs are listed, the newest.
const mostListed = 50

// find finds one of the session's own workers: by id, or by prefix or label
// among the newest.
func (d deps) find(ctx context.Context, key goclaw.SessionKey, name string) (goclaw.Run, error) {
	if name == "" {
		return goclaw.Run{}, goclaw.BadRequest("id is missing: name one of your workers (action list)")
	}
	runs, err := d.mine(ctx, key, goclaw.RunFilter{Limit: mostListed})
	if err != nil {
		return goclaw.Run{}, err
	}
	var found []goclaw.Run
	for _, r := range runs {
		if r.Name() == name || strings.HasPrefix(r.ID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		r, err := d.records.Run(ctx, name)
		switch {
		case err == nil && r.Requester == key && r.Trigger == goclaw.TriggerSpawn:
			return r, nil
		case err != nil && !errors.Is(err, goclaw.ErrNotFound) && !goclaw.IsBadRequest(err):
			return goclaw.Run{}, err
		}
		return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("none of your workers is %q (action list shows them)", name))
	case 1:
		return found[0], nil
	}
	return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("%d of your workers are called %q; use a run id", len(found), name))
}

// steer hands the caller's message to its worker, once per call.
func (d deps) steer(ctx context.Context, in goclaw.Invocation, run goclaw.Run, text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, goclaw.BadRequest("message is missing: write what the worker shall know or do")
	}
	_, err := d.spawner.Steer(ctx, run.ID, text, in.Session.String(), "steer:"+in.Fence.Run+":"+in.Call.ID)
	if errors.Is(err, goclaw.ErrEnded) {
		return nil, goclaw.BadRequest(fmt.Sprintf("%s has ended (%s) and reads nothing any more; spawn another", run.Name(), run.State))
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": "ok"}, nil
}

// mostResult bounds how much of a result one call shows, in characters.
const mostResult = 8000

// piece is the part of a text from offset on that one call shows, and where
// the next one begins; 0 if there is none.
func piece(text string, offset int) (part string, next int) {
	runes := []rune(text)
	runes = runes[min(offset, len(runes)):]
	if len(runes) <= mostResult {
		return string(runes), 0
	}
	return string(runes[:mostResult]), offset + mostResult
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
		case e.Input != nil:
			lines = append(lines, "input: "+clip(e.Input.Message.PlainText()))
		case e.Waiting != nil:
			lines = append(lines, "waiting for "+string(e.Waiting.For))
		case e.Resumed != nil:
			lines = append(lines, fmt.Sprintf("resumed at step %d", e.Resumed.Step))
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
