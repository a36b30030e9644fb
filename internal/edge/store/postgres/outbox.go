package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store"
)

// putReply queues a reply, to be sent from its NextAt on.
func (t *tx) putReply(o goclaw.Outbound, now goclaw.Millis) {
	if o.CreatedAt == 0 {
		o.CreatedAt = now
	}
	t.write(`INSERT INTO outbox (id, session_key, run_id, text, state, next_at, created_at) VALUES ($1, $2, $3, $4, 'pending', $5, $6)`,
		o.ID, o.Session.String(), o.Run, o.Text, o.NextAt, o.CreatedAt)
}

// Outbox returns the replies that are due at now, in order: of each session
// only the oldest that is pending or being sent, so that a reply never
// overtakes another. limit 0 means all.
func (s *Store) Outbox(ctx context.Context, now goclaw.Millis, limit int) ([]goclaw.Outbound, error) {
	var most *int
	if limit > 0 {
		most = &limit
	}
	var due []goclaw.Outbound
	err := s.read(ctx, "read outbox", func(b *pgx.Batch) {
		due = nil
		each(queue(b, `SELECT id, session_key, run_id, text, state, attempts, next_at, error, created_at FROM outbox
			WHERE n IN (SELECT min(n) FROM outbox WHERE state IN ('pending', 'sending') GROUP BY session_key) AND next_at <= $1
			ORDER BY n LIMIT $2`, now, most), func(rows pgx.Rows) error {
			var o goclaw.Outbound
			var key string
			if err := scan(rows, &o.ID, &key, &o.Run, &o.Text, &o.State, &o.Attempts, &o.NextAt, &o.Error, &o.CreatedAt); err != nil {
				return err
			}
			if err := o.Session.UnmarshalText([]byte(key)); err != nil {
				return err
			}
			due = append(due, o)
			return nil
		})
	})
	return due, err
}

// TakeOutbox takes a reply that is due at now, for whoever is to send it: it is
// being sent, which counts as an attempt, and is due again at until if nobody
// says what became of it. It returns false if the reply is not due any more:
// of several takers one gets it.
func (s *Store) TakeOutbox(ctx context.Context, id string, now, until goclaw.Millis) (bool, error) {
	var taken int64
	err := s.write(ctx, "take from outbox", func(t *tx) error {
		count(t.write(`UPDATE outbox SET state = 'sending', next_at = $2, error = '', attempts = attempts + 1
			WHERE id = $1 AND state IN ('pending', 'sending') AND next_at <= $3`, id, until, now), &taken)
		return nil
	})
	return taken > 0 && err == nil, err
}

// MarkOutbox records what became of a reply: a pending one is due again at the
// given time, a parked one is parked since then.
func (s *Store) MarkOutbox(ctx context.Context, id, state string, at goclaw.Millis, errText string) error {
	const op = "mark outbox"
	if err := store.CheckMark(state); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	var marked int64
	err := s.write(ctx, op, func(t *tx) error {
		t.again = true
		count(t.write(`UPDATE outbox SET state = $2, next_at = $3, error = $4,
				parked_at = CASE WHEN $2 = 'parked' THEN $3::bigint END
			WHERE id = $1 AND state <> '`+store.Dismissed+`'`, id, state, at, errText), &marked)
		return nil
	})
	if err == nil && marked == 0 {
		err = fmt.Errorf("%s: outbound %s: %w", op, id, goclaw.ErrNotFound)
	}
	return err
}

// ArtifactsOf returns the artifacts that f selects, newest first.
func (s *Store) ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error) {
	query := `SELECT run_id, name, sha256, size, media_type, artifacts.created_at FROM artifacts JOIN runs ON runs.id = run_id WHERE true`
	var args []any
	and := func(condition string, value any) {
		args = append(args, value)
		query += " AND " + strings.ReplaceAll(condition, "$N", fmt.Sprintf("$%d", len(args)))
	}
	if f.Run != "" {
		and("run_id = $N", f.Run)
	}
	if !f.Session.IsZero() {
		and(`run_id = ANY (ARRAY (SELECT id FROM runs WHERE session_key = $N
			UNION ALL SELECT id FROM runs WHERE requester_key = $N AND requester_key <> ''))`, f.Session.String())
	}
	if f.Root != "" {
		and(`run_id = ANY (ARRAY (SELECT id FROM runs WHERE root = $N AND trigger = 'spawn'))`, f.Root)
	}
	if f.Name != "" {
		and("name = $N", f.Name)
	}
	var most *int
	if f.Limit > 0 {
		most = &f.Limit
	}
	args = append(args, most)
	query += fmt.Sprintf(` ORDER BY artifacts.created_at DESC, ordinal DESC, name LIMIT $%d`, len(args))
	var found []goclaw.Artifact
	err := s.read(ctx, "list artifacts", func(b *pgx.Batch) {
		found = nil
		each(queue(b, query, slices.Clone(args)...), func(rows pgx.Rows) error {
			var a goclaw.Artifact
			err := scan(rows, &a.Run, &a.Name, &a.SHA256, &a.Size, &a.MediaType, &a.CreatedAt)
			found = append(found, a)
			return err
		})
	})
	return found, err
}

// Blob returns stored content by its SHA-256.
func (s *Store) Blob(ctx context.Context, sha string) ([]byte, error) {
	const op = "read blob"
	var found [][]byte
	err := s.read(ctx, op, func(b *pgx.Batch) {
		found = nil
		list(queue(b, `SELECT data FROM blobs WHERE sha256 = $1`, sha), &found)
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s %s: %w", op, sha, goclaw.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(found[0]), nil
}
