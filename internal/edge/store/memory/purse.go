package memory

import (
	"context"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Reserve holds what the run's next model call may spend, in place of what the
// run held before.
func (s *Store) Reserve(ctx context.Context, f goclaw.Fence, r goclaw.Reservation) (short *goclaw.Shortage, err error) {
	err = s.do(ctx, "reserve", func() error {
		run, err := s.fence(f)
		if err != nil {
			return err
		}
		if r.Spent {
			s.lose(run.ID)
		}
		s.giveBack(run.ID)
		agent := run.Session.Agent
		tree := s.account(func(root, _, _ string) bool { return root == run.Root })
		day := s.account(func(_, a, d string) bool { return a == agent && d == r.Date })
		if short = store.Short(r, tree, day); short == nil {
			s.holds = append(s.holds, &hold{
				run: run.ID, root: run.Root, agent: agent, day: r.Date, tokens: r.Tokens, usd: r.USD,
			})
		}
		return nil
	})
	return short, err
}

// account sums what is spent and held in a scope.
func (s *Store) account(in func(root, agent, day string) bool) (a store.Account) {
	for _, c := range s.calls {
		if in(c.Root, c.Agent, c.Day) {
			a.Book(c)
		}
	}
	for _, h := range s.holds {
		if in(h.root, h.agent, h.day) {
			a.Hold(h.tokens, h.usd, h.spent)
		}
	}
	return a
}

// lose counts what the run still holds as spent.
func (s *Store) lose(run string) {
	for _, h := range s.holds {
		if h.run == run {
			h.spent = true
		}
	}
}

// giveBack forgets what the run holds and has not spent.
func (s *Store) giveBack(run string) {
	s.holds = slices.DeleteFunc(s.holds, func(h *hold) bool { return h.run == run && !h.spent })
}

// TakeRate takes from a provider's allowance, or returns when to ask again.
func (s *Store) TakeRate(ctx context.Context, r goclaw.RateRequest) (again goclaw.Millis, err error) {
	err = s.do(ctx, "take from allowance", func() error {
		if store.Unbounded(r) {
			return nil
		}
		b, known := s.buckets[r.Name]
		if !known {
			b = store.FullBucket(r)
		}
		if b, again = b.Take(r); again == 0 {
			s.buckets[r.Name] = b
		}
		return nil
	})
	return again, err
}

// GiveRate corrects the tokens of a request that was taken.
func (s *Store) GiveRate(ctx context.Context, r goclaw.RateRequest) error {
	return s.do(ctx, "give to allowance", func() error {
		if b, known := s.buckets[r.Name]; known && !store.Unbounded(r) {
			s.buckets[r.Name] = b.Give(r)
		}
		return nil
	})
}

// Paused reads the kill switch.
func (s *Store) Paused(ctx context.Context) (p goclaw.Pause, err error) {
	err = s.do(ctx, "read pause", func() error {
		p = s.pause
		return nil
	})
	return p, err
}

// SetPause sets the kill switch; the zero value is off.
func (s *Store) SetPause(ctx context.Context, p goclaw.Pause) error {
	return s.do(ctx, "set pause", func() error {
		s.pause = p
		return nil
	})
}

// Usage sums recorded calls, the most tokens first.
func (s *Store) Usage(ctx context.Context, q goclaw.UsageQuery) (rows []goclaw.UsageRow, err error) {
	err = s.do(ctx, "sum usage", func() error {
		if err := store.CheckUsage(q); err != nil {
			return err
		}
		sums := map[goclaw.UsageRow]*goclaw.UsageRow{}
		if len(q.By) == 0 {
			sums[goclaw.UsageRow{}] = &goclaw.UsageRow{}
		}
		sum := func(c store.Call) *goclaw.UsageRow {
			if c.Agent != q.Agent && q.Agent != "" || c.Root != q.Tree && q.Tree != "" || c.Day < q.Since || q.Until != "" && c.Day > q.Until {
				return &goclaw.UsageRow{}
			}
			group := groupOf(c, q.By)
			if sums[group] == nil {
				row := group
				sums[group] = &row
			}
			return sums[group]
		}
		for _, c := range s.calls {
			row := sum(c)
			row.Calls++
			row.TookMs += c.TookMs
			u := &row.Usage
			u.Input, u.Output = u.Input+c.Usage.Input, u.Output+c.Usage.Output
			u.CacheRead, u.CacheWrite = u.CacheRead+c.Usage.CacheRead, u.CacheWrite+c.Usage.CacheWrite
			switch {
			case c.Usage.CostUSD == nil:
				row.Unpriced++
			case u.CostUSD == nil:
				u.CostUSD = new(float64)
				fallthrough
			default:
				*u.CostUSD += *c.Usage.CostUSD
			}
		}
		for _, h := range s.holds {
			if h.spent {
				r := s.byID[h.run]
				sum(store.Call{Run: h.run, Root: h.root, Agent: h.agent, Day: h.day, Definition: r.Profile.Definition, Model: r.Profile.Model, Trigger: r.Trigger}).Lost += h.tokens
			}
		}
		for _, row := range sums {
			rows = append(rows, *row)
		}
		store.SortUsage(rows)
		return nil
	})
	return rows, err
}

// groupOf is the row, still empty, that a call belongs to.
func groupOf(c store.Call, by []string) (row goclaw.UsageRow) {
	for _, name := range by {
		switch name {
		case "agent":
			row.Agent = c.Agent
		case "definition":
			row.Definition = c.Definition
		case "model":
			row.Model = c.Model
		case "trigger":
			row.Trigger = c.Trigger
		case "day":
			row.Day = c.Day
		case "tree":
			row.Tree = c.Root
		case "run":
			row.Run = c.Run
		}
	}
	return row
}
