package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// job is a cron job, kept encoded, so that neither side can change what the
// other sees.
type job []byte

func (j job) decode() (goclaw.CronJob, error) {
	var decoded goclaw.CronJob
	err := json.Unmarshal(j, &decoded)
	return decoded, err
}

func (s *Store) putJob(j goclaw.CronJob) error {
	encoded, err := json.Marshal(j)
	if err == nil {
		s.jobs[j.ID] = encoded
	}
	return err
}

// list returns all jobs, by agent and id.
func (s *Store) list() ([]goclaw.CronJob, error) {
	var jobs []goclaw.CronJob
	for _, encoded := range s.jobs {
		j, err := encoded.decode()
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b goclaw.CronJob) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}

// CronJobs lists all jobs, by agent and id.
func (s *Store) CronJobs(ctx context.Context) (jobs []goclaw.CronJob, err error) {
	err = s.do(ctx, "list cron jobs", func() (err error) {
		jobs, err = s.list()
		return err
	})
	return jobs, err
}

// CronJob finds a job.
func (s *Store) CronJob(ctx context.Context, id string) (found goclaw.CronJob, err error) {
	err = s.do(ctx, "find cron job", func() (err error) {
		encoded, ok := s.jobs[id]
		if !ok {
			return fmt.Errorf("%s: %w", id, goclaw.ErrNotFound)
		}
		found, err = encoded.decode()
		return err
	})
	return found, err
}

// PutCronJob stores a job whose revision is the stored one's.
func (s *Store) PutCronJob(ctx context.Context, j goclaw.CronJob) (put goclaw.CronJob, err error) {
	err = s.do(ctx, "store cron job", func() error {
		if err := store.CheckJob(j); err != nil {
			return err
		}
		var last int64
		if encoded, ok := s.jobs[j.ID]; ok {
			stored, err := encoded.decode()
			if err != nil {
				return err
			}
			last = stored.Revision
		}
		if last != j.Revision {
			return store.NotLast(j, last)
		}
		put = j
		put.Revision++
		return s.putJob(put)
	})
	return put, err
}

// RemoveCronJob removes a job; its firings stay.
func (s *Store) RemoveCronJob(ctx context.Context, id string) error {
	return s.do(ctx, "remove cron job", func() error {
		if _, ok := s.jobs[id]; !ok {
			return fmt.Errorf("%s: %w", id, goclaw.ErrNotFound)
		}
		delete(s.jobs, id)
		return nil
	})
}

// DueCronJobs returns the enabled jobs that are due, the longest due first, and
// when the next of the others is.
func (s *Store) DueCronJobs(ctx context.Context, now goclaw.Millis) (due []goclaw.CronJob, next goclaw.Millis, err error) {
	err = s.do(ctx, "find due cron jobs", func() error {
		jobs, err := s.list()
		for _, j := range jobs {
			switch {
			case !j.Enabled || j.Next == 0:
			case j.Next <= now:
				due = append(due, j)
			default:
				next = store.Sooner(next, j.Next)
			}
		}
		slices.SortFunc(due, func(a, b goclaw.CronJob) int {
			return cmp.Or(cmp.Compare(a.Next, b.Next), cmp.Compare(a.ID, b.ID))
		})
		return err
	})
	return due, next, err
}

// FireCronJob decides about one due time. It looks, in this order, for: the
// job, the run's key, the revision, the due time, what the firing must not
// overlap with, what else the acceptance may fail with, and the session's quiet.
func (s *Store) FireCronJob(ctx context.Context, f goclaw.CronFire) (j goclaw.CronJob, run goclaw.Run, err error) {
	err = s.do(ctx, "fire cron job", func() (err error) {
		if err := store.CheckFire(f); err != nil {
			return err
		}
		encoded, ok := s.jobs[f.Job.ID]
		if !ok {
			return store.Gone(f)
		}
		stored, err := encoded.decode()
		if err != nil {
			return err
		}
		if f.Run != nil {
			if known := s.byKey[f.Run.Key]; known != nil {
				j, run = stored, known.copied()
				return nil
			}
		}
		if err := store.CheckFresh(stored, f, s.decided(f.Firing)); err != nil {
			return err
		}
		firing := goclaw.Firing{
			Job: f.Firing.Job, Due: f.Firing.Due, At: f.Firing.At, Manual: f.Firing.Manual,
			Skipped: f.Firing.Skipped, Missed: f.Firing.Missed,
		}
		if f.Run != nil {
			r, err := s.start(f)
			if err != nil {
				return err
			}
			run, firing.Run = r.copied(), r.ID
		}
		s.firings = append(s.firings, firing)
		j = store.Fired(stored, f)
		return s.putJob(j)
	})
	return j, run, err
}

// decided reports whether the firing's due time was decided about already.
func (s *Store) decided(f goclaw.Firing) bool {
	return slices.ContainsFunc(s.firings, func(of goclaw.Firing) bool { return of.Job == f.Job && of.Due == f.Due && !of.Manual })
}

// start accepts the firing's run, if nothing is under way that it must not
// overlap with.
func (s *Store) start(f goclaw.CronFire) (*record, error) {
	alone, quiet, active := false, true, 0
	for _, r := range s.open {
		if r.Trigger == goclaw.TriggerCron {
			active++
		}
		quiet = quiet && r.Session != f.Run.Run.Session
		alone = alone || slices.ContainsFunc(s.firings, func(of goclaw.Firing) bool { return of.Job == f.Job.ID && of.Run == r.ID })
	}
	if err := store.CheckRoom(f, alone, active); err != nil {
		return nil, err
	}
	if _, err := s.admit(*f.Run); err != nil {
		return nil, err
	}
	if s.byID[f.Run.Run.ID] != nil {
		return nil, fmt.Errorf("there is a run %s already", f.Run.Run.ID)
	}
	if f.IfQuiet && !quiet {
		return nil, store.Unquiet(f)
	}
	return s.enqueue(*f.Run), nil
}

// Firings lists what became of a job's due times, newest first.
func (s *Store) Firings(ctx context.Context, job string, limit int) (firings []goclaw.Firing, err error) {
	err = s.do(ctx, "list firings", func() error {
		for _, f := range slices.Backward(s.firings) {
			if limit > 0 && len(firings) == limit {
				break
			}
			if f.Job != job {
				continue
			}
			if r := s.byID[f.Run]; r != nil {
				f.State, f.Result, f.Error, f.StartedAt, f.FinishedAt = r.State, r.Result, r.Error, r.StartedAt, r.FinishedAt
				f.Usage = copyUsage(r.Usage)
			}
			firings = append(firings, f)
		}
		return nil
	})
	return firings, err
}

// TrimFirings removes the oldest firings of each job until keep are left. Those
// whose run has not ended stay.
func (s *Store) TrimFirings(ctx context.Context, keep int) (removed int, err error) {
	err = s.do(ctx, "trim firings", func() error {
		newer, kept := map[string]int{}, make([]goclaw.Firing, 0, len(s.firings))
		for _, f := range slices.Backward(s.firings) {
			r := s.byID[f.Run]
			if newer[f.Job]++; newer[f.Job] <= keep || r != nil && !r.State.Ended() {
				kept = append(kept, f)
			}
		}
		slices.Reverse(kept)
		removed, s.firings = len(s.firings)-len(kept), kept
		return nil
	})
	return removed, err
}
