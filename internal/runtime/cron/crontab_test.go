package cron_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/runtime/cron"
)

func TestAdd(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(func(o *cron.Options) { o.Agents = []string{"main", "coder"} })
		for _, c := range []struct{ name, id string }{
			{"Morgen: die Läufe!", "morgen-die-l-ufe"}, {"Morgen, die Läufe", "morgen-die-l-ufe-2"}, {"週報", "job"}, {"heartbeat-x", "job-heartbeat-x"},
		} {
			if r := w.add(s, func(j *goclaw.CronJob) { j.Name = c.name }); r.ID != c.id {
				t.Errorf("%q has the id %s; want %s", c.name, r.ID, c.id)
			}
		}
		r := w.add(s, func(j *goclaw.CronJob) { j.ID, j.Target = "mine", goclaw.TargetMain })
		if r.ID != "mine" || r.Session != goclaw.MainKey("main") || r.Missed != goclaw.MissedOnce || !r.Enabled || r.Schedule.Anchor == 0 || r.Agent != "main" {
			t.Errorf("%+v", r)
		}
		// A removed job's history is not another's.
		_, err := s.RunNow(w.Context(), "job", "")
		w.ok(err)
		w.ok(s.Remove(w.Context(), "job"))
		if r := w.add(s, func(j *goclaw.CronJob) { j.Name = "*" }); r.ID != "job-2" {
			t.Errorf("the id is %s", r.ID)
		}
		if h, err := s.History(w.Context(), "job", 0); err != nil || len(h) != 1 {
			t.Errorf("history of a removed job: %+v, %v", h, err)
		}
		seconds, aeon := -1, 1<<40
		for want, change := range map[string]func(*goclaw.CronJob){
			"the id mine is taken":                    func(j *goclaw.CronJob) { j.ID = "mine" },
			"use a-z, 0-9 and -":                      func(j *goclaw.CronJob) { j.ID = "No" },
			"begins those of heartbeats":              func(j *goclaw.CronJob) { j.ID = "heartbeat-main" },
			"needs a name":                            func(j *goclaw.CronJob) { j.Name = " " },
			"a job's name is one line":                func(j *goclaw.CronJob) { j.Name = "a\nb" },
			"needs a message":                         func(j *goclaw.CronJob) { j.Message = "" },
			"message is UTF-8 of at most 64 KB":       func(j *goclaw.CronJob) { j.Message = strings.Repeat("x", 1<<17) },
			`there is no agent "x"; there are: main`:  func(j *goclaw.CronJob) { j.Agent = "x" },
			`missed is "all"; write once or skip`:     func(j *goclaw.CronJob) { j.Missed = "all" },
			`thinking is "hard"; write off`:           func(j *goclaw.CronJob) { j.Thinking = "hard" },
			"can't be negative; 0 sets none":          func(j *goclaw.CronJob) { j.Budget.Steps = -1 },
			"timeoutSeconds can't be negative":        func(j *goclaw.CronJob) { j.TimeoutSeconds = &seconds },
			"a run takes at most a year":              func(j *goclaw.CronJob) { j.TimeoutSeconds = &aeon },
			"a run takes at most a year, 31622400":    func(j *goclaw.CronJob) { j.Budget.Seconds = 1 << 60 },
			`target is "x"; write main or isolated`:   func(j *goclaw.CronJob) { j.Target = "x" },
			"takes no definition":                     func(j *goclaw.CronJob) { j.Target, j.Definition = "main", "d" },
			"is a worker's":                           func(j *goclaw.CronJob) { j.Session = goclaw.CronKey("main", "x") },
			"is not one of the agent main":            func(j *goclaw.CronJob) { j.Session = goclaw.MainKey("coder") },
			`there is no time zone "Mars"`:            func(j *goclaw.CronJob) { j.Schedule.Zone = "Mars" },
			`there is no time zone "Local"`:           func(j *goclaw.CronJob) { j.Schedule.Zone = "Local" },
			"every 5ms is too often":                  func(j *goclaw.CronJob) { j.Schedule.EveryMs = 5 },
			"a schedule of the kind cron has no ever": func(j *goclaw.CronJob) { j.Schedule.Kind, j.Schedule.Expr = "cron", "@daily" },
			"is never due":                            func(j *goclaw.CronJob) { j.Schedule = goclaw.Schedule{Kind: "cron", Expr: "0 0 31 2 *"} },
		} {
			j := goclaw.CronJob{Name: "x", Message: "m", Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 60_000}}
			change(&j)
			_, err := s.Add(w.Context(), j)
			w.refuses(want, err)
		}
		// Also of a job that is not to fire yet.
		_, err = s.AddEdit(w.Context(), goclaw.CronEdit{Name: said("x"), Message: said("m"), Cron: said("0 0 31 2 *"), Enabled: said(false)}, "")
		w.refuses("is never due", err)
		w.set(func() { w.cantRun = goclaw.BadRequest("there is no definition x") })
		_, err = s.Add(w.Context(), goclaw.CronJob{Name: "x", Message: "m", Schedule: goclaw.Schedule{Kind: "cron", Expr: "@daily"}})
		w.refuses("there is no definition x", err)
	})
}

