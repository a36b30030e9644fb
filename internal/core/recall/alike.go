package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mendable reports whether a term may be a misspelling: it is long enough, and
// no number.
func Mendable(term string) bool {
	return utf8.RuneCountInString(term) >= 4 && !slices.ContainsFunc([]rune(term), unicode.IsDigit)
}

// Alike returns the terms that a misspelled one may be meant for, the likeliest
// first: those one slip of the pen away, or two in a long word. The first letter
// is seldom wrong.
func Alike(term string, vocabulary []string) []string {
	const most = 3
	slips := 1
	if utf8.RuneCountInString(term) >= 8 {
		slips = 2
	}
	type near struct {
		term  string
		slips int
	}
	var found []near
	want := []rune(term)
	for _, t := range vocabulary {
		if n := len(t) - len(term); n > 2*slips || n < -2*slips || t == "" || t[0] != term[0] {
			continue
		}
		if d := slipsBetween(want, []rune(t), slips); d <= slips && t != term {
			found = append(found, near{t, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.slips, b.slips), cmp.Compare(a.term, b.term)) })
	var out []string
	for _, f := range found[:min(most, len(found))] {
		out = append(out, f.term)
	}
	return out
}

// Joinable reports whether a term may be a part of a longer word, or be made of
// shorter ones, as in German: it is long enough, and no English word that the
// built-in vectors know.
func Joinable(term string) bool {
	if _, known := senseOf(term); known || !Mendable(term) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(term)
	return unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek)
}

// Joined returns the terms that a term is a part of, and those that are parts of
// it, the nearest in length first: Haustürschlüssel beside Schlüssel.
func Joined(term string, vocabulary []string) []string {
	const most, least = 8, 4
	var found []string
	for _, t := range vocabulary {
		long, short := t, term
		if len(long) < len(short) {
			long, short = short, long
		}
		i := strings.Index(long, short)
		switch ends := i == 0 || strings.HasSuffix(long, short); {
		case i < 0, len(short) < least, long == short:
		case ends, len(short) > least && t == long:
			found = append(found, t)
		}
	}
	far := func(t string) int { return max(len(t)-len(term), len(term)-len(t)) }
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(a, b)) })
	return found[:min(most, len(found))]
}

// slipsBetween is the number of letters that are wrong, missing, too many or
// swapped between two words; more than most is not counted out.
func slipsBetween(a, b []rune, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var older []int
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, before, row = before, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
