package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// field is one place of a cron expression.
type field struct {
	name  string
	pos   int // as gronx counts them
	first int
	last  int
	names []string // of the values from first on
	hint  string   // what more to say of a value out of range
}

// The fields, with seconds first. The number of the first value of names is
// first.
func fields() []field {
	return []field{
		{name: "second", pos: 0, last: 59, hint: " (0 is the full minute)"},
		{name: "minute", pos: 1, last: 59, hint: " (0 is the full hour)"},
		{name: "hour", pos: 2, last: 23, hint: " (midnight is 0)"},
		{name: "day of month", pos: 3, first: 1, last: 31, hint: " (L is the last)"},
		{name: "month", pos: 4, first: 1, last: 12, hint: " or JAN to DEC",
			names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
		{name: "day of week", pos: 5, last: 7, hint: " or SUN to SAT (0 and 7 are Sunday)",
			names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
	}
}

const (
	posMonthDay = 3
	posWeekday  = 5
)

// values are what a field allows.
type values struct {
	set   uint64
	days  []string // items that depend on the month, such as L, 15W and MON#2
	star  bool     // it begins with * or ?
	place int
}

// read understands one field of an expression.
func (f field) read(text string) (values, error) {
	v := values{place: f.pos, star: strings.HasPrefix(text, "*") || text == "?"}
	for item := range strings.SplitSeq(text, ",") {
		plain, special, err := f.item(item)
		if err != nil {
			return values{}, fmt.Errorf("%s %q: %w", f.name, text, err)
		}
		if special {
			v.days = append(v.days, plain)
			continue
		}
		if err := f.add(&v, plain); err != nil {
			return values{}, fmt.Errorf("%s %q: %w", f.name, text, err)
		}
	}
	return v, nil
}

// add puts the values that gronx finds due into the set.
func (f field) add(v *values, item string) error {
	var c gronx.SegmentChecker
	for n := f.first; n <= f.last; n++ {
		c.SetRef(f.example(n))
		due, err := c.CheckDue(item, f.pos)
		if err != nil {
			return err
		}
		if due {
			v.set |= 1 << n
		}
	}
	return nil
}

// example is a time at which the field has the value n.
func (f field) example(n int) time.Time {
	switch f.pos {
	case 0:
		return time.Date(2000, 1, 1, 0, 0, n, 0, time.UTC)
	case 1:
		return time.Date(2000, 1, 1, 0, n, 0, 0, time.UTC)
	case 2:
		return time.Date(2000, 1, 1, n, 0, 0, 0, time.UTC)
	case posMonthDay:
		return time.Date(2000, 1, n, 0, 0, 0, 0, time.UTC)
	case posWeekday:
		return time.Date(2000, 1, 2+n, 0, 0, 0, 0, time.UTC) // the 2nd is a Sunday
	}
	return time.Date(2000, time.Month(n), 1, 0, 0, 0, 0, time.UTC)
}

// has reports whether the field allows day, a naive time.
func (v values) has(day time.Time) bool {
	n := day.Day()
	if v.place == posWeekday {
		n = int(day.Weekday())
	}
	if v.set&(1<<n) != 0 {
		return true
	}
	var c gronx.SegmentChecker
	c.SetRef(day)
	for _, item := range v.days {
		if due, err := c.CheckDue(item, v.place); due && err == nil {
			return true
		}
	}
	return false
}

// item checks one item of a list and writes it in numbers, as gronx wants it.
// special is one that can only be told for a day of some month.
func (f field) item(text string) (plain string, special bool, err error) {
	if text == "" {
		return "", false, fmt.Errorf("a value is missing beside a comma; write it or remove the comma")
	}
	if plain, special, err = f.special(text); special || err != nil {
		return plain, special, err
	}
	span, step, stepped := strings.Cut(text, "/")
	if span == "?" && !stepped {
		if f.pos != posMonthDay && f.pos != posWeekday {
			return "", false, fmt.Errorf("? is for days only; write *")
		}
		return "*", false, nil
	}
	if plain, err = f.span(span); err != nil || !stepped {
		return plain, false, err
	}
	n, err := strconv.Atoi(step)
	switch {
	case err != nil || step[0] == '+':
		return "", false, fmt.Errorf("%q is no step; write a number after the /, such as */5", step)
	case n < 1:
		return "", false, fmt.Errorf("a step of %d leads nowhere; write at least 1", n)
	case n > f.last:
		return "", false, fmt.Errorf("a step of %d goes beyond %d and would begin anew each time; for equal steps use a schedule of the kind every", n, f.last)
	}
	return plain + "/" + strconv.Itoa(n), false, nil
}

// special checks the forms L, 15W, FRIL and MON#2.
func (f field) special(text string) (plain string, ok bool, err error) {
	if f.pos == posMonthDay {
		if text == "L" {
			return text, true, nil
		}
		if day, ok := strings.CutSuffix(text, "W"); ok {
			n, err := f.value(day)
			return strconv.Itoa(n) + "W", err == nil, err
		}
	}
	if f.pos != posWeekday {
		return "", false, nil
	}
	if text == "L" {
		return "", false, fmt.Errorf("the L needs its day; write 5L or FRIL for the month's last Friday")
	}
	if day, nth, ok := strings.Cut(text, "#"); ok {
		n, err := f.value(day)
		if err != nil {
			return "", false, err
		}
		if len(nth) != 1 || nth < "1" || nth > "5" {
			return "", false, fmt.Errorf("%q: after # stands which one of the month, 1 to 5", text)
		}
		return strconv.Itoa(n%7) + "#" + nth, true, nil
	}
	if day, ok := strings.CutSuffix(text, "L"); ok {
		n, err := f.value(day)
		return strconv.Itoa(n%7) + "L", err == nil, err
	}
	return "", false, nil
}

// span checks *, a value, or a range of values.
func (f field) span(text string) (string, error) {
	if text == "*" {
		return text, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	low, err := f.value(from)
	if err != nil || !ranged {
		return strconv.Itoa(low), err
	}
	high, err := f.value(to)
	if err != nil {
		return "", err
	}
	switch {
	case f.pos != posWeekday:
	case low == 7 && high < 7:
		low = 0 // 7-2
	case high == 0 && low > 0:
		high = 7 // SAT-SUN
	}
	if low > high {
		last := f.last
		if f.pos == posWeekday {
			last = 6
		}
		return "", fmt.Errorf("the range %s runs backwards; write %d-%d,%d-%d", text, low, last, f.first, high)
	}
	return fmt.Sprintf("%d-%d", low, high), nil
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.first + i, nil
		}
		if len(text) > len(name) && strings.HasPrefix(text, name) && !strings.ContainsAny(text, "0123456789") {
			return 0, fmt.Errorf("%q is no value; did you mean %s?", text, name)
		}
	}
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		return 0, fmt.Errorf("a value is missing; write %d to %d%s", f.first, f.last, f.hint)
	case err != nil || strings.TrimLeft(text, "0123456789") != "":
		return 0, fmt.Errorf("%q is no value; write %d to %d%s", text, f.first, f.last, f.hint)
	case n < f.first || n > f.last:
		return 0, fmt.Errorf("%d is out of range; write %d to %d%s", n, f.first, f.last, f.hint)
	}
	return n, nil
}
