package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

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
	profile, err := encodeProfile(a.Run.Profile)
	if err != nil {
		return goclaw.Run{}, false, fmt.Errorf("%s: %w", op, err)
	}
	err = s.write(ctx, op, func(t *tx) error {
		known, first, err := t.admit(a)
		if err != nil || known != nil {
			if known != nil {
				run, created = *known, false
			}
			return err
		}
		created = true
		t.enqueue(a, &run, profile, first)
		return nil
	})
	if err != nil {
		return goclaw.Run{}, false, err
	}
	return run, created, nil
}

// encodeProfile makes the column of that name.
func encodeProfile(p goclaw.Profile) (string, error) {
	profile, err := json.Marshal(p)
	if err == nil && bytes.Contains(profile, []byte(`\u0000`)) {
		err = errors.New("the profile holds a NUL character")
	}
	return string(profile), err
}

// admit takes the session's lock and returns the run that stands for a
// already, if there is one, or an error if a must not become a run, and whether
// it would be the only unended one of its session.
func (t *tx) admit(a goclaw.Acceptance) (known *goclaw.Run, first bool, err error) {
	var parent record
	var waiting, children, spawned int
	var taken bool
	var runs []goclaw.Run
	key := a.Run.Session.String()
	t.queueLocks(a, &parent)
	// With a run that is not accepted this is undone.
	t.queue(`INSERT INTO sessions (key, agent, worker, created_at, updated_at, turns) VALUES ($1, $2, $3, $4, $4, 1)
		ON CONFLICT (key) DO UPDATE SET turns = sessions.turns + 1, updated_at = greatest(sessions.updated_at, $4),
			archived_at = NULL, deleted_at = NULL`, key, a.Run.Session.Agent, a.Run.Session.IsWorker(), a.Run.CreatedAt)
	if a.Key != "" {
		t.keyed(a.Key, &runs)
	}
	var alike []goclaw.Run
	if a.Coalesce {
		collectRuns(t.queue(`SELECT `+runColumns+` FROM runs
			WHERE session_key = $1 AND finished_at IS NULL AND cancel_at IS NULL AND trigger = $2
				AND NOT EXISTS (SELECT 1 FROM events WHERE run_id = runs.id)
			ORDER BY ordinal LIMIT 1`, key, a.Run.Trigger), &alike)
	}
	into(t.queue(`SELECT
			CASE WHEN $1 = '' THEN 1 ELSE (SELECT count(*) FROM inbox WHERE id = $1 AND coalesce(consumed_at, parked_at) IS NULL) END,
			CASE WHEN $2 <= 0 THEN 0 ELSE (SELECT count(*) FROM runs WHERE requester_key = $3 AND requester_key <> '' AND coalesce(finished_at, -1) = -1 AND trigger = 'spawn') END,
			CASE WHEN $4 <= 0 THEN 0 ELSE (SELECT count(*) FROM runs WHERE root = $5 AND trigger = 'spawn') END,
			EXISTS (SELECT 1 FROM runs WHERE id = $6),
			NOT EXISTS (SELECT 1 FROM runs WHERE session_key = $7 AND finished_at IS NULL)`,
		a.Waiting, int64(a.MaxChildren), a.Run.Requester.String(), int64(a.MaxTreeRuns), a.Run.Root, a.Run.ID, key),
		&waiting, &children, &spawned, &taken, &first)
	if err := t.ask(); err != nil {
		return nil, false, err
	}
	if a.ParentFence != nil {
		if err := parent.held(*a.ParentFence); err != nil {
			return nil, false, fmt.Errorf("parent: %w", err)
		}
	}
	runs = append(runs, alike...)
	switch {
	case waiting == 0:
		return nil, false, fmt.Errorf("item %s: %w", a.Waiting, goclaw.ErrConsumed)
	case len(runs) > 0:
		return &runs[0], false, nil
	case a.MaxChildren > 0 && children >= a.MaxChildren:
		return nil, false, fmt.Errorf("session %s has %d of at most %d: %w", a.Run.Requester, children, a.MaxChildren, goclaw.ErrTooManyChildren)
	case a.MaxTreeRuns > 0 && spawned >= a.MaxTreeRuns:
		return nil, false, fmt.Errorf("tree %s has had %d of at most %d: %w", a.Run.Root, spawned, a.MaxTreeRuns, goclaw.ErrTreeFull)
	case taken:
		return nil, false, fmt.Errorf("there is a run %s already", a.Run.ID)
	}
	return nil, first, nil
}

