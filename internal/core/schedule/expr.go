package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
	"time"
)

// expr is a cron expression that was understood.
type expr struct {
	second, minute, hour, month uint64
	monthDay, weekday           values
	either                      bool // a day that one of the two allows is enough
}

const allHours = 1<<24 - 1

// elapsed reports whether the expression allows every hour, however that is
// written, and so follows elapsed time.
func (e *expr) elapsed() bool { return e.hour == allHours }

// macros are the names of whole expressions.
func macros() map[string]string {
	return map[string]string{
		"@YEARLY": "0 0 1 1 *", "@ANNUALLY": "0 0 1 1 *", "@MONTHLY": "0 0 1 * *", "@WEEKLY": "0 0 * * 0",
		"@DAILY": "0 0 * * *", "@MIDNIGHT": "0 0 * * *", "@HOURLY": "0 * * * *",
	}
}

const fieldNames = "minute, hour, day of month, month, day of week"

var year = regexp.MustCompile(`^\d{4}([-/,]|$)`)

// parseExpr understands an expression of five fields, of six with seconds
// first, or a macro.
func parseExpr(text string) (*expr, error) {
	const longest = 256
	if len(text) > longest {
		return nil, fmt.Errorf("a cron expression of %d bytes: at most %d are read", len(text), longest)
	}
	e, err := parseFields(strings.Fields(strings.ToUpper(text)))
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", text, err)
	}
	return e, nil
}

func parseFields(parts []string) (*expr, error) {
	if len(parts) > 0 && strings.HasPrefix(parts[0], "@") {
		whole, ok := macros()[parts[0]]
		switch {
		case ok && len(parts) == 1:
			parts = strings.Fields(whole)
		case ok:
			return nil, fmt.Errorf("nothing may follow %s", strings.ToLower(parts[0]))
		case parts[0] == "@EVERY":
			return nil, errors.New("for equal steps use a schedule of the kind every")
		default:
			return nil, fmt.Errorf("%s is not known; write @hourly, @daily, @weekly, @monthly or @yearly", strings.ToLower(parts[0]))
		}
	}
	n := len(parts)
	switch {
	case n == 0:
		return nil, fmt.Errorf("it is empty; write five fields (%s), such as 0 9 * * MON-FRI", fieldNames)
	case strings.Contains(parts[0], "="):
		return nil, errors.New("a time zone has a place of its own (timezone); write the fields only")
	case n >= 6 && year.MatchString(parts[n-1]):
		return nil, fmt.Errorf("a year can't be given (%s); leave it out, or use a schedule of the kind at", parts[n-1])
	case n != 5 && n != 6:
		return nil, fmt.Errorf("it has %d fields; write five (%s), or six with seconds first", n, fieldNames)
	case n == 5:
		parts = append([]string{"0"}, parts...)
	}
	var all [6]values
	for i, f := range fields() {
		var err error
		if all[i], err = f.read(parts[i]); err != nil {
			return nil, err
		}
	}
	e := &expr{
		second: all[0].set, minute: all[1].set, hour: all[2].set, month: all[4].set,
		monthDay: all[3], weekday: all[5],
	}
	// As in every cron since Vixie's: two restricted fields of days add up.
	e.either = !e.monthDay.star && !e.weekday.star
	return e, nil
}

// onDay reports whether the expression allows the day of a naive time.
func (e *expr) onDay(day time.Time) bool {
	if e.either {
		return e.monthDay.has(day) || e.weekday.has(day)
	}
	return e.monthDay.has(day) && e.weekday.has(day)
}

// next is the first naive time from from on, and before the limit, that the
// expression allows.
func (e *expr) next(from, limit time.Time) (time.Time, bool) {
	day := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, time.UTC)
	first := int(from.Sub(day) / time.Second)
	for day.Before(limit) {
		switch {
		case e.month&(1<<day.Month()) == 0:
			day, first = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC), 0
			continue
		case e.onDay(day):
			if second, ok := e.inDay(first); ok {
				t := day.Add(time.Duration(second) * time.Second)
				return t, t.Before(limit)
			}
		}
		day, first = day.AddDate(0, 0, 1), 0
	}
	return time.Time{}, false
}

// inDay is the first second of a day from first on that the expression allows.
func (e *expr) inDay(first int) (int, bool) {
	h, m, s := first/3600, first/60%60, first%60
	for hour := from(e.hour, h); hour < 64; hour = from(e.hour, hour+1) {
		if hour > h {
			m, s = 0, 0
		}
		for minute := from(e.minute, m); minute < 64; minute = from(e.minute, minute+1) {
			if minute > m {
				s = 0
			}
			if second := from(e.second, s); second < 64 {
				return hour*3600 + minute*60 + second, true
			}
		}
	}
	return 0, false
}

// from is the smallest number of the set that is at least n; 64 if there is
// none.
func from(set uint64, n int) int { return bits.TrailingZeros64(set >> n << n) }
