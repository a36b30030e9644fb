package budget

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw"
)

func Example() {
	prices, err := New(map[string]Price{"local/*": {Input: 0.1, Output: 0.4, CacheRead: 0.1, CacheWrite: 0.1}})
	if err != nil {
		panic(err)
	}
	price, _ := prices.Price("local/qwen")
	call, refusal := Plan(Ask{
		Model: "local/qwen", Price: &price, Input: 954,
		Budget: goclaw.Budget{Run: goclaw.Limits{Tokens: 5000}}, Spent: Spent{Tokens: 3000},
	})
	fmt.Println(call.MaxTokens, call.Tokens, refusal)
	// Output: 1046 2000
}

func TestBuiltInPrices(t *testing.T) {
	table, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, p := range table.builtIn {
		if strings.HasPrefix(pattern, "demo/") {
			if p != (Price{}) {
				t.Errorf("%s costs %+v", pattern, p)
			}
			continue
		}
		if p.Input <= 0 || p.Output < p.Input || p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input {
			t.Errorf("%s: %+v", pattern, p)
		}
		if l := p.Long; l != nil && (l.Over < 100_000 || l.Input <= p.Input || l.Output <= p.Output || l.CacheRead <= p.CacheRead || l.CacheWrite < l.Input) {
			t.Errorf("%s: long %+v", pattern, *l)
		}
	}
	// The defaults of the configuration have a price.
	for _, model := range []string{"anthropic/claude-sonnet-5-5", "openai/gpt-5.5", "openai/gpt-5.5-2026-04-23", "demo/offline"} {
		if _, ok := table.Price(model); !ok {
			t.Errorf("%s has no price", model)
		}
	}
	for _, model := range []string{"anthropic/claude-sonnet-9", "anthropic/claude-opus-5-2", "openai/gpt-5.5-pro", "ollama/llama3", "claude-sonnet-5-5", ""} {
		if p, ok := table.Price(model); ok {
			t.Errorf("%s costs %+v", model, p)
		}
	}
	if _, ok := (Table{}).Price("demo/offline"); ok {
		t.Error("the zero table knows a price")
	}
	// The header is there for those who read the file.
	var head struct{ AsOf, Note string }
	if err := json.Unmarshal(builtIn, &head); err != nil || head.AsOf == "" || head.Note == "" {
		t.Errorf("%+v, %v", head, err)
	}
}

func TestTheLongestMatchWins(t *testing.T) {
	at := func(n float64) Price { return Price{Input: n, Output: n, CacheRead: n, CacheWrite: n} }
	table, err := New(map[string]Price{
		"p/*": at(1), "p/big*": at(2), "p/bigger*": at(3), "p/big": at(4), "p/bigger-2": at(5),
		"openai/gpt*": at(6), "demo/*": at(7),
	})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]float64{
		"p/small": 1, "p/big-1": 2, "p/bigger": 3, "p/bigger-1": 3, "p/big": 4, "p/bigger-2": 5, "p/": 1,
		"openai/gpt-5.5": 6, // before the built-in one, though that matches more
		"demo/offline":   7,
	} {
		if p, ok := table.Price(model); !ok || p.Input != want {
			t.Errorf("%s: %+v, %v; want %v", model, p, ok, want)
		}
	}
	if _, ok := table.Price("q/big"); ok {
		t.Error("q/big has a price")
	}
}

func TestBadOverrides(t *testing.T) {
	for pattern, p := range map[string]Price{
		"gpt": {}, "/gpt": {}, "p/": {}, "p/a*b": {}, "*/x": {}, "p/**": {},
		"p/x": {Input: -1}, "p/y": {Output: math.NaN()}, "p/z": {CacheRead: math.Inf(1)},
		"p/l": {Long: &Long{CacheWrite: -1}},
	} {
		if _, err := New(map[string]Price{pattern: p}); err == nil || !strings.Contains(err.Error(), pattern) {
			t.Errorf("%s %+v: %v", pattern, p, err)
		}
	}
}

func TestCost(t *testing.T) {
	p := Price{
		Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5,
		Long: &Long{Over: 1000, Input: 4, Output: 15, CacheRead: 0.4, CacheWrite: 5},
	}
	for _, tt := range []struct {
		usage goclaw.Usage
		want  float64
	}{
		{goclaw.Usage{}, 0},
		{goclaw.Usage{Input: 1000, Output: 100}, 0.003},
		{goclaw.Usage{Input: 1000, CacheRead: 600, CacheWrite: 300, Output: 100}, (100*2 + 600*0.2 + 300*2.5 + 100*10) / 1e6},
		{goclaw.Usage{Input: 1001, CacheRead: 1000, Output: 100}, (4 + 1000*0.4 + 100*15) / 1e6},
		{goclaw.Usage{Input: 10, CacheRead: 20}, 20 * 0.2 / 1e6}, // a server that counts the cached apart
	} {
		if got := p.Cost(tt.usage); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%+v: %v, want %v", tt.usage, got, tt.want)
		}
	}
}

func anyPrice() *rapid.Generator[Price] {
	usd := rapid.Float64Range(0, 200)
	return rapid.Custom(func(t *rapid.T) Price {
		p := Price{Input: usd.Draw(t, "input"), Output: usd.Draw(t, "output"), CacheRead: usd.Draw(t, "read"), CacheWrite: usd.Draw(t, "write")}
		if rapid.Bool().Draw(t, "tiered") {
			p.Long = &Long{
				Over: rapid.Int64Range(0, 100_000).Draw(t, "over"), Input: usd.Draw(t, "long input"), Output: usd.Draw(t, "long output"),
				CacheRead: usd.Draw(t, "long read"), CacheWrite: usd.Draw(t, "long write"),
			}
		}
		return p
	})
}

func TestNothingCostsMoreThanMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrice().Draw(t, "price")
		input, output := rapid.Int64Range(0, 200_000).Draw(t, "input"), rapid.Int64Range(0, 200_000).Draw(t, "output")
		u := goclaw.Usage{Input: rapid.Int64Range(0, input).Draw(t, "used"), Output: rapid.Int64Range(0, output).Draw(t, "written")}
		u.CacheRead = rapid.Int64Range(0, u.Input).Draw(t, "read")
		u.CacheWrite = rapid.Int64Range(0, u.Input-u.CacheRead).Draw(t, "write")
		cost, most := p.Cost(u), p.Most(input, output)
		if cost > most*(1+1e-12) {
			t.Fatalf("%+v costs %v, more than %v", u, cost, most)
		}
	})
}
