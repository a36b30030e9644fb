// Package sqlite keeps GoClaw's sessions, runs and deliveries in one SQLite
// file: the store of a gateway on one machine.
//
// It holds the engine's contract (see storetest): every write is one
// transaction that survives power loss once its method returned nil, and left
// nothing behind when it returned an error. Writes of concurrent callers are
// committed together by the store's only writer, so that N of them cost one
// fsync; a lone write is committed at once. Reads run beside the writer on
// connections of their own and see every write that was answered before.
//
// It refuses to open a file that another program or a newer GoClaw wrote, and
// never overwrites what it does not understand. It never reads the clock: all
// times come with the requests.
//
// Invariants of the tables: a run whose finished_at is NULL has not ended; of a
// session's unended runs exactly the oldest has head = 1; the owner of a
// running run has a row in processes; a waiting run has no owner; of a run at
// most one hold is not spent, and it is of the run's epoch. No write relies on
// a unique index of runs, events, inbox or outbox.
//
// A claim looks at runs that can be taken, and of those queued in one lane at
// the oldest only: it costs the same however many are behind them. A
// reservation sums the calls of its tree or day, which takes some 2 ms for
// 10,000 of them.
//
// A bare parameter as a LIMIT, or compared with a column that a partial index
// compares too, makes SQLite compile the statement anew at every execution,
// because its plan may depend on the value. Written +? it doesn't.
package sqlite
