package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"goclaw"
)

// Bench measures the life of a run: accepted, claimed, three events in two
// batches, ended. It reports runs per second, once in sequence and once by 16
// goroutines. Every run has a session of its own.
func Bench(b *testing.B, open func(b *testing.B) Store) {
	var n atomic.Int64
	b.Run("serial", func(b *testing.B) {
		s := open(b)
		for b.Loop() {
			if err := live(b, s, n.Add(1), "o"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
	b.Run("parallel", func(b *testing.B) {
		const workers = 16
		s := open(b)
		left := int64(b.N)
		b.ResetTimer()
		together(workers, func(i int) {
			owner := fmt.Sprintf("o%02d", i)
			for atomic.AddInt64(&left, -1) >= 0 {
				if err := live(b, s, n.Add(1), owner); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

// live takes one run, not necessarily the one that it accepts, through its
// life.
func live(b *testing.B, s Store, n int64, owner string) error {
	ctx := b.Context()
	id := fmt.Sprintf("%012d-bench", n)
	now := start + goclaw.Millis(n)
	_, _, err := s.Accept(ctx, goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: goclaw.SubagentKey("a", id), Trigger: goclaw.TriggerSpawn, Requester: goclaw.MainKey("a"),
		Task: "measure", State: goclaw.StateQueued, CreatedAt: now,
		Profile: goclaw.Profile{Agent: "a", Model: "p/m", Tools: []string{"exec", "read", "write"}, TimeoutMs: 1000},
	}})
	if err != nil {
		return err
	}
	claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: owner, Now: now, Lease: lease, Max: 1, MaxWorkers: 1000})
	if err != nil || len(claimed) != 1 {
		return fmt.Errorf("claimed %d runs: %w", len(claimed), err)
	}
	run := claimed[0].Run
	usage := goclaw.Usage{Input: 1000, Output: 10}
	err = s.Append(ctx, run.Fence(), goclaw.Batch{Now: now, Usage: &usage, Events: []goclaw.Event{result(0, now), result(1, now)}})
	if err != nil {
		return err
	}
	return s.End(ctx, run.Fence(), goclaw.Ending{
		State: goclaw.StateCompleted, Result: "done", Batch: goclaw.Batch{Now: now, Events: []goclaw.Event{result(2, now)}},
		Announce: &goclaw.InboxItem{ID: run.ID, Session: run.Requester, Source: run.ID, Text: "Complete."},
	})
}
