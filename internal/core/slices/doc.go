// Package slices assembles the pieces of context that a definition names, and
// renders them for a worker's first message.
//
// What it needs from the world it asks a Reader for. Everything else is decided
// here: the values of placeholders, which files a `from` means, tags, and what
// is cut or outlined so that a slice keeps its bound.
//
// Invariants: the result has the order of the definition, the files of a slice
// the order of their source; the same input and files give the same result; a
// value of a placeholder never leads out of the workspace and never acts as a
// pattern; with maxTokens, the tokens of a slice are at most that; no text ends
// the tag that it stands in, or that of another slice. What can't be had is an
// error of one line, `definition:line:col: what; what to do`, before anything
// is sent.
package slices
