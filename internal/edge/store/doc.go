// Package store holds what the stores below it share: pure functions that say
// which requests they all refuse before they look at what is stored, what they
// make of those that they take (a run's place in its tree, the calls that a
// batch books, what a takeover is told of), which workers run next, whether a
// reservation fits its limits, and how an allowance fills; and Transcripts, the
// memory of what was read.
//
// It stores nothing that lasts, does no I/O and never reads the clock.
// Invariant: what one store refuses or decides here, every store does, with the
// same words.
package store
