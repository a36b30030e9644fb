package cron

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/schedule"
)

//go:embed heartbeat.md
var heartbeatPrompt string

// Heartbeat is what the configuration says of an agent's heartbeat.
type Heartbeat struct {
	Agent     string
	Workspace string // where its HEARTBEAT.md is
	Every     time.Duration

	// Start and End are the hours in which it beats, such as 08:00 and 24:00, in
	// Zone; both empty: the whole day.
	Start, End string
	Zone       *time.Location // nil: the person's

	Session goclaw.SessionKey // zero: the agent's main session
	Model   string            // "": the session's
	Prompt  string            // "": the built-in one
}

// beat is a heartbeat as the service uses it.
type beat struct {
	workspace string
	hours     schedule.Hours
	job       goclaw.CronJob
}

// heartbeatPrefix begins the ids of heartbeats' jobs, and of no others.
const heartbeatPrefix = "heartbeat-"

func (o Options) beats() (map[string]beat, error) {
	if len(o.Heartbeats) > 0 && o.Files == nil {
		return nil, errors.New("cron: heartbeats need their files")
	}
	beats := map[string]beat{}
	for _, h := range o.Heartbeats {
		b, err := o.newBeat(h)
		if err != nil {
			return nil, fmt.Errorf("heartbeat of the agent %s: %w", h.Agent, err)
		}
		beats[b.job.ID] = b
	}
	return beats, nil
}

func (o Options) newBeat(h Heartbeat) (beat, error) {
	if h.Zone == nil {
		h.Zone = o.Zone
	}
	if h.Session.IsZero() {
		h.Session = goclaw.MainKey(h.Agent)
	}
	if h.Prompt == "" {
		h.Prompt = strings.TrimSpace(heartbeatPrompt)
	}
	b := beat{workspace: h.Workspace, job: goclaw.CronJob{
		ID: heartbeatPrefix + h.Agent, Name: "Heartbeat", Agent: h.Agent,
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: h.Every.Milliseconds()},
		Target:   goclaw.TargetMain, Session: h.Session, Message: h.Prompt, Model: h.Model,
		Missed: goclaw.MissedOnce, Heartbeat: true, Enabled: true,
	}}
	var err error
	if b.hours, err = schedule.ParseHours(h.Start, h.End, h.Zone); err != nil {
		return beat{}, err
	}
	_, err = schedule.Parse(b.job.Schedule, o.Zone)
	return b, err
}

// syncHeartbeats puts the heartbeats' jobs in line with the configuration.
func (s *Service) syncHeartbeats(ctx context.Context) error {
	jobs, err := s.o.Store.CronJobs(ctx)
	if err != nil {
		return err
	}
	stored := map[string]goclaw.CronJob{}
	for _, j := range jobs {
		if !j.Heartbeat {
			continue
		}
		stored[j.ID] = j
		if _, ok := s.beats[j.ID]; !ok {
			if err := s.o.Store.RemoveCronJob(ctx, j.ID); err != nil && !errors.Is(err, goclaw.ErrNotFound) {
				return err
			}
		}
	}
	for id, b := range s.beats {
		if err := s.syncHeartbeat(ctx, b, stored[id]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) syncHeartbeat(ctx context.Context, b beat, old goclaw.CronJob) error {
	job, now := b.job, goclaw.At(s.o.Now())
	job.Revision, job.CreatedAt, job.UpdatedAt = old.Revision, old.CreatedAt, old.UpdatedAt
	job.Next, job.Schedule.Anchor = old.Next, old.Schedule.Anchor
	if old == job {
		return nil // a restart does not postpone it
	}
	if old.Revision == 0 {
		job.CreatedAt = now
	}
	if old.Next == 0 || !old.Enabled || old.Schedule.EveryMs != job.Schedule.EveryMs {
		job.Schedule.Anchor = now
		job.Next = now + goclaw.Millis(job.Schedule.EveryMs)
	}
	job.UpdatedAt = now
	return s.put(ctx, job)
}

// beat decides about a heartbeat that is due. Only a call of a model leaves a
// record: outside of its hours, and while there is nothing to look after, it
// moves on without a word.
func (s *Service) beat(ctx context.Context, job goclaw.CronJob, b beat, now time.Time) (again time.Time, err error) {
	if !b.hours.Has(now) {
		return time.Time{}, s.moveOn(ctx, job, b.hours.Next(now))
	}
	times, err := s.times(job.Schedule)
	if err != nil {
		return time.Time{}, err
	}
	// One that was late, because its session was busy or no gateway ran, keeps
	// half its period from the next.
	next, _ := times.Next(now.Add(times.Every() / 2))
	text, err := s.o.Files.Heartbeat(b.workspace)
	s.complain(ctx, "a heartbeat was left out: its file can't be read", err, "job", job.ID)
	if err != nil || schedule.Idle(text) {
		return time.Time{}, s.moveOn(ctx, job, next)
	}
	record, err := s.record(ctx, job)
	if err != nil {
		return time.Time{}, err
	}
	if until := s.policy.Until(record, now); now.Before(until) {
		next, _ = times.Next(until)
		return time.Time{}, s.moveOn(ctx, job, next)
	}
	return s.fire(ctx, goclaw.CronFire{
		Job: job, Firing: firing(job, schedule.Decision{}, now), Next: goclaw.At(next), Enabled: true,
		IfQuiet: true, Alone: true,
	})
}

// moveOn gives a job another due time, without a record of this one.
func (s *Service) moveOn(ctx context.Context, job goclaw.CronJob, next time.Time) error {
	job.Next = goclaw.At(next)
	return s.put(ctx, job)
}
