package budget

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"goclaw"
)

const (
	// MinOutput is the fewest output tokens that a call is worth making for,
	// unless fewer were asked for.
	MinOutput = 256

	// defaultOutput stands for a provider's own default where a limit needs a
	// number.
	defaultOutput = 8192
)

// Ask is a model call that a run wants to make.
type Ask struct {
	Model     string // provider/model, for what is said
	Price     *Price // nil: not known
	Budget    goclaw.Budget
	Worker    bool  // the run was spawned
	Spent     Spent // by the run itself so far, calls without a record included
	Input     int64 // a bound of its input tokens
	MaxTokens int   // the output tokens wanted; 0: the provider's default
}

// Spent is what a run has used.
type Spent struct {
	Tokens int64
	USD    float64
	Steps  int64 // model calls
}

// Call is what a model call may do and what must be reserved for it.
type Call struct {
	MaxTokens int     // to send; 0: the provider's default
	Tokens    int64   // input and output
	USD       float64 // 0 without a price
}

// Plan fits a call into what is left of the run's own limits: it lowers the
// output, but not below MinOutput. A refusal says in one line why there is no
// such call; "" means there is. A limit on tokens or money in any scope makes
// the output bounded, so that a reservation can be. Without one what is
// reserved for a call of unbounded output is an estimate.
func Plan(a Ask) (call Call, refusal string) {
	run := a.Budget.Run
	if scope := scopeInUSD(a.Budget); scope != "" && a.Price == nil {
		return Call{}, fmt.Sprintf("budget: the price of model %s is not known, so a limit in USD can't be kept; set models.prices.%q or budget.%s.tokens", a.Model, a.Model, scope)
	}
	if run.Steps > 0 && a.Spent.Steps >= run.Steps {
		return Call{}, fmt.Sprintf("budget: this run may make %d model calls, and it made %d; raise %s", run.Steps, a.Spent.Steps, a.key("steps"))
	}
	want := int64(a.MaxTokens)
	if want <= 0 {
		want = defaultOutput
	}
	least := min(MinOutput, want)
	out, ok := largest(least, want, func(out int64) bool {
		return run.Tokens <= 0 || a.Spent.Tokens+a.Input+out <= run.Tokens
	})
	if !ok {
		return Call{}, fmt.Sprintf("budget: this run may use %d tokens; it used %d, and its next call may need %d (%d in, %d out); raise %s",
			run.Tokens, a.Spent.Tokens, a.Input+least, a.Input, least, a.key("tokens"))
	}
	out, ok = largest(least, out, func(out int64) bool {
		return run.USD <= 0 || a.Spent.USD+a.Price.Most(a.Input, out) <= run.USD
	})
	if !ok {
		return Call{}, fmt.Sprintf("budget: this run may spend %s USD; it spent %s, and its next call may cost %s (%d tokens in, %d out); raise %s",
			number(run.USD), number(a.Spent.USD), number(a.Price.Most(a.Input, least)), a.Input, least, a.key("usd"))
	}
	return a.call(out), ""
}

// call makes the call with out output tokens, unbounded if no limit needs a
// bound.
func (a Ask) call(out int64) Call {
	c := Call{MaxTokens: int(out), Tokens: a.Input + out}
	if a.Price != nil {
		c.USD = a.Price.Most(a.Input, out)
	}
	if a.MaxTokens <= 0 && !bounded(a.Budget) {
		c.MaxTokens = 0
	}
	return c
}

func (a Ask) key(what string) string {
	if a.Worker {
		return "subagents.budget." + what
	}
	return "budget.run." + what
}

func bounded(b goclaw.Budget) bool {
	for _, l := range []goclaw.Limits{b.Run, b.Tree, b.Day} {
		if l.Tokens > 0 || l.USD > 0 {
			return true
		}
	}
	return false
}

// scopeInUSD names a scope with a limit in USD, "" if there is none.
func scopeInUSD(b goclaw.Budget) string {
	switch {
	case b.Run.USD > 0:
		return "run"
	case b.Tree.USD > 0:
		return "tree"
	case b.Day.USD > 0:
		return "day"
	}
	return ""
}

// Fit lowers the output of a call of in and out tokens until what it may spend
// fits beside what s says is spent; what other calls under way hold may come
// back, and does not count. ok is false if it can't be: the output would be
// less than MinOutput, or output is not what is short.
func Fit(s goclaw.Shortage, in, out int64, p Price) (lower int64, ok bool) {
	least := min(MinOutput, out)
	switch s.What {
	case "tokens":
		return largest(least, out, func(out int64) bool { return s.Spent+float64(in+out) <= s.Limit })
	case "usd":
		return largest(least, out, func(out int64) bool { return s.Spent+p.Most(in, out) <= s.Limit })
	}
	if s.Hopeless() {
		return 0, false
	}
	return out, true
}

// largest finds the largest number from least to most that fits; all smaller
// ones must fit as well.
func largest(least, most int64, fits func(int64) bool) (int64, bool) {
	if !fits(least) {
		return 0, false
	}
	more := sort.Search(int(most-least), func(i int) bool { return !fits(least + int64(i) + 1) })
	return least + int64(more), true
}

// Explain says a shortage in one line: the limit, what is spent, what the call
// needs, and the key to change.
func Explain(s goclaw.Shortage) string {
	whose, key := "this tree of runs", "budget.tree."+s.What
	if s.Scope == "day" {
		whose, key = "today this agent", "budget.day."+s.What
	}
	held := ""
	if s.Held > 0 {
		held = fmt.Sprintf(", calls under way hold %s", number(s.Held))
	}
	limit, spent, need := number(s.Limit), number(s.Spent), number(s.Need)
	switch s.What {
	case "usd":
		return fmt.Sprintf("budget: %s may spend %s USD; %s is spent%s, and the next call may cost %s; the limit is %s", whose, limit, spent, held, need, key)
	case "steps":
		return fmt.Sprintf("budget: %s may make %s model calls; %s are made%s; the limit is %s", whose, limit, spent, held, key)
	case "seconds":
		if s.Scope == "day" {
			return fmt.Sprintf("budget: %s may spend %s seconds in model calls; %s are spent%s; the limit is %s", whose, limit, spent, held, key)
		}
		return fmt.Sprintf("budget: %s may take %s seconds; %s are over; the limit is %s", whose, limit, spent, key)
	}
	return fmt.Sprintf("budget: %s may use %s %s; %s are used%s, and the next call may need %s; the limit is %s", whose, limit, s.What, spent, held, need, key)
}

// number writes whole numbers plainly and others to a millionth.
func number(n float64) string {
	if n == math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(n, 'f', 6, 64), "0"), ".")
}
