package cron_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/cron"
)

// world is a store with gateways' services on it, in a bubble of synctest.
type world struct {
	*testing.T
	store *memory.Store
	began time.Time
	runs  atomic.Int64

	mu       sync.Mutex
	accepted []goclaw.Run
	cantRun  error         // what CronRun says
	takes    time.Duration // how long a run takes; 0: it ends only by end
	outcome  goclaw.RunState
	files    map[string]string
	read     int
}

// inWorld runs a test in a bubble; the time is 2000-01-01 00:00 UTC.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: memory.Open(), began: time.Now(), outcome: goclaw.StateCompleted, files: map[string]string{}}
		test(w)
	})
}

// service starts a service; it is stopped at the test's end.
func (w *world) service(change func(*cron.Options)) *cron.Service {
	w.Helper()
	o := cron.Options{Store: w.store, Runner: w, Files: w, Zone: time.UTC, Enabled: true}
	if change != nil {
		change(&o)
	}
	s, err := cron.New(o)
	w.ok(err)
	ctx, stop := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	return s
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) CronRun(_ context.Context, j goclaw.CronJob, due goclaw.Millis) (goclaw.Acceptance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cantRun != nil {
		return goclaw.Acceptance{}, w.cantRun
	}
	session, trigger := j.Key(), goclaw.TriggerCron
	if j.Target == goclaw.TargetMain {
		session = j.Session
	}
	if j.Heartbeat {
		trigger = goclaw.TriggerHeartbeat
	}
	id := fmt.Sprintf("run-%d", w.runs.Add(1))
	return goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: session, Trigger: trigger, Task: j.Message, State: goclaw.StateQueued, CreatedAt: goclaw.At(time.Now()),
	}}, nil
}

func (w *world) Accepted(r goclaw.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = append(w.accepted, r)
	if w.takes > 0 {
		outcome := w.outcome
		time.AfterFunc(w.takes, func() { w.end(r.ID, outcome) })
	}
}

// end ends a run as an engine would.
func (w *world) end(id string, state goclaw.RunState) {
	w.Helper()
	ctx, now := context.Background(), goclaw.At(time.Now())
	if _, err := w.store.Claim(ctx, w.everything()); err != nil {
		w.Error(err)
	}
	run, err := w.store.Run(ctx, id)
	if err == nil {
		err = w.store.End(ctx, run.Fence(), goclaw.Ending{Batch: goclaw.Batch{Now: now}, State: state, Error: "told to"})
	}
	if err != nil {
		w.Error(err)
	}
}

func (w *world) everything() goclaw.ClaimRequest {
	return goclaw.ClaimRequest{Owner: "e", Now: goclaw.At(time.Now()), Lease: 1000 * time.Hour, Max: 100, MaxWorkers: 100}
}

// endAll ends all runs there are.
func (w *world) endAll() {
	w.Helper()
	claimed, err := w.store.Claim(w.Context(), w.everything())
	w.ok(err)
	for _, c := range claimed {
		w.ok(w.store.End(w.Context(), c.Run.Fence(), goclaw.Ending{Batch: goclaw.Batch{Now: goclaw.At(time.Now())}, State: goclaw.StateCompleted}))
	}
}

func (w *world) Heartbeat(workspace string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read++
	text, ok := w.files[workspace]
	if text == "broken" {
		return "", errors.New("it is a link that leaves the workspace")
	}
	if !ok {
		return "", nil
	}
	return text, nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// sleep lets time pass.
func (w *world) sleep(d time.Duration) {
	w.Helper()
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) add(s *cron.Service, change func(*goclaw.CronJob)) goclaw.CronReport {
	w.Helper()
	j := goclaw.CronJob{Name: "Look at mail", Message: "look", Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 60_000}}
	if change != nil {
		change(&j)
	}
	r, err := s.Add(w.Context(), j)
	w.ok(err)
	return r
}

// told is what became of a job's due times, oldest first, by seconds since the
// world began: 60 ran, 120+2 made up for two more, and what was skipped.
func (w *world) told(job string) (all []string) {
	w.Helper()
	firings, err := w.store.Firings(w.Context(), job, 0)
	w.ok(err)
	for i := len(firings) - 1; i >= 0; i-- {
		f := firings[i]
		s := fmt.Sprint(f.Due.Time().Sub(w.began).Seconds())
		if f.Manual {
			s = "by hand"
		}
		if f.Missed > 0 {
			s += fmt.Sprintf("+%d", f.Missed)
		}
		if f.Skipped != "" {
			s += " " + f.Skipped
		}
		all = append(all, s)
	}
	return all
}

func (w *world) tells(job string, want ...string) {
	w.Helper()
	if got := w.told(job); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s after %s:\n%q; want\n%q", job, time.Since(w.began), got, want)
	}
}

// shaky is a store that fails now and then, before or after it has written.
type shaky struct {
	cron.Store
	rand *rand.Rand
	mu   sync.Mutex
}

var errShaky = errors.New("the disk is full")

func (s *shaky) fails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(3) == 0
}

func (s *shaky) FireCronJob(ctx context.Context, f goclaw.CronFire) (goclaw.CronJob, goclaw.Run, error) {
	if s.fails() {
		return goclaw.CronJob{}, goclaw.Run{}, errShaky
	}
	j, r, err := s.Store.FireCronJob(ctx, f)
	if s.fails() {
		return goclaw.CronJob{}, goclaw.Run{}, errShaky // it has written: the gateway died in between
	}
	return j, r, err
}

func (s *shaky) DueCronJobs(ctx context.Context, now goclaw.Millis) ([]goclaw.CronJob, goclaw.Millis, error) {
	if s.fails() {
		return nil, 0, errShaky
	}
	return s.Store.DueCronJobs(ctx, now)
}

func (s *shaky) Firings(ctx context.Context, job string, limit int) ([]goclaw.Firing, error) {
	if s.fails() {
		return nil, errShaky
	}
	return s.Store.Firings(ctx, job, limit)
}
