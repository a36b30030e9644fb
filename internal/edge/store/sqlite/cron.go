package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/store"
)

// CronJobs lists all jobs, by agent and id.
func (s *Store) CronJobs(ctx context.Context) ([]goclaw.CronJob, error) {
	var jobs []goclaw.CronJob
	err := s.read(ctx, "list cron jobs", collectJobs(&jobs), `SELECT data FROM cron_jobs ORDER BY agent, id`)
	return jobs, err
}

// CronJob finds a job.
func (s *Store) CronJob(ctx context.Context, id string) (goclaw.CronJob, error) {
	const op = "find cron job"
	var jobs []goclaw.CronJob
	err := s.read(ctx, op, collectJobs(&jobs), `SELECT data FROM cron_jobs WHERE id = ?`, id)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("%s %s: %w", op, id, goclaw.ErrNotFound)
	}
	if err != nil {
		return goclaw.CronJob{}, err
	}
	return jobs[0], nil
}

func collectJobs(jobs *[]goclaw.CronJob) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return err
		}
		var j goclaw.CronJob
		if err := json.Unmarshal(data, &j); err != nil {
			return fmt.Errorf("cron job: %w", err)
		}
		*jobs = append(*jobs, j)
		return nil
	}
}

// PutCronJob stores a job whose revision is the stored one's.
func (s *Store) PutCronJob(ctx context.Context, j goclaw.CronJob) (goclaw.CronJob, error) {
	const op = "store cron job"
	if err := store.CheckJob(j); err != nil {
		return goclaw.CronJob{}, fmt.Errorf("%s: %w", op, err)
	}
	last := j.Revision
	j.Revision++
	err := s.write(ctx, op, func(ctx context.Context, t *tx) error {
		var stored int64
		err := t.row(ctx, `SELECT revision FROM cron_jobs WHERE id = ?`, []any{j.ID}, &stored)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if stored != last {
			j.Revision = last
			return store.NotLast(j, stored)
		}
		return t.putJob(ctx, j)
	})
	if err != nil {
		return goclaw.CronJob{}, err
	}
	return j, nil
}

func (t *tx) putJob(ctx context.Context, j goclaw.CronJob) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO cron_jobs (id, agent, revision, enabled, next_at, data) VALUES (?, ?, ?, ?, nullif(?, 0), ?)
		ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, revision = excluded.revision, enabled = excluded.enabled,
			next_at = excluded.next_at, data = excluded.data`,
		j.ID, j.Agent, j.Revision, flag(j.Enabled), j.Next, string(data))
	return err
}

// RemoveCronJob removes a job; its firings stay.
func (s *Store) RemoveCronJob(ctx context.Context, id string) error {
	return s.write(ctx, "remove cron job", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `DELETE FROM cron_jobs WHERE id = ?`, id)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: %w", id, goclaw.ErrNotFound)
		}
		return err
	})
}

// DueCronJobs returns the enabled jobs that are due, the longest due first, and
// when the next of the others is, as they are at one moment.
func (s *Store) DueCronJobs(ctx context.Context, now goclaw.Millis) (due []goclaw.CronJob, next goclaw.Millis, err error) {
	err = s.read(ctx, "find due cron jobs", func(rows *sql.Rows) error {
		var id string
		var at goclaw.Millis
		var data []byte
		if err := rows.Scan(&id, &at, &data); err != nil {
			return err
		}
		if id == "" {
			next = at
			return nil
		}
		var j goclaw.CronJob
		if err := json.Unmarshal(data, &j); err != nil {
			return fmt.Errorf("cron job %s: %w", id, err)
		}
		due = append(due, j)
		return nil
	}, `SELECT id, next_at, data FROM cron_jobs WHERE enabled = 1 AND next_at IS NOT NULL AND next_at <= ?1
		UNION ALL
		SELECT '', coalesce(min(next_at), 0), '' FROM cron_jobs WHERE enabled = 1 AND next_at IS NOT NULL AND next_at > ?1
		ORDER BY 2, 1`, now)
	return due, next, err
}

// FireCronJob decides about one due time. It looks, in this order, for: the
// job, the run's key, the revision, the due time, what the firing must not
// overlap with, what else the acceptance may fail with, and the session's quiet.
func (s *Store) FireCronJob(ctx context.Context, f goclaw.CronFire) (job goclaw.CronJob, run goclaw.Run, err error) {
	const op = "fire cron job"
	var profile []byte
	if err = store.CheckFire(f); err == nil && f.Run != nil {
		profile, err = json.Marshal(f.Run.Run.Profile)
	}
	if err != nil {
		return goclaw.CronJob{}, goclaw.Run{}, fmt.Errorf("%s: %w", op, err)
	}
	err = s.write(ctx, op, func(ctx context.Context, t *tx) (err error) {
		job, run, err = t.fire(ctx, f, string(profile))
		return err
	})
	if err != nil {
		return goclaw.CronJob{}, goclaw.Run{}, err
	}
	return job, run, nil
}

func (t *tx) fire(ctx context.Context, f goclaw.CronFire, profile string) (job goclaw.CronJob, run goclaw.Run, err error) {
	var stored []goclaw.CronJob
	if err := t.query(ctx, collectJobs(&stored), `SELECT data FROM cron_jobs WHERE id = ?`, f.Job.ID); err != nil {
		return job, run, err
	}
	if len(stored) == 0 {
		return job, run, store.Gone(f)
	}
	job = stored[0]
	if f.Run != nil && f.Run.Key != "" {
		known, err := t.keyed(ctx, f.Run.Key)
		if err != nil || len(known) > 0 {
			if err == nil {
				run = known[0]
			}
			return job, run, err
		}
	}
	var decided bool
	err = t.row(ctx, `SELECT EXISTS (SELECT 1 FROM firings WHERE job = ? AND due = ? AND manual = 0)`,
		[]any{f.Firing.Job, f.Firing.Due}, &decided)
	if err == nil {
		err = store.CheckFresh(job, f, decided)
	}
	if err == nil && f.Run != nil {
		run, err = t.start(ctx, f, profile)
	}
	if err != nil {
		return job, run, err
	}
	_, err = t.exec(ctx, `INSERT INTO firings (job, due, at, manual, skipped, missed, run_id) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		f.Firing.Job, f.Firing.Due, f.Firing.At, flag(f.Firing.Manual), f.Firing.Skipped, f.Firing.Missed, run.ID)
	if err != nil {
		return job, run, err
	}
	job = store.Fired(job, f)
	return job, run, t.putJob(ctx, job)
}

