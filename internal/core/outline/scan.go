package outline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is to the search for declarations.
type kind byte

const (
	word    kind = iota + 1 // a name, keyword or number
	punct                   // one bracket or operator
	newline                 // the end of a line, outside strings and comments
	opaque                  // a string, or a piece of one
)

// token is a piece of source that is no comment.
type token struct {
	kind kind
	line int
	at   int // offset in bytes
	text string
}

// syntax is how a language writes comments, strings and names.
type syntax struct {
	line   []string // what begins a comment up to the end of the line
	blocks []block  // comments and strings; the first that begins counts
	words  string   // what a word may hold beside letters and digits; "" for _ and $
	inside string   // what it may hold after its first character as well
	chars  bool     // 'x' is a character, and a lone ' no string
	regex  bool     // /…/ where an operand is expected
}

// block is a comment or string with a beginning and an end.
type block struct {
	open      func(s string) (n int, end string) // length of the beginning of s, 0 for none
	comment   bool
	nested    bool   // comments that hold comments
	escapes   bool   // \ takes the next character's meaning away
	doubled   bool   // the end twice is a quote inside
	multiline bool   // else the end of the line ends it, closed or not
	below     bool   // it begins on the next line, and its end stands alone at the front of one
	code      string // what begins code in it, up to a closing brace; "" for nothing
}

// frame is a block that the scanner is in, or the code inside one.
type frame struct {
	block
	begin string
	end   string
	depth int  // of nested comments, or of braces in code
	code  bool // in the code, not in the block
}

// scanner cuts a text into tokens. It consumes every byte once.
type scanner struct {
	syntax
	text    string
	at      int
	line    int
	tokens  []token
	stack   []frame
	pending []string // ends of blocks that begin on the next line
}

func (s syntax) scan(text string) []token {
	c := scanner{syntax: s, text: text, line: 1}
	for c.at < len(text) {
		if n := len(c.stack); n > 0 && !c.stack[n-1].code {
			c.inBlock(&c.stack[n-1])
		} else {
			c.inCode()
		}
	}
	return c.tokens
}

// emit makes a token of the next n bytes.
func (c *scanner) emit(k kind, n int) {
	if len(c.stack) > 0 && k != newline {
		k = opaque
	}
	c.tokens = append(c.tokens, token{k, c.line, c.at, c.text[c.at : c.at+n]})
	c.skip(n)
}

func (c *scanner) skip(n int) {
	c.line += strings.Count(c.text[c.at:c.at+n], "\n")
	c.at += n
}

func (c *scanner) inCode() {
	rest := c.text[c.at:]
	first := rest[0]
	switch {
	case first == '\n':
		if len(c.stack) == 0 {
			c.emit(newline, 1)
		} else {
			c.skip(1)
		}
		c.skipBelow()
		return
	case first == ' ', first == '\t', first == '\r', first == '\f':
		c.skip(1)
		return
	}
	if c.enter(rest) {
		return
	}
	for _, start := range c.syntax.line {
		if strings.HasPrefix(rest, start) && !(start == "#" && strings.HasPrefix(rest, "#[")) {
			c.skip(lineLength(rest))
			return
		}
	}
	if n := c.wordLength(rest); n > 0 {
		c.emit(word, n)
		return
	}
	if first == '\'' && c.chars {
		c.emit(opaque, charLength(rest))
		return
	}
	if first == '/' && c.regex && c.operand() {
		c.emit(opaque, regexLength(rest))
		return
	}
	if len(c.stack) > 0 && c.brace(first) {
		return
	}
	n := 0
	for _, op := range [...]string{"===", "!==", "=>", "->", "::", "==", "!=", "<=", ">=", "&&", "||", "<<<"} {
		if strings.HasPrefix(rest, op) {
			n = len(op)
			break
		}
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(rest)
	}
	c.emit(punct, n)
}

// brace follows the braces of code inside a string; true if it ended there.
func (c *scanner) brace(first byte) bool {
	top := &c.stack[len(c.stack)-1]
	switch first {
	case '{':
		top.depth++
	case '}':
		if top.depth--; top.depth < 0 {
			c.emit(opaque, 1)
			c.stack = c.stack[:len(c.stack)-1]
			return true
		}
	}
	return false
}

