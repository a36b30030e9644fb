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

// BenchQueue measures how long a worker's place takes to be filled again while
// 10,000 workers of one lane, and one each of a hundred others, are queued.
func BenchQueue(b *testing.B, open func(b *testing.B) Store) {
	const queued, lanes = 10_000, 100
	s := open(b)
	accept := func(n int, lane string) {
		id := fmt.Sprintf("%012d-queued", n)
		_, _, err := s.Accept(b.Context(), goclaw.Acceptance{Run: goclaw.Run{
			ID: id, Session: goclaw.SubagentKey("a", id), Trigger: goclaw.TriggerSpawn, Lane: goclaw.APIKey("a", lane),
			State: goclaw.StateQueued, CreatedAt: start,
		}})
		if err != nil {
			b.Error(err)
		}
	}
	together(16, func(who int) {
		for n := who; n < queued; n += 16 {
			accept(n, "many")
		}
	})
	for lane := range lanes {
		accept(queued+lane, fmt.Sprint(lane))
	}
	for n := queued + lanes; b.Loop(); n++ {
		claimed, err := s.Claim(b.Context(), goclaw.ClaimRequest{Owner: "o", Now: start, Lease: lease, Max: 64, MaxWorkers: 4})
		if err != nil || len(claimed) == 0 {
			b.Fatalf("claimed %d runs: %v", len(claimed), err)
		}
		run := claimed[0].Run
		err = s.End(b.Context(), run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: start}})
		if err != nil {
			b.Fatal(err)
		}
		accept(n, run.Lane.Peer)
	}
}

// BenchReserve measures a reservation within a tree, and one within a day, that
// had 10,000 calls already.
func BenchReserve(b *testing.B, open func(b *testing.B) Store) {
	const calls, each = 10_000, 100
	s := open(b)
	_, _, err := s.Accept(b.Context(), goclaw.Acceptance{Run: goclaw.Run{ID: "r", Session: goclaw.MainKey("a"), State: goclaw.StateQueued}})
	if err != nil {
		b.Fatal(err)
	}
	claimed, err := s.Claim(b.Context(), goclaw.ClaimRequest{Owner: "o", Now: start, Lease: lease, Max: 1})
	if err != nil || len(claimed) != 1 {
		b.Fatalf("claimed %d runs: %v", len(claimed), err)
	}
	fence := claimed[0].Run.Fence()
	cost := 0.25
	for n := 0; n < calls; n += each {
		batch := goclaw.Batch{Now: start, Day: today}
		for i := range each {
			batch.Events = append(batch.Events, goclaw.Event{Seq: n + i, Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{
				Usage: goclaw.Usage{Input: 1000, Output: 10, CostUSD: &cost},
			}})
		}
		if err := s.Append(b.Context(), fence, batch); err != nil {
			b.Fatal(err)
		}
	}
	limits := goclaw.Limits{Tokens: 1 << 50, USD: 1e9}
	for name, r := range map[string]goclaw.Reservation{"none": {}, "tree": {Tree: limits}, "day": {Day: limits}} {
		r.Tokens, r.Date, r.Now = 1000, today, start
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				short, err := s.Reserve(b.Context(), fence, r)
				if err != nil || short != nil {
					b.Fatalf("shortage %+v, error %v", short, err)
				}
			}
		})
	}
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
