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
	Purse
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
	// its first claim its start time and deadline (the earlier of its timeout
	// from then on and Profile.Until). It takes, in this order:
	//  1. queued runs whose cancellation was asked (whatever else limits);
	//  2. unended runs that were let go, and those of other owners whose lease
	//     expired at Now, or, with DeadOwners, of any (TakeOver is set);
	//  3. queued runs, and waiting ones whose WakeAt is over, of sessions
	//     without an unended older run: first those that are not spawned,
	//     oldest first, then spawned ones while they stay within MaxWorkers,
	//     MaxPerLane and MaxPerAgent, each time of the lane that has the
	//     fewest running (counting those claimed now), oldest first.
	// Class 1 holds waiting runs, too. A waiting run loses its wait reason.
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
	// Suspend appends, and gives the run's slot back: it is waiting, and
	// nobody's, until something wakes it.
	Suspend(ctx context.Context, f goclaw.Fence, s goclaw.Suspension) error
	// End closes the run; there is no second end.
	End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error
}

// Inbox holds what is on its way into transcripts, until a run of the session
// consumes it in the transaction that appends it (Batch.Consume).
type Inbox interface {
	// Pending returns the items of a session that are neither consumed nor
	// parked, in order of creation; the zero key means of all sessions.
	Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error)

	// Post adds an item for the run, which it wakes if that is waiting;
	// ErrEnded if the run has ended or was asked to. An id that is known
	// already changes nothing.
	Post(ctx context.Context, run string, item goclaw.InboxItem) error

	// Resume wakes a run that waits, whatever for; ErrNotFound if it does not.
	Resume(ctx context.Context, run string, now goclaw.Millis) (goclaw.Run, error)

	// Redirect gives a pending item to another session. An item that is not
	// pending is left alone.
	Redirect(ctx context.Context, item string, to goclaw.SessionKey) error

	// Postpone counts a failed delivery of pending items.
	Postpone(ctx context.Context, items []string, r goclaw.Return, now goclaw.Millis) error

	// Parked lists the parked items and outbound replies, oldest first.
	Parked(ctx context.Context) ([]goclaw.Parked, error)
	// Unpark makes a parked delivery pending again, with no attempt counted;
	// Dismiss gives it up for good. ErrNotFound if it is not parked.
	Unpark(ctx context.Context, id string, now goclaw.Millis) error
	Dismiss(ctx context.Context, id string, now goclaw.Millis) error

	// Tidy applies the cleanup policies: it removes the transcripts of runs
	// with CleanupDelete that have ended and were announced (or announce
	// nothing), and archives other workers' sessions that ended before
	// archiveBefore. It returns how many sessions it changed.
	Tidy(ctx context.Context, now, archiveBefore goclaw.Millis) (int, error)
}

// Purse knows what was spent and what may be.
type Purse interface {
	// Reserve holds what the run's next model call may spend. A shortage is
	// no error: nothing is held then. ErrFenced with a stale fence. What is
	// still held when the run ends, or under an earlier epoch of it, counts
	// as spent.
	Reserve(ctx context.Context, f goclaw.Fence, r goclaw.Reservation) (*goclaw.Shortage, error)

	// TakeRate takes from a provider's allowance, or returns when to ask again
	// (0: taken). A request larger than the allowance goes through once the
	// bucket is full. GiveRate corrects the tokens of one that was taken.
	TakeRate(ctx context.Context, r goclaw.RateRequest) (goclaw.Millis, error)
	GiveRate(ctx context.Context, r goclaw.RateRequest) error

	// Paused reads the kill switch, SetPause sets it (the zero value: off).
	Paused(ctx context.Context) (goclaw.Pause, error)
	SetPause(ctx context.Context, p goclaw.Pause) error

	// Usage sums recorded calls, the most tokens first.
	Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error)
}

// Catalog answers questions about runs.
type Catalog interface {
	// Queue returns the ids of the queued spawned runs that could be claimed
	// but for the limits, in the order in which they would be.
	Queue(ctx context.Context) ([]string, error)

	// Run finds a run by id, or by a prefix of at least four characters that
	// no other run has.
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	// Blob returns stored content by its SHA-256.
	Blob(ctx context.Context, sha string) ([]byte, error)
	// ArtifactsOf lists what runs left, newest first.
	ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error)
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