func TestChange(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.service(nil)
		r := w.add(s, nil)
		w.sleep(10 * time.Second)
		patch := func(text string) (goclaw.CronReport, error) {
			return s.Change(w.Context(), r.ID, func(j *goclaw.CronJob) error { return json.Unmarshal([]byte(text), j) })
		}
		due := func(r goclaw.CronReport) time.Duration { return r.Next.Time().Sub(w.began) }
		for _, c := range []struct {
			patch string
			due   time.Duration
		}{
			{`{"name": "Mail"}`, time.Minute}, {`{"schedule": {"everyMs": 120000}}`, 130 * time.Second},
			{`{"schedule": {"kind": "cron", "expr": "0 9 * * *"}}`, 9 * time.Hour}, {`{"schedule": {"timezone": "Europe/Berlin"}}`, 8 * time.Hour},
			{`{"schedule": {"kind": "at", "at": 946688400000}}`, time.Hour},
			{`{"revision": 99, "nextAt": 5, "message": "m"}`, time.Hour},
		} {
			got, err := patch(c.patch)
			w.ok(err)
			if due(got) != c.due {
				t.Errorf("after %s it is due after %s; want %s", c.patch, due(got), c.due)
			}
		}
		for _, text := range []string{`{"id": "x"}`, `{"agentId": "x"}`, `{"heartbeat": true}`, `{"message": ""}`, `{"schedule": {"expr": "0 9 * * *"}}`} {
			if _, err := patch(text); !goclaw.IsBadRequest(err) {
				t.Errorf("%s: %v", text, err)
			}
		}
		// Whatever is wrong with it, it can be paused; what is wrong is said when
		// it is to go on.
		w.set(func() { w.cantRun = goclaw.BadRequest("no such definition") })
		got, err := s.Pause(w.Context(), r.ID)
		w.ok(err)
		if got.Enabled || got.Next != 0 || got.Upcoming != nil {
			t.Errorf("%+v", got)
		}
		_, err = s.Resume(w.Context(), r.ID)
		w.refuses("no such definition", err)
		w.set(func() { w.cantRun = nil })
		w.sleep(3 * time.Hour)
		w.tells(r.ID)
		got, err = patch(`{"enabled": true, "schedule": {"at": 946717200000}}`)
		w.ok(err)
		if due(got) != 9*time.Hour {
			t.Errorf("it is due after %s", due(got))
		}
		if all, err := s.List(w.Context()); err != nil || len(all) != 1 || all[0].Name != "Mail" {
			t.Errorf("%+v, %v", all, err)
		}
		w.ok(s.Remove(w.Context(), r.ID))
		for what, err := range map[string]error{
			"remove": s.Remove(w.Context(), r.ID),
			"show":   second(s.Show(w.Context(), r.ID)), "pause": second(s.Pause(w.Context(), r.ID)),
			"run": second(s.RunNow(w.Context(), r.ID, "")), "history": second(s.History(w.Context(), r.ID, 0)),
		} {
			if !errors.Is(err, goclaw.ErrNotFound) {
				t.Errorf("%s of a removed job: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
