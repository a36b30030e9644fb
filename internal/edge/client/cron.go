package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"goclaw"
)

// CronJobs lists the jobs, by agent and id.
func (c *Client) CronJobs(ctx context.Context) ([]goclaw.CronReport, error) {
	var jobs []goclaw.CronReport
	_, err := c.call(ctx, http.MethodGet, "/api/cron", nil, nil, &jobs)
	return jobs, wrap("list jobs", err)
}

// CronJob returns one job.
func (c *Client) CronJob(ctx context.Context, id string) (goclaw.CronReport, error) {
	return c.cronJob(ctx, http.MethodGet, jobPath(id, ""), nil)
}

// AddCronJob adds the job that an edit describes.
func (c *Client) AddCronJob(ctx context.Context, e goclaw.CronEdit) (goclaw.CronReport, error) {
	return c.cronJob(ctx, http.MethodPost, "/api/cron", e)
}

// ChangeCronJob changes of a job what the edit says.
func (c *Client) ChangeCronJob(ctx context.Context, id string, e goclaw.CronEdit) (goclaw.CronReport, error) {
	return c.cronJob(ctx, http.MethodPatch, jobPath(id, ""), e)
}

// PauseCronJob keeps a job from firing by the clock.
func (c *Client) PauseCronJob(ctx context.Context, id string) (goclaw.CronReport, error) {
	return c.cronJob(ctx, http.MethodPost, jobPath(id, "/pause"), struct{}{})
}

// ResumeCronJob ends a pause.
func (c *Client) ResumeCronJob(ctx context.Context, id string) (goclaw.CronReport, error) {
	return c.cronJob(ctx, http.MethodPost, jobPath(id, "/resume"), struct{}{})
}

// RemoveCronJob removes a job; its history stays.
func (c *Client) RemoveCronJob(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, jobPath(id, ""), nil, nil, nil)
	return wrap("remove job "+id, err)
}

// RunCronJob fires a job by hand.
func (c *Client) RunCronJob(ctx context.Context, id string) (goclaw.Run, error) {
	var run goclaw.Run
	_, err := c.call(ctx, http.MethodPost, jobPath(id, "/run"), nil, struct{}{}, &run)
	return run, wrap("run job "+id, err)
}

// CronHistory lists what became of a job's due times, newest first; limit 0 is
// all.
func (c *Client) CronHistory(ctx context.Context, id string, limit int) ([]goclaw.Firing, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var firings []goclaw.Firing
	_, err := c.call(ctx, http.MethodGet, jobPath(id, "/history"), query, nil, &firings)
	return firings, wrap("history of job "+id, err)
}

func (c *Client) cronJob(ctx context.Context, method, path string, body any) (goclaw.CronReport, error) {
	var job goclaw.CronReport
	_, err := c.call(ctx, method, path, nil, body, &job)
	return job, wrap("cron", err)
}

func jobPath(id, action string) string { return "/api/cron/" + url.PathEscape(id) + action }
