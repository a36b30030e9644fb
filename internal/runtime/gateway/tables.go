package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw"
)

// RunTable lists runs, a line each. A run that follows the one which spawned
// it is indented below it (see Tree).
func RunTable(runs []goclaw.RunInfo, at time.Time) string {
	if len(runs) == 0 {
		return "No workers."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s  %-11s %-20s %8s %14s  %s", "ID", "STATUS", "LABEL", "TIME", "TOKENS", "MODEL")
	below := map[string]int{}
	for _, r := range runs {
		indent := 0
		if n, ok := below[r.Parent]; ok {
			indent = n + 1
		}
		below[r.RunID] = indent
		fmt.Fprintf(&b, "\n%-8.8s  %-11s %-20.20s %8s %14s  %s", r.RunID, status(r), strings.Repeat("  ", indent)+oneLine(r.Label),
			elapsed(r, at), fmt.Sprintf("%d in %d out", r.Usage.Input, r.Usage.Output), r.Model)
		if !r.Status.Ended() {
			for _, note := range []string{Waits(r.WaitsFor), Recovered(r.Recovery)} {
				if note != "" {
					b.WriteString(" · " + note)
				}
			}
		}
	}
	return b.String()
}

// Tree puts runs, which come newest first, in the order of their tree: each is
// followed by those that it spawned, oldest first.
func Tree(runs []goclaw.RunInfo) []goclaw.RunInfo {
	known := map[string]bool{}
	for _, r := range runs {
		known[r.RunID] = true
	}
	children := map[string][]goclaw.RunInfo{}
	for _, r := range slices.Backward(runs) {
		if known[r.Parent] {
			children[r.Parent] = append(children[r.Parent], r)
		}
	}
	ordered := make([]goclaw.RunInfo, 0, len(runs))
	var add func(goclaw.RunInfo)
	add = func(r goclaw.RunInfo) {
		ordered = append(ordered, r)
		for _, c := range children[r.RunID] {
			add(c)
		}
	}
	for _, r := range runs {
		if !known[r.Parent] {
			add(r)
		}
	}
	return ordered
}

func status(r goclaw.RunInfo) string {
	if r.Position > 0 {
		return fmt.Sprintf("%s #%d", r.Status, r.Position)
	}
	return string(r.Status)
}

// Waits says what a waiting run waits for; "" if it does not wait.
func Waits(why goclaw.WaitReason) string {
	switch why {
	case goclaw.WaitWorkers:
		return "waiting for its workers"
	case goclaw.WaitPerson:
		return "waiting for you: resume or cancel it"
	}
	return ""
}

// Recovered tells of a run's takeovers; "" if there were none.
func Recovered(r *goclaw.Recovery) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("resumed %dx, last at step %d", r.Times, r.Step)
	if r.Planned {
		text = fmt.Sprintf("handed over at step %d", r.Step)
	}
	if len(r.Uncertain) > 0 {
		text += "; outcome of " + strings.Join(r.Uncertain, ", ") + " unknown"
	}
	return text
}

// RunDetails describes one run at its place in the queue (0: not in it), and
// what it left.
func RunDetails(r goclaw.Run, position int, left []goclaw.Artifact, at time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	info := r.Info()
	info.Position = position
	line("run", "%s", r.ID)
	line("label", "%s", r.Name())
	line("status", "%s", status(info))
	if text := Waits(r.WaitsFor); text != "" {
		if r.WakeAt != 0 {
			text += ", until " + clock(r.WakeAt) + " at the latest"
		}
		line("waits", "%s", text)
	}
	if text := Recovered(r.Recovery); text != "" {
		line("recovery", "%s (%s)", text, clock(r.Recovery.At))
	}
	line("session", "%s", r.Session)
	if !r.Requester.IsZero() {
		line("requester", "%s", r.Requester)
	}
	line("trigger", "%s, depth %d, claimed %s", r.Trigger, r.Depth, count(int(r.Epoch), "time", "times"))
	if r.Profile.Definition != "" {
		line("definition", "%s (body sha256 %.12s)", r.Profile.Definition, r.Profile.DefinitionSHA)
	}
	if r.Root != "" && r.Root != r.ID {
		line("tree", "%s", r.Root)
	}
	line("model", "%s, thinking %s", r.Profile.Model, r.Profile.Thinking)
	line("tools", "%s", strings.Join(r.Profile.Tools, " "))
	line("created", "%s", clock(r.CreatedAt))
	line("time", "%s", elapsed(info, at))
	line("tokens", "%d in (%d from cache), %d out", r.Usage.Input, r.Usage.CacheRead, r.Usage.Output)
	if !r.Usage.IsZero() {
		line("cost", "%s", dollars(r.Usage.CostUSD))
	}
	for _, a := range left {
		line("left", "%s, %d bytes", oneLine(a.Handle()), a.Size)
	}
	line("task", "%s", r.Task)
	if r.Error != "" {
		line("error", "%s", r.Error)
	}
	if r.Result != "" {
		line("result", "\n%s", r.Result)
	}
	return strings.TrimRight(b.String(), "\n")
}

// ParkedTable lists parked deliveries, a line each.
func ParkedTable(parked []goclaw.Parked) string {
	if len(parked) == 0 {
		return "Nothing is parked."
	}
	n := distinct(parked)
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s  %-12s %-19s %5s  %s", n, "ID", "KIND", "SINCE", "TRIES", "FOR")
	for _, p := range parked {
		fmt.Fprintf(&b, "\n%-*.*s  %-12s %-19s %5d  %s: %s", n, n, p.ID, p.Kind, clock(p.ParkedAt), p.Attempts, p.Session, clip(p.Text))
		if p.Error != "" {
			fmt.Fprintf(&b, "\n%*s  %s", n, "", clip(p.Error))
		}
	}
	return b.String()
}

// distinct is how many characters of their ids tell deliveries apart, 8 at
// least.
func distinct(parked []goclaw.Parked) int {
	for n := 8; ; n++ {
		seen, short := map[string]bool{}, true
		for _, p := range parked {
			id := fmt.Sprintf("%.*s", n, p.ID)
			short = short && (!seen[id] || id == p.ID)
			seen[id] = true
		}
		if short {
			return n
		}
	}
}

// elapsed is how long the run has taken by now.
func elapsed(r goclaw.RunInfo, at time.Time) string {
	switch {
	case r.StartedAt == 0:
		return "-"
	case r.FinishedAt != 0:
		return (time.Duration(r.DurationMs) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
	return at.Sub(r.StartedAt.Time()).Round(100 * time.Millisecond).String()
}

func clock(at goclaw.Millis) string { return at.Time().Local().Format(time.DateTime) }

func clip(s string) string {
	const most = 100
	s = oneLine(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
