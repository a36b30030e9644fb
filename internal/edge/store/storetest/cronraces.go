package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"goclaw"
)

// testConcurrentFirers: of eight that fire the same due time at once one does,
// and the others are told that it was done.
func testConcurrentFirers(w *world) {
	const firers, minutes = 8, 12
	j := w.put(w.job("j", start))
	for i := range minutes {
		var fired atomic.Int64
		together(firers, func(who int) {
			f := w.fire(j, fmt.Sprintf("r%02d-%d", i, who))
			switch i % 3 {
			case 0: // every firer's run has the same key, as it should
				f.Run.Key = fmt.Sprint("minute ", i)
			case 1:
				f.Run.Key = ""
			case 2:
				f.Run, f.Firing.Skipped = nil, "why"
			}
			_, run, err := w.FireCronJob(w.Context(), f)
			switch {
			case err == nil && run.ID == fmt.Sprintf("r%02d-%d", i, who), err == nil && i%3 == 2:
				fired.Add(1)
			case err == nil && i%3 == 0: // the winner's run
			case !errors.Is(err, goclaw.ErrChanged):
				w.Errorf("FireCronJob: run %s, error %v", run.ID, err)
			}
		})
		if fired.Load() != 1 {
			w.Fatalf("%d firers fired minute %d, want 1", fired.Load(), i)
		}
		var err error
		j, err = w.CronJob(w.Context(), "j")
		w.ok(err)
		w.same("revision", j.Revision, int64(i)+2)
		w.same("next", j.Next, start+goclaw.Millis(i+1)*60_000)
	}
	w.onceEach("j", minutes)
}

// onceEach fails unless the job was fired so many times, each due time once and
// each time as a run of its own.
func (w *world) onceEach(job string, n int) {
	w.Helper()
	due, started := map[goclaw.Millis]bool{}, map[string]bool{}
	for _, f := range w.firings(job) {
		if due[f.Due] || f.Run != "" && started[f.Run] {
			w.Fatalf("fired twice: %+v", f)
		}
		due[f.Due] = true
		if f.Run != "" {
			started[f.Run] = true
		}
	}
	w.same("due times", len(due), n)
	runs, err := w.Runs(w.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerCron}})
	w.ok(err)
	w.same("runs", len(runs), len(started))
}

// testConcurrentJobs: many jobs are due at once, and of what they start at
// most three may be under way.
func testConcurrentJobs(w *world) {
	const jobs, most = 8, 3
	var all []goclaw.CronJob
	for i := range jobs {
		all = append(all, w.put(w.job(fmt.Sprint("j", i), start)))
	}
	var fired atomic.Int64
	together(jobs, func(i int) {
		f := w.fire(all[i], fmt.Sprint("r", i))
		f.MaxActive = most
		_, _, err := w.FireCronJob(w.Context(), f)
		switch {
		case err == nil:
			fired.Add(1)
		case !errors.Is(err, goclaw.ErrBusy):
			w.Errorf("FireCronJob: %v", err)
		}
	})
	active, queued, err := w.Counts(w.Context())
	w.ok(err)
	if fired.Load() != most || active+queued != most {
		w.Fatalf("%d were fired, %d are under way; want %d", fired.Load(), active+queued, most)
	}
}

// testConcurrentQuiet: jobs of one session, a turn of its person among them:
// only one finds it quiet.
func testConcurrentQuiet(w *world) {
	const jobs = 7
	var all []goclaw.CronJob
	for i := range jobs {
		all = append(all, w.put(w.job(fmt.Sprint("j", i), start)))
	}
	var fired, spoke atomic.Int64
	together(jobs+1, func(i int) {
		if i == jobs {
			if _, _, err := w.Accept(w.Context(), w.turn("turn", "a")); err != nil {
				w.Errorf("Accept: %v", err)
			}
			spoke.Add(1)
			return
		}
		f := w.fire(all[i], fmt.Sprint("r", i))
		f.IfQuiet, f.Run.Run.Session = true, goclaw.MainKey("a")
		_, _, err := w.FireCronJob(w.Context(), f)
		switch {
		case err == nil:
			fired.Add(1)
		case !errors.Is(err, goclaw.ErrBusy):
			w.Errorf("FireCronJob: %v", err)
		}
	})
	if fired.Load() > 1 || spoke.Load() != 1 {
		w.Fatalf("%d found the session quiet, at most 1 can", fired.Load())
	}
	runs, err := w.Runs(w.Context(), goclaw.RunFilter{Session: goclaw.MainKey("a")})
	w.ok(err)
	// Whoever fired was there first.
	if len(runs) != int(fired.Load())+1 || fired.Load() == 1 && runs[1].Trigger != goclaw.TriggerCron {
		w.Fatalf("runs %v", ids(runs))
	}
}

func testConcurrentPut(w *world) {
	for round, last := range []int64{0, 1} {
		var put atomic.Int64
		together(8, func(i int) {
			j := w.job("j", start)
			j.Revision, j.Message = last, fmt.Sprint("by ", i)
			_, err := w.PutCronJob(w.Context(), j)
			switch {
			case err == nil:
				put.Add(1)
			case !errors.Is(err, goclaw.ErrChanged):
				w.Errorf("PutCronJob: %v", err)
			}
		})
		if put.Load() != 1 {
			w.Fatalf("%d changed the job, want 1", put.Load())
		}
		j, err := w.CronJob(w.Context(), "j")
		w.ok(err)
		w.same("revision", j.Revision, int64(round)+1)
	}
}

// testRaceFirePut: somebody changes a job while it fires. Either happens
// first, and the other is told.
func testRaceFirePut(w *world) {
	var j goclaw.CronJob
	var fired, put error
	races(rounds, func(i int) {
		j = w.put(w.job(fmt.Sprintf("j%02d", i), start))
	}, func(i int) {
		_, _, fired = w.FireCronJob(w.Context(), w.fire(j, fmt.Sprintf("r%02d", i)))
	}, func(int) {
		changed := j
		changed.Enabled = false
		_, put = w.PutCronJob(w.Context(), changed)
	}, func(int) {
		now, err := w.CronJob(w.Context(), j.ID)
		w.ok(err)
		switch {
		case fired == nil:
			w.fails("the change", put, goclaw.ErrChanged)
		default:
			w.ok(put)
			w.fails("the firing", fired, goclaw.ErrChanged)
		}
		if n := len(w.firings(j.ID)); (fired == nil) != (n == 1) || now.Enabled != (fired == nil) || now.Revision != 2 {
			w.Fatalf("%d firings of %+v; fired: %v, changed: %v", n, now, fired, put)
		}
	})
}

// testRaceFireRemove: a job is removed while it fires: it is gone, and fired or
// not.
func testRaceFireRemove(w *world) {
	var j goclaw.CronJob
	var fired, removed error
	races(rounds, func(i int) {
		j = w.put(w.job(fmt.Sprintf("j%02d", i), start))
	}, func(i int) {
		_, _, fired = w.FireCronJob(w.Context(), w.fire(j, fmt.Sprintf("r%02d", i)))
	}, func(int) {
		removed = w.RemoveCronJob(w.Context(), j.ID)
	}, func(int) {
		w.ok(removed)
		_, err := w.CronJob(w.Context(), j.ID)
		w.fails("the job after all", err, goclaw.ErrNotFound)
		if fired != nil {
			w.fails("the firing", fired, goclaw.ErrChanged)
		}
		if n := len(w.firings(j.ID)); (fired == nil) != (n == 1) {
			w.Fatalf("%d firings; fired: %v", n, fired)
		}
	})
}
