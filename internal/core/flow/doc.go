// Package flow reads flows, small files that chain runs, and plans them: from
// what has happened so far it says what is to be started next.
//
// It does no I/O, knows no clock and keeps no state: Plan is a function of the
// flow, its input and the runs on record. Steps see each other through
// artifacts, results and fields of results that the file names, never through
// a conversation.
//
// Invariants: a step never starts before what it comes after has ended well; a
// run's key is made of step, item and round, so the same history always gives
// the same starts and a started key is never started again; every loop ends
// after a bounded number of rounds; the result of a flow that completes does
// not depend on the order in which its runs ended.
package flow
