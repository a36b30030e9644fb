package outline

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
)

// kind is what a token is to the search for declarations.
type kind byte

const (
	word    kind = iota + 1 // a name, keyword or number
	punct                   // one bracket or operator
	newline                 // the end of a line, outside strings and comments
	opaque                  // a piece of a string
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
	line   []string    // what begins a comment up to the end of the line, as an expression
	blocks []block     // comments and strings; the first that matches counts
	first  []lexerRule // rules before all others
	word   string      // an expression; "" for letters, digits, _ and $
	nested bool        // block comments nest
	regex  bool        // /…/ where an operand is expected
	labels bool        // has strings whose end a label names
}

// block is a comment or string with a beginning and an end, as expressions.
// end may refer to groups of open, which must take part in each match.
type block struct {
	open, end string
	comment   bool
	escapes   bool   // \ takes the next character's meaning away
	doubled   bool   // "" is a quote inside
	multiline bool   // else the end of the line ends it, closed or not
	code      string // what begins code in it, up to a closing brace; "" for nothing
}

type lexerRule = lexer.Rule

// maxLabels bounds how often a label can be needed, because each costs a
// compiled expression.
const maxLabels = 1000

// scan cuts a text into tokens. Every byte is consumed once.
func (l language) scan(text string) ([]token, error) {
	s := l.syntax
	if s.labels && strings.Count(text, "<<")+strings.Count(text, `R"`) > maxLabels {
		return nil, fmt.Errorf("more than %d labelled strings", maxLabels)
	}
	// Built for this call: its cache of labels must not outlive it.
	def, err := lexer.New(s.rules())
	if err != nil {
		return nil, fmt.Errorf("rules of %s: %w", l.name, err)
	}
	lex, err := def.LexString("", text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.name, err)
	}
	names := lexer.SymbolsByRune(def)
	var tokens []token
	depth := 0 // of code in strings
	for {
		t, err := lex.Next()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", l.name, err)
		}
		if t.EOF() {
			return tokens, nil
		}
		k := opaque
		switch name := names[t.Type]; {
		case name == "In" || name == "Deeper" && depth > 0:
			depth++
		case name == "Out":
			depth = max(0, depth-1)
		case depth > 0:
		case strings.HasPrefix(name, "Word"):
			k = word
		case strings.HasPrefix(name, "Punct"):
			k = punct
		case name == "Newline":
			k = newline
		}
		tokens = append(tokens, token{kind: k, line: t.Pos.Line, at: t.Pos.Offset, text: t.Value})
	}
}

// rules are the lexer's. Names with a capital become tokens.
func (s syntax) rules() lexer.Rules {
	rules := lexer.Rules{}
	root := append([]lexerRule(nil), s.first...)
	for i, start := range s.line {
		root = append(root, lexerRule{Name: fmt.Sprintf("comment%d", i), Pattern: start + `[^\n]*`})
	}
	hasCode := false
	for i, b := range s.blocks {
		hasCode = hasCode || b.code != ""
		root = append(root, b.rules(rules, i, s.nested))
	}
	common := []lexerRule{
		{Name: "Newline", Pattern: `\n`},
		{Name: "space", Pattern: `[ \t\r\f]+`},
	}
	after := lexer.Action(nil)
	if s.regex {
		after = lexer.Push("Operand")
		rules["Operand"] = append(append(append([]lexerRule(nil), common...), root...),
			lexerRule{Name: "Regex", Pattern: `/`, Action: lexer.Push("Regex")}, lexer.Return())
		rules["Regex"] = []lexerRule{
			{Name: "escaped", Pattern: `\\[^\n]`},
			{Name: "class", Pattern: `\[`, Action: lexer.Push("Class")},
			{Name: "RegexEnd", Pattern: `/[a-z]*`, Action: lexer.Pop()},
			{Name: "Newline", Pattern: `\n`, Action: lexer.Pop()},
			{Name: "Piece", Pattern: `[^/\\\[\n]+`}, {Name: "any", Pattern: `(?s:.)`},
		}
		rules["Class"] = []lexerRule{
			{Name: "escaped", Pattern: `\\[^\n]`},
			{Name: "classEnd", Pattern: `[\]\n]`, Action: lexer.Pop()},
			{Name: "classPiece", Pattern: `[^\]\\\n]+`}, {Name: "any", Pattern: `(?s:.)`},
		}
		common = append(common, lexerRule{Name: "WordBefore", Pattern: `(?:return|typeof|case|in|of)\b`, Action: after})
	}
	common = append(common,
		lexerRule{Name: "Word", Pattern: s.wordPattern()},
		lexerRule{Name: "PunctLong", Pattern: `=>|->|::|===?|!==?|<=|>=|&&|\|\|`, Action: after},
		lexerRule{Name: "PunctShort", Pattern: `[=(,:\[!&|?;{+*%~^-]`, Action: after},
		lexerRule{Name: "PunctAny", Pattern: `(?s:.)`},
	)
	rules["Root"] = append(root, common...)
	if hasCode {
		rules["Code"] = append([]lexerRule{
			{Name: "Out", Pattern: `\}`, Action: lexer.Pop()},
			{Name: "Deeper", Pattern: `\{`, Action: lexer.Push("Code")},
		}, rules["Root"]...)
	}
	return rules
}

func (s syntax) wordPattern() string {
	if s.word != "" {
		return s.word
	}
	return `[\p{L}\p{N}_$]+`
}

// rules adds the state inside the block and returns the rule that begins it.
func (b block) rules(all lexer.Rules, i int, nested bool) lexerRule {
	name := fmt.Sprintf("String%d", i)
	if b.comment {
		name = fmt.Sprintf("comment_%d", i)
	}
	open := lexerRule{Name: name, Pattern: b.open, Action: lexer.Push(name)}
	var in []lexerRule
	if b.comment && nested {
		in = append(in, open)
	}
	if b.escapes {
		in = append(in, lexerRule{Name: "escape", Pattern: `\\(?s:.)`})
	}
	if b.code != "" {
		in = append(in, lexerRule{Name: "In", Pattern: b.code, Action: lexer.Push("Code")})
	}
	if b.doubled {
		in = append(in, lexerRule{Name: "doubled", Pattern: b.end + b.end})
	}
	end := name + "End"
	in = append(in, lexerRule{Name: end, Pattern: b.end, Action: lexer.Pop()})
	if !b.multiline {
		in = append(in, lexerRule{Name: "Newline", Pattern: `\n`, Action: lexer.Pop()})
	}
	piece := "Inside"
	if b.comment {
		piece = "inside"
	}
	// Letters begin no end, escape or code of any block.
	in = append(in, lexerRule{Name: piece + "Run", Pattern: `[\p{L}\p{N} \t,.;:+]+`}, lexerRule{Name: piece, Pattern: `(?s:.)`})
	all[name] = in
	return open
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

var plainName = regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$]*$`)
