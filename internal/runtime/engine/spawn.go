package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/schema"
	"goclaw/internal/core/typed"
)

// Spawn checks and accepts a subagent run for the caller of a tool, in the
// order of spec section 5. The same call of the same run spawns once, however
// often it is made. A refusal is a reply; an error means that the store could
// not be asked.
func (e *Engine) Spawn(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest) (goclaw.SpawnReply, error) {
	return e.spawn(ctx, in, q, &in.Fence, "spawn:"+in.Fence.Run+":"+in.Call.ID)
}

// SpawnFor is Spawn for a person, on behalf of a main session. Such a run is
// announced by itself, and the root of a tree of its own. The same key spawns
// once; "" is always new.
func (e *Engine) SpawnFor(ctx context.Context, key goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error) {
	profile, err := e.sessionProfile(ctx, key, "")
	if err != nil {
		return goclaw.SpawnReply{}, err
	}
	if q.Announce != goclaw.AnnounceNone {
		q.Announce = goclaw.AnnounceEach
	}
	in := goclaw.Invocation{Session: key, Lane: key, Profile: profile}
	if once != "" {
		once = "spawn:" + key.String() + ":" + once
	}
	return e.spawn(ctx, in, q, nil, once)
}

// spawn leaves the limit of children to the store, which counts them in the
// transaction of the acceptance; only a refusal looks at what there is.
func (e *Engine) spawn(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest, fence *goclaw.Fence, known string) (goclaw.SpawnReply, error) {
	worker, refused := e.worker(q, in, 0)
	if refused != nil {
		return e.refuse(ctx, in, q, known)
	}
	profile, stored, problem := e.stored(ctx, in, q, worker)
	if problem != nil {
		return goclaw.Failed(problem.Error()), nil
	}
	reply, err := e.acceptWorker(ctx, in, q, profile, stored, fence, known)
	reply.Note = worker.Note
	return reply, err
}

// stored completes the profile with what is stored with the run: the flow that
// its definition begins, or what it takes from its definition. The error is for
// the requester.
func (e *Engine) stored(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest, w definition.Worker) (goclaw.Profile, []goclaw.Blob, error) {
	p := w.Profile
	if f, input, ok, err := e.chain(q, w); err != nil || ok {
		if err != nil {
			return p, nil, err
		}
		blob, err := flowBlob(f, input)
		return flowing(p, blob), []goclaw.Blob{blob}, err
	}
	spec, err := specOf(q, w)
	if err != nil || spec == nil {
		return p, nil, err
	}
	if spec.Slices, err = e.cut(ctx, in, *spec, p); err != nil {
		return p, nil, err
	}
	if spec.Typed.Output != nil {
		p.Answer = spec.Typed.Output.Format
	}
	blob, err := blobOf("definition "+spec.Name, *spec)
	p.Spec = blob.SHA256
	return p, []goclaw.Blob{blob}, err
}

func (e *Engine) acceptWorker(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest, profile goclaw.Profile, blobs []goclaw.Blob, fence *goclaw.Fence, known string) (goclaw.SpawnReply, error) {
	profile.Asked = q.Digest
	run := goclaw.Run{
		Session: goclaw.SubagentKey(profile.Agent, e.o.NewID()), Trigger: goclaw.TriggerSpawn,
		Requester: in.Session, Parent: in.Fence.Run, Depth: in.Depth + 1, Root: in.Root, Lane: in.Lane,
		Label: strings.TrimSpace(q.Label), Task: q.Task, Context: q.Context, Profile: profile,
		Cleanup: q.Cleanup, Announce: q.Announce,
	}
	if run.Cleanup == "" {
		run.Cleanup = goclaw.CleanupKeep
	}
	if run.Announce == "" {
		run.Announce = goclaw.AnnounceTogether
	}
	run, _, err := e.Accept(ctx, goclaw.Acceptance{
		Run: run, Key: known, ParentFence: fence, MaxChildren: in.Profile.MaxChildren, MaxTreeRuns: in.Profile.MaxTreeRuns,
		Blobs: blobs,
	})
	if errors.Is(err, goclaw.ErrTreeFull) {
		return goclaw.Forbidden(fmt.Sprintf("sessions_spawn has reached the most workers that one input may ever lead to (%d, maxRunsPerTree); "+
			"go on with the results that there are, or ask the user", in.Profile.MaxTreeRuns)), nil
	}
	if errors.Is(err, goclaw.ErrTooManyChildren) {
		return goclaw.Forbidden(definition.TooManyChildren(in.Profile.MaxChildren, in.Profile.MaxChildren)), nil
	}
	if err != nil {
		return goclaw.SpawnReply{}, err
	}
	return accepted(run), nil
}

// specOf is what the run takes from its definition and from the typed part of
// the request; nil if there is neither. The error is for the requester.
func specOf(q goclaw.SpawnRequest, w definition.Worker) (*definition.Spec, error) {
	if w.Definition == nil && len(q.OutputSchema) == 0 {
		if len(q.Input) > 0 {
			return nil, errors.New("input is for definitions that ask for it; name one as agent, or write it into the task")
		}
		return nil, nil
	}
	var spec definition.Spec
	if w.Definition != nil {
		spec = w.Definition.Spec()
		var err error
		if spec.Input, err = typed.Input(spec.Typed.Input, q.Input); err != nil {
			return nil, fmt.Errorf("input of %s: %w", w.Definition.Name, err)
		}
		for _, a := range spec.Typed.Artifacts {
			if _, err := typed.FillGlob(a.Path, spec.Input); err != nil {
				return nil, fmt.Errorf("%s: an artifact that it declares: %w", spec.Path, err)
			}
		}
	}
	if len(q.OutputSchema) > 0 {
		if _, err := schema.Compile(q.OutputSchema); err != nil {
			return nil, fmt.Errorf("outputSchema: %w", err)
		}
		spec.Typed.Output = &definition.Output{Format: "json", Schema: q.OutputSchema, Retries: 1}
	}
	return &spec, nil
}

