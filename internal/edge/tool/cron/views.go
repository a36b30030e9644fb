package cron

import (
	"context"
	"strings"
	"time"

	"goclaw"
)

// job is what an agent is told of a job, in the words in which it gives them.
type job struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	At       string            `json:"at,omitempty"`
	Every    string            `json:"every,omitempty"`
	Cron     string            `json:"cron,omitempty"`
	Timezone string            `json:"timezone,omitempty"`
	Next     string            `json:"next,omitempty"`
	Paused   bool              `json:"paused,omitempty"` // or it was due once
	Target   goclaw.CronTarget `json:"target"`
	Deliver  string            `json:"deliver,omitempty"`
	Message  string            `json:"message"`
	Last     *firing           `json:"last,omitempty"`
	Running  string            `json:"runningRunId,omitempty"`
	Failures int               `json:"failuresInARow,omitempty"`
	Error    string            `json:"lastError,omitempty"`
}

// firing is what an agent is told of a due time.
type firing struct {
	Due     string          `json:"due"`
	Manual  bool            `json:"manual,omitempty"`
	Skipped string          `json:"skipped,omitempty"`
	Missed  int             `json:"alsoMissed,omitempty"`
	RunID   string          `json:"runId,omitempty"`
	Status  goclaw.RunState `json:"status,omitempty"`
	Result  string          `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func (t tool) describe(r goclaw.CronReport) job {
	d := job{
		ID: r.ID, Name: r.Name, Cron: r.Schedule.Expr, Timezone: r.Schedule.Zone,
		Next: t.time(r.Next), Paused: !r.Enabled, Target: r.Target, Message: clip(r.Message),
		Running: r.Running, Failures: r.Failures, Error: clip(r.LastError),
	}
	switch r.Schedule.Kind {
	case goclaw.ScheduleAt:
		d.At = t.time(r.Schedule.At)
	case goclaw.ScheduleEvery:
		d.Every = steps(time.Duration(r.Schedule.EveryMs) * time.Millisecond)
	}
	if !r.Session.IsZero() {
		d.Deliver = r.Session.String()
	}
	if r.Last != nil {
		last := t.firing(*r.Last)
		d.Last = &last
	}
	return d
}

// mostFirings bounds how many due times are listed, the newest.
const mostFirings = 20

func (t tool) history(ctx context.Context, id string) (any, error) {
	firings, err := t.crontab.History(ctx, id, mostFirings)
	out := make([]firing, len(firings))
	for i, f := range firings {
		out[i] = t.firing(f)
	}
	return out, err
}

func (t tool) firing(f goclaw.Firing) firing {
	return firing{
		Due: t.time(f.Due), Manual: f.Manual, Skipped: f.Skipped, Missed: f.Missed,
		RunID: f.Run, Status: f.State, Result: clip(f.Result), Error: f.Error,
	}
}

// time is empty for none.
func (t tool) time(m goclaw.Millis) string {
	if m == 0 {
		return ""
	}
	return m.Time().In(t.zone).Format(time.RFC3339)
}

// steps writes a duration without the parts that are zero: 2h, 1h30m.
func steps(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func clip(s string) string {
	const most = 300
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
