package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Hours are the hours of a day in which a heartbeat beats: from Start to before
// End, over midnight if End is the earlier. The zero value is the whole day.
type Hours struct {
	Start, End time.Duration // since midnight, as the clock shows it
	Zone       *time.Location
}

// ParseHours reads times such as 08:00 and 24:00. Both may be empty: the
// whole day.
func ParseHours(start, end string, zone *time.Location) (Hours, error) {
	if start == "" && end == "" {
		return Hours{}, nil
	}
	from, err := clock(start, "00:00")
	if err != nil {
		return Hours{}, err
	}
	to, err := clock(end, "24:00")
	if err != nil {
		return Hours{}, err
	}
	if from == to || from == 24*time.Hour {
		return Hours{}, fmt.Errorf("no time lies from %s to %s", start, end)
	}
	return Hours{Start: from, End: to, Zone: zone}, nil
}

func clock(text, fallback string) (time.Duration, error) {
	if text == "" {
		text = fallback
	}
	if text == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day; write 00:00 to 24:00", text)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// Has reports whether a moment is within the hours.
func (h Hours) Has(t time.Time) bool {
	if h.Start == h.End {
		return true
	}
	n := naive(t, h.Zone)
	at := n.Sub(n.Truncate(24 * time.Hour))
	if h.Start < h.End {
		return h.Start <= at && at < h.End
	}
	return h.Start <= at || at < h.End
}

// Next is the first moment after t, or at it, that is within the hours.
func (h Hours) Next(t time.Time) time.Time {
	if h.Has(t) {
		return t
	}
	day := naive(t, h.Zone).Truncate(24 * time.Hour)
	for {
		start := instant(day.Add(h.Start), h.Zone)
		if start.After(t) && h.Has(start) {
			return start
		}
		day = day.AddDate(0, 0, 1)
	}
}

// Idle reports whether a HEARTBEAT.md asks for nothing: it holds only blank
// lines, headings, list items without text and HTML comments.
func Idle(text string) bool {
	for {
		before, after, found := strings.Cut(text, "<!--")
		for line := range strings.Lines(before) {
			if line = strings.TrimSpace(line); line != "" && !heading(line) && !emptyItem(line) {
				return false
			}
		}
		if !found {
			return true
		}
		// As Markdown has it, a comment that is not closed goes to the end.
		if _, text, found = strings.Cut(after, "-->"); !found {
			return true
		}
	}
}

// emptyItem reports whether a line is a bullet with nothing behind it but,
// perhaps, a box to tick.
func emptyItem(line string) bool {
	if !strings.ContainsAny(line[:1], "-*+") {
		return false
	}
	switch strings.TrimSpace(line[1:]) {
	case "", "[]", "[ ]", "[x]", "[X]":
		return true
	}
	return false
}

func heading(line string) bool {
	rest := strings.TrimLeft(line, "#")
	marks := len(line) - len(rest)
	return marks >= 1 && marks <= 6 && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}
