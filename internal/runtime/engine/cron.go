package engine

import (
	"context"
	"fmt"

	"goclaw"
	"goclaw/internal/core/budget"
)

// CronRun says what a firing of a job is to accept: a turn of the job's
// session, or a run of its own without history. A goclaw.BadRequest says why
// the job can't run as it is.
func (e *Engine) CronRun(ctx context.Context, j goclaw.CronJob, _ goclaw.Millis) (goclaw.Acceptance, error) {
	request := e.cronTurn
	if j.Target == goclaw.TargetIsolated {
		request = e.cronWorker
	}
	a, err := request(ctx, j)
	if err != nil {
		return goclaw.Acceptance{}, err
	}
	a.Run.Label = j.Name
	a.Run.Profile.Budget.Run = budget.Narrowed(a.Run.Profile.Budget.Run, j.Budget)
	a.Run.Profile.TimeoutMs = budget.Lower(a.Run.Profile.TimeoutMs, 1000*j.Budget.Seconds)
	e.prepare(&a)
	return a, nil
}

// cronTurn is a turn of the conversation that the job speaks in.
func (e *Engine) cronTurn(ctx context.Context, j goclaw.CronJob) (goclaw.Acceptance, error) {
	key := j.Session
	if key.IsZero() {
		key = goclaw.MainKey(j.Agent)
	}
	if key.IsWorker() {
		return goclaw.Acceptance{}, goclaw.BadRequest(fmt.Sprintf("%s is a worker's session; name the chat that the job shall speak in", key))
	}
	profile, err := e.sessionProfile(ctx, key, j.Model)
	if err != nil {
		return goclaw.Acceptance{}, err
	}
	profile.Pinned = j.Model != ""
	if j.Thinking != "" {
		profile.Thinking = j.Thinking
	}
	run := goclaw.Run{Session: key, Trigger: goclaw.TriggerCron, Task: fmt.Sprintf("[Cron: %s] %s", j.Name, j.Message), Profile: profile}
	if j.Heartbeat {
		run.Trigger, run.Task = goclaw.TriggerHeartbeat, j.Message
	}
	return goclaw.Acceptance{Run: run}, nil
}

// cronWorker is a run like a spawned one, of the session that is told its
// result.
func (e *Engine) cronWorker(ctx context.Context, j goclaw.CronJob) (goclaw.Acceptance, error) {
	from, err := e.o.Rules.Main(j.Agent, "", "")
	if err != nil {
		return goclaw.Acceptance{}, err
	}
	from.MaxSpawnDepth = max(1, from.MaxSpawnDepth) // that workers may not be spawned is no reason against a job
	q := goclaw.SpawnRequest{
		Task: j.Message, Agent: j.Definition, Model: j.Model, Thinking: j.Thinking, TimeoutSeconds: j.TimeoutSeconds,
	}
	in := goclaw.Invocation{Session: j.Session, Lane: j.Key(), Profile: from}
	worker, refused := e.worker(q, in, 0)
	if refused != nil {
		return goclaw.Acceptance{}, goclaw.BadRequest(refused.Error)
	}
	profile, stored, problem := e.stored(ctx, in, q, worker)
	if problem != nil {
		return goclaw.Acceptance{}, goclaw.BadRequest(problem.Error())
	}
	run := goclaw.Run{
		Session: j.Key(), Trigger: goclaw.TriggerCron, Requester: j.Session, Depth: 1, Lane: j.Key(),
		Task: j.Message, Profile: profile, Cleanup: goclaw.CleanupKeep, Announce: goclaw.AnnounceEach,
	}
	if j.Session.IsZero() {
		run.Announce = goclaw.AnnounceNone
	}
	return goclaw.Acceptance{Run: run, Blobs: stored}, nil
}
