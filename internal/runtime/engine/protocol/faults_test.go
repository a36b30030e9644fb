package protocol

import (
	"fmt"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/runtime/engine"
)

// tell is lookForCancels, and the deadlines of jobs: their contexts end.
func (x *explorer) tell(i int32, s state, n int, p process) bool {
	snap, now := x.snaps[s.snap], x.clock(s, n)
	told := p
	label := ""
	for _, id := range p.jobs {
		if id == 0 {
			continue
		}
		j := x.jobs.get(id)
		r := snap.run(j.run)
		switch {
		case j.stop != goOn:
			continue
		case r.Deadline != 0 && r.Deadline <= now:
			j.stop = toTimeOut
		case r.CancelAt != 0 && r.State == goclaw.StateRunning && r.Owner == p.owner():
			j.stop = toCancel
		default:
			continue
		}
		label += " " + j.run
		told = told.with(id, x.jobs.put(j))
	}
	if label == "" {
		return false
	}
	t := s
	t.procs[n] = x.procs.put(told)
	x.reach(t, i, fmt.Sprintf("%s: tells its jobs to stop:%s", p.owner(), label), noFault)
	return true
}

// beat renews the lease and ends the work that was lost.
func (x *explorer) beat(i int32, s state, n int, p process) bool {
	if p.jobs[0] == 0 {
		return false
	}
	now := x.clock(s, n)
	q := question{'b', p.index, p.life, 0, s.snap, s.now, 0}
	known, ok := x.known[q]
	if !ok {
		snap, bad, err := x.writeLease(x.snaps[s.snap], goclaw.Fence{}, p.owner(), now.Add(lease), func(st engine.Store) error {
			_, err := st.Heartbeat(background, goclaw.Heartbeat{Owner: p.owner(), Now: now, Lease: lease})
			return err
		})
		if err != nil {
			panic(err)
		}
		known = []compact{{snap: snap.id, broken: bad}}
		x.known[q] = known
	}
	after := p
	label := p.owner() + ": renews its lease"
	for _, id := range p.jobs {
		if id == 0 {
			continue
		}
		j := x.jobs.get(id)
		r := x.snaps[s.snap].run(j.run)
		held := r.State == goclaw.StateRunning && r.Owner == p.owner() && r.Epoch == j.epoch
		if !held && j.stop != toLose && j.stop != toShutDown {
			j.stop = toLose
			after = after.with(id, x.jobs.put(j))
			label += ", has lost " + j.run
		}
	}
	if after == p && known[0].snap == s.snap {
		return false
	}
	t := s
	t.snap, t.procs[n] = known[0].snap, x.procs.put(after)
	to := x.reach(t, i, label, noFault)
	if known[0].broken != "" {
		x.fail(to, known[0].broken)
	}
	return true
}

// release is the end of a planned stop; the process starts again.
func (x *explorer) release(i int32, s state, n int, p process) bool {
	if p.stopping == 0 || p.jobs[0] != 0 {
		return false
	}
	snap, bad, err := x.writeLease(x.snaps[s.snap], goclaw.Fence{}, p.owner(), 0, func(st engine.Store) error {
		return st.Release(background, p.owner(), x.clock(s, n))
	})
	if err != nil {
		panic(err)
	}
	t := s
	t.snap, t.procs[n] = snap.id, x.procs.put(process{index: p.index, life: p.life + 1})
	to := x.reach(t, i, p.owner()+": lets go of its runs and stops; it starts anew", noFault)
	if bad != "" {
		x.fail(to, bad)
	}
	return true
}

// may reports whether one more fault of a kind may happen.
func (x *explorer) may(s state, f fault) bool {
	if s.used[f] >= x.sc.limits[f] {
		return false
	}
	return f != crash && f != clockJump || int(s.used[crash])+int(s.used[clockJump]) < x.sc.together
}

