package cron_test

import (
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/runtime/cron"
)

// beating configures a heartbeat of the agent main.
func beating(change func(*cron.Heartbeat)) func(*cron.Options) {
	h := cron.Heartbeat{Agent: "main", Workspace: "/w", Every: 30 * time.Minute}
	if change != nil {
		change(&h)
	}
	return func(o *cron.Options) { o.Heartbeats = []cron.Heartbeat{h} }
}

func TestHeartbeat(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		s := w.service(beating(nil))
		w.sleep(61 * time.Minute)
		w.tells("heartbeat-main") // there is no file: nothing is called or recorded
		if w.read != 2 {
			t.Errorf("HEARTBEAT.md was looked at %d times in an hour", w.read)
		}
		w.set(func() { w.files["/w"] = "# Heartbeat\n<!-- nothing yet -->\n" })
		w.sleep(time.Hour)
		w.set(func() { w.files["/w"] = "broken" })
		w.sleep(time.Hour)
		w.tells("heartbeat-main")
		w.set(func() { w.files["/w"] = "- look at the mail" })
		w.sleep(30 * time.Minute)
		w.tells("heartbeat-main", "12600")
		run := w.accepted[0]
		if run.Session != goclaw.MainKey("main") || run.Trigger != goclaw.TriggerHeartbeat || !strings.Contains(run.Task, "HEARTBEAT_OK") {
			t.Errorf("%+v", run)
		}
		r, err := s.Show(w.Context(), "heartbeat-main")
		w.ok(err)
		if !r.Heartbeat || r.Last == nil || len(r.Upcoming) != 5 {
			t.Errorf("%+v", r)
		}
		w.refuses("agents.defaults.heartbeat", s.Remove(w.Context(), "heartbeat-main"))
		_, err = s.Pause(w.Context(), "heartbeat-main")
		w.refuses("agents.defaults.heartbeat", err)
		_, err = s.Add(w.Context(), goclaw.CronJob{Heartbeat: true})
		w.refuses("agents.defaults.heartbeat", err)
		_, err = s.RunNow(w.Context(), "heartbeat-main", "")
		w.ok(err)
	})
}

func (w *world) refuses(want string, err error) {
	w.Helper()
	if !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
		w.Errorf("%v; want %s", err, want)
	}
}

func TestHeartbeatKeepsItsHours(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes, w.files["/w"] = time.Second, "- look"
		w.service(beating(func(h *cron.Heartbeat) { h.Start, h.End, h.Every = "08:00", "10:00", time.Hour }))
		w.sleep(8 * time.Hour)
		w.tells("heartbeat-main", "28800") // at 08:00
		w.sleep(24 * time.Hour)
		w.tells("heartbeat-main", "28800", "32400", "115200")
	})
}

// While its session is busy it waits; it does not pile up, and the next one
// does not follow at once.
func TestHeartbeatWaitsForQuiet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.files["/w"] = "- look"
		_, _, err := w.store.Accept(w.Context(), goclaw.Acceptance{Run: goclaw.Run{
			ID: "turn", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, CreatedAt: goclaw.At(time.Now()),
		}})
		w.ok(err)
		s := w.service(beating(nil))
		w.sleep(119 * time.Minute)
		w.tells("heartbeat-main")
		w.end("turn", goclaw.StateCompleted)
		w.sleep(6 * time.Second)
		w.tells("heartbeat-main", "1800")
		r, err := s.Show(w.Context(), "heartbeat-main")
		w.ok(err)
		if next := r.Next.Time().Sub(w.began); next != 150*time.Minute {
			t.Errorf("the next is after %s", next)
		}
	})
}

func TestHeartbeatBacksOff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes, w.outcome, w.files["/w"] = time.Second, goclaw.StateFailed, "- look"
		w.service(beating(func(h *cron.Heartbeat) { h.Every = time.Minute }))
		w.sleep(10*time.Minute + 30*time.Second)
		w.tells("heartbeat-main", "60", "120", "240", "600")
	})
}

// The jobs follow the configuration from one start to the next.
func TestHeartbeatsFollowTheConfiguration(t *testing.T) {
	inWorld(t, func(w *world) {
		next := func() time.Duration {
			j, err := w.store.CronJob(w.Context(), "heartbeat-main")
			w.ok(err)
			return j.Next.Time().Sub(w.began)
		}
		w.service(beating(nil))
		w.sleep(10 * time.Minute)
		w.service(beating(nil)) // a restart does not postpone it
		w.sleep(time.Second)
		if next() != 30*time.Minute {
			t.Errorf("after a restart it is due after %s", next())
		}
		w.service(beating(func(h *cron.Heartbeat) { h.Prompt, h.Model = "look", "p/cheap" }))
		w.sleep(time.Second)
		if j, err := w.store.CronJob(w.Context(), "heartbeat-main"); err != nil || j.Message != "look" || j.Model != "p/cheap" || next() != 30*time.Minute {
			t.Errorf("%+v, %v", j, err)
		}
		w.service(beating(func(h *cron.Heartbeat) { h.Every = time.Hour }))
		w.sleep(time.Second)
		if next() != 70*time.Minute+2*time.Second {
			t.Errorf("with another step it is due after %s", next())
		}
		w.service(nil)
		w.sleep(time.Second)
		if jobs, err := w.store.CronJobs(w.Context()); err != nil || len(jobs) != 0 {
			t.Errorf("%+v, %v", jobs, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	w := &world{T: t}
	for want, change := range map[string]func(*cron.Options){
		"it needs a store":       func(o *cron.Options) { o.Store = nil },
		"heartbeats need":        func(o *cron.Options) { beating(nil)(o); o.Files = nil },
		"no time of day":         beating(func(h *cron.Heartbeat) { h.Start = "8" }),
		"every 1ms is too often": beating(func(h *cron.Heartbeat) { h.Every = time.Millisecond }),
	} {
		o := cron.Options{Store: &shaky{}, Runner: w, Files: w}
		change(&o)
		if _, err := cron.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
