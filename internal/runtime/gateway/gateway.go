package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/core/flow"
	"goclaw/internal/core/turn"
)

// Runner takes work in, and reaches what is under way; the engine is one.
type Runner interface {
	Intake
	Control
	Deliveries
}

// Intake takes work in and ends it.
type Intake interface {
	Submit(ctx context.Context, in goclaw.Inbound) (goclaw.Run, error)
	// Compact accepts a run that shortens what the model sees of a session; a
	// goclaw.BadRequest if that is a worker's. The same once ("" is none)
	// compacts once.
	Compact(ctx context.Context, key goclaw.SessionKey, instructions, once string) (goclaw.Run, error)
	// SpawnFor starts a worker for a person, on behalf of a session. The same
	// once ("" is none) spawns once.
	SpawnFor(ctx context.Context, key goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error)
	Cancel(ctx context.Context, id, why string, cascade bool) ([]goclaw.Run, error)
	// AnswerCalls hands in the results of a caller's own tools.
	AnswerCalls(ctx context.Context, run string, results []goclaw.ToolResult) (goclaw.Run, error)
	// RunFlow starts a flow for a person; its run's result says what came of it.
	RunFlow(ctx context.Context, key goclaw.SessionKey, f flow.Flow, input json.RawMessage, once string) (goclaw.SpawnReply, error)
}

// Control reaches runs that are under way.
type Control interface {
	// Steer hands a message to an unended worker: goclaw.ErrEnded if it has
	// ended, a goclaw.BadRequest if the run is no worker. The same once (""
	// is none) is taken once.
	Steer(ctx context.Context, id, text, from, once string) (goclaw.Run, error)
	// Resume lets a run go on that waits for a person, and is
	// goclaw.ErrNotFound if it does not.
	Resume(ctx context.Context, id string) (goclaw.Run, error)
	SetPause(ctx context.Context, on bool, why string) (goclaw.Pause, error)
}

// Deliveries decides about what was parked.
type Deliveries interface {
	Retry(ctx context.Context, id string) error
	Dismiss(ctx context.Context, id string) error
}

// Explainer shows prompts, and what models were sent.
type Explainer interface {
	Explain(ctx context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error)
	// AsSent rebuilds the request of a run's model call, from 1 (0: the last).
	// A run that has none on record is goclaw.ErrNotFound.
	AsSent(ctx context.Context, run string, step int) (goclaw.Sent, error)
	// Upcoming is what the next turn of a session sends before its input.
	Upcoming(ctx context.Context, key goclaw.SessionKey) (goclaw.Sent, error)
}

// Jobs know what is to be done by the clock.
type Jobs interface {
	// CronJob is goclaw.ErrNotFound if there is no such job.
	CronJob(ctx context.Context, id string) (goclaw.CronJob, error)
}

// Record is what is known of runs, sessions, deliveries and costs.
type Record interface {
	Runs
	Transcripts
	Inbox
	Books
	Shelf
}

// Runs are the recorded runs.
type Runs interface {
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	Events(ctx context.Context, run string) ([]goclaw.Event, error)
}

// Transcripts are the recorded sessions.
type Transcripts interface {
	History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error)
	AllSessions(ctx context.Context) ([]goclaw.Session, error)
	ChangeSession(ctx context.Context, key goclaw.SessionKey, c goclaw.SessionChange, now goclaw.Millis) error
}

// Inbox is what is on its way into transcripts.
type Inbox interface {
	Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error)
	Parked(ctx context.Context) ([]goclaw.Parked, error)
}

// Books tell what waits, what was spent, and whether anything may be.
type Books interface {
	Queue(ctx context.Context) ([]string, error)
	Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error)
	Paused(ctx context.Context) (goclaw.Pause, error)
}

// Shelf holds what runs left.
type Shelf interface {
	ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error)
	Blob(ctx context.Context, sha string) ([]byte, error)
}

// Library knows the definitions of workers, as they are now. An agent or a name
// that is not there is goclaw.ErrNotFound.
type Library interface {
	Definitions(agent string) ([]goclaw.DefinitionReport, error)
	Definition(agent, name string) (goclaw.DefinitionReport, error)
}

// Feed is the live view.
type Feed interface {
	Subscribe(ctx context.Context, match func(goclaw.Notice) bool) <-chan goclaw.Notice
}

// Options are the gateway's collaborators.
type Options struct {
	Runner    Runner
	Explainer Explainer
	Record    Record
	Feed      Feed
	Library   Library
	Memory    Memory // nil: there is none
	Jobs      Jobs   // nil: there are none

	// ResolveModel checks a model that a person names.
	ResolveModel func(string) (string, error)
	// Agents are the configured agents' ids.
	Agents []string
	// Idle reports that no process executes runs now: what is on record as
	// running was interrupted. nil means never.
	Idle func() bool
	// Elsewhere reports that another process may hold the run, so that its
	// notices don't come to Feed; nil means never.
	Elsewhere func(goclaw.Run) bool
	// Status describes the process; the gateway adds nothing to it.
	Status func(context.Context) (goclaw.Status, error)
	Log    *slog.Logger
}

