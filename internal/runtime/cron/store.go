package cron

import (
	"context"

	"goclaw"
)

// Store is the crontab. Every method that writes is one transaction; all are
// safe for concurrent use, also by several processes. Every implementation
// passes storetest.
type Store interface {
	// CronJobs lists all jobs, by agent and id.
	CronJobs(ctx context.Context) ([]goclaw.CronJob, error)
	// CronJob returns goclaw.ErrNotFound if there is no such job.
	CronJob(ctx context.Context, id string) (goclaw.CronJob, error)

	// PutCronJob stores a job whose Revision is that of the stored one, or 0 if
	// there shall be none yet; else goclaw.ErrChanged. The stored job's revision
	// is one more.
	PutCronJob(ctx context.Context, j goclaw.CronJob) (goclaw.CronJob, error)
	// RemoveCronJob removes a job; its firings stay. A run under way goes on.
	RemoveCronJob(ctx context.Context, id string) error

	// DueCronJobs returns the enabled jobs whose Next is at or before now, the
	// longest due first, and when the next of the others is (0: never).
	DueCronJobs(ctx context.Context, now goclaw.Millis) (due []goclaw.CronJob, next goclaw.Millis, err error)

	// FireCronJob decides about one due time. The same (job, due) that is not
	// manual is decided once: a second time it is goclaw.ErrChanged. The run is
	// zero if the firing is skipped.
	FireCronJob(ctx context.Context, f goclaw.CronFire) (goclaw.CronJob, goclaw.Run, error)

	// Firings lists what became of a job's due times, newest first, at most
	// limit of them (0: all), with the states of their runs.
	Firings(ctx context.Context, job string, limit int) ([]goclaw.Firing, error)

	// TrimFirings removes the oldest firings of each job, of removed ones as
	// well, until keep are left, and says how many it removed. Those whose run
	// has not ended stay.
	TrimFirings(ctx context.Context, keep int) (int, error)
}

// Runner makes runs of firings; the engine is one.
type Runner interface {
	// CronRun says what a firing of the job at due is to accept. An error that
	// is a goclaw.BadRequest says why the job can't run as it is.
	CronRun(ctx context.Context, j goclaw.CronJob, due goclaw.Millis) (goclaw.Acceptance, error)
	// Accepted tells that a run was accepted by the crontab's own transaction.
	Accepted(r goclaw.Run)
}
