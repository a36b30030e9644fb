package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/store"
)

// End closes the run; the next run of its session becomes ready with it.
func (s *Store) End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error {
	const op = "end run"
	rows, err := encodeBatch(e.Batch)
	if err == nil {
		err = store.CheckEnding(f, e)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, f.Run, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		r, err := t.fence(ctx, f)
		if err != nil {
			return err
		}
		if err := t.append(ctx, f.Run, r, e.Batch, rows); err != nil {
			return err
		}
		if e.IfQuiet {
			if err := t.quiet(ctx, f.Run, r); err != nil {
				return err
			}
		}
		if err := t.finish(ctx, f.Run, r, e); err != nil {
			return err
		}
		return t.hand(ctx, f.Run, r, e)
	})
}

// quiet returns ErrWoken if the run's session has pending items or workers.
func (t *tx) quiet(ctx context.Context, run string, r record) error {
	pending, workers, err := t.news(ctx, r)
	if err == nil && (pending > 0 || workers) {
		err = fmt.Errorf("run %s: %w", run, goclaw.ErrWoken)
	}
	return err
}

// news counts what is pending for the run's session and tells whether that has
// unended workers.
func (t *tx) news(ctx context.Context, r record) (pending int, workers bool, err error) {
	err = t.row(ctx, `SELECT (SELECT count(*) FROM inbox WHERE session_key = ?1 AND consumed_at IS NULL AND parked_at IS NULL),
			EXISTS (SELECT 1 FROM runs WHERE requester_key = ?1 AND finished_at IS NULL AND trigger = 'spawn')`,
		[]any{r.session}, &pending, &workers)
	return pending, workers, err
}

// finish sets the run's end and passes its place at the session's head on.
func (t *tx) finish(ctx context.Context, run string, r record, e goclaw.Ending) error {
	_, err := t.exec(ctx, `UPDATE runs SET state = ?, result = ?, error = ?, finished_at = ?, owner = '', head = 0 WHERE ordinal = ?`,
		e.State, e.Result, e.Error, e.Now, r.ordinal)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, `UPDATE runs SET head = 1 WHERE head = 0 AND ordinal =
		(SELECT ordinal FROM runs WHERE session_key = ? AND finished_at IS NULL ORDER BY ordinal LIMIT 1)`, r.session)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, `UPDATE sessions SET updated_at = max(updated_at, ?) WHERE key = ?`, e.Now, r.session)
	if err != nil {
		return err
	}
	return t.lose(ctx, run)
}

// hand passes on what the run leaves: what it gives back, its
// announcement, its reply, and the word to who waits for it.
func (t *tx) hand(ctx context.Context, run string, r record, e goclaw.Ending) error {
	if e.Return != nil {
		_, err := t.exec(ctx, `UPDATE inbox SET consumed_by = '', consumed_at = NULL, attempts = attempts + 1, next_at = ?, error = ?,
				parked_at = CASE WHEN ? THEN ? END WHERE consumed_by = ? AND consumed_by <> ''`,
			e.Return.NextAt, e.Return.Why, flag(e.Return.Parked), e.Now, run)
		if err != nil {
			return err
		}
	}
	if e.Announce != nil {
		if err := t.insertItem(ctx, store.Announced(e)); err != nil {
			return err
		}
	}
	if e.Outbox != nil {
		if err := t.insertReply(ctx, *e.Outbox, e.Now); err != nil {
			return err
		}
	}
	if e.Cascade != "" {
		_, err := t.exec(ctx, `
			WITH RECURSIVE tree (ordinal, id) AS (
				SELECT ordinal, id FROM runs WHERE ordinal = ?1
				UNION
				SELECT child.ordinal, child.id FROM tree
				JOIN runs AS child ON child.parent = tree.id AND child.parent <> ''
			)
			UPDATE runs SET cancel_at = ?2, cancel_why = ?3
			WHERE ordinal IN (SELECT ordinal FROM tree) AND finished_at IS NULL AND cancel_at IS NULL`, r.ordinal, e.Now, e.Cascade)
		if err != nil {
			return err
		}
	}
	if e.Wake != nil {
		return t.wakeRequester(ctx, r, *e.Wake)
	}
	return nil
}

// wakeRequester tells the run of the requester's session that waits for its
// workers, if there is one: it is the head of the session.
func (t *tx) wakeRequester(ctx context.Context, r record, w goclaw.Wake) error {
	var waiting int64
	var workers bool
	err := t.row(ctx, `SELECT waiting.ordinal,
			CASE WHEN ?2 THEN EXISTS (SELECT 1 FROM runs WHERE parent = ended.parent AND finished_at IS NULL
					AND trigger = 'spawn' AND announce = 'together')
				ELSE EXISTS (SELECT 1 FROM runs WHERE requester_key = ended.requester_key AND finished_at IS NULL AND trigger = 'spawn') END
		FROM runs AS ended JOIN runs AS waiting ON waiting.session_key = ended.requester_key
		WHERE ended.ordinal = ?1 AND ended.requester_key <> '' AND waiting.finished_at IS NULL
			AND waiting.state = 'waiting' AND waiting.waits_for = 'workers'`, []any{r.ordinal, flag(w.Together)}, &waiting, &workers)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	at := w.Last
	if workers {
		at = w.Next
	}
	return t.wakeAt(ctx, waiting, at)
}

// wakeAt makes a waiting run go on at a moment, unless it does so earlier.
func (t *tx) wakeAt(ctx context.Context, ordinal int64, at goclaw.Millis) error {
	if at == 0 {
		return nil
	}
	_, err := t.exec(ctx, `UPDATE runs SET wake_at = ?2 WHERE ordinal = ?1 AND (wake_at IS NULL OR wake_at > ?2)`, ordinal, at)
	return err
}

// Suspend appends, and gives the run's slot back.
func (s *Store) Suspend(ctx context.Context, f goclaw.Fence, w goclaw.Suspension) error {
	const op = "suspend run"
	rows, err := encodeBatch(w.Batch)
	if err == nil {
		err = store.CheckSuspension(w)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, f.Run, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		r, err := t.fence(ctx, f)
		if err != nil {
			return err
		}
		if err := t.append(ctx, f.Run, r, w.Batch, rows); err != nil {
			return err
		}
		pending, workers, err := t.news(ctx, r)
		if err != nil {
			return err
		}
		if left := w.For == goclaw.WaitWorkers && w.Until == 0 && !workers; left || pending != w.Seen {
			return fmt.Errorf("run %s: %w", f.Run, goclaw.ErrWoken)
		}
		_, err = t.exec(ctx, `UPDATE runs SET state = 'waiting', owner = '', waits_for = ?1,
			wake_at = min(coalesce(nullif(?2, 0), deadline), coalesce(deadline, ?2)) WHERE ordinal = ?3`,
			w.For, w.Until, r.ordinal)
		return err
	})
}
