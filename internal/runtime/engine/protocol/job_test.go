package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/turn"
	"goclaw/internal/runtime/engine"
)

// place is where a job stands: what its next step does.
type place uint8

const (
	atLoad     place = iota + 1 // load: read the record; recover
	atAsk                       // recover, restartPolicy ask: wait for a person
	atAssemble                  // assemble: read what is ready
	atPrompt                    // assemble: record event 0
	atInputs                    // takeInputs: read what is ready
	atTake                      // takeInputs: record it
	atSend                      // stream: the model call leaves, and is paid
	atReply                     // callModel: the reply comes and is recorded
	atCall                      // callTool: the call is made
	atResult                    // callTool: its result is recorded
	atSeen                      // callTools: read what has come for a waiting call
	atSuspend                   // suspend
	atFinish                    // finish: end, if nothing came
	atLast                      // finish: record the last reply alone
	atWait                      // finish: read what to wait for
	atWords                     // lastWords: read messages that came too late
	atEnd                       // end
	atChildren                  // cancelChildren: read them
	atCancel                    // cancelChildren: cancel the next
)

// stop is why a job's context has ended.
type stop uint8

const (
	goOn stop = iota
	toCancel
	toTimeOut
	toLose
	toShutDown
)

// job is the volatile state of the engine's job: what a crash forgets. It is
// comparable, so that equal jobs are one.
type job struct {
	run      string
	epoch    int64
	takeOver bool
	released bool
	at       place
	stop     stop

	// fresh: the job has not done anything since it looked whether to stop.
	fresh bool
	// known is how many events of the run's record it has folded.
	known int

	finishing bool   // takeInputs and suspend are finish's
	call      string // the call being made
	waits     string // a call of the batch that has no result yet
	again     bool   // waits is being called once more
	result    string // what the call returned
	consume   string // inbox items that go with what is recorded next
	tried     int
	seen      int
	until     goclaw.Millis
	end       ending
	children  string // that are left to be cancelled
}

// ending is a turn.Action that ends a run.
type ending struct {
	state  goclaw.RunState
	result string
	err    string
	silent bool
}

// outcome is what a step leads to.
type outcome struct {
	snap   int32
	next   job    // of a job; the zero job has ended
	todo   string // of a dispatcher
	jobs   []job  // that a claim started
	effect string // the side effect that happened
	label  string
	broken string // what is wrong with this step
	zombie bool   // it acts for a run that is no longer its process's
	fault  fault  // what it costs
}

// step is one step of a job: everything that it may look at.
type step struct {
	x     *explorer
	snap  *snapshot
	owner string
	now   goclaw.Millis // by the process's clock
	drain bool
	j     job
	run   *goclaw.Run
}

var background = context.Background()

func (s *step) fence() goclaw.Fence {
	return goclaw.Fence{Run: s.j.run, Epoch: s.j.epoch, Owner: s.owner}
}

// state folds what the job knows of the record.
func (s *step) state() turn.State { return fold(s.snap, s.j.run, s.j.known) }

func fold(snap *snapshot, run string, known int) turn.State {
	return turn.Fold(snap.events[run][:known])
}

// write does one transaction on a clone of the store. With an error nothing
// has changed.
func (s *step) write(do func(engine.Store) error) (*snapshot, string, error) {
	return s.x.write(s.snap, s.fence(), do)
}

// take is the outcome of a step to next on snap.
func (s *step) take(snap *snapshot, next job, format string, args ...any) outcome {
	o := outcome{snap: snap.id, next: next, label: fmt.Sprintf("%s %s#%d: ", s.owner, s.j.run, s.j.epoch) + fmt.Sprintf(format, args...)}
	if next.at == atReply && s.j.at != atReply {
		s.checkSend(snap, &o)
	}
	return o
}

// failed is the outcome of a refused write.
func (s *step) failed(err error, what string) []outcome {
	if errors.Is(err, goclaw.ErrFenced) {
		return []outcome{s.take(s.snap, job{}, "%s: refused, the run is no longer its own; it lets go", what)}
	}
	o := s.take(s.snap, job{}, "%s: %v", what, err)
	o.broken = "the store refused a step for a reason that the protocol does not know: " + err.Error()
	return []outcome{o}
}

