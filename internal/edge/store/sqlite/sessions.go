package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"

	"goclaw"
	"goclaw/internal/edge/store"
)

// History returns the session's runs, with their events, that are older than
// the run with ordinal before (0: all) and newer than the last reset, oldest
// first. An event that is written meanwhile may be missing. The logs must not
// be changed.
func (s *Store) History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var reset int64
	err := s.read(ctx, "read history", func(rows *sql.Rows) error { return rows.Scan(&reset) },
		`SELECT reset_at FROM sessions WHERE key = ?`, key.String())
	if err != nil {
		return nil, err
	}
	kept, after := s.transcripts.Get(key, reset)
	fresh, sizes, err := s.logs(ctx, key, after, before)
	if err != nil {
		return nil, err
	}
	s.transcripts.Add(key, reset, after, fresh, sizes)
	return store.Before(kept, fresh, before), nil
}

// logs reads the runs of a session between two ordinals, without them, and how
// many bytes the events of each take.
func (s *Store) logs(ctx context.Context, key goclaw.SessionKey, after, before int64) ([]goclaw.RunLog, []int, error) {
	const op = "read history"
	const which = ` WHERE runs.session_key = ? AND runs.ordinal > ? AND runs.ordinal < ? `
	var runs []goclaw.Run
	err := s.read(ctx, op, collectRuns(&runs), `SELECT `+runColumns+` FROM runs`+which+`ORDER BY runs.ordinal`, key.String(), after, before)
	if err != nil || len(runs) == 0 {
		return nil, nil, err
	}
	logs, sizes := make([]goclaw.RunLog, len(runs)), make([]int, len(runs))
	for i, r := range runs {
		logs[i].Run = r
	}
	var ordinal int64
	var data sql.RawBytes
	at := 0
	err = s.read(ctx, op, func(rows *sql.Rows) error {
		if err := rows.Scan(&ordinal, &data); err != nil {
			return err
		}
		for at < len(logs) && logs[at].Run.Ordinal < ordinal {
			at++
		}
		if at == len(logs) || logs[at].Run.Ordinal != ordinal {
			return nil // of a run that was accepted after the runs were read
		}
		log := &logs[at]
		var e goclaw.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("event %d of run %s: %w", len(log.Events), log.Run.ID, err)
		}
		log.Events = append(log.Events, e)
		sizes[at] += len(data)
		return nil
	}, `SELECT runs.ordinal, events.data FROM runs CROSS JOIN events ON events.run_id = runs.id`+which+
		`ORDER BY runs.ordinal, events.seq`, key.String(), after, before)
	return logs, sizes, err
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
	if err := store.CheckKey(key); err != nil {
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
// their owner let go or they wait) and how many are queued.
func (s *Store) Counts(ctx context.Context) (active, queued int, err error) {
	err = s.read(ctx, "count runs", func(rows *sql.Rows) error {
		return rows.Scan(&active, &queued)
	}, `SELECT active, unended - active FROM (SELECT
		(SELECT count(*) FROM runs WHERE state = 'running') + (SELECT count(*) FROM runs WHERE state = 'interrupted')
			+ (SELECT count(*) FROM runs WHERE state = 'waiting') AS active,
		(SELECT count(*) FROM runs WHERE finished_at IS NULL) AS unended)`)
	return active, queued, err
}
