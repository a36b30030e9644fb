package storetest

import (
	"pgregory.net/rapid"

	"goclaw"
)

// cronID names one of few jobs.
func (p *pair) cronID(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"j", "k", "l"}).Draw(rt, "job")
}

// known is the job as it is stored, or one that is not.
func (p *pair) known(rt *rapid.T) goclaw.CronJob {
	id := p.cronID(rt)
	j, err := both(p, "CronJob", func(s Store) (goclaw.CronJob, error) { return s.CronJob(p.ctx, id) })
	if err != nil {
		j = goclaw.CronJob{ID: id, Agent: rapid.SampledFrom([]string{"a", "b", "b", ""}).Draw(rt, "agent")}
	}
	if rapid.IntRange(0, 5).Draw(rt, "stale") == 0 {
		j.Revision--
	}
	return j
}

func (p *pair) cronJob(rt *rapid.T) {
	if rapid.IntRange(0, 5).Draw(rt, "remove") == 0 {
		id := p.cronID(rt)
		_ = bothDo(p, "RemoveCronJob", func(s Store) error { return s.RemoveCronJob(p.ctx, id) })
		return
	}
	j := p.known(rt)
	j.Message, j.Enabled, j.Next = rapid.String().Draw(rt, "message"), rapid.IntRange(0, 3).Draw(rt, "on") > 0, p.soon(rt)
	if rapid.Bool().Draw(rt, "limited") {
		seconds := 5
		j.TimeoutSeconds, j.Session = &seconds, p.key(rt)
	}
	_, _ = both(p, "PutCronJob", func(s Store) (goclaw.CronJob, error) { return s.PutCronJob(p.ctx, j) })
	p.askCron(rt)
}

func (p *pair) fireCron(rt *rapid.T) {
	j := p.known(rt)
	f := goclaw.CronFire{
		Job: j, Next: p.soon(rt), Enabled: rapid.IntRange(0, 3).Draw(rt, "on") > 0,
		Firing: goclaw.Firing{
			Job: j.ID, Due: rapid.SampledFrom([]goclaw.Millis{j.Next, j.Next, p.now, 5}).Draw(rt, "due"), At: p.now,
			Manual: rapid.IntRange(0, 3).Draw(rt, "manual") == 0, Missed: rapid.IntRange(0, 2).Draw(rt, "missed"),
		},
		IfQuiet: rapid.IntRange(0, 3).Draw(rt, "quiet") == 0, Alone: rapid.IntRange(0, 3).Draw(rt, "alone") == 0,
		MaxActive: rapid.IntRange(0, 4).Draw(rt, "most"),
	}
	if rapid.IntRange(0, 4).Draw(rt, "skipped") == 0 {
		f.Firing.Skipped = "why"
	} else {
		f.Run = &goclaw.Acceptance{Key: rapid.SampledFrom([]string{"", "", "k1", "k3", "k4"}).Draw(rt, "key"), Run: goclaw.Run{
			ID: p.id("run"), Session: p.key(rt), Trigger: rapid.SampledFrom([]goclaw.Trigger{goclaw.TriggerCron, goclaw.TriggerHeartbeat}).Draw(rt, "trigger"),
			Task: rapid.String().Draw(rt, "task"), State: goclaw.StateQueued, CreatedAt: p.now,
		}}
	}
	type answer struct {
		Job goclaw.CronJob
		Run goclaw.Run
	}
	got, err := both(p, "FireCronJob", func(s Store) (answer, error) {
		job, run, err := s.FireCronJob(p.ctx, f)
		return answer{job, run}, err
	})
	if err == nil && f.Run != nil && got.Run.ID == f.Run.Run.ID {
		p.runs = append(p.runs, got.Run)
	}
	p.askCron(rt)
}

func (p *pair) trim(rt *rapid.T) {
	keep := rapid.IntRange(0, 3).Draw(rt, "keep")
	_, _ = both(p, "TrimFirings", func(s Store) (int, error) { return s.TrimFirings(p.ctx, keep) })
	p.askCron(rt)
}

func (p *pair) askCron(rt *rapid.T) {
	type answer struct {
		Due  []goclaw.CronJob
		Next goclaw.Millis
	}
	_, _ = both(p, "DueCronJobs", func(s Store) (answer, error) {
		due, next, err := s.DueCronJobs(p.ctx, p.now)
		return answer{due, next}, err
	})
	id, limit := p.cronID(rt), rapid.IntRange(0, 3).Draw(rt, "limit")
	_, _ = both(p, "Firings", func(s Store) ([]goclaw.Firing, error) { return s.Firings(p.ctx, id, limit) })
}
