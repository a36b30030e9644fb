package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw"
	"goclaw/internal/edge/store"
)

// minPrefix is the length from which the beginning of an id may name a run.
const minPrefix = 4

// Run finds a run by id, or by a prefix of at least four characters that no
// other run has.
func (s *Store) Run(ctx context.Context, id string) (run goclaw.Run, err error) {
	err = s.do(ctx, "find run", func() error {
		if r := s.byID[id]; r != nil {
			run = r.copied()
			return nil
		}
		if utf8.RuneCountInString(id) < minPrefix {
			return fmt.Errorf("%q (the beginning of an id must have at least %d characters): %w", id, minPrefix, goclaw.ErrNotFound)
		}
		n := 0
		for _, r := range s.runs {
			if strings.HasPrefix(r.ID, id) {
				run = r.copied()
				n++
			}
		}
		switch {
		case n == 0:
			return fmt.Errorf("%q: %w", id, goclaw.ErrNotFound)
		case n > 1:
			run = goclaw.Run{}
			return goclaw.BadRequest(fmt.Sprintf("%d runs begin with %q; give more of its id", n, id))
		}
		return nil
	})
	return run, err
}

// Runs returns the runs that f selects, newest first.
func (s *Store) Runs(ctx context.Context, f goclaw.RunFilter) (runs []goclaw.Run, err error) {
	err = s.do(ctx, "list runs", func() error {
		for _, r := range slices.Backward(s.runs) {
			if f.Limit > 0 && len(runs) == f.Limit {
				break
			}
			if selects(f, r) {
				runs = append(runs, r.copied())
			}
		}
		return nil
	})
	return runs, err
}

func selects(f goclaw.RunFilter, r *record) bool {
	return (f.Session.IsZero() || r.Session == f.Session) &&
		(f.Requester.IsZero() || r.Requester == f.Requester) &&
		(f.Parent == "" || r.Parent == f.Parent) &&
		(f.Root == "" || r.Root == f.Root) &&
		(f.Before == 0 || r.Ordinal < f.Before) &&
		(len(f.Triggers) == 0 || slices.Contains(f.Triggers, r.Trigger)) &&
		(!f.Active || !r.State.Ended()) && (!f.Ended || r.State.Ended()) && r.Ordinal > f.After
}

// Blob returns stored content by its SHA-256.
func (s *Store) Blob(ctx context.Context, sha string) (data []byte, err error) {
	err = s.do(ctx, "read blob", func() error {
		stored, ok := s.blobs[sha]
		if !ok {
			return fmt.Errorf("%s: %w", sha, goclaw.ErrNotFound)
		}
		data = append([]byte{}, stored...)
		return nil
	})
	return data, err
}

// History returns the session's runs, with their events, that are older than
// the run with ordinal before (0: all) and newer than the last reset, oldest
// first.
func (s *Store) History(ctx context.Context, key goclaw.SessionKey, before int64) (logs []goclaw.RunLog, err error) {
	err = s.do(ctx, "read history", func() error {
		var reset int64
		if head := s.sessions[key]; head != nil {
			reset = head.ResetAt
		}
		for _, r := range s.runs {
			if r.Session != key || r.Ordinal <= reset || before != 0 && r.Ordinal >= before {
				continue
			}
			events, err := r.log()
			if err != nil {
				return err
			}
			logs = append(logs, goclaw.RunLog{Run: r.copied(), Events: events})
		}
		return nil
	})
	return logs, err
}

// Queue returns the ids of the spawned runs that are queued and the oldest of
// their sessions, in the order in which they would be claimed.
func (s *Store) Queue(ctx context.Context) (ids []string, err error) {
	err = s.do(ctx, "read queue", func() error {
		_, workers := s.ready(func(r *record) bool { return r.State == goclaw.StateQueued })
		for _, ordinal := range store.Pick(workers, s.running(), store.Bounds{}) {
			ids = append(ids, s.runs[ordinal-1].ID)
		}
		return nil
	})
	return ids, err
}

// Counts returns how many runs are under way (claimed and not ended, also if
// their owner let go or they wait) and how many are queued.
func (s *Store) Counts(ctx context.Context) (active, queued int, err error) {
	err = s.do(ctx, "count runs", func() error {
		for _, r := range s.open {
			if r.State == goclaw.StateQueued {
				queued++
			} else {
				active++
			}
		}
		return nil
	})
	return active, queued, err
}
