// Package definition resolves what a run may do before it starts: from the
// configured agents, a session's overrides and a spawn's arguments it makes
// the Profile that is stored with the run.
//
// It does no I/O and keeps no state. Invariants: a worker's tools are never
// more than its requester's policy allows; private workspace files are on a
// worker's list only if a person named them in the configuration; a model that
// does not resolve is an error before anything starts.
package definition
