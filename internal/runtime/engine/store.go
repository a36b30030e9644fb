package engine

import (
	"context"

	"goclaw"
)

// Store is all that the engine needs to be durable. Every method that writes
// is one transaction: when it returns nil the write survives power loss; when
// it returns an error nothing was written. All methods are safe for concurrent
// use. Every implementation passes storetest.
type Store interface {
	Intake
	Leases
	Log
	Inbox
	Catalog
	Sessions
}

// Intake takes work in.
type Intake interface {
	// Accept stores a queued run, and its session if that is new. created is
	// false when the key was known or the acceptance coalesced.
	Accept(ctx context.Context, a goclaw.Acceptance) (run goclaw.Run, created bool, err error)

	// Cancel marks a run, and with Cascade its unended descendants, as to be
	// cancelled and returns those it marked now. A run that has ended, or was
	// marked already, is left alone. ErrNotFound if there is no such run.
	Cancel(ctx context.Context, c goclaw.Cancellation) ([]goclaw.Run, error)
}

// Leases decide whose a run is.
type Leases interface {
	// Claim takes runs for an owner: each gets epoch+1, state running, and at
	// its first claim its start time and deadline. It takes, in this order:
	//  1. queued runs whose cancellation was asked (whatever else limits);
	//  2. unended runs of owners that let go, or whose lease expired at Now,
	//     or, with DeadOwners, of any other owner (TakeOver is set);
	//  3. queued runs, oldest first, of sessions without an unended older run,
	//     while spawned runs stay within MaxWorkers.
	// With OnlyCancelled it takes only runs whose cancellation was asked.
	// A claim that finds nothing writes nothing.
	Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error)

	// Heartbeat renews the owner's lease and tells what it still holds.
	Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error)

	// Asked returns the runs of owner whose cancellation was asked. It only
	// reads, so it may be called every second.
	Asked(ctx context.Context, owner string) ([]string, error)

	// Release lets go of all runs of owner: they become interrupted and can
	// be claimed at once.
	Release(ctx context.Context, owner string, now goclaw.Millis) error
}

// Log is a run's record. Only the run's owner writes it: with a stale fence
// nothing is written and the error is ErrFenced.
type Log interface {
	Events(ctx context.Context, run string) ([]goclaw.Event, error)
	Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error
	// End closes the run; there is no second end.
	End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error
}

// Inbox holds announcements until a turn of their requester consumes them in
// the transaction that appends them to its transcript (Batch.Consume).
type Inbox interface {
	// Pending returns the unconsumed items of a session in order of creation;
	// the zero key means of all sessions.
	Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error)

	// Tidy applies the cleanup policies: it removes the transcripts of runs
	// with CleanupDelete that have ended and were announced (or announce
	// nothing), and archives other workers' sessions that ended before
	// archiveBefore. It returns how many sessions it changed.
	Tidy(ctx context.Context, now, archiveBefore goclaw.Millis) (int, error)
}

// Catalog answers questions about runs.
type Catalog interface {
	// Run finds a run by id, or by a prefix of at least four characters that
	// no other run has.
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	// Blob returns stored content by its SHA-256.
	Blob(ctx context.Context, sha string) ([]byte, error)
}

// Sessions are the heads of conversations and their transcripts.
type Sessions interface {
	// History returns the session's runs, with their events, that are older
	// than the run with ordinal before (0: all) and newer than the last
	// reset, oldest first.
	History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error)
	// Session returns ErrNotFound for a session that never had a run or change.
	Session(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error)
	// ChangeSession creates the session if need be.
	ChangeSession(ctx context.Context, key goclaw.SessionKey, c goclaw.SessionChange, now goclaw.Millis) error
}
