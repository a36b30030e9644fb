package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"goclaw"
	"goclaw/internal/core/schedule"
)

// Files reads what heartbeats look after.
type Files interface {
	// Heartbeat returns the text of a workspace's HEARTBEAT.md; "" if there is
	// none.
	Heartbeat(workspace string) (text string, err error)
}

// Options configure a Service. Store and Runner are required.
type Options struct {
	Store  Store
	Runner Runner

	// Zone is the person's time zone; nil: the machine's.
	Zone *time.Location

	// Agents are the ids of those that jobs may be of; nil: any.
	Agents []string

	// Enabled lets jobs fire by the clock. Without it they can be changed, and
	// fired by hand. Heartbeats have a switch of their own.
	Enabled bool

	// MaxActive bounds the unended runs of all jobs (0: no bound).
	MaxActive int

	// Keep is how many firings of each job stay on record (0: all); more do until
	// they are trimmed, once an hour.
	Keep int

	// Heartbeats are the agents' that have one. Files is required with any.
	Heartbeats []Heartbeat
	Files      Files

	// Wake, if not nil, tells that another process has changed the crontab.
	Wake <-chan struct{}

	Poll  time.Duration // the longest sleep; 0: 5 s
	Retry time.Duration // until what was busy or failed is tried again; 0: 5 s

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: none
}

// Service fires the jobs of a crontab, and changes it for the surfaces. It is
// safe for concurrent use.
type Service struct {
	o      Options
	policy schedule.Policy
	beats  map[string]beat // by the id of their job
	wake   chan struct{}
	held   map[string]hold // of Run's goroutine only, by job
}

// hold is a due time that can't run at the moment.
type hold struct {
	due   goclaw.Millis
	until time.Time
	busy  bool // only because of what is under way, not for want of a decision
}

// New returns a Service. It says which heartbeat's values are wrong.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Runner == nil {
		return nil, errors.New("cron: it needs a store and a runner")
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Poll <= 0 {
		o.Poll = 5 * time.Second
	}
	if o.Retry <= 0 {
		o.Retry = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		o: o, policy: schedule.Policy{Backoff: schedule.DefaultBackoff()},
		wake: make(chan struct{}, 1), held: map[string]hold{},
	}
	var err error
	s.beats, err = o.beats()
	return s, err
}

const trimEvery = time.Hour

