package protocol

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/engine"
)

// maxJobs bounds the jobs of one process, zombies included.
const maxJobs = 8

// fault is something that the explorer lets happen a bounded number of times.
type fault uint8

const (
	noFault fault = iota
	crash
	clockJump
	planned // a planned stop
	impatient
	steered
	cancelling
	modelDown
	resumed
	retried
	kinds
)

// process is the volatile state of one process. It is comparable.
type process struct {
	index, life uint8 // its owner's name is new in each life
	stopping    uint8 // 1: it drains
	todo        int32
	jobs        [maxJobs]int32 // sorted; 0 is none
}

func (p process) owner() string { return fmt.Sprintf("%c%d", 'A'+p.index, p.life) }

func (p process) idle() bool { return p.todo == 0 && p.jobs[0] == 0 }

// with replaces a job by others.
func (p process) with(old int32, others ...int32) process {
	var left []int32
	for _, j := range p.jobs {
		if j != 0 && j != old {
			left = append(left, j)
		}
	}
	for _, j := range others {
		if j != 0 {
			left = append(left, j)
		}
	}
	if len(left) > maxJobs {
		panic("a process has more jobs than the model provides for")
	}
	slices.Sort(left)
	p.jobs = [maxJobs]int32{}
	copy(p.jobs[:], left)
	return p
}

// state is one state of the whole: store, clock, processes, what has happened
// in the world, and which faults were spent.
type state struct {
	snap  int32
	world int32
	now   int32
	procs [2]int32
	used  [kinds]uint8
}

// node is how a state was first reached.
type node struct {
	state  state
	parent int32
	label  int32
	depth  int32
}

// interned gives equal values one small number, from 1 on.
type interned[T comparable] struct {
	all   []T
	index map[T]int32
}

func (n *interned[T]) put(v T) int32 {
	if id, ok := n.index[v]; ok {
		return id
	}
	if n.index == nil {
		n.index, n.all = map[T]int32{}, make([]T, 1)
	}
	id := int32(len(n.all))
	n.all = append(n.all, v)
	n.index[v] = id
	return id
}

func (n *interned[T]) get(id int32) T { return n.all[id] }

// compact is an outcome with everything interned.
type compact struct {
	snap   int32
	next   int32 // job or todo
	jobs   []int32
	effect int32
	label  int32
	broken string
	zombie bool
	fault  fault
}

// question is what a step's outcomes depend on.
type question struct {
	kind        byte // job, dispatcher or beat
	index, life uint8
	stopping    uint8
	snap        int32
	now         int32
	what        int32
}

// explorer finds all states that a scenario can reach, the nearest first.
type explorer struct {
	sc       scenario
	snaps    []*snapshot
	byDigest map[[sha256.Size]byte]int32
	jobs     interned[job]
	todos    interned[string]
	labels   interned[string]
	procs    interned[process]
	worlds   interned[string]
	acts     interned[string]

	known  map[question][]compact
	index  map[state]int32
	nodes  []node
	moves  int
	next   [][]int32 // of each node, without faults
	broken *violation
}

// violation is a broken invariant, at the end of a path.
type violation struct {
	what string
	node int32
}

func newExplorer(sc scenario) (*explorer, error) {
	x := &explorer{sc: sc, byDigest: map[[sha256.Size]byte]int32{}, known: map[question][]compact{}, index: map[state]int32{}}
	s := memory.Open()
	if err := sc.accept(s); err != nil {
		return nil, err
	}
	snap, err := newSnapshot(s, nil, "")
	if err != nil {
		return nil, err
	}
	for _, r := range snap.runs {
		if snap.events[r.ID], err = s.Events(background, r.ID); err != nil {
			return nil, err
		}
	}
	snap, bad := x.intern(snap)
	if bad != "" {
		return nil, fmt.Errorf("the beginning: %s", bad)
	}
	first := state{snap: snap.id, now: int32(start), world: x.worlds.put("")}
	for i := range first.procs {
		first.procs[i] = x.procs.put(process{index: uint8(i), life: 1, todo: 0})
	}
	x.reach(first, -1, "begins", noFault)
	return x, nil
}

// intern finds the snapshot that goes on like this one, or notes and checks
// it.
func (x *explorer) intern(snap *snapshot) (*snapshot, string) {
	digest := snap.digest()
	if id, ok := x.byDigest[digest]; ok {
		return x.snaps[id], ""
	}
	snap.id = int32(len(x.snaps))
	x.snaps = append(x.snaps, snap)
	x.byDigest[digest] = snap.id
	return snap, check(snap)
}