// start accepts the firing's run, if nothing is under way that it must not
// overlap with.
func (t *tx) start(ctx context.Context, f goclaw.CronFire, profile string) (run goclaw.Run, err error) {
	var alone bool
	var active int
	var unquiet bool
	err = t.row(ctx, `SELECT
			EXISTS (SELECT 1 FROM runs INDEXED BY runs_scheduled WHERE finished_at IS NULL AND trigger IN ('cron', 'heartbeat')
				AND EXISTS (SELECT 1 FROM firings WHERE run_id = runs.id AND run_id <> '' AND +job = ?1)),
			(SELECT count(*) FROM runs INDEXED BY runs_scheduled WHERE finished_at IS NULL AND trigger IN ('cron', 'heartbeat') AND +trigger = 'cron'),
			EXISTS (SELECT 1 FROM runs WHERE session_key = ?2 AND finished_at IS NULL)`,
		[]any{f.Firing.Job, f.Run.Run.Session.String()}, &alone, &active, &unquiet)
	if err == nil {
		err = store.CheckRoom(f, alone, active)
	}
	if err == nil {
		_, err = t.admit(ctx, *f.Run) // without a key that is known, none can stand for it
	}
	if err == nil && f.IfQuiet && unquiet {
		err = store.Unquiet(f)
	}
	if err != nil {
		return goclaw.Run{}, err
	}
	return t.enqueue(ctx, *f.Run, profile)
}

// Firings lists what became of a job's due times, newest first.
func (s *Store) Firings(ctx context.Context, job string, limit int) ([]goclaw.Firing, error) {
	if limit <= 0 {
		limit = -1
	}
	var firings []goclaw.Firing
	err := s.read(ctx, "list firings", func(rows *sql.Rows) error {
		var f goclaw.Firing
		u := &f.Usage
		err := rows.Scan(&f.Job, &f.Due, &f.At, &f.Manual, &f.Skipped, &f.Missed, &f.Run, &f.State, &f.Result, &f.Error,
			&f.StartedAt, &f.FinishedAt, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD)
		firings = append(firings, f)
		return err
	}, `SELECT job, due, at, manual, skipped, missed, run_id, coalesce(state, ''), coalesce(result, ''), coalesce(error, ''),
			coalesce(started_at, 0), coalesce(finished_at, 0), coalesce(input_tokens, 0), coalesce(output_tokens, 0),
			coalesce(cache_read_tokens, 0), coalesce(cache_write_tokens, 0), cost_usd
		FROM firings LEFT JOIN runs ON runs.id = firings.run_id
		WHERE job = ? ORDER BY n DESC LIMIT ?`, job, limit)
	return firings, err
}

// trimmed is how many firings one transaction removes at most.
const trimmed = 1000

// TrimFirings removes the oldest firings of each job until keep are left. Those
// whose run has not ended stay.
func (s *Store) TrimFirings(ctx context.Context, keep int) (removed int, err error) {
	const op = "trim firings"
	var long []string
	err = s.read(ctx, op, func(rows *sql.Rows) error {
		var job string
		err := rows.Scan(&job)
		long = append(long, job)
		return err
	}, `SELECT job FROM firings GROUP BY job HAVING count(*) > ?`, keep)
	for len(long) > 0 && err == nil {
		var n int64
		err = s.write(ctx, op, func(ctx context.Context, t *tx) (err error) {
			n, err = t.exec(ctx, `DELETE FROM firings WHERE n IN (SELECT n FROM firings
				WHERE job = ?1 AND n <= (SELECT n FROM firings WHERE job = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2)
					AND NOT EXISTS (SELECT 1 FROM runs WHERE id = run_id AND finished_at IS NULL)
				ORDER BY n LIMIT ?3)`, long[0], keep, trimmed)
			return err
		})
		if removed += int(n); n < trimmed {
			long = long[1:]
		}
	}
	return removed, err
}
