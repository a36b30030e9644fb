package memory

import (
	"context"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Accept stores a queued run, and its session if that is new. created is false
// when the key was known or the acceptance coalesced. It checks, in this
// order: the parent's fence, the waiting item, the key, coalescing, the limits
// of children and of the tree.
// A session that was archived or deleted is neither any more once it has a new
// run.
func (s *Store) Accept(ctx context.Context, a goclaw.Acceptance) (run goclaw.Run, created bool, err error) {
	err = s.do(ctx, "accept run", func() error {
		if err := store.CheckAcceptance(a); err != nil {
			return err
		}
		r, err := s.admit(a)
		if err != nil {
			return err
		}
		if r == nil {
			if s.byID[a.Run.ID] != nil {
				return fmt.Errorf("there is a run %s already", a.Run.ID)
			}
			r = s.enqueue(a)
			created = true
		}
		run = r.copied()
		return nil
	})
	return run, created, err
}

// admit returns the run that stands for a already, if there is one, or an
// error if a must not become a run.
func (s *Store) admit(a goclaw.Acceptance) (*record, error) {
	if a.ParentFence != nil {
		if _, err := s.fence(*a.ParentFence); err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
	}
	if a.Waiting != "" && !slices.ContainsFunc(s.inbox, func(it *goclaw.InboxItem) bool {
		return it.ID == a.Waiting && pending(it)
	}) {
		return nil, fmt.Errorf("item %s: %w", a.Waiting, goclaw.ErrConsumed)
	}
	if r := s.byKey[a.Key]; r != nil {
		return r, nil
	}
	children := 0
	for _, r := range s.open {
		if a.Coalesce && r.Session == a.Run.Session && r.Trigger == a.Run.Trigger && len(r.events) == 0 && r.CancelAt == 0 {
			return r, nil
		}
		if r.Trigger == goclaw.TriggerSpawn && r.Requester == a.Run.Requester {
			children++
		}
	}
	if a.MaxChildren > 0 && children >= a.MaxChildren {
		return nil, fmt.Errorf("session %s has %d of at most %d: %w", a.Run.Requester, children, a.MaxChildren, goclaw.ErrTooManyChildren)
	}
	if a.MaxTreeRuns > 0 {
		n := 0
		for _, r := range s.runs {
			if r.Root == a.Run.Root && r.Trigger == goclaw.TriggerSpawn {
				n++
			}
		}
		if n >= a.MaxTreeRuns {
			return nil, fmt.Errorf("tree %s has had %d of at most %d: %w", a.Run.Root, n, a.MaxTreeRuns, goclaw.ErrTreeFull)
		}
	}
	return nil, nil
}

func (s *Store) enqueue(a goclaw.Acceptance) *record {
	given := record{Run: store.Admitted(a)}
	r := &record{Run: given.copied()}
	r.Ordinal = int64(len(s.runs)) + 1
	head := s.touch(r.Session, r.CreatedAt)
	head.Turns++
	head.ArchivedAt, head.DeletedAt = 0, 0
	s.runs = append(s.runs, r)
	s.open = append(s.open, r)
	s.byID[r.ID] = r
	if a.Key != "" {
		s.byKey[a.Key] = r
	}
	for _, b := range a.Blobs {
		s.putBlob(b.SHA256, b.Data)
	}
	return r
}

// Cancel marks a run, and with Cascade its unended descendants (also those
// below a run that has ended), and returns those it marked now, oldest first.
func (s *Store) Cancel(ctx context.Context, c goclaw.Cancellation) (marked []goclaw.Run, err error) {
	err = s.do(ctx, "cancel run", func() error {
		if s.byID[c.Run] == nil {
			return fmt.Errorf("run %s: %w", c.Run, goclaw.ErrNotFound)
		}
		marked = s.cancel(c)
		return nil
	})
	return marked, err
}

// cancel marks what is to be cancelled, and returns it.
func (s *Store) cancel(c goclaw.Cancellation) (marked []goclaw.Run) {
	tree := map[string]bool{c.Run: true}
	for grown := c.Cascade; grown; {
		grown = false
		for _, r := range s.runs {
			if tree[r.Parent] && !tree[r.ID] {
				tree[r.ID], grown = true, true
			}
		}
	}
	for _, r := range s.open {
		if tree[r.ID] && r.CancelAt == 0 {
			r.CancelAt, r.CancelWhy = c.Now, c.Why
			marked = append(marked, r.copied())
		}
	}
	return marked
}