// inject lets happen what no process decides.
func (x *explorer) inject(i int32, s state) {
	for n := range s.procs {
		x.strike(i, s, n)
	}
	if x.may(s, clockJump) {
		t := s
		t.used[clockJump]++
		t.now += int32(x.sc.jump.Milliseconds())
		x.reach(t, i, fmt.Sprintf("the clock jumps to %d", t.now), clockJump)
	}
	if x.may(s, steered) {
		x.person(i, s, steered, "a person writes to "+x.sc.steer, func(st engine.Store, now goclaw.Millis) error {
			return st.Post(background, x.sc.steer, goclaw.InboxItem{
				ID: "steer", Kind: goclaw.ItemSteer, Group: x.sc.steer, Text: announce.Steer("p", "hurry"), CreatedAt: now,
			})
		})
	}
	if x.may(s, cancelling) {
		for _, id := range x.sc.cancel {
			x.person(i, s, cancelling, "a person cancels "+id, func(st engine.Store, now goclaw.Millis) error {
				_, err := st.Cancel(background, goclaw.Cancellation{Run: id, Why: "asked", Now: now, Cascade: true})
				return err
			})
		}
	}
	if x.may(s, resumed) {
		for _, r := range x.snaps[s.snap].runs {
			if r.WaitsFor == goclaw.WaitPerson && r.WakeAt == 0 {
				x.person(i, s, resumed, "a person resumes "+r.ID, func(st engine.Store, now goclaw.Millis) error {
					_, err := st.Resume(background, r.ID, now)
					return err
				})
			}
		}
	}
	if x.may(s, retried) {
		for _, p := range x.snaps[s.snap].parked {
			x.person(i, s, retried, "a person retries "+p.ID, func(st engine.Store, now goclaw.Millis) error {
				return st.Unpark(background, p.ID, now)
			})
		}
	}
}

// person lets a person's request change the store.
func (x *explorer) person(i int32, s state, f fault, label string, do func(engine.Store, goclaw.Millis) error) {
	snap, bad, err := x.write(x.snaps[s.snap], goclaw.Fence{}, func(st engine.Store) error { return do(st, goclaw.Millis(s.now)) })
	if err != nil || snap.id == s.snap {
		return // refused: nothing has changed
	}
	t := s
	t.snap = snap.id
	t.used[f]++
	to := x.reach(t, i, label, f)
	if bad != "" {
		x.fail(to, bad)
	}
}

// strike crashes or stops a process.
func (x *explorer) strike(i int32, s state, n int) {
	p := x.procs.get(s.procs[n])
	if x.may(s, crash) && p.jobs[0] != 0 {
		t := s
		t.used[crash]++
		t.procs[n] = x.procs.put(process{index: p.index, life: p.life + 1})
		x.reach(t, i, p.owner()+" is killed, and starts anew", crash)
	}
	if p.stopping == 0 && x.may(s, planned) && p.jobs[0] != 0 {
		t := s
		t.used[planned]++
		p.stopping, p.todo = 1, 0
		t.procs[n] = x.procs.put(p)
		x.reach(t, i, p.owner()+" is asked to stop; it drains", planned)
	}
	if p.stopping == 1 && x.may(s, impatient) {
		t := s
		t.used[impatient]++
		p.stopping = 2
		cut := p
		for _, id := range p.jobs {
			if id == 0 {
				continue
			}
			if j := x.jobs.get(id); j.stop == goOn {
				j.stop = toShutDown
				cut = cut.with(id, x.jobs.put(j))
			}
		}
		t.procs[n] = x.procs.put(cut)
		x.reach(t, i, p.owner()+" loses its patience and cuts what is under way", impatient)
	}
}

// nextMoment is when something becomes possible that is not now: a lease
// expires, a wait is over, an item is due.
func (x *explorer) nextMoment(s state) (int32, bool) {
	snap := x.snaps[s.snap]
	var first goclaw.Millis
	at := func(m goclaw.Millis) {
		if m > goclaw.Millis(s.now) && (first == 0 || m < first) {
			first = m
		}
	}
	for _, r := range snap.runs {
		switch r.State {
		case goclaw.StateRunning: // whose owner has no job for it any more
			at(goclaw.Millis(s.now).Add(lease))
		case goclaw.StateWaiting:
			for n := range s.procs {
				at(r.WakeAt - x.sc.skew[n])
			}
		}
	}
	for _, key := range snap.sessions() {
		for n := range s.procs {
			_, next := announce.Ready(snap.of(key), x.clock(s, n), x.sc.policy)
			at(next - x.sc.skew[n])
		}
	}
	return int32(first), first != 0
}
