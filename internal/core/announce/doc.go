// Package announce words a finished run's result and decides when a requester
// is woken for it (spec section 7).
//
// It is pure: the engine brings the pending items and the time, and does what
// is decided. Invariant: an item is ready at the latest MaxWait after the
// first of its group was, however long its siblings take.
package announce
