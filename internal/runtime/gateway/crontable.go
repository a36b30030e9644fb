package gateway

import (
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// moment is how due times are written; in the zone of the value.
const moment = "Mon 2006-01-02 15:04:05"

// Due says when a schedule is due.
func Due(s goclaw.Schedule, zone *time.Location) string {
	switch s.Kind {
	case goclaw.ScheduleAt:
		return "once, " + s.At.Time().In(zone).Format(moment)
	case goclaw.ScheduleEvery:
		return "every " + Brief(time.Duration(s.EveryMs)*time.Millisecond)
	}
	if s.Zone != "" {
		return s.Expr + " (" + s.Zone + ")"
	}
	return s.Expr
}

// Brief writes a duration as people do: 30m and not 30m0s, 100d and not 2400h.
func Brief(d time.Duration) string {
	if day := 24 * time.Hour; d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// CronTable lists jobs, a line each; times are shown in zone.
func CronTable(jobs []goclaw.CronReport, zone *time.Location) string {
	if len(jobs) == 0 {
		return "No jobs. goclaw cron add adds one."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s  %-32s %-24s %-10s %s", "ID", "DUE", "NEXT", "LAST", "NAME")
	for _, j := range jobs {
		fmt.Fprintf(&b, "\n%-20s  %-32s %-24s %-10s %s", j.ID, Due(j.Schedule, zone), nextDue(j, zone), lastly(j), oneLine(j.Name))
		if j.Failures > 0 {
			fmt.Fprintf(&b, "\n%-20s  failed %s: %s", "", inARow(j.Failures), oneLine(j.LastError))
		}
	}
	return b.String()
}

func inARow(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

func nextDue(j goclaw.CronReport, zone *time.Location) string {
	switch {
	case !j.Enabled && j.Schedule.Kind == goclaw.ScheduleAt && j.Last != nil && j.Last.At >= j.Schedule.At:
		return "never again" // it was due once
	case !j.Enabled:
		return "paused"
	case j.Next == 0:
		return "never again"
	}
	return j.Next.Time().In(zone).Format(moment)
}

func lastly(j goclaw.CronReport) string {
	switch {
	case j.Running != "":
		return "running"
	case j.Last == nil:
		return "-"
	case j.Last.Skipped != "":
		return "skipped"
	}
	return string(j.Last.State)
}

// CronDetails shows all of a job.
func CronDetails(j goclaw.CronReport, zone *time.Location) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	line("id", j.ID)
	line("name", oneLine(j.Name))
	line("agent", j.Agent)
	line("due", Due(j.Schedule, zone))
	line("next", nextDue(j, zone))
	for _, at := range j.Upcoming[min(1, len(j.Upcoming)):] {
		line("", goclaw.Millis(at).Time().In(zone).Format(moment))
	}
	line("target", string(j.Target))
	line("session", j.Session.String())
	line("agent file", j.Definition)
	line("model", j.Model)
	line("thinking", j.Thinking)
	if j.TimeoutSeconds != nil {
		line("timeout", (time.Duration(*j.TimeoutSeconds) * time.Second).String())
	}
	line("budget", budgeted(j.Budget))
	line("missed", string(j.Missed))
	line("last", lastly(j))
	if j.Failures > 0 {
		line("failed", inARow(j.Failures))
		line("error", oneLine(j.LastError))
	}
	if j.Last != nil {
		line("skipped", oneLine(j.Last.Skipped))
	}
	b.WriteString("\n" + j.Message)
	return b.String()
}

// budgeted writes what one firing may spend.
func budgeted(l goclaw.Limits) string {
	var parts []string
	if l.USD > 0 {
		parts = append(parts, fmt.Sprintf("$%g", l.USD))
	}
	if l.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", l.Tokens))
	}
	if l.Steps > 0 {
		parts = append(parts, fmt.Sprintf("%d model calls", l.Steps))
	}
	if l.Seconds > 0 {
		parts = append(parts, (time.Duration(l.Seconds) * time.Second).String())
	}
	return strings.Join(parts, ", ")
}

// FiringTable lists what became of due times, a line each.
func FiringTable(firings []goclaw.Firing, zone *time.Location) string {
	if len(firings) == 0 {
		return "It was not due yet."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %-8s  %-10s %s", "DUE", "RUN", "STATUS", "")
	for _, f := range firings {
		state, what := string(f.State), oneLine(f.Error)
		if f.Run == "" {
			state, what = "skipped", f.Skipped
		}
		if f.Missed > 0 {
			what = strings.TrimSpace(fmt.Sprintf("%s (makes up for %d more)", what, f.Missed))
		}
		if f.Manual {
			what = strings.TrimSpace("by hand " + what)
		}
		fmt.Fprintf(&b, "\n%-24s %-8.8s  %-10s %s", f.Due.Time().In(zone).Format(moment), f.Run, state, what)
	}
	return b.String()
}
