package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a configuration file.
type Problem struct {
	Path string // of the file
	Line int    // from 1
	Col  int    // from 1, in characters
	What string // what is wrong, never quoting a secret
	Hint string // what to do about it
}

// Error says it in one line: path:line:col: what; what to do.
func (p Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; %s", p.Path, p.Line, p.Col, p.What, p.Hint)
}

// Problems are all that is wrong with a file, in its order.
type Problems []Problem

// Error gives one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// errorOrNil sorts the problems by place; none is no error.
func (ps Problems) errorOrNil() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	return ps
}

// place is a position in the file.
type place struct{ line, col int }

func placeAt(src []byte, offset int) place {
	before := src[:min(offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return place{1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])}
}

// nearest is the candidate most like word, "" if none is like it.
func nearest(word string, candidates []string) string {
	best, least := "", 1+len(word)/3
	for _, c := range candidates {
		if fold(c) == fold(word) {
			return c
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d <= least && (best == "" || d < distance(strings.ToLower(word), strings.ToLower(best))) {
			best = c
		}
	}
	return best
}

// fold makes max_children, maxChildren and max-children alike.
func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance is the number of characters to insert, delete, change or swap with
// their neighbour to make b of a.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before, prev []int
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(s); i++ {
		before, prev, row = prev, row, make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			change := 1
			if s[i-1] == t[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(t)]
}
