package budget

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw"
)

func TestPlan(t *testing.T) {
	price := &Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}
	run := func(l goclaw.Limits) goclaw.Budget { return goclaw.Budget{Run: l} }
	for _, tt := range []struct {
		name    string
		ask     Ask
		want    Call
		refusal string
	}{
		{name: "no limits, no bound", ask: Ask{Input: 1000}, want: Call{Tokens: 1000 + 8192}},
		{name: "no limits, as wanted", ask: Ask{Input: 1000, MaxTokens: 500, Price: price}, want: Call{MaxTokens: 500, Tokens: 1500, USD: 0.0075}},
		{name: "steps alone need no bound", ask: Ask{Input: 1000, Budget: run(goclaw.Limits{Steps: 5, Seconds: 5}), Spent: Spent{Steps: 4}}, want: Call{Tokens: 9192}},
		{name: "a limit needs a bound", ask: Ask{Input: 1000, Budget: run(goclaw.Limits{Tokens: 100_000})}, want: Call{MaxTokens: 8192, Tokens: 9192}},
		{name: "so does a tree's", ask: Ask{Input: 1000, Budget: goclaw.Budget{Tree: goclaw.Limits{Tokens: 10}}}, want: Call{MaxTokens: 8192, Tokens: 9192}},
		{name: "and a day's", ask: Ask{Input: 1000, Price: price, Budget: goclaw.Budget{Day: goclaw.Limits{USD: 1}}}, want: Call{MaxTokens: 8192, Tokens: 9192, USD: (1000*2.5 + 8192*10) / 1e6}},
		{name: "less output", ask: Ask{Input: 954, Budget: run(goclaw.Limits{Tokens: 5000}), Spent: Spent{Tokens: 3000}}, want: Call{MaxTokens: 1046, Tokens: 2000}},
		{name: "the least output", ask: Ask{Input: 954, MaxTokens: 4000, Budget: run(goclaw.Limits{Tokens: 5000}), Spent: Spent{Tokens: 3790}}, want: Call{MaxTokens: 256, Tokens: 1210}},
		{
			name: "too little left", ask: Ask{Input: 954, Budget: run(goclaw.Limits{Tokens: 5000}), Spent: Spent{Tokens: 4100}},
			refusal: "budget: this run may use 5000 tokens; it used 4100, and its next call may need 1210 (954 in, 256 out); raise budget.run.tokens",
		},
		{
			name: "a worker's key", ask: Ask{Input: 954, Worker: true, Budget: run(goclaw.Limits{Tokens: 5000}), Spent: Spent{Tokens: 4100}},
			refusal: "budget: this run may use 5000 tokens; it used 4100, and its next call may need 1210 (954 in, 256 out); raise subagents.budget.tokens",
		},
		{name: "fewer wanted than the least", ask: Ask{Input: 900, MaxTokens: 100, Budget: run(goclaw.Limits{Tokens: 1000})}, want: Call{MaxTokens: 100, Tokens: 1000}},
		{
			name: "and still too many", ask: Ask{Input: 901, MaxTokens: 100, Budget: run(goclaw.Limits{Tokens: 1000})},
			refusal: "budget: this run may use 1000 tokens; it used 0, and its next call may need 1001 (901 in, 100 out); raise budget.run.tokens",
		},
		{name: "less output for the money", ask: Ask{Input: 1000, MaxTokens: 4000, Price: price, Budget: run(goclaw.Limits{USD: 0.05}), Spent: Spent{USD: 0.0375}}, want: Call{MaxTokens: 1000, Tokens: 2000, USD: 0.0125}},
		{
			name: "too little money", ask: Ask{Input: 1000, Price: price, Budget: run(goclaw.Limits{USD: 0.05}), Spent: Spent{USD: 0.048}},
			refusal: "budget: this run may spend 0.05 USD; it spent 0.048, and its next call may cost 0.00506 (1000 tokens in, 256 out); raise budget.run.usd",
		},
		{name: "the tighter of both", ask: Ask{Input: 1000, MaxTokens: 4000, Price: price, Budget: run(goclaw.Limits{USD: 0.0125, Tokens: 1500})}, want: Call{MaxTokens: 500, Tokens: 1500, USD: 0.0075}},
		{
			name: "no price", ask: Ask{Model: "p/new", Budget: run(goclaw.Limits{USD: 1})},
			refusal: `budget: the price of model p/new is not known, so a limit in USD can't be kept; set models.prices."p/new" or budget.run.tokens`,
		},
		{
			name: "no price for the tree", ask: Ask{Model: "p/new", Budget: goclaw.Budget{Tree: goclaw.Limits{USD: 1}}},
			refusal: `budget: the price of model p/new is not known, so a limit in USD can't be kept; set models.prices."p/new" or budget.tree.tokens`,
		},
		{
			name: "no price for the day", ask: Ask{Model: "p/new", Budget: goclaw.Budget{Day: goclaw.Limits{USD: 1}}},
			refusal: `budget: the price of model p/new is not known, so a limit in USD can't be kept; set models.prices."p/new" or budget.day.tokens`,
		},
		{name: "what costs nothing", ask: Ask{Price: &Price{}, Input: 10, Budget: run(goclaw.Limits{USD: 0.01})}, want: Call{MaxTokens: 8192, Tokens: 8202}},
		{
			name: "steps", ask: Ask{Input: 10, Budget: run(goclaw.Limits{Steps: 5}), Spent: Spent{Steps: 5}},
			refusal: "budget: this run may make 5 model calls, and it made 5; raise budget.run.steps",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, refusal := Plan(tt.ask)
			if got != tt.want || refusal != tt.refusal {
				t.Errorf("%+v, %q\nwant %+v, %q", got, refusal, tt.want, tt.refusal)
			}
		})
	}
}

