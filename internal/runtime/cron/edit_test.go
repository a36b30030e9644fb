package cron_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/runtime/cron"
)

func said[T any](v T) *T { return &v }

// edit says of a job what it needs besides its schedule.
func edit(change func(*goclaw.CronEdit)) goclaw.CronEdit {
	e := goclaw.CronEdit{Name: said("Tea"), Message: said("Make tea.")}
	change(&e)
	return e
}

// Each way to say when, and when the job is due then. It is 2000-01-01 01:00 in
// Berlin.
func TestEditSaysWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*goclaw.CronEdit)
		next   string // in UTC
		kind   goclaw.ScheduleKind
	}{
		"from now":                  {func(e *goclaw.CronEdit) { e.At = said("20m") }, "2000-01-01 00:20", goclaw.ScheduleAt},
		"a local time":              {func(e *goclaw.CronEdit) { e.At = said("2000-03-01 09:00") }, "2000-03-01 08:00", goclaw.ScheduleAt},
		"a local time elsewhere":    {func(e *goclaw.CronEdit) { e.At, e.Timezone = said("2000-03-01 09:00"), said("America/New_York") }, "2000-03-01 14:00", goclaw.ScheduleAt},
		"an instant":                {func(e *goclaw.CronEdit) { e.At = said("2000-03-01T09:00:00+02:00") }, "2000-03-01 07:00", goclaw.ScheduleAt},
		"steps":                     {func(e *goclaw.CronEdit) { e.Every = said("1h30m") }, "2000-01-01 01:30", goclaw.ScheduleEvery},
		"an expression":             {func(e *goclaw.CronEdit) { e.Cron = said("0 9 * * *") }, "2000-01-01 08:00", goclaw.ScheduleCron},
		"an expression elsewhere":   {func(e *goclaw.CronEdit) { e.Cron, e.Timezone = said("0 9 * * *"), said("America/New_York") }, "2000-01-01 14:00", goclaw.ScheduleCron},
		"a whole schedule":          {func(e *goclaw.CronEdit) { e.Schedule = &goclaw.Schedule{Kind: "cron", Expr: "0 9 * * *", Zone: "UTC"} }, "2000-01-01 09:00", goclaw.ScheduleCron},
		"a whole schedule of steps": {func(e *goclaw.CronEdit) { e.Schedule = &goclaw.Schedule{Kind: "every", EveryMs: 60_000} }, "2000-01-01 00:01", goclaw.ScheduleEvery},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r, err := w.berlin().AddEdit(w.Context(), edit(c.change), "")
				w.ok(err)
				if got := r.Next.Time().UTC().Format("2006-01-02 15:04"); got != c.next || r.Schedule.Kind != c.kind {
					t.Errorf("%s, next %s; want %s, %s", r.Schedule.Kind, got, c.kind, c.next)
				}
			})
		})
	}
}

// berlin is a service of a person in Berlin.
func (w *world) berlin() *cron.Service {
	w.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	w.ok(err)
	return w.service(func(o *cron.Options) { o.Zone, o.Agents = zone, []string{"main", "coder"} })
}

func TestEditRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.berlin()
		whole := &goclaw.Schedule{Kind: "every", EveryMs: 60_000}
		for want, change := range map[string]func(*goclaw.CronEdit){
			"say when in one way":            func(e *goclaw.CronEdit) { e.At, e.Every = said("20m"), said("1h") },
			"say when in one way: schedule":  func(e *goclaw.CronEdit) { e.Cron, e.Schedule = said("@daily"), whole },
			"timezone is part of schedule":   func(e *goclaw.CronEdit) { e.Schedule, e.Timezone = whole, said("UTC") },
			"say when: by at, every or cron": func(e *goclaw.CronEdit) { e.Timezone = said("UTC") },

			`there is no time zone "Mars"`:  func(e *goclaw.CronEdit) { e.At, e.Timezone = said("2000-03-01 09:00"), said("Mars") },
			`there is no time zone "Venus"`: func(e *goclaw.CronEdit) { e.Cron, e.Timezone = said("@daily"), said("Venus") },
			`"soon" is no time`:             func(e *goclaw.CronEdit) { e.At = said("soon") },
			"equal steps count elapsed":     func(e *goclaw.CronEdit) { e.Every, e.Timezone = said("1h"), said("UTC") },
			`"often" is no length of time`:  func(e *goclaw.CronEdit) { e.Every = said("often") },
			"25":                            func(e *goclaw.CronEdit) { e.Cron = said("0 25 * * *") },
			`there is no agent "nobody"`:    func(e *goclaw.CronEdit) { e.Every, e.Agent = said("1h"), said("nobody") },
			"the job needs a message":       func(e *goclaw.CronEdit) { e.Every, e.Message = said("1h"), nil },
			"the session agent:main:main is not one": func(e *goclaw.CronEdit) {
				e.Every, e.Agent, e.Session = said("1h"), said("coder"), said(goclaw.MainKey("main"))
			},
		} {
			if _, err := s.AddEdit(w.Context(), edit(change), "once"); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
			}
		}
		if all, err := s.List(w.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v %v", all, err)
		}
	})
}

