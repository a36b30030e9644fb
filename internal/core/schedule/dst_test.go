package schedule_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/adhocore/gronx"
	"goclaw"
	"goclaw/internal/core/schedule"
	"pgregory.net/rapid"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func cron(t testing.TB, expr, in string) *schedule.Times {
	t.Helper()
	times, err := schedule.Parse(goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: expr}, zone(t, in))
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// due lists the due times from a local moment on, for some hours.
func due(t testing.TB, expr, in, from string, hours int) []time.Time {
	t.Helper()
	start, err := time.ParseInLocation("2006-01-02 15:04", from, zone(t, in))
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Time
	times := cron(t, expr, in)
	for at := start.Add(-time.Second); ; {
		next, ok := times.Next(at)
		if !ok || !next.Before(start.Add(time.Duration(hours)*time.Hour)) {
			return all
		}
		all, at = append(all, next), next
	}
}

// What happens when the clock is changed; docs/cron.md shows the same table.
type change struct {
	what, zone, expr, from string
	hours                  int
	want                   string
}

func changes() []change {
	return []change{
		{"spring, 02:00 to 03:00", "Europe/Berlin", "30 2 * * *", "2026-03-28 12:00", 24, "03-29 03:00 CEST"},
		{"spring, 02:00 to 03:00", "Europe/Berlin", "30 2,3 * * *", "2026-03-28 12:00", 24, "03-29 03:00 CEST, 03-29 03:30 CEST"},
		{"spring, 02:00 to 03:00", "Europe/Berlin", "*/20 2 * * *", "2026-03-28 12:00", 24, "03-29 03:00 CEST"},
		{"spring, 02:00 to 03:00", "Europe/Berlin", "0 */2 * * *", "2026-03-29 00:00", 4, "03-29 00:00 CET, 03-29 03:00 CEST, 03-29 04:00 CEST"},
		{"spring, 02:00 to 03:00", "Europe/Berlin", "30 * * * *", "2026-03-29 00:00", 4, "03-29 00:30 CET, 03-29 01:30 CET, 03-29 03:30 CEST, 03-29 04:30 CEST"},
		{"autumn, 03:00 to 02:00", "Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", 24, "10-25 02:30 CEST"},
		{"autumn, 03:00 to 02:00", "Europe/Berlin", "*/30 2 * * *", "2026-10-24 12:00", 24, "10-25 02:00 CEST, 10-25 02:30 CEST"},
		{"autumn, 03:00 to 02:00", "Europe/Berlin", "0 3 * * *", "2026-10-24 12:00", 24, "10-25 03:00 CET"},
		{"autumn, 03:00 to 02:00", "Europe/Berlin", "30 * * * *", "2026-10-25 01:00", 4, "10-25 01:30 CEST, 10-25 02:30 CEST, 10-25 02:30 CET, 10-25 03:30 CET"},
		{"spring, 02:00 to 03:00", "America/New_York", "30 2 * * *", "2026-03-07 12:00", 24, "03-08 03:00 EDT"},
		{"autumn, 02:00 to 01:00", "America/New_York", "30 1 * * *", "2026-10-31 12:00", 24, "11-01 01:30 EDT"},
		{"autumn, 02:00 to 01:00", "America/New_York", "0 * * * *", "2026-11-01 00:00", 4, "11-01 00:00 EDT, 11-01 01:00 EDT, 11-01 01:00 EST, 11-01 02:00 EST"},
		{"spring, 02:00 to 02:30", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00", 24, "10-04 02:30 +11"},
		{"spring, 02:00 to 02:30", "Australia/Lord_Howe", "45 2 * * *", "2026-10-03 12:00", 24, "10-04 02:45 +11"},
		{"spring, 02:00 to 02:30", "Australia/Lord_Howe", "0 * * * *", "2026-10-04 00:30", 4, "10-04 01:00 +1030, 10-04 02:30 +11, 10-04 03:00 +11, 10-04 04:00 +11"},
		{"autumn, 02:00 to 01:30", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04 12:00", 24, "04-05 01:45 +11"},
		{"autumn, 02:00 to 01:30", "Australia/Lord_Howe", "45 * * * *", "2026-04-05 00:30", 3, "04-05 00:45 +11, 04-05 01:45 +11, 04-05 01:45 +1030, 04-05 02:45 +1030"},
		{"spring, 00:00 to 01:00", "America/Sao_Paulo", "0 0 * * *", "2017-10-14 12:00", 24, "10-15 01:00 -02"},
		{"spring, 00:00 to 01:00", "America/Sao_Paulo", "@daily", "2017-10-14 12:00", 24, "10-15 01:00 -02"},
		{"autumn, 00:00 to 23:00", "America/Sao_Paulo", "30 23 * * *", "2018-02-17 12:00", 24, "02-17 23:30 -02"},
		{"autumn, 00:00 to 23:00", "America/Sao_Paulo", "0 0 * * *", "2018-02-17 12:00", 24, "02-18 00:00 -03"},
		{"30 December is left out", "Pacific/Apia", "0 9 * * *", "2011-12-29 08:00", 24, "12-29 09:00 -10, 12-31 00:00 +14"},
		{"30 December is left out", "Pacific/Apia", "0 9 30 12 *", "2011-12-29 12:00", 24, "12-31 00:00 +14"},
	}
}

func written(times []time.Time) string {
	all := make([]string, len(times))
	for i, at := range times {
		all[i] = at.Format("01-02 15:04 MST")
	}
	return strings.Join(all, ", ")
}

func TestClockChanges(t *testing.T) {
	for _, c := range changes() {
		if got := written(due(t, c.expr, c.zone, c.from, c.hours)); got != c.want {
			t.Errorf("%s, %s (%s): %q is due at %s; want %s", c.zone, c.what, c.from, c.expr, got, c.want)
		}
	}
}

// truth goes through the minutes one by one and looks at the clock on the wall.
// Which naive times an expression allows, gronx says.
func truth(t testing.TB, expr string, z *time.Location, from time.Time, minutes int, elapsed bool) []time.Time {
	t.Helper()
	wall := func(at time.Time) time.Time {
		n := at.In(z)
		return time.Date(n.Year(), n.Month(), n.Day(), n.Hour(), n.Minute(), 0, 0, time.UTC)
	}
	g := gronx.New()
	segments, err := gronx.Segments(expr)
	if err != nil {
		t.Fatal(err)
	}
	allows := func(n time.Time) bool {
		g.C.SetRef(n)
		ok, err := g.SegmentsDue(segments)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	var all []time.Time
	seen := map[time.Time]bool{}
	const before = 26 * 60 // what the clock has shown already
	last := wall(from.Add(-before * time.Minute))
	for i := 1 - before; i < minutes; i++ {
		at := from.Add(time.Duration(i) * time.Minute)
		now := wall(at)
		hit := i >= 0 && (elapsed || !seen[now]) && allows(now)
		for skipped := last.Add(time.Minute); skipped.Before(now); skipped = skipped.Add(time.Minute) {
			hour := skipped.Truncate(time.Hour)
			whole := hour.After(last) && !hour.Add(time.Hour).After(now)
			hit = hit || i >= 0 && (!elapsed || !whole) && allows(skipped)
			seen[skipped] = true
		}
		seen[now], last = true, now
		if hit {
			all = append(all, at)
		}
	}
	return all
}

func TestNextIsWhatTheWallClockSays(t *testing.T) {
	places := []struct {
		zone, around string
	}{
		{"Europe/Berlin", "2026-03-29"}, {"Europe/Berlin", "2026-10-25"},
		{"America/New_York", "2026-03-08"}, {"America/New_York", "2026-11-01"},
		{"Australia/Lord_Howe", "2026-04-05"}, {"Australia/Lord_Howe", "2026-10-04"},
		{"America/Sao_Paulo", "2017-10-15"}, {"America/Sao_Paulo", "2018-02-18"},
		{"Pacific/Apia", "2011-12-30"}, {"America/Caracas", "2016-05-01"},
		{"Africa/Casablanca", "2026-02-15"}, {"Asia/Kathmandu", "2026-01-01"}, {"Antarctica/Troll", "2026-10-25"},
		{"Europe/Berlin", "2090-03-26"}, {"America/St_Johns", "2006-10-29"}, {"Asia/Pyongyang", "2018-05-05"},
	}
	number := func(low, high int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			a, b := rapid.IntRange(low, high).Draw(t, "a"), rapid.IntRange(low, high).Draw(t, "b")
			switch rapid.IntRange(0, 5).Draw(t, "form") {
			case 0:
				return fmt.Sprint(a)
			case 1:
				return fmt.Sprintf("%d,%d", a, b)
			case 2:
				return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
			case 3:
				return fmt.Sprintf("*/%d", max(1, a))
			case 4:
				return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+b%4)
			}
			return "*"
		})
	}
	days := rapid.OneOf(rapid.Just("*"), number(1, 31), rapid.SampledFrom([]string{"L", "15W", "1W,29"}))
	weekdays := rapid.OneOf(rapid.Just("*"), number(0, 7), rapid.SampledFrom([]string{"0L", "0#1", "6#5,1"}))
	rapid.Check(t, func(rt *rapid.T) {
		place := rapid.SampledFrom(places).Draw(rt, "place")
		expr := strings.Join([]string{
			number(0, 59).Draw(rt, "minute"), rapid.OneOf(rapid.Just("*"), number(0, 4), number(0, 23)).Draw(rt, "hour"),
			days.Draw(rt, "day"), "*", weekdays.Draw(rt, "weekday"),
		}, " ")
		z := zone(t, place.zone)
		middle, err := time.ParseInLocation(time.DateOnly, place.around, z)
		if err != nil {
			rt.Fatal(err)
		}
		from := middle.Add(-time.Duration(rapid.IntRange(1, 30*60).Draw(rt, "before")) * time.Minute)
		const minutes = 60 * 60
		times := cron(t, expr, place.zone)
		hours := 0
		for h := range 24 {
			g := gronx.SegmentChecker{}
			g.SetRef(time.Date(2000, 1, 1, h, 0, 0, 0, time.UTC))
			if ok, _ := g.CheckDue(strings.Fields(expr)[1], 2); ok {
				hours++
			}
		}
		want := truth(t, expr, z, from, minutes, hours == 24)
		at := from.Add(-time.Nanosecond)
		for _, w := range want {
			next, ok := times.Next(at)
			if !ok || !next.Equal(w) {
				rt.Fatalf("%q in %s after %s is due %s (%v); the clock says %s", expr, place.zone, at.In(z), next, ok, w.In(z))
			}
			at = next
		}
		if next, ok := times.Next(at); ok && next.Before(from.Add(minutes*time.Minute)) {
			rt.Fatalf("%q in %s is due %s, after %s: the clock doesn't say so", expr, place.zone, next, at.In(z))
		}
	})
}

// docs/cron.md shows what this test has found to be so.
func TestDocumentation(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Zone | The clock | Expression | Due |\n|---|---|---|---|\n")
	for _, c := range changes() {
		fmt.Fprintf(&table, "| %s | %s, %s | `%s` | %s |\n", c.zone, c.from[:4], c.what, c.expr, c.want)
	}
	text, err := os.ReadFile("../../../docs/cron.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/cron.md lacks this table:\n%s", &table)
	}
	var rests []string
	for _, d := range schedule.DefaultBackoff() {
		rests = append(rests, strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(d.String()))
	}
	if want := "it rests for " + strings.Join(rests, ", ") + "."; !strings.Contains(string(text), want) {
		t.Errorf("docs/cron.md does not say: %s", want)
	}
}
