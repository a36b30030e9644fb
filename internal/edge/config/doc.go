// Package config turns goclaw.json, the environment and the home folder's
// location into values.
//
// The file is JSON with comments and trailing commas, read once and strictly:
// a syntax error, an unknown key, a wrong type, a value out of range or a
// duplicate is a Problem with path, line and column and with what to do about
// it. A key of the specification whose feature is not built yet is refused as
// such, so that no setting is ever silently ignored. The structs of this
// package, with their tags, are the one description of the format: the reader
// follows them, and schema.json is generated from them (go test -update).
//
// It refuses to write the file, to watch it, and to show a secret: keys and
// tokens are of type Secret, which prints, logs and encodes as "[secret]", and
// no Problem quotes a value that may be one.
//
// Invariants: a Config that Load returned without an error is complete and
// consistent in itself (models have the form provider/model, ids are unique,
// paths are absolute); what only other packages know, such as the names of
// tools, is checked by Config.Check.
package config
