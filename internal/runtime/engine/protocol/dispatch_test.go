package protocol

import (
	"errors"
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/runtime/engine"
)

// dispatch is one step of a process's dispatcher: everything that it may look
// at. todo are what wakeRequesters has found to do and has not done yet.
type dispatch struct {
	x     *explorer
	snap  *snapshot
	owner string
	now   goclaw.Millis // by the process's clock
	todo  string
}

// steps are the outcomes of the dispatcher's next step: either of its two
// halves where it has nothing to do. A half that would change nothing is left
// out, since the dispatcher comes back to it for ever.
func (d *dispatch) steps() []outcome {
	if d.todo != "" {
		return []outcome{d.do()}
	}
	var outs []outcome
	if o, ok := d.claim(); ok {
		outs = append(outs, o)
	}
	if o, ok := d.look(); ok {
		outs = append(outs, o)
	}
	return outs
}

func (d *dispatch) took(snap *snapshot, todo, bad, format string, args ...any) outcome {
	return outcome{snap: snap.id, todo: todo, broken: bad, label: d.owner + ": " + fmt.Sprintf(format, args...)}
}

// claim takes what can run and starts its jobs.
func (d *dispatch) claim() (outcome, bool) {
	if !d.claimable() {
		return outcome{}, false
	}
	var claimed []goclaw.Claimed
	snap, bad, err := d.x.writeLease(d.snap, goclaw.Fence{}, d.owner, d.now.Add(lease), func(st engine.Store) (err error) {
		claimed, err = st.Claim(background, goclaw.ClaimRequest{
			Owner: d.owner, Now: d.now, Lease: lease, Max: 64, MaxWorkers: d.x.sc.maxWorkers,
		})
		return err
	})
	if err != nil {
		return d.took(d.snap, "", "claiming failed: "+err.Error(), "claims"), true
	}
	if len(claimed) == 0 {
		return outcome{}, false
	}
	o := d.took(snap, "", bad, "claims")
	for _, c := range claimed {
		o.jobs = append(o.jobs, d.start(snap, c))
		o.label += fmt.Sprintf(" %s#%d", c.Run.ID, c.Run.Epoch)
		if c.TakeOver {
			o.label += " (takes it over)"
		}
	}
	return o, true
}

// claimable reports whether there is a run that a claim might take. It only
// spares claims that take nothing.
func (d *dispatch) claimable() bool {
	for _, r := range d.snap.runs {
		switch r.State {
		case goclaw.StateQueued, goclaw.StateInterrupted:
			return true
		case goclaw.StateWaiting:
			if r.CancelAt != 0 || r.WakeAt != 0 && r.WakeAt <= d.now {
				return true
			}
		case goclaw.StateRunning:
			if r.Owner != d.owner && d.snap.leases[r.Owner] <= d.now {
				return true
			}
		}
	}
	return false
}

// start is newJob, and load up to its first look at the store.
func (d *dispatch) start(snap *snapshot, c goclaw.Claimed) job {
	j := job{run: c.Run.ID, epoch: c.Run.Epoch, takeOver: c.TakeOver, released: c.Released, at: atLoad}
	switch {
	case c.Run.CancelAt != 0:
		j.stop = toCancel
	case c.Run.Deadline != 0 && c.Run.Deadline <= d.now:
		j.stop = toTimeOut
	}
	if j.epoch <= 1 {
		s := step{x: d.x, snap: snap, owner: d.owner, now: d.now, j: j, run: snap.run(j.run)}
		j = s.loop(snap, 0)
	}
	return j
}

// look is wakeRequesters up to its first write.
func (d *dispatch) look() (outcome, bool) {
	var order []goclaw.SessionKey
	bySession := map[goclaw.SessionKey][]goclaw.InboxItem{}
	for _, it := range d.snap.items {
		if bySession[it.Session] == nil {
			order = append(order, it.Session)
		}
		bySession[it.Session] = append(bySession[it.Session], it)
	}
	var todo []string
	for _, key := range order {
		ready, _ := announce.Ready(bySession[key], d.now, d.x.sc.policy)
		switch {
		case len(ready) == 0:
		case key.IsWorker():
			todo = append(todo, d.tellWorker(key, ready)...)
		case !d.awaited(key):
			todo = append(todo, "turn "+key.String()+" "+ready[0].ID)
		}
	}
	if len(todo) == 0 {
		return outcome{}, false
	}
	if !d.x.sc.fine {
		// What was ready stays ready, and each of these transactions looks
		// again whether it may still be done: it is as well done at once.
		d.todo = todo[0]
		return d.do(), true
	}
	return d.took(d.snap, strings.Join(todo, ";"), "", "looks at the inbox: %s", strings.Join(todo, "; ")), true
}

