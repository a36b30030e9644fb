package recall

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"goclaw"
)

// dates finds the first days that a text names, and returns the text without
// their words. A day that stands as a date stays in it: files are named so.
func dates(text string, now time.Time) (string, Span) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for _, form := range []struct {
		form string
		span func(m []string, today time.Time) (from, until time.Time)
		keep bool
	}{
		{`\b(\d{4})-(\d{2})(?:-(\d{2}))?\b`, isoSpan, true},
		{`(?i)\b(?:(the )?day before yesterday|yesterday|today|this morning|tonight|last night|vorgestern|gestern|heute)\b`, daySpan, false},
		{`(?i)\b(a|one|two|three|four|five|six|seven|\d{1,3}) (day|week|month|year)s? ago\b`, agoSpan, false},
		{`(?i)\b(this|last|past) (week|month|year)\b`, latestSpan, false},
		{`(?i)\b(?:on |last |this )(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b`, weekdaySpan, false},
		{`(?i)\b(?:in|last|since) (january|february|march|april|may|june|july|august|september|october|november|december)(?: (\d{4}))?\b`, monthSpan, false},
	} {
		re := regexp.MustCompile(form.form)
		at := re.FindStringIndex(text)
		if at == nil {
			continue
		}
		from, until := form.span(re.FindStringSubmatch(text), today)
		if from.IsZero() {
			continue
		}
		if !form.keep {
			text = text[:at[0]] + " " + text[at[1]:]
		}
		return text, Span{goclaw.At(from), goclaw.At(until)}
	}
	return text, Span{}
}

func isoSpan(m []string, today time.Time) (from, until time.Time) {
	layout, text := "2006-01", m[1]+"-"+m[2]
	if m[3] != "" {
		layout, text = time.DateOnly, m[0]
	}
	from, err := time.ParseInLocation(layout, text, today.Location())
	if err != nil {
		return time.Time{}, time.Time{}
	}
	if m[3] != "" {
		return from, from.AddDate(0, 0, 1)
	}
	return from, from.AddDate(0, 1, 0)
}

func daySpan(m []string, today time.Time) (from, until time.Time) {
	back := 0
	switch what := strings.ToLower(m[0]); {
	case strings.Contains(what, "before"), what == "vorgestern":
		back = 2
	case what == "yesterday", what == "gestern", what == "last night":
		back = 1
	}
	from = today.AddDate(0, 0, -back)
	return from, from.AddDate(0, 0, 1)
}

func agoSpan(m []string, today time.Time) (from, until time.Time) {
	n, err := strconv.Atoi(m[1])
	if err != nil {
		n = 1
		for i, name := range []string{"one", "two", "three", "four", "five", "six", "seven"} {
			if strings.EqualFold(name, m[1]) {
				n = i + 1
			}
		}
	}
	switch strings.ToLower(m[2]) {
	case "day":
		from = today.AddDate(0, 0, -n)
		return from, from.AddDate(0, 0, 1)
	case "week":
		from = today.AddDate(0, 0, -7*n)
		return from.AddDate(0, 0, -3), from.AddDate(0, 0, 4)
	case "month":
		from = today.AddDate(0, -n, 0)
		return from.AddDate(0, 0, -15), from.AddDate(0, 0, 16)
	}
	from = today.AddDate(-n, 0, 0)
	return from.AddDate(0, -6, 0), from.AddDate(0, 6, 0)
}

func latestSpan(m []string, today time.Time) (from, until time.Time) {
	until = today.AddDate(0, 0, 1)
	this := strings.EqualFold(m[1], "this")
	switch strings.ToLower(m[2]) {
	case "week":
		monday := today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
		if this {
			return monday, until
		}
		return monday.AddDate(0, 0, -7), until // people mean the last seven days as well
	case "month":
		first := today.AddDate(0, 0, 1-today.Day())
		if this {
			return first, until
		}
		return first.AddDate(0, -1, 0), until
	}
	first := time.Date(today.Year(), 1, 1, 0, 0, 0, 0, today.Location())
	if this {
		return first, until
	}
	return first.AddDate(-1, 0, 0), first
}

// weekdaySpan is the last such day before today.
func weekdaySpan(m []string, today time.Time) (from, until time.Time) {
	for back := 1; back <= 7; back++ {
		day := today.AddDate(0, 0, -back)
		if strings.EqualFold(day.Weekday().String(), m[1]) {
			return day, day.AddDate(0, 0, 1)
		}
	}
	return time.Time{}, time.Time{}
}

func monthSpan(m []string, today time.Time) (from, until time.Time) {
	for month := time.January; month <= time.December; month++ {
		if !strings.EqualFold(month.String(), m[1]) {
			continue
		}
		year, err := strconv.Atoi(m[2])
		if err != nil {
			year = today.Year()
			if month > today.Month() {
				year--
			}
		}
		from = time.Date(year, month, 1, 0, 0, 0, 0, today.Location())
		return from, from.AddDate(0, 1, 0)
	}
	return time.Time{}, time.Time{}
}