func anyLimits(t *rapid.T, name string) goclaw.Limits {
	return goclaw.Limits{
		Tokens: rapid.Int64Range(0, 50_000).Draw(t, name+" tokens"),
		USD:    rapid.Float64Range(0, 2).Draw(t, name+" usd"),
		Steps:  rapid.Int64Range(0, 20).Draw(t, name+" steps"),
	}
}

// What is planned stays within the run's limits, and is refused only if not
// even the least would.
func TestPlanKeepsTheRunsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ask{
			Budget: goclaw.Budget{Run: anyLimits(t, "run"), Tree: anyLimits(t, "tree")},
			Spent: Spent{
				Tokens: rapid.Int64Range(0, 50_000).Draw(t, "tokens"), USD: rapid.Float64Range(0, 2).Draw(t, "usd"),
				Steps: rapid.Int64Range(0, 20).Draw(t, "steps"),
			},
			Input: rapid.Int64Range(0, 30_000).Draw(t, "input"), MaxTokens: rapid.IntRange(0, 20_000).Draw(t, "max"),
		}
		if rapid.Bool().Draw(t, "priced") {
			p := anyPrice().Draw(t, "price")
			a.Price = &p
		}
		within := func(c Call) bool {
			l := a.Budget.Run
			return (l.Tokens == 0 || a.Spent.Tokens+c.Tokens <= l.Tokens) && (l.USD == 0 || a.Spent.USD+c.USD <= l.USD) &&
				(l.Steps == 0 || a.Spent.Steps+1 <= l.Steps)
		}
		want := int64(a.MaxTokens)
		if want == 0 {
			want = defaultOutput
		}
		c, refusal := Plan(a)
		if refusal != "" {
			if !strings.HasPrefix(refusal, "budget: ") || strings.Contains(refusal, "\n") {
				t.Fatalf("%q", refusal)
			}
			priced := a.Price != nil || a.Budget.Run.USD == 0 && a.Budget.Tree.USD == 0
			if priced && within(a.call(min(MinOutput, want))) {
				t.Fatalf("refused: %s", refusal)
			}
			return
		}
		out := c.Tokens - a.Input
		switch {
		case !within(c):
			t.Fatalf("%+v passes %+v after %+v", c, a.Budget.Run, a.Spent)
		case out < min(MinOutput, want) || out > want:
			t.Fatalf("output %d of %d", out, want)
		case c.MaxTokens != 0 && int64(c.MaxTokens) != out:
			t.Fatalf("%d are sent, %d reserved", c.MaxTokens, out)
		case c.MaxTokens == 0 && (a.MaxTokens != 0 || bounded(a.Budget)):
			t.Fatal("no bound is sent")
		case out < want && within(a.call(out+1)):
			t.Fatalf("%d output tokens would fit, too", out+1)
		}
	})
}

