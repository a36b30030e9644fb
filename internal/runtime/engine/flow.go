package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/flow"
	texts "goclaw/internal/core/slices"
	"goclaw/internal/core/turn"
)

// flowRecord is what is stored with a flow's run.
type flowRecord struct {
	Flow  flow.Flow       `json:"flow"`
	Input json.RawMessage `json:"input,omitempty"`
}

func flowBlob(f flow.Flow, input json.RawMessage) (goclaw.Blob, error) {
	return blobOf("flow "+f.Name, flowRecord{f, input})
}

// flowing is the profile of a flow's run: that of a worker, which calls no
// model.
func flowing(p goclaw.Profile, stored goclaw.Blob) goclaw.Profile {
	p.Flow, p.Spec, p.Answer, p.MaxChildren = true, stored.SHA256, "", 0
	return p
}

// chain is the flow that a definition begins by naming what follows it.
func (e *Engine) chain(q goclaw.SpawnRequest, w definition.Worker) (f flow.Flow, input json.RawMessage, ok bool, err error) {
	if w.Definition == nil || q.Chained {
		return f, nil, false, nil
	}
	catalog := e.o.Rules.Definitions(w.Profile.Workspace)
	if f, ok, err = flow.FromNext(*w.Definition, catalog.Find); err != nil || !ok {
		return f, nil, ok, err
	}
	if _, err := specOf(q, w); err != nil {
		return f, nil, true, err
	}
	task := q.Task
	if q.Context != "" {
		task += "\n\nContext:\n" + q.Context
	}
	given := map[string]any{"task": task}
	if len(q.Input) > 0 {
		given["input"] = q.Input
	}
	if input, err = json.Marshal(given); err != nil {
		return f, nil, true, err
	}
	return f, input, true, flow.CheckInput(f, input)
}

// RunFlow starts a flow for a person, on behalf of a session. It announces
// nothing: its run's result says what came of it. The same once ("" is none)
// starts it once.
func (e *Engine) RunFlow(ctx context.Context, key goclaw.SessionKey, f flow.Flow, input json.RawMessage, once string) (goclaw.SpawnReply, error) {
	if err := flow.CheckInput(f, input); err != nil {
		return goclaw.Failed(err.Error()), nil
	}
	profile, err := e.sessionProfile(ctx, key, "")
	if err != nil {
		return goclaw.SpawnReply{}, err
	}
	q := goclaw.SpawnRequest{Task: "flow " + f.Name + ": " + f.Description, Label: f.Name, Announce: goclaw.AnnounceNone}
	in := goclaw.Invocation{Session: key, Lane: key, Profile: profile}
	worker, refused := e.worker(q, in, 0)
	if refused == nil {
		refused = e.refuseSteps(f, in)
	}
	if refused != nil {
		return *refused, nil
	}
	blob, err := flowBlob(f, input)
	if err != nil {
		return goclaw.SpawnReply{}, err
	}
	if once != "" {
		once = "flow:" + key.String() + ":" + once
	}
	reply, err := e.acceptWorker(ctx, in, q, flowing(worker.Profile, blob), []goclaw.Blob{blob}, nil, once)
	if once == "" || err != nil || reply.RunID == "" {
		return reply, err
	}
	if run, err := e.o.Store.Run(ctx, reply.RunID); err != nil || run.Profile.Spec != blob.SHA256 {
		return goclaw.SpawnReply{}, cmp.Or(err, goclaw.ErrReused)
	}
	return reply, nil
}

// refuseSteps is why a step's worker can't be spawned, nil if all can: the first
// steps must not be paid for when a later one can't be had.
func (e *Engine) refuseSteps(f flow.Flow, in goclaw.Invocation) *goclaw.SpawnReply {
	in.Profile.Tools = e.o.Rules.Tools
	for _, s := range f.Steps {
		q := goclaw.SpawnRequest{Task: s.Task, Agent: s.Agent, AgentID: s.AgentID, Chained: true}
		if _, refused := e.worker(q, in, 0); refused != nil {
			refused.Error = "step " + s.ID + " can't be started: " + refused.Error
			return refused
		}
	}
	return nil
}

// flow goes on with a flow: it starts what can be started, waits without a slot
// for what it has started, and ends when nothing is left. All that it knows is
// on record: what was started is found by its key, so that a crash starts
// nothing twice.
func (j *job) flow() error {
	var rec flowRecord
	raw, err := ask(j, "flow", func(ctx context.Context) ([]byte, error) { return j.e.o.Store.Blob(ctx, j.r.Profile.Spec) })
	if err != nil {
		return fmt.Errorf("load the flow: %w", err)
	}
	if err := json.Unmarshal(raw, &rec); err != nil {
		return fmt.Errorf("the flow of run %s: %w", j.r.ID, err)
	}
	for {
		if err := j.stopped(); err != nil {
			return err
		}
		seen, err := j.pending()
		if err != nil {
			return err
		}
		done, err := j.flowRuns()
		if err != nil {
			return err
		}
		next := flow.Plan(rec.Flow, rec.Input, done)
		if next.Ended {
			return j.end(turn.Action{State: next.State, Result: next.Result, Error: next.Error})
		}
		for _, key := range next.Cancel {
			if err := j.cancelStep(done, key); err != nil {
				return err
			}
		}
		for _, s := range next.Start {
			if err := j.startStep(s); err != nil {
				return err
			}
		}
		if len(next.Start) > 0 {
			continue
		}
		if err := j.suspend(goclaw.WaitingEvent{For: goclaw.WaitWorkers}, len(seen)); !errors.Is(err, goclaw.ErrWoken) {
			return err
		}
	}
}

