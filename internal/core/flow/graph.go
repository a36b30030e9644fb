package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/schema"
)

// issue is something wrong with a flow; step is -1 for the flow itself, and key
// and entry say which of its values.
type issue struct {
	step          int
	key           string
	entry         int
	message, hint string
}

// graph is a flow with what follows from it. needs are the steps directly
// before one, above all of them; loops are those around it, outermost first.
type graph struct {
	Flow
	index map[string]int
	needs [][]int
	above [][]bool
	loops []loop
	in    [][]int
	shape shape // of the input
	out   []shape

	issues []issue
}

// loop is what runs again until its last step is content.
type loop struct {
	back, end int
	body      []bool
	size      int
}

func build(f Flow) *graph {
	g := &graph{Flow: f, index: map[string]int{}}
	if len(f.Steps) == 0 {
		g.fail(-1, "steps", 0, "the flow has no steps", "write at least one, with id and task")
		return g
	}
	if len(f.Steps) > MaxSteps {
		g.fail(-1, "steps", 0, fmt.Sprintf("the flow has %d steps; %d are allowed", len(f.Steps), MaxSteps), "use a wave (each) where steps are alike")
		return g
	}
	g.identify()
	g.shapes()
	g.order()
	if cycle := g.cycle(); cycle != nil {
		g.fail(cycle[0], "after", 0, "the steps wait for each other: "+g.names(cycle), "remove one of them from an after; going back is what until and back are for")
		return g
	}
	g.reach()
	g.findLoops()
	g.nest()
	if len(g.issues) == 0 {
		g.waitForLoops()
	}
	g.checkRefs()
	return g
}

func (g *graph) fail(step int, key string, entry int, message, hint string) {
	if len(g.issues) < 100 {
		g.issues = append(g.issues, issue{step, key, entry, message, hint})
	}
}

func (g *graph) names(steps []int) string {
	var ids []string
	for _, s := range steps {
		ids = append(ids, g.Steps[s].ID)
	}
	return strings.Join(ids, " → ")
}

// find returns the step that something refers to, or says that there is none.
func (g *graph) find(id string, step int, key string, entry int) (int, bool) {
	i, ok := g.index[id]
	if !ok {
		g.fail(step, key, entry, fmt.Sprintf("there is no step %q", id), g.near(id, "the steps are "+g.ids()))
	}
	return i, ok
}

func (g *graph) ids() string {
	ids := make([]string, len(g.Steps))
	for i, s := range g.Steps {
		ids[i] = s.ID
	}
	return strings.Join(ids, ", ")
}

func (g *graph) near(id, otherwise string) string {
	for _, s := range g.Steps {
		if len(id) > 2 && schema.Near(id, s.ID) {
			return fmt.Sprintf("did you mean %s?", s.ID)
		}
	}
	return otherwise
}

func (g *graph) identify() {
	for i, s := range g.Steps {
		first, twice := g.index[s.ID]
		switch {
		case !idForm.MatchString(s.ID):
			g.fail(i, "id", 0, fmt.Sprintf("the id %q is no plain word", s.ID), "write up to 64 letters, digits, - and _, beginning with a letter")
		case isReserved(s.ID):
			g.fail(i, "id", 0, fmt.Sprintf("no step can be called %s, because placeholders mean something else by it", s.ID), "rename it")
		case twice:
			g.fail(i, "id", 0, fmt.Sprintf("the id %s stands twice; first %s", s.ID, g.place(first)), "rename one of them")
		default:
			g.index[s.ID] = i
		}
		if strings.TrimSpace(s.Task) == "" {
			g.fail(i, "task", 0, fmt.Sprintf("step %s has no task", s.ID), "say what its worker is to do")
		}
		if s.Agent != "" && s.AgentID != "" {
			g.fail(i, "agentId", 0, fmt.Sprintf("step %s has both agent and agentId", s.ID), "keep agent for a definition, agentId for a configured agent")
		}
	}
	if g.Result == "" {
		g.Result = g.Steps[len(g.Steps)-1].ID
	} else {
		g.find(g.Result, -1, "result", 0)
	}
}

func (g *graph) place(step int) string {
	if line := g.Steps[step].Line; line > 0 {
		return fmt.Sprintf("on line %d", line)
	}
	return fmt.Sprintf("as step %d", step+1)
}

func (g *graph) order() {
	g.needs = make([][]int, len(g.Steps))
	for i, s := range g.Steps {
		for n, id := range s.After {
			d, ok := g.find(id, i, "after", n)
			switch {
			case !ok:
			case d == i:
				g.fail(i, "after", n, fmt.Sprintf("step %s comes after itself", id), "remove it; to repeat a step use until and back")
			case !slices.Contains(g.needs[i], d):
				g.needs[i] = append(g.needs[i], d)
			}
		}
	}
}

