package schedule_test

import (
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/schedule"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func hourly(missed goclaw.MissedPolicy) goclaw.CronJob {
	return goclaw.CronJob{
		ID: "j", Enabled: true, Missed: missed, Next: goclaw.At(noon),
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: "0 * * * *"},
	}
}

func TestDecide(t *testing.T) {
	once := hourly(goclaw.MissedOnce)
	once.Schedule = goclaw.Schedule{Kind: goclaw.ScheduleAt, At: once.Next}
	onceSkip := once
	onceSkip.Missed = goclaw.MissedSkip
	paused := hourly(goclaw.MissedOnce)
	paused.Enabled = false
	failed := func(n int, at time.Duration) schedule.Record {
		return schedule.Record{Failures: n, Failed: noon.Add(at)}
	}
	running := schedule.Record{Running: "r"}
	in := func(d time.Duration) goclaw.Millis { return goclaw.At(noon.Add(d)) }
	for _, c := range []struct {
		what   string
		job    goclaw.CronJob
		record schedule.Record
		after  time.Duration // noon, when it is due
		held   bool
		want   schedule.Decision
	}{
		{"too early", hourly("once"), running, -time.Second, false, schedule.Decision{Act: schedule.Wait, Until: noon}},
		{"paused", paused, running, time.Hour, false, schedule.Decision{Act: schedule.Wait}},
		{"on time", hourly("once"), schedule.Record{}, 0, false, schedule.Decision{Act: schedule.Fire, Next: in(time.Hour), Enabled: true}},
		{"a little late", hourly("skip"), schedule.Record{}, 5 * time.Minute, false, schedule.Decision{Act: schedule.Fire, Next: in(time.Hour), Enabled: true}},
		{"missed, once", hourly("once"), schedule.Record{}, 210 * time.Minute, false, schedule.Decision{Act: schedule.Fire, Missed: 3, Next: in(4 * time.Hour), Enabled: true}},
		{"missed, skipped", hourly("skip"), schedule.Record{}, 210 * time.Minute, false, schedule.Decision{Act: schedule.Skip, Why: "4 due times were missed: nothing could run then", Missed: 3, Next: in(4 * time.Hour), Enabled: true}},
		{"missed, but the last is on time", hourly("skip"), schedule.Record{}, 181 * time.Minute, false, schedule.Decision{Act: schedule.Skip, Why: "3 due times were missed: nothing could run then", Missed: 2, Next: in(3 * time.Hour), Enabled: true}},
		{"one missed", hourly("skip"), schedule.Record{}, 30 * time.Minute, false, schedule.Decision{Act: schedule.Skip, Why: "missed: nothing could run then", Next: in(time.Hour), Enabled: true}},
		{"it had to wait", hourly("skip"), schedule.Record{}, 90 * time.Minute, true, schedule.Decision{Act: schedule.Fire, Missed: 1, Next: in(2 * time.Hour), Enabled: true}},
		{"overlap", hourly("once"), running, 90 * time.Minute, false, schedule.Decision{Act: schedule.Skip, Why: "the run before has not ended", Missed: 1, Next: in(2 * time.Hour), Enabled: true}},
		{"failed once", hourly("once"), failed(1, -10*time.Second), time.Second, false, schedule.Decision{Act: schedule.Skip, Why: "it failed; it goes on at 2026-03-01 12:00:20 UTC", Next: in(time.Hour), Enabled: true}},
		{"failed long ago", hourly("once"), failed(9, -time.Hour), 0, false, schedule.Decision{Act: schedule.Fire, Next: in(time.Hour), Enabled: true}},
		{"failed often", hourly("once"), failed(9, -time.Minute), 0, false, schedule.Decision{Act: schedule.Skip, Why: "it failed 9 times in a row; it goes on at 2026-03-01 12:59:00 UTC", Next: in(time.Hour), Enabled: true}},
		{"failed in the future", hourly("once"), failed(5, 9000*time.Hour), 0, false, schedule.Decision{Act: schedule.Skip, Why: "it failed 5 times in a row; it goes on at 2026-03-01 13:00:00 UTC", Next: in(time.Hour), Enabled: true}},
		{"once", once, failed(9, 0), 0, false, schedule.Decision{Act: schedule.Fire}},
		{"once, late", once, schedule.Record{}, 9 * time.Hour, false, schedule.Decision{Act: schedule.Fire}},
		{"once, missed", onceSkip, schedule.Record{}, 9 * time.Hour, false, schedule.Decision{Act: schedule.Skip, Why: "missed: nothing could run then"}},
		{"once, it had to wait", onceSkip, schedule.Record{}, 9 * time.Hour, true, schedule.Decision{Act: schedule.Fire}},
		{"once, started by hand", once, running, 0, false, schedule.Decision{Act: schedule.Wait, Until: noon.Add(time.Second)}},
	} {
		times, err := schedule.Parse(c.job.Schedule, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		p := schedule.Policy{Backoff: schedule.DefaultBackoff()}
		got := p.Decide(schedule.Case{Job: c.job, Times: times, Record: c.record, Now: noon.Add(c.after), Held: c.held})
		if got != c.want {
			t.Errorf("%s: %+v; want %+v", c.what, got, c.want)
		}
	}
}

// Whatever the clock and the record say, a decision never comes back to the due
// time that it was about, and a decided job is due again.
func TestDecideGoesOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		job := hourly(rapid.SampledFrom([]goclaw.MissedPolicy{"once", "skip"}).Draw(rt, "missed"))
		job.Schedule.Expr = rapid.SampledFrom([]string{"0 * * * *", "* * * * * *", "0 12 * * *", "30 2 * * *"}).Draw(rt, "expr")
		times, err := schedule.Parse(job.Schedule, zone(t, "Europe/Berlin"))
		if err != nil {
			rt.Fatal(err)
		}
		now := noon
		for range 20 {
			now = now.Add(time.Duration(rapid.Int64Range(-1e5, 2e5).Draw(rt, "step")) * time.Second)
			r := schedule.Record{Failures: rapid.IntRange(0, 6).Draw(rt, "failures"), Failed: now.Add(time.Duration(rapid.Int64Range(-4000, 4000).Draw(rt, "failed")) * time.Second)}
			if rapid.Bool().Draw(rt, "running") {
				r.Running = "r"
			}
			d := schedule.Policy{Backoff: schedule.DefaultBackoff()}.Decide(schedule.Case{Job: job, Times: times, Record: r, Now: now})
			switch {
			case d.Act == schedule.Wait && !d.Until.After(now):
				rt.Fatalf("it waits until %s, at %s", d.Until, now)
			case d.Act == schedule.Wait:
			case d.Next <= job.Next || !d.Enabled:
				rt.Fatalf("after %s it is due %s", job.Next.Time(), d.Next.Time())
			case d.Act == schedule.Fire && d.Next <= goclaw.At(now):
				rt.Fatalf("it fires at %s and is next due %s", now, d.Next.Time())
			case (d.Act == schedule.Skip) != (d.Why != ""):
				rt.Fatalf("%+v", d)
			default:
				job.Next = d.Next
			}
		}
	})
}

