package storetest

import (
	"context"

	"goclaw"
)

// Store is what a store offers: the engine's interfaces, and what the gateway
// and the surfaces ask. The engine documents the first seven,
// the crontab's runtime the last.
type Store interface {
	Intake
	Leases
	Log
	Inbox
	Purse
	Catalog
	Sessions
	Outbox
	Cron

	// Close ends the store; every later call fails.
	Close() error
}

// Intake takes work in.
type Intake interface {
	Accept(ctx context.Context, a goclaw.Acceptance) (run goclaw.Run, created bool, err error)
	Cancel(ctx context.Context, c goclaw.Cancellation) ([]goclaw.Run, error)
}

// Leases decide whose a run is.
type Leases interface {
	Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error)
	Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error)
	Asked(ctx context.Context, owner string) ([]string, error)
	Release(ctx context.Context, owner string, now goclaw.Millis) error
}

// Log is a run's record.
type Log interface {
	Events(ctx context.Context, run string) ([]goclaw.Event, error)
	Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error
	Suspend(ctx context.Context, f goclaw.Fence, s goclaw.Suspension) error
	End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error
}

// Inbox holds what is on its way into transcripts until it is consumed.
type Inbox interface {
	Pending(ctx context.Context, session goclaw.SessionKey) ([]goclaw.InboxItem, error)
	Post(ctx context.Context, run string, item goclaw.InboxItem) error
	Resume(ctx context.Context, run string, now goclaw.Millis) (goclaw.Run, error)
	Redirect(ctx context.Context, item string, to goclaw.SessionKey) error
	Postpone(ctx context.Context, items []string, r goclaw.Return, now goclaw.Millis) error
	Parked(ctx context.Context) ([]goclaw.Parked, error)
	Unpark(ctx context.Context, id string, now goclaw.Millis) error
	Dismiss(ctx context.Context, id string, now goclaw.Millis) error
	Tidy(ctx context.Context, now, archiveBefore goclaw.Millis) (int, error)
}

// Purse knows what was spent and what may be.
type Purse interface {
	Reserve(ctx context.Context, f goclaw.Fence, r goclaw.Reservation) (*goclaw.Shortage, error)
	TakeRate(ctx context.Context, r goclaw.RateRequest) (goclaw.Millis, error)
	GiveRate(ctx context.Context, r goclaw.RateRequest) error
	Paused(ctx context.Context) (goclaw.Pause, error)
	SetPause(ctx context.Context, p goclaw.Pause) error
	Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error)
}

// Catalog answers questions about runs.
type Catalog interface {
	Queue(ctx context.Context) ([]string, error)
	Run(ctx context.Context, id string) (goclaw.Run, error)
	Runs(ctx context.Context, f goclaw.RunFilter) ([]goclaw.Run, error)
	Blob(ctx context.Context, sha string) ([]byte, error)
	ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error)

	// Counts returns how many runs are under way (claimed and not ended, also
	// if they wait) and how many are queued.
	Counts(ctx context.Context) (active, queued int, err error)
}

// Sessions are the heads of conversations and their transcripts.
type Sessions interface {
	History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error)
	Session(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error)
	ChangeSession(ctx context.Context, key goclaw.SessionKey, c goclaw.SessionChange, now goclaw.Millis) error

	// AllSessions returns all sessions, the most recently updated first.
	AllSessions(ctx context.Context) ([]goclaw.Session, error)
}

// Outbox holds replies on their way to channels.
type Outbox interface {
	// Outbox returns the replies that are due at now, in order: of each
	// session only the oldest that is neither sent nor parked. limit 0 means
	// all.
	Outbox(ctx context.Context, now goclaw.Millis, limit int) ([]goclaw.Outbound, error)

	// TakeOutbox takes a reply that is due at now, for whoever is to send it:
	// it is being sent, which counts as an attempt, and is due again at until
	// if nobody says what became of it. It returns false if the reply is not
	// due any more: of several takers one gets it.
	TakeOutbox(ctx context.Context, id string, now, until goclaw.Millis) (bool, error)

	// MarkOutbox records what became of a reply: a pending one is due again at
	// the given time, a parked one is parked since then. ErrNotFound if there
	// is no such reply, or it was dismissed.
	MarkOutbox(ctx context.Context, id, state string, at goclaw.Millis, errText string) error
}

// Cron is the crontab.
type Cron interface {
	CronJobs(ctx context.Context) ([]goclaw.CronJob, error)
	CronJob(ctx context.Context, id string) (goclaw.CronJob, error)
	PutCronJob(ctx context.Context, j goclaw.CronJob) (goclaw.CronJob, error)
	RemoveCronJob(ctx context.Context, id string) error
	DueCronJobs(ctx context.Context, now goclaw.Millis) (due []goclaw.CronJob, next goclaw.Millis, err error)
	FireCronJob(ctx context.Context, f goclaw.CronFire) (goclaw.CronJob, goclaw.Run, error)
	Firings(ctx context.Context, job string, limit int) ([]goclaw.Firing, error)
	TrimFirings(ctx context.Context, keep int) (int, error)
}
