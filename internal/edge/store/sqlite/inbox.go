package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"goclaw"
)

func (t *tx) announce(ctx context.Context, run string, i goclaw.InboxItem, now goclaw.Millis) error {
	if i.CreatedAt == 0 {
		i.CreatedAt = now
	}
	_, err := t.insert(ctx, `INSERT INTO inbox (id, session_key, source, group_run, mode, text, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		i.ID, i.Session.String(), run, i.Group, i.Mode, i.Text, i.CreatedAt)
	return err
}

// Pending returns the unconsumed items of a session in order of creation; the
// zero key means of all sessions.
func (s *Store) Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error) {
	query := `SELECT id, session_key, source, group_run, mode, text, created_at,
			group_run <> '' AND (
				EXISTS (SELECT 1 FROM runs WHERE id = group_run AND finished_at IS NULL)
				OR EXISTS (SELECT 1 FROM runs WHERE parent = group_run AND parent <> ''
					AND trigger = 'spawn' AND announce = 'together' AND finished_at IS NULL))
		FROM inbox WHERE consumed_at IS NULL`
	var args []any
	if !session.IsZero() {
		query += ` AND session_key = ?`
		args = append(args, session.String())
	}
	var items []goclaw.InboxItem
	err := s.read(ctx, "read inbox", func(rows *sql.Rows) error {
		var i goclaw.InboxItem
		var key string
		if err := rows.Scan(&i.ID, &key, &i.Source, &i.Group, &i.Mode, &i.Text, &i.CreatedAt, &i.GroupOpen); err != nil {
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

// Tidy applies the cleanup policies and returns how many sessions it changed.
// A session counts as deleted once its transcript was removed while none of
// its runs was unended; one that waits for its deletion is not archived. It
// also forgets processes whose lease is over and that hold nothing.
func (s *Store) Tidy(ctx context.Context, now, archiveBefore goclaw.Millis) (int, error) {
	var changed int64
	err := s.write(ctx, "tidy", func(ctx context.Context, t *tx) error {
		deleted, err := t.deleteTranscripts(ctx, now)
		if err != nil {
			return err
		}
		archived, err := t.exec(ctx, `UPDATE sessions SET archived_at = ?
			WHERE worker = 1 AND archived_at IS NULL AND deleted_at IS NULL AND updated_at < ? AND turns > 0
				AND NOT EXISTS (SELECT 1 FROM runs WHERE session_key = sessions.key AND finished_at IS NULL)
				AND NOT EXISTS (SELECT 1 FROM runs WHERE session_key = sessions.key AND cleanup = 'delete' AND tidied = 0)`,
			now, archiveBefore)
		if err != nil {
			return err
		}
		changed = deleted + archived
		_, err = t.exec(ctx, `DELETE FROM processes WHERE lease_until <= ?
			AND NOT EXISTS (SELECT 1 FROM runs WHERE owner = processes.id AND state = 'running')`, now)
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(changed), nil
}

func (t *tx) deleteTranscripts(ctx context.Context, now goclaw.Millis) (int64, error) {
	type ended struct {
		ordinal     int64
		id, session string
	}
	var found []ended
	err := t.query(ctx, func(rows *sql.Rows) error {
		var e ended
		err := rows.Scan(&e.ordinal, &e.id, &e.session)
		found = append(found, e)
		return err
	}, `SELECT ordinal, id, session_key FROM runs WHERE cleanup = 'delete' AND tidied = 0 AND finished_at IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE source = runs.id AND consumed_at IS NULL) ORDER BY ordinal`)
	if err != nil {
		return 0, err
	}
	var sessions int64
	for _, e := range found {
		if _, err := t.exec(ctx, `DELETE FROM events WHERE run_id = ?`, e.id); err != nil {
			return 0, err
		}
		if _, err := t.exec(ctx, `UPDATE runs SET tidied = 1 WHERE ordinal = ?`, e.ordinal); err != nil {
			return 0, err
		}
		n, err := t.exec(ctx, `UPDATE sessions SET deleted_at = ?1 WHERE key = ?2 AND deleted_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM runs WHERE session_key = ?2 AND finished_at IS NULL)`, now, e.session)
		if err != nil {
			return 0, err
		}
		sessions += n
	}
	return sessions, nil
}

// post puts a reply into the outbox, to be sent from its NextAt on.
func (t *tx) post(ctx context.Context, run string, o goclaw.Outbound, now goclaw.Millis) error {
	if o.CreatedAt == 0 {
		o.CreatedAt = now
	}
	_, err := t.insert(ctx, `INSERT INTO outbox (id, session_key, run_id, text, state, next_at, created_at)
		VALUES (?, ?, ?, ?, 'pending', ?, ?)`, o.ID, o.Session.String(), run, o.Text, o.NextAt, o.CreatedAt)
	return err
}

// Outbox returns the replies that are due at now, in order: of each session
// only the oldest that is neither sent nor parked, so that a reply never
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
		ORDER BY n LIMIT +?`, now, limit)
	return due, err
}

// MarkOutbox records what became of a reply: pending and sending ones are due
// again at nextAt; sending counts as an attempt.
func (s *Store) MarkOutbox(ctx context.Context, id, state string, nextAt goclaw.Millis, errText string) error {
	const op = "mark outbox"
	switch state {
	case "pending", "sending", "sent", "parked":
	default:
		return fmt.Errorf("%s: state %q: want pending, sending, sent or parked", op, state)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE outbox SET state = ?1, next_at = ?2, error = ?3, attempts = attempts + (?1 = 'sending') WHERE id = ?4`,
			state, nextAt, errText, id)
		if err == nil && n == 0 {
			err = fmt.Errorf("outbound %s: %w", id, goclaw.ErrNotFound)
		}
		return err
	})
}
