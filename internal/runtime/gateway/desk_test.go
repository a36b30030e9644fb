package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/core/flow"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/feed"
	"goclaw/internal/runtime/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var mainKey = goclaw.MainKey("main")

// desk is a gateway on a memory store. Nothing runs by itself: the test ends
// runs as an engine would.
type desk struct {
	*testing.T
	*gateway.Gateway
	store  *memory.Store
	feed   *feed.Broker
	runner *runner
	state  goclaw.Status
	status error
}

func newDesk(t *testing.T) *desk {
	d := &desk{
		T: t, store: memory.Open(), feed: feed.New(),
		state: goclaw.Status{Version: "1.2.3", Active: 4, Queued: 5, Sandbox: "bubblewrap"},
	}
	d.runner = &runner{desk: d}
	d.Gateway = gateway.New(gateway.Options{
		Runner: d.runner, Explainer: explainer{d.store}, Record: d.store, Feed: d.feed,
		Agents: []string{"main", "second"},
		ResolveModel: func(name string) (string, error) {
			if name != "p/big" && name != "big" {
				return "", fmt.Errorf("unknown model %q", name)
			}
			return "p/big", nil
		},
		Status: func(context.Context) (goclaw.Status, error) {
			return d.state, d.status
		},
	})
	return d
}

// runner accepts what it is given, and notes how it was asked.
type runner struct {
	desk    *desk
	ids     int
	spawned []goclaw.SpawnRequest
	steered []string
	refuse  string
	fail    error
}

func (r *runner) accept(ctx context.Context, run goclaw.Run, key string) (goclaw.Run, error) {
	r.ids++
	run.ID = fmt.Sprintf("%04d-run", r.ids)
	run.State, run.CreatedAt = goclaw.StateQueued, goclaw.At(time.Now())
	got, _, err := r.desk.store.Accept(ctx, goclaw.Acceptance{Run: run, Key: key})
	return got, err
}

func (r *runner) Submit(ctx context.Context, in goclaw.Inbound) (goclaw.Run, error) {
	if r.fail != nil {
		return goclaw.Run{}, r.fail
	}
	return r.accept(ctx, goclaw.Run{
		Session: in.Session, Trigger: goclaw.TriggerUser, Task: in.Text, Profile: goclaw.Profile{Model: in.Model, Asked: in.Digest},
	}, in.Key)
}

func (r *runner) Compact(ctx context.Context, key goclaw.SessionKey, instructions, once string) (goclaw.Run, error) {
	if r.fail != nil {
		return goclaw.Run{}, r.fail
	}
	return r.accept(ctx, goclaw.Run{Session: key, Trigger: goclaw.TriggerCompact, Task: instructions}, once)
}

func (r *runner) SpawnFor(ctx context.Context, key goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error) {
	r.spawned = append(r.spawned, q)
	if r.refuse != "" {
		return goclaw.Forbidden(r.refuse), nil
	}
	run, err := r.accept(ctx, goclaw.Run{
		Session: goclaw.SubagentKey(key.Agent, fmt.Sprint("by-hand-", len(r.spawned))), Trigger: goclaw.TriggerSpawn, Requester: key, Depth: 1, Task: q.Task, Profile: goclaw.Profile{Asked: q.Digest},
	}, once)
	return goclaw.SpawnReply{Status: "accepted", RunID: run.ID}, err
}

func (r *runner) AnswerCalls(ctx context.Context, id string, results []goclaw.ToolResult) (goclaw.Run, error) {
	return goclaw.Run{}, fmt.Errorf("%d results for %s: %w", len(results), id, goclaw.ErrEnded)
}

func (r *runner) Cancel(ctx context.Context, id, why string, cascade bool) ([]goclaw.Run, error) {
	run, err := r.desk.store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.desk.store.Cancel(ctx, goclaw.Cancellation{Run: run.ID, Why: why, Now: goclaw.At(time.Now()), Cascade: cascade})
}

