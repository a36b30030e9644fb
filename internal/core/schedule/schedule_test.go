package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"goclaw"
	"goclaw/internal/core/schedule"
	"pgregory.net/rapid"
)

func TestRefused(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cron := func(expr string) goclaw.Schedule {
		return goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: expr}
	}
	for _, c := range []struct {
		s    goclaw.Schedule
		want string
	}{
		{cron("60 * * * *"), `cron expression "60 * * * *": minute "60": 60 is out of range; write 0 to 59 (0 is the full hour)`},
		{cron("0 24 * * *"), `hour "24": 24 is out of range; write 0 to 23 (midnight is 0)`},
		{cron("0 9 0 * *"), `day of month "0": 0 is out of range; write 1 to 31 (L is the last)`},
		{cron("0 9 * 13 *"), `month "13": 13 is out of range; write 1 to 12 or JAN to DEC`},
		{cron("0 9 * * 8"), `day of week "8": 8 is out of range; write 0 to 7 or SUN to SAT`},
		{cron("0 9 * * monday"), `day of week "MONDAY": "MONDAY" is no value; did you mean MON?`},
		{cron("0 9 * june 1"), `did you mean JUN?`},
		{cron("0 22-2 * * *"), `hour "22-2": the range 22-2 runs backwards; write 22-23,0-2`},
		{cron("0 9 * * FRI-MON"), `write 5-6,0-1`},
		{cron("0 9 * * jan"), `day of week "JAN": "JAN" is no value`},
		{cron("*/0 * * * *"), `minute "*/0": a step of 0 leads nowhere; write at least 1`},
		{cron("*/90 * * * *"), `a step of 90 goes beyond 59 and would begin anew each time; for equal steps use a schedule of the kind every`},
		{cron("*/x * * * *"), `"X" is no step`},
		{cron("1,,2 * * * *"), `a value is missing beside a comma`},
		{cron("1- * * * *"), `a value is missing; write 0 to 59`},
		{cron("+1 * * * *"), `"+1" is no value`},
		{cron("? * * * *"), `? is for days only; write *`},
		{cron("0 9 * * L"), `L needs its day; write 5L or FRIL`},
		{cron("0 9 * * 1#6"), `after # stands which one of the month, 1 to 5`},
		{cron("0 9 LW * *"), `"L" is no value`},
		{cron("* * * *"), `it has 4 fields; write five (minute, hour, day of month, month, day of week), or six with seconds first`},
		{cron("0 0 9 1 1 * 2027"), `a year can't be given (2027)`},
		{cron("0 9 1 1 * 2027"), `a year can't be given (2027)`},
		{cron("   "), `it is empty; write five fields`},
		{cron("@every 5m"), `for equal steps use a schedule of the kind every`},
		{cron("@reboot"), `@reboot is not known; write @hourly, @daily`},
		{cron("@daily 3"), `nothing may follow @daily`},
		{cron("TZ=UTC 0 9 * * *"), `a time zone has a place of its own (timezone)`},
		{cron(strings.Repeat("1,", 200)), `a cron expression of 400 bytes`},
		{cron("0 9 31 2 *"), `cron expression "0 9 31 2 *" is never due: no such day is in the calendar`},
		{cron("0 9 31W 4,6,9,11 *"), `is never due`},
		{goclaw.Schedule{Kind: goclaw.ScheduleCron}, `a schedule of the kind cron needs expr`},
		{goclaw.Schedule{Kind: goclaw.ScheduleAt}, `a schedule of the kind at needs at`},
		{goclaw.Schedule{Kind: goclaw.ScheduleAt, At: goclaw.At(now.Add(-time.Minute))}, `2026-03-01 11:59:00 UTC has passed; name a time that is to come`},
		{goclaw.Schedule{Kind: goclaw.ScheduleAt, At: goclaw.At(now)}, `has passed`},
		{goclaw.Schedule{Kind: goclaw.ScheduleAt, At: 5, Expr: "* * * * *"}, `a schedule of the kind at has no expr; leave it out`},
		{goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 999}, `every 999ms is too often; the least is every 1s`},
		{goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: -5}, `every 0s is too often`},
		{goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 1 << 62}, `is too seldom to ever be due`},
		{goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 1000, Anchor: -1}, `a schedule can't begin before 1970`},
		{goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 1000, Anchor: 1<<63 - 1}, `a schedule can't begin after the year 9999`},
		{goclaw.Schedule{Kind: goclaw.ScheduleAt, At: 253_402_300_800_000}, `a schedule can't begin after the year 9999`},
		{goclaw.Schedule{Kind: "weekly"}, `a schedule of the kind "weekly": write at, every or cron`},
	} {
		_, err := schedule.Check(c.s, time.UTC, now)
		switch {
		case err == nil:
			t.Errorf("%+v is taken; want %s", c.s, c.want)
		case !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%+v: %v; want %s", c.s, err, c.want)
		}
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ expr, from, want string }{
		{"0 9 13 * FRI", "2026-02-12 10:00", "02-13 09:00 UTC, 02-20 09:00 UTC, 02-27 09:00 UTC"},  // either day
		{"0 9 */2 * FRI", "2026-02-12 10:00", "02-13 09:00 UTC, 02-27 09:00 UTC, 03-13 09:00 UTC"}, // both
		{"0 9 L * *", "2028-02-01 00:00", "02-29 09:00 UTC, 03-31 09:00 UTC, 04-30 09:00 UTC"},
		{"0 9 ? * mon#2", "2026-03-01 00:00", "03-09 09:00 UTC, 04-13 09:00 UTC, 05-11 09:00 UTC"},
		{"0 9 * * FRIL", "2026-03-01 00:00", "03-27 09:00 UTC, 04-24 09:00 UTC, 05-29 09:00 UTC"},
		{"0 9 15W * *", "2026-03-01 00:00", "03-16 09:00 UTC, 04-15 09:00 UTC, 05-15 09:00 UTC"},
		{"0 9 * * SAT-SUN", "2026-03-02 00:00", "03-07 09:00 UTC, 03-08 09:00 UTC, 03-14 09:00 UTC"},
		{"0 9 * * 7-2", "2026-03-02 10:00", "03-03 09:00 UTC, 03-08 09:00 UTC, 03-09 09:00 UTC"},
		{"0 9 * * 7-7", "2026-03-02 00:00", "03-08 09:00 UTC, 03-15 09:00 UTC, 03-22 09:00 UTC"},
		{"0 9 * * 5-7/2", "2026-03-02 00:00", "03-06 09:00 UTC, 03-08 09:00 UTC, 03-13 09:00 UTC"},
		{"@weekly", "2026-03-02 00:00", "03-08 00:00 UTC, 03-15 00:00 UTC, 03-22 00:00 UTC"},
		{"5/20 8-9 * jan-mar *", "2026-03-31 08:30", "03-31 08:45 UTC, 03-31 09:05 UTC, 03-31 09:25 UTC"},
		{"0 0 29 2 *", "2097-01-01 00:00", "02-29 00:00 UTC, 02-29 00:00 UTC, 02-29 00:00 UTC"},
	} {
		from, err := time.Parse("2006-01-02 15:04", c.from)
		if err != nil {
			t.Fatal(err)
		}
		if got := written(cron(t, c.expr, "UTC").Upcoming(from, 3)); got != c.want {
			t.Errorf("%q after %s: %s; want %s", c.expr, c.from, got, c.want)
		}
	}
	from := time.Date(2026, 3, 1, 12, 0, 9, 500, time.UTC)
	if next, _ := cron(t, "*/10 * * * * *", "UTC").Next(from); next != from.Truncate(time.Second).Add(time.Second) {
		t.Errorf("with seconds: %s", next)
	}
	// The 29th of February on a Sunday, over a century without a leap day.
	if next, ok := cron(t, "0 0 29 2 */7", "UTC").Next(time.Date(2088, 3, 1, 0, 0, 0, 0, time.UTC)); !ok || next.Year() != 2128 {
		t.Errorf("a leap Sunday: %s, %v", next, ok)
	}
	// The time package is wrong about where the year ends here.
	for _, expr := range []string{"0 * * * *", "0 9 * * *"} {
		at := time.Date(2040, 12, 31, 8, 30, 0, 0, zone(t, "Europe/Berlin"))
		if next, ok := cron(t, expr, "Europe/Berlin").Next(at); !ok || next.Sub(at) != 30*time.Minute {
			t.Errorf("%q on 31 December of a leap year: %s, %v", expr, next, ok)
		}
	}
}

