package cron

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"goclaw"
	"goclaw/internal/core/schedule"
)

// AddEdit adds the job that an edit describes. With the same once, if it is not
// "", it adds one job, however often it is called; with the same once and
// another edit it fails with goclaw.ErrReused, as long as that job is there.
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
	said, err := json.Marshal(e)
	if err != nil {
		return goclaw.CronReport{}, err
	}
	job.ID = slug(job.Name, 1) + "-" + hash(once)[:8]
	job.Request = hash(once) + "-" + hash(string(said))
	known, err := s.requested(ctx, job)
	if !errors.Is(err, goclaw.ErrNotFound) {
		return known, err
	}
	added, err := s.add(ctx, job)
	if goclaw.IsBadRequest(err) { // another may have added it just now
		if known, kerr := s.requested(ctx, job); !errors.Is(kerr, goclaw.ErrNotFound) {
			return known, kerr
		}
	}
	return added, err
}

// requested is the job that was added under the key of asked's request:
// goclaw.ErrNotFound if there is none, goclaw.ErrReused if something else was
// said then.
func (s *Service) requested(ctx context.Context, asked goclaw.CronJob) (goclaw.CronReport, error) {
	jobs, err := s.o.Store.CronJobs(ctx)
	if err != nil {
		return goclaw.CronReport{}, err
	}
	key, _, _ := strings.Cut(asked.Request, "-")
	for _, j := range jobs {
		switch {
		case j.Request == "" && j.ID == asked.ID: // added before requests were kept
		case !strings.HasPrefix(j.Request, key+"-"):
			continue
		case j.Request != asked.Request:
			return goclaw.CronReport{}, goclaw.ErrReused
		}
		return s.report(ctx, j)
	}
	return goclaw.CronReport{}, goclaw.ErrNotFound
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
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

var errZone = errors.New("timezone is for cron expressions and local times; equal steps count elapsed time")

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
	case e.Every != nil && zoneName != "":
		return errZone
	case e.Every != nil:
		every, err := schedule.ParseEvery(*e.Every)
		if err != nil {
			return err
		}
		*to = goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: every.Milliseconds()}
	case e.Cron != nil:
		*to = goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: *e.Cron, Zone: zoneName}
	case e.Timezone != nil && to.Kind != goclaw.ScheduleCron:
		return errZone
	case e.Timezone != nil:
		to.Zone = zoneName
	}
	return nil
}