func TestReadRecord(t *testing.T) {
	ran := func(at int, s goclaw.RunState) goclaw.Firing {
		return goclaw.Firing{At: goclaw.Millis(at), Run: "r", State: s, FinishedAt: goclaw.Millis(at + 1)}
	}
	skipped := func(at int, why string) goclaw.Firing { return goclaw.Firing{At: goclaw.Millis(at), Skipped: why} }
	first, second := ran(40, "failed"), ran(30, "failed")
	first.Error, second.Error = "no network", "no credit"
	for what, firings := range map[string][]goclaw.Firing{
		"no network": {skipped(50, "it failed; it goes on at noon"), first, second}, "timeout": {ran(40, "timeout"), second},
		schedule.CantRun + "x": {skipped(40, schedule.CantRun+"x"), second}, "": {ran(50, "completed"), first},
	} {
		if r, _ := schedule.ReadRecord(firings, 5); r.Error != what {
			t.Errorf("the last error of %+v is %q; want %q", firings, r.Error, what)
		}
	}
	for _, c := range []struct {
		what     string
		firings  []goclaw.Firing
		running  string
		failures int
		failed   int64
		more     bool
	}{
		{"none", nil, "", 0, 0, true},
		{"a success ends it", []goclaw.Firing{ran(30, "failed"), ran(20, "timeout"), ran(10, "completed"), ran(9, "failed")}, "", 2, 31, false},
		{"skips are none", []goclaw.Firing{skipped(40, "busy"), ran(30, "failed"), skipped(25, "busy")}, "", 1, 31, true},
		{"what can't run has failed", []goclaw.Firing{skipped(40, schedule.CantRun+"no such definition"), ran(30, "completed")}, "", 1, 40, false},
		{"cancelled is neither", []goclaw.Firing{ran(40, "cancelled"), ran(30, "failed"), ran(20, "completed")}, "", 1, 31, false},
		{"under way", []goclaw.Firing{skipped(50, "busy"), ran(40, "waiting"), ran(30, "failed"), ran(20, "completed")}, "r", 1, 31, false},
		{"changed since", []goclaw.Firing{ran(5, "failed"), ran(4, "failed")}, "", 0, 0, false},
		{"only skips since the change", []goclaw.Firing{skipped(9, "busy"), skipped(5, "busy")}, "", 0, 0, true},
	} {
		r, more := schedule.ReadRecord(c.firings, 5)
		if r.Running != c.running || r.Failures != c.failures || more != c.more || c.failures > 0 && r.Failed.UnixMilli() != c.failed {
			t.Errorf("%s: %+v, more: %v", c.what, r, more)
		}
	}
}

