package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/turn"
)

// Explain returns the prompt that a query asks for: the recorded one of a run
// or of a worker's session, or the one that the next turn of a session, or the
// next firing of a job, would get.
func (e *Engine) Explain(ctx context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error) {
	switch {
	case q.Definition != "":
		return e.explainDefinition(ctx, q)
	case q.Job != nil:
		return e.explainJob(ctx, *q.Job)
	case q.Run == "" && q.Session.IsWorker():
		runs, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Session: q.Session, Limit: 1})
		if err != nil {
			return goclaw.Prompt{}, err
		}
		if len(runs) == 0 {
			return goclaw.Prompt{}, fmt.Errorf("session %s: %w", q.Session, goclaw.ErrNotFound)
		}
		q.Run = runs[0].ID
	case q.Run == "":
		profile, err := e.sessionProfile(ctx, q.Session, "")
		if err != nil {
			return goclaw.Prompt{}, err
		}
		made, err := e.assemble(ctx, q.Session, e.withNotes(q.Session, profile), "")
		return made.prompt, err
	}
	run, err := e.o.Store.Run(ctx, q.Run)
	if err != nil {
		return goclaw.Prompt{}, err
	}
	events, err := e.o.Store.Events(ctx, run.ID)
	if err != nil {
		return goclaw.Prompt{}, err
	}
	if len(events) == 0 || events[0].Prompt == nil {
		spec, err := e.spec(ctx, run)
		if err != nil {
			return goclaw.Prompt{}, err
		}
		made, err := e.assemble(ctx, run.Session, e.withNotes(run.Session, run.Profile), spec.Body)
		return made.prompt, err
	}
	return e.recorded(ctx, events[0].Prompt.PromptSHA)
}

// explainJob is the prompt of an isolated job's next firing.
func (e *Engine) explainJob(ctx context.Context, job goclaw.CronJob) (goclaw.Prompt, error) {
	a, err := e.CronRun(ctx, job, 0)
	if err != nil {
		return goclaw.Prompt{}, err
	}
	var spec definition.Spec
	for _, b := range a.Blobs {
		if b.SHA256 == a.Run.Profile.Spec && !a.Run.Profile.Flow {
			if err := json.Unmarshal(b.Data, &spec); err != nil {
				return goclaw.Prompt{}, fmt.Errorf("the definition of job %s: %w", job.ID, err)
			}
		}
	}
	made, err := e.assemble(ctx, a.Run.Session, a.Run.Profile, spec.Body)
	return made.prompt, err
}

// explainDefinition is the prompt of a worker that a session would spawn by a
// definition; its slices stand at the end, as sections that are not stable. A
// refusal is a goclaw.BadRequest.
func (e *Engine) explainDefinition(ctx context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error) {
	profile, err := e.sessionProfile(ctx, q.Session, "")
	if err != nil {
		return goclaw.Prompt{}, err
	}
	in := goclaw.Invocation{Session: q.Session, Lane: q.Session, Profile: profile}
	ask := goclaw.SpawnRequest{Task: "…", Agent: q.Definition, Input: json.RawMessage(q.Input)}
	w, refused := e.worker(ask, in, 0)
	if refused != nil {
		return goclaw.Prompt{}, goclaw.BadRequest(refused.Error)
	}
	spec, problem := specOf(ask, w)
	if problem == nil {
		spec.Slices, problem = e.cut(ctx, in, *spec, w.Profile)
	}
	if problem != nil {
		return goclaw.Prompt{}, goclaw.BadRequest(problem.Error())
	}
	made, err := e.assemble(ctx, goclaw.SubagentKey(w.Profile.Agent, "new"), w.Profile, spec.Body)
	if err != nil {
		return goclaw.Prompt{}, err
	}
	p := made.prompt
	p.Sections = slices.Clone(p.Sections)
	for _, s := range spec.Slices {
		source := s.Source
		if s.Dropped > 0 {
			source += fmt.Sprintf(" (%s; %d bytes left out)", s.How, s.Dropped)
		}
		p.Sections = append(p.Sections, goclaw.Section{ID: "slice:" + s.Tag, Source: source, Tokens: s.Tokens, Text: s.Text})
	}
	if w.Note != "" {
		p.Warnings = append(slices.Clone(p.Warnings), w.Note)
	}
	return p, nil
}