func (r *runner) Steer(ctx context.Context, id, text, from, once string) (goclaw.Run, error) {
	run, err := r.desk.store.Run(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if run.Trigger != goclaw.TriggerSpawn {
		return goclaw.Run{}, goclaw.BadRequest("that is no worker")
	}
	if once == "" {
		once = fmt.Sprint("message-", len(r.steered))
	}
	r.steered = append(r.steered, from+": "+text)
	return run, r.desk.store.Post(ctx, run.ID, goclaw.InboxItem{ID: once, Text: text, CreatedAt: goclaw.At(time.Now())})
}

func (r *runner) Resume(ctx context.Context, id string) (goclaw.Run, error) {
	return r.desk.store.Resume(ctx, id, goclaw.At(time.Now()))
}

func (r *runner) SetPause(ctx context.Context, on bool, why string) (goclaw.Pause, error) {
	p := goclaw.Pause{}
	if on {
		p = goclaw.Pause{At: goclaw.At(time.Now()), Why: why}
	}
	return p, r.desk.store.SetPause(ctx, p)
}

func (r *runner) Retry(ctx context.Context, id string) error {
	return r.desk.store.Unpark(ctx, id, goclaw.At(time.Now()))
}

func (r *runner) Dismiss(ctx context.Context, id string) error {
	return r.desk.store.Dismiss(ctx, id, goclaw.At(time.Now()))
}

// explainer shows a prompt of two sections and one tool.
type explainer struct{ store *memory.Store }

func (explainer) Explain(_ context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error) {
	if q.Session.Agent == "second" {
		return goclaw.Prompt{}, errors.New("no prompt for that one")
	}
	return goclaw.Prompt{
		Model:    "p/small",
		Sections: []goclaw.Section{{ID: "identity", Source: "built-in", Tokens: 10}, {ID: "file:SOUL.md", Source: "/ws/SOUL.md", Tokens: 30}},
		Tools:    []goclaw.ToolSpec{{Name: "read", Description: "Read", Schema: []byte("{}")}},
		Omitted:  []goclaw.Omission{{Source: "/ws/MEMORY.md", Why: "empty"}},
		Warnings: []string{"SOUL.md: cut"},
	}, nil
}

// sent is what explainer says that a session was sent.
func sent(key goclaw.SessionKey, what string) goclaw.Sent {
	const soul = "You are kind."
	return goclaw.Sent{
		Session: key, Model: "p/small", Prompt: goclaw.Prompt{Sections: []goclaw.Section{{ID: "file:SOUL.md", Text: soul}}},
		Body: fmt.Appendf(nil, `{"model":"small","system":%q,"messages":[{"role":"user","content":%q}]}`, soul, what),
	}
}

// AsSent knows the runs that have ended; each was sent its session's name.
func (e explainer) AsSent(ctx context.Context, id string, step int) (goclaw.Sent, error) {
	run, err := e.store.Run(ctx, id)
	if err != nil {
		return goclaw.Sent{}, err
	}
	if !run.State.Ended() {
		return goclaw.Sent{}, fmt.Errorf("run %s: nothing was sent: %w", id, goclaw.ErrNotFound)
	}
	s := sent(run.Session, "hello "+run.Session.String())
	s.Run, s.Step, s.Steps = run, max(step, 1), 9
	return s, nil
}

func (explainer) Upcoming(_ context.Context, key goclaw.SessionKey) (goclaw.Sent, error) {
	return sent(key, "hello next"), nil
}

// say sends a message and returns its run.
func (d *desk) say(text string) goclaw.Run {
	d.Helper()
	receipt, err := d.Receive(d.T.Context(), goclaw.Inbound{Session: mainKey, Text: text})
	if err != nil || receipt.Run == nil {
		d.Fatalf("%q became %+v, %v", text, receipt, err)
	}
	return *receipt.Run
}

// command sends a slash command and returns its answer.
func (d *desk) command(text string) string {
	d.Helper()
	receipt, err := d.Receive(d.T.Context(), goclaw.Inbound{Session: mainKey, Text: text})
	if err != nil || receipt.Run != nil {
		d.Fatalf("%q became %+v, %v", text, receipt, err)
	}
	return receipt.Reply
}

// refusal is the error that a slash command gets.
func (d *desk) refusal(text string) error {
	_, err := d.Receive(d.T.Context(), goclaw.Inbound{Session: mainKey, Text: text})
	return err
}

// spawn accepts a worker that parent asked for, in a session of its own.
func (d *desk) spawn(parent goclaw.Run, label string, mode goclaw.AnnounceMode) goclaw.Run {
	d.Helper()
	run, err := d.runner.accept(d.T.Context(), goclaw.Run{
		Session: goclaw.SubagentKey("main", label), Trigger: goclaw.TriggerSpawn, Requester: parent.Session,
		Parent: parent.ID, Root: parent.Root, Lane: parent.Lane, Depth: parent.Depth + 1, Label: label, Task: "do " + label, Announce: mode,
		Profile: goclaw.Profile{Model: "p/small", MaxSpawnDepth: 2},
	}, "")
	if err != nil {
		d.Fatal(err)
	}
	return run
}

// begin claims a run.
func (d *desk) begin(id string) goclaw.Run {
	d.Helper()
	claimed, err := d.store.Claim(d.T.Context(), goclaw.ClaimRequest{Owner: "p", Now: goclaw.At(time.Now()), Lease: time.Hour, Max: 100})
	if err != nil {
		d.Fatal(err)
	}
	for _, c := range claimed {
		d.Logf("claimed %s", c.Run.ID)
	}
	run, err := d.store.Run(d.T.Context(), id)
	if err != nil || run.State != goclaw.StateRunning {
		d.Fatalf("run %s is %s, %v", id, run.State, err)
	}
	return run
}

// ending is how a run ends; completed by default.
type ending struct {
	result  string
	state   goclaw.RunState
	problem string
	silent  bool
	takes   []string // ids of the inbox items that its turn was given
	gives   *goclaw.Return
}

// end closes a run, announces it if it was spawned to be, and tells the feed.
func (d *desk) end(id string, e ending) goclaw.Run {
	d.Helper()
	run := d.begin(id)
	now := goclaw.At(time.Now())
	if e.state == "" {
		e.state = goclaw.StateCompleted
	}
	usage := goclaw.Usage{Input: 100, Output: 10}
	batch := goclaw.Batch{
		Now: now, Usage: &usage, Consume: e.takes,
		Events: []goclaw.Event{
			{Seq: 0, Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{PromptSHA: "0123456789", Input: goclaw.Text(goclaw.RoleUser, run.Task), Inbox: e.takes}},
			{Seq: 1, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: e.state, Result: e.result, Error: e.problem, Silent: e.silent, Returned: e.gives != nil}},
		},
	}
	closing := goclaw.Ending{Batch: batch, State: e.state, Result: e.result, Error: e.problem, Return: e.gives, Wake: &goclaw.Wake{Last: now, Next: now}}
	if run.Trigger == goclaw.TriggerSpawn && run.Announce != goclaw.AnnounceNone {
		closing.Announce = &goclaw.InboxItem{
			ID: run.ID, Session: run.Requester, Source: run.ID, Group: run.Parent, Mode: run.Announce, Text: e.result, CreatedAt: now,
		}
	}
	if run.Session.Kind == goclaw.KindChannel {
		closing.Outbox = &goclaw.Outbound{ID: run.ID, Session: run.Session, Run: run.ID, Text: e.result, State: "pending", CreatedAt: now}
	}
	if err := d.store.End(d.T.Context(), run.Fence(), closing); err != nil {
		d.Fatal(err)
	}
	run.State = e.state
	d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeRun, Session: run.Session, RunID: run.ID, Run: &run})
	return run
}