// enter begins a block if one begins here.
func (c *scanner) enter(rest string) bool {
	for _, b := range c.blocks {
		n, end := b.open(rest)
		if n == 0 {
			continue
		}
		if b.comment {
			c.skip(n)
		} else {
			c.emit(opaque, n)
		}
		if b.below {
			c.pending = append(c.pending, end)
		} else {
			c.stack = append(c.stack, frame{block: b, begin: rest[:n], end: end})
		}
		return true
	}
	return false
}

// inBlock goes to where the block ends, is broken off, or code begins in it.
func (c *scanner) inBlock(f *frame) {
	rest := c.text[c.at:]
	n := 0
	for n < len(rest) {
		s := rest[n:]
		switch {
		case f.escapes && s[0] == '\\':
			_, size := utf8.DecodeRuneInString(s[1:])
			n += 1 + size
			continue
		case f.doubled && strings.HasPrefix(s, f.end+f.end):
			n += 2 * len(f.end)
			continue
		case strings.HasPrefix(s, f.end):
			n += len(f.end)
			if f.depth > 0 {
				f.depth--
				continue
			}
			c.leave(f, n)
			return
		case f.nested && strings.HasPrefix(s, f.begin):
			f.depth++
			n += len(f.begin)
			continue
		case s[0] == '\n' && !f.multiline:
			c.leave(f, n)
			return
		case f.block.code != "" && strings.HasPrefix(s, f.block.code):
			c.emit(opaque, n+len(f.block.code))
			c.stack = append(c.stack, frame{code: true})
			return
		}
		n++
	}
	c.leave(f, len(rest))
}

// leave ends a block after n more bytes.
func (c *scanner) leave(f *frame, n int) {
	switch comment := f.comment; {
	case comment || n == 0:
		c.skip(n)
	default:
		c.emit(opaque, n)
	}
	c.stack = c.stack[:len(c.stack)-1]
}

// skipBelow passes over the blocks that the last line announced.
func (c *scanner) skipBelow() {
	for _, end := range c.pending {
		for c.at < len(c.text) {
			line := c.text[c.at:][:lineLength(c.text[c.at:])]
			after, found := strings.CutPrefix(strings.TrimLeft(line, " \t"), end)
			if found && c.wordLength(after) == 0 {
				c.skip(len(line) - len(after))
				break
			}
			c.skip(min(len(line)+1, len(c.text)-c.at))
		}
	}
	c.pending = c.pending[:0]
}

// lineLength is how many bytes stand before the end of the line.
func lineLength(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

func (c *scanner) wordLength(s string) int {
	also := c.words
	if also == "" {
		also = "_$"
	}
	for i, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(also, r) || i > 0 && strings.ContainsRune(c.inside, r) {
			continue
		}
		return i
	}
	return len(s)
}

// charLength is the length of a character in quotes, else of the quote.
func charLength(s string) int {
	_, size := utf8.DecodeRuneInString(s[1:])
	if strings.HasPrefix(s[1:], `\`) {
		if end := strings.IndexByte(s[2:min(len(s), 14)][min(1, len(s)-2):], '\''); end >= 0 {
			return 2 + 1 + end + 1
		}
		return 1
	}
	if size > 0 && strings.HasPrefix(s[1+size:], "'") {
		return 1 + size + 1
	}
	return 1
}

// operand reports whether what comes next can't be an operator.
func (c *scanner) operand() bool {
	if len(c.tokens) == 0 {
		return true
	}
	switch last := c.tokens[len(c.tokens)-1]; last.kind {
	case word:
		return last.text == "return" || last.text == "typeof" || last.text == "case"
	case punct:
		return !strings.Contains(")]}<>", last.text)
	case newline:
		return true
	}
	return strings.HasSuffix(c.tokens[len(c.tokens)-1].text, "${")
}

// regexLength is the length of a regular expression on one line.
func regexLength(s string) int {
	class := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\n':
			return i
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return i + 1
			}
		}
	}
	return len(s)
}

// is reports whether the token is this word or operator.
func (t token) is(text string) bool { return (t.kind == word || t.kind == punct) && t.text == text }

// source renders tokens on one line, without comments.
func source(tokens []token) string {
	var b strings.Builder
	end := -1
	for _, t := range tokens {
		if b.Len() > 4*MaxSignature {
			break
		}
		if t.kind == newline || end >= 0 && t.at > end {
			b.WriteByte(' ')
		}
		if t.kind != newline {
			b.WriteString(t.text)
		}
		end = t.at + len(t.text)
	}
	return b.String()
}
