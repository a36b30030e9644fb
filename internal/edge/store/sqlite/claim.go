package sqlite

import (
	"context"
	"database/sql"

	"goclaw"
	"goclaw/internal/edge/store"
)

// candidate is a run that a claim may take.
type candidate struct {
	ordinal int64
	state   goclaw.RunState // before
}

// Claim takes runs for an owner, in the order that the engine's contract
// gives. Its queries touch only runs that can be taken now and the lists of
// processes and running runs, never those that have ended or are blocked.
func (s *Store) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	var claimed []goclaw.Claimed
	if c.Max <= 0 {
		return nil, ctx.Err()
	}
	err := s.write(ctx, "claim runs", func(ctx context.Context, t *tx) error {
		// Withdrawn runs and those of owners that are gone come first and are
		// claimed before the rest is chosen: they count as running workers.
		first, err := t.overdue(ctx, c)
		if err != nil {
			return err
		}
		if claimed, err = t.claim(ctx, c, first, nil); err != nil {
			return err
		}
		if len(claimed) < c.Max && !c.OnlyCancelled {
			ready, err := t.ready(ctx, c, c.Max-len(claimed))
			if err != nil {
				return err
			}
			if claimed, err = t.claim(ctx, c, ready, claimed); err != nil {
				return err
			}
		}
		if len(claimed) == 0 {
			return nil
		}
		return t.lease(ctx, c.Owner, c.Now, c.Lease)
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// overdue finds runs to be cancelled that nobody runs, then runs whose owner is
// gone.
func (t *tx) overdue(ctx context.Context, c goclaw.ClaimRequest) ([]candidate, error) {
	var found []candidate
	collect := collectCandidates(&found)
	err := t.query(ctx, collect, `SELECT ordinal, state FROM runs
		WHERE state IN ('queued', 'waiting') AND cancel_at IS NOT NULL ORDER BY ordinal LIMIT ? + 0`, c.Max)
	if err != nil || len(found) == c.Max {
		return found, err
	}
	err = t.query(ctx, collect, `
		SELECT ordinal, state FROM runs WHERE state = 'interrupted' AND (NOT ?1 OR cancel_at IS NOT NULL)
		UNION ALL
		SELECT runs.ordinal, runs.state FROM processes CROSS JOIN runs ON runs.owner = processes.id
		WHERE (processes.lease_until <= ?2 OR ?3) AND processes.id <> ?4
			AND runs.state = 'running' AND (NOT ?1 OR runs.cancel_at IS NOT NULL)
		ORDER BY 1 LIMIT ?5 + 0`,
		flag(c.OnlyCancelled), c.Now, flag(c.DeadOwners), c.Owner, c.Max-len(found))
	return found, err
}

func collectCandidates(found *[]candidate) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var one candidate
		err := rows.Scan(&one.ordinal, &one.state)
		*found = append(*found, one)
		return err
	}
}

// ready finds at most limit runs that are due and the oldest of their
// sessions: turns, then workers within the bounds.
func (t *tx) ready(ctx context.Context, c goclaw.ClaimRequest, limit int) ([]candidate, error) {
	var found []candidate
	err := t.query(ctx, collectCandidates(&found), `
		SELECT * FROM (SELECT ordinal, state FROM runs
			WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger <> 'spawn'
				AND (?3 = 0 OR created_at < ?3) ORDER BY ordinal LIMIT ?1 + 0)
		UNION ALL
		SELECT ordinal, state FROM runs INDEXED BY runs_wake_turns
			WHERE state = 'waiting' AND cancel_at IS NULL AND head = 1 AND trigger <> 'spawn' AND wake_at <= ?2
		ORDER BY 1 LIMIT ?1 + 0`, limit, c.Now, c.TurnsBefore)
	if err != nil || len(found) == limit {
		return found, err
	}
	workers, err := t.readyWorkers(ctx, c, limit-len(found))
	return append(found, workers...), err
}

