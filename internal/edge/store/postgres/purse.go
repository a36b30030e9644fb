package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Reserve holds what the run's next model call may spend, in place of what the
// run held before.
func (s *Store) Reserve(ctx context.Context, f goclaw.Fence, r goclaw.Reservation) (*goclaw.Shortage, error) {
	var short *goclaw.Shortage
	err := s.write(ctx, "reserve", func(t *tx) error {
		var run record
		var tree, day store.Account
		t.lock(&run, f.Run)
		// One at a time looks at a tree's or a day's account; only the scopes
		// that have limits are summed.
		if !r.Tree.IsZero() {
			t.queue(`SELECT pg_advisory_xact_lock(hashtextextended('goclaw tree ' || root, 0)) FROM runs WHERE id = $1`, f.Run)
		}
		if !r.Day.IsZero() {
			t.queue(`SELECT pg_advisory_xact_lock(hashtextextended('goclaw day ' || $2 || ' ' || agent, 0)) FROM runs WHERE id = $1`, f.Run, r.Date)
		}
		if !r.Tree.IsZero() {
			t.account(&tree, `root = (SELECT root FROM runs WHERE id = $1)`, f.Run, r.Spent)
		}
		if !r.Day.IsZero() {
			t.account(&day, `agent = (SELECT agent FROM runs WHERE id = $1) AND day = $2`, f.Run, r.Spent, r.Date)
		}
		if err := t.ask(); err != nil {
			return err
		}
		if err := run.held(f); err != nil {
			return err
		}
		if r.Spent {
			t.lose(f.Run)
		}
		t.giveBack(f.Run)
		if short = store.Short(r, tree, day); short == nil {
			t.write(`INSERT INTO holds (run_id, epoch, root, agent, day, tokens, usd, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
				f.Run, f.Epoch, run.Root, run.Session.Agent, r.Date, r.Tokens, r.USD, r.Now)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return short, nil
}

// account queues the sums of a scope, as they are once the run, $1, has given
// back what it holds or, with lose, has lost it.
func (t *tx) account(a *store.Account, scope, run string, lose bool, more ...any) {
	args := append([]any{run}, more...)
	var tookMs int64
	t.queue(`SELECT coalesce(sum(input + output), 0)::bigint, coalesce(sum(cost_usd), 0), count(*), coalesce(sum(took_ms), 0)::bigint
		FROM calls WHERE `+scope, args...).QueryRow(func(row pgx.Row) error {
		var spent store.Spending
		err := scan(row, &spent.Tokens, &spent.USD, &spent.Steps, &tookMs)
		spent.Seconds = float64(tookMs) / 1000
		a.Spent = spent
		return err
	})
	each(t.queue(`SELECT tokens, usd, spent, run_id = $1 FROM holds WHERE `+scope+` ORDER BY at`, args...), func(rows pgx.Rows) error {
		var tokens int64
		var usd float64
		var spent, own bool
		if err := scan(rows, &tokens, &usd, &spent, &own); err != nil {
			return err
		}
		if spent || !own || lose {
			a.Hold(tokens, usd, spent || own)
		}
		return nil
	})
}

// lose counts what the run still holds as spent.
func (t *tx) lose(run string) {
	t.write(`UPDATE holds SET spent = true WHERE run_id = $1 AND NOT spent`, run)
}

// giveBack forgets what the run holds and has not spent.
func (t *tx) giveBack(run string) {
	t.write(`DELETE FROM holds WHERE run_id = $1 AND NOT spent`, run)
}

// book queues the record of a model call.
func (t *tx) book(c store.Call) {
	u := c.Usage
	t.write(`INSERT INTO calls (run_id, seq, root, agent, definition, model, day, at,
			input, output, cache_read, cache_write, cost_usd, took_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		c.Run, c.Seq, c.Root, c.Agent, c.Definition, c.Model, c.Day, c.At,
		u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CostUSD, c.TookMs)
}

// TakeRate takes from a provider's allowance, or returns when to ask again.
func (s *Store) TakeRate(ctx context.Context, r goclaw.RateRequest) (goclaw.Millis, error) {
	if store.Unbounded(r) {
		return 0, ctx.Err()
	}
	var again goclaw.Millis
	err := s.write(ctx, "take from allowance", func(t *tx) error {
		asked := r // its time becomes the database's
		b, known, err := s.bucket(t, &asked)
		if err != nil {
			return err
		}
		if !known {
			b = store.FullBucket(asked)
		}
		if b, again = b.Take(asked); again != 0 {
			again += r.Now - asked.Now
			return nil
		}
		t.keep(r.Name, b)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return again, nil
}

// GiveRate corrects the tokens of a request that was taken.
func (s *Store) GiveRate(ctx context.Context, r goclaw.RateRequest) error {
	if store.Unbounded(r) {
		return ctx.Err()
	}
	return s.write(ctx, "give to allowance", func(t *tx) error {
		asked := r
		b, known, err := s.bucket(t, &asked)
		if err != nil || !known {
			return err
		}
		t.keep(r.Name, b.Give(asked))
		return nil
	})
}

// bucket locks and reads a provider's bucket, and sets r's time to that by
// which it is kept.
func (s *Store) bucket(t *tx, r *goclaw.RateRequest) (b store.Bucket, known bool, err error) {
	t.exclude("rate " + r.Name)
	each(t.queue(`SELECT requests, tokens, at FROM rates WHERE name = $1`, r.Name), func(rows pgx.Rows) error {
		known = true
		return scan(rows, &b.Requests, &b.Tokens, &b.At)
	})
	into(t.queue(`SELECT `+now("$1"), s.leaseTime(r.Now)), &r.Now)
	err = t.ask()
	return b, known, err
}

func (t *tx) keep(name string, b store.Bucket) {
	t.write(`INSERT INTO rates (name, requests, tokens, at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens, at = excluded.at`,
		name, b.Requests, b.Tokens, b.At)
}

// Paused reads the kill switch.
func (s *Store) Paused(ctx context.Context) (goclaw.Pause, error) {
	var p goclaw.Pause
	err := s.read(ctx, "read pause", func(b *pgx.Batch) {
		p = goclaw.Pause{}
		each(queue(b, `SELECT value FROM control WHERE key = 'pause'`), func(rows pgx.Rows) error {
			var text []byte
			if err := scan(rows, &text); err != nil {
				return err
			}
			return json.Unmarshal(text, &p)
		})
	})
	return p, err
}

// SetPause sets the kill switch; the zero value is off.
func (s *Store) SetPause(ctx context.Context, p goclaw.Pause) error {
	const op = "set pause"
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.write(ctx, op, func(t *tx) error {
		t.again = true
		t.write(`INSERT INTO control (key, value) VALUES ('pause', $1)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE control.value <> excluded.value`, string(text))
		t.wake("")
		return nil
	})
}

// Usage sums recorded calls, the most tokens first.
func (s *Store) Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error) {
	const op = "sum usage"
	if err := store.CheckUsage(q); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	var one goclaw.UsageRow
	columns := map[string]struct {
		name string
		dest *string
	}{
		"agent": {"agent", &one.Agent}, "definition": {"definition", &one.Definition}, "model": {"model", &one.Model},
		"trigger": {"trigger", (*string)(&one.Trigger)}, "day": {"day", &one.Day}, "tree": {"root", &one.Tree}, "run": {"run_id", &one.Run},
	}
	var groups []string
	var dest []any
	trigger := "''" // looked up for every call only if it is asked for
	if slices.Contains(q.By, "trigger") {
		trigger = "(SELECT trigger FROM runs WHERE id = run_id)"
	}
	for _, by := range q.By {
		groups = append(groups, columns[by].name)
		dest = append(dest, columns[by].dest)
	}
	u := &one.Usage
	dest = append(dest, &one.Calls, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD, &one.TookMs, &one.Unpriced, &one.Lost)
	group := ""
	if len(groups) > 0 {
		group = " GROUP BY " + strings.Join(groups, ", ")
		groups = append(groups, "")
	}
	where, args := usageFilter(q)
	var found []goclaw.UsageRow
	err := s.read(ctx, op, func(b *pgx.Batch) {
		found = nil
		each(queue(b, `WITH booked AS (
				SELECT run_id, root, agent, definition, model, `+trigger+` AS trigger, day, 1 AS calls, input, output, cache_read, cache_write,
					cost_usd, took_ms, CASE WHEN cost_usd IS NULL THEN 1 ELSE 0 END AS unpriced, 0 AS lost FROM calls
				UNION ALL
				SELECT run_id, holds.root, holds.agent, coalesce(profile::json ->> 'definition', ''),
					coalesce(profile::json ->> 'model', ''), trigger, day, 0, 0, 0, 0, 0, NULL, 0, 0, tokens
				FROM holds JOIN runs ON runs.id = holds.run_id WHERE spent
			)
			SELECT `+strings.Join(groups, ", ")+`coalesce(sum(calls), 0)::bigint, coalesce(sum(input), 0)::bigint, coalesce(sum(output), 0)::bigint,
				coalesce(sum(cache_read), 0)::bigint, coalesce(sum(cache_write), 0)::bigint, sum(cost_usd),
				coalesce(sum(took_ms), 0)::bigint, coalesce(sum(unpriced), 0)::bigint, coalesce(sum(lost), 0)::bigint
			FROM booked`+where+group, args...), func(rows pgx.Rows) error {
			one = goclaw.UsageRow{}
			err := scan(rows, dest...)
			found = append(found, one)
			return err
		})
	})
	store.SortUsage(found)
	return found, err
}

func usageFilter(q goclaw.UsageQuery) (where string, args []any) {
	where = " WHERE true"
	and := func(condition, value string) {
		if value != "" {
			args = append(args, value)
			where += fmt.Sprintf(" AND %s $%d", condition, len(args))
		}
	}
	and("day >=", q.Since)
	and("day <=", q.Until)
	and("agent =", q.Agent)
	and("root =", q.Tree)
	return where, args
}
