package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store"
)

// patience is how long a claim waits for runs that are all locked.
const patience = 500 * time.Millisecond

// now is a statement's time for leases: the given one, or with none the
// database's.
func now(param string) string {
	return `coalesce(` + param + `::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`
}

// leaseTime is the parameter for now.
func (s *Store) leaseTime(given goclaw.Millis) *goclaw.Millis {
	if s.serverTime {
		return nil
	}
	return &given
}

// candidate is a run that a claim may take, as it was chosen.
type candidate struct {
	ordinal int64
	epoch   int64
	state   goclaw.RunState
	lane    string
	agent   string
	spawned bool
}

// hall is what a claim chooses from: one snapshot, but for what becomes free
// meanwhile.
type hall struct {
	turn      int64 // the number of claims so far
	withdrawn []candidate
	abandoned []candidate
	turns     []candidate
	queued    []candidate // spawned runs: of every lane and agent the oldest
	awake     []candidate // spawned runs that waited, oldest first
	running   store.Running
}

// Claim takes runs for an owner, in the order that the engine's contract
// gives. It reads what there is in one round trip and, if that is something,
// claims in another. A claim in between by somebody else, whose runs it could
// not count, makes it choose anew, and so does, for a moment, a run that is
// locked: an owner that lost its lease may still be writing.
func (s *Store) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	const op = "claim runs"
	if c.Max <= 0 {
		return nil, ctx.Err()
	}
	// Claims of one process would only spoil each other's choice.
	if err := s.claiming.enter(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	defer s.claiming.leave()
	began := time.Now()
	for try := 1; ; try++ {
		claimed, err := s.doubts.settle(ctx, s, c.Owner)
		if err != nil || len(claimed) > 0 {
			return claimed, err
		}
		h := &hall{}
		if err := s.read(ctx, op, func(b *pgx.Batch) { h.look(b, s.leaseTime(c.Now), c) }); err != nil {
			return nil, err
		}
		chosen := h.choose(c)
		if len(chosen) == 0 {
			return nil, nil
		}
		claimed, won, err := s.claim(ctx, op, c, h.turn, chosen)
		if err != nil || len(claimed) > 0 || won && time.Since(began) > patience {
			return claimed, err
		}
		if err := pause(ctx, time.Duration(rand.IntN(min(try, 10)*500))*time.Microsecond); err != nil {
			return nil, err
		}
	}
}

// door lets one in at a time.
type door chan struct{}

func (d door) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d door) leave() { <-d }

// look queues the questions. They touch only runs that can be taken now and
// the lists of processes and running workers, never those that have ended or
// are blocked. The turn is read first: any claim that is not in what is read
// afterwards changes it.
func (h *hall) look(b *pgx.Batch, leaseTime *goclaw.Millis, c goclaw.ClaimRequest) {
	*h = hall{running: store.Running{Lane: map[string]int{}, Agent: map[string]int{}}}
	into(queue(b, `SELECT n FROM turnstile`), &h.turn)
	const columns = `ordinal, epoch, state, lane, agent, trigger = 'spawn' AS spawned`
	candidates(queue(b, `SELECT `+columns+` FROM runs
		WHERE state IN ('queued', 'waiting') AND cancel_at IS NOT NULL ORDER BY ordinal LIMIT $1`, c.Max), &h.withdrawn)
	candidates(queue(b, `SELECT * FROM (
			SELECT `+columns+` FROM runs WHERE state = 'interrupted' AND (NOT $1 OR cancel_at IS NOT NULL)
			UNION ALL
			SELECT `+columns+` FROM (SELECT id FROM processes
					WHERE (lease_until <= `+now("$2")+` OR $3) AND id <> $4 OFFSET 0) AS gone,
				LATERAL (SELECT * FROM runs WHERE owner = gone.id AND state = 'running' AND (NOT $1 OR cancel_at IS NOT NULL) OFFSET 0) AS runs
			) AS abandoned
		ORDER BY ordinal LIMIT $5`, c.OnlyCancelled, leaseTime, c.DeadOwners, c.Owner, c.Max), &h.abandoned)
	if c.OnlyCancelled {
		return
	}
	candidates(queue(b, `SELECT * FROM (
			(SELECT `+columns+` FROM runs
				WHERE state = 'queued' AND cancel_at IS NULL AND head AND trigger <> 'spawn'
					AND ($3::bigint = 0 OR created_at < $3) ORDER BY ordinal LIMIT $1)
			UNION ALL
			SELECT `+columns+` FROM runs
				WHERE state = 'waiting' AND cancel_at IS NULL AND head AND wake_at <= $2 AND trigger <> 'spawn') AS turns
		ORDER BY ordinal LIMIT $1`, c.Max, c.Now, c.TurnsBefore), &h.turns)
	// The lines of lanes and agents are found one by one, by their heads.
	candidates(queue(b, `WITH RECURSIVE line (lane, agent) AS (
			(SELECT lane, agent FROM runs
				WHERE state = 'queued' AND cancel_at IS NULL AND head AND trigger = 'spawn' ORDER BY lane, agent LIMIT 1)
			UNION ALL
			SELECT next.lane, next.agent FROM line, LATERAL (SELECT lane, agent FROM runs
				WHERE state = 'queued' AND cancel_at IS NULL AND head AND trigger = 'spawn' AND (lane, agent) > (line.lane, line.agent)
				ORDER BY lane, agent LIMIT 1) AS next
		)
		SELECT runs.* FROM line, LATERAL (SELECT `+columns+` FROM runs
			WHERE state = 'queued' AND cancel_at IS NULL AND head AND trigger = 'spawn' AND lane = line.lane AND agent = line.agent
			ORDER BY ordinal LIMIT $1) AS runs`, c.Max), &h.queued)
	candidates(queue(b, `SELECT `+columns+` FROM runs
		WHERE state = 'waiting' AND cancel_at IS NULL AND head AND wake_at <= $1 AND trigger = 'spawn' ORDER BY ordinal`, c.Now), &h.awake)
	// Whoever is running is counted only if there is somebody to choose.
	countRunning(queue(b, runningWorkers+`
		AND (EXISTS (SELECT 1 FROM runs WHERE state = 'queued' AND cancel_at IS NULL AND head AND trigger = 'spawn')
			OR EXISTS (SELECT 1 FROM runs WHERE state = 'waiting' AND cancel_at IS NULL AND head AND wake_at <= $1 AND trigger = 'spawn'))`+
		byLine, c.Now), &h.running)
}

