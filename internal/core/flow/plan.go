package flow

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"goclaw"
)

// Plan says what is to be started, given all runs of the flow that were started
// so far, in any order; of two with one key the later counts. It is a function:
// whoever calls it again with the same history gets the same answer, so keys can
// be idempotency keys, and a crash between a Plan and its starts repeats nothing.
//
// The flow fails when a step fails that is not optional: a run that did not
// complete, or without what it gives; a result that lacks what a step needs; a
// loop that is not content after its last round. Nothing is started then, and
// Cancel names what is still under way.
func Plan(f Flow, input json.RawMessage, done []StepRun) Next {
	g := build(f)
	p := &planner{graph: g, runs: make(map[string]StepRun, len(done)), memo: map[string]status{}, found: map[string]*found{}}
	for _, r := range done {
		p.runs[r.Key] = r
	}
	var n Next
	for _, key := range p.keys() {
		if !p.runs[key].State.Ended() {
			n.Waiting = append(n.Waiting, key)
		}
	}
	if len(g.issues) > 0 {
		return n.fail("the flow can't be used: " + g.issues[0].message)
	}
	var err error
	if p.input, err = g.complete(input); err != nil {
		return n.fail(err.Error())
	}
	for _, key := range p.keys() {
		if _, ok := g.index[StepOf(key)]; !ok {
			return n.fail(fmt.Sprintf("the run %s is of no step of this flow", key))
		}
	}
	return p.plan(n)
}

func (n Next) fail(why string) Next {
	n.State, n.Error, n.Start = goclaw.StateFailed, why, nil
	n.Cancel = n.Waiting
	n.Ended = len(n.Waiting) == 0
	return n
}

// StepOf is the id of the step that a run's key is of.
func StepOf(key string) string {
	if i := strings.IndexAny(key, "[@"); i >= 0 {
		return key[:i]
	}
	return key
}

// CheckInput says whether a flow can begin with an input: a JSON object of its
// schema, or, without one, with every field that its steps name. Empty is {}.
func CheckInput(f Flow, input json.RawMessage) error {
	g := build(f)
	if len(g.issues) > 0 {
		return fmt.Errorf("the flow can't be used: %s", g.issues[0].message)
	}
	_, err := g.complete(input)
	return err
}

// progress is how far an instance of a step, in one round, has come.
type progress int

const (
	blocked progress = iota // what it comes after has not ended
	open                    // to be started, or under way
	good
	lost   // failed, and optional
	again  // good, and its loop has another round
	broken // failed
)

type status struct {
	progress
	starts    []Start
	why       string
	cancelled bool // why it is broken
}

type planner struct {
	*graph
	input any
	runs  map[string]StepRun
	memo  map[string]status
	found map[string]*found
}

