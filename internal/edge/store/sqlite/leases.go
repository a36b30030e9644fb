package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"goclaw"
)

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