func candidates(q *pgx.QueuedQuery, list *[]candidate) {
	each(q, func(rows pgx.Rows) error {
		var one candidate
		err := scan(rows, &one.ordinal, &one.epoch, &one.state, &one.lane, &one.agent, &one.spawned)
		*list = append(*list, one)
		return err
	})
}

const (
	runningWorkers = `SELECT lane, agent, count(*) FROM runs WHERE state = 'running' AND trigger = 'spawn'`
	byLine         = ` GROUP BY lane, agent`
)

func countRunning(q *pgx.QueuedQuery, sum *store.Running) {
	each(q, func(rows pgx.Rows) error {
		var lane, agent string
		var n int
		err := scan(rows, &lane, &agent, &n)
		sum.Total += n
		sum.Lane[lane] += n
		sum.Agent[agent] += n
		return err
	})
}

// choose returns the runs to claim, in order.
func (h *hall) choose(c goclaw.ClaimRequest) []candidate {
	chosen := slices.Concat(h.withdrawn, h.abandoned)
	chosen = chosen[:min(len(chosen), c.Max)]
	for _, one := range chosen {
		// Those that were running under another owner are counted already.
		if one.spawned && one.state != goclaw.StateRunning {
			h.running.Total++
			h.running.Lane[one.lane]++
			h.running.Agent[one.agent]++
		}
	}
	chosen = append(chosen, h.turns[:min(len(h.turns), c.Max-len(chosen))]...)
	if len(chosen) >= c.Max {
		return chosen
	}
	bounds := store.Bounds{Max: c.Max - len(chosen), Workers: c.MaxWorkers, PerLane: c.MaxPerLane, PerAgent: c.MaxPerAgent}
	ready := slices.Concat(h.queued, h.awake)
	for _, ordinal := range store.Pick(lines(ready), h.running, bounds) {
		chosen = append(chosen, ready[slices.IndexFunc(ready, func(one candidate) bool { return one.ordinal == ordinal })])
	}
	return chosen
}

// lines puts candidates into the lines of their lanes and agents.
func lines(ready []candidate) []store.Line {
	at := map[[2]string]int{}
	var all []store.Line
	for _, one := range ready {
		line := [2]string{one.lane, one.agent}
		i, known := at[line]
		if !known {
			i = len(all)
			at[line] = i
			all = append(all, store.Line{Lane: one.lane, Agent: one.agent})
		}
		all[i].Ordinals = append(all[i].Ordinals, one.ordinal)
	}
	for _, line := range all {
		slices.Sort(line.Ordinals)
	}
	return all
}

