package cron

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"goclaw"
	"goclaw/internal/core/schedule"
)

// AddEdit adds the job that an edit describes. With the same once, if it is not
// "", it adds one job, however often it is called.
func (s *Service) AddEdit(ctx context.Context, e goclaw.CronEdit, once string) (goclaw.CronReport, error) {
	job := goclaw.CronJob{Session: goclaw.MainKey(goclaw.DefaultAgent), Enabled: true}
	if e.Agent != nil {
		job.Agent, job.Session = *e.Agent, goclaw.MainKey(*e.Agent)
	}
	if err := s.apply(e, &job); err != nil {
		return goclaw.CronReport{}, err
	}
	if once == "" {
		return s.add(ctx, job)
	}
	job.ID = named(job.Name, once)
	known, err := s.Show(ctx, job.ID)
	if !errors.Is(err, goclaw.ErrNotFound) {
		return known, err
	}
	added, err := s.add(ctx, job)
	if goclaw.IsBadRequest(err) { // another may have added it just now
		if known, kerr := s.Show(ctx, job.ID); kerr == nil {
			return known, nil
		}
	}
	return added, err
}

// named is the id of the one job that is added under a key.
func named(name, once string) string {
	sum := sha256.Sum256([]byte(once))
	return slug(name, 1) + "-" + hex.EncodeToString(sum[:4])
}

// ChangeEdit changes of a job what the edit says.
func (s *Service) ChangeEdit(ctx context.Context, id string, e goclaw.CronEdit) (goclaw.CronReport, error) {
	return s.Change(ctx, id, func(j *goclaw.CronJob) error {
		if e.Agent != nil {
			j.Agent = *e.Agent
		}
		return s.apply(e, j)
	})
}

// apply writes an edit into a job. Its errors are goclaw.BadRequests.
func (s *Service) apply(e goclaw.CronEdit, j *goclaw.CronJob) error {
	if err := s.reschedule(e, &j.Schedule); err != nil {
		return goclaw.BadRequest(err.Error())
	}
	set(&j.Name, e.Name)
	set(&j.Target, e.Target)
	set(&j.Session, e.Session)
	set(&j.Message, e.Message)
	set(&j.Model, e.Model)
	set(&j.Thinking, e.Thinking)
	set(&j.Definition, e.Definition)
	set(&j.Budget, e.Budget)
	set(&j.Missed, e.Missed)
	set(&j.Enabled, e.Enabled)
	if e.TimeoutSeconds != nil {
		j.TimeoutSeconds = e.TimeoutSeconds
	}
	return nil
}

func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

// reschedule reads the schedule that an edit names, in either way.
func (s *Service) reschedule(e goclaw.CronEdit, to *goclaw.Schedule) error {
	ways := 0
	for _, way := range []bool{e.Schedule != nil, e.At != nil, e.Every != nil, e.Cron != nil} {
		if way {
			ways++
		}
	}
	zoneName := ""
	set(&zoneName, e.Timezone)
	switch {
	case ways > 1:
		return errors.New("say when in one way: schedule, at, every or cron")
	case ways == 0 && to.Kind == "":
		return errors.New("say when: by at, every or cron")
	case e.Schedule != nil && e.Timezone != nil:
		return errors.New("timezone is part of schedule; leave it out beside")
	case e.Schedule != nil:
		*to = *e.Schedule
	case e.At != nil:
		zone, err := s.zone(zoneName)
		if err != nil {
			return err
		}
		at, err := schedule.ParseAt(*e.At, zone, s.o.Now())
		if err != nil {
			return err
		}
		*to = goclaw.Schedule{Kind: goclaw.ScheduleAt, At: goclaw.At(at)}
	case e.Every != nil:
		every, err := schedule.ParseEvery(*e.Every)
		if err != nil {
			return err
		}
		*to = goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: every.Milliseconds()}
	case e.Cron != nil:
		*to = goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: *e.Cron, Zone: zoneName}
	case e.Timezone != nil && to.Kind != goclaw.ScheduleCron:
		return errors.New("timezone is for cron expressions and local times")
	case e.Timezone != nil:
		to.Zone = zoneName
	}
	return nil
}
