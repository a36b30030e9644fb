// Package cron turns schedules into runs: it decides about every due time of
// every job exactly once, whatever dies meanwhile and however many gateways
// there are, because the decision, the run and the next due time are one
// transaction of the store. It refuses to execute anything itself: what it
// starts are runs like any other.
//
// A Service is one goroutine (Run) and the operations of the surfaces. It
// sleeps until the next due time, at most Options.Poll; a change through one
// of its operations wakes it. Several may run side by side on one store: what
// another has decided meanwhile comes as goclaw.ErrChanged and is passed over.
//
// Invariants: nothing is kept in memory that a restart could miss; a due time
// that can't run now because something else is under way is held, without a
// record, until it can; an idle heartbeat leaves no record.
package cron