// steps are the outcomes of the job's next step.
func (s *step) steps() []outcome {
	j := s.j
	if j.fresh && j.stop != goOn {
		return s.stopped("looks and")
	}
	switch j.at {
	case atLoad:
		return s.load()
	case atAsk:
		return s.ask()
	case atAssemble:
		return s.assemble()
	case atPrompt:
		return s.prompt()
	case atInputs:
		return s.inputs()
	case atTake:
		return s.takeInputs()
	case atSend:
		return s.send()
	case atReply:
		return s.reply()
	case atCall:
		return s.callTool()
	case atResult:
		return s.recordResult()
	case atSeen:
		return s.seen()
	case atSuspend:
		return s.suspend()
	case atFinish:
		return s.finish(false)
	case atLast:
		return s.recordLast()
	case atWait:
		return s.wait()
	case atWords:
		return s.lastWords()
	case atEnd:
		return s.close()
	case atChildren:
		return s.childrenOf()
	case atCancel:
		return s.cancelChild()
	}
	panic("a job stands nowhere")
}

// stopped is what a job does that finds its context ended.
func (s *step) stopped(what string) []outcome {
	j := s.j
	if j.stop == toLose || j.stop == toShutDown {
		return []outcome{s.take(s.snap, job{}, "%s stops", what)}
	}
	e := ending{state: goclaw.StateCancelled, result: s.state().Text(), err: s.run.CancelWhy}
	if j.stop == toTimeOut {
		e.state, e.err = goclaw.StateTimeout, "the run's limit is over"
	}
	next := s.ending(e)
	o := s.take(s.snap, next, "%s turns to its end as %s", what, e.state)
	return []outcome{o}
}

// ending is the job on its way to end.
func (s *step) ending(e ending) job {
	next := s.bare()
	next.at, next.end = atEnd, e
	if s.run.Trigger == goclaw.TriggerSpawn {
		next.at = atWords
	}
	return next
}

// fail ends the run with what it has done.
func (s *step) fail(snap *snapshot, known int, why string) job {
	next := s.ending(ending{state: goclaw.StateFailed, result: fold(snap, s.j.run, known).Text(), err: why})
	next.known = known
	return next
}

// bare is the job without what only its last steps needed.
func (s *step) bare() job {
	j := s.j
	return job{run: j.run, epoch: j.epoch, takeOver: j.takeOver, released: j.released, stop: j.stop, known: j.known}
}

// loop is the job at the head of engine.job.loop, with so much of the record
// known: what turn.Next decides.
func (s *step) loop(snap *snapshot, known int) job {
	next := s.bare()
	next.known, next.fresh, next.takeOver, next.released = known, true, false, false
	a := turn.Next(fold(snap, s.j.run, known), 0)
	switch a.Kind {
	case turn.Assemble:
		next.at = atPrompt
		if s.run.Trigger == goclaw.TriggerAnnouncement {
			next.at = atAssemble
		}
	case turn.CallModel:
		next.at = s.sends()
		if s.run.Trigger == goclaw.TriggerSpawn && !s.lonely(snap) {
			next.at = atInputs
		}
	case turn.CallTools:
		next.at, next.call = atCall, a.Calls[0].ID
	case turn.Finish:
		next.at = atFinish
	case turn.Done:
		return job{}
	}
	return next
}

// number gives events their places, as job.number does. Nothing depends on
// when they happened, so it is always the same time: that makes more states
// equal.
func (s *step) number(events ...goclaw.Event) goclaw.Batch {
	for i := range events {
		events[i].Seq, events[i].At = s.j.known+i, start
	}
	b := goclaw.Batch{Events: events, Now: start}
	if s.j.consume != "" {
		b.Consume = strings.Split(s.j.consume, ",")
	}
	return b
}

// append records events behind the fence.
func (s *step) append(events ...goclaw.Event) (*snapshot, string, error) {
	b := s.number(events...)
	return s.write(func(st engine.Store) error { return st.Append(background, s.fence(), b) })
}

// load folds what is recorded. The claim may be long ago.
func (s *step) load() []outcome {
	known := len(s.snap.events[s.j.run])
	st := fold(s.snap, s.j.run, known)
	if s.x.sc.checksClaim && (s.run.Epoch != s.j.epoch || s.run.Owner != s.owner) {
		return s.failed(goclaw.ErrFenced, "reads the record and looks whether the run is still its own")
	}
	s.j.known = known
	switch {
	case s.j.stop != goOn:
		return s.stopped(fmt.Sprintf("reads the record (%d events) and", known))
	case st.Prompt != nil && s.j.takeOver:
		// What it has read can't change before its next write, or that is
		// refused: the two are one step.
		return s.recover()
	}
	return []outcome{s.take(s.snap, s.loop(s.snap, known), "reads the record (%d events)", known)}
}

