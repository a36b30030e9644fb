package recall

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// snippetBytes is about how much of a chunk is shown.
const snippetBytes = 320

// Snippet is the part of a chunk's text that holds most of what was asked for,
// and the lines, counted from the chunk's own first, that it begins and ends in.
func (s Stemmer) Snippet(q Question, text string) (snippet string, first, last int) {
	if len(text) <= snippetBytes+snippetBytes/4 {
		return text, 0, strings.Count(text, "\n")
	}
	all := words(text)
	hit := make([]float64, len(all))
	own, near := q.Wanted()
	for i, w := range all {
		switch term := s.stem(w.text); {
		case slices.Contains(own, term):
			hit[i] = 1
		case slices.Contains(near, term):
			hit[i] = 0.4
		}
	}
	var best, sum float64
	from, to := 0, 0
	for i, j := 0, 0; j < len(all); j++ {
		sum += hit[j]
		for all[j].end-all[i].at > snippetBytes && i < j {
			sum -= hit[i]
			i++
		}
		if sum > best {
			for first := i; ; first++ {
				if hit[first] > 0 {
					best, from, to = sum, all[first].at, all[j].end
					break
				}
			}
		}
	}
	from, to = widen(text, from, to)
	out := strings.TrimSpace(text[from:to])
	first = strings.Count(text[:from], "\n")
	last = first + strings.Count(out, "\n")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out, first, last
}

// widen lets a part begin where a sentence or line does, if one does shortly
// before, and fills it up to the length of a snippet at a blank.
func widen(text string, from, to int) (int, int) {
	const reach = 120
	start := max(0, from-reach)
	for start > 0 && !utf8.RuneStart(text[start]) {
		start++
	}
	before := text[start:from]
	cut := -1
	for _, end := range []string{"\n", ". ", "! ", "? "} {
		if i := strings.LastIndex(before, end); i >= 0 {
			cut = max(cut, i+len(end))
		}
	}
	switch {
	case cut >= 0:
		from = start + cut
	case start == 0:
		from = 0
	}
	if limit := min(len(text), from+snippetBytes); limit > to {
		to = limit
		if i := strings.LastIndexAny(text[from:to], " \n"); i > 0 && to < len(text) {
			to = from + i
		}
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return from, to
}
