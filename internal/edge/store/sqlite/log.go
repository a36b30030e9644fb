package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/store"
)

// record is a fenced run's place in the tables.
type record struct {
	ordinal int64
	session string
	next    int // the seq of its next event
}

// fence finds the run that f claims, or ErrFenced if the claim does not hold.
func (t *tx) fence(ctx context.Context, f goclaw.Fence) (record, error) {
	var r record
	err := t.row(ctx, `SELECT ordinal, session_key, coalesce((SELECT max(seq) + 1 FROM events WHERE run_id = runs.id), 0)
		FROM runs WHERE id = ? AND epoch = ? AND owner = ? AND state = 'running'`,
		[]any{f.Run, f.Epoch, f.Owner}, &r.ordinal, &r.session, &r.next)
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, fmt.Errorf("run %s, epoch %d of %s: %w", f.Run, f.Epoch, f.Owner, goclaw.ErrFenced)
	}
	return r, err
}

// Events returns the run's events in order; none if there is no such run.
func (s *Store) Events(ctx context.Context, run string) ([]goclaw.Event, error) {
	var events []goclaw.Event
	err := s.read(ctx, "read events", func(rows *sql.Rows) error {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return err
		}
		var e goclaw.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("event %d of run %s: %w", len(events), run, err)
		}
		events = append(events, e)
		return nil
	}, `SELECT data FROM events WHERE run_id = ? ORDER BY seq`, run)
	return events, err
}

// Append writes one batch to the run's record.
func (s *Store) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	const op = "append to run"
	rows, err := encodeBatch(b)
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, f.Run, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		r, err := t.fence(ctx, f)
		if err != nil {
			return err
		}
		return t.append(ctx, f.Run, r, b, rows)
	})
}

// eventRow is an encoded event.
type eventRow struct {
	goclaw.Event
	data string
}

// encodeBatch does outside the transaction what can be done there. An event
// without a time gets the batch's.
func encodeBatch(b goclaw.Batch) ([]eventRow, error) {
	rows := make([]eventRow, len(b.Events))
	for i, e := range b.Events {
		if e.At == 0 {
			e.At = b.Now
		}
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		rows[i] = eventRow{e, string(data)}
	}
	return rows, store.CheckBatch(b)
}

func (t *tx) append(ctx context.Context, run string, r record, b goclaw.Batch, rows []eventRow) error {
	for i, e := range rows {
		if e.Seq != r.next+i {
			return fmt.Errorf("run %s: event has seq %d, the log continues with %d", run, e.Seq, r.next+i)
		}
		_, err := t.exec(ctx, `INSERT INTO events (run_id, seq, kind, at, data) VALUES (?, ?, ?, ?, ?)`,
			run, e.Seq, e.Kind, e.At, e.data)
		if err != nil {
			return err
		}
	}
	for _, blob := range b.Blobs {
		if err := t.putBlob(ctx, blob.SHA256, blob.Data); err != nil {
			return err
		}
	}
	for _, a := range b.Artifacts {
		if err := t.putArtifact(ctx, run, a, b.Now); err != nil {
			return err
		}
	}
	for _, id := range b.Consume {
		if err := t.consume(ctx, run, id, b.Now); err != nil {
			return err
		}
	}
	if store.Resumes(b) {
		if err := t.recover(ctx, r, b); err != nil {
			return err
		}
	}
	if store.Books(b) {
		if err := t.book(ctx, run, r, b); err != nil {
			return err
		}
	}
	if u := b.Usage; u != nil {
		_, err := t.exec(ctx, `UPDATE runs SET input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?,
			cost_usd = ? WHERE ordinal = ?`, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CostUSD, r.ordinal)
		if err != nil {
			return err
		}
	}
	return nil
}

// recover notes that the run was taken over.
func (t *tx) recover(ctx context.Context, r record, b goclaw.Batch) error {
	var text []byte
	if err := t.row(ctx, `SELECT recovery FROM runs WHERE ordinal = ?`, []any{r.ordinal}, &text); err != nil {
		return err
	}
	last, err := recovery(text)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(store.Recovered(last, b)); err != nil {
		return err
	}
	_, err = t.exec(ctx, `UPDATE runs SET recovery = ? WHERE ordinal = ?`, string(text), r.ordinal)
	return err
}

func (t *tx) putBlob(ctx context.Context, sha string, data []byte) error {
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	_, err := t.exec(ctx, `INSERT INTO blobs (sha256, data) VALUES (?, ?) ON CONFLICT (sha256) DO NOTHING`, sha, data)
	return err
}

func (t *tx) consume(ctx context.Context, run, id string, now goclaw.Millis) error {
	n, err := t.exec(ctx, `UPDATE inbox SET consumed_by = ?, consumed_at = ? WHERE id = ? AND consumed_at IS NULL AND parked_at IS NULL`, run, now, id)
	if err != nil || n > 0 {
		return err
	}
	var known bool
	if err := t.row(ctx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ?)`, []any{id}, &known); err != nil {
		return err
	}
	if known {
		return fmt.Errorf("item %s: %w", id, goclaw.ErrConsumed)
	}
	return fmt.Errorf("inbox item %s: %w", id, goclaw.ErrNotFound)
}

func (t *tx) putArtifact(ctx context.Context, run string, a goclaw.ArtifactData, now goclaw.Millis) error {
	sum := store.ContentSHA(a.Data)
	if err := t.putBlob(ctx, sum, a.Data); err != nil {
		return err
	}
	_, err := t.exec(ctx, `INSERT INTO artifacts (run_id, name, sha256, size, media_type, created_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (run_id, name) DO UPDATE SET sha256 = excluded.sha256, size = excluded.size,
			media_type = excluded.media_type, created_at = excluded.created_at`,
		run, a.Name, sum, len(a.Data), a.MediaType, now)
	return err
}

// ArtifactsOf returns the artifacts that f selects, newest first.
func (s *Store) ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error) {
	query := `SELECT run_id, name, sha256, size, media_type, artifacts.created_at FROM artifacts JOIN runs ON runs.id = run_id WHERE 1`
	var args []any
	and := func(condition string, values ...any) {
		query += " AND " + condition
		args = append(args, values...)
	}
	if f.Run != "" {
		and("run_id = ?", f.Run)
	}
	if key := f.Session.String(); key != "" {
		and(`run_id IN (SELECT id FROM runs WHERE session_key = ? UNION ALL SELECT id FROM runs WHERE requester_key = ? AND requester_key <> '')`, key, key)
	}
	if f.Root != "" {
		and(`run_id IN (SELECT id FROM runs WHERE root = ? AND trigger = 'spawn')`, f.Root)
	}
	if f.Name != "" {
		and("name = ?", f.Name)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	var found []goclaw.Artifact
	err := s.read(ctx, "list artifacts", func(rows *sql.Rows) error {
		var a goclaw.Artifact
		err := rows.Scan(&a.Run, &a.Name, &a.SHA256, &a.Size, &a.MediaType, &a.CreatedAt)
		found = append(found, a)
		return err
	}, query+` ORDER BY artifacts.created_at DESC, ordinal DESC, name LIMIT ?`, append(args, limit)...)
	return found, err
}
