package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"goclaw"
)

// historyColumns are runColumns with the long ones given only once for each
// run: with its first event, or without one.
func historyColumns() string {
	columns := runColumns
	for _, long := range []string{"runs.task", "runs.context", "runs.profile", "runs.result", "runs.error"} {
		columns = strings.Replace(columns, long+",", "CASE WHEN coalesce(events.seq, 0) = 0 THEN "+long+" END,", 1)
	}
	return columns
}

// skip is a destination for columns that are not wanted.
type skip struct{}

// Scan does nothing.
func (skip) Scan(any) error { return nil }

// History returns the session's runs, with their events, that are older than
// the run with ordinal before (0: all) and newer than the last reset, oldest
// first.
func (s *Store) History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var logs []goclaw.RunLog
	var ordinal int64
	var data []byte
	brief := []any{&ordinal, &data}
	for range new(runRow).dest() {
		brief = append(brief, skip{})
	}
	err := s.read(ctx, "read history", func(rows *sql.Rows) error {
		if err := rows.Scan(brief...); err != nil {
			return err
		}
		if n := len(logs); n == 0 || logs[n-1].Run.Ordinal != ordinal {
			var r runRow
			if err := rows.Scan(append([]any{&ordinal, &data}, r.dest()...)...); err != nil {
				return err
			}
			run, err := r.value()
			if err != nil {
				return err
			}
			logs = append(logs, goclaw.RunLog{Run: run})
		}
		if data == nil {
			return nil // a run without events
		}
		last := &logs[len(logs)-1]
		var e goclaw.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("event %d of run %s: %w", len(last.Events), last.Run.ID, err)
		}
		last.Events = append(last.Events, e)
		return nil
	}, `SELECT runs.ordinal, events.data, `+historyColumns()+`
		FROM runs LEFT JOIN events ON events.run_id = runs.id
		WHERE runs.session_key = ?1 AND runs.ordinal < ?2
			AND runs.ordinal > coalesce((SELECT reset_at FROM sessions WHERE key = ?1), 0)
		ORDER BY runs.ordinal, events.seq`, key.String(), before)
	return logs, err
}

// Session returns ErrNotFound for a session that never had a run or change.
func (s *Store) Session(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error) {
	const op = "find session"
	var found []goclaw.Session
	err := s.read(ctx, op, collectSessions(&found), `SELECT `+sessionColumns+` FROM sessions WHERE key = ?`, key.String())
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s %s: %w", op, key, goclaw.ErrNotFound)
	}
	if err != nil {
		return goclaw.Session{}, err
	}
	return found[0], nil
}

// AllSessions returns all sessions, the most recently updated first.
func (s *Store) AllSessions(ctx context.Context) ([]goclaw.Session, error) {
	var found []goclaw.Session
	err := s.read(ctx, "list sessions", collectSessions(&found),
		`SELECT `+sessionColumns+` FROM sessions ORDER BY updated_at DESC, key`)
	return found, err
}

// ChangeSession changes the session's head; it creates the session if need be.
func (s *Store) ChangeSession(ctx context.Context, key goclaw.SessionKey, c goclaw.SessionChange, now goclaw.Millis) error {
	const op = "change session"
	if err := checkKey(key); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `INSERT INTO sessions (key, agent, worker, created_at, updated_at, model, thinking)
			VALUES (?1, ?2, ?3, ?4, ?4, coalesce(?5, ''), coalesce(?6, ''))
			ON CONFLICT (key) DO UPDATE SET updated_at = max(updated_at, ?4),
				model = coalesce(?5, model), thinking = coalesce(?6, thinking)`,
			key.String(), key.Agent, flag(key.IsWorker()), now, c.Model, c.Thinking)
		if err != nil || !c.Reset {
			return err
		}
		_, err = t.exec(ctx, `UPDATE sessions SET reset_at = coalesce((SELECT max(ordinal) FROM runs WHERE session_key = ?1), 0)
			WHERE key = ?1`, key.String())
		return err
	})
}

// Counts returns how many runs are under way (claimed and not ended, also if
// their owner let go) and how many are queued.
func (s *Store) Counts(ctx context.Context) (active, queued int, err error) {
	err = s.read(ctx, "count runs", func(rows *sql.Rows) error {
		return rows.Scan(&active, &queued)
	}, `SELECT active, unended - active FROM (SELECT
		(SELECT count(*) FROM runs WHERE state = 'running') + (SELECT count(*) FROM runs WHERE state = 'interrupted') AS active,
		(SELECT count(*) FROM runs WHERE finished_at IS NULL) AS unended)`)
	return active, queued, err
}