// A change leaves what it doesn't name as it is.
func TestChangeLeavesTheRest(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.berlin()
		r, err := s.AddEdit(w.Context(), edit(func(e *goclaw.CronEdit) {
			e.Agent, e.Cron, e.Timezone, e.Model, e.Thinking, e.TimeoutSeconds = said("coder"), said("0 9 * * *"), said("UTC"), said("fast"), said("low"), said(9)
			e.Budget, e.Missed, e.Definition = &goclaw.Limits{Steps: 3}, said(goclaw.MissedSkip), said("maker")
		}), "")
		w.ok(err)
		if r.Session != goclaw.MainKey("coder") || !r.Enabled {
			t.Errorf("%+v", r)
		}
		want := r.CronJob
		for _, step := range []struct {
			edit   goclaw.CronEdit
			expect func(*goclaw.CronJob)
		}{
			{goclaw.CronEdit{}, func(*goclaw.CronJob) {}},
			{goclaw.CronEdit{Name: said("Coffee")}, func(j *goclaw.CronJob) { j.Name = "Coffee" }},
			{goclaw.CronEdit{Timezone: said("Europe/Berlin")}, func(j *goclaw.CronJob) {
				j.Schedule.Zone, j.Next = "Europe/Berlin", goclaw.At(w.began.Add(8*time.Hour))
			}},
			{goclaw.CronEdit{Session: said(goclaw.SessionKey{}), Model: said("")}, func(j *goclaw.CronJob) { j.Session, j.Model = goclaw.SessionKey{}, "" }},
			{goclaw.CronEdit{Enabled: said(false)}, func(j *goclaw.CronJob) { j.Enabled, j.Next = false, 0 }},
			{goclaw.CronEdit{Every: said("1h")}, func(j *goclaw.CronJob) {
				j.Schedule = goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 3_600_000, Anchor: goclaw.At(w.began)}
			}},
		} {
			changed, err := s.ChangeEdit(w.Context(), r.ID, step.edit)
			w.ok(err)
			step.expect(&want)
			got := changed.CronJob
			got.Revision, want.Revision = 0, 0
			got.UpdatedAt = want.UpdatedAt
			got.TimeoutSeconds, want.TimeoutSeconds = nil, nil
			if got != want || changed.TimeoutSeconds == nil || *changed.TimeoutSeconds != 9 {
				t.Errorf("after %+v:\n%+v; want\n%+v", step.edit, got, want)
			}
		}
		if _, err := s.ChangeEdit(w.Context(), r.ID, goclaw.CronEdit{Agent: said("main")}); !goclaw.IsBadRequest(err) {
			t.Errorf("another agent: %v", err)
		}
		if _, err := s.ChangeEdit(w.Context(), r.ID, goclaw.CronEdit{Timezone: said("UTC")}); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "timezone is for cron expressions") {
			t.Errorf("the zone of steps: %v", err)
		}
	})
}

// Under one key one job is added, also by several at a time; under another,
// another.
func TestAddOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		services := []*cron.Service{w.berlin(), w.berlin()}
		e := edit(func(e *goclaw.CronEdit) { e.Every = said("1h") })
		var mu sync.Mutex
		ids := map[string]int{}
		var adding sync.WaitGroup
		for i := range 20 {
			adding.Go(func() {
				r, err := services[i%2].AddEdit(w.Context(), e, "call")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				ids[r.ID]++
			})
		}
		adding.Wait()
		if len(ids) != 1 {
			t.Errorf("one key added %v", ids)
		}
		w.sleep(30 * time.Minute)
		again, err := services[0].AddEdit(w.Context(), e, "call")
		w.ok(err)
		if again.Revision != 1 || !strings.HasPrefix(again.ID, "tea-") {
			t.Errorf("%+v", again)
		}
		for _, once := range []string{"another call", ""} {
			_, err := services[0].AddEdit(w.Context(), e, once)
			w.ok(err)
		}
		for what, change := range map[string]func(*goclaw.CronEdit){
			"another message": func(e *goclaw.CronEdit) { e.Message = said("other") },
			"another name":    func(e *goclaw.CronEdit) { e.Name = said("Coffee") },
		} {
			other := edit(func(e *goclaw.CronEdit) { e.Every = said("1h"); change(e) })
			if _, err := services[1].AddEdit(w.Context(), other, "call"); !errors.Is(err, goclaw.ErrReused) {
				t.Errorf("%s under the same key: %v", what, err)
			}
		}
		// A change of the job is not another request.
		_, err = services[0].ChangeEdit(w.Context(), again.ID, goclaw.CronEdit{Message: said("changed")})
		w.ok(err)
		if r, err := services[1].AddEdit(w.Context(), e, "call"); err != nil || r.ID != again.ID || r.Message != "changed" {
			t.Errorf("%+v, %v", r, err)
		}
		if all, err := services[1].List(w.Context()); err != nil || len(all) != 3 {
			t.Errorf("%d jobs, %v", len(all), err)
		}
	})
}
