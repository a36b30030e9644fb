package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Report is what Run measured.
type Report struct {
	Machine string   `json:"machine"`
	Build   string   `json:"build"`
	Quick   bool     `json:"quick"`
	Load    float64  `json:"load"` // the machine's load average when it began
	Figures []Figure `json:"figures"`
}

// Figure is one measured thing.
type Figure struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Values []Value `json:"values"`
	Means  string  `json:"means"`
	How    string  `json:"how"`
	Aim    *Aim    `json:"aim,omitempty"`

	// Elsewhere quotes what was measured of other programs, not by this one.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Missing says why there are no values.
	Missing string `json:"missing,omitempty"`
}

// Value is a number with its unit; Label tells it from its neighbours.
type Value struct {
	Label string  `json:"label,omitempty"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Aim is a bound for one of a figure's values.
type Aim struct {
	Label string  `json:"label"` // of the value
	Bound float64 `json:"bound"`
	Least bool    `json:"least,omitempty"` // the bound is a lower one
	Words string  `json:"words"`
	Met   bool    `json:"met"`
}

// judge sets whether the aim is met.
func (f Figure) judge() Figure {
	if f.Aim == nil {
		return f
	}
	i := slices.IndexFunc(f.Values, func(v Value) bool { return v.Label == f.Aim.Label })
	if i < 0 {
		f.Aim = nil
		return f
	}
	a := *f.Aim
	a.Met = f.Values[i].Value <= a.Bound
	if a.Least {
		a.Met = f.Values[i].Value >= a.Bound
	}
	f.Aim = &a
	return f
}

// elsewhere labels a figure of other programs.
func elsewhere(what string) string {
	return what + " (measured elsewhere: by the author of the issue that set the aims, on the same kind of machine)"
}

func ms(label string, d time.Duration) Value {
	return Value{label, float64(d.Microseconds()) / 1000, "ms"}
}

func us(label string, d time.Duration) Value {
	return Value{label, float64(d.Nanoseconds()) / 1000, "µs"}
}

func count(label string, n float64, unit string) Value { return Value{label, n, unit} }

// number is short, and keeps three digits that matter.
func number(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	if math.Abs(v) >= 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// values joins the values; a unit that they share is written once.
func (f Figure) values() string {
	if f.Missing != "" {
		return "not measured"
	}
	shared := !slices.ContainsFunc(f.Values, func(v Value) bool { return v.Unit != f.Values[0].Unit })
	parts := make([]string, len(f.Values))
	for i, v := range f.Values {
		text := number(v.Value)
		if v.Label != "" {
			text = v.Label + " " + text
		}
		if (!shared || i == len(f.Values)-1) && v.Unit != "" {
			text += " " + v.Unit
		}
		parts[i] = text
	}
	return strings.Join(parts, " · ")
}

// Text is the report for people: the table, then what each line means.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goclaw bench on %s\nbuild: %s\n", r.Machine, r.Build)
	if r.Quick {
		b.WriteString("quick: few repetitions, for a check that it works; use plain goclaw bench for figures to quote\n")
	}
	if r.Load > 0.5 {
		fmt.Fprintf(&b, "load average before: %.1f. The machine was busy with something else: times are longer than they need be\n", r.Load)
	}
	b.WriteString("\n")
	name, width := 0, 0
	for _, f := range r.Figures {
		name, width = max(name, len([]rune(f.Name))), max(width, min(64, len([]rune(f.values()))))
	}
	for i, f := range r.Figures {
		aim := ""
		if f.Aim != nil {
			aim = "aim " + f.Aim.Words + ": "
			if f.Aim.Met {
				aim += "met"
			} else {
				aim += "MISSED"
			}
		}
		line := fmt.Sprintf("%2d  %s  %s  %s", i+1, pad(f.Name, name), pad(f.values(), width), aim)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\nWhat the lines mean\n")
	for i, f := range r.Figures {
		fmt.Fprintf(&b, "\n%2d  %s\n", i+1, f.Name)
		for _, note := range []struct{ name, text string }{
			{"means", f.Means}, {"measured", f.How}, {"not measured", f.Missing}, {"compare", f.Elsewhere},
		} {
			if note.text != "" {
				b.WriteString(wrap(fmt.Sprintf("    %-9s ", note.name+":"), note.text, 100))
			}
		}
	}
	return b.String()
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-len([]rune(s))))
}

// wrap breaks text into lines of at most width, all indented as the head is.
func wrap(head, text string, width int) string {
	var b strings.Builder
	indent := strings.Repeat(" ", len(head))
	line := head
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len([]rune(line))+1+len([]rune(word)) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
	return b.String()
}

// sample is a set of durations.
type sample []time.Duration

// quantile returns the value below which the share q of the sample lies.
func (s sample) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (s sample) median() time.Duration { return s.quantile(0.5) }

// spread is the sample's extremes around its median.
func (s sample) spread() []Value {
	return []Value{ms("min", slices.Min(s)), ms("median", s.median()), ms("max", slices.Max(s))}
}

// tail is the sample's median and its last hundredth.
func (s sample) tail() []Value {
	return []Value{ms("p50", s.median()), ms("p99", s.quantile(0.99))}
}
