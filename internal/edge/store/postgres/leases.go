package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"goclaw"
)

// Heartbeat renews the owner's lease and tells what it still holds. A lease
// that ran out is renewed too: what nobody took meanwhile is still held.
func (s *Store) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error) {
	var pulse goclaw.Pulse
	err := s.write(ctx, "heartbeat", func(t *tx) error {
		t.again = true
		pulse = goclaw.Pulse{Held: map[string]int64{}}
		t.write(`INSERT INTO processes (id, lease_until) VALUES ($1, `+now("$2")+` + $3)
			ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`, h.Owner, s.leaseTime(h.Now), h.Lease.Milliseconds())
		each(t.queue(`SELECT id, epoch, cancel_at IS NOT NULL FROM runs WHERE owner = $1 AND state = 'running'`, h.Owner),
			func(rows pgx.Rows) error {
				var id string
				var epoch int64
				var cancelled bool
				if err := scan(rows, &id, &epoch, &cancelled); err != nil {
					return err
				}
				pulse.Held[id] = epoch
				if cancelled {
					pulse.Cancelled = append(pulse.Cancelled, id)
				}
				return nil
			})
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
	err := s.read(ctx, "look for cancellations", func(b *pgx.Batch) {
		ids = nil
		list(queue(b, `SELECT id FROM runs WHERE owner = $1 AND state = 'running' AND cancel_at IS NOT NULL ORDER BY ordinal`, owner), &ids)
	})
	return ids, err
}

// Release lets go of all runs of owner: they become interrupted and can be
// claimed at once. The owner's lease ends with it.
func (s *Store) Release(ctx context.Context, owner string, _ goclaw.Millis) error {
	return s.write(ctx, "release runs", func(t *tx) error {
		t.again = true
		t.write(`UPDATE runs SET state = 'interrupted', owner = '' WHERE owner = $1 AND state = 'running'`, owner)
		t.write(`DELETE FROM processes WHERE id = $1`, owner)
		t.wake("")
		return nil
	})
}
