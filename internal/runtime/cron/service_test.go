package cron_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/runtime/cron"
)

func TestFiresWhenDue(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		s := w.service(nil)
		r := w.add(s, nil)
		if r.ID != "look-at-mail" || fmt.Sprint(r.Upcoming) != fmt.Sprint([]int64{946684860000, 946684920000, 946684980000, 946685040000, 946685100000}) {
			t.Errorf("%+v", r)
		}
		w.sleep(3*time.Minute + 2*time.Second)
		w.tells(r.ID, "60", "120", "180")
		for i, run := range w.accepted {
			if late := run.CreatedAt.Time().Sub(w.began) - time.Duration(i+1)*time.Minute; late != 0 {
				t.Errorf("the run %d was made %s late", i, late)
			}
		}
		r, err := s.Show(w.Context(), r.ID)
		w.ok(err)
		if r.Last == nil || r.Last.State != goclaw.StateCompleted || r.Running != "" || r.Failures != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A job that is added while the service sleeps is not late.
func TestWakes(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(func(o *cron.Options) { o.Poll = time.Hour })
		w.sleep(time.Minute)
		r := w.add(s, func(j *goclaw.CronJob) {
			j.Schedule = goclaw.Schedule{Kind: goclaw.ScheduleAt, At: goclaw.At(time.Now().Add(10 * time.Second))}
		})
		w.sleep(11 * time.Second)
		w.tells(r.ID, "70")
		job, err := w.store.CronJob(w.Context(), r.ID)
		w.ok(err)
		if job.Enabled || job.Next != 0 {
			t.Errorf("a job that was due once goes on: %+v", job)
		}
		if _, err := s.Resume(w.Context(), r.ID); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "has passed") {
			t.Errorf("resume: %v", err)
		}
	})
}

func TestDoesNotOverlapItself(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(nil)
		r := w.add(s, nil)
		w.sleep(3*time.Minute + time.Second)
		w.tells(r.ID, "60", "120 the run before has not ended", "180 the run before has not ended")
		if _, err := s.RunNow(w.Context(), r.ID, ""); !goclaw.IsBadRequest(err) {
			t.Errorf("a second run by hand: %v", err)
		}
		w.end(w.accepted[0].ID, goclaw.StateCompleted)
		w.sleep(time.Minute)
		w.tells(r.ID, "60", "120 the run before has not ended", "180 the run before has not ended", "240")
	})
}

func TestMakesUpForMissed(t *testing.T) {
	for missed, want := range map[goclaw.MissedPolicy][]string{
		goclaw.MissedOnce: {"60+8", "600"},
		goclaw.MissedSkip: {"60+7 8 due times were missed: nothing could run then", "540", "600"},
	} {
		inWorld(t, func(w *world) {
			w.takes = time.Second
			s := w.service(func(o *cron.Options) { o.Enabled = false })
			r := w.add(s, func(j *goclaw.CronJob) { j.Missed = missed })
			w.sleep(9*time.Minute + 10*time.Second)
			w.tells(r.ID)
			w.service(nil)
			w.sleep(time.Minute)
			w.tells(r.ID, want...)
		})
	}
}

// failing fails to read firings for a while.
type failing struct {
	cron.Store
	until time.Time
}

func (f failing) Firings(ctx context.Context, job string, limit int) ([]goclaw.Firing, error) {
	if time.Now().Before(f.until) {
		return nil, errShaky
	}
	return f.Store.Firings(ctx, job, limit)
}

// What was missed stays so while the store fails.
func TestMissedWhileTheStoreFails(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(func(o *cron.Options) { o.Enabled = false })
		r := w.add(s, func(j *goclaw.CronJob) { j.Missed, j.Schedule.EveryMs = goclaw.MissedSkip, 3_600_000 })
		w.sleep(90 * time.Minute)
		w.service(func(o *cron.Options) { o.Store = failing{w.store, time.Now().Add(time.Minute)} })
		w.sleep(2 * time.Minute)
		w.tells(r.ID, "3600 missed: nothing could run then")
	})
}

