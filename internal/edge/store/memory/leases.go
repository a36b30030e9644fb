package memory

import (
	"context"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Claim takes runs for an owner, in the order that the engine's contract
// gives.
func (s *Store) Claim(ctx context.Context, c goclaw.ClaimRequest) (claimed []goclaw.Claimed, err error) {
	err = s.do(ctx, "claim runs", func() error {
		// Both lists are made before anything is claimed: a run must not be
		// found abandoned because it was claimed just now.
		var withdrawn, abandoned []*record
		for _, r := range s.open {
			switch {
			case (r.State == goclaw.StateQueued || r.State == goclaw.StateWaiting) && r.CancelAt != 0:
				withdrawn = append(withdrawn, r)
			case (r.CancelAt != 0 || !c.OnlyCancelled) && s.abandoned(r, c):
				abandoned = append(abandoned, r)
			}
		}
		for _, r := range append(withdrawn, abandoned...) {
			if len(claimed) < c.Max {
				claimed = append(claimed, s.claim(r, c))
			}
		}
		if !c.OnlyCancelled {
			claimed = s.claimReady(c, claimed)
		}
		if len(claimed) > 0 {
			s.leases[c.Owner] = c.Now.Add(c.Lease)
		}
		return nil
	})
	return claimed, err
}

// abandoned reports whether a run has started and its owner is gone.
func (s *Store) abandoned(r *record, c goclaw.ClaimRequest) bool {
	switch r.State {
	case goclaw.StateInterrupted:
		return true
	case goclaw.StateRunning:
		return r.Owner != c.Owner && (s.leases[r.Owner] <= c.Now || c.DeadOwners)
	}
	return false
}

// claimReady claims runs of class 3: first turns, then workers.
func (s *Store) claimReady(c goclaw.ClaimRequest, claimed []goclaw.Claimed) []goclaw.Claimed {
	turns, workers := s.ready(func(r *record) bool {
		return r.State == goclaw.StateQueued || r.State == goclaw.StateWaiting && r.WakeAt != 0 && r.WakeAt <= c.Now
	})
	for _, r := range turns {
		fresh := r.State == goclaw.StateQueued && c.TurnsBefore != 0 && r.CreatedAt >= c.TurnsBefore
		if len(claimed) < c.Max && !fresh {
			claimed = append(claimed, s.claim(r, c))
		}
	}
	if len(claimed) >= c.Max {
		return claimed
	}
	picked := store.Pick(workers, s.running(), store.Bounds{
		Max: c.Max - len(claimed), Workers: c.MaxWorkers, PerLane: c.MaxPerLane, PerAgent: c.MaxPerAgent,
	})
	for _, ordinal := range picked {
		claimed = append(claimed, s.claim(s.runs[ordinal-1], c))
	}
	return claimed
}

// ready returns the runs that are due, the oldest of their sessions and not to
// be cancelled: those that are not spawned, oldest first, and the spawned ones.
func (s *Store) ready(due func(*record) bool) (turns []*record, workers []store.Line) {
	busy := map[goclaw.SessionKey]bool{}
	at := map[[2]string]int{}
	for _, r := range s.open {
		first := !busy[r.Session]
		busy[r.Session] = true
		if !first || r.CancelAt != 0 || !due(r) {
			continue
		}
		if r.Trigger != goclaw.TriggerSpawn {
			turns = append(turns, r)
			continue
		}
		line := [2]string{r.Lane.String(), r.Session.Agent}
		i, known := at[line]
		if !known {
			i = len(workers)
			at[line] = i
			workers = append(workers, store.Line{Lane: line[0], Agent: line[1]})
		}
		workers[i].Ordinals = append(workers[i].Ordinals, r.Ordinal)
	}
	return turns, workers
}

// running counts the spawned runs that are running.
func (s *Store) running() store.Running {
	n := store.Running{Lane: map[string]int{}, Agent: map[string]int{}}
	for _, r := range s.open {
		if r.State == goclaw.StateRunning && r.Trigger == goclaw.TriggerSpawn {
			n.Total++
			n.Lane[r.Lane.String()]++
			n.Agent[r.Session.Agent]++
		}
	}
	return n
}

// claim makes the run the claimer's. What an earlier owner held of it counts
// as spent from now on.
func (s *Store) claim(r *record, c goclaw.ClaimRequest) goclaw.Claimed {
	was := r.State
	r.Epoch++
	r.State = goclaw.StateRunning
	r.Owner = c.Owner
	r.WaitsFor, r.WakeAt = "", 0
	if r.StartedAt == 0 {
		r.StartedAt = c.Now
		r.Deadline = store.Deadline(r.Profile, c.Now)
	}
	s.lose(r.ID)
	released := was == goclaw.StateInterrupted
	return goclaw.Claimed{Run: r.copied(), TakeOver: released || was == goclaw.StateRunning, Released: released}
}

// Heartbeat renews the owner's lease and tells what it still holds. A lease
// that ran out is renewed too: what nobody took meanwhile is still held.
func (s *Store) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error) {
	pulse := goclaw.Pulse{Held: map[string]int64{}}
	err := s.do(ctx, "heartbeat", func() error {
		s.leases[h.Owner] = h.Now.Add(h.Lease)
		for _, r := range s.open {
			if r.Owner != h.Owner || r.State != goclaw.StateRunning {
				continue
			}
			pulse.Held[r.ID] = r.Epoch
			if r.CancelAt != 0 {
				pulse.Cancelled = append(pulse.Cancelled, r.ID)
			}
		}
		return nil
	})
	if err != nil {
		return goclaw.Pulse{}, err
	}
	slices.Sort(pulse.Cancelled)
	return pulse, nil
}

// Asked returns the owner's runs whose cancellation was asked.
func (s *Store) Asked(ctx context.Context, owner string) ([]string, error) {
	var ids []string
	err := s.do(ctx, "look for cancellations", func() error {
		for _, r := range s.open {
			if r.Owner == owner && r.State == goclaw.StateRunning && r.CancelAt != 0 {
				ids = append(ids, r.ID)
			}
		}
		return nil
	})
	return ids, err
}

// Release lets go of all runs of owner: they become interrupted and can be
// claimed at once. The owner's lease ends with it.
func (s *Store) Release(ctx context.Context, owner string, _ goclaw.Millis) error {
	return s.do(ctx, "release runs", func() error {
		for _, r := range s.open {
			if r.Owner == owner && r.State == goclaw.StateRunning {
				r.State, r.Owner = goclaw.StateInterrupted, ""
			}
		}
		delete(s.leases, owner)
		return nil
	})
}
