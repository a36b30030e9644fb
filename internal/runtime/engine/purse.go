package engine

import (
	"context"
	"time"

	"goclaw"
	"goclaw/internal/core/budget"
)

// overBudget is why a run can't go on.
type overBudget string

func (o overBudget) Error() string { return string(o) }

// afford fits the call into what the budgets of run, tree and day leave, and
// holds what it may spend at most. It lowers req.MaxTokens if need be, waits
// while only calls under way stand in the way, and refuses with an error that
// says which limit is reached. billed says that the try before this one may
// have been.
func (j *job) afford(req *goclaw.ModelRequest, billed bool) error {
	if j.r.Profile.Budget == (goclaw.Budget{}) {
		return nil
	}
	price, known := j.e.o.Prices(j.r.Profile.Model)
	wanted := budget.Ask{
		Model: j.r.Profile.Model, Budget: j.r.Profile.Budget, Worker: j.r.Session.IsWorker(),
		Input: j.weigh(*req), MaxTokens: req.MaxTokens,
	}
	wanted.Spent = j.spent(wanted.Input)
	if known {
		wanted.Price = &price
	}
	call, refusal := budget.Plan(wanted)
	if refusal != "" {
		return overBudget(refusal)
	}
	req.MaxTokens = call.MaxTokens
	if !shared(wanted.Budget) {
		return nil
	}
	for told := false; ; {
		given := j.e.bell.listen()
		held := goclaw.Reservation{
			Tokens: call.Tokens, USD: call.USD, Tree: wanted.Budget.Tree, Day: wanted.Budget.Day, Date: j.e.day(),
			Spent: billed, Now: goclaw.At(time.Now()),
		}
		short, err := ask(j, "budget", func(ctx context.Context) (*goclaw.Shortage, error) {
			return j.e.o.Store.Reserve(ctx, j.fence, held)
		})
		if err != nil {
			return err
		}
		if short == nil {
			return nil
		}
		billed = false // that is on record now
		out, ok := budget.Fit(*short, wanted.Input, call.Tokens-wanted.Input, price)
		if !ok {
			return overBudget(budget.Explain(*short))
		}
		if out < call.Tokens-wanted.Input {
			call.Tokens, call.USD, req.MaxTokens = wanted.Input+out, price.Most(wanted.Input, out), int(out)
			continue
		}
		if !told {
			j.tell(budget.Explain(*short) + "; waiting for the calls under way")
			told = true
		}
		if err := j.rest(askPurse, given); err != nil {
			return err
		}
	}
}

// shared reports whether other runs draw on the same budget.
func shared(b goclaw.Budget) bool {
	tree := b.Tree
	tree.Seconds = 0 // a deadline keeps it
	return !tree.IsZero() || !b.Day.IsZero()
}

// unspent gives back what was held for a call that the provider refused.
func (j *job) unspent() {
	if !shared(j.r.Profile.Budget) {
		return
	}
	if _, err := j.e.o.Store.Reserve(j.ctx, j.fence, goclaw.Reservation{Date: j.e.day(), Now: goclaw.At(time.Now())}); err != nil {
		j.e.o.Log.Warn("what was held for a refused call could not be given back", "run", j.r.ID, "err", err)
	}
}

// spent is what the run itself has used. A call that was lost with its process
// counts as one of the run's average, or as the input of the next.
func (j *job) spent(input int64) budget.Spent {
	u, steps := j.state.Usage, int64(j.state.Calls())
	s := budget.Spent{Tokens: u.Input + u.Output, Steps: steps}
	if u.CostUSD != nil {
		s.USD = *u.CostUSD
	}
	lost := int64(j.state.LostModelCalls)
	switch {
	case lost > 0 && steps > 0:
		s.Tokens += s.Tokens / steps * lost
		s.USD += s.USD / float64(steps) * float64(lost)
	case lost > 0:
		s.Tokens += input * lost
	}
	s.Steps += lost
	for _, c := range j.state.Compacted {
		if c.Call != nil {
			s.Steps++
		}
	}
	for _, h := range j.state.Handoffs {
		if h.Call != nil {
			s.Steps++
		}
	}
	return s
}

// weigh bounds the request's input tokens: by what the provider counted for
// the call before, if there was one in this run.
func (j *job) weigh(req goclaw.ModelRequest) int64 {
	n := len(j.state.Steps)
	if n == 0 || j.state.Steps[n-1].Reply.Usage.Input == 0 {
		return budget.Estimate(req)
	}
	last := j.state.Steps[n-1].Reply
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].Role == goclaw.RoleAssistant {
			return budget.EstimateAfter(last.Usage.Input, budget.Weigh(req.Messages[i:]...))
		}
	}
	return budget.Estimate(req)
}

// counted is what the call took: as the provider says, or, if it says nothing,
// at most what a budget must assume.
func (j *job) counted(reply goclaw.ModelReply) goclaw.Usage {
	if !reply.Usage.IsZero() {
		return reply.Usage
	}
	return goclaw.Usage{
		Input:   j.weigh(j.request("")),
		Output:  budget.EstimateAfter(0, budget.Weigh(reply.Message)),
		CostUSD: reply.Usage.CostUSD,
	}
}

// priced adds the cost to what a provider counted.
func (j *job) priced(u goclaw.Usage) goclaw.Usage {
	if u.CostUSD == nil {
		if price, ok := j.e.o.Prices(j.r.Profile.Model); ok {
			cost := price.Cost(u)
			u.CostUSD = &cost
		}
	}
	return u
}