func TestBacksOff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes, w.outcome = time.Second, goclaw.StateFailed
		s := w.service(nil)
		r := w.add(s, nil)
		w.sleep(11*time.Minute + 30*time.Second)
		// 30 s after the first failure, 1 m after the second, 5 m after the third,
		// 15 m after the fourth.
		w.tells(r.ID, "60", "120", "180 it failed 2 times in a row; it goes on at 2000-01-01 00:03:01 UTC", "240",
			"300+4 it failed 3 times in a row; it goes on at 2000-01-01 00:09:01 UTC", "600",
			"660+14 it failed 4 times in a row; it goes on at 2000-01-01 00:25:01 UTC")
		r, err := s.Show(w.Context(), r.ID)
		w.ok(err)
		if r.Failures != 4 || r.Last.Skipped == "" || r.LastError != "told to" {
			t.Errorf("%+v", r)
		}
		// Whoever mends it does not wait.
		w.set(func() { w.outcome = goclaw.StateCompleted })
		_, err = s.RunNow(w.Context(), r.ID, "")
		w.ok(err)
		w.sleep(2 * time.Second)
		if r, err = s.Show(w.Context(), r.ID); err != nil || r.Failures != 0 || r.LastError != "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestCantRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		s := w.service(nil)
		r := w.add(s, nil)
		w.set(func() { w.cantRun = goclaw.BadRequest("there is no definition x") })
		w.sleep(61 * time.Second)
		w.tells(r.ID, "60 can't run: there is no definition x")
		if _, err := s.RunNow(w.Context(), r.ID, ""); !goclaw.IsBadRequest(err) {
			t.Errorf("by hand: %v", err)
		}
		w.set(func() { w.cantRun = errShaky })
		w.sleep(70 * time.Second)
		w.tells(r.ID, "60 can't run: there is no definition x")
		w.set(func() { w.cantRun = nil })
		w.sleep(5 * time.Second)
		w.tells(r.ID, "60 can't run: there is no definition x", "120")
	})
}

func TestMainJobsWaitForQuiet(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(func(o *cron.Options) { o.MaxActive = 5 })
		_, _, err := w.store.Accept(w.Context(), goclaw.Acceptance{Run: goclaw.Run{
			ID: "turn", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, CreatedAt: goclaw.At(time.Now()),
		}})
		w.ok(err)
		r := w.add(s, func(j *goclaw.CronJob) { j.Target, j.Missed = goclaw.TargetMain, goclaw.MissedSkip })
		w.sleep(5 * time.Minute)
		w.tells(r.ID)
		w.end("turn", goclaw.StateCompleted)
		w.sleep(6 * time.Second)
		w.tells(r.ID, "60+4")
	})
}

func TestMaxActive(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(func(o *cron.Options) { o.MaxActive = 1 })
		once := func(name string) string {
			return w.add(s, func(j *goclaw.CronJob) {
				j.Name, j.Schedule = name, goclaw.Schedule{Kind: goclaw.ScheduleAt, At: goclaw.At(time.Now().Add(time.Minute))}
			}).ID
		}
		a, b := once("a"), once("b")
		w.sleep(2 * time.Minute)
		w.tells(a, "60")
		w.tells(b)
		w.end(w.accepted[0].ID, goclaw.StateCompleted)
		w.sleep(6 * time.Second)
		w.tells(b, "60")
	})
}

func TestRunNow(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(nil)
		r := w.add(s, nil)
		first, err := s.RunNow(w.Context(), r.ID, "k")
		w.ok(err)
		second, err := s.RunNow(w.Context(), r.ID, "k")
		w.ok(err)
		if first.ID != second.ID {
			t.Errorf("the same key started %s and %s", first.ID, second.ID)
		}
		w.tells(r.ID, "by hand")
		w.end(first.ID, goclaw.StateFailed)
		third, err := s.RunNow(w.Context(), r.ID, "l")
		w.ok(err)
		if third.ID == first.ID {
			t.Error("another key started nothing")
		}
		job, err := w.store.CronJob(w.Context(), r.ID)
		w.ok(err)
		if job.Next != r.Next || !job.Enabled {
			t.Errorf("a run by hand moved the job: %+v", job)
		}
	})
}

// Several gateways, whose store fails now and then and some of whose clocks are
// put back and forth, decide about each due time once.
func TestEachDueTimeOnce(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(w *world) {
			var step atomic.Int64
			gateway := func(n uint64, wild bool) *cron.Service {
				return w.service(func(o *cron.Options) {
					o.Store = &shaky{Store: w.store, rand: rand.New(rand.NewPCG(seed, n))}
					o.Retry = 700 * time.Millisecond
					if wild {
						o.Now = func() time.Time { return time.Now().Add(time.Duration(step.Load())) }
					}
				})
			}
			s := gateway(1, false)
			gateway(2, true)
			gateway(3, false)
			var r goclaw.CronReport
			for r.ID == "" {
				var err error
				r, err = s.Add(w.Context(), goclaw.CronJob{ID: "j", Name: "j", Message: "m", Schedule: goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: "*/10 * * * * *"}})
				if err != nil {
					r, err = s.Show(w.Context(), "j")
				}
				if err != nil && !errors.Is(err, errShaky) && !errors.Is(err, goclaw.ErrNotFound) {
					t.Fatal(err)
				}
			}
			random := rand.New(rand.NewPCG(seed, 9))
			for range 60 {
				step.Store(random.Int64N(int64(2*time.Minute)) - int64(time.Minute))
				w.sleep(5 * time.Second)
				w.endAll() // also what nobody was told of: its gateway died at that moment
			}
			step.Store(0)
			w.sleep(2 * time.Minute)
			decided, ran, runs := map[goclaw.Millis]bool{}, 0, map[string]bool{}
			firings, err := w.store.Firings(w.Context(), "j", 0)
			w.ok(err)
			covered := 0
			for _, f := range firings {
				if decided[f.Due] {
					t.Errorf("seed %d: %s was decided twice", seed, f.Due.Time())
				}
				decided[f.Due] = true
				covered += 1 + f.Missed
				if f.Run != "" {
					ran++
					runs[f.Run] = true
				}
			}
			if len(runs) != ran {
				t.Errorf("seed %d: %d firings made %d runs", seed, ran, len(runs))
			}
			all, err := w.store.Runs(w.Context(), goclaw.RunFilter{})
			w.ok(err)
			if len(all) != ran {
				t.Errorf("seed %d: %d runs for %d firings", seed, len(all), ran)
			}
			// From the first to the next due time, each is decided or made up for.
			job, err := w.store.CronJob(w.Context(), "j")
			w.ok(err)
			first := firings[len(firings)-1].Due
			if want := int(job.Next-first) / 10_000; covered != want || want < 30 || ran < 10 {
				t.Errorf("seed %d: %d due times of %d are on record, %d ran", seed, covered, want, ran)
			}
		})
	}
}

