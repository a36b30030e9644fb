package cron

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/schedule"
)

// upcoming is how many due times a report lists.
const upcoming = 5

// add adds a job. It takes what a person says of it and fills in the rest: the
// id from the name, the anchor of equal steps, and the defaults: the agent main,
// an isolated run, missed due times made up for once, a main job's turn in its
// agent's main session. A job that can't run as it is is refused.
func (s *Service) add(ctx context.Context, job goclaw.CronJob) (goclaw.CronReport, error) {
	now := s.o.Now()
	if job.Heartbeat {
		return goclaw.CronReport{}, heartbeatIsConfigured(job.Agent)
	}
	job.Revision, job.CreatedAt = 0, goclaw.At(now)
	if job.Agent == "" {
		job.Agent = goclaw.DefaultAgent
	}
	if job.Target == "" {
		job.Target = goclaw.TargetIsolated
	}
	given := job.ID
	for n := 1; ; n++ {
		if given == "" {
			job.ID = slug(job.Name, n)
		}
		if n == 1 {
			if err := s.prepare(ctx, &job, goclaw.CronJob{}, now); err != nil {
				return goclaw.CronReport{}, err
			}
		}
		taken, err := s.taken(ctx, job.ID)
		if err != nil {
			return goclaw.CronReport{}, err
		}
		if !taken {
			stored, err := s.o.Store.PutCronJob(ctx, job)
			if err == nil {
				s.changed()
				return s.report(ctx, stored)
			}
			if !errors.Is(err, goclaw.ErrChanged) {
				return goclaw.CronReport{}, err
			}
		}
		if given != "" {
			return goclaw.CronReport{}, goclaw.BadRequest(fmt.Sprintf("the id %s is taken; choose another, or leave it out", given))
		}
	}
}

// taken reports whether there is or was a job of that id: a removed one's
// history is not another's.
func (s *Service) taken(ctx context.Context, id string) (bool, error) {
	switch _, err := s.o.Store.CronJob(ctx, id); {
	case err == nil:
		return true, nil
	case !errors.Is(err, goclaw.ErrNotFound):
		return false, err
	}
	firings, err := s.o.Store.Firings(ctx, id, 1)
	return len(firings) > 0, err
}

// Change lets edit change what a person may say of a job, and stores it unless
// that is wrong. edit may be called again if another changes the job meanwhile.
// A change of the schedule begins it anew from now; any change ends a backoff.
func (s *Service) Change(ctx context.Context, id string, edit func(*goclaw.CronJob) error) (goclaw.CronReport, error) {
	for {
		old, err := s.find(ctx, id)
		if err != nil {
			return goclaw.CronReport{}, err
		}
		if old.Heartbeat {
			return goclaw.CronReport{}, heartbeatIsConfigured(old.Agent)
		}
		job := old
		if err := edit(&job); err != nil {
			return goclaw.CronReport{}, err
		}
		if job.ID != old.ID || job.Agent != old.Agent || job.Heartbeat {
			return goclaw.CronReport{}, goclaw.BadRequest("a job's id and agent stay as they are; add another job instead")
		}
		job.Next, job.CreatedAt, job.Revision = old.Next, old.CreatedAt, old.Revision
		if job == old {
			return s.report(ctx, old)
		}
		keepKind(&job.Schedule, old.Schedule)
		if err := s.prepare(ctx, &job, old, s.o.Now()); err != nil {
			return goclaw.CronReport{}, err
		}
		stored, err := s.o.Store.PutCronJob(ctx, job)
		switch {
		case errors.Is(err, goclaw.ErrChanged):
			continue
		case err != nil:
			return goclaw.CronReport{}, err
		}
		s.changed()
		return s.report(ctx, stored)
	}
}

// Pause keeps a job from firing by the clock. A run under way goes on.
func (s *Service) Pause(ctx context.Context, id string) (goclaw.CronReport, error) {
	return s.Change(ctx, id, func(j *goclaw.CronJob) error { j.Enabled = false; return nil })
}

// Resume ends a pause: the job is due again from now on.
func (s *Service) Resume(ctx context.Context, id string) (goclaw.CronReport, error) {
	return s.Change(ctx, id, func(j *goclaw.CronJob) error { j.Enabled = true; return nil })
}

// Remove removes a job; what became of its due times stays on record.
func (s *Service) Remove(ctx context.Context, id string) error {
	job, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if job.Heartbeat {
		return heartbeatIsConfigured(job.Agent)
	}
	if err := s.o.Store.RemoveCronJob(ctx, id); err != nil {
		return unknown(id, err)
	}
	s.changed()
	return nil
}

// RunNow fires a job by hand, whatever its schedule, and returns its run. With
// the same key, if it is not "", it returns the run of the first call.
func (s *Service) RunNow(ctx context.Context, id, key string) (goclaw.Run, error) {
	job, err := s.find(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	now := goclaw.At(s.o.Now())
	run, err := s.o.Runner.CronRun(ctx, job, now)
	if err != nil {
		return goclaw.Run{}, err
	}
	run.Key = ""
	if key != "" {
		run.Key = "cron:" + id + ":" + key
	}
	_, started, err := s.o.Store.FireCronJob(ctx, goclaw.CronFire{
		Job: job, Firing: goclaw.Firing{Job: id, Due: now, At: now, Manual: true}, Run: &run, Alone: true,
		Next: job.Next, Enabled: job.Enabled,
	})
	if errors.Is(err, goclaw.ErrBusy) {
		return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("the job %s has a run that has not ended; wait for it or cancel it", id))
	}
	if err != nil {
		return goclaw.Run{}, unknown(id, err)
	}
	s.o.Log.Info("a cron job was fired by hand", "job", id, "run", started.ID, "session", started.Session.String())
	s.o.Runner.Accepted(started)
	return started, nil
}

