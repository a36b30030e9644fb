package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store"
)

// CronJobs lists all jobs, by agent and id.
func (s *Store) CronJobs(ctx context.Context) ([]goclaw.CronJob, error) {
	var jobs []goclaw.CronJob
	err := s.read(ctx, "list cron jobs", func(b *pgx.Batch) {
		collectJobs(queue(b, `SELECT data FROM cron_jobs ORDER BY agent, id`), &jobs)
	})
	return jobs, err
}

// CronJob finds a job.
func (s *Store) CronJob(ctx context.Context, id string) (goclaw.CronJob, error) {
	const op = "find cron job"
	var jobs []goclaw.CronJob
	err := s.read(ctx, op, func(b *pgx.Batch) {
		collectJobs(queue(b, `SELECT data FROM cron_jobs WHERE id = $1`, id), &jobs)
	})
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("%s %s: %w", op, id, goclaw.ErrNotFound)
	}
	if err != nil {
		return goclaw.CronJob{}, err
	}
	return jobs[0], nil
}

func collectJobs(q *pgx.QueuedQuery, jobs *[]goclaw.CronJob) {
	*jobs = nil
	each(q, func(rows pgx.Rows) error {
		var data string
		if err := scan(rows, &data); err != nil {
			return err
		}
		var j goclaw.CronJob
		if err := json.Unmarshal([]byte(data), &j); err != nil {
			return fmt.Errorf("cron job: %w", err)
		}
		*jobs = append(*jobs, j)
		return nil
	})
}

// PutCronJob stores a job whose revision is the stored one's.
func (s *Store) PutCronJob(ctx context.Context, j goclaw.CronJob) (goclaw.CronJob, error) {
	const op = "store cron job"
	if err := store.CheckJob(j); err != nil {
		return goclaw.CronJob{}, fmt.Errorf("%s: %w", op, err)
	}
	put := j
	put.Revision++
	err := s.write(ctx, op, func(t *tx) error {
		var stored []int64
		// Of a job that is not there yet there is no row to lock.
		t.exclude("cron job " + j.ID)
		list(t.queue(`SELECT revision FROM cron_jobs WHERE id = $1 FOR UPDATE`, j.ID), &stored)
		if err := t.ask(); err != nil {
			return err
		}
		var last int64
		if len(stored) > 0 {
			last = stored[0]
		}
		if last != j.Revision {
			return store.NotLast(j, last)
		}
		t.wake("")
		return t.putJob(put)
	})
	if err != nil {
		return goclaw.CronJob{}, err
	}
	return put, nil
}

func (t *tx) putJob(j goclaw.CronJob) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	t.write(`INSERT INTO cron_jobs (id, agent, revision, enabled, next_at, data) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, revision = excluded.revision, enabled = excluded.enabled,
			next_at = excluded.next_at, data = excluded.data`,
		j.ID, j.Agent, j.Revision, j.Enabled, orNull(j.Next), string(data))
	return nil
}

// RemoveCronJob removes a job; its firings stay.
func (s *Store) RemoveCronJob(ctx context.Context, id string) error {
	const op = "remove cron job"
	var removed int64
	err := s.write(ctx, op, func(t *tx) error {
		count(t.write(`DELETE FROM cron_jobs WHERE id = $1`, id), &removed)
		t.vain = func() bool { return removed == 0 }
		t.wake("")
		return nil
	})
	if err == nil && removed == 0 {
		err = fmt.Errorf("%s %s: %w", op, id, goclaw.ErrNotFound)
	}
	return err
}

// DueCronJobs returns the enabled jobs that are due, the longest due first, and
// when the next of the others is, as they are at one moment.
func (s *Store) DueCronJobs(ctx context.Context, now goclaw.Millis) (due []goclaw.CronJob, next goclaw.Millis, err error) {
	err = s.read(ctx, "find due cron jobs", func(b *pgx.Batch) {
		due, next = nil, 0
		each(queue(b, `SELECT id, next_at, data FROM cron_jobs WHERE enabled AND next_at IS NOT NULL AND next_at <= $1
			UNION ALL
			SELECT '', coalesce(min(next_at), 0), '' FROM cron_jobs WHERE enabled AND next_at IS NOT NULL AND next_at > $1
			ORDER BY 2, 1`, now), func(rows pgx.Rows) error {
			var id, data string
			var at goclaw.Millis
			if err := scan(rows, &id, &at, &data); err != nil {
				return err
			}
			if id == "" {
				next = at
				return nil
			}
			var j goclaw.CronJob
			if err := json.Unmarshal([]byte(data), &j); err != nil {
				return fmt.Errorf("cron job %s: %w", id, err)
			}
			due = append(due, j)
			return nil
		})
	})
	return due, next, err
}