// write does one transaction on a clone of the store and checks what it
// changed. A fence is given by those who write behind one.
func (x *explorer) write(before *snapshot, f goclaw.Fence, do func(engine.Store) error) (*snapshot, string, error) {
	return x.writeLease(before, f, "", 0, do)
}

// writeLease is write for what also sets an owner's lease (0: none).
func (x *explorer) writeLease(before *snapshot, f goclaw.Fence, owner string, until goclaw.Millis, do func(engine.Store) error) (*snapshot, string, error) {
	s := before.store.Clone()
	if err := do(x.sc.wrapped(s)); err != nil {
		return nil, "", err
	}
	after, err := newSnapshot(s, before, f.Run)
	if err != nil {
		return nil, "", err
	}
	if owner != "" {
		after.leases = maps.Clone(before.leases)
		if after.leases == nil {
			after.leases = map[string]goclaw.Millis{}
		}
		after.leases[owner] = until
	}
	bad := checkWrite(before, after, f)
	after, worse := x.intern(after)
	return after, cmp.Or(bad, worse), nil
}

// reach notes a state. It returns its number.
func (x *explorer) reach(s state, from int32, label string, f fault) int32 {
	x.moves++
	if !x.sc.everyZombie {
		for n := range s.procs {
			s.procs[n] = x.bury(s.snap, s.procs[n])
		}
	}
	id, ok := x.index[s]
	if !ok {
		id = int32(len(x.nodes))
		x.index[s] = id
		depth := int32(0)
		if from >= 0 {
			depth = x.nodes[from].depth + 1
		}
		x.nodes = append(x.nodes, node{state: s, parent: from, label: x.labels.put(label), depth: depth})
		x.next = append(x.next, nil)
		if bad := x.overslept(s); bad != "" {
			x.fail(id, bad)
		}
	}
	if from >= 0 && f == noFault {
		x.next[from] = append(x.next[from], id)
	}
	return id
}

// overslept is checkSleep, once for each snapshot and time.
func (x *explorer) overslept(s state) string {
	if x.sc.skew != [2]goclaw.Millis{} {
		return ""
	}
	q := question{kind: 's', snap: s.snap, now: s.now}
	known, ok := x.known[q]
	if !ok {
		known = []compact{{broken: x.sc.checkSleep(x.snaps[s.snap], goclaw.Millis(s.now))}}
		x.known[q] = known
	}
	return known[0].broken
}

// bury ends the jobs of a process whose next write will be refused, since the
// run is another's: a fence never holds again. What they would still do before
// that changes nothing, unless it is a call with side effects.
func (x *explorer) bury(snap, proc int32) int32 {
	q := question{kind: 'z', snap: snap, what: proc}
	if known, ok := x.known[q]; ok {
		return known[0].next
	}
	p := x.procs.get(proc)
	for _, id := range p.jobs {
		if id != 0 && x.harmless(x.snaps[snap], p.owner(), x.jobs.get(id)) {
			p = p.with(id)
		}
	}
	left := x.procs.put(p)
	x.known[q] = []compact{{next: left}}
	return left
}

// harmless reports whether a job can do nothing any more but be refused.
func (x *explorer) harmless(snap *snapshot, owner string, j job) bool {
	r := snap.run(j.run)
	switch {
	case r.State == goclaw.StateRunning && r.Epoch == j.epoch && r.Owner == owner:
		return false
	case j.at == atChildren || j.at == atCancel: // its own end is on record
		return false
	case j.at == atSend || j.at == atInputs && x.sc.fine:
		return false
	case j.at == atLoad:
		return j.takeOver
	case j.at == atCall:
		s := step{x: x, snap: snap, owner: owner, j: j, run: r}
		return s.made(j.call).Name != toolAppend
	}
	return true
}

// fail notes the first violation.
func (x *explorer) fail(node int32, what string) {
	if x.broken == nil {
		x.broken = &violation{what, node}
	}
}

// run explores until everything is found, an invariant is broken, or there are
// more than most states. It reports whether it has found everything.
func (x *explorer) run(most int) bool {
	for i := int32(0); int(i) < len(x.nodes); i++ {
		if len(x.nodes) > most {
			return false
		}
		x.expand(i)
		if x.broken != nil {
			return true
		}
	}
	x.checkProgress()
	return true
}

// expand finds the states that follow the i-th.
func (x *explorer) expand(i int32) {
	s := x.nodes[i].state
	if x.alone(i, s) {
		return
	}
	moved := false
	for n := range s.procs {
		if x.mustWait(s, n) {
			continue
		}
		moved = x.advance(i, s, n) || moved
	}
	if !moved {
		if later, ok := x.nextMoment(s); ok {
			t := s
			t.now = later
			x.reach(t, i, fmt.Sprintf("nothing moves; time passes until %d", later), noFault)
		} else if bad := x.sc.checkRest(x, s); bad != "" {
			x.fail(i, bad)
		}
	}
	x.inject(i, s)
}