// spec loads what a run has taken from its definition; it is empty if there is
// none.
func (e *Engine) spec(ctx context.Context, r goclaw.Run) (s definition.Spec, err error) {
	if r.Profile.Spec == "" || r.Profile.Flow {
		return s, nil
	}
	raw, err := e.o.Store.Blob(ctx, r.Profile.Spec)
	if err != nil {
		return s, fmt.Errorf("load the definition of run %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("the definition of run %s: %w", r.ID, err)
	}
	return s, nil
}

// recorded loads a prompt by its hash.
func (e *Engine) recorded(ctx context.Context, sha string) (goclaw.Prompt, error) {
	raw, err := e.o.Store.Blob(ctx, sha)
	if err != nil {
		return goclaw.Prompt{}, fmt.Errorf("load recorded prompt: %w", err)
	}
	var p goclaw.Prompt
	if err := json.Unmarshal(raw, &p); err != nil {
		return goclaw.Prompt{}, fmt.Errorf("recorded prompt %s: %w", sha, err)
	}
	return p, nil
}

// AsSent rebuilds the request of a run's model call from the record, byte for
// byte as it was sent. step counts from 1; 0 is the last one. A run that has
// none on record is goclaw.ErrNotFound, a step that there is not or a provider
// that is not configured any more a goclaw.BadRequest.
func (e *Engine) AsSent(ctx context.Context, id string, step int) (goclaw.Sent, error) {
	run, err := e.o.Store.Run(ctx, id)
	if err != nil {
		return goclaw.Sent{}, err
	}
	events, err := e.o.Store.Events(ctx, run.ID)
	if err != nil {
		return goclaw.Sent{}, err
	}
	var calls []int // where they stand among events
	for i, ev := range events {
		if ev.Paid() != nil {
			calls = append(calls, i)
		}
	}
	switch {
	case len(calls) == 0:
		return goclaw.Sent{}, noCalls(run, len(events) > 0)
	case step < 0 || step > len(calls):
		return goclaw.Sent{}, goclaw.BadRequest(fmt.Sprintf("run %s has no model call %d: they are numbered 1 to %d", run.ID, step, len(calls)))
	case step == 0:
		step = len(calls)
	}
	at := calls[step-1]
	j := &job{e: e, r: run, state: turn.Fold(events[:at])}
	if j.prompt, err = e.recorded(ctx, j.state.Prompt.PromptSHA); err != nil {
		return goclaw.Sent{}, err
	}
	if j.spec, err = e.spec(ctx, run); err != nil {
		return goclaw.Sent{}, err
	}
	build := j.request
	if events[at].Handoff != nil {
		build = j.handoffRequest
	}
	if c := events[at].Compact; c != nil {
		build = func(model string) goclaw.ModelRequest { return j.summaryRequest(model, c.Through) }
	}
	if asked := events[at].Paid().MaxTokens; asked != 0 { // a budget may have lowered it
		plain := build
		build = func(model string) goclaw.ModelRequest {
			req := plain(model)
			req.MaxTokens = asked
			return req
		}
	}
	sent, err := e.encode(ctx, j, j.state.Prompt.From, build)
	sent.Step, sent.Steps = step, len(calls)
	return sent, err
}

// nothingSent is a goclaw.ErrNotFound about a run that there is.
type nothingSent string

func (n nothingSent) Error() string   { return string(n) }
func (nothingSent) Is(err error) bool { return err == goclaw.ErrNotFound }

func noCalls(r goclaw.Run, events bool) error {
	if !events && r.State.Ended() && r.Cleanup == goclaw.CleanupDelete {
		return nothingSent(fmt.Sprintf("the transcript of run %s was removed (cleanup: delete)", r.ID))
	}
	return nothingSent(fmt.Sprintf("run %s is %s and has no model call on record", r.ID, r.State))
}

// Upcoming is what the next turn of a session sends before its own input.
func (e *Engine) Upcoming(ctx context.Context, key goclaw.SessionKey) (goclaw.Sent, error) {
	p, err := e.Explain(ctx, goclaw.ContextQuery{Session: key})
	if err != nil {
		return goclaw.Sent{}, err
	}
	next := goclaw.Run{Session: key, Trigger: goclaw.TriggerUser, Profile: goclaw.Profile{Model: p.Model}}
	j := &job{e: e, r: next, prompt: p}
	sent, err := e.encode(ctx, j, 0, j.request)
	sent.Run = goclaw.Run{}
	return sent, err
}

// encode has the provider tell what it would send for a job whose run, prompt
// and state are set.
func (e *Engine) encode(ctx context.Context, j *job, from int64, build func(model string) goclaw.ModelRequest) (goclaw.Sent, error) {
	provider, model, err := e.o.Models.Provider(j.r.Profile.Model)
	if err != nil {
		return goclaw.Sent{}, goclaw.BadRequest(fmt.Sprintf(
			"only the provider of %s can tell what was sent, and it is not configured any more: %v", j.r.Profile.Model, err))
	}
	encoder, ok := provider.(goclaw.Encoder)
	if !ok {
		return goclaw.Sent{}, goclaw.BadRequest(fmt.Sprintf("the provider of %s can't tell what it sends", j.r.Profile.Model))
	}
	if j.logs, err = e.before(ctx, j.r, from); err != nil {
		return goclaw.Sent{}, err
	}
	j.system = prompt.Render(j.prompt)
	j.look()
	body, err := encoder.Encode(build(model))
	if err != nil {
		return goclaw.Sent{}, err
	}
	return goclaw.Sent{Run: j.r, Session: j.r.Session, Model: j.r.Profile.Model, Prompt: j.prompt, Body: body}, nil
}

// before returns what a run is shown of its session: the runs before it, oldest
// first, from the one with ordinal from on, or, if that is 0, since the last
// reset. What a request has shown once stays so: a reset that came after it
// counts for later runs only. A cron job's firings know nothing of each other.
func (e *Engine) before(ctx context.Context, r goclaw.Run, from int64) ([]goclaw.RunLog, error) {
	if r.Session.Kind == goclaw.KindCron || from != 0 && from >= r.Ordinal {
		return nil, nil
	}
	logs, err := e.o.Store.History(ctx, r.Session, r.Ordinal)
	if err != nil || from == 0 || len(logs) > 0 && logs[0].Run.Ordinal == from {
		return logs, err
	}
	runs, err := e.o.Store.Runs(ctx, goclaw.RunFilter{Session: r.Session})
	if err != nil {
		return nil, err
	}
	logs = nil
	for _, old := range slices.Backward(runs) {
		if old.Ordinal < from || old.Ordinal >= r.Ordinal {
			continue
		}
		events, err := e.o.Store.Events(ctx, old.ID)
		if err != nil {
			return nil, err
		}
		logs = append(logs, goclaw.RunLog{Run: old, Events: events})
	}
	return logs, nil
}