// claim makes the chosen runs the owner's, as far as they still are as they
// were, unless another claim came between: then won is false. What an earlier
// owner held of them counts as spent from now on.
func (s *Store) claim(ctx context.Context, op string, c goclaw.ClaimRequest, turn int64, chosen []candidate) (_ []goclaw.Claimed, won bool, err error) {
	ordinals, epochs, states := make([]int64, len(chosen)), make([]int64, len(chosen)), make([]string, len(chosen))
	for i, one := range chosen {
		ordinals[i], epochs[i], states[i] = one.ordinal, one.epoch, string(one.state)
	}
	var runs []goclaw.Run
	var turns int64
	err = s.write(ctx, op, func(t *tx) error {
		t.vain = func() bool { return turns == 0 }
		me := rand.Int64() // tells our turn from another's with the same number
		count(t.write(`UPDATE turnstile SET n = n + 1, taken_by = $2 WHERE n = $1`, turn, me), &turns)
		collectRuns(t.write(`
			WITH locked AS (
				SELECT runs.ordinal, runs.id FROM runs JOIN unnest($2::bigint[], $3::bigint[], $4::text[]) AS chosen (ordinal, epoch, state)
					ON runs.ordinal = chosen.ordinal AND runs.epoch = chosen.epoch AND runs.state = chosen.state
				WHERE EXISTS (SELECT 1 FROM turnstile WHERE taken_by = $1)
					AND (runs.state <> 'running' OR EXISTS (SELECT 1 FROM processes
						WHERE id = runs.owner AND (lease_until <= `+now("$7")+` OR $9) AND id <> $5))
				FOR UPDATE OF runs SKIP LOCKED
			), lease AS (
				INSERT INTO processes (id, lease_until) SELECT $5, `+now("$7")+` + $8 WHERE EXISTS (SELECT 1 FROM locked)
				ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until
			), lost AS (
				UPDATE holds SET spent = true FROM locked WHERE run_id = locked.id AND NOT spent
			)
			UPDATE runs SET epoch = epoch + 1, state = 'running', owner = $5, started_at = coalesce(started_at, $6),
				deadline = CASE WHEN started_at IS NULL
					THEN least($6 + nullif(greatest(coalesce((profile::json ->> 'timeoutMs')::bigint, 0), 0), 0),
						nullif((profile::json ->> 'until')::bigint, 0)) ELSE deadline END,
				waits_for = '', wake_at = NULL
			FROM locked WHERE runs.ordinal = locked.ordinal RETURNING `+runColumns,
			me, ordinals, epochs, states, c.Owner, c.Now, s.leaseTime(c.Now), c.Lease.Milliseconds(), c.DeadOwners), &runs)
		return nil
	})
	if err != nil {
		if isUnknown(err) {
			s.doubts[c.Owner] = append(s.doubts[c.Owner], chosen...)
		}
		return nil, false, err
	}
	return ordered(runs, chosen), turns > 0, nil
}

// ordered puts claimed runs into the order in which they were chosen.
func ordered(runs []goclaw.Run, chosen []candidate) []goclaw.Claimed {
	var claimed []goclaw.Claimed
	for _, one := range chosen {
		i := slices.IndexFunc(runs, func(r goclaw.Run) bool { return r.Ordinal == one.ordinal })
		if i < 0 {
			continue
		}
		released := one.state == goclaw.StateInterrupted
		claimed = append(claimed, goclaw.Claimed{Run: runs[i], TakeOver: released || one.state == goclaw.StateRunning, Released: released})
	}
	return claimed
}

// doubts are claims, by owner, of which it is not known whether they took
// effect. What they took belongs to a process that does not know it.
type doubts map[string][]candidate

// settle returns what the owner's doubtful claims took, and forgets them.
func (d doubts) settle(ctx context.Context, s *Store, owner string) ([]goclaw.Claimed, error) {
	chosen := d[owner]
	if len(chosen) == 0 {
		return nil, nil
	}
	ordinals, epochs := make([]int64, len(chosen)), make([]int64, len(chosen))
	for i, one := range chosen {
		ordinals[i], epochs[i] = one.ordinal, one.epoch+1
	}
	var runs []goclaw.Run
	err := s.read(ctx, "look for claimed runs", func(b *pgx.Batch) {
		collectRuns(queue(b, `SELECT `+runColumns+` FROM runs JOIN unnest($1::bigint[], $2::bigint[]) AS chosen (ordinal, epoch)
				ON runs.ordinal = chosen.ordinal AND runs.epoch = chosen.epoch
			WHERE runs.owner = $3 AND runs.state = 'running'`, ordinals, epochs, owner), &runs)
	})
	if err != nil {
		return nil, err
	}
	delete(d, owner)
	return ordered(runs, chosen), nil
}

// Queue returns the ids of the spawned runs that are queued and the oldest of
// their sessions, in the order in which they would be claimed.
func (s *Store) Queue(ctx context.Context) ([]string, error) {
	var ready []candidate
	var names map[int64]string
	var running store.Running
	err := s.read(ctx, "read queue", func(b *pgx.Batch) {
		ready, names = nil, map[int64]string{}
		running = store.Running{Lane: map[string]int{}, Agent: map[string]int{}}
		countRunning(queue(b, runningWorkers+byLine), &running)
		each(queue(b, `SELECT lane, agent, ordinal, id FROM runs
			WHERE state = 'queued' AND cancel_at IS NULL AND head AND trigger = 'spawn'`), func(rows pgx.Rows) error {
			var one candidate
			var id string
			err := scan(rows, &one.lane, &one.agent, &one.ordinal, &id)
			ready, names[one.ordinal] = append(ready, one), id
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ready, func(a, b candidate) int { return cmp.Compare(a.ordinal, b.ordinal) })
	var ids []string
	for _, ordinal := range store.Pick(lines(ready), running, store.Bounds{}) {
		ids = append(ids, names[ordinal])
	}
	return ids, nil
}
