package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/internal/edge/store"
)

// TestPick compares Pick with its contract, said slowly.
func TestPick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		counts := rapid.MapOf(names, rapid.IntRange(0, 4))
		running := store.Running{Total: rapid.IntRange(0, 4).Draw(t, "total"), Lane: counts.Draw(t, "lanes"), Agent: counts.Draw(t, "agents")}
		bounds := store.Bounds{
			Max: rapid.IntRange(0, 9).Draw(t, "max"), Workers: rapid.IntRange(0, 12).Draw(t, "workers"),
			PerLane: rapid.IntRange(0, 5).Draw(t, "per lane"), PerAgent: counts.Draw(t, "per agent"),
		}
		var lines []store.Line
		for i := range rapid.IntRange(0, 15).Draw(t, "runs") {
			lines = append(lines, store.Line{Lane: names.Draw(t, "lane"), Agent: names.Draw(t, "agent"), Ordinals: []int64{int64(i + 1)}})
		}
		before := fmt.Sprint(lines, running, bounds)
		got := store.Pick(rapid.Permutation(lines).Draw(t, "lines"), running, bounds)
		if after := fmt.Sprint(lines, running, bounds); after != before {
			t.Fatalf("Pick changed what it was given:\n%s\n%s", before, after)
		}
		if diff := cmp.Diff(slowly(lines, running, bounds), got); diff != "" {
			t.Fatalf("Pick(%s) (-want +got):\n%s", before, diff)
		}
	})
}

// slowly picks from lines of one run each, oldest first.
func slowly(lines []store.Line, running store.Running, b store.Bounds) (picked []int64) {
	lanes, agents := map[string]int{}, map[string]int{}
	for name, n := range running.Lane {
		lanes[name] = n
	}
	for name, n := range running.Agent {
		agents[name] = n
	}
	left := slices.Clone(lines)
	for b.Max == 0 || len(picked) < b.Max {
		if b.Workers > 0 && running.Total+len(picked) >= b.Workers {
			break
		}
		best := -1
		for i, one := range left {
			fits := (b.PerLane == 0 || lanes[one.Lane] < b.PerLane) && (b.PerAgent[one.Agent] == 0 || agents[one.Agent] < b.PerAgent[one.Agent])
			if fits && (best < 0 || lanes[one.Lane] < lanes[left[best].Lane]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		one := left[best]
		picked = append(picked, one.Ordinals[0])
		lanes[one.Lane]++
		agents[one.Agent]++
		left = slices.Delete(left, best, best+1)
	}
	return picked
}

func TestPickWithoutCounts(t *testing.T) {
	lines := []store.Line{{Lane: "a", Agent: "x", Ordinals: []int64{7, 1}}, {Lane: "b", Agent: "x", Ordinals: []int64{3}}, {Lane: "a", Agent: "x", Ordinals: []int64{5}}}
	if diff := cmp.Diff([]int64{1, 3, 5, 7}, store.Pick(lines, store.Running{}, store.Bounds{})); diff != "" {
		t.Error(diff)
	}
	if got := store.Pick(nil, store.Running{}, store.Bounds{}); got != nil {
		t.Errorf("picked %v of nothing", got)
	}
}

func BenchmarkPick(b *testing.B) {
	var lines []store.Line
	for lane := range 100 {
		line := store.Line{Lane: fmt.Sprint(lane), Agent: "a"}
		for i := range 100 {
			line.Ordinals = append(line.Ordinals, int64(i*100+lane))
		}
		lines = append(lines, line)
	}
	for b.Loop() {
		if n := len(store.Pick(lines, store.Running{}, store.Bounds{})); n != 10_000 {
			b.Fatalf("picked %d", n)
		}
	}
}