// queueLocks locks what two acceptances must not pass at once, and the parent
// against its end.
func (t *tx) queueLocks(a goclaw.Acceptance, parent *record) {
	if f := a.ParentFence; f != nil {
		each(t.queue(`SELECT epoch, owner, state FROM runs WHERE id = $1 FOR SHARE`, f.Run), func(rows pgx.Rows) error {
			r := record{found: true}
			err := scan(rows, &r.Epoch, &r.Owner, &r.State)
			*parent = r
			return err
		})
	}
	if a.Key != "" {
		t.exclude("key " + a.Key)
	}
	if a.MaxTreeRuns > 0 {
		t.exclude("runs of " + a.Run.Root)
	}
	if a.MaxChildren > 0 {
		t.exclude("children of " + a.Run.Requester.String())
	}
}

// exclude takes the advisory lock of a name until the transaction ends. That
// two names may share one costs a wait, no more.
func (t *tx) exclude(name string) {
	t.queue(`SELECT pg_advisory_xact_lock(hashtextextended('goclaw ' || $1, 0))`, name)
}

// keyed asks for the run that was accepted with that key, if there is one.
func (t *tx) keyed(key string, runs *[]goclaw.Run) {
	collectRuns(t.queue(`SELECT `+runColumns+` FROM runs WHERE idempotent = $1 AND idempotent <> '' ORDER BY ordinal LIMIT 1`, key), runs)
}

// enqueue queues the run, and makes r it; its ordinal is known once that is
// done.
func (t *tx) enqueue(a goclaw.Acceptance, r *goclaw.Run, profile string, first bool) {
	*r = store.Admitted(a)
	into(t.write(`INSERT INTO runs (id, session_key, trigger, requester_key, parent, depth, label, task, context,
			profile, cleanup, announce, created_at, idempotent, root, lane, agent, head)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) RETURNING ordinal`,
		r.ID, r.Session.String(), r.Trigger, r.Requester.String(), r.Parent, r.Depth, r.Label, r.Task, r.Context,
		profile, r.Cleanup, r.Announce, r.CreatedAt, r.Idempotent, r.Root, r.Lane.String(), r.Session.Agent, first), &r.Ordinal)
	t.putBlobs(a.Blobs)
	t.wake(r.ID)
}

// oneCascade lets cancellations of one tree pass one at a time: two that began
// at different runs, or before and after another was spawned, could each hold
// what the other wants.
const oneCascade = `SELECT pg_advisory_xact_lock(hashtextextended('goclaw cascade ' || root, 0)) FROM runs WHERE id = $1`

// lockTree locks those of the run $1 and, if $2, its descendants that have not
// ended and are not to be cancelled, the youngest first; cancelTree marks them.
const (
	tree = `
	WITH RECURSIVE tree (ordinal, id) AS (
		SELECT ordinal, id FROM runs WHERE id = $1
		UNION
		SELECT child.ordinal, child.id FROM tree
		JOIN runs AS child ON child.parent = tree.id AND child.parent <> ''
		WHERE $2
	)`
	inOrder = `SELECT ordinal FROM runs WHERE ordinal = ANY (ARRAY (SELECT ordinal FROM tree)) AND coalesce(finished_at, cancel_at) IS NULL
		ORDER BY ordinal DESC FOR UPDATE`
	lockTree   = tree + inOrder
	cancelTree = tree + `, locked AS (` + inOrder + `)
	UPDATE runs SET cancel_at = $3, cancel_why = $4 FROM locked WHERE runs.ordinal = locked.ordinal`
)

// Cancel marks a run, and with Cascade its unended descendants (also those
// below a run that has ended), and returns those it marked now, oldest first.
func (s *Store) Cancel(ctx context.Context, c goclaw.Cancellation) ([]goclaw.Run, error) {
	const op = "cancel run"
	var known bool
	var marked []goclaw.Run
	err := s.write(ctx, op, func(t *tx) error {
		t.again = true
		if c.Cascade {
			t.queue(oneCascade, c.Run)
		}
		into(t.queue(`SELECT EXISTS (SELECT 1 FROM runs WHERE id = $1)`, c.Run), &known)
		collectRuns(t.write(cancelTree+` RETURNING `+runColumns, c.Run, c.Cascade, c.Now, c.Why), &marked)
		t.wake(c.Run)
		return nil
	})
	if err == nil && !known {
		err = fmt.Errorf("%s: run %s: %w", op, c.Run, goclaw.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(marked, func(a, b goclaw.Run) int { return int(a.Ordinal - b.Ordinal) })
	return marked, nil
}