// readyWorkers finds the spawned runs that may run now. It looks at the oldest
// runs of every lane and agent only, however many are queued behind them.
func (t *tx) readyWorkers(ctx context.Context, c goclaw.ClaimRequest, limit int) ([]candidate, error) {
	var heads, awake []store.Line
	err := t.query(ctx, func(rows *sql.Rows) error {
		var one store.Line
		var ordinal int64
		var queued bool
		err := rows.Scan(&one.Lane, &one.Agent, &ordinal, &queued)
		one.Ordinals = []int64{ordinal}
		if queued {
			heads = append(heads, one)
		} else {
			awake = append(awake, one)
		}
		return err
	}, `WITH RECURSIVE head (ordinal) AS (
			SELECT * FROM (SELECT ordinal FROM runs
				WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn'
				ORDER BY lane, agent, ordinal LIMIT 1)
			UNION ALL
			SELECT coalesce(
				(SELECT ordinal FROM runs
					WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn'
						AND lane = last.lane AND agent > last.agent
					ORDER BY agent, ordinal LIMIT 1),
				(SELECT ordinal FROM runs
					WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn'
						AND lane > last.lane
					ORDER BY lane, agent, ordinal LIMIT 1))
			FROM head CROSS JOIN runs AS last ON last.ordinal = head.ordinal
		)
		SELECT runs.lane, runs.agent, runs.ordinal, 1 FROM head CROSS JOIN runs ON runs.ordinal = head.ordinal
		UNION ALL
		SELECT lane, agent, ordinal, 0 FROM runs INDEXED BY runs_wake_workers
			WHERE state = 'waiting' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn' AND wake_at <= ?`, c.Now)
	if err != nil || len(heads)+len(awake) == 0 {
		return nil, err
	}
	running := newRunning()
	if err := t.query(ctx, countRunning(running), runningWorkers); err != nil {
		return nil, err
	}
	if c.MaxWorkers > 0 {
		limit = min(limit, c.MaxWorkers-running.Total)
	}
	if limit <= 0 {
		return nil, nil
	}
	lines := heads
	if limit > 1 {
		lines = nil
		for _, head := range heads {
			line := store.Line{Lane: head.Lane, Agent: head.Agent}
			err := t.query(ctx, func(rows *sql.Rows) error {
				var ordinal int64
				err := rows.Scan(&ordinal)
				line.Ordinals = append(line.Ordinals, ordinal)
				return err
			}, `SELECT ordinal FROM runs
				WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn' AND lane = ? AND agent = ?
				ORDER BY ordinal LIMIT ? + 0`, head.Lane, head.Agent, limit)
			if err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
	}
	var found []candidate
	bounds := store.Bounds{Max: limit, Workers: c.MaxWorkers, PerLane: c.MaxPerLane, PerAgent: c.MaxPerAgent}
	for _, ordinal := range store.Pick(append(lines, awake...), *running, bounds) {
		found = append(found, candidate{ordinal: ordinal})
	}
	return found, nil
}

const runningWorkers = `SELECT lane, agent, count(*) FROM runs WHERE state = 'running' AND trigger = 'spawn' GROUP BY lane, agent`

func newRunning() *store.Running {
	return &store.Running{Lane: map[string]int{}, Agent: map[string]int{}}
}

func countRunning(sum *store.Running) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var lane, agent string
		var n int
		err := rows.Scan(&lane, &agent, &n)
		sum.Total += n
		sum.Lane[lane] += n
		sum.Agent[agent] += n
		return err
	}
}

// Queue returns the ids of the spawned runs that are queued and the oldest of
// their sessions, in the order in which they would be claimed.
func (s *Store) Queue(ctx context.Context) ([]string, error) {
	const op = "read queue"
	running := newRunning()
	if err := s.read(ctx, op, countRunning(running), runningWorkers); err != nil {
		return nil, err
	}
	var lines []store.Line
	names := map[int64]string{}
	err := s.read(ctx, op, func(rows *sql.Rows) error {
		var lane, agent, id string
		var ordinal int64
		if err := rows.Scan(&lane, &agent, &ordinal, &id); err != nil {
			return err
		}
		names[ordinal] = id
		lines = append(lines, store.Line{Lane: lane, Agent: agent, Ordinals: []int64{ordinal}})
		return nil
	}, `SELECT lane, agent, ordinal, id FROM runs
		WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn' ORDER BY lane, agent, ordinal`)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, ordinal := range store.Pick(lines, *running, store.Bounds{}) {
		ids = append(ids, names[ordinal])
	}
	return ids, nil
}

// claim makes the candidates the owner's and appends them to claimed. What an
// earlier owner held of them counts as spent from now on.
func (t *tx) claim(ctx context.Context, c goclaw.ClaimRequest, found []candidate, claimed []goclaw.Claimed) ([]goclaw.Claimed, error) {
	const (
		timeout = `(?3 + nullif(max(coalesce(json_extract(profile, '$.timeoutMs'), 0), 0), 0))`
		until   = `nullif(json_extract(profile, '$.until'), 0)`
	)
	query := `UPDATE runs SET epoch = epoch + 1, state = 'running', owner = ?2, started_at = coalesce(started_at, ?3),
			deadline = CASE WHEN started_at IS NOT NULL THEN deadline
				ELSE min(coalesce(` + timeout + `, ` + until + `), coalesce(` + until + `, ` + timeout + `)) END,
			waits_for = '', wake_at = NULL
		WHERE ordinal = ?1 RETURNING ` + returnedRunColumns()
	for _, one := range found {
		var runs []goclaw.Run
		if err := t.returning(ctx, collectRuns(&runs), query, one.ordinal, c.Owner, c.Now); err != nil {
			return nil, err
		}
		for _, run := range runs {
			if run.Epoch > 1 {
				if err := t.lose(ctx, run.ID); err != nil {
					return nil, err
				}
			}
			released := one.state == goclaw.StateInterrupted
			claimed = append(claimed, goclaw.Claimed{Run: run, TakeOver: released || one.state == goclaw.StateRunning, Released: released})
		}
	}
	return claimed, nil
}