// FireCronJob decides about one due time. It looks, in this order, for: the
// job, the run's key, the revision, the due time, what the firing must not
// overlap with, what else the acceptance may fail with, and the session's quiet.
func (s *Store) FireCronJob(ctx context.Context, f goclaw.CronFire) (job goclaw.CronJob, run goclaw.Run, err error) {
	const op = "fire cron job"
	var profile string
	if err = store.CheckFire(f); err == nil && f.Run != nil {
		profile, err = encodeProfile(f.Run.Run.Profile)
	}
	if err != nil {
		return goclaw.CronJob{}, goclaw.Run{}, fmt.Errorf("%s: %w", op, err)
	}
	err = s.write(ctx, op, func(t *tx) error {
		job, run = goclaw.CronJob{}, goclaw.Run{}
		stored, known, err := t.decide(f)
		if err == nil && known == nil && f.Run != nil {
			known, err = t.start(f, &run, profile)
		}
		if err != nil {
			return err
		}
		if known != nil {
			job, run = stored, *known
			return nil // nothing is written
		}
		job = store.Fired(stored, f)
		t.write(`INSERT INTO firings (job, due, at, manual, skipped, missed, run_id) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			f.Firing.Job, f.Firing.Due, f.Firing.At, f.Firing.Manual, f.Firing.Skipped, f.Firing.Missed, run.ID)
		return t.putJob(job)
	})
	if err != nil {
		return goclaw.CronJob{}, goclaw.Run{}, err
	}
	return job, run, nil
}

// decide locks the job and returns it, and the run that was accepted with the
// firing's key already, if there is one; else it checks all but the acceptance.
func (t *tx) decide(f goclaw.CronFire) (job goclaw.CronJob, known *goclaw.Run, err error) {
	var stored []goclaw.CronJob
	var keyed []goclaw.Run
	var decided, alone bool
	var active int
	if f.MaxActive > 0 {
		t.exclude("cron runs") // two jobs must not pass the bound at once
	}
	collectJobs(t.queue(`SELECT data FROM cron_jobs WHERE id = $1 FOR UPDATE`, f.Job.ID), &stored)
	if f.Run != nil && f.Run.Key != "" {
		t.keyed(f.Run.Key, &keyed)
	}
	into(t.queue(`SELECT
			EXISTS (SELECT 1 FROM firings WHERE job = $1 AND due = $2 AND NOT manual),
			EXISTS (SELECT 1 FROM firings WHERE run_id = ANY (ARRAY (SELECT id FROM runs WHERE finished_at IS NULL AND trigger IN ('cron', 'heartbeat')))
				AND job || '' = $1),
			(SELECT count(*) FILTER (WHERE trigger = 'cron') FROM runs WHERE finished_at IS NULL AND trigger IN ('cron', 'heartbeat'))`,
		f.Firing.Job, f.Firing.Due), &decided, &alone, &active)
	if err := t.ask(); err != nil {
		return job, nil, err
	}
	switch {
	case len(stored) == 0:
		return job, nil, store.Gone(f)
	case len(keyed) > 0:
		return stored[0], &keyed[0], nil
	}
	if err = store.CheckFresh(stored[0], f, decided); err == nil && f.Run != nil {
		err = store.CheckRoom(f, alone, active)
	}
	return stored[0], nil, err
}

// start accepts the firing's run as run, or returns the one that was accepted
// with its key meanwhile.
func (t *tx) start(f goclaw.CronFire, run *goclaw.Run, profile string) (known *goclaw.Run, err error) {
	known, first, err := t.admit(*f.Run)
	switch {
	case err != nil || known != nil:
		return known, err
	case f.IfQuiet && !first:
		return nil, store.Unquiet(f)
	}
	t.enqueue(*f.Run, run, profile, first)
	return nil, nil
}

// Firings lists what became of a job's due times, newest first.
func (s *Store) Firings(ctx context.Context, job string, limit int) ([]goclaw.Firing, error) {
	var most *int
	if limit > 0 {
		most = &limit
	}
	var firings []goclaw.Firing
	err := s.read(ctx, "list firings", func(b *pgx.Batch) {
		firings = nil
		each(queue(b, `SELECT job, due, at, manual, skipped, missed, run_id, coalesce(state, ''), coalesce(result, ''), coalesce(error, ''),
				coalesce(started_at, 0), coalesce(finished_at, 0), coalesce(input_tokens, 0), coalesce(output_tokens, 0),
				coalesce(cache_read_tokens, 0), coalesce(cache_write_tokens, 0), cost_usd
			FROM firings LEFT JOIN runs ON runs.id = firings.run_id
			WHERE job = $1 ORDER BY n DESC LIMIT $2`, job, most), func(rows pgx.Rows) error {
			var f goclaw.Firing
			u := &f.Usage
			err := scan(rows, &f.Job, &f.Due, &f.At, &f.Manual, &f.Skipped, &f.Missed, &f.Run, &f.State, &f.Result, &f.Error,
				&f.StartedAt, &f.FinishedAt, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD)
			firings = append(firings, f)
			return err
		})
	})
	return firings, err
}

// trimmed is how many firings one transaction removes at most.
const trimmed = 1000

// TrimFirings removes the oldest firings of each job until keep are left. Those
// whose run has not ended stay.
func (s *Store) TrimFirings(ctx context.Context, keep int) (removed int, err error) {
	const op = "trim firings"
	var long []string
	err = s.read(ctx, op, func(b *pgx.Batch) {
		long = nil
		each(queue(b, `SELECT job FROM firings GROUP BY job HAVING count(*) > $1`, keep), func(rows pgx.Rows) error {
			var job string
			err := rows.Scan(&job)
			long = append(long, job)
			return err
		})
	})
	for len(long) > 0 && err == nil {
		var n int64
		err = s.write(ctx, op, func(t *tx) error {
			t.again = true
			count(t.write(`DELETE FROM firings WHERE n IN (SELECT n FROM firings
				WHERE job = $1 AND n <= (SELECT n FROM firings WHERE job = $1 ORDER BY n DESC LIMIT 1 OFFSET $2)
					AND NOT EXISTS (SELECT 1 FROM runs WHERE id = run_id AND finished_at IS NULL)
				ORDER BY n LIMIT $3)`, long[0], keep, trimmed), &n)
			return nil
		})
		if removed += int(n); n < trimmed {
			long = long[1:]
		}
	}
	return removed, err
}
