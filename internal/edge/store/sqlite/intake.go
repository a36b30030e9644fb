package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Accept stores a queued run, and its session if that is new. created is false
// when the key was known or the acceptance coalesced. It checks, in this
// order: the parent's fence, the waiting item, the key, coalescing, the limits
// of children and of the tree.
// A session that was archived or deleted is neither any more once it has a new
// run.
func (s *Store) Accept(ctx context.Context, a goclaw.Acceptance) (run goclaw.Run, created bool, err error) {
	const op = "accept run"
	if err := store.CheckAcceptance(a); err != nil {
		return goclaw.Run{}, false, fmt.Errorf("%s: %w", op, err)
	}
	profile, err := json.Marshal(a.Run.Profile)
	if err != nil {
		return goclaw.Run{}, false, fmt.Errorf("%s: %w", op, err)
	}
	err = s.write(ctx, op, func(ctx context.Context, t *tx) error {
		known, err := t.admit(ctx, a)
		if err != nil || known != nil {
			if known != nil {
				run = *known
			}
			return err
		}
		run, err = t.enqueue(ctx, a, string(profile))
		created = true
		return err
	})
	if err != nil {
		return goclaw.Run{}, false, err
	}
	return run, created, nil
}

// admit returns the run that stands for a already, if there is one, or an
// error if a must not become a run.
func (t *tx) admit(ctx context.Context, a goclaw.Acceptance) (*goclaw.Run, error) {
	if a.ParentFence != nil {
		if _, err := t.fence(ctx, *a.ParentFence); err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
	}
	if a.Waiting != "" {
		var waiting int
		err := t.row(ctx, `SELECT count(*) FROM inbox WHERE id = ? AND consumed_at IS NULL AND parked_at IS NULL`, []any{a.Waiting}, &waiting)
		if err != nil {
			return nil, err
		}
		if waiting == 0 {
			return nil, fmt.Errorf("item %s: %w", a.Waiting, goclaw.ErrConsumed)
		}
	}
	var known []goclaw.Run
	if a.Key != "" {
		var err error
		if known, err = t.keyed(ctx, a.Key); err != nil {
			return nil, err
		}
	}
	if len(known) == 0 && a.Coalesce {
		err := t.query(ctx, collectRuns(&known),
			`SELECT `+runColumns+` FROM runs
			WHERE session_key = ? AND finished_at IS NULL AND cancel_at IS NULL AND trigger = +?
				AND NOT EXISTS (SELECT 1 FROM events WHERE run_id = runs.id)
			ORDER BY ordinal LIMIT 1`, a.Run.Session.String(), a.Run.Trigger)
		if err != nil {
			return nil, err
		}
	}
	if len(known) > 0 {
		return &known[0], nil
	}
	if a.MaxChildren > 0 {
		var n int
		err := t.row(ctx, `SELECT count(*) FROM runs WHERE requester_key = ? AND finished_at IS NULL AND trigger = 'spawn'`,
			[]any{a.Run.Requester.String()}, &n)
		if err != nil {
			return nil, err
		}
		if n >= a.MaxChildren {
			return nil, fmt.Errorf("session %s has %d of at most %d: %w", a.Run.Requester, n, a.MaxChildren, goclaw.ErrTooManyChildren)
		}
	}
	if a.MaxTreeRuns > 0 {
		var n int
		err := t.row(ctx, `SELECT count(*) FROM runs WHERE root = ? AND trigger = 'spawn'`, []any{a.Run.Root}, &n)
		if err != nil {
			return nil, err
		}
		if n >= a.MaxTreeRuns {
			return nil, fmt.Errorf("tree %s has had %d of at most %d: %w", a.Run.Root, n, a.MaxTreeRuns, goclaw.ErrTreeFull)
		}
	}
	return nil, nil
}

// keyed returns the run that was accepted with that key, if there is one.
func (t *tx) keyed(ctx context.Context, key string) (known []goclaw.Run, err error) {
	err = t.query(ctx, collectRuns(&known), `SELECT `+runColumns+` FROM runs WHERE idempotent = ? AND idempotent <> ''`, key)
	return known, err
}

// enqueue inserts the run and its session.
func (t *tx) enqueue(ctx context.Context, a goclaw.Acceptance, profile string) (goclaw.Run, error) {
	r := store.Admitted(a)
	key := r.Session.String()
	_, err := t.exec(ctx, `INSERT INTO sessions (key, agent, worker, created_at, updated_at, turns) VALUES (?1, ?2, ?3, ?4, ?4, 1)
		ON CONFLICT (key) DO UPDATE SET turns = turns + 1, updated_at = max(updated_at, ?4), archived_at = NULL, deleted_at = NULL`,
		key, r.Session.Agent, flag(r.Session.IsWorker()), r.CreatedAt)
	if err != nil {
		return goclaw.Run{}, err
	}
	var taken bool
	if err := t.row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`, []any{r.ID}, &taken); err != nil {
		return goclaw.Run{}, err
	}
	if taken {
		return goclaw.Run{}, fmt.Errorf("there is a run %s already", r.ID)
	}
	r.Ordinal, err = t.insert(ctx, `INSERT INTO runs (id, session_key, trigger, requester_key, parent, depth, label, task, context,
			profile, cleanup, announce, created_at, idempotent, root, lane, agent, head)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
			NOT EXISTS (SELECT 1 FROM runs WHERE session_key = ?2 AND finished_at IS NULL))`,
		r.ID, key, r.Trigger, r.Requester.String(), r.Parent, r.Depth, r.Label, r.Task, r.Context,
		profile, r.Cleanup, r.Announce, r.CreatedAt, r.Idempotent, r.Root, r.Lane.String(), r.Session.Agent)
	if err != nil {
		return goclaw.Run{}, err
	}
	for _, b := range a.Blobs {
		if err := t.putBlob(ctx, b.SHA256, b.Data); err != nil {
			return goclaw.Run{}, err
		}
	}
	return r, nil
}

// Cancel marks a run, and with Cascade its unended descendants (also those
// below a run that has ended), and returns those it marked now, oldest first.
func (s *Store) Cancel(ctx context.Context, c goclaw.Cancellation) ([]goclaw.Run, error) {
	var marked []goclaw.Run
	err := s.write(ctx, "cancel run", func(ctx context.Context, t *tx) error {
		var ordinal int64
		err := t.row(ctx, `SELECT ordinal FROM runs WHERE id = ?`, []any{c.Run}, &ordinal)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("run %s: %w", c.Run, goclaw.ErrNotFound)
		}
		if err != nil {
			return err
		}
		return t.returning(ctx, collectRuns(&marked), `
			WITH RECURSIVE tree (ordinal, id) AS (
				SELECT ordinal, id FROM runs WHERE ordinal = ?1
				UNION
				SELECT child.ordinal, child.id FROM tree
				JOIN runs AS child ON child.parent = tree.id AND child.parent <> ''
				WHERE ?2
			)
			UPDATE runs SET cancel_at = ?3, cancel_why = ?4
			WHERE ordinal IN (SELECT ordinal FROM tree) AND finished_at IS NULL AND cancel_at IS NULL
			RETURNING `+returnedRunColumns(), ordinal, flag(c.Cascade), c.Now, c.Why)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(marked, func(a, b goclaw.Run) int { return int(a.Ordinal - b.Ordinal) })
	return marked, nil
}
