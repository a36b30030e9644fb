package outline

import "slices"

// language is how the declarations of a kind of file are found.
type language struct {
	name   string
	exts   []string
	syntax syntax
	style  style
	groups []string // words of declarations that hold others
	leads  []string // words that begin one without a body
	breaks bool     // the end of a line can end a declaration
	plainC bool     // a group's word in a header with parentheses is a return type
}

// style is how bodies are told from what surrounds them.
type style byte

const (
	braces style = iota
	indents
	lines
)

func languageOf(ext string) (language, bool) {
	if ext == "" {
		return language{}, false
	}
	for _, l := range languages() {
		if slices.Contains(l.exts, ext) {
			return l, true
		}
	}
	return language{}, false
}

var (
	slashes    = `//`
	starred    = block{open: `/\*`, end: `\*/`, comment: true, multiline: true}
	double     = block{open: `"`, end: `"`, escapes: true}
	single     = block{open: `'`, end: `'`, escapes: true}
	tripled    = block{open: `"""`, end: `"""`, escapes: true, multiline: true}
	rawTripled = block{open: `"""`, end: `"""`, multiline: true}
)

func languages() []language {
	return slices.Concat(braceLanguages(), otherLanguages())
}

func braceLanguages() []language {
	template := block{open: "`", end: "`", escapes: true, multiline: true, code: `\$\{`}
	coded := func(b block, code string) block { b.code = code; return b }
	return []language{
		{
			name: "JavaScript", exts: []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"}, breaks: true,
			syntax: syntax{line: []string{slashes}, blocks: []block{starred, template, double, single}, regex: true},
			groups: []string{"class", "interface", "namespace", "module", "enum"},
			leads:  []string{"export", "type", "const", "let", "var", "declare", "abstract", "function"},
		},
		{
			name: "Java", exts: []string{".java"},
			syntax: syntax{line: []string{slashes}, blocks: []block{starred, tripled, double, single}},
			groups: []string{"class", "interface", "enum", "record"}, leads: []string{"package"},
		},
		{
			name: "C#", exts: []string{".cs"},
			syntax: syntax{line: []string{slashes, `#`}, blocks: []block{
				starred, rawTripled,
				{open: `(?:@\$?|\$@)"`, end: `"`, doubled: true, multiline: true}, double, single,
			}},
			groups: []string{"class", "interface", "struct", "enum", "record", "namespace"}, leads: []string{"namespace", "delegate"},
		},
		{
			name: "Kotlin", exts: []string{".kt", ".kts"}, breaks: true,
			syntax: syntax{line: []string{slashes}, nested: true, blocks: []block{starred, coded(rawTripled, `\$\{`), coded(double, `\$\{`), single}},
			groups: []string{"class", "interface", "object"}, leads: []string{"package", "typealias", "val", "var", "const", "fun"},
		},
		{
			name: "Swift", exts: []string{".swift"}, breaks: true,
			syntax: syntax{line: []string{slashes}, nested: true, blocks: []block{starred, tripled, double}},
			groups: []string{"class", "struct", "enum", "protocol", "extension", "actor"},
			leads:  []string{"let", "var", "func", "typealias", "case", "associatedtype", "init"},
		},
		{
			name: "Scala", exts: []string{".scala", ".sc"}, breaks: true,
			syntax: syntax{line: []string{slashes}, nested: true, blocks: []block{starred, rawTripled, double}, first: charLiteral()},
			groups: []string{"class", "trait", "object", "enum"}, leads: []string{"package", "val", "var", "def", "type", "given"},
		},
		{
			name: "Rust", exts: []string{".rs"},
			syntax: syntax{line: []string{slashes}, nested: true, blocks: []block{
				starred, {open: `b?r(#{0,8})"`, end: `"\1`, multiline: true},
				{open: `b?"`, end: `"`, escapes: true, multiline: true},
			}, first: charLiteral()},
			groups: []string{"struct", "enum", "trait", "impl", "mod", "union", "extern"},
			leads:  []string{"fn", "type", "const", "static", "struct", "mod"},
		},
		{
			name: "C", exts: []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ino", ".m", ".mm"}, plainC: true,
			syntax: syntax{line: []string{slashes}, labels: true, blocks: []block{
				starred, {open: `#`, end: `\n`, escapes: true, multiline: true, comment: true},
				{open: `(?:u8|[uUL])?R"([^ ()\\\t\n]{0,16})\(`, end: `\)\1"`, multiline: true}, double, single,
			}, first: []lexerRule{{Name: "WordNumber", Pattern: `[0-9][0-9A-Za-z_'.]*`}}},
			groups: []string{"class", "struct", "enum", "union", "namespace", "extern"}, leads: []string{"typedef", "using", "extern"},
		},
		{
			name: "PHP", exts: []string{".php"},
			syntax: syntax{line: []string{slashes, `#(?:[^\[\n]|$)`}, labels: true, blocks: []block{
				starred, {open: `\?>`, end: `<\?(?:php|=)?`, comment: true, multiline: true},
				{open: `<<<[ \t]*(["']?)([A-Za-z_][A-Za-z0-9_]{0,63})["']?`, end: `\n[ \t]*\2\b`, multiline: true},
				{open: `"`, end: `"`, escapes: true, multiline: true}, {open: `'`, end: `'`, escapes: true, multiline: true},
			}, first: []lexerRule{{Name: "opening", Pattern: `<\?(?:php|=)`}}},
			groups: []string{"class", "interface", "trait", "enum", "namespace"}, leads: []string{"namespace", "const"},
		},
		{
			name: "Dart", exts: []string{".dart"},
			syntax: syntax{line: []string{slashes}, nested: true, blocks: []block{starred, tripled, {open: `'''`, end: `'''`, escapes: true, multiline: true}, coded(double, `\$\{`), coded(single, `\$\{`)}},
			groups: []string{"class", "mixin", "extension", "enum"}, leads: []string{"typedef", "const", "final"},
		},
	}
}

