package goclaw

import (
	"errors"
	"time"
)

// Errors of the store that callers branch on. Stores wrap them.
var (
	// ErrNotFound: no such run, session or blob.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the run is no longer the writer's (its epoch moved on, its
	// owner changed, or it has ended). Nothing was written.
	ErrFenced = errors.New("run is no longer ours")
	// ErrTooManyChildren: the requester has its limit of unended workers.
	ErrTooManyChildren = errors.New("too many active children")
	// ErrConsumed: an inbox item was already taken by another run. Nothing was
	// written.
	ErrConsumed = errors.New("inbox item already consumed")
)

// Acceptance asks the store to accept a run: session, run and idempotency key
// in one transaction.
type Acceptance struct {
	Run Run // State queued; Ordinal is assigned by the store

	// Key makes the acceptance idempotent ("" does not): a second one with the
	// same key returns the run of the first.
	Key string

	// ParentFence, when set, makes the acceptance fail with ErrFenced unless
	// the spawning run is still its owner's.
	ParentFence *Fence

	// MaxChildren bounds the requester session's unended spawned runs
	// (0: no bound). Beyond it the acceptance fails with ErrTooManyChildren.
	MaxChildren int

	// Waiting is an inbox item that the run is to consume. If a turn has taken
	// it already, nothing is accepted and the error is ErrConsumed.
	Waiting string

	// Coalesce returns an unended run of the same session and trigger that has
	// recorded no event yet, if there is one, instead of accepting another.
	Coalesce bool
}

// ClaimRequest asks for runnable runs in order of acceptance.
type ClaimRequest struct {
	Owner string
	Now   Millis
	Lease time.Duration // how long the owner's lease holds from Now
	Max   int           // at most this many runs

	// MaxWorkers bounds the spawned runs that are running in the whole store,
	// counting other owners' (0: no bound).
	MaxWorkers int

	// OnlyCancelled claims nothing but runs whose cancellation was asked.
	OnlyCancelled bool

	// DeadOwners says that every other owner is known to be dead (the home's
	// lock proves it): their leases are taken at once.
	DeadOwners bool
}

// Claimed is a run that now belongs to the claimer.
type Claimed struct {
	Run      Run
	TakeOver bool // it was running under an owner that is dead or let go
}

// Fence returns the fence of the claimed run.
func (r Run) Fence() Fence { return Fence{Run: r.ID, Epoch: r.Epoch, Owner: r.Owner} }

// Blob is content stored once under its SHA-256 (lower-case hex).
type Blob struct {
	SHA256 string
	Data   []byte
}

// Batch is one fenced transaction on a run's record.
type Batch struct {
	// Events are appended; their Seq must continue the run's log.
	Events []Event
	// Blobs are stored unless present.
	Blobs []Blob
	// Consume marks inbox items as taken by this run; if one was taken
	// already, nothing is written and the error is ErrConsumed.
	Consume []string
	// Usage is the run's sum so far; nil leaves it as it is.
	Usage *Usage
	// Now stamps the rows.
	Now Millis
}

// Ending is the fenced transaction that ends a run: last events, state, result
// and, in the same commit, the announcement and the outbound reply.
type Ending struct {
	Batch
	State  RunState
	Result string
	Error  string

	Announce *InboxItem // its Source is this run; nil for none
	Outbox   *Outbound
}

// Heartbeat renews an owner's lease.
type Heartbeat struct {
	Owner string
	Now   Millis
	Lease time.Duration
}

// Pulse answers a Heartbeat.
type Pulse struct {
	// Held are the runs that are still the owner's, with their epochs. What
	// the owner works on and is not listed was lost.
	Held map[string]int64
	// Cancelled are those of Held whose cancellation was asked.
	Cancelled []string
}

// Cancellation asks for a run's end.
type Cancellation struct {
	Run     string
	Why     string
	Now     Millis
	Cascade bool // also all unended descendants
}

// RunFilter selects runs; zero fields do not restrict. Results come newest
// first.
type RunFilter struct {
	Session   SessionKey
	Requester SessionKey
	Parent    string
	Triggers  []Trigger
	Active    bool // only unended runs
	Ended     bool // only ended runs
	Limit     int
}

// RunLog is a run with its events, as transcripts are folded from.
type RunLog struct {
	Run    Run     `json:"run"`
	Events []Event `json:"events"`
}

// NoReply is the reply of an agent that wants to stay silent (spec section 7).
const NoReply = "NO_REPLY"