// recover records the takeover and does as the restart policy says.
func (s *step) recover() []outcome {
	rec := s.x.sc.recover(s.state(), s.owner, s.j.released)
	events := []goclaw.Event{{Kind: goclaw.EventResumed, Resumed: &rec.Event}}
	for i := range rec.Uncertain {
		events = append(events, goclaw.Event{Kind: goclaw.EventResult, Result: &rec.Uncertain[i]})
	}
	snap, bad, err := s.append(events...)
	if err != nil {
		return s.failed(err, "records the takeover")
	}
	known := s.j.known + len(events)
	next := s.loop(snap, known)
	policy := s.run.Profile.RestartPolicy
	switch {
	case s.j.released:
	case policy == goclaw.RestartFail:
		next = s.fail(snap, known, "the process died, and the policy is fail")
	case policy == goclaw.RestartAsk:
		next = s.bare()
		next.at, next.known = atAsk, known
	}
	o := s.take(snap, next, "records the takeover; uncertain: %v", rec.Event.Uncertain)
	o.broken = bad
	return []outcome{o}
}

// ask waits for a person. The engine reads the inbox, suspends, and looks again
// if something came between: one step here.
func (s *step) ask() []outcome {
	w := goclaw.WaitingEvent{For: goclaw.WaitPerson}
	susp := goclaw.Suspension{Batch: s.number(goclaw.Event{Kind: goclaw.EventWaiting, Waiting: &w}), For: w.For}
	if s.x.sc.asksWithCount {
		susp.Seen = len(s.snap.of(s.run.Session))
	}
	snap, bad, err := s.write(func(st engine.Store) error { return st.Suspend(background, s.fence(), susp) })
	if errors.Is(err, goclaw.ErrWoken) {
		next := s.fail(s.snap, s.j.known, err.Error())
		return []outcome{s.take(s.snap, next, "wants to wait for a person: something has come, so it fails")}
	}
	if err != nil {
		return s.failed(err, "wants to wait for a person")
	}
	o := s.take(snap, job{}, "waits for a person")
	o.broken = bad
	return []outcome{o}
}

// ready reads what the session can be told now.
func (s *step) ready() ([]goclaw.InboxItem, goclaw.Millis) {
	now := s.now
	if s.run.Trigger == goclaw.TriggerAnnouncement && s.x.sc.knowsAcceptance {
		now = max(now, s.run.CreatedAt)
	}
	return announce.Ready(s.snap.of(s.run.Session), now, s.x.sc.policy)
}

func ids(items []goclaw.InboxItem) string {
	all := make([]string, len(items))
	for i, it := range items {
		all[i] = it.ID
	}
	return strings.Join(all, ",")
}

// taken are the items that the job is about to record. Their texts follow from
// what can't change any more.
func (s *step) taken() []goclaw.InboxItem {
	var items []goclaw.InboxItem
	for _, id := range strings.Split(s.j.consume, ",") {
		items = append(items, s.x.sc.item(s.snap, id))
	}
	return items
}

// assemble reads what an announcement turn tells of.
func (s *step) assemble() []outcome {
	if s.drain {
		return []outcome{s.take(s.snap, job{}, "begins no turn: its process stops")}
	}
	ready, _ := s.ready()
	if len(ready) == 0 {
		next := s.ending(ending{state: goclaw.StateCompleted, silent: true})
		o := s.take(s.snap, next, "finds nothing to tell")
		if due, _ := announce.Ready(s.snap.of(s.run.Session), s.run.CreatedAt, s.x.sc.policy); len(due) > 0 {
			o.broken = "a turn finds nothing to tell, although what it was accepted for is pending"
		}
		return []outcome{o}
	}
	next := s.bare()
	next.at, next.consume = atPrompt, ids(ready)
	for _, it := range ready {
		next.tried = max(next.tried, it.Attempts)
	}
	return []outcome{s.take(s.snap, next, "reads what is ready: %s", next.consume)}
}

