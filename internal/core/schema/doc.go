// Package schema validates what a model or a person sends against a JSON
// Schema and words what is wrong so that the sender can mend it.
//
// It does no I/O. Unknown top-level arguments are always refused, whether or
// not the schema says so: a misspelt option must never be ignored.
package schema