// mustWait leaves out what is alike: whichever process moves first is A.
func (x *explorer) mustWait(s state, n int) bool {
	if n == 0 || x.sc.skew != [2]goclaw.Millis{} {
		return false
	}
	if a := x.procs.get(s.procs[0]); a.life > 1 || !a.idle() {
		return false
	}
	for _, r := range x.snaps[s.snap].runs {
		if r.Epoch > 0 && !r.State.Ended() {
			return false
		}
	}
	return true
}

// clock is a process's clock.
func (x *explorer) clock(s state, n int) goclaw.Millis {
	return goclaw.Millis(s.now) + x.sc.skew[n]
}

// advance takes every step that a process can take. It reports whether there
// was one.
func (x *explorer) advance(i int32, s state, n int) bool {
	p := x.procs.get(s.procs[n])
	moved := false
	if p.stopping == 0 {
		for _, c := range x.ask(question{'d', p.index, p.life, 0, s.snap, s.now, p.todo}) {
			q := p.with(0, c.jobs...)
			q.todo = c.next
			x.follow(i, s, n, q, c)
			moved = true
		}
	}
	for k, id := range p.jobs {
		if id == 0 || k > 0 && id == p.jobs[k-1] {
			continue
		}
		for _, c := range x.ask(question{'j', p.index, p.life, p.stopping, s.snap, s.now, id}) {
			x.follow(i, s, n, p.with(id, c.next), c)
			moved = true
		}
	}
	moved = x.tell(i, s, n, p) || moved
	moved = x.beat(i, s, n, p) || moved
	return x.release(i, s, n, p) || moved
}

// follow goes to where an outcome leads.
func (x *explorer) follow(i int32, s state, n int, p process, c compact) {
	t := s
	if c.fault != noFault {
		if s.used[c.fault] >= x.sc.limits[c.fault] {
			return
		}
		t.used[c.fault]++
	}
	t.snap, t.procs[n] = c.snap, x.procs.put(p)
	bad := c.broken
	if c.effect != 0 {
		did := x.acts.get(c.effect)
		if contains(x.worlds.get(s.world), did) {
			bad = "the call " + did + " with side effects is run a second time"
		}
		t.world = x.worlds.put(joined(x.worlds.get(s.world), did))
	}
	if c.zombie && s.used[clockJump] == 0 && x.sc.skew == [2]goclaw.Millis{} {
		bad = "a model call is sent for a run that its process no longer holds, although no process has slept over its lease"
	}
	to := x.reach(t, i, x.labels.get(c.label), c.fault)
	if bad != "" {
		x.fail(to, bad)
	}
}

// joined adds one to a sorted list.
func joined(list, one string) string {
	var all []string
	if list != "" {
		all = strings.Split(list, ",")
	}
	all = append(all, one)
	slices.Sort(all)
	return strings.Join(all, ",")
}

// ask computes a step's outcomes, once.
func (x *explorer) ask(q question) []compact {
	if known, ok := x.known[q]; ok {
		return known
	}
	p := process{index: q.index, life: q.life}
	snap := x.snaps[q.snap]
	now := goclaw.Millis(q.now) + x.sc.skew[q.index]
	var outs []outcome
	if q.kind == 'j' {
		j := x.jobs.get(q.what)
		s := step{x: x, snap: snap, owner: p.owner(), now: now, drain: q.stopping > 0, j: j, run: snap.run(j.run)}
		outs = s.steps()
	} else {
		d := dispatch{x: x, snap: snap, owner: p.owner(), now: now}
		if q.what != 0 {
			d.todo = x.todos.get(q.what)
		}
		outs = d.steps()
	}
	found := make([]compact, len(outs))
	for i, o := range outs {
		c := compact{snap: o.snap, label: x.labels.put(o.label), broken: o.broken, zombie: o.zombie, fault: o.fault}
		switch {
		case q.kind == 'd' && o.todo != "":
			c.next = x.todos.put(o.todo)
		case q.kind == 'j' && o.next != job{}:
			c.next = x.jobs.put(o.next)
		}
		for _, j := range o.jobs {
			if j != (job{}) {
				c.jobs = append(c.jobs, x.jobs.put(j))
			}
		}
		if o.effect != "" {
			c.effect = x.acts.put(o.effect)
		}
		found[i] = c
	}
	x.known[q] = found
	return found
}

// contains reports whether a list that is joined by commas holds one.
func contains(list, one string) bool { return slices.Contains(strings.Split(list, ","), one) }
