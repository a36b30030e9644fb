// Package schema validates what a model or a person sends against a JSON
// Schema and words what is wrong so that the sender can mend it.
//
// It does no I/O. Unknown top-level arguments of a tool are always refused by
// Check, whether or not the schema says so: a misspelt option must never be
// ignored. Problems follows the schema alone, for values of any type.
//
// A schema stands for itself: nothing is fetched, and a $ref leads to another
// part of it. One that could be followed without end is refused by Compile.
package schema
