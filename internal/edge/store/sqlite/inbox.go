package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// insertItem adds an item that nobody has tried to deliver yet.
func (t *tx) insertItem(ctx context.Context, i goclaw.InboxItem) error {
	n, err := t.exec(ctx, `INSERT INTO inbox (id, kind, session_key, source, group_run, mode, text, created_at)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE id = ?1)`,
		i.ID, i.Kind, i.Session.String(), i.Source, i.Group, i.Mode, i.Text, i.CreatedAt)
	if err == nil && n == 0 {
		err = fmt.Errorf("there is an inbox item %s already", i.ID)
	}
	return err
}

// Pending returns the items of a session that are neither consumed nor parked,
// in order of creation; the zero key means of all sessions.
func (s *Store) Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error) {
	query := `SELECT id, kind, session_key, source, group_run, mode, text, created_at, attempts, next_at, error,
			group_run <> '' AND (
				EXISTS (SELECT 1 FROM runs WHERE id = group_run AND finished_at IS NULL AND trigger <> 'spawn')
				OR EXISTS (SELECT 1 FROM runs INDEXED BY runs_workers WHERE parent = group_run
					AND trigger = 'spawn' AND announce = 'together' AND finished_at IS NULL))
		FROM inbox INDEXED BY inbox_pending WHERE consumed_at IS NULL AND parked_at IS NULL`
	var args []any
	if !session.IsZero() {
		query += ` AND session_key = ?`
		args = append(args, session.String())
	}
	var items []goclaw.InboxItem
	err := s.read(ctx, "read inbox", func(rows *sql.Rows) error {
		var i goclaw.InboxItem
		var key string
		err := rows.Scan(&i.ID, &i.Kind, &key, &i.Source, &i.Group, &i.Mode, &i.Text, &i.CreatedAt,
			&i.Attempts, &i.NextAt, &i.Error, &i.GroupOpen)
		if err != nil {
			return err
		}
		if err := i.Session.UnmarshalText([]byte(key)); err != nil {
			return err
		}
		items = append(items, i)
		return nil
	}, query+` ORDER BY n`, args...)
	return items, err
}

// Post adds an item for the run, which it wakes if that waits for such.
// An item without a session or kind gets the run's, and is a message to it.
func (s *Store) Post(ctx context.Context, run string, item goclaw.InboxItem) error {
	return s.write(ctx, "post to run", func(ctx context.Context, t *tx) error {
		var ordinal int64
		var session, waits string
		var over, known bool
		err := t.row(ctx, `SELECT ordinal, session_key, finished_at IS NOT NULL OR cancel_at IS NOT NULL,
				iif(state = 'waiting', waits_for, ''), EXISTS (SELECT 1 FROM inbox WHERE id = ?2)
			FROM runs WHERE id = ?1`, []any{run, item.ID}, &ordinal, &session, &over, &waits, &known)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("run %s: %w", run, goclaw.ErrNotFound)
		}
		if err != nil {
			return err
		}
		var key goclaw.SessionKey
		if err := key.UnmarshalText([]byte(session)); err != nil {
			return err
		}
		posted, err := store.Posted(item, key)
		if err != nil {
			return err
		}
		switch {
		case known:
			return nil
		case over:
			return fmt.Errorf("run %s: %w", run, goclaw.ErrEnded)
		}
		if err := t.insertItem(ctx, posted); err != nil || waits != string(posted.Kind.Wakes()) {
			return err
		}
		return t.wakeAt(ctx, ordinal, posted.CreatedAt)
	})
}

