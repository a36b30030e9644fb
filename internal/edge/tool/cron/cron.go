package cron

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// Crontab is what agents do by the clock. A goclaw.BadRequest says what is
// wrong with a job.
type Crontab interface {
	List(ctx context.Context) ([]goclaw.CronReport, error)
	Show(ctx context.Context, id string) (goclaw.CronReport, error)
	// AddEdit adds the job that an edit describes; the same once adds one.
	AddEdit(ctx context.Context, e goclaw.CronEdit, once string) (goclaw.CronReport, error)
	ChangeEdit(ctx context.Context, id string, e goclaw.CronEdit) (goclaw.CronReport, error)
	Pause(ctx context.Context, id string) (goclaw.CronReport, error)
	Resume(ctx context.Context, id string) (goclaw.CronReport, error)
	Remove(ctx context.Context, id string) error
	// RunNow fires a job by hand; the same once fires it once.
	RunNow(ctx context.Context, id, once string) (goclaw.Run, error)
	// History lists what became of a job's due times, newest first.
	History(ctx context.Context, id string, limit int) ([]goclaw.Firing, error)
}

// Name is the tool's.
const Name = "cron"

//go:embed schema.json
var schema []byte

// New returns the tool. It writes times as the clock of zone shows them.
func New(c Crontab, zone *time.Location) goclaw.Tool { return tool{c, zone} }

type tool struct {
	crontab Crontab
	zone    *time.Location
}

// Spec: every action may run again after a crash. add and run happen once per
// call. change, pause and resume say what shall be, and say the same again;
// only what is counted from now (20m, equal steps) is counted from the second
// time then. What remove has removed it doesn't find again. In one reply they
// follow one another, so that a job is paused after it was changed.
func (t tool) Spec() goclaw.ToolSpec {
	return goclaw.ToolSpec{
		Name: Name, Description: "Do things later or regularly: keep jobs that fire by the clock.",
		Schema: json.RawMessage(strings.TrimSpace(string(schema))), Idempotent: true, Ordered: true,
	}
}

// request is what the agent asks. What is nil was not given.
type request struct {
	Action, ID string

	Name, Message, At, Every, Cron, Timezone *string
	Target                                   *goclaw.CronTarget
	Deliver, Model, Thinking, Agent          *string
	TimeoutSeconds                           *int
	Missed                                   *goclaw.MissedPolicy
}

func (t tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	if in.Session.IsWorker() {
		return goclaw.ToolError("only the main agent keeps jobs; say in your result what shall be done, and when")
	}
	var q request
	if err := json.Unmarshal([]byte(in.Call.Arguments), &q); err != nil {
		return goclaw.ToolError("arguments: " + err.Error())
	}
	v, err := t.do(ctx, in, q)
	switch {
	case goclaw.IsBadRequest(err):
		return goclaw.ToolError(err.Error())
	case errors.Is(err, goclaw.ErrNotFound):
		return goclaw.ToolError(fmt.Sprintf("you have no job %q; action list shows them", q.ID))
	case err != nil: // the store could not be asked
		return goclaw.ToolResult{Again: err}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return goclaw.ToolError(err.Error())
	}
	return goclaw.ToolOK(string(b))
}

func (t tool) do(ctx context.Context, in goclaw.Invocation, q request) (any, error) {
	switch q.Action {
	case "list":
		return t.list(ctx, in)
	case "add":
		return t.add(ctx, in, q)
	}
	if q.ID == "" {
		return nil, goclaw.BadRequest("id is missing: name one of your jobs (action list)")
	}
	job, err := t.crontab.Show(ctx, q.ID)
	if err != nil {
		return nil, err
	}
	if !mayKeep(in, job.CronJob) {
		return nil, goclaw.ErrNotFound
	}
	switch q.Action {
	case "change":
		return t.change(ctx, in, q)
	case "pause":
		return t.shown(t.crontab.Pause(ctx, q.ID))
	case "resume":
		return t.shown(t.crontab.Resume(ctx, q.ID))
	case "run":
		run, err := t.crontab.RunNow(ctx, q.ID, once(in))
		return map[string]string{"status": "accepted", "runId": run.ID, "sessionKey": run.Session.String()}, err
	case "remove":
		return map[string]string{"removed": q.ID}, t.crontab.Remove(ctx, q.ID)
	case "history":
		return t.history(ctx, q.ID)
	}
	return nil, goclaw.BadRequest(fmt.Sprintf("there is no action %q", q.Action))
}

// once is the key under which a call does something a single time.
func once(in goclaw.Invocation) string { return "tool:" + in.Fence.Run + ":" + in.Call.ID }

// mayKeep reports whether a job is one of the session's. A job that tells
// nobody is the main session's.
func mayKeep(in goclaw.Invocation, j goclaw.CronJob) bool {
	of := j.Session
	if of.IsZero() {
		of = j.Key()
	}
	return j.Agent == in.Session.Agent && mayReach(in, of) == nil
}

// mayReach says what stands against having a session spoken to.
func mayReach(in goclaw.Invocation, key goclaw.SessionKey) error {
	if ok, why := in.Profile.Access(in.Session, in.Fence.Run).MaySee(goclaw.Thing{Session: key}); !ok {
		return goclaw.BadRequest("deliver: " + why)
	}
	return nil
}

func (t tool) list(ctx context.Context, in goclaw.Invocation) (any, error) {
	all, err := t.crontab.List(ctx)
	jobs := []job{}
	for _, r := range all {
		if mayKeep(in, r.CronJob) {
			jobs = append(jobs, t.describe(r))
		}
	}
	return jobs, err
}

func (t tool) add(ctx context.Context, in goclaw.Invocation, q request) (any, error) {
	e, err := q.edit(in)
	if err != nil {
		return nil, err
	}
	e.Agent = &in.Session.Agent
	if e.Session == nil {
		e.Session = &in.Session
	}
	return t.shown(t.crontab.AddEdit(ctx, e, once(in)))
}

func (t tool) change(ctx context.Context, in goclaw.Invocation, q request) (any, error) {
	e, err := q.edit(in)
	if err != nil {
		return nil, err
	}
	if e == (goclaw.CronEdit{}) {
		return nil, goclaw.BadRequest("nothing to change: give what shall be different")
	}
	return t.shown(t.crontab.ChangeEdit(ctx, q.ID, e))
}

// edit is what the request says of a job.
func (q request) edit(in goclaw.Invocation) (goclaw.CronEdit, error) {
	e := goclaw.CronEdit{
		Name: q.Name, Message: q.Message, At: q.At, Every: q.Every, Cron: q.Cron, Timezone: q.Timezone, Target: q.Target,
		Model: q.Model, Thinking: q.Thinking, TimeoutSeconds: q.TimeoutSeconds, Definition: q.Agent, Missed: q.Missed,
	}
	if q.Deliver == nil {
		return e, nil
	}
	e.Session = new(goclaw.SessionKey)
	if *q.Deliver == "" {
		return e, mayKeepSilent(in)
	}
	key, err := goclaw.ParseSessionKey(*q.Deliver)
	if err != nil {
		return e, goclaw.BadRequest("deliver: " + err.Error())
	}
	*e.Session = key
	return e, mayReach(in, key)
}

// mayKeepSilent says why a session may not keep a job that tells nobody: it would
// not see it again.
func mayKeepSilent(in goclaw.Invocation) error {
	if in.Session.Kind != goclaw.KindMain {
		return goclaw.BadRequest("deliver: only the agent's main session keeps jobs that tell nobody")
	}
	return nil
}

func (t tool) shown(r goclaw.CronReport, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return t.describe(r), nil
}