// blobOf encodes what is stored with a run.
func blobOf(what string, v any) (goclaw.Blob, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return goclaw.Blob{}, fmt.Errorf("encode %s: %w", what, err)
	}
	sum := sha256.Sum256(raw)
	return goclaw.Blob{SHA256: hex.EncodeToString(sum[:]), Data: raw}, nil
}

// worker resolves what q asks for, or refuses it.
func (e *Engine) worker(q goclaw.SpawnRequest, in goclaw.Invocation, children int) (definition.Worker, *goclaw.SpawnReply) {
	var problem string
	switch {
	case strings.TrimSpace(q.Task) == "":
		problem = "task is empty; say what the worker shall do"
	case q.TimeoutSeconds != nil && *q.TimeoutSeconds < 0:
		problem = "timeoutSeconds is negative; 0 means no limit"
	default:
		return e.o.Rules.Worker(q, definition.Requester{Depth: in.Depth, Children: children, Profile: in.Profile})
	}
	reply := goclaw.Failed(problem)
	return definition.Worker{}, &reply
}

// refuse gives the first reason in the order of the checks, unless this very
// call was accepted before a crash, under rules that have changed since.
func (e *Engine) refuse(ctx context.Context, in goclaw.Invocation, q goclaw.SpawnRequest, known string) (goclaw.SpawnReply, error) {
	if known != "" && in.Fence.Run != "" {
		if run, ok, err := e.spawned(ctx, in.Fence.Run, known); err != nil || ok {
			return accepted(run), err
		}
	}
	active, err := e.o.Store.Runs(ctx, goclaw.RunFilter{
		Requester: in.Session, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: true,
	})
	if err != nil {
		return goclaw.SpawnReply{}, fmt.Errorf("count workers: %w", err)
	}
	_, refused := e.worker(q, in, len(active))
	return *refused, nil
}

// spawned finds the run that this very call accepted before a crash.
func (e *Engine) spawned(ctx context.Context, parent, key string) (goclaw.Run, bool, error) {
	runs, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Parent: parent})
	if err != nil {
		return goclaw.Run{}, false, fmt.Errorf("look for the spawned run: %w", err)
	}
	for _, r := range runs {
		if r.Idempotent == key {
			return r, true, nil
		}
	}
	return goclaw.Run{}, false, nil
}

func accepted(r goclaw.Run) goclaw.SpawnReply {
	return goclaw.SpawnReply{Status: "accepted", RunID: r.ID, SessionKey: r.Session.String()}
}

// Cancel asks for a run's end, found by id or prefix, and for that of its
// descendants if cascade is set. It returns the runs that were asked now.
func (e *Engine) Cancel(ctx context.Context, id, why string, cascade bool) ([]goclaw.Run, error) {
	run, err := e.o.Store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	asked, err := e.o.Store.Cancel(ctx, goclaw.Cancellation{
		Run: run.ID, Why: why, Now: goclaw.At(time.Now()), Cascade: cascade,
	})
	if err != nil {
		return nil, fmt.Errorf("cancel run: %w", err)
	}
	for _, r := range asked {
		e.stopAsked(r, why)
	}
	e.Wake()
	return asked, nil
}

// Submit accepts a person's message as a turn of its session.
func (e *Engine) Submit(ctx context.Context, in goclaw.Inbound) (goclaw.Run, error) {
	profile, err := e.sessionProfile(ctx, in.Session, in.Model)
	if err != nil {
		return goclaw.Run{}, err
	}
	profile.Pinned, profile.Message, profile.Asked = in.Model != "", in.MessageID, in.Digest
	if err := e.offer(&profile, in.Caller); err != nil {
		return goclaw.Run{}, err
	}
	if err := demand(&profile, in); err != nil {
		return goclaw.Run{}, err
	}
	key := in.Key
	if key != "" {
		key = "inbound:" + in.Session.String() + ":" + key
	}
	run, created, err := e.Accept(ctx, goclaw.Acceptance{
		Run: goclaw.Run{Session: in.Session, Trigger: goclaw.TriggerUser, Task: in.Text, Profile: profile},
		Key: key,
	})
	if err == nil && created {
		err = e.supersede(ctx, run)
	}
	return run, err
}

// sessionProfile resolves the profile of a session's next turn. A worker's
// session keeps the profile of its run.
func (e *Engine) sessionProfile(ctx context.Context, key goclaw.SessionKey, model string) (goclaw.Profile, error) {
	if key.IsWorker() {
		runs, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Session: key, Limit: 1})
		if err != nil {
			return goclaw.Profile{}, err
		}
		if len(runs) == 0 {
			return goclaw.Profile{}, fmt.Errorf("session %s: %w", key, goclaw.ErrNotFound)
		}
		return runs[0].Profile, nil
	}
	s, err := e.o.Store.Session(ctx, key)
	if err != nil && !errors.Is(err, goclaw.ErrNotFound) {
		return goclaw.Profile{}, fmt.Errorf("load session: %w", err)
	}
	if model == "" {
		model = s.Model
	}
	return e.o.Rules.Main(key.Agent, model, s.Thinking)
}
