package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/store"
)

// insertReply puts a reply into the outbox, to be sent from its NextAt on.
func (t *tx) insertReply(ctx context.Context, o goclaw.Outbound, now goclaw.Millis) error {
	if o.CreatedAt == 0 {
		o.CreatedAt = now
	}
	n, err := t.exec(ctx, `INSERT INTO outbox (id, session_key, run_id, text, state, next_at, created_at)
		SELECT ?1, ?2, ?3, ?4, 'pending', ?5, ?6 WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE id = ?1)`,
		o.ID, o.Session.String(), o.Run, o.Text, o.NextAt, o.CreatedAt)
	if err == nil && n == 0 {
		err = fmt.Errorf("there is an outbound %s already", o.ID)
	}
	return err
}

// Outbox returns the replies that are due at now, in order: of each session
// only the oldest that is pending or being sent, so that a reply never
// overtakes another. limit 0 means all.
func (s *Store) Outbox(ctx context.Context, now goclaw.Millis, limit int) ([]goclaw.Outbound, error) {
	if limit <= 0 {
		limit = -1
	}
	var due []goclaw.Outbound
	err := s.read(ctx, "read outbox", func(rows *sql.Rows) error {
		var o goclaw.Outbound
		var key string
		if err := rows.Scan(&o.ID, &key, &o.Run, &o.Text, &o.State, &o.Attempts, &o.NextAt, &o.Error, &o.CreatedAt); err != nil {
			return err
		}
		if err := o.Session.UnmarshalText([]byte(key)); err != nil {
			return err
		}
		due = append(due, o)
		return nil
	}, `SELECT id, session_key, run_id, text, state, attempts, next_at, error, created_at FROM outbox
		WHERE n IN (SELECT min(n) FROM outbox WHERE state IN ('pending', 'sending') GROUP BY session_key) AND next_at <= ?
		ORDER BY n LIMIT ? + 0`, now, limit)
	return due, err
}

// TakeOutbox takes a reply that is due at now, for whoever is to send it: it is
// being sent, which counts as an attempt, and is due again at until if nobody
// says what became of it. It returns false if the reply is not due any more:
// of several takers one gets it.
func (s *Store) TakeOutbox(ctx context.Context, id string, now, until goclaw.Millis) (taken bool, err error) {
	err = s.write(ctx, "take from outbox", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE outbox SET state = 'sending', next_at = ?1, error = '', attempts = attempts + 1
			WHERE id = ?2 AND state IN ('pending', 'sending') AND next_at <= ?3`, until, id, now)
		taken = n > 0
		return err
	})
	return taken && err == nil, err
}

// MarkOutbox records what became of a reply: a pending one is due again at the
// given time, a parked one is parked since then.
func (s *Store) MarkOutbox(ctx context.Context, id, state string, at goclaw.Millis, errText string) error {
	const op = "mark outbox"
	if err := store.CheckMark(state); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE outbox SET state = ?1, next_at = ?2, error = ?3,
				parked_at = CASE WHEN ?1 = 'parked' THEN ?2 END
			WHERE id = ?4 AND state <> '`+store.Dismissed+`'`, state, at, errText, id)
		if err == nil && n == 0 {
			err = fmt.Errorf("outbound %s: %w", id, goclaw.ErrNotFound)
		}
		return err
	})
}
