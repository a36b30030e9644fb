package bench

import (
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var s sample
	if got := s.median(); got != 0 {
		t.Errorf("median of nothing is %s", got)
	}
	for i := range 100 {
		s = append(s, time.Duration(100-i)*time.Millisecond) // 100 … 1
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := s.quantile(q); got != want*time.Millisecond {
			t.Errorf("quantile %v is %s; want %d ms", q, got, want)
		}
	}
	if s[0] != 100*time.Millisecond {
		t.Error("the sample was sorted in place")
	}
}

func TestValues(t *testing.T) {
	for want, f := range map[string]Figure{
		"41.8 MB":                    {Values: []Value{count("", 41.77, "MB")}},
		"p50 0.25 · p99 1.50 ms":     {Values: []Value{ms("p50", 250*time.Microsecond), ms("p99", 1500*time.Microsecond)}},
		"RSS 171 MB · per worker 90": {Values: []Value{count("RSS", 171.2, "MB"), count("per worker", 90, "")}},
		"not measured":               {Missing: "no /proc"},
		"9421 bytes · tokens 2356":   {Values: []Value{count("", 9421, "bytes"), count("tokens", 2356, "")}},
		"min 0 · max 12345 ms":       {Values: []Value{ms("min", 0), ms("max", 12345*time.Millisecond)}},
		"runs 522 /s · its own 2 ms": {Values: []Value{count("runs", 521.9, "/s"), count("its own", 2, "ms")}},
	} {
		if got := f.values(); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	values := []Value{count("median", 5, "ms")}
	for name, test := range map[string]struct {
		aim  *Aim
		kept bool
		met  bool
	}{
		"none":         {nil, false, false},
		"below":        {&Aim{Label: "median", Bound: 6}, true, true},
		"at":           {&Aim{Label: "median", Bound: 5}, true, true},
		"above":        {&Aim{Label: "median", Bound: 4}, true, false},
		"at least":     {&Aim{Label: "median", Bound: 4, Least: true}, true, true},
		"too few":      {&Aim{Label: "median", Bound: 6, Least: true}, true, false},
		"not measured": {&Aim{Label: "p50", Bound: 6}, false, false},
	} {
		got := Figure{Values: values, Aim: test.aim}.judge().Aim
		if (got != nil) != test.kept || got != nil && got.Met != test.met {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestText(t *testing.T) {
	r := Report{Machine: "m", Build: "b", Figures: []Figure{
		Figure{Name: "First", Values: []Value{count("", 1, "MB")}, Means: "This.", How: "So.", Aim: &Aim{Bound: 2, Words: "≤ 2 MB"}}.judge(),
		{Name: "Second one", Missing: "no /proc", Means: strings.Repeat("word ", 30)},
	}}
	want := `goclaw bench on m
build: b

 1  First       1 MB          aim ≤ 2 MB: met
 2  Second one  not measured

What the lines mean

 1  First
    means:    This.
    measured: So.

 2  Second one
    means:    ` + strings.TrimRight(strings.Repeat("word ", 17), " ") + `
              ` + strings.TrimRight(strings.Repeat("word ", 13), " ") + `
    not measured: no /proc
`
	if got := r.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
