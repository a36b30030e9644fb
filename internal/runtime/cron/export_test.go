package cron

import (
	"context"

	"goclaw"
)

// Add adds a job that fires by the clock from now on.
func (s *Service) Add(ctx context.Context, job goclaw.CronJob) (goclaw.CronReport, error) {
	job.Enabled = true
	return s.add(ctx, job)
}