// Run fires what is due until ctx ends; then it returns nil. What fails is
// logged and tried again.
func (s *Service) Run(ctx context.Context) error {
	synced, others, trim := false, s.o.Wake, time.Time{}
	for ctx.Err() == nil {
		if now := time.Now(); s.o.Keep > 0 && !now.Before(trim) {
			trim = now.Add(trimEvery)
			_, err := s.o.Store.TrimFirings(ctx, s.o.Keep)
			s.complain(ctx, "old firings could not be removed; it is tried again in an hour", err)
		}
		if !synced {
			err := s.syncHeartbeats(ctx)
			s.complain(ctx, "heartbeats are not in line with the configuration yet", err)
			synced = err == nil
		}
		sleep := s.sweep(ctx)
		if !synced {
			sleep = min(sleep, s.o.Retry)
		}
		if sleep <= 0 {
			continue
		}
		// A wake that came since the sweep began is kept in the channel.
		timer := time.NewTimer(sleep)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case _, open := <-others:
			if !open {
				others = nil
			}
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// changed wakes Run.
func (s *Service) changed() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func (s *Service) complain(ctx context.Context, what string, err error, attrs ...any) {
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn(what, append(attrs, "err", err)...)
	}
}

// sweep looks at all that is due and says how long to sleep; 0: something was
// decided, so it must look again.
func (s *Service) sweep(ctx context.Context) time.Duration {
	now := s.o.Now()
	due, next, err := s.o.Store.DueCronJobs(ctx, goclaw.At(now))
	if err != nil {
		s.complain(ctx, "the crontab can't be read; it is tried again", err)
		return s.o.Retry
	}
	sleep := s.o.Poll
	if next != 0 {
		sleep = min(sleep, max(next.Time().Sub(now), time.Millisecond))
	}
	held := make(map[string]hold, len(due))
	for _, job := range due {
		h := s.held[job.ID]
		if h.due != job.Next {
			h = hold{due: job.Next}
		}
		if !now.Before(h.until) {
			again, err := s.decide(ctx, job, h.busy, now)
			s.complain(ctx, "a due time could not be decided; it is tried again", err, "job", job.ID)
			switch {
			case err != nil:
				h.until = now.Add(s.o.Retry)
			case again.IsZero():
				sleep = 0
				continue
			default:
				h.until, h.busy = again, true
			}
		}
		held[job.ID] = h
		sleep = min(sleep, max(h.until.Sub(now), time.Millisecond))
	}
	s.held = held
	return sleep
}

// decide decides about a job that is due. again is when to look at it again if
// nothing could be decided, zero if something was.
func (s *Service) decide(ctx context.Context, job goclaw.CronJob, held bool, now time.Time) (again time.Time, err error) {
	b, ours := s.beats[job.ID]
	switch {
	case job.Heartbeat && ours:
		return s.beat(ctx, job, b, now)
	case job.Heartbeat || !s.o.Enabled:
		return now.Add(s.o.Poll), nil // another gateway's
	}
	times, err := s.times(job.Schedule)
	if err != nil {
		return time.Time{}, s.skip(ctx, job, schedule.Decision{Why: schedule.CantRun + err.Error()}, now)
	}
	record, err := s.record(ctx, job)
	if err != nil {
		return time.Time{}, err
	}
	d := s.policy.Decide(schedule.Case{Job: job, Times: times, Record: record, Now: now, Held: held})
	switch d.Act {
	case schedule.Fire:
		return s.fire(ctx, goclaw.CronFire{
			Job: job, Firing: firing(job, d, now), Next: d.Next, Enabled: d.Enabled,
			IfQuiet: job.Target == goclaw.TargetMain, Alone: true, MaxActive: s.o.MaxActive,
		})
	case schedule.Skip:
		return time.Time{}, s.skip(ctx, job, d, now)
	}
	if d.Until.IsZero() {
		d.Until = now.Add(s.o.Poll)
	}
	return d.Until, nil
}

func firing(job goclaw.CronJob, d schedule.Decision, now time.Time) goclaw.Firing {
	return goclaw.Firing{Job: job.ID, Due: job.Next, At: goclaw.At(now), Skipped: d.Why, Missed: d.Missed}
}

// fire starts the run of a due time. again is when to try again if something
// that it must not overlap with is under way.
func (s *Service) fire(ctx context.Context, f goclaw.CronFire) (again time.Time, err error) {
	run, err := s.o.Runner.CronRun(ctx, f.Job, f.Firing.Due)
	switch {
	case goclaw.IsBadRequest(err):
		f.Firing.Skipped = schedule.CantRun + err.Error()
		return time.Time{}, s.commit(ctx, f)
	case err != nil:
		return time.Time{}, fmt.Errorf("make a run: %w", err)
	}
	f.Run = &run
	err = s.commit(ctx, f)
	if errors.Is(err, goclaw.ErrBusy) {
		return s.o.Now().Add(s.o.Retry), nil
	}
	return time.Time{}, err
}

func (s *Service) skip(ctx context.Context, job goclaw.CronJob, d schedule.Decision, now time.Time) error {
	return s.commit(ctx, goclaw.CronFire{Job: job, Firing: firing(job, d, now), Next: d.Next, Enabled: d.Enabled})
}

// commit records a decision. That another made it is no error.
func (s *Service) commit(ctx context.Context, f goclaw.CronFire) error {
	job, run, err := s.o.Store.FireCronJob(ctx, f)
	switch {
	case errors.Is(err, goclaw.ErrChanged):
		return s.settle(ctx, f)
	case err != nil:
		return err
	}
	if f.Run != nil {
		s.o.Log.Info("a cron job fired", "job", job.ID, "run", run.ID, "session", run.Session.String(), "due", f.Firing.Due.Time())
		s.o.Runner.Accepted(run)
	} else {
		s.o.Log.Info("a due time of a cron job was skipped", "job", job.ID, "due", f.Firing.Due.Time(), "why", f.Firing.Skipped)
	}
	if !f.Firing.Manual && job.Enabled && job.Next == f.Firing.Due {
		return s.settle(ctx, f) // its run was accepted before, under the same key
	}
	return nil
}

// settle moves a job on whose due time was decided about before, although the
// job still stands at it: someone has put it back.
func (s *Service) settle(ctx context.Context, f goclaw.CronFire) error {
	job, err := s.o.Store.CronJob(ctx, f.Job.ID)
	if errors.Is(err, goclaw.ErrNotFound) {
		return nil
	}
	if err != nil || job.Next != f.Firing.Due || job.Revision != f.Job.Revision {
		return err
	}
	job.Next, job.Enabled = f.Next, f.Enabled
	return s.put(ctx, job)
}

// put stores a job, unless another has changed it.
func (s *Service) put(ctx context.Context, job goclaw.CronJob) error {
	if _, err := s.o.Store.PutCronJob(ctx, job); err != nil && !errors.Is(err, goclaw.ErrChanged) {
		return err
	}
	return nil
}

// record reads as much of a job's firings as it takes to tell how it fares.
func (s *Service) record(ctx context.Context, job goclaw.CronJob) (schedule.Record, error) {
	for limit := 16; ; limit *= 8 {
		firings, err := s.o.Store.Firings(ctx, job.ID, limit)
		if err != nil {
			return schedule.Record{}, err
		}
		r, more := schedule.ReadRecord(firings, job.UpdatedAt)
		if !more || len(firings) < limit || limit > 1000 {
			return r, nil
		}
	}
}

// times parses a job's schedule in its zone.
func (s *Service) times(sch goclaw.Schedule) (*schedule.Times, error) {
	zone, err := s.zone(sch.Zone)
	if err != nil {
		return nil, err
	}
	return schedule.Parse(sch, zone)
}

func (s *Service) zone(name string) (*time.Location, error) {
	if name == "" {
		return s.o.Zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("there is no time zone %q; write a name such as Europe/Berlin, or leave it out for the person's", name)
	}
	return zone, nil
}
