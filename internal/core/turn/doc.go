// Package turn is the agent loop as a pure state machine over a run's events.
//
// Fold builds the State from the log, Next decides what to do in it. The
// engine does that, records what came of it as events and folds them in. So
// the loop can stop at any instant and go on from the log alone.
//
// It refuses to do I/O, to know the time and to call anything. Invariants: a
// recorded model reply is never asked for again; a call whose intent is
// recorded and whose result is not is run again only if it is idempotent; a
// transcript never holds a call without a result.
package turn
