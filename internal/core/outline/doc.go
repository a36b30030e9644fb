// Package outline tells the structure of a text without its substance: the
// headings of Markdown, the declarations and signatures of source code, each
// with its line.
//
// Go is read by go/parser, Markdown by goldmark, the other languages by a
// lexer whose rules know their strings and comments; what a declaration is then
// follows from their keywords and brackets. It is a reading aid, not a
// compiler: code in an unusual layout may lose a declaration.
//
// Invariants: no input makes it panic; time and memory grow linearly with the
// text (every byte is consumed once, by expressions that can't backtrack); the
// same text always has the same outline; every line of an outline is at most
// MaxSignature bytes of text.
package outline
