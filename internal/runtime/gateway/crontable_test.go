package gateway_test

import (
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		90 * time.Second: "1m30s", 30 * time.Minute: "30m", 90 * time.Minute: "1h30m", 24 * time.Hour: "24h", 48 * time.Hour: "2d", 2400 * time.Hour: "100d",
		49 * time.Hour: "49h", time.Second: "1s",
	} {
		if got := gateway.Brief(d); got != want {
			t.Errorf("%v is %s; want %s", d, got, want)
		}
	}
}

// What a job is shown to do next, and how it fares.
func TestCronTable(t *testing.T) {
	at := goclaw.At(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	once := goclaw.Schedule{Kind: goclaw.ScheduleAt, At: at}
	report := func(s goclaw.Schedule, enabled bool, next goclaw.Millis, last *goclaw.Firing, failures int) goclaw.CronReport {
		return goclaw.CronReport{
			CronJob: goclaw.CronJob{ID: "tea", Name: "Tea", Schedule: s, Enabled: enabled, Next: next}, Last: last, Failures: failures, LastError: "no\nnetwork",
		}
	}
	ran := func(at goclaw.Millis, state goclaw.RunState) *goclaw.Firing {
		return &goclaw.Firing{Due: at, At: at, Run: "r", State: state}
	}
	for what, c := range map[string]struct {
		job  goclaw.CronReport
		want []string
	}{
		"waits":             {report(once, true, at, nil, 0), []string{"once, Sun 2026-03-01 09:00:00", "Sun 2026-03-01 09:00:00 ", " - "}},
		"is paused":         {report(once, false, 0, nil, 0), []string{" paused "}},
		"was due":           {report(once, false, 0, ran(at+5, goclaw.StateCompleted), 0), []string{" never again ", " completed "}},
		"was tried before":  {report(once, false, 0, ran(at-5, goclaw.StateCompleted), 0), []string{" paused "}},
		"is paused for now": {report(goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 1000}, false, 0, ran(at, goclaw.StateCompleted), 0), []string{"every 1s ", " paused "}},
		"failed":            {report(once, false, 0, ran(at, goclaw.StateFailed), 1), []string{"\n                      failed once: no network"}},
		"failed again":      {report(once, true, at, ran(at, goclaw.StateFailed), 3), []string{"failed 3 times in a row: no network"}},
	} {
		table := gateway.CronTable([]goclaw.CronReport{c.job}, time.UTC)
		for _, want := range c.want {
			if !strings.Contains(table, want) {
				t.Errorf("a job that %s:\n%s\nwant %q", what, table, want)
			}
		}
	}
	j := report(once, true, at, &goclaw.Firing{Skipped: "it failed; it goes on at 9"}, 2)
	j.Budget = goclaw.Limits{USD: 0.05, Tokens: 5000, Steps: 3, Seconds: 90}
	if text := gateway.CronDetails(j, time.UTC); !strings.Contains(text, "\nbudget     $0.05, 5000 tokens, 3 model calls, 1m30s\n") || !strings.Contains(text, "\nfailed     2 times in a row\nerror      no network\nskipped    it failed; it goes on at 9\n") {
		t.Error(text)
	}
}
