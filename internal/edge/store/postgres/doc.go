// Package postgres keeps GoClaw's sessions, runs and deliveries in a PostgreSQL
// database: the store of any number of gateways and workers on any hosts.
//
// It holds the engine's contract (see storetest): every write is one
// transaction that is committed once its method returned nil, and left nothing
// behind when it returned an error. There is one exception, which the error
// names: when the connection is lost during a commit, nobody knows whether that
// took effect. The call can simply be made again: an acceptance with a key, and
// a batch, suspension or ending that is on record already, word for word and
// under the same claim, is answered as done; runs of a claim that took effect
// unheard are handed out by the next claim.
//
// A transaction has two steps, each one round trip: it locks and reads what it
// depends on, then it writes and commits. Locks are taken in this order, so that
// transactions wait for each other and hardly ever in a circle: cancellations of
// one tree pass one at a time; then the run's row (of several the youngest
// first), other advisory locks, the row of the requester's session, that of the
// own. A session's lock orders its runs, and whoever begins
// to wait against what would wake it. Where a circle is possible all the same,
// PostgreSQL breaks it and the transaction is made anew. A claim holds no lock
// while the claimer thinks: it chooses from a snapshot, and its one statement
// takes effect only if no other claim came between.
//
// Notifications go out after the commit and are best effort (see Changes).
//
// With Options.ServerTime leases and allowances go by the database's clock, so
// that the clocks of the hosts need not agree. All other times come with the
// requests.
//
// It refuses a database that a newer GoClaw wrote, one that is not in UTF-8,
// and servers older than 12. A pooler in between must pool whole sessions:
// prepared statements and LISTEN belong to a connection.
//
// Invariants of the tables: a run whose finished_at is NULL has not ended; of a
// session's unended runs exactly the oldest is head; the owner of a running run
// has a row in processes. Text that PostgreSQL can't hold (NUL, bytes that are
// no UTF-8) is escaped with U+001A, which see text.go.
package postgres