// keys are those of all runs, sorted.
func (p *planner) keys() []string {
	keys := make([]string, 0, len(p.runs))
	for k := range p.runs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (p *planner) plan(n Next) Next {
	settled := true
	why, cancelled := "", true // a cancellation is the cause only if nothing else is
	for i := range p.Steps {
		st := p.status(i, p.now(i))
		switch st.progress {
		case good, lost:
			continue
		case broken:
			if cancelled && (why == "" || !st.cancelled) {
				why, cancelled = st.why, st.cancelled
			}
		}
		settled = false
		n.Start = append(n.Start, st.starts...)
	}
	switch {
	case why != "":
		return n.fail(why)
	case settled:
		return p.finish(n)
	}
	return n
}

func (p *planner) finish(n Next) Next {
	d := p.index[p.Result]
	rounds := p.now(d)
	n.Ended, n.State = true, goclaw.StateCompleted
	n.Result = p.textOf(d, rounds)
	if v, any := p.jsonOf(d, rounds); any {
		n.JSON = encode(v)
	}
	return n
}

// now is the round that a step is in, of each loop around it.
func (p *planner) now(i int) []int {
	var rounds []int
	for _, n := range p.in[i] {
		r, _ := p.round(n, rounds)
		rounds = append(rounds, r)
	}
	return rounds
}

// round is the round that a loop is in, within rounds of the loops around it,
// and whether it is over.
func (p *planner) round(n int, outer []int) (int, bool) {
	for r := 1; ; r++ {
		switch p.status(p.loops[n].end, append(slices.Clone(outer), r)).progress {
		case again:
		case good, lost:
			return r, true
		default:
			return r, false
		}
	}
}

// see is the round of step d that another one in these rounds sees: the same one
// of the loops around both, the last one of d's own. ok is false while d's loops
// are not over.
func (p *planner) see(d int, common []int) (rounds []int, ok bool) {
	rounds = slices.Clone(common)
	for _, n := range p.in[d][len(common):] {
		r, over := p.round(n, rounds)
		if !over {
			return nil, false
		}
		rounds = append(rounds, r)
	}
	return rounds, true
}

// before is the round of step d that came before this one of step i, in the
// innermost loop around both that is not in its first.
func (p *planner) before(i, d int, rounds []int) ([]int, bool) {
	for k := p.shared(i, d) - 1; k >= 0; k-- {
		if rounds[k] > 1 {
			common := slices.Clone(rounds[:k+1])
			common[k]--
			return p.see(d, common)
		}
	}
	return nil, false
}

// left is the round of step d whose results step i can use; ok is false if there
// is none yet. What i waits for has ended.
func (p *planner) left(i, d int, rounds []int) ([]int, bool) {
	if p.lastRound(i, d) {
		return p.before(i, d, rounds)
	}
	return p.see(d, rounds[:p.shared(i, d)])
}

// key names a run; item is -1 for a step without each.
func (p *planner) key(i, item int, rounds []int) string {
	key := p.Steps[i].ID
	if item >= 0 {
		key += "[" + strconv.Itoa(item) + "]"
	}
	for n, r := range rounds {
		key += string("@."[min(n, 1)]) + strconv.Itoa(r)
	}
	return key
}

func (p *planner) status(i int, rounds []int) status {
	key := p.key(i, -1, rounds)
	st, known := p.memo[key]
	if !known {
		st = p.judge(i, rounds)
		p.memo[key] = st
	}
	return st
}

// judge says how far a step is in one round, and makes its starts if it can
// begin.
func (p *planner) judge(i int, rounds []int) status {
	for _, d := range p.needs[i] {
		at, ok := p.see(d, rounds[:p.shared(i, d)])
		if !ok {
			return status{}
		}
		if st := p.status(d, at); st.progress != good && st.progress != lost {
			return status{}
		}
	}
	s := p.Steps[i]
	items, err := p.items(i, rounds)
	if err != nil {
		return bad(s, "step "+p.key(i, -1, rounds)+": "+err.Error())
	}
	st, failed := status{progress: good}, status{}
	for n := range items {
		key := p.key(i, items.number(n), rounds)
		run, started := p.runs[key]
		switch {
		case !started:
			start, err := p.start(i, items.number(n), items.at(n), rounds)
			if err != nil {
				return bad(s, fmt.Sprintf("step %s: %v", key, err))
			}
			st.progress = open
			st.starts = append(st.starts, start)
		case !run.State.Ended():
			st.progress = open
		case why(s, run) != "":
			if !s.Optional && (failed.why == "" || failed.cancelled) {
				failed = status{progress: broken, why: fmt.Sprintf("step %s %s", key, why(s, run)), cancelled: run.State == goclaw.StateCancelled}
			}
			if s.Each == "" {
				st.progress = lost
			}
		}
	}
	if failed.why != "" {
		return failed
	}
	if len(st.starts) > 0 {
		takes := p.handles(i, rounds)
		for n := range st.starts {
			st.starts[n].Takes = takes
		}
	}
	if st.progress == good && len(s.Until) > 0 {
		return p.content(i, rounds)
	}
	return st
}

// bad is a step that can't begin, or whose result can't be used.
func bad(s Step, why string) status {
	if s.Optional {
		return status{progress: lost}
	}
	return status{progress: broken, why: why}
}

// content says whether the last step of a loop lets it end.
func (p *planner) content(i int, rounds []int) status {
	s := p.Steps[i]
	key := p.key(i, -1, rounds)
	result, err := decode(p.runs[key].JSON)
	if err == nil && len(p.runs[key].JSON) == 0 {
		err = fmt.Errorf("its result is no JSON")
	}
	for _, c := range s.Until {
		if err != nil {
			break
		}
		var v, want any
		if v, err = walk(result, strings.Split(c.Field, "."), p.out[i], "its result"); err != nil {
			break
		}
		if want, err = decode(c.Is); err != nil || same(v, want) {
			continue
		}
		r := rounds[len(rounds)-1]
		switch {
		case r < p.MostRounds():
			return status{progress: again}
		case s.Optional:
			return status{progress: good}
		}
		return status{progress: broken, why: fmt.Sprintf("step %s: %s is %s, not %s, after the last of %d rounds", key, c.Field, encode(v), c.Is, r)}
	}
	if err != nil {
		return bad(s, fmt.Sprintf("step %s: %v", key, err))
	}
	return status{progress: good}
}

// why says why a run that has ended did not do its work, "" if it did.
func why(s Step, run StepRun) string {
	switch run.State {
	case goclaw.StateCompleted:
		for _, want := range s.Gives {
			if !slices.ContainsFunc(run.Artifacts, func(name string) bool { return fits(want, name) }) {
				return fmt.Sprintf("ended without its artifact %s", want)
			}
		}
		return ""
	case goclaw.StateTimeout:
		return "timed out"
	case goclaw.StateCancelled:
		return "was cancelled"
	}
	if run.Error == "" {
		return "failed"
	}
	return "failed: " + run.Error
}

// fits reports whether an artifact is what a step gives, by name or pattern.
func fits(want, name string) bool {
	ok, err := path.Match(want, name)
	return want == name || err == nil && ok
}