// stepKey is the idempotency key of a step's run.
func (j *job) stepKey(key string) string { return "flow:" + j.r.ID + ":" + key }

// flowRuns is what is on record of the flow's runs, oldest first.
func (j *job) flowRuns() ([]flow.StepRun, error) {
	runs, err := ask(j, "steps", func(ctx context.Context) ([]goclaw.Run, error) {
		return j.e.o.Store.Runs(ctx, goclaw.RunFilter{Parent: j.r.ID})
	})
	if err != nil {
		return nil, err
	}
	var done []flow.StepRun
	for _, r := range slices.Backward(runs) {
		key, ours := strings.CutPrefix(r.Idempotent, j.stepKey(""))
		if !ours {
			continue
		}
		s := flow.StepRun{Key: key, RunID: r.ID, State: r.State, Error: r.Error, Result: r.Result, JSON: r.Info().Output}
		if r.State.Ended() {
			left, err := ask(j, "artifacts", func(ctx context.Context) ([]goclaw.Artifact, error) {
				return j.e.o.Store.ArtifactsOf(ctx, goclaw.ArtifactFilter{Run: r.ID})
			})
			if err != nil {
				return nil, err
			}
			for _, a := range left {
				s.Artifacts = append(s.Artifacts, a.Name)
			}
		}
		done = append(done, s)
	}
	return done, nil
}

func (j *job) cancelStep(done []flow.StepRun, key string) error {
	for _, s := range done {
		if s.Key != key || s.State.Ended() {
			continue
		}
		if _, err := j.e.Cancel(j.ctx, s.RunID, "another step of the flow has failed", true); err != nil {
			return err
		}
	}
	return nil
}

// startStep spawns a step's run, once however often it is asked to. A refusal
// fails the flow.
func (j *job) startStep(s flow.Start) error {
	batons, err := j.batons(s.Takes)
	if err != nil {
		return err
	}
	q := goclaw.SpawnRequest{
		Task: s.Task, Agent: s.Agent, AgentID: s.AgentID, Label: s.Label, Context: batons,
		Input: s.Input, OutputSchema: s.OutputSchema, Announce: goclaw.AnnounceNone, Chained: true,
	}
	// The steps are at the flow's own depth: it is no worker that splits its task.
	in := goclaw.Invocation{Fence: j.fence, Session: j.r.Session, Depth: j.r.Depth - 1, Profile: j.r.Profile, Root: j.r.Root, Lane: j.r.Lane}
	in.Profile.MaxSpawnDepth = max(in.Profile.MaxSpawnDepth, j.r.Depth)
	in.Profile.Tools = j.e.o.Rules.Tools // as narrow as the agent's own policy makes them
	reply, err := ask(j, "spawn", func(ctx context.Context) (goclaw.SpawnReply, error) {
		return j.e.spawn(ctx, in, q, &j.fence, j.stepKey(s.Key))
	})
	if err == nil && reply.RunID == "" {
		err = fmt.Errorf("step %s can't be started: %s", s.Key, reply.Error)
	}
	return err
}

// batons are the artifacts that a step takes, each in a tag of its own.
func (j *job) batons(takes []flow.Handle) (string, error) {
	inert := texts.Inert("artifact")
	var parts []string
	for _, h := range takes {
		data, err := ask(j, "artifact", func(ctx context.Context) ([]byte, error) {
			found, err := j.e.o.Store.ArtifactsOf(ctx, goclaw.ArtifactFilter{Run: h.RunID, Name: h.Name})
			if err != nil || len(found) == 0 {
				return nil, errors.Join(err, goclaw.ErrNotFound)
			}
			return j.e.o.Store.Blob(ctx, found[0].SHA256)
		})
		if err != nil {
			return "", fmt.Errorf("artifact %s of step %s: %w", h.Name, h.Key, err)
		}
		text := string(data)
		if len(text) > mostBaton {
			text = fmt.Sprintf("(%d bytes; read them with artifact_read %s)", len(data), goclaw.ArtifactHandle(h.RunID, h.Name))
		}
		parts = append(parts, fmt.Sprintf("<artifact name=%q from=%q>\n%s\n</artifact>", h.Name, flow.StepOf(h.Key), strings.TrimSpace(inert(text))))
	}
	return strings.Join(parts, "\n\n"), nil
}

// mostBaton is the most of an artifact that is written into a step's message, in
// bytes; a longer one is named.
const mostBaton = 64 << 10
