package budget

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"goclaw"
)

//go:embed prices.json
var builtIn []byte

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`

	// Long, if set, is the price of all tokens of a call whose prompt has more
	// than Long.Over tokens.
	Long *Long `json:"long,omitempty"`
}

// Long is the price of a call with a long prompt.
type Long struct {
	Over       int64   `json:"over"` // tokens of the prompt
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

func (l Long) price() Price {
	return Price{Input: l.Input, Output: l.Output, CacheRead: l.CacheRead, CacheWrite: l.CacheWrite}
}

const million = 1e6

// Cost is what one call with usage u costs, in USD. It is not for sums of
// calls: whether a prompt was long is seen by the call.
func (p Price) Cost(u goclaw.Usage) float64 {
	if p.Long != nil && u.Input > p.Long.Over {
		p = p.Long.price()
	}
	plain := max(0, u.Input-u.CacheRead-u.CacheWrite)
	return (float64(plain)*p.Input + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite + float64(u.Output)*p.Output) / million
}

// Most is the most that a call of up to that many tokens can cost, in USD:
// however its input is cached, and whichever price its length calls for.
func (p Price) Most(input, output int64) float64 {
	dearest := max(p.Input, p.CacheRead, p.CacheWrite)
	most := (float64(input)*dearest + float64(output)*p.Output) / million
	if p.Long != nil && input > p.Long.Over {
		most = max(most, p.Long.price().Most(input, output))
	}
	return most
}

// Table knows prices. The zero Table knows none. It never changes: it is safe
// for concurrent use.
type Table struct {
	overrides, builtIn map[string]Price
}

// New makes the table of the built-in list prices and of overrides, which go
// before them. A key is provider/model, or provider/prefix* for all models of
// the provider whose names begin so.
func New(overrides map[string]Price) (Table, error) {
	var list struct {
		AsOf   string           `json:"asOf"`
		Note   string           `json:"note"`
		Prices map[string]Price `json:"usdPerMillionTokens"`
	}
	dec := json.NewDecoder(bytes.NewReader(builtIn))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return Table{}, fmt.Errorf("read the built-in prices: %w", err)
	}
	for _, prices := range []map[string]Price{list.Prices, overrides} {
		for pattern, p := range prices {
			if err := check(pattern, p); err != nil {
				return Table{}, err
			}
		}
	}
	return Table{overrides: overrides, builtIn: list.Prices}, nil
}

func check(pattern string, p Price) error {
	if !isPattern(pattern) {
		return fmt.Errorf("price of %q: write provider/model, or provider/prefix* for all models that begin so", pattern)
	}
	numbers := []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite}
	if p.Long != nil {
		numbers = append(numbers, p.Long.Input, p.Long.Output, p.Long.CacheRead, p.Long.CacheWrite)
	}
	for _, n := range numbers {
		if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("price of %q: %v is no price; use a number of USD per million tokens, 0 or more", pattern, n)
		}
	}
	return nil
}

// isPattern reports whether s is provider/model, or provider/prefix*.
func isPattern(s string) bool {
	provider, model, _ := strings.Cut(s, "/")
	return provider != "" && model != "" && !strings.Contains(strings.TrimSuffix(s, "*"), "*")
}

// Price finds the price of provider/model: the override that matches most of
// the name, else the built-in one. ok is false if it is not known.
func (t Table) Price(model string) (p Price, ok bool) {
	if p, ok = match(t.overrides, model); ok {
		return p, true
	}
	return match(t.builtIn, model)
}

// match finds what a table says of a model: the entry of its very name, else
// the longest prefix that ends in *.
func match[T any](table map[string]T, model string) (T, bool) {
	if v, ok := table[model]; ok && !strings.HasSuffix(model, "*") {
		return v, true
	}
	best := ""
	for pattern := range table {
		prefix, wild := strings.CutSuffix(pattern, "*")
		if wild && strings.HasPrefix(model, prefix) && len(pattern) > len(best) {
			best = pattern
		}
	}
	v, ok := table[best]
	return v, ok
}