func TestHours(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct{ start, end, at, next string }{
		{"", "", "2026-03-01 03:00", "2026-03-01 03:00"},
		{"08:00", "22:00", "2026-03-01 08:00", "2026-03-01 08:00"},
		{"08:00", "22:00", "2026-03-01 22:00", "2026-03-02 08:00"},
		{"08:00", "22:00", "2026-03-01 07:59", "2026-03-01 08:00"},
		{"08:00", "24:00", "2026-03-01 23:59", "2026-03-01 23:59"},
		{"", "12:00", "2026-03-01 12:00", "2026-03-02 00:00"},
		{"22:00", "06:00", "2026-03-01 05:59", "2026-03-01 05:59"},
		{"22:00", "06:00", "2026-03-01 06:00", "2026-03-01 22:00"},
		{"02:30", "05:00", "2026-03-28 22:00", "2026-03-29 03:00"}, // the clock is changed
		{"02:00", "03:00", "2026-03-28 22:00", "2026-03-30 02:00"},
	} {
		h, err := schedule.ParseHours(c.start, c.end, berlin)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.ParseInLocation("2006-01-02 15:04", c.at, berlin)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Next(at).In(berlin).Format("2006-01-02 15:04"); got != c.next || h.Has(at) != (c.next == c.at) {
			t.Errorf("%s to %s at %s: next %s; want %s", c.start, c.end, c.at, got, c.next)
		}
	}
	for _, c := range []struct{ start, end, want string }{
		{"8", "22:00", `"8" is no time of day; write 00:00 to 24:00`}, {"08:00", "25:00", "is no time of day"},
		{"09:00", "09:00", "no time lies from 09:00 to 09:00"}, {"24:00", "06:00", "no time lies"},
	} {
		if _, err := schedule.ParseHours(c.start, c.end, berlin); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v", c.start, c.end, err)
		}
	}
}

func TestIdle(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "\n \t\r\n": true, "# Heartbeat\n## More\n#\n": true, "<!-- one\ntwo -->\n# x\n": true, "<!-- open\n- a": true,
		"- \n* \n+\n": true, "- [ ]\n  - [x]\n* []": true, "-[ ]": true, "- [ ] look": false, "--": false, "- -": false,
		"- look": false, "#hashtag": false, "####### seven": false, "<!-- a --> b": false, "# x\ncheck the mail": false, "a <!--": false,
	} {
		if got := schedule.Idle(text); got != want {
			t.Errorf("%q is idle: %v", text, got)
		}
	}
}
