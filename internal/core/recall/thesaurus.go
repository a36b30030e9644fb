package recall

import (
	_ "embed"
	"strings"
)

// The thesaurus is made of WordNet 3.0 by testdata/thesaurus.py: a line for
// each stem, sorted: the stem, a tab, and stems that mean about the same, the
// nearest first. WordNet's licence is in NOTICE.
//
//go:embed thesaurus.txt
var thesaurus string

// related returns the stems near to a stem, the nearest first.
func related(stem string) []string {
	low, high := 0, len(thesaurus)
	for low < high {
		// The line that the middle lies in.
		middle := (low + high) / 2
		from := strings.LastIndexByte(thesaurus[:middle], '\n') + 1
		end := from + strings.IndexByte(thesaurus[from:], '\n')
		head, rest, _ := strings.Cut(thesaurus[from:end], "\t")
		switch {
		case head == stem:
			return strings.Fields(rest)
		case head < stem:
			low = end + 1
		default:
			high = from
		}
	}
	return nil
}