// charLiteral is one character in quotes, where a lone quote begins a lifetime
// or a symbol.
func charLiteral() []lexerRule {
	return []lexerRule{{Name: "Char", Pattern: `b?'(?:[^'\\\n]|\\(?:u\{?[0-9a-fA-F]{1,6}\}?|x[0-9a-fA-F]{2}|[^\n]))'`}}
}

func otherLanguages() []language {
	return []language{
		{
			name: "Python", exts: []string{".py", ".pyi"}, style: indents,
			syntax: syntax{line: []string{`#`}, blocks: []block{
				{open: `[rRbBfFuU]{0,2}"""`, end: `"""`, escapes: true, multiline: true},
				{open: `[rRbBfFuU]{0,2}'''`, end: `'''`, escapes: true, multiline: true},
				{open: `[rRbBfFuU]{0,2}"`, end: `"`, escapes: true}, {open: `[rRbBfFuU]{0,2}'`, end: `'`, escapes: true},
			}},
		},
		{
			name: "Ruby", exts: []string{".rb", ".rake"}, style: lines,
			syntax: syntax{line: []string{`#`}, labels: true, word: `[\p{L}\p{N}_@$?!]+`, blocks: []block{
				{open: `=begin\b`, end: `=end\b`, comment: true, multiline: true},
				{open: `<<[~-]?(["']?)([A-Z_][A-Za-z0-9_]{0,63})["']?`, end: `\n[ \t]*\2\b`, multiline: true},
				double, single,
			}},
			leads: []string{"class", "module", "def", "attr_reader", "attr_writer", "attr_accessor"},
		},
		{
			name: "Lua", exts: []string{".lua"}, style: lines,
			syntax: syntax{line: []string{`--`}, blocks: []block{
				{open: `--\[(={0,8})\[`, end: `\]\1\]`, comment: true, multiline: true},
				{open: `\[(={0,8})\[`, end: `\]\1\]`, multiline: true}, double, single,
			}},
			leads: []string{"function", "local function"},
		},
		{
			name: "shell", exts: []string{".sh", ".bash", ".zsh"}, style: lines,
			syntax: syntax{line: []string{`#`}, labels: true, word: `[\p{L}\p{N}_$./:@%+=~^!?*\[\],-][\p{L}\p{N}_$./:@%+=~^!?*\[\],#-]*`, blocks: []block{
				{open: `<<-?[ \t]*(["'\\]?)([A-Za-z_][A-Za-z0-9_]{0,63})["']?`, end: `\n[\t]*\2\b`, multiline: true},
				{open: `\$'`, end: `'`, escapes: true, multiline: true},
				{open: `"`, end: `"`, escapes: true, multiline: true}, {open: `'`, end: `'`, multiline: true},
			}, first: []lexerRule{{Name: "PunctHere", Pattern: `<<<|\\(?s:.)|\(\([^\n()]*\)\)`}}},
			leads: []string{"function"},
		},
	}
}
