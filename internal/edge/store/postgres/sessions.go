package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

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
	for reset := s.transcripts.Reset(key); ; {
		kept, after := s.transcripts.Get(key, reset)
		f, err := s.fresh(ctx, key, after, before)
		switch {
		case err != nil:
			return nil, err
		case f.reset != reset: // somewhere else, since we looked last
			reset = f.reset
			continue
		}
		s.transcripts.Add(key, reset, after, f.logs, f.sizes)
		return store.Before(kept, f.logs, before), nil
	}
}

// fresh are the runs of a session between two ordinals, without them, how many
// bytes the events of each take, and the session's last reset.
type fresh struct {
	reset int64
	logs  []goclaw.RunLog
	sizes []int
}

func (s *Store) fresh(ctx context.Context, key goclaw.SessionKey, after, before int64) (f fresh, err error) {
	const which = ` WHERE runs.session_key = $1 AND runs.ordinal > $2 AND runs.ordinal < $3 ORDER BY runs.ordinal`
	var runs []goclaw.Run
	err = s.read(ctx, "read history", func(b *pgx.Batch) {
		f = fresh{}
		each(queue(b, `SELECT reset_at FROM sessions WHERE key = $1`, key.String()), func(rows pgx.Rows) error { return scan(rows, &f.reset) })
		collectRuns(queue(b, `SELECT `+runColumns+` FROM runs`+which, key.String(), after, before), &runs)
		at := 0
		each(queue(b, `SELECT runs.ordinal, events.data FROM runs JOIN events ON events.run_id = runs.id`+which+`, events.seq`,
			key.String(), after, before), func(rows pgx.Rows) error {
			f.add(runs)
			var ordinal int64
			var data []byte
			if err := scan(rows, &ordinal, &data); err != nil {
				return err
			}
			for at < len(f.logs) && f.logs[at].Run.Ordinal < ordinal {
				at++
			}
			if at == len(f.logs) || f.logs[at].Run.Ordinal != ordinal {
				return nil // accepted after the runs were read
			}
			log := &f.logs[at]
			var e goclaw.Event
			if err := json.Unmarshal(data, &e); err != nil {
				return fmt.Errorf("event %d of run %s: %w", len(log.Events), log.Run.ID, err)
			}
			log.Events = append(log.Events, e)
			f.sizes[at] += len(data)
			return nil
		})
	})
	f.add(runs)
	return f, err
}

// add makes room for the events of the runs, once.
func (f *fresh) add(runs []goclaw.Run) {
	for _, r := range runs[len(f.logs):] {
		f.logs = append(f.logs, goclaw.RunLog{Run: r})
		f.sizes = append(f.sizes, 0)
	}
}

// Session returns ErrNotFound for a session that never had a run or change.
func (s *Store) Session(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error) {
	const op = "find session"
	var found []goclaw.Session
	err := s.read(ctx, op, func(b *pgx.Batch) {
		collectSessions(queue(b, `SELECT `+sessionColumns+` FROM sessions WHERE key = $1`, key.String()), &found)
	})
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
	err := s.read(ctx, "list sessions", func(b *pgx.Batch) {
		collectSessions(queue(b, `SELECT `+sessionColumns+` FROM sessions ORDER BY updated_at DESC, key`), &found)
	})
	return found, err
}

// ChangeSession changes the session's head; it creates the session if need be.
func (s *Store) ChangeSession(ctx context.Context, key goclaw.SessionKey, c goclaw.SessionChange, now goclaw.Millis) error {
	const op = "change session"
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.write(ctx, op, func(t *tx) error {
		t.again = true
		t.write(`INSERT INTO sessions (key, agent, worker, created_at, updated_at, model, thinking)
			VALUES ($1, $2, $3, $4, $4, coalesce($5::text, ''), coalesce($6::text, ''))
			ON CONFLICT (key) DO UPDATE SET updated_at = greatest(sessions.updated_at, $4),
				model = coalesce($5, sessions.model), thinking = coalesce($6, sessions.thinking)`,
			key.String(), key.Agent, key.IsWorker(), now, c.Model, c.Thinking)
		if c.Reset {
			t.write(`UPDATE sessions SET reset_at = coalesce((SELECT max(ordinal) FROM runs WHERE session_key = $1), 0) WHERE key = $1`, key.String())
		}
		return nil
	})
}