// Resume wakes a run that waits for a person.
func (s *Store) Resume(ctx context.Context, run string, now goclaw.Millis) (goclaw.Run, error) {
	var resumed []goclaw.Run
	err := s.write(ctx, "resume run", func(ctx context.Context, t *tx) error {
		var ordinal int64
		err := t.row(ctx, `SELECT ordinal FROM runs WHERE id = ? AND state = 'waiting'`, []any{run}, &ordinal)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("no run %s waits: %w", run, goclaw.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if err := t.wakeAt(ctx, ordinal, now); err != nil {
			return err
		}
		return t.query(ctx, collectRuns(&resumed), `SELECT `+runColumns+` FROM runs WHERE ordinal = ?`, ordinal)
	})
	if err != nil {
		return goclaw.Run{}, err
	}
	return resumed[0], nil
}

// Redirect gives a pending item to another session.
func (s *Store) Redirect(ctx context.Context, item string, to goclaw.SessionKey) error {
	const op = "redirect item"
	if err := store.CheckKey(to); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE inbox SET session_key = ? WHERE id = ? AND consumed_at IS NULL AND parked_at IS NULL`, to.String(), item)
		return err
	})
}

// Postpone counts a failed delivery of those of the items that are pending.
func (s *Store) Postpone(ctx context.Context, items []string, r goclaw.Return, now goclaw.Millis) error {
	return s.write(ctx, "postpone items", func(ctx context.Context, t *tx) error {
		for i, id := range items {
			if slices.Contains(items[:i], id) {
				continue
			}
			_, err := t.exec(ctx, `UPDATE inbox SET attempts = attempts + 1, next_at = ?, error = ?, parked_at = CASE WHEN ? THEN ? END
				WHERE id = ? AND consumed_at IS NULL AND parked_at IS NULL`, r.NextAt, r.Why, flag(r.Parked), now, id)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Parked lists the parked items and outbound replies, oldest first.
func (s *Store) Parked(ctx context.Context) ([]goclaw.Parked, error) {
	var parked []goclaw.Parked
	err := s.read(ctx, "list parked deliveries", func(rows *sql.Rows) error {
		var p goclaw.Parked
		var key string
		if err := rows.Scan(&p.Kind, &p.ID, &key, &p.Run, &p.Text, &p.Attempts, &p.Error, &p.ParkedAt); err != nil {
			return err
		}
		if err := p.Session.UnmarshalText([]byte(key)); err != nil {
			return err
		}
		parked = append(parked, p)
		return nil
	}, `SELECT 'announcement', id, session_key, source, text, attempts, error, parked_at FROM inbox
			WHERE consumed_at IS NULL AND parked_at IS NOT NULL
		UNION ALL
		SELECT 'reply', id, session_key, run_id, text, attempts, error, coalesce(parked_at, 0) FROM outbox WHERE state = 'parked'`)
	slices.SortFunc(parked, store.ByParking)
	return parked, err
}

// Unpark makes a parked delivery pending again, with no attempt counted.
func (s *Store) Unpark(ctx context.Context, id string, now goclaw.Millis) error {
	return s.decide(ctx, "unpark", id, now,
		`UPDATE inbox SET attempts = 0, next_at = ?2, parked_at = NULL, error = ''
			WHERE id = ?1 AND consumed_at IS NULL AND parked_at IS NOT NULL`,
		`UPDATE outbox SET state = 'pending', attempts = 0, next_at = ?2, error = '', parked_at = NULL WHERE id = ?1 AND state = 'parked'`)
}

// Dismiss gives a parked delivery up for good.
func (s *Store) Dismiss(ctx context.Context, id string, now goclaw.Millis) error {
	return s.decide(ctx, "dismiss", id, now,
		`UPDATE inbox SET consumed_by = '`+store.Dismissed+`', consumed_at = ?2
			WHERE id = ?1 AND consumed_at IS NULL AND parked_at IS NOT NULL`,
		`UPDATE outbox SET state = '`+store.Dismissed+`', parked_at = ?2 WHERE id = ?1 AND state = 'parked'`)
}

// decide changes the parked delivery with that id: an item, else a reply.
func (s *Store) decide(ctx context.Context, op, id string, now goclaw.Millis, item, reply string) error {
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		for _, query := range []string{item, reply} {
			if n, err := t.exec(ctx, query, id, now); err != nil || n > 0 {
				return err
			}
		}
		return fmt.Errorf("nothing parked is named %s: %w", id, goclaw.ErrNotFound)
	})
}
