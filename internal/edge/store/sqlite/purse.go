package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Reserve holds what the run's next model call may spend, in place of what the
// run held before.
func (s *Store) Reserve(ctx context.Context, f goclaw.Fence, r goclaw.Reservation) (*goclaw.Shortage, error) {
	var short *goclaw.Shortage
	err := s.write(ctx, "reserve", func(ctx context.Context, t *tx) error {
		if _, err := t.fence(ctx, f); err != nil {
			return err
		}
		if r.Spent {
			if err := t.lose(ctx, f.Run); err != nil {
				return err
			}
		}
		if err := t.giveBack(ctx, f.Run); err != nil {
			return err
		}
		var err error
		if short, err = t.short(ctx, f.Run, r); err != nil || short != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO holds (run_id, epoch, root, agent, day, tokens, usd, at)
			SELECT id, epoch, root, agent, ?, ?, ?, ? FROM runs WHERE id = ?`, r.Date, r.Tokens, r.USD, r.Now, f.Run)
		return err
	})
	if err != nil {
		return nil, err
	}
	return short, nil
}

// short returns the first limit that the reservation would pass, or nil. Only
// the scopes that have limits are summed.
func (t *tx) short(ctx context.Context, run string, r goclaw.Reservation) (*goclaw.Shortage, error) {
	if r.Tree.IsZero() && r.Day.IsZero() {
		return nil, nil
	}
	var root, agent string
	if err := t.row(ctx, `SELECT root, agent FROM runs WHERE id = ?`, []any{run}, &root, &agent); err != nil {
		return nil, err
	}
	var tree, day store.Account
	var err error
	if !r.Tree.IsZero() {
		tree, err = t.account(ctx,
			`SELECT coalesce(sum(input + output), 0), coalesce(sum(cost_usd), 0.0), count(*), 0 FROM calls WHERE root = ?`,
			`SELECT tokens, usd, spent FROM holds WHERE root = ?`, root)
	}
	if err == nil && !r.Day.IsZero() {
		day, err = t.account(ctx,
			`SELECT coalesce(sum(input + output), 0), coalesce(sum(cost_usd), 0.0), count(*), coalesce(sum(took_ms), 0) FROM calls WHERE agent = ? AND day = ?`,
			`SELECT tokens, usd, spent FROM holds WHERE agent = ? AND day = ?`, agent, r.Date)
	}
	if err != nil {
		return nil, err
	}
	return store.Short(r, tree, day), nil
}

func (t *tx) account(ctx context.Context, calls, holds string, scope ...any) (a store.Account, err error) {
	var tookMs int64
	if err := t.row(ctx, calls, scope, &a.Spent.Tokens, &a.Spent.USD, &a.Spent.Steps, &tookMs); err != nil {
		return a, err
	}
	a.Spent.Seconds = float64(tookMs) / 1000
	err = t.query(ctx, func(rows *sql.Rows) error {
		var tokens int64
		var usd float64
		var spent bool
		err := rows.Scan(&tokens, &usd, &spent)
		a.Hold(tokens, usd, spent)
		return err
	}, holds, scope...)
	return a, err
}

// lose counts what the run still holds as spent.
func (t *tx) lose(ctx context.Context, run string) error {
	_, err := t.exec(ctx, `UPDATE holds SET spent = 1 WHERE run_id = ? AND spent = 0`, run)
	return err
}

// giveBack forgets what the run holds and has not spent.
func (t *tx) giveBack(ctx context.Context, run string) error {
	_, err := t.exec(ctx, `DELETE FROM holds WHERE run_id = ? AND spent = 0`, run)
	return err
}

// book records the model calls of b, and gives back what was held for them.
func (t *tx) book(ctx context.Context, run string, r record, b goclaw.Batch) error {
	var runs []goclaw.Run
	if err := t.query(ctx, collectRuns(&runs), `SELECT `+runColumns+` FROM runs WHERE ordinal = ?`, r.ordinal); err != nil {
		return err
	}
	for _, c := range store.Calls(runs[0], b) {
		u := c.Usage
		_, err := t.exec(ctx, `INSERT INTO calls (run_id, seq, root, agent, definition, model, day, at,
				input, output, cache_read, cache_write, cost_usd, took_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.Run, c.Seq, c.Root, c.Agent, c.Definition, c.Model, c.Day, c.At,
			u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CostUSD, c.TookMs)
		if err != nil {
			return err
		}
	}
	return t.giveBack(ctx, run)
}

// TakeRate takes from a provider's allowance, or returns when to ask again.
func (s *Store) TakeRate(ctx context.Context, r goclaw.RateRequest) (goclaw.Millis, error) {
	if store.Unbounded(r) {
		return 0, ctx.Err()
	}
	var again goclaw.Millis
	err := s.write(ctx, "take from allowance", func(ctx context.Context, t *tx) error {
		b, known, err := t.bucket(ctx, r.Name)
		if err != nil {
			return err
		}
		if !known {
			b = store.FullBucket(r)
		}
		if b, again = b.Take(r); again != 0 {
			return nil
		}
		return t.keep(ctx, r.Name, b)
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
	return s.write(ctx, "give to allowance", func(ctx context.Context, t *tx) error {
		b, known, err := t.bucket(ctx, r.Name)
		if err != nil || !known {
			return err
		}
		return t.keep(ctx, r.Name, b.Give(r))
	})
}

func (t *tx) bucket(ctx context.Context, name string) (b store.Bucket, known bool, err error) {
	err = t.row(ctx, `SELECT requests, tokens, at FROM rates WHERE name = ?`, []any{name}, &b.Requests, &b.Tokens, &b.At)
	if errors.Is(err, sql.ErrNoRows) {
		return b, false, nil
	}
	return b, true, err
}

func (t *tx) keep(ctx context.Context, name string, b store.Bucket) error {
	_, err := t.exec(ctx, `INSERT INTO rates (name, requests, tokens, at) VALUES (?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens, at = excluded.at`,
		name, b.Requests, b.Tokens, b.At)
	return err
}

// Paused reads the kill switch.
func (s *Store) Paused(ctx context.Context) (goclaw.Pause, error) {
	var p goclaw.Pause
	err := s.read(ctx, "read pause", func(rows *sql.Rows) error {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return err
		}
		return json.Unmarshal(text, &p)
	}, `SELECT value FROM control WHERE key = 'pause'`)
	return p, err
}

// SetPause sets the kill switch; the zero value is off.
func (s *Store) SetPause(ctx context.Context, p goclaw.Pause) error {
	const op = "set pause"
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.write(ctx, op, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `INSERT INTO control (key, value) VALUES ('pause', ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`, string(text))
		return err
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
	err := s.read(ctx, op, func(rows *sql.Rows) error {
		one = goclaw.UsageRow{}
		err := rows.Scan(dest...)
		found = append(found, one)
		return err
	}, `WITH booked AS (
			SELECT run_id, root, agent, definition, model, `+trigger+` AS trigger, day, 1 AS calls, input, output, cache_read, cache_write,
				cost_usd, took_ms, cost_usd IS NULL AS unpriced, 0 AS lost FROM calls
			UNION ALL
			SELECT run_id, holds.root, holds.agent, coalesce(json_extract(profile, '$.definition'), ''),
				coalesce(json_extract(profile, '$.model'), ''), trigger, day, 0, 0, 0, 0, 0, NULL, 0, 0, tokens
			FROM holds JOIN runs ON runs.id = holds.run_id WHERE spent = 1
		)
		SELECT `+strings.Join(groups, ", ")+`coalesce(sum(calls), 0), coalesce(sum(input), 0), coalesce(sum(output), 0),
			coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0), sum(cost_usd),
			coalesce(sum(took_ms), 0), coalesce(sum(unpriced), 0), coalesce(sum(lost), 0)
		FROM booked`+where+group, args...)
	store.SortUsage(found)
	return found, err
}

func usageFilter(q goclaw.UsageQuery) (where string, args []any) {
	where = " WHERE 1"
	and := func(condition, value string) {
		if value != "" {
			where += " AND " + condition
			args = append(args, value)
		}
	}
	and("day >= ?", q.Since)
	and("day <= ?", q.Until)
	and("agent = ?", q.Agent)
	and("root = ?", q.Tree)
	return where, args
}
