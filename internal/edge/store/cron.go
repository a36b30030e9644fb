package store

import (
	"errors"
	"fmt"

	"goclaw"
)

// CheckJob refuses what can't be kept in a crontab.
func CheckJob(j goclaw.CronJob) error {
	if j.ID == "" || j.Agent == "" {
		return fmt.Errorf("cron job %q of agent %q: it needs an id and an agent", j.ID, j.Agent)
	}
	if err := CheckKey(j.Key()); err != nil {
		return fmt.Errorf("cron job %s: %w", j.ID, err)
	}
	if !j.Session.IsZero() {
		if err := CheckKey(j.Session); err != nil {
			return fmt.Errorf("cron job %s: %w", j.ID, err)
		}
	}
	if j.Next < 0 {
		return fmt.Errorf("cron job %s: it is next due at %d, which is no time", j.ID, j.Next)
	}
	return nil
}

// CheckFire refuses a decision that does not say what to do.
func CheckFire(f goclaw.CronFire) error {
	switch {
	case f.Firing.Job == "" || f.Firing.Job != f.Job.ID:
		return fmt.Errorf("a firing of the job %q can't be one of %q", f.Job.ID, f.Firing.Job)
	case f.Firing.Due <= 0:
		return fmt.Errorf("a firing of the job %s has no due time", f.Job.ID)
	case f.Next < 0:
		return fmt.Errorf("cron job %s: it is next due at %d, which is no time", f.Job.ID, f.Next)
	case f.Run == nil && f.Firing.Skipped == "":
		return fmt.Errorf("a firing of the job %s starts nothing and does not say why", f.Job.ID)
	case f.Run == nil:
		return nil
	case f.Firing.Skipped != "":
		return fmt.Errorf("a firing of the job %s is skipped and starts a run", f.Job.ID)
	case f.Run.Coalesce:
		return errors.New("a firing starts a run of its own; it can't coalesce")
	case f.Run.Run.Trigger != goclaw.TriggerCron && f.Run.Run.Trigger != goclaw.TriggerHeartbeat:
		return fmt.Errorf("a firing starts runs with the trigger cron or heartbeat, not %q", f.Run.Run.Trigger)
	}
	return CheckAcceptance(*f.Run)
}

// CheckFresh returns goclaw.ErrChanged if the job's due time is decided about
// already, or the decision was made on another revision than the stored one. A
// manual firing changes nothing that it could have read wrongly.
func CheckFresh(stored goclaw.CronJob, f goclaw.CronFire, decided bool) error {
	switch {
	case f.Firing.Manual:
		return nil
	case stored.Revision != f.Job.Revision:
		return fmt.Errorf("cron job %s has revision %d, not %d: %w", stored.ID, stored.Revision, f.Job.Revision, goclaw.ErrChanged)
	case decided:
		return fmt.Errorf("cron job %s was fired for %d already: %w", stored.ID, f.Firing.Due, goclaw.ErrChanged)
	}
	return nil
}

// CheckRoom returns goclaw.ErrBusy if the firing must not overlap with what is
// under way: alone tells that the job has an unended run, active counts those
// of all jobs.
func CheckRoom(f goclaw.CronFire, alone bool, active int) error {
	switch {
	case f.Alone && alone:
		return fmt.Errorf("cron job %s has a run that has not ended: %w", f.Job.ID, goclaw.ErrBusy)
	case f.MaxActive > 0 && active >= f.MaxActive:
		return fmt.Errorf("%d of at most %d runs of the crontab are under way: %w", active, f.MaxActive, goclaw.ErrBusy)
	}
	return nil
}

// Unquiet is the error of a firing whose session has an unended run.
func Unquiet(f goclaw.CronFire) error {
	return fmt.Errorf("session %s has a run that has not ended: %w", f.Run.Run.Session, goclaw.ErrBusy)
}

// Gone is the error of a firing whose job is not there: whoever fires what was
// due has read it, whoever fires by hand may have mistyped it.
func Gone(f goclaw.CronFire) error {
	if f.Firing.Manual {
		return fmt.Errorf("cron job %s: %w", f.Job.ID, goclaw.ErrNotFound)
	}
	return fmt.Errorf("cron job %s was removed: %w", f.Job.ID, goclaw.ErrChanged)
}

// Fired returns the stored job as f leaves it.
func Fired(stored goclaw.CronJob, f goclaw.CronFire) goclaw.CronJob {
	stored.Revision++
	if !f.Firing.Manual {
		stored.Next, stored.Enabled = f.Next, f.Enabled
	}
	return stored
}

// NotLast is the error of a change to a job that is not the stored one.
func NotLast(j goclaw.CronJob, stored int64) error {
	if stored == 0 {
		return fmt.Errorf("there is no cron job %s with revision %d: %w", j.ID, j.Revision, goclaw.ErrChanged)
	}
	return fmt.Errorf("cron job %s has revision %d, not %d: %w", j.ID, stored, j.Revision, goclaw.ErrChanged)
}
