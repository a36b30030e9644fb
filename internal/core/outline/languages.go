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

func languages() []language {
	return slices.Concat(braceLanguages(), otherLanguages())
}

func braceLanguages() []language {
	slashes := []string{"//"}
	return []language{
		{
			name: "JavaScript", exts: []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"}, breaks: true,
			syntax: syntax{line: slashes, blocks: []block{starred(false), tripled("`").with("${"), quoted(`"`), quoted(`'`)}, regex: true},
			groups: []string{"class", "interface", "namespace", "module", "enum"},
			leads:  []string{"export", "type", "const", "let", "var", "declare", "abstract", "function"},
		},
		{
			name: "Java", exts: []string{".java"},
			syntax: syntax{line: slashes, blocks: []block{starred(false), tripled(`"""`), quoted(`"`), quoted(`'`)}},
			groups: []string{"class", "interface", "enum", "record"}, leads: []string{"package"},
		},
		{
			name: "C#", exts: []string{".cs"},
			syntax: syntax{line: []string{"//", "#"}, blocks: []block{
				starred(false), raw(`"""`, `"""`),
				verbatim(`@"`), verbatim(`$@"`), verbatim(`@$"`), quoted(`"`), quoted(`'`),
			}},
			groups: []string{"class", "interface", "struct", "enum", "record", "namespace"}, leads: []string{"namespace", "delegate"},
		},
		{
			name: "Kotlin", exts: []string{".kt", ".kts"}, breaks: true,
			syntax: syntax{line: slashes, blocks: []block{starred(true), raw(`"""`, `"""`).with("${"), quoted(`"`).with("${"), quoted(`'`)}},
			groups: []string{"class", "interface", "object"}, leads: []string{"package", "typealias", "val", "var", "const", "fun"},
		},
		{
			name: "Swift", exts: []string{".swift"}, breaks: true,
			syntax: syntax{line: slashes, blocks: []block{starred(true), tripled(`"""`), quoted(`"`)}},
			groups: []string{"class", "struct", "enum", "protocol", "extension", "actor"},
			leads:  []string{"let", "var", "func", "typealias", "case", "associatedtype", "init"},
		},
		{
			name: "Scala", exts: []string{".scala", ".sc"}, breaks: true,
			syntax: syntax{line: slashes, blocks: []block{starred(true), raw(`"""`, `"""`), quoted(`"`)}, chars: true},
			groups: []string{"class", "trait", "object", "enum"}, leads: []string{"package", "val", "var", "def", "type", "given"},
		},
		{
			name: "Rust", exts: []string{".rs"},
			syntax: syntax{line: slashes, blocks: []block{
				starred(true), {open: rustRaw, multiline: true}, tripled(`"`),
			}, chars: true},
			groups: []string{"struct", "enum", "trait", "impl", "mod", "union", "extern"},
			leads:  []string{"fn", "type", "const", "static", "struct", "mod"},
		},
		{
			name: "C", exts: []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ino", ".m", ".mm"}, plainC: true,
			syntax: syntax{line: slashes, blocks: []block{
				starred(false), {open: fixed("#", "\n"), escapes: true, multiline: true, comment: true},
				{open: cppRaw, multiline: true}, quoted(`"`), quoted(`'`),
			}},
			groups: []string{"class", "struct", "enum", "union", "namespace", "extern"}, leads: []string{"typedef", "using", "extern"},
		},
		{
			name: "PHP", exts: []string{".php"},
			syntax: syntax{line: []string{"//", "#"}, blocks: []block{
				starred(false), {open: fixed("?>", "<?php"), comment: true, multiline: true}, {open: fixed("<?php", ""), comment: true},
				{open: label("<<<", "", true, true), below: true}, tripled(`"`), tripled(`'`),
			}},
			groups: []string{"class", "interface", "trait", "enum", "namespace"}, leads: []string{"namespace", "const"},
		},
		{
			name: "Dart", exts: []string{".dart"},
			syntax: syntax{line: slashes, blocks: []block{starred(true), tripled(`"""`), tripled(`'''`), quoted(`"`).with("${"), quoted(`'`).with("${")}},
			groups: []string{"class", "mixin", "extension", "enum"}, leads: []string{"typedef", "const", "final"},
		},
	}
}

func otherLanguages() []language {
	return []language{
		{
			name: "Python", exts: []string{".py", ".pyi"}, style: indents,
			syntax: syntax{line: []string{`#`}, blocks: []block{
				{open: prefixed("rRbBfFuU", `"""`), escapes: true, multiline: true},
				{open: prefixed("rRbBfFuU", `'''`), escapes: true, multiline: true},
				{open: prefixed("rRbBfFuU", `"`), escapes: true}, {open: prefixed("rRbBfFuU", `'`), escapes: true},
			}},
		},
		{
			name: "Ruby", exts: []string{".rb", ".rake"}, style: lines,
			syntax: syntax{line: []string{`#`}, words: "_@$?!", blocks: []block{
				{open: fixed("=begin", "=end"), comment: true, multiline: true},
				{open: label("<<", "~-", false, false), below: true}, quoted(`"`), quoted(`'`),
			}},
			leads: []string{"class", "module", "def", "attr_reader", "attr_writer", "attr_accessor"},
		},
		{
			name: "Lua", exts: []string{".lua"}, style: lines,
			syntax: syntax{line: []string{`--`}, blocks: []block{
				{open: luaLong("--"), comment: true, multiline: true}, {open: luaLong(""), multiline: true}, quoted(`"`), quoted(`'`),
			}},
			leads: []string{"function", "local function"},
		},
		{
			name: "shell", exts: []string{".sh", ".bash", ".zsh"}, style: lines,
			syntax: syntax{line: []string{`#`}, words: "_$./:@%+=~^!?*[],-", inside: "#", blocks: []block{
				{open: fixed("((", "))")}, {open: label("<<", "-", true, true), below: true},
				tripled(`"`), raw(`'`, `'`),
			}},
			leads: []string{"function"},
		},
	}
}
