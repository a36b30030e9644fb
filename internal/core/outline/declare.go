package outline

import (
	"slices"
	"strings"
)

// declarations adds what the tokens declare.
func (l language) declarations(out *list, text string, tokens []token) {
	switch l.style {
	case indents:
		byIndent(out, text, tokens)
	case lines:
		l.byLine(out, text, tokens)
	default:
		f := finder{language: l, out: out, tokens: tokens}
		f.run()
	}
}

// finder goes through the tokens of a language with braces. It looks at
// statements in the file and in bodies that hold declarations, and passes over
// all other bodies.
type finder struct {
	language
	out    *list
	tokens []token
	depth  int // of the bodies it is in
}

func (f *finder) run() {
	start := 0
	for i := 0; i < len(f.tokens); {
		t := f.tokens[i]
		switch {
		case t.is("(") || t.is("["):
			i = f.past(i)
		case t.is("{"):
			header := f.tokens[start:i]
			if f.group(header) {
				f.add(header, "")
				f.depth++
				i++
			} else {
				end := f.past(i)
				f.body(header)
				i = end
				if slices.ContainsFunc(header, func(t token) bool { return t.is("=") }) && i < len(f.tokens) && !f.tokens[i].is("}") {
					i = f.restOfStatement(i)
				}
			}
			start = i
		case t.is("}"):
			f.statement(f.tokens[start:i])
			f.depth = max(0, f.depth-1)
			i++
			start = i
		case t.is(";") || t.kind == newline && f.ends(start, i):
			f.statement(f.tokens[start:i])
			i++
			start = i
		default:
			i++
		}
	}
	f.statement(f.tokens[start:])
}

