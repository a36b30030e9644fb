package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

// fire fires a job as the clock does.
func fire(t *testing.T, r *rig, j goclaw.CronJob) goclaw.Run {
	t.Helper()
	store := r.store.(*memory.Store)
	now, err := store.CronJob(t.Context(), j.ID)
	if err != nil {
		if now, err = store.PutCronJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	a, err := r.engine.CronRun(t.Context(), now, now.Next)
	if err != nil {
		t.Fatal(err)
	}
	_, run, err := store.FireCronJob(t.Context(), goclaw.CronFire{
		Job: now, Run: &a, Enabled: true, Next: now.Next + 1000,
		Firing: goclaw.Firing{Job: now.ID, Due: now.Next, At: now.Next},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.engine.Accepted(run)
	return run
}

func job(id string, target goclaw.CronTarget, message string) goclaw.CronJob {
	return goclaw.CronJob{
		ID: id, Name: "the " + id, Agent: "main", Target: target, Session: goclaw.MainKey("main"), Message: message,
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 1000, Anchor: 1}, Missed: goclaw.MissedOnce,
		Enabled: true, Next: 1000, CreatedAt: 1, UpdatedAt: 1,
	}
}

// An isolated firing sees neither private files nor the firings before it, and
// its result is told to the session that the job names, once.
func TestCronIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if strings.HasPrefix(q.Messages[0].PlainText(), "[Cron Context]") {
				if strings.Contains(lastText(q), "quiet") {
					return text("NO_REPLY")
				}
				return text("42 mails")
			}
			return text("told: " + lastText(q))
		}})
		defer r.start(t.Context())()
		mails := job("mails", goclaw.TargetIsolated, "count the mails")
		mails.Budget.Seconds = 30
		for range 2 {
			fire(t, r, mails)
			r.settle()
		}
		fire(t, r, job("hush", goclaw.TargetIsolated, "be quiet"))
		runs := r.settle()
		told := 0
		for _, run := range runs {
			switch {
			case run.Trigger == goclaw.TriggerAnnouncement:
				told += strings.Count(run.Result, "[Cron: the mails] Complete.")
				if strings.Contains(run.Result, "the hush") {
					t.Errorf("silence was told: %q", run.Result)
				}
			case run.Session == mails.Key():
				if run.State != goclaw.StateCompleted || run.Result != "42 mails" || run.Profile.TimeoutMs != 30_000 || !run.Profile.Strict {
					t.Errorf("the firing is %s: %q; %+v", run.State, run.Result, run.Profile)
				}
			}
		}
		if told != 2 {
			t.Errorf("the result was told %d times, want twice", told)
		}
		for _, q := range r.asked(false) {
			if first := q.Messages[0].PlainText(); strings.HasPrefix(first, "[Cron Context]") {
				if len(q.Messages) != 1 || strings.Contains(first, "42") {
					t.Errorf("a firing is shown %d messages", len(q.Messages))
				}
				for _, b := range q.System {
					if strings.Contains(b.Text, "content of USER.md") {
						t.Error("a firing is shown USER.md")
					}
				}
			}
		}
	})
}

// A firing in a chat is a turn of it; a heartbeat that finds nothing is silent.
func TestCronInAChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if strings.Contains(lastText(q), "look around") {
				return text("All quiet. HEARTBEAT_OK")
			}
			return text("said: " + lastText(q))
		}})
		defer r.start(t.Context())()
		r.say("hello")
		r.settle()
		turn := job("tea", goclaw.TargetMain, "tea time")
		turn.Model = "fake/small"
		fire(t, r, turn)
		beat := job("heartbeat-main", goclaw.TargetMain, "look around")
		beat.Heartbeat = true
		fire(t, r, beat)
		runs := r.settle()
		if len(runs) != 3 {
			t.Fatalf("%d runs", len(runs))
		}
		if tea := runs[1]; tea.Trigger != goclaw.TriggerCron || tea.Session != goclaw.MainKey("main") ||
			!strings.Contains(tea.Result, "[Cron: the tea] tea time") || tea.Profile.Model != "fake/small" {
			t.Errorf("the turn: %s %s: %q by %s", tea.Trigger, tea.Session, tea.Result, tea.Profile.Model)
		}
		if b := runs[2]; b.Trigger != goclaw.TriggerHeartbeat || b.Result != goclaw.NoReply {
			t.Errorf("the heartbeat: %s, %q", b.Trigger, b.Result)
		}
		asked := r.asked(false)
		if last := asked[len(asked)-1]; len(last.Messages) < 5 || !slices.Equal(last.Tools[0].Schema, asked[0].Tools[0].Schema) {
			t.Errorf("the heartbeat sees %d messages", len(last.Messages))
		}
	})
}

func TestCronRefuses(t *testing.T) {
	r := newRig(t, rigOptions{})
	for want, change := range map[string]func(*goclaw.CronJob){
		"worker's session": func(j *goclaw.CronJob) { j.Session = goclaw.SubagentKey("main", "x") },
		"unknown model":    func(j *goclaw.CronJob) { j.Model = "gone" },
		`no agent "other"`: func(j *goclaw.CronJob) { j.Agent, j.Session = "other", goclaw.SessionKey{} },
		"nobody":           func(j *goclaw.CronJob) { j.Target, j.Definition = goclaw.TargetIsolated, "nobody" },
		"task is empty":    func(j *goclaw.CronJob) { j.Target, j.Message = goclaw.TargetIsolated, "" },
	} {
		j := job("x", goclaw.TargetMain, "go")
		change(&j)
		if _, err := r.engine.CronRun(t.Context(), j, 0); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
