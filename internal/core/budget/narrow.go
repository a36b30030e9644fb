package budget

import "goclaw"

// Narrowed is the smaller of two limits, field by field; a zero field bounds
// nothing.
func Narrowed(a, b goclaw.Limits) goclaw.Limits {
	return goclaw.Limits{
		Tokens: Lower(a.Tokens, b.Tokens), USD: Lower(a.USD, b.USD),
		Steps: Lower(a.Steps, b.Steps), Seconds: Lower(a.Seconds, b.Seconds),
	}
}

// Lower is the lower of two bounds; 0 is none.
func Lower[N int64 | float64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
