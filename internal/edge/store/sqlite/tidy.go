package sqlite

import (
	"context"
	"database/sql"

	"goclaw"
)

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
