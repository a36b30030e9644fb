package goclaw_test

import (
	"testing"

	"goclaw"
	"pgregory.net/rapid"
)

func cost(usd float64) *float64 { return &usd }

func TestUsageAdd(t *testing.T) {
	tests := []struct {
		name       string
		a, b, want goclaw.Usage
	}{
		{"nothing", goclaw.Usage{}, goclaw.Usage{}, goclaw.Usage{}},
		{
			"both priced",
			goclaw.Usage{Input: 10, Output: 2, CacheRead: 5, CacheWrite: 1, CostUSD: cost(0.5)},
			goclaw.Usage{Input: 20, Output: 3, CacheRead: 6, CacheWrite: 2, CostUSD: cost(0.25)},
			goclaw.Usage{Input: 30, Output: 5, CacheRead: 11, CacheWrite: 3, CostUSD: cost(0.75)},
		},
		{
			"one unpriced makes the sum unknown",
			goclaw.Usage{Input: 10, CostUSD: cost(0.5)}, goclaw.Usage{Input: 1}, goclaw.Usage{Input: 11},
		},
		{
			"nothing adds no doubt",
			goclaw.Usage{Input: 10, CostUSD: cost(0.5)}, goclaw.Usage{}, goclaw.Usage{Input: 10, CostUSD: cost(0.5)},
		},
		{
			"a price of zero is a price",
			goclaw.Usage{Input: 10, CostUSD: cost(0)}, goclaw.Usage{Output: 4, CostUSD: cost(0)},
			goclaw.Usage{Input: 10, Output: 4, CostUSD: cost(0)},
		},
		{
			"a fee without tokens counts",
			goclaw.Usage{CostUSD: cost(0.5)}, goclaw.Usage{Input: 1, CostUSD: cost(0.25)},
			goclaw.Usage{Input: 1, CostUSD: cost(0.75)},
		},
		{
			"a fee does not price unpriced tokens",
			goclaw.Usage{CostUSD: cost(0.5)}, goclaw.Usage{Input: 1}, goclaw.Usage{Input: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, got := range []goclaw.Usage{tt.a.Add(tt.b), tt.b.Add(tt.a)} {
				if !sameUsage(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
		})
	}
}

func TestUsageAddIsAssociative(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) goclaw.Usage {
		tokens := rapid.Int64Range(0, 3)
		u := goclaw.Usage{Input: tokens.Draw(t, "in"), Output: tokens.Draw(t, "out")}
		if rapid.Bool().Draw(t, "priced") {
			// Quarters add without rounding.
			u.CostUSD = cost(float64(rapid.IntRange(0, 8).Draw(t, "quarters")) / 4)
		}
		return u
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := gen.Draw(t, "a"), gen.Draw(t, "b"), gen.Draw(t, "c")
		if left, right := a.Add(b).Add(c), a.Add(b.Add(c)); !sameUsage(left, right) {
			t.Fatalf("(a+b)+c = %+v, a+(b+c) = %+v", left, right)
		}
	})
}

func sameUsage(a, b goclaw.Usage) bool {
	if (a.CostUSD == nil) != (b.CostUSD == nil) || a.CostUSD != nil && *a.CostUSD != *b.CostUSD {
		return false
	}
	a.CostUSD, b.CostUSD = nil, nil
	return a == b
}

func TestMessage(t *testing.T) {
	m := goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
		{Kind: goclaw.PartThinking, Text: "hm"},
		{Kind: goclaw.PartText, Text: "a"},
		{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: "1", Name: "read"}},
		{Kind: goclaw.PartText, Text: "b"},
		{Kind: goclaw.PartToolCall},
	}}
	if got := m.PlainText(); got != "ab" {
		t.Errorf("PlainText() = %q", got)
	}
	if calls := m.Calls(); len(calls) != 1 || calls[0].Name != "read" {
		t.Errorf("Calls() = %+v", calls)
	}
	if got := goclaw.Text(goclaw.RoleUser, "x").PlainText(); got != "x" {
		t.Errorf("Text: %q", got)
	}
}
