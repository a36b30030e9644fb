package store

import (
	"container/heap"
	"maps"
	"slices"
)

// Line are ready spawned runs of one lane and one agent, in any order. There
// may be several lines for the same two.
type Line struct {
	Lane     string
	Agent    string
	Ordinals []int64
}

// Running counts the spawned runs that are running.
type Running struct {
	Total int
	Lane  map[string]int
	Agent map[string]int
}

// Bounds limit how many runs Pick picks and how many may run then; 0, or no
// entry, bounds nothing.
type Bounds struct {
	Max      int
	Workers  int
	PerLane  int
	PerAgent map[string]int
}

// Pick returns which of the runs in lines may run, in the order in which they
// shall be claimed: each time the oldest run of the lane that has the fewest
// running, counting those picked already, and of lanes alike the one whose run
// is older. A run whose agent is at its bound lets those behind it pass. The lines
// of a lane and an agent together have the oldest runs of theirs: as many as
// could be picked.
func Pick(lines []Line, running Running, b Bounds) []int64 {
	agents := maps.Clone(running.Agent)
	if agents == nil {
		agents = map[string]int{}
	}
	full := func(agent string) bool {
		most := b.PerAgent[agent]
		return most > 0 && agents[agent] >= most
	}
	lanes := newLanes(lines, running.Lane)
	for _, l := range lanes {
		l.advance(full)
	}
	heap.Init(&lanes)
	var picked []int64
	total := running.Total
	for len(lanes) > 0 && (b.Max == 0 || len(picked) < b.Max) && (b.Workers == 0 || total < b.Workers) {
		l := lanes[0]
		before := l.head
		if l.advance(full); len(l.lines) == 0 || b.PerLane > 0 && l.running >= b.PerLane {
			heap.Pop(&lanes)
			continue
		}
		if l.head == before { // else its agent has filled up meanwhile
			picked = append(picked, l.head)
			agents[l.lines[0].Agent]++
			l.lines[0].Ordinals = l.lines[0].Ordinals[1:]
			l.running++
			total++
			l.advance(full)
		}
		heap.Fix(&lanes, 0)
	}
	return picked
}

// newLanes sorts lines by lane, with one line for each agent.
func newLanes(lines []Line, running map[string]int) laneHeap {
	type both struct{ lane, agent string }
	byLane, joined := map[string]*lane{}, map[both]*Line{}
	var lanes laneHeap
	for _, line := range lines {
		l := byLane[line.Lane]
		if l == nil {
			l = &lane{running: running[line.Lane]}
			byLane[line.Lane] = l
			lanes = append(lanes, l)
		}
		name := both{line.Lane, line.Agent}
		if joined[name] == nil {
			joined[name] = &Line{Lane: line.Lane, Agent: line.Agent}
			l.lines = append(l.lines, joined[name])
		}
		joined[name].Ordinals = append(joined[name].Ordinals, line.Ordinals...)
	}
	for _, line := range joined {
		slices.Sort(line.Ordinals)
	}
	return lanes
}

// lane is what is left to pick of one lane.
type lane struct {
	running int
	lines   []*Line // the first has the lane's oldest run
	head    int64
}

// advance drops the lines that are empty or whose agent is full, and finds the
// oldest run.
func (l *lane) advance(full func(agent string) bool) {
	l.lines = slices.DeleteFunc(l.lines, func(line *Line) bool { return len(line.Ordinals) == 0 || full(line.Agent) })
	for i, line := range l.lines {
		if line.Ordinals[0] < l.lines[0].Ordinals[0] {
			l.lines[0], l.lines[i] = l.lines[i], l.lines[0]
		}
	}
	if len(l.lines) > 0 {
		l.head = l.lines[0].Ordinals[0]
	}
}

// laneHeap has at its root the lane whose turn it is.
type laneHeap []*lane

func (h laneHeap) Len() int      { return len(h) }
func (h laneHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h laneHeap) Less(i, j int) bool {
	if h[i].running != h[j].running {
		return h[i].running < h[j].running
	}
	return h[i].head < h[j].head
}

// Push adds a *lane.
func (h *laneHeap) Push(x any) {
	if l, ok := x.(*lane); ok {
		*h = append(*h, l)
	}
}

// Pop takes the last one.
func (h *laneHeap) Pop() any {
	n := len(*h) - 1
	last := (*h)[n]
	*h = (*h)[:n]
	return last
}
