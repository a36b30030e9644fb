package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/provider/providertest"
)

// The crash check of the crontab kills the program while jobs fire every
// second, most often just before or after a commit, and holds the record of
// firings against what was promised: each due time is decided about once, what
// it started has ended, and each result is announced once.

// killedFiring are the points at which a firing is caught.
var killedFiring = []string{"commit.before", "commit.after"}

var (
	oneClock = topology{
		seats: []string{"gateway"}, lease: crashLease, parallel: 2, faults: 6, within: 1500 * time.Millisecond, passes: 12,
		sleepy: 1 << 30, alone: true, points: killedFiring,
	}
	twoClocks = topology{
		seats: []string{"gateway", "gateway"}, lease: crashLease, parallel: 1, faults: 10, within: 1500 * time.Millisecond, passes: 12,
		sleepy: 4, points: killedFiring,
	}
)

func TestCronCrash(t *testing.T) { crashClock(t, oneClock, crashFaults(t, 6), stockSQLite(t)) }

func TestCronCrashPostgres(t *testing.T) {
	crashClock(t, twoClocks, crashFaults(t, 10)*3/5, stockPostgres(t))
}

// clockJob is one of the jobs of a round.
type clockJob struct {
	id, session string
	flags       []string
	step        time.Duration
}

var clockJobs = []clockJob{
	{"told", "agent:main:telegram:direct:told", []string{"--every", "1s"}, time.Second},
	{"strict", "agent:main:telegram:direct:strict", []string{"--every", "1s", "--missed", "skip"}, time.Second},
	{"turn", "agent:main:telegram:direct:turn", []string{"--every", "1s", "--main"}, time.Second},
	{"slow", "agent:main:telegram:direct:told", []string{"--every", "2s"}, 2 * time.Second},
}

// clockSum is what all rounds came to.
type clockSum struct {
	mu                                              sync.Mutex
	kills, atPoints, pauses, caught                 int
	decided, ran, madeUp, skipped, announced, lives int
}

func crashClock(t *testing.T, top topology, total int, from stock) {
	sum := &clockSum{}
	took := rounds(t, top, total, from, false, func(s *site) {
		s.play = playClock
		s.addJobs()
		var lives sync.WaitGroup
		for _, seat := range s.seats {
			lives.Go(func() { s.keep(seat) })
		}
		for s.pending() && !t.Failed() {
			wait(30*time.Millisecond, nil)
		}
		s.calm()
		close(s.over)
		lives.Wait()
		s.checkClock(sum)
	})
	if t.Failed() {
		return
	}
	t.Logf("%d kills (%d at a commit, %d within 50 ms of a firing), %d pauses, %d lives; %s", sum.kills, sum.atPoints, sum.caught, sum.pauses, sum.lives,
		took.Round(time.Second))
	t.Logf("%d due times, each decided about once: %d ran, %d further ones were made up for, %d were skipped; %d results, announced once each",
		sum.decided, sum.ran, sum.madeUp, sum.skipped, sum.announced)
	if sum.kills > 20 && sum.caught == 0 {
		t.Error("no kill was near a firing: the check checks nothing")
	}
}

// addJobs adds the jobs before any gateway runs.
func (s *site) addJobs() {
	env := append(s.records.env(), "ANTHROPIC_API_KEY=cli", "ANTHROPIC_BASE_URL="+s.model.URL())
	for _, j := range clockJobs {
		args := append([]string{"cron", "add", "--name", j.id, "--deliver", j.session}, j.flags...)
		if out, err := program(s.t, s.seats[0].home, env, append(args, "do "+j.id)...).CombinedOutput(); err != nil {
			s.t.Errorf("goclaw cron add: %v\n%s", err, out)
		}
	}
}

// playClock plays the models: a worker looks around and says something that
// nobody says twice.
func playClock(r *providertest.Request) providertest.Answer {
	a := providertest.Answer{Text: "heard", Delay: time.Duration(5+r.N%7*20) * time.Millisecond}
	switch {
	case r.Worker() && len(r.NewestResults()) == 0:
		a.Text, a.Calls = "", []providertest.Call{call("ls", args{})}
	case r.Worker():
		a.Text = fmt.Sprintf("<made %d>", r.N)
	}
	return a
}

// calm waits until every job has fired after the last fault, stops them, and
// waits until all that they started has ended and is told.
func (s *site) calm() {
	ctx, cancel := context.WithTimeout(s.t.Context(), siteLimit)
	defer cancel()
	since := goclaw.At(time.Now())
	for _, j := range clockJobs {
		err := s.try(ctx, func(ctx context.Context, api *client.Client) error {
			job, err := api.CronJob(ctx, j.id)
			if err == nil && (job.Last == nil || job.Last.At < since) {
				err = fmt.Errorf("%s has not fired since the last fault", j.id)
			}
			return err
		})
		if err == nil {
			err = s.try(ctx, func(ctx context.Context, api *client.Client) error {
				_, err := api.PauseCronJob(ctx, j.id)
				return err
			})
		}
		if err != nil {
			s.t.Error(err)
			return
		}
	}
	if err := s.try(ctx, s.settledClock); err != nil {
		s.t.Error(err)
	}
}