func TestEvery(t *testing.T) {
	anchor := time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC)
	s := goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 3_600_000, Anchor: goclaw.At(anchor)}
	times, err := schedule.Parse(s, zone(t, "Europe/Berlin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ after, want time.Duration }{
		{-time.Hour * 5, 0}, {-time.Millisecond, 0}, {0, time.Hour}, {time.Hour - time.Millisecond, time.Hour},
		{time.Hour, 2 * time.Hour}, {90 * time.Minute, 2 * time.Hour}, {1000 * time.Hour, 1001 * time.Hour},
	} {
		if got, ok := times.Next(anchor.Add(c.after)); !ok || got.Sub(anchor) != c.want {
			t.Errorf("after %s: %s, %v; want %s", c.after, got.Sub(anchor), ok, c.want)
		}
	}
}

// In a zone whose clock is never changed, gronx is the judge of it all.
func TestNextAgreesWithGronx(t *testing.T) {
	expr := rapid.StringMatching(`([0-5]?[0-9]|\*/[1-9]|\*|1,5-9) (\*|1?[0-9]|2-7/2) (\*|[1-9]|1[0-9]|L) (\*|[1-9]|3-7) (\*|[0-7]|2-4|5L|1#2)`)
	rapid.Check(t, func(rt *rapid.T) {
		e := expr.Draw(rt, "expr")
		from := time.Unix(rapid.Int64Range(0, 4e9).Draw(rt, "from"), 0).UTC()
		want, err := gronx.NextTickAfter(e, from, false)
		got, ok := cron(t, e, "UTC").Next(from)
		if (err == nil) != ok || ok && !got.Equal(want) {
			rt.Fatalf("%q after %s: %s, %v; gronx says %s, %v", e, from, got, ok, want, err)
		}
	})
}

