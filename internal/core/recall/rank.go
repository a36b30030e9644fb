package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"goclaw"
)

// Weights say how much each sign of a match counts. docs/memory.md says what
// each of them is worth.
type Weights struct {
	Title      float64 // a word in the headings, beside one in the text
	Near       float64 // the nearest of a term's related terms, beside the term
	NearFall   float64 // how much less each further one counts
	NearMost   int     // how many of them count
	NearAlso   float64 // related terms that are there besides the best one
	Spelling   float64 // another spelling of a word
	Joined     float64 // a word that is a part of the word, or that it is a part of
	Name       float64 // a name or number, beside another word
	Cover      float64 // how much counts that many of the words are there
	Phrase     float64 // a phrase that was asked for word by word
	Feedback   float64 // words that the best chunks share, beside the question's
	Day        float64 // a chunk of the days that were asked for
	Recent     float64 // a chunk of today, beside an old one
	Sense      float64 // the ranking by built-in vectors, beside that by full text
	Embedding  float64 // the ranking by an embedding model, beside that by full text
	Beside     float64 // the ranking by built-in vectors where an embedding model has answered
	SenseLeast float64 // likeness below which a chunk is no answer
	FuseBy     float64 // how slowly ranks lose worth when rankings are joined
}

// DefaultWeights are those that were best on the half of the benchmark that
// they were chosen on.
func DefaultWeights() Weights {
	return Weights{
		Title: 2, Near: 0.7, NearFall: 0.05, NearMost: 10, NearAlso: 1, Spelling: 0.8, Joined: 0.6, Name: 1.3,
		Cover: 0.3, Phrase: 1, Feedback: 0.15, Day: 3, Recent: 0.1,
		Sense: 6, SenseLeast: 0.2, Embedding: 6, Beside: 1.5, FuseBy: 5,
	}
}

// Stats are what an index knows of itself.
type Stats struct {
	Chunks int
	Terms  int            // of all chunks together
	Has    map[string]int // how many chunks hold a term
}

// Rarity is a term's inverse frequency, as BM25 has it.
func (s Stats) Rarity(term string) float64 {
	n := float64(s.Has[term])
	return math.Log(1 + (float64(s.Chunks)-n+0.5)/(n+0.5))
}

// Ranked is a chunk with its score.
type Ranked struct {
	goclaw.MemoryChunk
	Score float64
}

// Rank orders chunks by how well they answer the question, the best first, and
// leaves out those that don't at all. now is what recency is counted from; 0
// leaves it out.
func Rank(q Question, chunks []goclaw.MemoryChunk, s Stats, w Weights, now goclaw.Millis) []Ranked {
	r := ranker{q: q, s: s, w: w, now: now, at: map[string][]use{}}
	r.prepare()
	var out []Ranked
	for _, c := range chunks {
		if score := r.score(c); score > 0 {
			out = append(out, Ranked{c, score})
		}
	}
	slices.SortStableFunc(out, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.At, a.At), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// use is what a term may stand for.
type use struct {
	concept int
	worth   float64
	own     bool
}

type ranker struct {
	q    Question
	s    Stats
	w    Weights
	now  goclaw.Millis
	at   map[string][]use // by term
	mean float64          // terms of a chunk
}

func (r *ranker) prepare() {
	for i, c := range r.q.Concepts {
		r.at[c.Term] = append(r.at[c.Term], use{i, c.Weight * r.s.Rarity(c.Term), true})
	}
	for i, c := range r.q.Concepts {
		for _, n := range c.Near {
			if n.Term != c.Term && r.s.Has[n.Term] > 0 {
				// A rare term that only may be meant is not worth more than a common
				// one that is.
				r.at[n.Term] = append(r.at[n.Term], use{i, c.Weight * n.Weight * r.s.Rarity(n.Term), false})
			}
		}
	}
	r.mean = max(1, float64(r.s.Terms)/float64(max(1, r.s.Chunks)))
}

// found is how often the terms of a concept stand in a chunk.
type found map[string]float64

func (r *ranker) score(c goclaw.MemoryChunk) float64 {
	hits := make([]found, len(r.q.Concepts))
	terms := strings.Fields(c.Terms)
	note := func(term string, times float64) {
		for _, u := range r.at[term] {
			if hits[u.concept] == nil {
				hits[u.concept] = found{}
			}
			hits[u.concept][term] += times
		}
	}
	for _, t := range terms {
		note(t, 1)
	}
	title := strings.Fields(c.TitleTerms)
	for _, t := range title {
		note(t, r.w.Title)
	}
	length := 0.25 + 0.75*float64(len(terms)+len(title))/r.mean
	var sum, there, all float64
	for i, h := range hits {
		worth := r.concept(i, h, length)
		sum += worth
		weight := r.q.Concepts[i].Weight
		all += weight
		if worth > 0 {
			there += weight
		}
	}
	if all > 0 {
		sum *= 1 - r.w.Cover + r.w.Cover*there/all
	}
	sum += r.w.Phrase * r.phrases(terms, title)
	if !r.q.Span.IsZero() && r.q.Span.Holds(c.At) {
		sum += 0.1 // it is an answer even if it holds none of the words
	}
	if r.now > 0 && c.At > 0 && sum > 0 {
		const month = 30 * 24 * 3600 * 1000
		sum *= 1 + r.w.Recent*math.Exp(-float64(max(0, r.now-c.At))/month)
	}
	return sum
}

// concept is what the terms of one concept are worth: the best of them, and a
// part of the others.
func (r *ranker) concept(i int, h found, length float64) float64 {
	const k = 1.2
	var best, rest float64
	for term, often := range h {
		for _, u := range r.at[term] {
			if u.concept != i {
				continue
			}
			worth := u.worth * often * (k + 1) / (often + k*length)
			if worth > best {
				best, rest = worth, rest+best
			} else {
				rest += worth
			}
		}
	}
	return best + r.w.NearAlso*min(rest, best)
}

// phrases is how much the phrases are worth that stand in a chunk.
func (r *ranker) phrases(terms, title []string) float64 {
	var sum float64
	for _, p := range r.q.Phrases {
		if !holds(terms, p) && !holds(title, p) {
			continue
		}
		for _, t := range p {
			sum += r.s.Rarity(t)
		}
	}
	return sum
}

func holds(terms, phrase []string) bool {
	for i := 0; i+len(phrase) <= len(terms); i++ {
		if slices.Equal(terms[i:i+len(phrase)], phrase) {
			return true
		}
	}
	return false
}

// feedbackChunks is how many of the best chunks are looked at for what they share.
const feedbackChunks = 4

// Feedback adds to the question what the best chunks have in common, as weaker
// concepts.
func Feedback(q Question, best []Ranked, s Stats, w Weights) Question {
	const most = 8
	if w.Feedback == 0 || len(best) == 0 {
		return q
	}
	best = best[:min(feedbackChunks, len(best))]
	worth := map[string]float64{}
	for _, b := range best {
		seen := map[string]bool{}
		for _, t := range strings.Fields(b.TitleTerms + " " + b.Terms) {
			if !seen[t] && len(t) > 2 && !isStop(t) {
				seen[t] = true
				worth[t] += b.Score / best[0].Score
			}
		}
	}
	for _, c := range q.Concepts {
		delete(worth, c.Term)
	}
	type weighed struct {
		term  string
		worth float64
	}
	var terms []weighed
	for t, v := range worth {
		if s.Has[t] > 0 && v > 1 { // in more than one of them
			terms = append(terms, weighed{t, v * s.Rarity(t)})
		}
	}
	slices.SortFunc(terms, func(a, b weighed) int { return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.term, b.term)) })
	q.Concepts = slices.Clone(q.Concepts)
	for _, t := range terms[:min(most, len(terms))] {
		q.Concepts = append(q.Concepts, Concept{Term: t.term, Word: t.term, Weight: w.Feedback})
	}
	return q
}

