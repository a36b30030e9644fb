package protocol

import "goclaw"

// A step is private if nothing that anything else may still do depends on it,
// or makes a difference to it. Then the order of the two does not matter, and
// of a state with a private step only that one is followed. All others come
// afterwards, as they would have.

// alone finds a private step. It reports whether there is one.
func (x *explorer) alone(i int32, s state) bool {
	if x.sc.everyStep || !x.spent(s) {
		return false
	}
	for n := range s.procs {
		p := x.procs.get(s.procs[n])
		if p.stopping != 0 {
			continue
		}
		for _, id := range p.jobs {
			if id == 0 || x.rival(s, id) || !x.private(s, n, p, id) {
				continue
			}
			for _, c := range x.ask(question{'j', p.index, p.life, 0, s.snap, s.now, id}) {
				x.follow(i, s, n, p.with(id, c.next), c)
			}
			return true
		}
	}
	return false
}

// rival reports whether there is another job for the same run: it may be about
// to read what this one writes.
func (x *explorer) rival(s state, id int32) bool {
	run, n := x.jobs.get(id).run, 0
	for _, proc := range s.procs {
		for _, other := range x.procs.get(proc).jobs {
			if other != 0 && x.jobs.get(other).run == run {
				n++
			}
		}
	}
	return n > 1
}

// spent reports whether nothing more can befall a job from outside: no crash,
// no clock, no person.
func (x *explorer) spent(s state) bool {
	return !x.may(s, crash) && !x.may(s, clockJump) && !x.may(s, planned) && !x.may(s, steered) && !x.may(s, cancelling)
}

// private reports whether the next step of a job is.
func (x *explorer) private(s state, n int, p process, id int32) bool {
	q := question{'p', p.index, p.life, 0, s.snap, s.now, id}
	if known, ok := x.known[q]; ok {
		return known != nil
	}
	var answer []compact
	if x.isPrivate(s, n, p, x.jobs.get(id)) {
		answer = []compact{}
	}
	x.known[q] = answer
	return answer != nil
}

func (x *explorer) isPrivate(s state, n int, p process, j job) bool {
	snap := x.snaps[s.snap]
	r := snap.run(j.run)
	ours := r.State == goclaw.StateRunning && r.Epoch == j.epoch && r.Owner == p.owner()
	if !ours || j.stop != goOn || r.CancelAt != 0 || r.Deadline != 0 || r.Trigger == goclaw.TriggerAnnouncement {
		return false
	}
	for i := range snap.runs { // nobody may end, and cancel the run with its end
		if above := &snap.runs[i]; !above.State.Ended() && (above.Deadline != 0 || above.CancelAt != 0) {
			return false
		}
	}
	for other := range s.procs { // nobody may take the run
		if other != n && snap.leases[p.owner()] <= x.clock(s, other) {
			return false
		}
	}
	step := step{x: x, snap: snap, owner: p.owner(), now: x.clock(s, n), j: j, run: r}
	switch j.at {
	case atLoad, atPrompt:
		return true
	case atReply:
		return len(step.said().calls) > 0
	case atCall:
		name := step.made(j.call).Name
		return name == toolAppend || name == toolRead
	case atResult:
		return j.consume == ""
	case atInputs: // of a worker without workers, whom nobody writes to
		return len(snap.workers(r.Session)) == 0 && len(snap.of(r.Session)) == 0
	}
	return false
}
