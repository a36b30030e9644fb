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
	// ErrTreeFull: the tree has had all the spawned runs that it may have.
	ErrTreeFull = errors.New("too many runs in this tree")
	// ErrReused: the idempotency key is that of another request. Nothing was done.
	ErrReused = errors.New("the idempotency key belongs to another request; use a new one")
	// ErrEnded: the run has ended or was asked to; nothing can reach it.
	ErrEnded = errors.New("the run has ended")
	// ErrWoken: something has come for the run since it last looked, so it
	// neither ends nor waits. Nothing was written.
	ErrWoken = errors.New("something came for the run")
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

	// MaxTreeRuns bounds the spawned runs of the tree named by Run.Root, ended
	// ones too (0: no bound). Beyond it the acceptance fails with ErrTreeFull.
	MaxTreeRuns int

	// Waiting is an inbox item that the run is to consume. If a turn has taken
	// it already, nothing is accepted and the error is ErrConsumed.
	Waiting string

	// Blobs are stored unless present.
	Blobs []Blob

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
	// counting other owners'; MaxPerLane those of one lane, MaxPerAgent those
	// of one agent (0, or no entry: no bound).
	MaxWorkers  int
	MaxPerLane  int
	MaxPerAgent map[string]int

	// TurnsBefore leaves queued runs that are not spawned and were accepted
	// later to others, such as the gateway that accepted them (0: leaves none).
	TurnsBefore Millis

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
	Released bool // with TakeOver: the owner let go in order
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
	// Artifacts are stored with the events; one of the run with the same name is
	// replaced.
	Artifacts []ArtifactData
	// Usage is the run's sum so far; nil leaves it as it is.
	Usage *Usage
	// Day is the person's date, as 2006-01-02: model replies among Events are
	// booked to it. Such a reply also gives back what was reserved for it.
	Day string
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

	// IfQuiet makes the ending fail with ErrWoken while the run's session has
	// pending inbox items or unended workers.
	IfQuiet bool

	// Wake says when a run of the requester's session goes on that waits for
	// its workers.
	Wake *Wake

	// Cascade, if not "", is why the run's unended descendants are to be
	// cancelled with this end.
	Cascade string

	// Return gives the inbox items back that the run had consumed.
	Return *Return
}

// Wake is when a waiting run goes on, unless it does so earlier: at Last if no
// worker of its session is left, else at Next (0: not because of this one).
type Wake struct {
	Last Millis
	Next Millis

	// Together counts only those as left that the same run spawned with
	// AnnounceTogether: the announcement waits for no others.
	Together bool
}

// Return counts a failed delivery of inbox items: they are pending again from
// NextAt on, or parked.
type Return struct {
	Why    string
	NextAt Millis
	Parked bool
}

// ArtifactData is an artifact with its content.
type ArtifactData struct {
	Name      string
	MediaType string
	Data      []byte
}

// Suspension is the fenced transaction by which a run gives its slot back.
type Suspension struct {
	Batch
	For   WaitReason
	Until Millis // 0: until something wakes it; its deadline does in any case

	// Seen is how many inbox items the run knows to be pending for its session,
	// without those that it consumes. With another number the error is ErrWoken;
	// also if the run waits for workers with no Until, and its session has none
	// that is unended.
	Seen int
}

// Reservation is the most that a model call may spend. It is held from before
// the call is sent until its reply is recorded.
type Reservation struct {
	Tokens int64
	USD    float64

	Tree Limits // of the run's root
	Day  Limits // of the run's agent on Date
	Date string // as 2006-01-02

	// Spent says that the call before this one may have been billed although
	// it has no record: what was held for it counts as spent from now on. So
	// does what an earlier owner of the run held.
	Spent bool
	Now   Millis
}

// Shortage says which limit a reservation would pass. Spent is what is on
// record (or lost), Held what other calls under way may still spend.
type Shortage struct {
	Scope string // tree or day
	What  string // tokens, usd, steps or seconds
	Limit float64
	Spent float64
	Held  float64
	Need  float64
}

// Hopeless reports whether waiting for the calls under way can't help.
func (s Shortage) Hopeless() bool { return s.Spent+s.Need > s.Limit }

// RateRequest takes one request of Tokens tokens from a provider's shared
// allowance: two buckets that fill in a minute and hold a minute's worth.
type RateRequest struct {
	Name              string // the provider's
	RequestsPerMinute int    // 0: no bound
	TokensPerMinute   int    // 0: no bound
	Tokens            int64
	Now               Millis
}

// Pause is the kill switch: while it is set, no model is called anywhere.
type Pause struct {
	At  Millis `json:"at,omitempty"` // 0: not paused
	Why string `json:"why,omitempty"`
}

// UsageQuery selects and groups recorded model calls. By lists some of agent,
// definition, model, trigger, day, tree and run; none means one sum.
type UsageQuery struct {
	By    []string
	Since string // day, as 2006-01-02; "": from the beginning
	Until string // day, included; "": to the end
	Agent string // "": all
	Tree  string // "": all
}

// UsageRow is a sum of model calls. Only the fields that the query grouped by
// are set.
type UsageRow struct {
	Agent      string  `json:"agent,omitempty"`
	Definition string  `json:"definition,omitempty"`
	Model      string  `json:"model,omitempty"`
	Trigger    Trigger `json:"trigger,omitempty"` // of the run that made the calls
	Day        string  `json:"day,omitempty"`
	Tree       string  `json:"tree,omitempty"` // id of the root run
	Run        string  `json:"run,omitempty"`

	Calls  int64 `json:"calls"`
	Usage  Usage `json:"usage"` // CostUSD: of the calls whose price is known; nil if of none
	TookMs int64 `json:"tookMs"`

	// CacheReadShare and CacheWriteShare are the parts of the input that were
	// read from and written to the providers' caches, from 0 to 1; nil without
	// any input. The gateway works them out.
	CacheReadShare  *float64 `json:"cacheReadShare"`
	CacheWriteShare *float64 `json:"cacheWriteShare"`

	// Unpriced counts the calls whose price is unknown. Lost are tokens that
	// calls without a record may have cost, as reserved.
	Unpriced int64 `json:"unpriced"`
	Lost     int64 `json:"lost"`
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
	Root      string // runs of one tree, its root too
	Triggers  []Trigger
	Active    bool  // only unended runs
	Ended     bool  // only ended runs
	Before    int64 // only runs with a smaller ordinal
	After     int64 // only runs with a higher ordinal
	Limit     int
}

// RunLog is a run with its events, as transcripts are folded from.
type RunLog struct {
	Run    Run     `json:"run"`
	Events []Event `json:"events"`
}

// NoReply is the reply of an agent that wants to stay silent (spec section 7).
const NoReply = "NO_REPLY"