// prompt records event 0 and takes what it tells of in the same transaction.
func (s *step) prompt() []outcome {
	if s.drain && s.j.fresh {
		return []outcome{s.take(s.snap, job{}, "begins no turn: its process stops")}
	}
	text := s.run.Task
	first := &goclaw.PromptEvent{PromptSHA: "p", Tried: s.j.tried}
	if s.j.consume != "" {
		items := s.taken()
		text, first.Inbox = announce.Input(items), strings.Split(s.j.consume, ",")
	}
	first.Input = goclaw.Text(goclaw.RoleUser, text)
	snap, bad, err := s.append(goclaw.Event{Kind: goclaw.EventPrompt, Prompt: first})
	if errors.Is(err, goclaw.ErrConsumed) {
		return []outcome{s.take(s.snap, s.loop(s.snap, s.j.known), "records event 0 with %s: taken meanwhile", s.j.consume)}
	}
	if err != nil {
		return s.failed(err, "records event 0")
	}
	o := s.take(snap, s.loop(snap, s.j.known+1), "records event 0 %s", s.j.consume)
	o.broken = bad
	return []outcome{o}
}

// inputs reads what is ready for a worker between its steps.
func (s *step) inputs() []outcome {
	if s.j.stop != goOn {
		return s.stopped("can't read its inbox and")
	}
	if s.drain && !s.j.finishing {
		return []outcome{s.take(s.snap, job{}, "begins no model call: its process stops")}
	}
	ready, _ := s.ready()
	next := s.bare()
	next.finishing = s.j.finishing
	switch {
	case len(ready) > 0:
		next.at, next.consume = atTake, ids(ready)
	case s.j.finishing:
		next.at = atWait
	default:
		next.at, next.fresh = s.sends(), true
	}
	return []outcome{s.take(s.snap, next, "reads what has come: %q", ids(ready))}
}

// takeInputs records what has come, and takes it in the same transaction.
func (s *step) takeInputs() []outcome {
	input := &goclaw.InputEvent{
		Message: goclaw.Text(goclaw.RoleUser, announce.Between(s.taken())), Inbox: strings.Split(s.j.consume, ","),
	}
	snap, bad, err := s.append(goclaw.Event{Kind: goclaw.EventInput, Input: input})
	next := s.bare()
	next.finishing = s.j.finishing
	if errors.Is(err, goclaw.ErrConsumed) {
		next.at = atInputs
		return []outcome{s.take(s.snap, next, "records what has come: taken meanwhile")}
	}
	if err != nil {
		return s.failed(err, "records what has come")
	}
	next.known++
	next.at, next.fresh = s.sends(), true
	if s.j.finishing {
		next = s.loop(snap, next.known)
	}
	o := s.take(snap, next, "records what has come: %s", s.j.consume)
	o.broken = bad
	return []outcome{o}
}

// send lets a model call leave: it is paid from here on.
func (s *step) send() []outcome {
	if s.drain {
		return []outcome{s.take(s.snap, job{}, "begins no model call: its process stops")}
	}
	next := s.bare()
	next.at = atReply
	return []outcome{s.take(s.snap, next, "sends model call %d", len(s.state().Steps))}
}

// sends is where a job stands that is about to call the model. That the call
// leaves changes nothing that a crash would leave behind: unless the scenario
// wants to see each of these steps, it leaves at once.
func (s *step) sends() place {
	if s.x.sc.fine {
		return atSend
	}
	return atReply
}

// lonely reports whether nothing is there for a worker, and nothing can come
// before it starts workers itself: then it needs no step to look.
func (s *step) lonely(snap *snapshot) bool {
	written := s.x.sc.limits[steered] > 0 && s.x.sc.steer == s.j.run
	return !s.x.sc.everyStep && !written && len(snap.workers(s.run.Session)) == 0 && len(snap.of(s.run.Session)) == 0
}

// checkSend says what is wrong with a model call that leaves now.
func (s *step) checkSend(snap *snapshot, o *outcome) {
	j := o.next
	r := snap.run(j.run)
	n, recorded := len(fold(snap, j.run, j.known).Steps), len(turn.Fold(snap.events[j.run]).Steps)
	switch ours := r.State == goclaw.StateRunning && r.Epoch == j.epoch && r.Owner == s.owner; {
	case ours && recorded > n:
		o.broken = fmt.Sprintf("model call %d of %s is paid again although its reply is on record", n, j.run)
	case !ours:
		o.label += " (the run is no longer its own)"
		o.zombie = true
	}
}
