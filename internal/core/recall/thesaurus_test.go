package recall

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	wordNet = flag.String("wordnet", "", "folder of WordNet 3.0's data.* and index.* files: makes thesaurus.txt of them")
)

// TestMakeThesaurus makes thesaurus.txt, if it is given WordNet's files
// (Debian: the package wordnet-base):
//
//	go test ./internal/core/recall -run MakeThesaurus -wordnet /usr/share/wordnet
func TestMakeThesaurus(t *testing.T) {
	if *wordNet == "" {
		t.Skip("needs -wordnet FOLDER")
	}
	g := generator{stems: NewStemmer(), synsets: map[string]synset{}, glosses: map[string]float64{}, near: map[string]map[string]float64{}}
	for _, pos := range []string{"noun", "verb", "adj", "adv"} {
		g.data(t, pos)
	}
	for _, pos := range []string{"noun", "verb", "adj", "adv"} {
		g.index(t, pos)
	}
	if err := os.WriteFile("thesaurus.txt", []byte(g.text()), 0o644); err != nil {
		t.Fatal(err)
	}
}

type synset struct {
	pos   string
	words []string
	links []link
	gloss []string // stems of the definition, without examples
}

type link struct {
	kind, to string
	from, at int // the words of both that are meant, from 1; 0: all
}

type generator struct {
	stems   Stemmer
	synsets map[string]synset             // by pos and offset
	glosses map[string]float64            // in how many definitions a stem stands
	near    map[string]map[string]float64 // by stem
	often   map[string]float64
}

func lines(t *testing.T, file string, each func(string)) {
	t.Helper()
	f, err := os.Open(filepath.Join(*wordNet, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if !strings.HasPrefix(s.Text(), "  ") { // the licence
			each(s.Text())
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

func hexadecimal(s string) int {
	n, _ := strconv.ParseInt(s, 16, 32)
	return int(n)
}

// data reads the sets of synonyms and their links.
func (g *generator) data(t *testing.T, pos string) {
	lines(t, "data."+pos, func(line string) {
		head, gloss, _ := strings.Cut(line, " | ")
		f := strings.Fields(head)
		s := synset{pos: pos}
		n := hexadecimal(f[3])
		for i := range n {
			word, _, _ := strings.Cut(f[4+2*i], "(")
			s.words = append(s.words, strings.ToLower(word))
		}
		f = f[4+2*n:]
		links, _ := strconv.Atoi(f[0])
		for i := range links {
			p := f[1+4*i:]
			to := map[string]string{"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}[p[2]]
			s.links = append(s.links, link{p[0], to + p[1], hexadecimal(p[3][:2]), hexadecimal(p[3][2:])})
		}
		definition, _, _ := strings.Cut(gloss, `; "`)
		for _, w := range words(definition) {
			if !isStop(w.text) && len(w.text) > 2 {
				s.gloss = append(s.gloss, g.stems.stem(w.text))
			}
		}
		slices.Sort(s.gloss)
		s.gloss = slices.Compact(s.gloss)
		for _, w := range s.gloss {
			g.glosses[w]++
		}
		g.synsets[pos+head[:8]] = s
	})
}

// What a link of WordNet is worth, by its sign.
func worthOf(kind string) float64 {
	switch kind {
	case "+", `\`: // made of the same word
		return 0.8
	case "&": // similar adjectives
		return 0.6
	case "$", "^": // verb group, see also
		return 0.6
	case "@": // more general
		return 0.5
	case "~": // more special
		return 0.3
	case "=", "*", ">": // attribute, entailment, cause
		return 0.4
	}
	return 0
}

// index reads words with their meanings, the most frequent first.
func (g *generator) index(t *testing.T, pos string) {
	lines(t, "index."+pos, func(line string) {
		f := strings.Fields(line)
		word := f[0]
		n, _ := strconv.Atoi(f[2])
		tagged, _ := strconv.Atoi(f[len(f)-n-1])
		if !plainWord(word) || isStop(word) {
			return
		}
		if g.often == nil {
			g.often = map[string]float64{}
		}
		g.often[g.stems.stem(word)] += float64(tagged)
		for i, offset := range f[len(f)-n:] {
			if i == 4 {
				break
			}
			sense := []float64{1, 0.7, 0.5, 0.35}[i]
			if i >= tagged && i > 0 {
				sense *= 0.6
			}
			g.sense(word, g.synsets[pos+offset], sense)
		}
	})
}

func plainWord(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return len(w) > 2
}

// sense notes what is near to a word in one of its meanings.
func (g *generator) sense(word string, s synset, worth float64) {
	for _, w := range s.words {
		g.add(word, w, worth)
	}
	special := 0
	for _, l := range s.links {
		if l.kind == "~" {
			special++
		}
	}
	for _, l := range s.links {
		if l.from > 0 && s.words[l.from-1] != word || l.kind == "~" && special > 12 {
			continue
		}
		other := g.synsets[l.to]
		for i, w := range other.words {
			if l.at == 0 || l.at == i+1 {
				g.add(word, w, worth*worthOf(l.kind))
			}
		}
	}
	if len(s.gloss) > 0 {
		for _, w := range s.gloss {
			rare := math.Log(120_000/(1+g.glosses[w])) / math.Log(120_000)
			g.addStem(g.stems.stem(word), w, worth*glossWorth*rare)
		}
	}
}

const glossWorth = 0.35

func (g *generator) add(word, other string, worth float64) {
	if worth > 0 && plainWord(other) && !isStop(other) {
		g.addStem(g.stems.stem(word), g.stems.stem(other), worth)
	}
}

func (g *generator) addStem(a, b string, worth float64) {
	if a == b {
		return
	}
	if g.near[a] == nil {
		g.near[a] = map[string]float64{}
	}
	g.near[a][b] += worth
}

const (
	mostNear  = 10
	mostHeads = 9000
	leastNear = 0.2
)

func (g *generator) text() string {
	var out strings.Builder
	heads := make([]string, 0, len(g.near))
	for stem := range g.near {
		if g.often[stem] > 0 || g.glosses[stem] >= 3 {
			heads = append(heads, stem)
		}
	}
	weight := func(stem string) float64 { return 3*g.often[stem] + g.glosses[stem] }
	slices.SortFunc(heads, func(a, b string) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	heads = heads[:min(mostHeads, len(heads))]
	slices.Sort(heads)
	for _, stem := range heads {
		near := make([]string, 0, len(g.near[stem]))
		score := func(w string) float64 {
			// What is near both ways is nearer; what nobody writes is of no use.
			s := g.near[stem][w] + 0.5*g.near[w][stem]
			if g.often[w] == 0 && g.glosses[w] < 3 { // nobody writes it
				s *= 0.3
			}
			return s
		}
		for w := range g.near[stem] {
			if score(w) >= leastNear {
				near = append(near, w)
			}
		}
		slices.SortFunc(near, func(a, b string) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a, b)) })
		if len(near) > 0 {
			fmt.Fprintf(&out, "%s\t%s\n", stem, strings.Join(near[:min(mostNear, len(near))], " "))
		}
	}
	return out.String()
}