// settledClock says what is still under way.
func (s *site) settledClock(ctx context.Context, api *client.Client) error {
	runs, err := api.Runs(ctx, goclaw.RunFilter{Limit: 1000})
	if err != nil {
		return err
	}
	requests := s.model.Requests()
	for _, r := range runs {
		if !r.State.Ended() {
			return fmt.Errorf("the run %s of %s has not ended", r.ID, r.Session)
		}
		heard := func(q providertest.Recorded) bool {
			return !q.Request.Worker() && strings.Contains(q.Request.NewestText(), r.Result)
		}
		if r.Session.IsWorker() && !slices.ContainsFunc(requests, heard) {
			return fmt.Errorf("nobody has heard of %s", r.Result)
		}
	}
	return nil
}

// onceEach finds what must not be there of the crontab, besides doubles.
var onceEach = map[string]string{
	"a due time decided about twice":      `SELECT job || ' ' || due FROM firings GROUP BY job, due HAVING count(*) > 1`,
	"a firing of a run twice":             `SELECT run_id FROM firings WHERE run_id <> '' GROUP BY run_id HAVING count(*) > 1`,
	"a scheduled run without its firing":  `SELECT id FROM runs WHERE trigger = 'cron' AND NOT EXISTS (SELECT 1 FROM firings WHERE run_id = id)`,
	"a firing whose run is missing":       `SELECT run_id FROM firings WHERE run_id <> '' AND NOT EXISTS (SELECT 1 FROM runs WHERE id = run_id)`,
	"a firing with neither run nor why":   `SELECT job || ' ' || due FROM firings WHERE run_id = '' AND skipped = ''`,
	"a firing with both":                  `SELECT job || ' ' || due FROM firings WHERE run_id <> '' AND skipped <> ''`,
	"a scheduled run that did not finish": `SELECT id || ' ' || state FROM runs WHERE trigger = 'cron' AND state <> 'completed'`,
}

// checkClock holds a round's end against the promises.
func (s *site) checkClock(sum *clockSum) {
	if s.t.Failed() {
		return
	}
	queries := []map[string]string{onceEach, doubles}
	for _, of := range queries {
		for what, query := range of {
			// An isolated run's result is announced; it has no chat to reply to.
			query = strings.ReplaceAll(query, "trigger <> 'spawn' AND result <> ''", "depth = 0 AND result <> ''")
			found, err := s.records.look(query)
			if err != nil || len(found) > 0 {
				s.t.Errorf("%s: %v %v", what, found, err)
			}
		}
	}
	l := &ledger{site: s, events: map[string][]goclaw.Event{}, lines: map[string]int{}}
	err := l.load(s.t.Context())
	if err == nil {
		err = l.checkJobs(s.t.Context(), sum)
	}
	if err != nil {
		s.t.Errorf("the database can't be read: %v", err)
		return
	}
	if err := s.records.sound(); err != nil {
		s.t.Errorf("the database is damaged: %v", err)
	}
	l.checkSessions()
	l.checkLogs()
	for _, r := range l.runs {
		if !r.Session.IsWorker() {
			continue
		}
		n := 0
		for _, taker := range l.runs {
			if taker.Session == r.Requester {
				n += l.told(taker, r.Result)
			}
		}
		if n != 1 {
			s.t.Errorf("the result %s of %s is announced %d times", r.Result, r.ID, n)
		}
		sum.mu.Lock()
		sum.announced += n
		sum.mu.Unlock()
	}
}

// checkJobs: from a job's first due time to the last, each is decided about, by
// a record of its own or as one that another stands for.
func (l *ledger) checkJobs(ctx context.Context, sum *clockSum) (err error) {
	db, err := l.records.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	sum.mu.Lock()
	defer sum.mu.Unlock()
	var all []goclaw.Firing
	for _, j := range clockJobs {
		job, err := db.CronJob(ctx, j.id)
		if err != nil {
			return err
		}
		firings, err := db.Firings(ctx, j.id, 0)
		if err != nil {
			return err
		}
		all = append(all, firings...)
		slices.SortFunc(firings, func(a, b goclaw.Firing) int { return int(a.Due - b.Due) })
		due := job.Schedule.Anchor.Time().Add(j.step)
		for _, f := range firings {
			if !f.Due.Time().Equal(due) {
				l.t.Errorf("%s: %s is on record after the due times before %s: nobody decided about those between, or twice", j.id, stamp(f.Due.Time()), stamp(due))
			}
			if f.At < f.Due {
				l.t.Errorf("%s fired at %s, before it was due at %s", j.id, stamp(f.At.Time()), stamp(f.Due.Time()))
			}
			due = f.Due.Time().Add(time.Duration(1+f.Missed) * j.step)
			sum.decided += 1 + f.Missed
			if f.Run == "" {
				sum.skipped += 1 + f.Missed
			} else {
				sum.ran++
				sum.madeUp += f.Missed
			}
		}
	}
	for _, seat := range l.seats {
		sum.lives += seat.lives
	}
	for _, f := range l.faults {
		if !f.kill {
			sum.pauses++
			continue
		}
		sum.kills++
		if f.point {
			sum.atPoints++
		}
		if slices.ContainsFunc(all, func(g goclaw.Firing) bool { return f.at.Sub(g.At.Time()).Abs() < 50*time.Millisecond }) {
			sum.caught++
		}
	}
	return nil
}

func stamp(at time.Time) string { return at.Format("15:04:05.000") }
