package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseAt reads a moment as people write it: RFC 3339, a local time of the
// zone such as 2026-03-01 09:00, or a time from now such as 20m or in 20m.
func ParseAt(text string, zone *time.Location, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05"} {
		written := strings.Replace(strings.ToUpper(text), "T", " ", 1)
		if t, err := time.Parse(form+"Z07:00", written); err == nil {
			return t.In(zone), nil
		}
		if t, err := time.Parse(form, written); err == nil {
			return instant(t, zone), nil
		}
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return time.Time{}, fmt.Errorf("%q is a day; add the time: %s 09:00", text, text)
	}
	in, _ := strings.CutPrefix(text, "in ")
	d, err := duration(in)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("%q is no time: write 2026-03-01 09:00, 2026-03-01T09:00:00+01:00, or 20m from now", text)
	case d <= 0:
		return time.Time{}, fmt.Errorf("%q from now is not to come; write a longer time", text)
	}
	return now.Add(d).In(zone), nil
}

// ParseEvery reads a length of time: a Go duration, in which d and w stand for
// days of 24 hours and weeks as well, and units may be written out.
func ParseEvery(text string) (time.Duration, error) {
	d, err := duration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no length of time: write 30m, 1h30m, 2d or 1w", text)
	}
	return d, checkEvery(d, 1)
}

func units() map[string]time.Duration {
	const day = 24 * time.Hour
	return map[string]time.Duration{
		"ms": time.Millisecond,
		"s":  time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
		"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
		"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
		"d": day, "day": day, "days": day,
		"w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	}
}

var errDuration = errors.New("no length of time")

func duration(text string) (time.Duration, error) {
	sum := 0.0
	rest := strings.ToLower(strings.TrimSpace(text))
	for {
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 {
			return 0, errDuration
		}
		n, err := strconv.ParseFloat(rest[:end], 64)
		if err != nil {
			return 0, errDuration
		}
		rest = strings.TrimLeft(rest[end:], " ")
		end = strings.IndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })
		if end < 0 {
			end = len(rest)
		}
		unit, ok := units()[rest[:end]]
		if !ok {
			return 0, errDuration
		}
		// One more than what is ever allowed: the caller says so.
		sum = min(sum+n*float64(unit), float64(MaxEvery+time.Hour))
		if rest = strings.TrimLeft(rest[end:], " "); rest == "" {
			return time.Duration(sum), nil
		}
	}
}
