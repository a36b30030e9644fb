package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/turn"
)

// job executes one claimed run.
type job struct {
	e        *Engine
	r        goclaw.Run
	fence    goclaw.Fence
	takeOver bool
	released bool // the last owner let go in order

	work    context.Context // the engine's; ends at shutdown
	ctx     context.Context // ends with a cause: shutdown, lost, timeout, cancelled
	stop    context.CancelCauseFunc
	release func()

	mu    sync.Mutex // tools record their results concurrently
	state turn.State

	prompt  goclaw.Prompt
	system  []goclaw.SystemBlock // the prompt rendered
	logs    []goclaw.RunLog      // of the session's earlier runs; shared, never changed
	view    turn.View            // what compactions have made of the session
	history []goclaw.Message     // logs, as the model sees them

	spec definition.Spec // what the run takes from its definition

	squeezed bool // the provider refused a request as too long
	asItIs   bool // it refused to sum the session up

	maxTokens int // of the last request
}

func newJob(work context.Context, e *Engine, c goclaw.Claimed) *job {
	ctx, stop := context.WithCancelCause(work)
	release := func() { stop(context.Canceled) }
	if c.Run.Deadline != 0 {
		var end context.CancelFunc
		ctx, end = context.WithDeadlineCause(ctx, c.Run.Deadline.Time(), errTimeout)
		release = func() { end(); stop(context.Canceled) }
	}
	return &job{
		e: e, work: work, r: c.Run, fence: c.Run.Fence(), takeOver: c.TakeOver, released: c.Released,
		ctx: ctx, stop: stop, release: release,
	}
}

// run works until the run has ended or is no longer ours. What waits for a model
// does so below run, loop, callModel and stream, one stack for each run: these
// leave what needs much of it to others.
func (j *job) run() {
	j.e.publishRun(j.r)
	if err := j.loop(); err != nil {
		j.stopFor(err)
	}
}

// stopFor ends the run, or lets it go, as the error says that broke off its work.
func (j *job) stopFor(err error) {
	cause := context.Cause(j.ctx)
	var asked cancelled
	switch {
	case errors.Is(err, goclaw.ErrFenced), errors.Is(cause, errLost):
		j.e.o.Log.Warn("run is no longer ours; letting it go", "run", j.r.ID)
		return
	case errors.Is(cause, errShutdown), errors.Is(err, errShutdown), errors.Is(err, errSuspended):
		return
	case errors.Is(cause, errTimeout):
		err = j.end(turn.Action{State: goclaw.StateTimeout, Result: j.state.Text(), Error: j.timeIsUp()})
	case errors.As(cause, &asked):
		err = j.end(turn.Action{State: goclaw.StateCancelled, Result: j.state.Text(), Error: asked.why})
	default:
		err = j.fail(err)
	}
	if err != nil {
		j.e.orphans.Store(true)
		j.e.o.Log.Error("the run's end could not be recorded; it will be resumed", "run", j.r.ID, "err", err)
	}
}

// fail ends the run with what it has done. Announcements that a budget leaves
// no call for are shown to the person as they are.
func (j *job) fail(why error) error {
	a := turn.Action{State: goclaw.StateFailed, Result: j.state.Text(), Error: why.Error()}
	var over overBudget
	if j.r.Trigger == goclaw.TriggerAnnouncement && errors.As(why, &over) && len(j.state.Steps) == 0 {
		a.Result = announce.Unanswered(prompt.Said(j.state.Prompt.Input))
	}
	return j.end(a)
}

// timeIsUp says which limit ended the run.
func (j *job) timeIsUp() string {
	if j.r.Deadline != 0 && j.r.Deadline == j.r.Profile.Until {
		return fmt.Sprintf("budget: the time that one input may take with all that it leads to (budget.tree.seconds: %d) is over", j.r.Profile.Budget.Tree.Seconds)
	}
	return fmt.Sprintf("the run's limit of %s is over", time.Duration(j.r.Profile.TimeoutMs)*time.Millisecond)
}

