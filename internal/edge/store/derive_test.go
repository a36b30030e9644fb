package store_test

import (
	"testing"

	"goclaw"
	"goclaw/internal/edge/store"
)

func TestSooner(t *testing.T) {
	for _, tt := range []struct{ a, b, want goclaw.Millis }{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 7, 5}, {7, 5, 5}} {
		if got := store.Sooner(tt.a, tt.b); got != tt.want {
			t.Errorf("Sooner(%d, %d) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestShort looks at what the sums of prices do in their last digits, and at
// both scopes being short.
func TestShort(t *testing.T) {
	var spent store.Account
	for range 9 {
		cost := 0.1
		spent.Book(store.Call{Usage: goclaw.Usage{CostUSD: &cost}})
	}
	r := goclaw.Reservation{USD: 0.1, Tree: goclaw.Limits{USD: 1}, Day: goclaw.Limits{USD: 1}}
	if short := store.Short(r, spent, spent); short != nil {
		t.Errorf("ten dimes are more than a dollar: %+v", *short)
	}
	r.USD = 0.2
	short := store.Short(r, spent, spent)
	if short == nil || short.Scope != "tree" || !short.Hopeless() {
		t.Errorf("shortage %+v, want a hopeless one of the tree", short)
	}
	spent.Spent.USD, spent.Held.USD = 0.5, 0.4
	if short := store.Short(r, spent, spent); short == nil || short.Hopeless() {
		t.Errorf("shortage %+v, want one that waiting may help", short)
	}
}
