package memory

import (
	"context"
	"slices"

	"goclaw"
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
			case r.State == goclaw.StateQueued && r.CancelAt != 0:
				withdrawn = append(withdrawn, r)
			case (r.CancelAt != 0 || !c.OnlyCancelled) && s.abandoned(r, c):
				abandoned = append(abandoned, r)
			}
		}
		for i, r := range append(withdrawn, abandoned...) {
			if len(claimed) < c.Max {
				claimed = append(claimed, r.claim(c, i >= len(withdrawn)))
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
		return s.leases[r.Owner] <= c.Now || c.DeadOwners && r.Owner != c.Owner
	}
	return false
}

// claimReady claims queued runs that are the oldest of their sessions.
func (s *Store) claimReady(c goclaw.ClaimRequest, claimed []goclaw.Claimed) []goclaw.Claimed {
	workers := 0
	for _, r := range s.open {
		if r.State == goclaw.StateRunning && r.Trigger == goclaw.TriggerSpawn {
			workers++
		}
	}
	busy := map[goclaw.SessionKey]bool{}
	for _, r := range s.open {
		if len(claimed) >= c.Max {
			break
		}
		worker := r.Trigger == goclaw.TriggerSpawn
		if r.State == goclaw.StateQueued && !busy[r.Session] && !(worker && c.MaxWorkers > 0 && workers >= c.MaxWorkers) {
			claimed = append(claimed, r.claim(c, false))
			if worker {
				workers++
			}
		}
		busy[r.Session] = true
	}
	return claimed
}

func (r *record) claim(c goclaw.ClaimRequest, takeOver bool) goclaw.Claimed {
	r.Epoch++
	r.State = goclaw.StateRunning
	r.Owner = c.Owner
	if r.StartedAt == 0 {
		r.StartedAt = c.Now
		if r.Profile.TimeoutMs > 0 {
			r.Deadline = c.Now + goclaw.Millis(r.Profile.TimeoutMs)
		}
	}
	return goclaw.Claimed{Run: r.copied(), TakeOver: takeOver}
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