// cycle returns steps that wait for each other, the first again at the end; nil
// if there are none.
func (g *graph) cycle() []int {
	state := make([]int, len(g.Steps)) // 1: on the path, 2: done
	var path []int
	var visit func(int) []int
	visit = func(i int) []int {
		state[i] = 1
		path = append(path, i)
		for _, d := range g.needs[i] {
			if state[d] == 1 {
				return append(slices.Clone(path[slices.Index(path, d):]), d)
			}
			if state[d] == 0 {
				if c := visit(d); c != nil {
					return c
				}
			}
		}
		path = path[:len(path)-1]
		state[i] = 2
		return nil
	}
	for i := range g.Steps {
		if state[i] == 0 {
			if c := visit(i); c != nil {
				slices.Reverse(c)
				return c
			}
		}
	}
	return nil
}

// reach fills above. There is no cycle.
func (g *graph) reach() {
	g.above = make([][]bool, len(g.Steps))
	var fill func(int) []bool
	fill = func(i int) []bool {
		if g.above[i] != nil {
			return g.above[i]
		}
		g.above[i] = make([]bool, len(g.Steps))
		for _, d := range g.needs[i] {
			g.above[i][d] = true
			for j, yes := range fill(d) {
				g.above[i][j] = g.above[i][j] || yes
			}
		}
		return g.above[i]
	}
	for i := range g.Steps {
		fill(i)
	}
}

func (g *graph) findLoops() {
	for i, s := range g.Steps {
		switch {
		case s.Back == "" && len(s.Until) == 0:
			continue
		case len(s.Until) == 0:
			g.fail(i, "back", 0, fmt.Sprintf("step %s goes back without an end", s.ID), "add until: {field: value} that says when it is done")
			continue
		case s.Back == "":
			g.fail(i, "until", 0, fmt.Sprintf("step %s has until, but not where to go back to", s.ID), "add back: STEP")
			continue
		case s.Each != "":
			g.fail(i, "until", 0, fmt.Sprintf("step %s has both each and until", s.ID), "put the until into a step of its own behind the wave")
			continue
		}
		back, ok := g.find(s.Back, i, "back", 0)
		if !ok {
			continue
		}
		if back != i && !g.above[i][back] {
			g.fail(i, "back", 0, fmt.Sprintf("step %s can't go back to %s, which does not come before it", s.ID, s.Back), "name a step that it comes after, or itself")
			continue
		}
		l := loop{back: back, end: i, body: make([]bool, len(g.Steps))}
		for j := range g.Steps {
			l.body[j] = (j == i || g.above[i][j]) && (j == back || g.above[j][back])
			if l.body[j] {
				l.size++
			}
		}
		g.loops = append(g.loops, l)
	}
}

// nest finds the loops around each step. Of two loops that share steps one must
// hold the other, else nobody could say which round a step is in.
func (g *graph) nest() {
	slices.SortStableFunc(g.loops, func(a, b loop) int { return cmp.Compare(b.size, a.size) })
	for i, outer := range g.loops {
		for _, inner := range g.loops[i+1:] {
			shared := 0
			for s := range g.Steps {
				if outer.body[s] && inner.body[s] {
					shared++
				}
			}
			if shared > 0 && shared < inner.size {
				g.fail(inner.end, "back", 0, fmt.Sprintf("the loops of %s and %s cross", g.Steps[outer.end].ID, g.Steps[inner.end].ID),
					"let one of them hold the other: go back to the same step, or put one until behind both")
			}
		}
	}
	g.in = make([][]int, len(g.Steps))
	for n, l := range g.loops {
		for s := range g.Steps {
			if l.body[s] {
				g.in[s] = append(g.in[s], n)
			}
		}
	}
}

// waitForLoops lets a step outside a loop that comes after one inside wait for
// the loop's end.
func (g *graph) waitForLoops() {
	for i := range g.Steps {
		for _, d := range slices.Clone(g.needs[i]) {
			for _, n := range g.in[d] {
				if end := g.loops[n].end; !g.loops[n].body[i] && !slices.Contains(g.needs[i], end) {
					g.needs[i] = append(g.needs[i], end)
				}
			}
		}
	}
	if c := g.cycle(); c != nil {
		g.fail(c[0], "after", 0, "loops wait for each other: "+g.names(c), "make them one loop, or take a step out of one")
		return
	}
	g.reach()
}

// shared is how many loops are around both steps: a beginning of either's.
func (g *graph) shared(a, b int) int {
	n := 0
	for n < len(g.in[a]) && n < len(g.in[b]) && g.in[a][n] == g.in[b][n] {
		n++
	}
	return n
}

// Waves returns the ids of the steps that can run at the same time, in the order
// in which they begin; a loop counts once. A flow with problems has none.
func (f Flow) Waves() [][]string {
	g := build(f)
	if len(g.issues) > 0 {
		return nil
	}
	level := make([]int, len(g.Steps)) // 0: not known yet
	var find func(int) int
	find = func(i int) int {
		if level[i] == 0 {
			level[i] = 1
			for _, d := range g.needs[i] {
				level[i] = max(level[i], find(d)+1)
			}
		}
		return level[i]
	}
	var out [][]string
	for i := range g.Steps {
		for n := find(i); len(out) < n; {
			out = append(out, nil)
		}
		out[level[i]-1] = append(out[level[i]-1], g.Steps[i].ID)
	}
	return out
}