// Gateway is safe for concurrent use.
type Gateway struct{ o Options }

// New returns a gateway.
func New(o Options) *Gateway {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Gateway{o}
}

// Receive takes a person's message in. It returns once the message is durable;
// a slash command is answered at once instead.
func (g *Gateway) Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
	in.Text = strings.TrimSpace(in.Text)
	switch {
	case in.Text == "":
		return goclaw.Receipt{}, goclaw.BadRequest("the message is empty")
	case in.Session.IsZero():
		return goclaw.Receipt{}, goclaw.BadRequest("the message names no session")
	case in.Session.IsWorker():
		return goclaw.Receipt{}, goclaw.BadRequest(fmt.Sprintf("%s is a worker's session; talk to the agent that spawned it", in.Session))
	}
	if err := g.checkAgent(in.Session); err != nil {
		return goclaw.Receipt{}, err
	}
	if in.Model != "" {
		if _, err := g.o.ResolveModel(in.Model); err != nil {
			return goclaw.Receipt{}, goclaw.BadRequest(err.Error())
		}
	}
	if instructions, ok := compaction(in.Text); ok {
		run, err := g.o.Runner.Compact(ctx, in.Session, instructions, in.Key)
		if err != nil {
			return goclaw.Receipt{}, err
		}
		return goclaw.Receipt{Run: &run}, nil
	}
	if strings.HasPrefix(in.Text, "/") {
		if reply, ok, err := g.command(ctx, in); ok || err != nil {
			return goclaw.Receipt{Reply: reply}, err
		}
	}
	run, err := g.o.Runner.Submit(ctx, in)
	if err == nil {
		err = same(run, in.Digest)
	}
	if err != nil {
		return goclaw.Receipt{}, err
	}
	return goclaw.Receipt{Run: &run}, nil
}

func (g *Gateway) checkAgent(key goclaw.SessionKey) error {
	if slices.Contains(g.o.Agents, key.Agent) {
		return nil
	}
	return goclaw.BadRequest(fmt.Sprintf("no agent %q is configured; there are: %s", key.Agent, strings.Join(g.o.Agents, ", ")))
}

// Subscribe follows the live view.
func (g *Gateway) Subscribe(ctx context.Context, match func(goclaw.Notice) bool) <-chan goclaw.Notice {
	return g.o.Feed.Subscribe(ctx, match)
}

// Runs lists runs.
func (g *Gateway) Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error) {
	runs, err := g.o.Record.Runs(ctx, f)
	for i := range runs {
		g.seen(&runs[i])
	}
	return runs, err
}

// seen corrects the state of a run whose process is gone.
func (g *Gateway) seen(r *goclaw.Run) {
	if r.State == goclaw.StateRunning && g.o.Idle != nil && g.o.Idle() {
		r.State = goclaw.StateInterrupted
	}
}

// RunLog returns a run, found by id or prefix, with its events.
func (g *Gateway) RunLog(ctx context.Context, id string) (goclaw.RunLog, error) {
	run, err := g.o.Record.Run(ctx, id)
	if err != nil {
		return goclaw.RunLog{}, err
	}
	g.seen(&run)
	events, err := g.o.Record.Events(ctx, run.ID)
	if err != nil {
		return goclaw.RunLog{}, err
	}
	return goclaw.RunLog{Run: run, Events: events}, nil
}

// Cancel ends a run and all that it started.
func (g *Gateway) Cancel(ctx context.Context, id, why string) ([]goclaw.Run, error) {
	return g.o.Runner.Cancel(ctx, id, why, true)
}

// Sessions lists the sessions, newest first.
func (g *Gateway) Sessions(ctx context.Context) ([]goclaw.Session, error) {
	return g.o.Record.AllSessions(ctx)
}

// History returns a session's transcript since its last reset, as people see
// it: without reply tags.
func (g *Gateway) History(ctx context.Context, key goclaw.SessionKey) ([]goclaw.RunLog, error) {
	logs, err := g.o.Record.History(ctx, key, 0)
	if err != nil || key.IsWorker() {
		return logs, err
	}
	shown := slices.Clone(logs) // the record's own may be shared
	for k := range shown {
		shown[k].Events = slices.Clone(shown[k].Events)
		for i, e := range shown[k].Events {
			if e.Model != nil {
				said := *e.Model
				said.Message = turn.Untagged(said.Message)
				shown[k].Events[i].Model = &said
			}
		}
	}
	return shown, nil
}

// Status describes the process.
func (g *Gateway) Status(ctx context.Context) (goclaw.Status, error) { return g.o.Status(ctx) }