func TestHumanTimes(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-03-01T09:00:00Z": "2026-03-01T10:00:00+01:00", "2026-03-01T09:00:00+05:00": "2026-03-01T05:00:00+01:00",
		"2026-03-01T09:00+05:00": "2026-03-01T05:00:00+01:00", "2026-03-01 09:00Z": "2026-03-01T10:00:00+01:00",
		"2026-03-01t09:00:00.5z": "2026-03-01T10:00:00+01:00", "2026-03-01 09:00:00 +05:00": "is no time",
		"2026-03-01 09:00": "2026-03-01T09:00:00+01:00", " 2026-07-01T09:00 ": "2026-07-01T09:00:00+02:00",
		"2026-03-01 09:00:30": "2026-03-01T09:00:30+01:00", "2026-03-29 02:30": "2026-03-29T03:00:00+02:00",
		"20m": "2026-03-01T13:20:00+01:00", "in 20m": "2026-03-01T13:20:00+01:00", "in 1d12h": "2026-03-03T01:00:00+01:00",
		"in 2 hours": "2026-03-01T15:00:00+01:00", "in 1.5h": "2026-03-01T14:30:00+01:00",
		"tomorrow": `"tomorrow" is no time: write 2026-03-01 09:00`, "2026-03-01": `"2026-03-01" is a day; add the time: 2026-03-01 09:00`,
		"in 0s": "is not to come", "": "is no time", "in ": "is no time", "-5m": "is no time", "5": "is no time", "1e9h": "is no time",
	} {
		got, err := schedule.ParseAt(text, berlin, now)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for text, want := range map[string]string{
		"30m": "30m0s", "1h30m": "1h30m0s", "2d": "48h0m0s", "1w": "168h0m0s", "10 minutes": "10m0s", "1s": "1s", "1d 2h": "26h0m0s",
		"500ms": "every 500ms is too often; the least is every 1s", "0": "is no length of time: write 30m", "x": "is no length",
		"9999999999999999w": "is too seldom", "1.2.3h": "is no length", "-1h": "is no length",
	} {
		got, err := schedule.ParseEvery(text)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && got.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0 9 * * MON-FRI", "*/5 0 1 1 1 0#1", "L 15W @daily", "0 0 29 2 */7", "1-5/2,7,*/3 * ? * 5L", "@hourly"} {
		f.Add(s)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		now := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
		s := goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: expr}
		times, err := schedule.Check(s, berlin, now)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q is refused in several lines: %v", expr, err)
			}
			return
		}
		last := now
		for _, next := range times.Upcoming(now, 5) {
			if !next.After(last) {
				t.Fatalf("%q: %s after %s", expr, next, last)
			}
			last = next
		}
	})
}

func FuzzHumanTimes(f *testing.F) {
	f.Add("in 20m")
	f.Add("2026-03-29 02:30")
	f.Add("1w2d3h")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		if _, err := schedule.ParseAt(text, time.UTC, now); err != nil && strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
		if d, err := schedule.ParseEvery(text); err == nil && (d < schedule.MinEvery || d > schedule.MaxEvery) {
			t.Errorf("%q is every %s", text, d)
		}
	})
}
