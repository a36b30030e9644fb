package schedule

import "time"

// A naive time is what a clock on the wall shows, kept as if it were UTC.

// naive is what a clock in the zone shows at t, without fractions of a second.
func naive(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	_, offset := t.Zone()
	return time.Unix(t.Unix()+int64(offset), 0).UTC()
}

// period is a time in which a zone keeps its offset from UTC.
type period struct {
	start, end time.Time // zero: without bound
	offset     time.Duration
}

func periodAt(t time.Time, zone *time.Location) period {
	t = t.In(zone)
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// On 31 December of a leap year the time package takes the 31st for the
		// end of the year.
		end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	_, offset := t.Zone()
	return period{start, end, time.Duration(offset) * time.Second}
}

// widest is more than any zone has ever been away from UTC.
const widest = 24 * time.Hour

// instant is when a clock in the zone shows n: the first time if it does so
// twice, the first instant after the gap if it never does. It grows with n.
func instant(n time.Time, zone *time.Location) time.Time {
	for at := n.Add(-widest); ; {
		p := periodAt(at, zone)
		t := n.Add(-p.offset)
		switch {
		case !p.start.IsZero() && t.Before(p.start):
			return p.start.In(zone)
		case p.end.IsZero() || t.Before(p.end):
			return t.In(zone)
		}
		at = p.end
	}
}
