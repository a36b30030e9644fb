// Package definition decides what a run may do before it starts. Parse reads a
// definition file, as GoClaw or another system has it, and a Catalog says which
// file holds which name. Rules makes the Profile that is stored with the run,
// from the configured agents, a session's overrides and a spawn's arguments.
//
// It does no I/O and keeps no state. Invariants: a file never gets a meaning
// that its author did not write: a list of tools is never widened and a denial
// never lost, and what can't be kept refuses the file with line and column; a
// worker's tools are never more than its requester's policy allows; private
// workspace files are on a worker's list only if a person named them in the
// configuration; a model that does not resolve is an error before anything
// starts.
package definition