// suspend makes a running worker wait.
func (d *desk) suspend(r goclaw.Run, why goclaw.WaitReason) {
	d.Helper()
	err := d.store.Suspend(d.T.Context(), r.Fence(), goclaw.Suspension{For: why, Batch: goclaw.Batch{Now: goclaw.At(time.Now())}})
	if err != nil {
		d.Fatal(err)
	}
}

// append records a step of a running run.
func (d *desk) append(r goclaw.Run, b goclaw.Batch) {
	d.Helper()
	b.Now = goclaw.At(time.Now())
	if err := d.store.Append(d.T.Context(), r.Fence(), b); err != nil {
		d.Fatal(err)
	}
}

// park gives an ended worker's result up until a person decides.
func (d *desk) park(id, why string) {
	d.Helper()
	err := d.store.Postpone(d.T.Context(), []string{id}, goclaw.Return{Why: why, Parked: true}, goclaw.At(time.Now()))
	if err != nil {
		d.Fatal(err)
	}
}

// announcement accepts the turn in which results are told.
func (d *desk) announcement() goclaw.Run {
	d.Helper()
	run, err := d.runner.accept(d.T.Context(), goclaw.Run{Session: mainKey, Trigger: goclaw.TriggerAnnouncement}, "")
	if err != nil {
		d.Fatal(err)
	}
	return run
}

// RunFlow notes the flow as a spawn by its name.
func (r *runner) RunFlow(ctx context.Context, key goclaw.SessionKey, f flow.Flow, input json.RawMessage, once string) (goclaw.SpawnReply, error) {
	return r.SpawnFor(ctx, key, goclaw.SpawnRequest{Task: "flow " + f.Name + " " + string(input)}, once)
}