// loop goes on step by step until the run has ended, or an error says why this
// job stops working on it.
func (j *job) loop() error {
	if err := j.load(); err != nil {
		return err
	}
	if j.r.Profile.Flow {
		return j.flow()
	}
	for {
		if j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		var err error
		switch a := turn.Next(j.state, j.maxCalls()); a.Kind {
		case turn.Assemble:
			if err = j.stopped(); err == nil {
				err = j.assemble()
			}
		case turn.CallModel:
			if err = j.stopped(); err == nil {
				err = j.converse()
			}
		case turn.CallTools: // also while draining: their intents are on record
			err = j.callTools(a.Calls)
		case turn.Finish:
			err = j.finish(a)
		case turn.Done:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// maxCalls bounds the run's model calls: by its definition, or the engine's own
// bound if that is less.
func (j *job) maxCalls() int {
	own, all := j.r.Profile.MaxCalls, j.e.o.MaxCalls
	if own == 0 || all > 0 && all < own {
		return all
	}
	return own
}

// stopped says why no further model call is begun, or nil.
func (j *job) stopped() error {
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	select {
	case <-j.e.drain:
		return errShutdown
	default:
		return nil
	}
}

// load folds what is recorded. After a takeover it records what can't be known.
func (j *job) load() error {
	if j.r.CancelAt != 0 { // before the claim; later ones are told to the job
		j.stop(cancelled{j.r.CancelWhy})
	}
	if err := j.loadSpec(); err != nil {
		return err
	}
	if j.r.Epoch <= 1 && !j.takeOver {
		return nil // nobody can have recorded anything yet
	}
	// Also for a run that is to end at once: its log must be continued.
	var events []goclaw.Event
	err := j.persist(func(ctx context.Context) (err error) {
		events, err = j.e.o.Store.Events(ctx, j.r.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("load events: %w", err)
	}
	j.state = turn.Fold(events)
	if j.state.Prompt == nil {
		return j.unmoved()
	}
	if err := j.loadPrompt(); err != nil {
		return err
	}
	if j.takeOver {
		return j.recover() // writes first
	}
	return j.unmoved()
}

func (j *job) loadSpec() (err error) {
	if j.r.Profile.Spec != "" && !j.r.Profile.Flow {
		j.spec, err = ask(j, "definition", func(ctx context.Context) (definition.Spec, error) { return j.e.spec(ctx, j.r) })
	}
	return err
}

// unmoved fails with ErrFenced if another owner has taken the run since it was
// claimed: what was read may be its doing. A takeover learns that by writing.
func (j *job) unmoved() error {
	now, err := ask(j, "run", func(ctx context.Context) (goclaw.Run, error) { return j.e.o.Store.Run(ctx, j.r.ID) })
	if err == nil && now.Fence() != j.fence {
		err = goclaw.ErrFenced
	}
	return err
}

// recover records the takeover and does as the restart policy says.
func (j *job) recover() error {
	rec := turn.Recover(j.state, j.e.o.Owner, j.released)
	events := []goclaw.Event{{Kind: goclaw.EventResumed, Resumed: &rec.Event}}
	told := goclaw.Recovery{Times: 1, At: goclaw.At(time.Now()), Step: rec.Event.Step, Planned: j.released}
	if j.r.Recovery != nil {
		told.Times += j.r.Recovery.Times
	}
	for i := range rec.Uncertain {
		events = append(events, goclaw.Event{Kind: goclaw.EventResult, Result: &rec.Uncertain[i]})
		told.Uncertain = append(told.Uncertain, rec.Uncertain[i].Name)
	}
	if err := j.append(events, goclaw.Batch{}); err != nil {
		return err
	}
	j.r.Recovery = &told
	j.e.publishRun(j.r)
	switch {
	case j.released:
		return nil
	case j.r.Profile.RestartPolicy == goclaw.RestartFail:
		return fmt.Errorf("the process died while this run was at step %d, and its restartPolicy is fail", rec.Event.Step)
	case j.r.Profile.RestartPolicy == goclaw.RestartAsk:
		return j.waitForPerson()
	}
	return nil
}

func (j *job) loadPrompt() error {
	raw, err := ask(j, "prompt", func(ctx context.Context) ([]byte, error) {
		return j.e.o.Store.Blob(ctx, j.state.Prompt.PromptSHA)
	})
	if err != nil {
		return fmt.Errorf("load recorded prompt: %w", err)
	}
	if err := json.Unmarshal(raw, &j.prompt); err != nil {
		return fmt.Errorf("recorded prompt %s: %w", j.state.Prompt.PromptSHA, err)
	}
	j.system = prompt.Render(j.prompt)
	if _, err := j.loadHistory(); err != nil {
		return err
	}
	j.flush()
	return nil
}

// loadHistory also tells from which run on the session is shown.
func (j *job) loadHistory() (from int64, err error) {
	if j.state.Prompt != nil {
		from = j.state.Prompt.From
	}
	logs, err := ask(j, "transcript", func(ctx context.Context) ([]goclaw.RunLog, error) { return j.e.before(ctx, j.r, from) })
	if err != nil {
		return 0, err
	}
	j.logs = logs
	j.look()
	if len(logs) == 0 {
		return j.r.Ordinal, nil
	}
	return logs[0].Run.Ordinal, nil
}

// assemble makes event 0: the prompt and the turn's input. An announcement's
// input is what is ready now; the same transaction marks it as consumed.
func (j *job) assemble() error {
	made, err := j.e.assemble(j.ctx, j.r.Session, j.e.withNotes(j.r.Session, j.r.Profile), j.spec.Body)
	if err != nil {
		return err
	}
	j.e.warn(j.r, made.prompt.Warnings)
	from, err := j.loadHistory()
	if err != nil {
		return err
	}
	text := j.r.Task
	var ready []goclaw.InboxItem
	if j.r.Trigger == goclaw.TriggerAnnouncement {
		if ready, err = j.ready(); err != nil {
			return err
		}
		if len(ready) == 0 { // an earlier turn took them
			return j.end(turn.Action{State: goclaw.StateCompleted, Silent: true})
		}
		text = announce.Input(ready)
	}
	active, err := j.activeWorkers()
	if err != nil {
		return err
	}
	if j.e.o.Mentions != nil && j.r.Trigger != goclaw.TriggerAnnouncement {
		files := j.e.o.Mentions.Mentioned(j.ctx, j.r.Profile.Workspace, j.r.Profile.Access(j.r.Session, j.r.ID), strings.TrimSpace(j.r.Context+"\n"+j.r.Task))
		if files != "" {
			text += "\n\n" + files
		}
	}
	input := prompt.Envelope(prompt.Turn{Run: j.r, Text: text, Now: time.Now().In(j.e.o.Zone), Active: active, Typed: j.typed()})
	j.prompt, j.system = made.prompt, made.system
	first := &goclaw.PromptEvent{PromptSHA: made.blob.SHA256, Input: input, Inbox: ids(ready), From: from}
	for _, it := range ready {
		first.Tried = max(first.Tried, it.Attempts)
	}
	err = j.append([]goclaw.Event{{Kind: goclaw.EventPrompt, Prompt: first}},
		goclaw.Batch{Blobs: []goclaw.Blob{made.blob}, Consume: first.Inbox})
	if errors.Is(err, goclaw.ErrConsumed) {
		return nil // another turn was faster: look again at what is ready
	}
	if err == nil && len(ready) > 0 {
		j.r.Task = text // for the live view; the record has it in event 0
		j.e.publishRun(j.r)
	}
	return err
}

func (j *job) activeWorkers() ([]string, error) {
	if j.r.Session.IsWorker() {
		return nil, nil
	}
	return j.unended()
}

// unended names the workers of the run's session that are under way.
func (j *job) unended() ([]string, error) {
	runs, err := ask(j, "workers", func(ctx context.Context) ([]goclaw.Run, error) {
		return j.e.o.Store.Runs(ctx, goclaw.RunFilter{
			Requester: j.r.Session, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: true, Limit: 20,
		})
	})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(runs))
	for i, r := range runs {
		names[len(runs)-1-i] = r.Name()
	}
	return names, nil
}

// append records events, in order, and folds them in.
func (j *job) append(events []goclaw.Event, b goclaw.Batch) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	b.Events = j.number(events)
	usage := j.usageWith(events)
	b.Usage, b.Now, b.Day = &usage, goclaw.At(time.Now()), j.e.day()
	if err := j.persist(func(ctx context.Context) error { return j.e.o.Store.Append(ctx, j.fence, b) }); err != nil {
		return err
	}
	j.recorded(b.Events)
	j.e.bell.ring() // what was held for a call is free again
	j.publishUsage()
	return nil
}

// recorded folds in what the store has taken, and shows it; j.mu is held.
func (j *job) recorded(events []goclaw.Event) {
	for _, ev := range events {
		j.state = turn.Apply(j.state, ev)
		j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeEvent, Session: j.r.Session, RunID: j.r.ID, Event: &ev})
	}
}

func (j *job) usageWith(events []goclaw.Event) goclaw.Usage {
	sum := j.state.Usage
	for _, ev := range events {
		if paid := ev.Paid(); paid != nil {
			sum = sum.Add(paid.Usage)
		}
	}
	return sum
}

func (j *job) number(events []goclaw.Event) []goclaw.Event {
	now := goclaw.At(time.Now())
	for i := range events {
		events[i].Seq, events[i].At = j.state.Next+i, now
	}
	return events
}

// persist writes, and tries again more and more rarely, until it succeeds, the
// run is not ours any more, or the process stops: a store that can't write now
// loses nothing that has happened.
func (j *job) persist(write func(context.Context) error) error {
	ctx := context.WithoutCancel(j.ctx)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := write(ctx)
		if err == nil || errors.Is(err, goclaw.ErrFenced) || errors.Is(err, goclaw.ErrConsumed) || errors.Is(err, goclaw.ErrWoken) {
			return err
		}
		if cause := context.Cause(j.ctx); errors.Is(cause, errShutdown) || errors.Is(cause, errLost) {
			return err
		}
		j.e.o.Log.Error("a step could not be recorded; trying again", "run", j.r.ID, "err", err, "in", wait)
		pause(j.work, wait)
	}
}

// ask asks the store, again more and more rarely, until it answers or the job
// stops: a database that is away for a while ends no run. That there is no such
// thing is an answer.
func ask[V any](j *job, what string, question func(context.Context) (V, error)) (V, error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		v, err := question(j.ctx)
		switch {
		case err == nil, errors.Is(err, goclaw.ErrNotFound), errors.Is(err, goclaw.ErrFenced):
			return v, err
		case j.ctx.Err() != nil:
			return v, context.Cause(j.ctx)
		}
		j.e.complain("the store could not be asked ("+what+")", err)
		if err := j.rest(wait, nil); err != nil {
			return v, err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// rest waits for d, for early to be closed (nil: never), or until no further
// step is begun.
func (j *job) rest(d time.Duration, early <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-early:
	case <-j.ctx.Done():
	case <-j.e.drain:
	}
	return j.stopped()
}

func (j *job) publishUsage() {
	r := j.r
	r.State, r.Usage = goclaw.StateRunning, j.state.Usage
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeUsage, Session: r.Session, RunID: r.ID, Run: &r})
}
