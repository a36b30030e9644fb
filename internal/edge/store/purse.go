package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// Call is a recorded model call, as it is booked.
type Call struct {
	Run        string
	Seq        int
	Root       string
	Agent      string
	Definition string
	Model      string
	Trigger    goclaw.Trigger // the run's
	Day        string
	At         goclaw.Millis
	Usage      goclaw.Usage
	TookMs     int64
}

// Calls returns the model calls that b adds to the record of run.
func Calls(run goclaw.Run, b goclaw.Batch) []Call {
	var calls []Call
	for _, e := range b.Events {
		paid := e.Paid()
		if paid == nil {
			continue
		}
		calls = append(calls, Call{
			Run: run.ID, Seq: e.Seq, Root: run.Root, Agent: run.Session.Agent,
			Definition: run.Profile.Definition, Model: run.Profile.Model,
			Trigger: run.Trigger, Day: b.Day,
			At: cmp.Or(e.At, b.Now), Usage: paid.Usage, TookMs: paid.TookMs,
		})
	}
	return calls
}

// Books reports whether b adds model calls to a record.
func Books(b goclaw.Batch) bool {
	return slices.ContainsFunc(b.Events, func(e goclaw.Event) bool { return e.Paid() != nil })
}

// Spending is what calls have cost, or may cost.
type Spending struct {
	Tokens  int64
	USD     float64
	Steps   int64
	Seconds float64
}

// Account is a scope of spending, as a reservation finds it: what is on record
// or lost, and what other runs hold.
type Account struct {
	Spent Spending
	Held  Spending
}

// Book adds a recorded call to the account.
func (a *Account) Book(c Call) {
	a.Spent.Tokens += c.Usage.Input + c.Usage.Output
	if c.Usage.CostUSD != nil {
		a.Spent.USD += *c.Usage.CostUSD
	}
	a.Spent.Steps++
	a.Spent.Seconds += float64(c.TookMs) / 1000
}

// Hold adds a hold to the account.
func (a *Account) Hold(tokens int64, usd float64, spent bool) {
	s := &a.Held
	if spent {
		s = &a.Spent
	}
	s.Tokens += tokens
	s.USD += usd
	s.Steps++
}

// Short returns the first limit that the reservation would pass, or nil.
func Short(r goclaw.Reservation, tree, day Account) *goclaw.Shortage {
	scopes := []struct {
		name   string
		limits goclaw.Limits
		Account
	}{{"tree", r.Tree, tree}, {"day", r.Day, day}}
	for _, s := range scopes {
		limits := []goclaw.Shortage{
			{What: "tokens", Limit: float64(s.limits.Tokens), Spent: float64(s.Spent.Tokens), Held: float64(s.Held.Tokens), Need: float64(r.Tokens)},
			{What: "usd", Limit: s.limits.USD, Spent: s.Spent.USD, Held: s.Held.USD, Need: r.USD},
			{What: "steps", Limit: float64(s.limits.Steps), Spent: float64(s.Spent.Steps), Held: float64(s.Held.Steps), Need: 1},
		}
		if s.name == "day" {
			limits = append(limits, goclaw.Shortage{What: "seconds", Limit: float64(s.limits.Seconds), Spent: s.Spent.Seconds})
		}
		for _, l := range limits {
			// Sums of prices are not exact in their last digits.
			if l.Limit > 0 && l.Spent+l.Held+l.Need > l.Limit+1e-9 {
				l.Scope = s.name
				return &l
			}
		}
	}
	return nil
}

// groupings are the names by which UsageQuery groups.
var groupings = [...]string{"agent", "definition", "model", "trigger", "day", "tree", "run"}

// CheckUsage refuses a query that groups by what there is not.
func CheckUsage(q goclaw.UsageQuery) error {
	for _, by := range q.By {
		if !slices.Contains(groupings[:], by) {
			return goclaw.BadRequest(fmt.Sprintf("usage by %q: want some of %s", by, strings.Join(groupings[:], ", ")))
		}
	}
	return nil
}

// SortUsage puts the most tokens first; rows alike are in order of their
// groups.
func SortUsage(rows []goclaw.UsageRow) {
	slices.SortFunc(rows, func(a, b goclaw.UsageRow) int {
		return cmp.Or(
			cmp.Compare(b.Usage.Input+b.Usage.Output, a.Usage.Input+a.Usage.Output),
			cmp.Compare(b.Lost, a.Lost),
			cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Definition, b.Definition), cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.Trigger, b.Trigger),
			cmp.Compare(a.Day, b.Day), cmp.Compare(a.Tree, b.Tree), cmp.Compare(a.Run, b.Run),
		)
	})
}
