package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store"
)

// putItem queues an item that nobody has tried to deliver yet.
func (t *tx) putItem(i goclaw.InboxItem) {
	t.write(`INSERT INTO inbox (id, kind, session_key, source, group_run, mode, text, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		i.ID, i.Kind, i.Session.String(), i.Source, i.Group, i.Mode, i.Text, i.CreatedAt)
}

// Pending returns the items of a session that are neither consumed nor parked,
// in order of creation; the zero key means of all sessions.
func (s *Store) Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error) {
	query := `SELECT id, kind, session_key, source, group_run, mode, text, created_at, attempts, next_at, error,
			group_run <> '' AND (
				EXISTS (SELECT 1 FROM runs WHERE id = group_run AND coalesce(finished_at, -1) = -1 AND trigger <> 'spawn')
				OR EXISTS (SELECT 1 FROM runs WHERE parent = group_run AND parent <> ''
					AND trigger = 'spawn' AND announce = 'together' AND coalesce(finished_at, -1) = -1))
		FROM inbox WHERE consumed_at IS NULL AND parked_at IS NULL`
	var args []any
	if !session.IsZero() {
		query += ` AND session_key = $1`
		args = append(args, session.String())
	}
	var items []goclaw.InboxItem
	err := s.read(ctx, "read inbox", func(b *pgx.Batch) {
		items = nil
		each(queue(b, query+` ORDER BY n`, args...), func(rows pgx.Rows) error {
			var i goclaw.InboxItem
			var key string
			err := scan(rows, &i.ID, &i.Kind, &key, &i.Source, &i.Group, &i.Mode, &i.Text, &i.CreatedAt,
				&i.Attempts, &i.NextAt, &i.Error, &i.GroupOpen)
			if err != nil {
				return err
			}
			if err := i.Session.UnmarshalText([]byte(key)); err != nil {
				return err
			}
			items = append(items, i)
			return nil
		})
	})
	return items, err
}

// Post adds an item for the run, which it wakes if that waits for such.
// An item without a session or kind gets the run's, and is a message to it.
func (s *Store) Post(ctx context.Context, run string, item goclaw.InboxItem) error {
	return s.write(ctx, "post to run", func(t *tx) error {
		var r record
		var known bool
		t.lock(&r, run)
		into(t.queue(`SELECT EXISTS (SELECT 1 FROM inbox WHERE id = $1)`, item.ID), &known)
		if err := t.ask(); err != nil {
			return err
		}
		if !r.found {
			return fmt.Errorf("run %s: %w", run, goclaw.ErrNotFound)
		}
		posted, err := store.Posted(item, r.Session)
		switch {
		case err != nil || known:
			return err
		case r.State.Ended() || r.CancelAt != 0:
			return fmt.Errorf("run %s: %w", run, goclaw.ErrEnded)
		}
		t.putItem(posted)
		if r.State == goclaw.StateWaiting && r.WaitsFor == posted.Kind.Wakes() {
			t.wakeAt(r.Ordinal, r.WakeAt, posted.CreatedAt)
		}
		t.wake(run)
		return nil
	})
}

// Resume wakes a run that waits for a person.
func (s *Store) Resume(ctx context.Context, run string, now goclaw.Millis) (goclaw.Run, error) {
	const op = "resume run"
	var resumed []goclaw.Run
	err := s.write(ctx, op, func(t *tx) error {
		t.again = true
		collectRuns(t.write(`UPDATE runs SET wake_at = least(wake_at, nullif($2::bigint, 0))
			WHERE id = $1 AND state = 'waiting' RETURNING `+runColumns, run, now), &resumed)
		t.wake(run)
		return nil
	})
	if err == nil && len(resumed) == 0 {
		err = fmt.Errorf("%s: no run %s waits: %w", op, run, goclaw.ErrNotFound)
	}
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
	return s.write(ctx, op, func(t *tx) error {
		t.again = true
		t.write(`UPDATE inbox SET session_key = $2 WHERE id = $1 AND coalesce(consumed_at, parked_at) IS NULL`, item, to.String())
		t.wake("")
		return nil
	})
}

// Postpone counts a failed delivery of those of the items that are pending.
func (s *Store) Postpone(ctx context.Context, items []string, r goclaw.Return, now goclaw.Millis) error {
	if len(items) == 0 {
		return ctx.Err()
	}
	return s.write(ctx, "postpone items", func(t *tx) error {
		t.write(`UPDATE inbox SET attempts = attempts + 1, next_at = $2, error = $3, parked_at = $4
			WHERE id = ANY($1) AND coalesce(consumed_at, parked_at) IS NULL`, items, r.NextAt, r.Why, parkedAt(r, now))
		return nil
	})
}

// Parked lists the parked items and outbound replies, oldest first.
func (s *Store) Parked(ctx context.Context) ([]goclaw.Parked, error) {
	var parked []goclaw.Parked
	err := s.read(ctx, "list parked deliveries", func(b *pgx.Batch) {
		parked = nil
		each(queue(b, `SELECT 'announcement', id, session_key, source, text, attempts, error, parked_at FROM inbox
				WHERE consumed_at IS NULL AND parked_at IS NOT NULL
			UNION ALL
			SELECT 'reply', id, session_key, run_id, text, attempts, error, coalesce(parked_at, 0) FROM outbox WHERE state = 'parked'`),
			func(rows pgx.Rows) error {
				var p goclaw.Parked
				var key string
				if err := scan(rows, &p.Kind, &p.ID, &key, &p.Run, &p.Text, &p.Attempts, &p.Error, &p.ParkedAt); err != nil {
					return err
				}
				if err := p.Session.UnmarshalText([]byte(key)); err != nil {
					return err
				}
				parked = append(parked, p)
				return nil
			})
	})
	slices.SortFunc(parked, store.ByParking)
	return parked, err
}

// Unpark makes a parked delivery pending again, with no attempt counted.
func (s *Store) Unpark(ctx context.Context, id string, now goclaw.Millis) error {
	return s.decide(ctx, "unpark", id, now,
		`UPDATE inbox SET attempts = 0, next_at = $2, parked_at = NULL, error = ''
			WHERE id = $1 AND consumed_at IS NULL AND parked_at IS NOT NULL`,
		`UPDATE outbox SET state = 'pending', attempts = 0, next_at = $2, error = '', parked_at = NULL WHERE id = $1 AND state = 'parked'`)
}

// Dismiss gives a parked delivery up for good.
func (s *Store) Dismiss(ctx context.Context, id string, now goclaw.Millis) error {
	return s.decide(ctx, "dismiss", id, now,
		`UPDATE inbox SET consumed_by = '`+store.Dismissed+`', consumed_at = $2
			WHERE id = $1 AND consumed_at IS NULL AND parked_at IS NOT NULL`,
		`UPDATE outbox SET state = '`+store.Dismissed+`', parked_at = $2 WHERE id = $1 AND state = 'parked'`)
}

// decide changes the parked delivery with that id: an item, else a reply.
func (s *Store) decide(ctx context.Context, op, id string, now goclaw.Millis, item, reply string) error {
	var changed int64
	err := s.write(ctx, op, func(t *tx) error {
		into(t.write(`WITH item AS (`+item+` RETURNING 1), reply AS (`+reply+` AND NOT EXISTS (SELECT 1 FROM item) RETURNING 1)
			SELECT (SELECT count(*) FROM item) + (SELECT count(*) FROM reply)`, id, now), &changed)
		t.wake("")
		return nil
	})
	if err == nil && changed == 0 {
		err = fmt.Errorf("%s: nothing parked is named %s: %w", op, id, goclaw.ErrNotFound)
	}
	return err
}

// Tidy applies the cleanup policies and returns how many sessions it changed.
// A session counts as deleted once its transcript was removed while none of
// its runs was unended; one that waits for its deletion is not archived. It
// also forgets processes whose lease is over and that hold nothing.
func (s *Store) Tidy(ctx context.Context, at, archiveBefore goclaw.Millis) (int, error) {
	var deleted, archived int64
	err := s.write(ctx, "tidy", func(t *tx) error {
		t.again = true
		count(t.write(`
			WITH gone AS (
				UPDATE runs SET tidied = true WHERE cleanup = 'delete' AND NOT tidied AND finished_at IS NOT NULL
					AND NOT EXISTS (SELECT 1 FROM inbox WHERE source = runs.id AND consumed_at IS NULL)
				RETURNING id, session_key
			), cut AS (
				DELETE FROM events USING gone WHERE run_id = gone.id
			)
			UPDATE sessions SET deleted_at = $1 WHERE key = ANY (ARRAY (SELECT session_key FROM gone)) AND deleted_at IS NULL
				AND NOT EXISTS (SELECT 1 FROM runs WHERE session_key = sessions.key AND finished_at IS NULL)`, at), &deleted)
		count(t.write(`UPDATE sessions SET archived_at = $1
			WHERE worker AND archived_at IS NULL AND deleted_at IS NULL AND updated_at < $2 AND turns > 0
				AND NOT EXISTS (SELECT 1 FROM runs WHERE session_key = sessions.key AND finished_at IS NULL)
				AND NOT EXISTS (SELECT 1 FROM runs WHERE session_key = sessions.key AND cleanup = 'delete' AND NOT tidied)`,
			at, archiveBefore), &archived)
		t.write(`DELETE FROM processes WHERE lease_until <= `+now("$1")+`
			AND NOT EXISTS (SELECT 1 FROM runs WHERE owner = processes.id AND state = 'running')`, s.leaseTime(at))
		return nil
	})
	return int(deleted + archived), err
}
