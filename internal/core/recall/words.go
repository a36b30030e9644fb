package recall

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// word is a word of a text.
type word struct {
	text  string // folded
	raw   string // as it stands
	at    int    // byte of its beginning
	end   int
	opens bool // it begins a sentence
}

// maxWord bounds a word, in bytes: what is longer is no word but data.
const maxWord = 64

// words finds the words of a text: runs of letters and digits. An apostrophe
// within a word belongs to it; Chinese and Japanese characters, between which
// nobody writes blanks, are taken in pairs, an emoji by itself.
func words(text string) []word {
	var all []word
	opens := true
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if emoji(r) {
			all = append(all, word{text: text[i : i+n], raw: text[i : i+n], at: i, end: i + n})
			i += n
			continue
		}
		if !inWord(r) {
			if strings.ContainsRune(".!?:\n#-*•(\"“", r) {
				opens = true
			}
			i += n
			continue
		}
		end := i
		for end < len(text) {
			r, n := utf8.DecodeRuneInString(text[end:])
			if !inWord(r) && !unicode.Is(unicode.Mn, r) && !(apostrophe(r) && inWordAt(text[end+n:])) {
				break
			}
			end += n
		}
		raw := text[i:end]
		if ideographic(raw) {
			all = pairs(all, raw, i)
		} else if folded := fold(raw); folded != "" && len(folded) <= maxWord {
			all = append(all, word{text: folded, raw: raw, at: i, end: end, opens: opens})
		}
		opens = false
		i = end
	}
	return all
}

func inWord(r rune) bool     { return unicode.IsLetter(r) || unicode.IsNumber(r) }
func emoji(r rune) bool      { return r >= 0x2600 && r != utf8.RuneError && unicode.Is(unicode.So, r) }
func apostrophe(r rune) bool { return r == '\'' || r == '’' }

func inWordAt(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return inWord(r)
}

func ideographic(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

func pairs(all []word, raw string, at int) []word {
	runes := []rune(raw)
	if len(runes) == 1 {
		return append(all, word{text: raw, raw: raw, at: at, end: at + len(raw)})
	}
	for i := range len(runes) - 1 {
		pair := string(runes[i : i+2])
		all = append(all, word{text: norm.NFKC.String(pair), raw: pair, at: at, end: at + len(pair)})
		at += utf8.RuneLen(runes[i])
	}
	return all
}

// fold brings the spellings of a word together: case, accents, ligatures, and
// what follows an apostrophe.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if !ascii {
		s = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFKD.String(s))
	}
	s = strings.ToLower(s)
	if ascii && !strings.Contains(s, "'") {
		return s
	}
	s = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i", "’", "'").Replace(s)
	s = strings.TrimSuffix(s, "'s")
	return strings.ReplaceAll(s, "'", "")
}

// Stemmer brings the forms of a word together. It is not safe for concurrent
// use.
type Stemmer struct{ env *snowballstem.Env }

// NewStemmer returns a Stemmer for English. Words of other languages are hardly
// changed by it.
func NewStemmer() Stemmer { return Stemmer{snowballstem.NewEnv("")} }

func (s Stemmer) stem(w string) string {
	if len(w) < 3 {
		return w
	}
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	s.env.SetCurrent(w)
	english.Stem(s.env)
	if got := s.env.Current(); got != "" {
		return got
	}
	return w
}

// Terms are the terms of a text in their order: words folded and brought to
// their stems. An identifier such as parseConfig gives its parts as well.
func (s Stemmer) Terms(text string) []string {
	all := words(text)
	terms := make([]string, 0, len(all))
	for _, w := range all {
		terms = append(terms, s.stem(w.text))
		for _, p := range parts(w.raw) {
			terms = append(terms, s.stem(fold(p)))
		}
	}
	return terms
}

// parts are those of an identifier in camel case, none of other words.
func parts(raw string) []string {
	var cuts []int
	var before rune
	for i, r := range raw {
		if i > 0 && (unicode.IsLower(before) && unicode.IsUpper(r) || unicode.IsLetter(before) && unicode.IsDigit(r) && i > 2) {
			cuts = append(cuts, i)
		}
		before = r
	}
	if len(cuts) == 0 {
		return nil
	}
	var out []string
	from := 0
	for _, c := range append(cuts, len(raw)) {
		out = append(out, raw[from:c])
		from = c
	}
	return out
}

//go:embed stopwords.txt
var stopwords string

// isStop reports whether a folded word says nothing about what is asked for.
func isStop(w string) bool { return strings.Contains(stopwords, "\n"+w+"\n") }