// List reports on all jobs, by agent and id.
func (s *Service) List(ctx context.Context) ([]goclaw.CronReport, error) {
	jobs, err := s.o.Store.CronJobs(ctx)
	if err != nil {
		return nil, err
	}
	reports := make([]goclaw.CronReport, len(jobs))
	for i, j := range jobs {
		if reports[i], err = s.report(ctx, j); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// Show reports on one job.
func (s *Service) Show(ctx context.Context, id string) (goclaw.CronReport, error) {
	job, err := s.find(ctx, id)
	if err != nil {
		return goclaw.CronReport{}, err
	}
	return s.report(ctx, job)
}

// History lists what became of a job's due times, newest first, at most limit
// of them (0: all); of a removed job as well.
func (s *Service) History(ctx context.Context, id string, limit int) ([]goclaw.Firing, error) {
	firings, err := s.o.Store.Firings(ctx, id, limit)
	if err == nil && len(firings) == 0 {
		_, err = s.find(ctx, id)
	}
	return firings, err
}

func (s *Service) report(ctx context.Context, job goclaw.CronJob) (goclaw.CronReport, error) {
	r := goclaw.CronReport{CronJob: job}
	last, err := s.o.Store.Firings(ctx, job.ID, 1)
	if err != nil {
		return r, err
	}
	if len(last) > 0 {
		r.Last = &last[0]
	}
	record, err := s.record(ctx, job)
	if err != nil {
		return r, err
	}
	r.Running, r.Failures, r.LastError = record.Running, record.Failures, record.Error
	if !job.Enabled || job.Next == 0 {
		return r, nil
	}
	r.Upcoming = []int64{int64(job.Next)}
	if times, err := s.times(job.Schedule); err == nil { // else the next due time records what is wrong
		for _, t := range times.Upcoming(job.Next.Time(), upcoming-1) {
			r.Upcoming = append(r.Upcoming, t.UnixMilli())
		}
	}
	return r, nil
}

func (s *Service) find(ctx context.Context, id string) (goclaw.CronJob, error) {
	job, err := s.o.Store.CronJob(ctx, id)
	if err != nil {
		return goclaw.CronJob{}, unknown(id, err)
	}
	return job, nil
}

// unknown says that there is no such job, if that is what err means.
func unknown(id string, err error) error {
	if errors.Is(err, goclaw.ErrNotFound) {
		return fmt.Errorf("cron job %q: %w", id, goclaw.ErrNotFound)
	}
	return err
}

func heartbeatIsConfigured(agent string) error {
	return goclaw.BadRequest(fmt.Sprintf("a heartbeat is set in goclaw.json (agents.defaults.heartbeat, or heartbeat of the agent %s in agents.list); change it there", agent))
}

// slug makes an id of a name; the n-th of its kind gets its number.
func slug(name string, n int) string {
	const longest = 40
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case b.Len() >= longest:
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	id := strings.TrimSuffix(b.String(), "-")
	switch {
	case id == "":
		id = "job"
	case strings.HasPrefix(id, heartbeatPrefix):
		id = "job-" + id
	}
	if n > 1 {
		id += "-" + strconv.Itoa(n)
	}
	return id
}

// keepKind drops what a schedule of another kind, or of other steps, has left.
func keepKind(s *goclaw.Schedule, old goclaw.Schedule) {
	if s.EveryMs != old.EveryMs && s.Anchor == old.Anchor {
		s.Anchor = 0
	}
	if s.Kind == old.Kind {
		return
	}
	if s.At == old.At {
		s.At = 0
	}
	if s.EveryMs == old.EveryMs {
		s.EveryMs, s.Anchor = 0, 0
	}
	if s.Expr == old.Expr {
		s.Expr = ""
	}
}

// prepare checks what a person says of a job and sets what follows from it.
func (s *Service) prepare(ctx context.Context, job *goclaw.CronJob, old goclaw.CronJob, now time.Time) error {
	job.UpdatedAt = goclaw.At(now)
	if err := s.check(job); err != nil {
		return goclaw.BadRequest(err.Error())
	}
	if job.Schedule.Kind == goclaw.ScheduleEvery && job.Schedule.Anchor == 0 {
		job.Schedule.Anchor = goclaw.At(now)
	}
	same := job.Schedule == old.Schedule
	switch {
	case same && job.Enabled && old.Enabled: // it stays due when it was
	case same && !job.Enabled: // whatever is wrong with it, it can be paused
		job.Next = 0
		return nil
	default:
		if err := s.plan(job, now); err != nil {
			return goclaw.BadRequest(err.Error())
		}
	}
	if !job.Enabled {
		return nil
	}
	// What names a model or a definition is for the runner to know.
	_, err := s.o.Runner.CronRun(ctx, *job, job.Next)
	return err
}

// plan sets when a job is next due, if it is enabled, and refuses a schedule
// that is never due.
func (s *Service) plan(job *goclaw.CronJob, now time.Time) error {
	job.Next = 0
	zone, err := s.zone(job.Schedule.Zone)
	if err != nil {
		return err
	}
	times, err := schedule.Check(job.Schedule, zone, now)
	if err != nil {
		return err
	}
	if next, ok := times.Next(now); ok && job.Enabled {
		job.Next = goclaw.At(next)
	}
	return nil
}
