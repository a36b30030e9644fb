package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goclaw"
)

// UsageTable shows sums of model calls, a line each and one for all, with the
// columns that they were grouped by. What has no known price is said to be
// unknown, never counted as nothing.
func UsageTable(rows []goclaw.UsageRow, by []string) string {
	if len(rows) == 0 {
		return "No model calls on record."
	}
	all := make([]goclaw.UsageRow, 0, len(rows)+1)
	all = append(all, rows...)
	if len(rows) > 1 {
		all = append(all, UsageTotal(rows))
	}
	lost := slices.ContainsFunc(rows, func(r goclaw.UsageRow) bool { return r.Lost > 0 })
	lines := [][]string{usageHead(by, lost)}
	for i, r := range all {
		line := usageNames(r, by)
		if i == len(rows) && len(by) > 0 {
			line = append([]string{"total"}, make([]string, len(by)-1)...)
		}
		line = append(line, fmt.Sprint(r.Calls), fmt.Sprint(r.Usage.Input), share(r.Usage.CacheRead, r.Usage.Input), share(r.Usage.CacheWrite, r.Usage.Input), fmt.Sprint(r.Usage.Output))
		if lost {
			line = append(line, fmt.Sprint(r.Lost))
		}
		lines = append(lines, append(line, Cost(r)))
	}
	text := align(lines, len(by))
	if lost {
		text += "\nLOST are tokens, as reserved, that calls without a record may have cost: their process died first."
	}
	return text
}

func usageHead(by []string, lost bool) []string {
	var head []string
	for _, name := range by {
		head = append(head, strings.ToUpper(name))
	}
	head = append(head, "CALLS", "INPUT", "CACHED", "WRITTEN", "OUTPUT")
	if lost {
		head = append(head, "LOST")
	}
	return append(head, "COST")
}

func usageNames(r goclaw.UsageRow, by []string) []string {
	values := map[string]string{
		"agent": r.Agent, "definition": r.Definition, "model": r.Model,
		"trigger": string(r.Trigger), "day": r.Day,
		"tree": fmt.Sprintf("%.8s", r.Tree), "run": fmt.Sprintf("%.8s", r.Run),
	}
	names := make([]string, len(by))
	for i, name := range by {
		names[i] = cmp.Or(values[name], "-")
	}
	return names
}

// UsageTotal is the sum of rows. A cost that is known counts, also where that
// of other calls is not.
func UsageTotal(rows []goclaw.UsageRow) goclaw.UsageRow {
	var total goclaw.UsageRow
	for _, r := range rows {
		total.Calls += r.Calls
		total.TookMs += r.TookMs
		total.Unpriced += r.Unpriced
		total.Lost += r.Lost
		cost := total.Usage.CostUSD
		if r.Usage.CostUSD != nil {
			sum := *r.Usage.CostUSD
			if cost != nil {
				sum += *cost
			}
			cost = &sum
		}
		total.Usage = total.Usage.Add(r.Usage)
		total.Usage.CostUSD = cost
	}
	return total
}

// SortUsage orders rows by the columns that they were grouped by, days newest
// first and what differs in nothing else by the tokens.
func SortUsage(rows []goclaw.UsageRow, by []string) {
	slices.SortStableFunc(rows, func(a, b goclaw.UsageRow) int {
		x, y := usageNames(a, by), usageNames(b, by)
		for i, name := range by {
			order := cmp.Compare(x[i], y[i])
			if name == "day" {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
}

// Cost words what calls have cost, as far as that is known.
func Cost(r goclaw.UsageRow) string {
	switch {
	case r.Calls == 0 && r.Usage.CostUSD == nil:
		return "-"
	case r.Usage.CostUSD == nil:
		return "unknown"
	case r.Unpriced == 0:
		return dollars(r.Usage.CostUSD)
	}
	return dollars(r.Usage.CostUSD) + " + " + count(int(r.Unpriced), "call", "calls") + " unknown"
}

// dollars never rounds to nothing what is something.
func dollars(usd *float64) string {
	const least = 0.0001
	switch {
	case usd == nil:
		return "unknown"
	case *usd > 0 && *usd < least:
		return fmt.Sprintf("<$%.4f", least)
	case *usd > 0 && *usd < 1:
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}

// share is part of whole in per cent.
func share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", part*100/whole)
}

// align lays lines out in columns: the first ones to the left, numbers to the
// right, the last one as it is.
func align(lines [][]string, left int) string {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for n, line := range lines {
		if n > 0 {
			b.WriteByte('\n')
		}
		for i, cell := range line {
			switch {
			case i == len(line)-1:
				b.WriteString(cell)
			case i < left:
				fmt.Fprintf(&b, "%-*s  ", width[i], cell)
			default:
				fmt.Fprintf(&b, "%*s  ", width[i], cell)
			}
		}
	}
	return b.String()
}