func TestFit(t *testing.T) {
	price := Price{Input: 2, Output: 10, CacheWrite: 2.5}
	for _, tt := range []struct {
		name    string
		short   goclaw.Shortage
		in, out int64
		want    int64
		ok      bool
	}{
		{"tokens", goclaw.Shortage{What: "tokens", Limit: 10_000, Spent: 8000, Held: 900, Need: 5000}, 1000, 4000, 1000, true},
		{"held may come back", goclaw.Shortage{What: "tokens", Limit: 10_000, Spent: 5000, Held: 5000, Need: 5000}, 1000, 4000, 4000, true},
		{"too little", goclaw.Shortage{What: "tokens", Limit: 10_000, Spent: 8800, Need: 5000}, 1000, 4000, 0, false},
		{"the least", goclaw.Shortage{What: "tokens", Limit: 10_000, Spent: 8744, Need: 5000}, 1000, 4000, 256, true},
		{"few wanted", goclaw.Shortage{What: "tokens", Limit: 10_000, Spent: 8901, Need: 1100}, 1000, 100, 0, false},
		{"money", goclaw.Shortage{What: "usd", Limit: 0.05, Spent: 0.0375, Need: 0.0425}, 1000, 4000, 1000, true},
		{"no money", goclaw.Shortage{What: "usd", Limit: 0.05, Spent: 0.05, Need: 0.0425}, 1000, 4000, 0, false},
		{"a step to come", goclaw.Shortage{What: "steps", Limit: 5, Spent: 4, Held: 1, Need: 1}, 1000, 4000, 4000, true},
		{"no step", goclaw.Shortage{What: "steps", Limit: 5, Spent: 5, Need: 1}, 1000, 4000, 0, false},
		{"no time", goclaw.Shortage{What: "seconds", Limit: 5, Spent: 6}, 1000, 4000, 0, false},
	} {
		if got, ok := Fit(tt.short, tt.in, tt.out, price); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %d, %v; want %d, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestWhatFitReturnsFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrice().Draw(t, "price")
		in, out := rapid.Int64Range(0, 20_000).Draw(t, "in"), rapid.Int64Range(1, 20_000).Draw(t, "out")
		need := func(out int64, what string) float64 {
			if what == "usd" {
				return p.Most(in, out)
			}
			return float64(in + out)
		}
		s := goclaw.Shortage{Scope: "tree", What: rapid.SampledFrom([]string{"tokens", "usd"}).Draw(t, "what")}
		s.Need = need(out, s.What)
		s.Limit = rapid.Float64Range(0, 3*s.Need).Draw(t, "limit")
		s.Spent = rapid.Float64Range(0, 2*s.Need).Draw(t, "spent")
		s.Held = rapid.Float64Range(0, s.Need).Draw(t, "held")
		least := min(MinOutput, out)
		got, ok := Fit(s, in, out, p)
		if !ok {
			if s.Spent+need(least, s.What) <= s.Limit {
				t.Fatalf("%d would fit", least)
			}
			return
		}
		fitted := s
		fitted.Need = need(got, s.What)
		switch {
		case fitted.Hopeless():
			t.Fatalf("%d does not fit into %+v", got, fitted)
		case got < least || got > out:
			t.Fatalf("%d is not from %d to %d", got, least, out)
		case got < out && s.Spent+need(got+1, s.What) <= s.Limit:
			t.Fatalf("%d would fit, too", got+1)
		case s.Hopeless() && got == out:
			t.Fatal("nothing was lowered, and it waits forever")
		}
	})
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		short goclaw.Shortage
		want  string
	}{
		{
			goclaw.Shortage{Scope: "tree", What: "tokens", Limit: 50_000, Spent: 30_000, Held: 15_000, Need: 9000},
			"budget: this tree of runs may use 50000 tokens; 30000 are used, calls under way hold 15000, and the next call may need 9000; the limit is budget.tree.tokens",
		},
		{
			goclaw.Shortage{Scope: "day", What: "usd", Limit: 5, Spent: 4.9912, Need: 0.0425},
			"budget: today this agent may spend 5 USD; 4.9912 is spent, and the next call may cost 0.0425; the limit is budget.day.usd",
		},
		{
			goclaw.Shortage{Scope: "tree", What: "steps", Limit: 40, Spent: 39, Held: 1, Need: 1},
			"budget: this tree of runs may make 40 model calls; 39 are made, calls under way hold 1; the limit is budget.tree.steps",
		},
		{
			goclaw.Shortage{Scope: "tree", What: "seconds", Limit: 600, Spent: 612.25},
			"budget: this tree of runs may take 600 seconds; 612.25 are over; the limit is budget.tree.seconds",
		},
		{
			goclaw.Shortage{Scope: "day", What: "seconds", Limit: 600, Spent: 612},
			"budget: today this agent may spend 600 seconds in model calls; 612 are spent; the limit is budget.day.seconds",
		},
	} {
		if got := Explain(tt.short); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
