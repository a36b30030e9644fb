package protocol

import (
	"fmt"
	"testing"
)

// TestReductionsLoseNothing explores every order of steps, and every zombie:
// what the work can come to in the end is the same as with what is left out.
func TestReductionsLoseNothing(t *testing.T) {
	small := map[string]bool{"takeover": true, "one slot": true, "time limit": true, "failed turns": true, "policy ask": true, "policy fail": true}
	for _, sc := range scenarios() {
		if !small[sc.name] {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			if raceDetector {
				t.Skip("one goroutine: the race detector finds nothing here, and takes minutes")
			}
			t.Parallel()
			reduced := ends(t, sc)
			sc.everyStep, sc.everyZombie = true, true
			whole := ends(t, sc)
			for end := range whole {
				if !reduced[end] {
					t.Errorf("of %d ends %d were found; not this one:\n%s", len(whole), len(reduced), end)
					break
				}
			}
			for end := range reduced {
				if !whole[end] {
					t.Errorf("without reductions there is no such end:\n%s", end)
					break
				}
			}
		})
	}
}

// ends are the contents of the store with which nothing goes on any more.
func ends(t *testing.T, sc scenario) map[string]bool {
	t.Helper()
	x := explore(t, sc)
	if x.broken != nil {
		t.Fatal(x.trace())
	}
	found := map[string]bool{}
	for i, n := range x.nodes {
		if len(x.next[i]) == 0 {
			found[x.snaps[n.state.snap].outcome()] = true
		}
	}
	return found
}

// outcome tells all that the store holds but times and who did it.
func (s *snapshot) outcome() string {
	var b []byte
	for i := range s.runs {
		r := &s.runs[i]
		b = fmt.Appendf(b, "%s %s %s %q %q epoch %d\n", r.ID, r.State, r.WaitsFor, r.Result, r.Error, r.Epoch)
		for _, e := range s.events[r.ID] {
			if e.Resumed != nil {
				resumed := *e.Resumed
				resumed.Owner = ""
				e.Resumed = &resumed
			}
			b = digested(b, e)
		}
	}
	for _, it := range s.items {
		b = fmt.Appendf(b, "item %s\n", it.ID)
	}
	for _, p := range s.parked {
		b = fmt.Appendf(b, "parked %s\n", p.ID)
	}
	return string(b)
}
