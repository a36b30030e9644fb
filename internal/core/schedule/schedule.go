package schedule

import (
	"fmt"
	"time"

	"goclaw"
)

// The shortest and the longest step of a schedule of the kind every.
const (
	MinEvery = time.Second
	MaxEvery = 100 * 366 * 24 * time.Hour
)

// latest is the last moment of the year 9999, in Unix milliseconds.
const latest = 253_402_300_799_999

// Times are the due times of a schedule.
type Times struct {
	zone   *time.Location
	once   time.Time
	every  time.Duration
	anchor time.Time
	expr   *expr
}

// Parse understands a schedule; zone is what its Zone names. Its errors are
// one line and name what is wrong and how to mend it.
func Parse(s goclaw.Schedule, zone *time.Location) (*Times, error) {
	if err := onlyItsFields(s); err != nil {
		return nil, err
	}
	t := &Times{zone: zone}
	switch s.Kind {
	case goclaw.ScheduleAt:
		t.once = s.At.Time().In(zone)
	case goclaw.ScheduleEvery:
		if err := checkEvery(time.Duration(s.EveryMs), time.Millisecond); err != nil {
			return nil, err
		}
		t.every, t.anchor = time.Duration(s.EveryMs)*time.Millisecond, s.Anchor.Time().In(zone)
	case goclaw.ScheduleCron:
		var err error
		if t.expr, err = parseExpr(s.Expr); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// onlyItsFields refuses a schedule that sets what its kind has no use for, or
// lacks what it needs.
func onlyItsFields(s goclaw.Schedule) error {
	set := map[string]bool{
		"at": s.At != 0, "everyMs": s.EveryMs != 0, "anchor": s.Anchor != 0, "expr": s.Expr != "", "timezone": s.Zone != "",
	}
	var needs string
	var may []string
	switch s.Kind {
	case goclaw.ScheduleAt:
		needs, may = "at", []string{"at", "timezone"}
	case goclaw.ScheduleEvery:
		needs, may = "everyMs", []string{"everyMs", "anchor", "timezone"}
	case goclaw.ScheduleCron:
		needs, may = "expr", []string{"expr", "timezone"}
	default:
		return fmt.Errorf("a schedule of the kind %q: write at, every or cron", s.Kind)
	}
	if !set[needs] {
		return fmt.Errorf("a schedule of the kind %s needs %s", s.Kind, needs)
	}
	for _, name := range may {
		delete(set, name)
	}
	for _, name := range []string{"at", "everyMs", "anchor", "expr"} {
		if set[name] {
			return fmt.Errorf("a schedule of the kind %s has no %s; leave it out", s.Kind, name)
		}
	}
	switch {
	case s.At < 0, s.Anchor < 0:
		return fmt.Errorf("a schedule can't begin before 1970")
	case max(s.At, s.Anchor) > latest:
		return fmt.Errorf("a schedule can't begin after the year 9999")
	}
	return nil
}

// checkEvery refuses steps that are too short or too long; n counts units.
func checkEvery(n, unit time.Duration) error {
	switch {
	case n < MinEvery/unit:
		return fmt.Errorf("every %s is too often; the least is every %s", max(n, 0)*unit, MinEvery)
	case n > MaxEvery/unit:
		return fmt.Errorf("every %d hours is too seldom to ever be due; the most is a hundred years", n/(time.Hour/unit))
	}
	return nil
}

// horizon is as far as a due time is looked for: after it the calendar repeats.
const horizon = 400

// Next is the first due time after a moment; false if there is none.
func (t *Times) Next(after time.Time) (time.Time, bool) {
	switch {
	case t.expr != nil && t.expr.elapsed():
		return t.nextElapsed(after)
	case t.expr != nil:
		return t.nextNamed(after)
	case t.every > 0:
		return t.nextStep(after), true
	}
	return t.once, t.once.After(after)
}

// nextStep is the first multiple of the step after a moment. Nothing is due
// before the anchor.
func (t *Times) nextStep(after time.Time) time.Time {
	if after.Before(t.anchor) {
		return t.anchor
	}
	passed, step := after.UnixMilli()-t.anchor.UnixMilli(), t.every.Milliseconds()
	return time.UnixMilli(t.anchor.UnixMilli() + (passed/step+1)*step).In(t.zone)
}

// nextNamed is the next due time of an expression that names its hours. The
// instants of naive times grow with them, so the first one that lies after the
// moment is the next.
func (t *Times) nextNamed(after time.Time) (time.Time, bool) {
	n := naive(after, t.zone)
	limit := n.AddDate(horizon, 0, 0)
	for {
		var ok bool
		if n, ok = t.expr.next(n.Add(time.Second), limit); !ok {
			return time.Time{}, false
		}
		if due := instant(n, t.zone); due.After(after) {
			return due, true
		}
	}
}

// nextElapsed is the next due time of an expression that follows elapsed time:
// it goes from one change of the clock to the next.
func (t *Times) nextElapsed(after time.Time) (time.Time, bool) {
	n := naive(after, t.zone)
	limit := n.AddDate(horizon, 0, 0)
	n = n.Add(time.Second)
	for p := periodAt(after, t.zone); ; p = periodAt(p.end, t.zone) {
		until := limit
		if !p.end.IsZero() {
			until = p.end.UTC().Add(p.offset)
		}
		if due, ok := t.expr.next(n, until); ok {
			return due.Add(-p.offset).In(t.zone), true
		}
		if p.end.IsZero() || until.After(limit) {
			return time.Time{}, false
		}
		n = naive(p.end, t.zone)
		if t.lost(until, n) {
			return p.end.In(t.zone), true
		}
	}
}

// lost reports whether a due time lies in the gap between two naive times, in
// an hour that the gap takes only a part of.
func (t *Times) lost(from, to time.Time) bool {
	n, ok := t.expr.next(from, to)
	for ok {
		hour := n.Truncate(time.Hour)
		if hour.Before(from) || hour.Add(time.Hour).After(to) {
			return true
		}
		n, ok = t.expr.next(n.Add(time.Second), to)
	}
	return false
}

// Upcoming are the next n due times after a moment.
func (t *Times) Upcoming(after time.Time, n int) []time.Time {
	var all []time.Time
	for len(all) < n {
		next, ok := t.Next(after)
		if !ok {
			break
		}
		all, after = append(all, next), next
	}
	return all
}

// mostCounted bounds how many due times are counted one by one.
const mostCounted = 10_000

// between counts the due times after a and before b, up to mostCounted.
func (t *Times) between(a, b time.Time) int {
	if t.every > 0 {
		first := t.nextStep(a)
		if !first.Before(b) {
			return 0
		}
		return int(min(mostCounted, (b.UnixMilli()-1-first.UnixMilli())/t.every.Milliseconds()+1))
	}
	n := 0
	for next, ok := t.Next(a); ok && next.Before(b) && n < mostCounted; next, ok = t.Next(next) {
		n++
	}
	return n
}

// Check parses a schedule and refuses one that is never due after now.
func Check(s goclaw.Schedule, zone *time.Location, now time.Time) (*Times, error) {
	t, err := Parse(s, zone)
	if err != nil {
		return nil, err
	}
	if _, ok := t.Next(now); ok {
		return t, nil
	}
	if s.Kind == goclaw.ScheduleAt {
		return nil, fmt.Errorf("%s has passed; name a time that is to come", t.once.Format("2006-01-02 15:04:05 MST"))
	}
	return nil, fmt.Errorf("cron expression %q is never due: no such day is in the calendar", s.Expr)
}

// Every is the step of a schedule of the kind every; 0 for any other.
func (t *Times) Every() time.Duration { return t.every }
