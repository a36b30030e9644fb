package recall

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"goclaw"
)

// Question is a query, taken apart.
type Question struct {
	Concepts []Concept
	Terms    []string   // of all its words
	Phrases  [][]string // terms that stood in quotation marks, in order
	Span     Span       // the days that it speaks of
}

// Concept is one thing that is asked for: a term, and others that may stand for
// it.
type Concept struct {
	Term   string
	Word   string // folded, not stemmed
	Weight float64
	Near   []Near
}

// Near is a term that may stand for a concept's own.
type Near struct {
	Term   string
	Weight float64
}

// What is asked for at a time is bounded: who pastes a page means what it begins
// with.
const (
	maxConcepts = 64
	maxTerms    = 256
)

// Ask takes a question apart. now is what its dates are counted from; the zero
// time leaves dates out.
func (s Stemmer) Ask(text string, now time.Time, w Weights) Question {
	var q Question
	if !now.IsZero() {
		text, q.Span = dates(text, now)
	}
	q.Phrases = s.phrases(text)
	all := words(text)
	for _, x := range all[:min(len(all), maxTerms)] {
		q.Terms = append(q.Terms, s.stem(x.text))
	}
	plain := slices.ContainsFunc(all, func(x word) bool { return !isStop(x.text) })
	for _, x := range all {
		if plain && isStop(x.text) {
			continue
		}
		if len(q.Concepts) == maxConcepts {
			break
		}
		term := s.stem(x.text)
		if slices.ContainsFunc(q.Concepts, func(c Concept) bool { return c.Term == term }) {
			continue
		}
		c := Concept{Term: term, Word: x.text, Weight: 1}
		if named(x) {
			c.Weight = w.Name
		}
		for _, variant := range spellings(x.text) {
			c.Near = append(c.Near, Near{s.stem(variant), w.Spelling})
		}
		for i, term := range related(c.Term) {
			if i == w.NearMost {
				break
			}
			c.Near = append(c.Near, Near{term, w.Near * max(0.3, 1-float64(i)*w.NearFall)})
		}
		q.Concepts = append(q.Concepts, c)
	}
	return q
}

// named reports whether a word is a name or a number: those are what a question
// is about.
func named(x word) bool {
	r := []rune(x.raw)
	if slices.ContainsFunc(r, unicode.IsDigit) {
		return true
	}
	return unicode.IsUpper(r[0]) && (!x.opens || len(r) > 1 && unicode.IsUpper(r[1]))
}

// phrases are the terms between quotation marks.
func (s Stemmer) phrases(text string) [][]string {
	var all [][]string
	for _, pair := range [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}} {
		rest := text
		for {
			_, after, open := strings.Cut(rest, pair[0])
			inner, next, closed := strings.Cut(after, pair[1])
			if !open || !closed {
				break
			}
			if terms := s.Terms(inner); len(terms) > 1 {
				all = append(all, terms)
			}
			rest = next
		}
	}
	return all
}

// spellings are other ways to write a word with umlauts: in a text, Müller and
// Muller are one term.
func spellings(w string) []string {
	plain := strings.NewReplacer("ae", "a", "oe", "o", "ue", "u").Replace(w)
	if plain == w || len(w) < 4 {
		return nil
	}
	return []string{plain}
}

// Wanted are the terms of the question's concepts, and those that may stand for
// them.
func (q Question) Wanted() (own, near []string) {
	for _, c := range q.Concepts {
		own = append(own, c.Term)
	}
	for _, c := range q.Concepts {
		for _, n := range c.Near {
			if !slices.Contains(own, n.Term) && !slices.Contains(near, n.Term) {
				near = append(near, n.Term)
			}
		}
	}
	return own, near
}

// Span is some days, from the beginning of the first to the end of the last; the
// zero Span is none.
type Span struct{ From, Until goclaw.Millis }

// IsZero reports whether the span is none.
func (s Span) IsZero() bool { return s == Span{} }

// Holds reports whether a moment lies in the span.
func (s Span) Holds(at goclaw.Millis) bool { return at >= s.From && at < s.Until }