// FeedbackTerms are the terms that Feedback may add, whose frequencies it needs:
// those that several of the best chunks hold.
func FeedbackTerms(best []Ranked) []string {
	in := map[string]int{}
	for _, b := range best[:min(feedbackChunks, len(best))] {
		terms := strings.Fields(b.TitleTerms + " " + b.Terms)
		slices.Sort(terms)
		for _, t := range slices.Compact(terms) {
			in[t]++
		}
	}
	var shared []string
	for t, n := range in {
		if n > 1 {
			shared = append(shared, t)
		}
	}
	return shared
}

// Held is how much of what is asked for one of the best chunks holds in the
// question's own words, from 0 to 1; rare words count more.
func Held(q Question, best []Ranked, s Stats) float64 {
	const chunks = 10
	var all, most float64
	for _, c := range q.Concepts {
		all += c.Weight * s.Rarity(c.Term)
	}
	for _, b := range best[:min(chunks, len(best))] {
		terms := strings.Fields(b.TitleTerms + " " + b.Terms)
		var held float64
		for _, c := range q.Concepts {
			if slices.Contains(terms, c.Term) {
				held += c.Weight * s.Rarity(c.Term)
			}
		}
		most = max(most, held)
	}
	if all == 0 {
		return 0
	}
	return most / all
}

// List is a ranking that is joined with others.
type List struct {
	Ranked []Ranked
	Weight float64
}

// Fuse joins rankings by reciprocal rank: what stands high in several comes
// first, and what was written in the days that were asked for before the rest. A
// ranking without weight, or of nothing, does not count. Scores are from 0 to 1.
func Fuse(q Question, w Weights, lists ...List) []Ranked {
	type key struct {
		path, id string
		line     int
	}
	at := map[key]int{}
	var out []Ranked
	var all float64
	for _, list := range lists {
		if list.Weight <= 0 || len(list.Ranked) == 0 {
			continue
		}
		all += list.Weight
		for i, r := range list.Ranked {
			k := key{r.Path, r.ID, r.Line}
			j, ok := at[k]
			if !ok {
				j = len(out)
				at[k] = j
				out = append(out, Ranked{r.MemoryChunk, 0})
			}
			out[j].Score += list.Weight * (w.FuseBy + 1) / (w.FuseBy + float64(i) + 1)
		}
	}
	for i := range out {
		out[i].Score /= all
		if !q.Span.IsZero() && !q.Span.Holds(out[i].At) {
			out[i].Score /= 1 + w.Day
		}
	}
	slices.SortStableFunc(out, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return out
}
