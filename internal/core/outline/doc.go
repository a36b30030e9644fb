// Package outline tells the structure of a text without its substance: the
// headings of Markdown, the declarations and signatures of source code, each
// with its line.
//
// Go is read by go/parser, Markdown by goldmark, the other languages by a
// scanner that knows their strings and comments; what a declaration is then
// follows from their keywords, brackets and indentation. It is a reading aid,
// not a compiler: code in an unusual layout may lose a declaration.
//
// Invariants: no input makes it panic; time and memory grow linearly with the
// text (every byte is consumed once); the same text always has the same outline; every line of an outline is at most
// MaxSignature bytes of text.
package outline