// awaited reports whether a turn of the session would coalesce with one that
// there is.
func (d *dispatch) awaited(key goclaw.SessionKey) bool {
	for _, r := range d.snap.runs {
		if r.Session == key && r.Trigger == goclaw.TriggerAnnouncement && !r.State.Ended() && r.CancelAt == 0 && len(d.snap.events[r.ID]) == 0 {
			return true
		}
	}
	return false
}

// tellWorker leaves the items to the session's run, unless that has ended.
func (d *dispatch) tellWorker(key goclaw.SessionKey, ready []goclaw.InboxItem) (todo []string) {
	run := d.snap.newest(key)
	if run != nil && !run.State.Ended() {
		return nil
	}
	up := goclaw.MainKey(key.Agent)
	if run != nil && !run.Requester.IsZero() {
		up = run.Requester
	}
	var late []string
	for _, it := range ready {
		if it.Kind == goclaw.ItemSteer {
			late = append(late, it.ID)
		} else {
			todo = append(todo, "up "+up.String()+" "+it.ID)
		}
	}
	if len(late) > 0 {
		todo = append([]string{"park " + strings.Join(late, ",")}, todo...)
	}
	return todo
}

// do does the first thing that is to be done.
func (d *dispatch) do() outcome {
	first, rest, _ := strings.Cut(d.todo, ";")
	word := strings.Fields(first)
	switch word[0] {
	case "turn":
		return d.accept(word[1], word[2], rest)
	case "up":
		key, err := goclaw.ParseSessionKey(word[1])
		if err != nil {
			panic(err)
		}
		return d.change(rest, func(st engine.Store) error { return st.Redirect(background, word[2], key) }, "sends %s up to %s", word[2], word[1])
	}
	gone := goclaw.Return{Why: "the run had ended before it could read this", Parked: true}
	return d.change(rest, func(st engine.Store) error {
		return st.Postpone(background, strings.Split(word[1], ","), gone, d.now)
	}, "parks %s, which came too late", word[1])
}

func (d *dispatch) change(rest string, do func(engine.Store) error, format string, args ...any) outcome {
	snap, bad, err := d.x.write(d.snap, goclaw.Fence{}, do)
	if err != nil {
		snap, bad = d.snap, err.Error()
	}
	return d.took(snap, rest, bad, format, args...)
}

// accept is acceptAnnouncement.
func (d *dispatch) accept(session, item, rest string) outcome {
	key, err := goclaw.ParseSessionKey(session)
	if err != nil {
		panic(err)
	}
	run := goclaw.Run{
		ID: fmt.Sprintf("t%d", len(d.snap.runs)), Session: key, Trigger: goclaw.TriggerAnnouncement, State: goclaw.StateQueued,
		CreatedAt: start, Profile: d.x.sc.profile("turn"),
	}
	if d.x.sc.skew != [2]goclaw.Millis{} { // else it makes no difference, and more states
		run.CreatedAt = d.now
	}
	if d.snap.has(item) {
		run.Root = d.snap.run(item).Root
	}
	snap, bad, err := d.x.write(d.snap, goclaw.Fence{}, func(st engine.Store) error {
		_, _, err := st.Accept(background, goclaw.Acceptance{Run: run, Waiting: item, Coalesce: true})
		return err
	})
	switch {
	case errors.Is(err, goclaw.ErrConsumed):
		return d.took(d.snap, rest, "", "wants to accept a turn for %s: taken meanwhile", item)
	case err != nil:
		return d.took(d.snap, rest, err.Error(), "accepts a turn for %s", item)
	case snap.id == d.snap.id:
		return d.took(snap, rest, bad, "accepts a turn for %s: there is one", item)
	}
	return d.took(snap, rest, bad, "accepts turn %s for %s", run.ID, item)
}