// A job that someone put back to a due time that was decided about goes on.
func TestPutBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		s := w.service(nil)
		r := w.add(s, nil)
		w.sleep(61 * time.Second)
		job, err := w.store.CronJob(w.Context(), r.ID)
		w.ok(err)
		job.Next = goclaw.At(w.began.Add(time.Minute))
		_, err = w.store.PutCronJob(w.Context(), job)
		w.ok(err)
		w.sleep(time.Minute)
		w.tells(r.ID, "60", "120")
	})
}

// A zone that this program does not know stops the job, visibly.
func TestBrokenSchedule(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(nil)
		_, err := w.store.PutCronJob(w.Context(), goclaw.CronJob{
			ID: "j", Name: "j", Agent: "main", Message: "m", Target: goclaw.TargetIsolated, Enabled: true, Next: goclaw.At(time.Now()),
			Schedule: goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: "* * * * *", Zone: "Mars/Base"},
		})
		w.ok(err)
		w.sleep(6 * time.Second)
		w.tells("j", `0 can't run: there is no time zone "Mars/Base"; write a name such as Europe/Berlin, or leave it out for the person's`)
		r, err := s.Show(w.Context(), "j")
		w.ok(err)
		if r.Enabled || r.Failures != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// Old firings go, those that are under way stay, and those of removed jobs are
// trimmed as well.
func TestTrims(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		s := w.service(func(o *cron.Options) { o.Keep = 20 })
		often := w.add(s, func(j *goclaw.CronJob) { j.Schedule.EveryMs = 10_000 })
		w.sleep(59*time.Minute + 30*time.Second)
		if n := len(w.told(often.ID)); n != 357 {
			t.Errorf("%d firings within the hour", n)
		}
		w.ok(s.Remove(w.Context(), often.ID))
		w.sleep(time.Minute)
		if all := w.told(often.ID); len(all) != 20 || all[0] != "3380" || all[19] != "3570" {
			t.Errorf("after an hour there are %v", all)
		}
	})
}

// The clock goes on by hours at once, as when a laptop wakes up, and is put back
// by hours: each job makes up for the night once, a heartbeat beats once, and
// nothing is repeated.
func TestClockJumps(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes, w.files["/w"] = time.Second, "- look"
		var ahead atomic.Int64
		s := w.service(func(o *cron.Options) {
			beating(nil)(o)
			o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		})
		often := w.add(s, func(j *goclaw.CronJob) { j.Name, j.Schedule.EveryMs = "often", 600_000 })
		strict := w.add(s, func(j *goclaw.CronJob) {
			j.Name, j.Missed, j.Schedule.EveryMs = "strict", goclaw.MissedSkip, 3_600_000
		})
		once := w.add(s, func(j *goclaw.CronJob) {
			j.Name, j.Schedule = "once", goclaw.Schedule{Kind: goclaw.ScheduleAt, At: goclaw.At(w.began.Add(3 * time.Hour))}
		})
		w.sleep(65 * time.Minute)
		ahead.Store(int64(8 * time.Hour)) // 09:05
		w.sleep(time.Minute)
		ran := []string{"600", "1200", "1800", "2400", "3000", "3600"}
		w.tells(often.ID, append(ran, "4200+47")...)
		w.tells(strict.ID, "3600", "7200+6 7 due times were missed: nothing could run then", "32400")
		w.tells(once.ID, "10800")
		w.tells("heartbeat-main", "1800", "3600", "5400")
		ahead.Store(0) // 01:06
		w.sleep(8 * time.Hour)
		w.tells(often.ID, append(ran, "4200+47")...)
		w.tells(once.ID, "10800")
		w.sleep(5 * time.Minute) // 09:11
		w.tells(often.ID, append(ran, "4200+47", "33000")...)
		w.sleep(50 * time.Minute) // 10:01
		w.tells("heartbeat-main", "1800", "3600", "5400", "34200", "36000")
	})
}
