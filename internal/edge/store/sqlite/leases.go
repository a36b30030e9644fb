package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"goclaw"
)

// candidate is a run that a claim may take.
type candidate struct {
	ordinal  int64
	takeOver bool
}

// Claim takes runs for an owner, in the order that the engine's contract
// gives. Its queries touch only runs that can be taken now and the lists of
// processes and running runs, never those that have ended or are blocked.
func (s *Store) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	var claimed []goclaw.Claimed
	if c.Max <= 0 {
		return nil, ctx.Err()
	}
	err := s.write(ctx, "claim runs", func(ctx context.Context, t *tx) error {
		// Withdrawn runs and those of dead owners come first and are claimed
		// before the rest is chosen: they count as running workers.
		first, err := t.overdue(ctx, c)
		if err != nil {
			return err
		}
		if claimed, err = t.claim(ctx, c, first, nil); err != nil {
			return err
		}
		if len(claimed) < c.Max && !c.OnlyCancelled {
			ready, err := t.ready(ctx, c, c.Max-len(claimed))
			if err != nil {
				return err
			}
			if claimed, err = t.claim(ctx, c, ready, claimed); err != nil {
				return err
			}
		}
		if len(claimed) == 0 {
			return nil
		}
		return t.lease(ctx, c.Owner, c.Now, c.Lease)
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// overdue finds queued runs to be cancelled, then runs whose owner is gone.
func (t *tx) overdue(ctx context.Context, c goclaw.ClaimRequest) ([]candidate, error) {
	var found []candidate
	collect := func(rows *sql.Rows) error {
		var one candidate
		err := rows.Scan(&one.ordinal, &one.takeOver)
		found = append(found, one)
		return err
	}
	err := t.query(ctx, collect, `SELECT ordinal, 0 FROM runs
		WHERE state = 'queued' AND cancel_at IS NOT NULL ORDER BY ordinal LIMIT +?`, c.Max)
	if err != nil || len(found) == c.Max {
		return found, err
	}
	err = t.query(ctx, collect, `
		SELECT ordinal, 1 FROM runs WHERE state = 'interrupted' AND (NOT ?1 OR cancel_at IS NOT NULL)
		UNION ALL
		SELECT runs.ordinal, 1 FROM processes CROSS JOIN runs ON runs.owner = processes.id
		WHERE (processes.lease_until <= ?2 OR ?3 AND processes.id <> ?4)
			AND runs.state = 'running' AND (NOT ?1 OR runs.cancel_at IS NOT NULL)
		ORDER BY 1 LIMIT +?5`,
		flag(c.OnlyCancelled), c.Now, flag(c.DeadOwners), c.Owner, c.Max-len(found))
	return found, err
}

// ready finds at most limit queued runs that are the oldest of their sessions,
// with no more workers than may run.
func (t *tx) ready(ctx context.Context, c goclaw.ClaimRequest, limit int) ([]candidate, error) {
	workers := limit
	if c.MaxWorkers > 0 {
		var running int
		err := t.row(ctx, `SELECT count(*) FROM runs WHERE state = 'running' AND trigger = 'spawn'`, nil, &running)
		if err != nil {
			return nil, err
		}
		workers = min(limit, max(0, c.MaxWorkers-running))
	}
	var found []candidate
	err := t.query(ctx, func(rows *sql.Rows) error {
		var one candidate
		err := rows.Scan(&one.ordinal)
		found = append(found, one)
		return err
	}, `SELECT ordinal FROM (SELECT ordinal FROM runs
			WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger <> 'spawn' ORDER BY ordinal LIMIT +?1)
		UNION ALL
		SELECT ordinal FROM (SELECT ordinal FROM runs
			WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn' ORDER BY ordinal LIMIT +?2)
		ORDER BY 1 LIMIT +?1`, limit, workers)
	return found, err
}

// claim makes the candidates the owner's and appends them to claimed.
func (t *tx) claim(ctx context.Context, c goclaw.ClaimRequest, found []candidate, claimed []goclaw.Claimed) ([]goclaw.Claimed, error) {
	query := `UPDATE runs SET epoch = epoch + 1, state = 'running', owner = ?2, started_at = coalesce(started_at, ?3),
			deadline = CASE WHEN started_at IS NULL
				THEN ?3 + nullif(max(coalesce(json_extract(profile, '$.timeoutMs'), 0), 0), 0) ELSE deadline END
		WHERE ordinal = ?1 RETURNING ` + returnedRunColumns()
	for _, one := range found {
		var runs []goclaw.Run
		if err := t.returning(ctx, collectRuns(&runs), query, one.ordinal, c.Owner, c.Now); err != nil {
			return nil, err
		}
		for _, run := range runs {
			claimed = append(claimed, goclaw.Claimed{Run: run, TakeOver: one.takeOver})
		}
	}
	return claimed, nil
}

func (t *tx) lease(ctx context.Context, owner string, now goclaw.Millis, lease time.Duration) error {
	_, err := t.exec(ctx, `INSERT INTO processes (id, lease_until) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`, owner, now.Add(lease))
	return err
}

// Heartbeat renews the owner's lease and tells what it still holds. A lease
// that ran out is renewed too: what nobody took meanwhile is still held.
func (s *Store) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error) {
	pulse := goclaw.Pulse{Held: map[string]int64{}}
	err := s.write(ctx, "heartbeat", func(ctx context.Context, t *tx) error {
		if err := t.lease(ctx, h.Owner, h.Now, h.Lease); err != nil {
			return err
		}
		return t.query(ctx, func(rows *sql.Rows) error {
			var id string
			var epoch int64
			var cancelled bool
			if err := rows.Scan(&id, &epoch, &cancelled); err != nil {
				return err
			}
			pulse.Held[id] = epoch
			if cancelled {
				pulse.Cancelled = append(pulse.Cancelled, id)
			}
			return nil
		}, `SELECT id, epoch, cancel_at IS NOT NULL FROM runs WHERE owner = ? AND state = 'running'`, h.Owner)
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
	err := s.read(ctx, "look for cancellations", func(rows *sql.Rows) error {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
		return nil
	}, `SELECT id FROM runs WHERE owner = ? AND state = 'running' AND cancel_at IS NOT NULL ORDER BY ordinal`, owner)
	return ids, err
}

// Release lets go of all runs of owner: they become interrupted and can be
// claimed at once. The owner's lease ends with it.
func (s *Store) Release(ctx context.Context, owner string, _ goclaw.Millis) error {
	return s.write(ctx, "release runs", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE runs SET state = 'interrupted', owner = '' WHERE owner = ? AND state = 'running'`, owner)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `DELETE FROM processes WHERE id = ?`, owner)
		return err
	})
}