// past returns the index after the bracket that closes the one at i.
func (f *finder) past(i int) int {
	depth := 0
	for ; i < len(f.tokens); i++ {
		if f.tokens[i].kind != punct {
			continue
		}
		switch f.tokens[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return i
}

// restOfStatement passes over what follows the first body of a value, up to
// the end of its line or statement.
func (f *finder) restOfStatement(i int) int {
	for i < len(f.tokens) {
		switch t := f.tokens[i]; {
		case t.is("(") || t.is("[") || t.is("{"):
			i = f.past(i)
		case t.is("}"):
			return i
		case t.is(";") || t.kind == newline:
			return i + 1
		default:
			i++
		}
	}
	return i
}

// The bounds of what is looked at to tell whether a statement goes on.
const (
	maxStatement = 500 // tokens of it
	maxBlank     = 50  // tokens after the end of the line
)

// ends reports whether the end of a line at i ends the statement from start.
func (f *finder) ends(start, i int) bool {
	if !f.breaks || i == start || i-start > maxStatement {
		return f.breaks
	}
	last := f.tokens[i-1]
	if last.kind == punct && !slices.Contains([]string{")", "]", "}", ">", "?", "!", "*"}, last.text) ||
		last.is("extends") || last.is("implements") || last.is("with") {
		return false
	}
	if len(trim(f.tokens[start:i])) == 0 {
		return false // an annotation belongs to what follows
	}
	for _, next := range f.tokens[i:min(len(f.tokens), i+maxBlank)] {
		if next.kind == newline {
			continue
		}
		return !(next.is("extends") || next.is("implements") || next.is("where") || next.is("with") ||
			next.kind == punct && slices.Contains([]string{"{", ".", "=>", "->", "?", ":", "=", "|", "&", "||", "&&", "::"}, next.text))
	}
	return true
}

// trim takes line ends, attributes and annotations from the front of a header.
func trim(header []token) []token {
	for len(header) > 0 {
		switch {
		case header[0].kind == newline:
			header = header[1:]
		case header[0].is("#") && len(header) > 1 && (header[1].is("[") || header[1].is("!")):
			header = header[closing(header, 1):]
		case len(header) > 1 && header[1].is(":") && (header[0].is("public") || header[0].is("private") || header[0].is("protected")):
			header = header[2:]
		case header[0].is("["):
			header = header[closing(header, 0):]
		case header[0].is("@") && len(header) > 1 && !header[1].is("interface"):
			n := 2
			for n+1 < len(header) && (header[n].is(".") || header[n].is(":")) {
				n += 2
			}
			if n < len(header) && header[n].is("(") {
				n = closing(header, n)
			}
			header = header[n:]
		default:
			return header
		}
	}
	return nil
}

// closing returns the index after the bracket that closes the next one.
func closing(tokens []token, from int) int {
	f := finder{tokens: tokens}
	for i := from; i < len(tokens); i++ {
		if tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{") {
			return f.past(i)
		}
	}
	return len(tokens)
}

// group reports whether what follows header holds declarations.
func (f *finder) group(header []token) bool {
	header = trim(header)
	for i, t := range header {
		switch {
		case t.is("="):
			return false
		case t.is("("):
			// Only visibility stands in parentheses before the word: pub(crate).
			if i == 0 || !header[i-1].is("pub") {
				return false
			}
		case t.kind == word && slices.Contains(f.groups, t.text):
			if f.plainC && slices.ContainsFunc(header[i:], func(t token) bool { return t.is("(") }) {
				return false
			}
			if i+1 < len(header) {
				next := header[i+1]
				if next.is("func") || next.is("var") || next.kind == punct && next.text != "<" && next.text != "(" && next.text != "[" {
					return false
				}
			}
			return true
		}
	}
	return false
}

// control are the words that begin a body which declares nothing.
var control = [...]string{
	"if", "else", "for", "foreach", "while", "do", "switch", "match", "try", "catch", "finally", "return", "throw",
	"with", "using", "lock", "synchronized", "loop", "when", "guard", "defer", "unsafe", "await", "yield", "new", "case", "default",
}

// body adds the header of a body that is passed over, if it declares something.
func (f *finder) body(header []token) {
	header = trim(header)
	if len(header) == 0 {
		return
	}
	first := header[0]
	assigned := slices.IndexFunc(header, func(t token) bool { return t.is("=") })
	open := slices.IndexFunc(header, func(t token) bool { return t.is("(") })
	switch {
	case first.kind == word && slices.Contains(control[:], first.text), len(header) == 1 && first.is("export"):
	case assigned >= 0 && (open < 0 || assigned < open):
		if f.lead(header) || first.is("module") || first.is("exports") || f.callable(header[assigned:]) {
			f.add(header, " {…}")
		} else if f.inGroup() {
			f.add(header[:assigned], " = …")
		}
	case open > 0 && (header[open-1].kind == word || slices.Contains([]string{">", "]", "?", "&"}, header[open-1].text) || f.plainC), f.inGroup() && f.member(header), f.lead(header):
		f.add(header, "")
	}
}

// callable reports whether a value is a function.
func (f *finder) callable(value []token) bool {
	return slices.ContainsFunc(value, func(t token) bool { return t.is("=>") || t.is("function") })
}

func (f *finder) inGroup() bool { return f.depth > 0 }

// member reports whether a header without parentheses is a property: a name at
// least.
func (f *finder) member(header []token) bool { return header[0].kind == word }

// lead reports whether one of the words before the declared name begins a
// declaration.
func (f *finder) lead(header []token) bool {
	for _, t := range header[:min(len(header), 5)] {
		if t.kind != word {
			return false
		}
		if slices.Contains(f.leads, t.text) {
			return true
		}
	}
	return false
}

// statement adds what ends without a body, if it declares something.
func (f *finder) statement(header []token) {
	header = trim(header)
	for len(header) > 0 && header[len(header)-1].kind == newline {
		header = header[:len(header)-1]
	}
	if len(header) == 0 || header[0].kind != word || slices.Contains(control[:], header[0].text) && !f.groupWord(header) {
		return
	}
	assigned := slices.IndexFunc(header, func(t token) bool { return t.is("=") })
	open := slices.IndexFunc(header, func(t token) bool { return t.is("(") })
	prototype := f.plainC && open > 1 && header[open-1].kind == word && header[open-2].kind == word && !f.inFunctionCall(header)
	switch {
	case header[0].is("export") && len(header) > 1 && (header[1].is("{") || header[1].is("*")), header[0].is("import"), header[0].is("use"), header[0].is("#"):
		return
	case f.lead(header), prototype, f.inGroup() && len(header) > 1, f.groupWord(header):
	default:
		return
	}
	tail := ""
	if value := source(header); assigned > 0 && len(value) > 80 && !f.callable(header[assigned:]) && !header[0].is("type") {
		header, tail = header[:assigned], " = …"
	}
	f.add(header, tail)
}

// groupWord reports whether a declaration like `struct Point(f64, f64);` or
// `case class P(x: Int)` ends without a body.
func (f *finder) groupWord(header []token) bool {
	for i, t := range header[:min(len(header), 4)] {
		if t.kind != word {
			return false
		}
		if slices.Contains(f.groups, t.text) {
			return i+1 < len(header) && header[i+1].kind == word
		}
	}
	return false
}

// inFunctionCall reports whether a C header is rather a macro or a statement.
func (f *finder) inFunctionCall(header []token) bool {
	return slices.ContainsFunc(header, func(t token) bool { return t.kind == opaque }) || slices.Contains(control[:], header[0].text)
}

func (f *finder) add(header []token, tail string) {
	header = trim(header)
	if len(header) == 0 {
		return
	}
	f.out.add(header[0].line, f.depth, strings.TrimSpace(source(header))+tail)
}

// byLine lists the lines that begin with a word of declarations.
func (l language) byLine(out *list, text string, tokens []token) {
	for rest := tokens; len(rest) > 0; {
		end := slices.IndexFunc(rest, func(t token) bool { return t.kind == newline || t.is(";") })
		if end < 0 {
			end = len(rest)
		}
		if line := rest[:end]; len(line) > 1 && l.declares(line) {
			if open := slices.IndexFunc(line, func(t token) bool { return t.is("{") }); open > 0 {
				line = line[:open]
			} else if l.name == "Lua" {
				line = line[:closing(line, 0)]
			}
			out.add(line[0].line, indent(text, line[0].at)/2, source(line))
		}
		rest = rest[min(end+1, len(rest)):]
	}
}

func (l language) declares(line []token) bool {
	if line[0].kind != word {
		return false
	}
	second := line[1]
	for _, lead := range l.leads {
		if first, more, two := strings.Cut(lead, " "); line[0].text == first && (two && second.is(more) || !two && !slices.Contains([]string{"=", ".", ",", "(", ")"}, second.text)) {
			return true
		}
	}
	if l.name == "shell" {
		return len(line) > 2 && second.is("(") && line[2].is(")")
	}
	// Lua: name = function(…), name.of = function(…).
	return l.name == "Lua" && slices.ContainsFunc(line, func(t token) bool { return t.is("=") }) &&
		slices.ContainsFunc(line, func(t token) bool { return t.is("function") })
}

// indent is how many columns stand before the offset at, as far as they are
// blank; a tab counts as two.
func indent(text string, at int) int {
	start := strings.LastIndexByte(text[max(0, at-200):at], '\n') + 1 + max(0, at-200)
	before := text[start:at]
	if strings.Trim(before, " \t") != "" {
		return 0
	}
	return len(before) + strings.Count(before, "\t")
}

// byIndent lists the classes and functions of Python, and the names that a
// module gives values to.
func byIndent(out *list, text string, tokens []token) {
	type scope struct {
		indent   int
		function bool
	}
	var scopes []scope
	for rest := tokens; len(rest) > 0; {
		line, after := logicalLine(rest)
		rest = after
		if len(line) == 0 {
			continue
		}
		in := indent(text, line[0].at)
		for len(scopes) > 0 && in <= scopes[len(scopes)-1].indent {
			scopes = scopes[:len(scopes)-1]
		}
		hidden := slices.ContainsFunc(scopes, func(s scope) bool { return s.function })
		def := line[0].is("def") || line[0].is("async") && len(line) > 1 && line[1].is("def")
		switch {
		case def || line[0].is("class"):
			if !hidden {
				out.add(line[0].line, len(scopes), header(line))
			}
			scopes = append(scopes, scope{in, def})
		case !hidden && line[0].kind == word && (line[0].text[0] < '0' || line[0].text[0] > '9') && len(line) > 2 && (line[1].is("=") || line[1].is(":")):
			if line[0].is("else") || line[0].is("try") || line[0].is("finally") {
				continue
			}
			cut := slices.IndexFunc(line, func(t token) bool { return t.is("=") })
			if s := source(line); cut < 0 || len(s) <= 80 {
				out.add(line[0].line, len(scopes), s)
			} else {
				out.add(line[0].line, len(scopes), source(line[:cut])+" = …")
			}
		}
	}
}

// logicalLine cuts off the first line, which goes on within brackets and after
// a backslash.
func logicalLine(tokens []token) (line, rest []token) {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth = max(0, depth-1)
		case t.kind == newline && depth == 0 && (i == 0 || !tokens[i-1].is(`\`)):
			return tokens[:i], tokens[i+1:]
		}
	}
	return tokens, nil
}

// header is a line up to the colon that begins its body.
func header(line []token) string {
	depth := 0
	for i, t := range line {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case t.is(":") && depth == 0:
			return source(line[:i])
		}
	}
	return source(line)
}
