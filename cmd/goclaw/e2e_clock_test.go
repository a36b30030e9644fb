package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// TestClock: what a gateway does by itself. An isolated job's result is told in
// the main session, unless there is nothing to tell; a pause stops a job; a
// heartbeat that finds nothing to do is silent.
func TestClock(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		script := func(r *providertest.Request) providertest.Answer {
			newest := r.NewestText()
			switch {
			case r.Worker() && strings.Contains(r.Task(), "silent work"):
				return providertest.Answer{Text: "NO_REPLY"}
			case r.Worker() && !strings.Contains(r.FirstText(), "[Cron Context]"):
				t.Errorf("a worker that no job started: %s", r.FirstText())
			case r.Worker():
				return providertest.Answer{Text: fmt.Sprintf("<made %d>", r.N)}
			case strings.Contains(newest, "This is a heartbeat"):
				return providertest.Answer{Text: "HEARTBEAT_OK"}
			case strings.Contains(newest, "Add a job."):
				if len(r.NewestResults()) == 0 {
					return providertest.Answer{Calls: []providertest.Call{call("cron", args{
						"action": "add", "name": "Asked for", "message": "loud work", "every": "1h",
					})}}
				}
				return providertest.Answer{Text: "Added."}
			}
			return providertest.Answer{Text: "Told."}
		}
		key := func(r *providertest.Request) string { return fmt.Sprint(r.N) }
		h := newE2E(t, wire, script, providertest.WithKey(key))
		h.config(`"requestsPerMinute": 6000`, `"agents": {"defaults": {"heartbeat": {"every": "1s"}}}`)
		h.file("HEARTBEAT.md", "- look at the tides\n")
		g := h.gateway()
		for _, name := range []string{"loud", "silent"} {
			if status, body := g.call("POST", "/api/cron", fmt.Sprintf(`{"name": %q, "every": "1s", "message": "%s work"}`, name, name)); status != http.StatusCreated {
				t.Fatalf("%d %s", status, body)
			}
		}
		fired := func(job string) (n int) {
			var firings []goclaw.Firing
			g.get("/api/cron/"+job+"/history", &firings)
			for _, f := range firings {
				if f.State == goclaw.StateCompleted {
					n++
				}
			}
			return n
		}
		of := func(trigger goclaw.Trigger) (runs []goclaw.Run) {
			var all []goclaw.Run
			g.get("/api/runs?limit=1000", &all)
			for _, r := range all {
				if r.Trigger == trigger {
					runs = append(runs, r)
				}
			}
			return runs
		}
		eventually(t, "both jobs have fired twice", func() bool { return fired("loud") > 1 && fired("silent") > 1 })
		eventually(t, "a result is told", func() bool { return len(of(goclaw.TriggerAnnouncement)) > 0 })
		eventually(t, "the heart has beaten twice", func() bool { return len(of(goclaw.TriggerHeartbeat)) > 1 })
		for _, name := range []string{"loud", "silent", "heartbeat-main"} {
			status, _ := g.call("POST", "/api/cron/"+name+"/pause", "")
			if want := map[bool]int{true: http.StatusBadRequest, false: http.StatusOK}[name == "heartbeat-main"]; status != want {
				t.Errorf("pause %s: %d", name, status)
			}
		}
		before, beats := len(of(goclaw.TriggerCron)), len(of(goclaw.TriggerHeartbeat))
		eventually(t, "the heart beats on", func() bool { return len(of(goclaw.TriggerHeartbeat)) > beats+2 })
		if after := len(of(goclaw.TriggerCron)); after != before {
			t.Errorf("paused jobs fired: %d runs, then %d", before, after)
		}

		run := g.send("agent:main:main", "Add a job.")
		var out goclaw.Outcome
		g.get("/api/messages/"+run+"?timeout=60", &out)
		var added []goclaw.CronReport
		g.get("/api/cron", &added)
		if len(added) != 4 || added[0].Name != "Asked for" || added[0].Session != goclaw.MainKey("main") {
			t.Errorf("%+v", added)
		}
		g.stop()
		checkClockTold(t, h.server.Requests())
	})
}

// checkClockTold: each result of the job that has one is told once, and nothing
// of the other.
func checkClockTold(t *testing.T, all []providertest.Recorded) {
	t.Helper()
	told, made := map[string]int{}, 0
	for _, q := range all {
		newest := q.Request.NewestText()
		switch {
		case q.Request.Worker():
			made++
		case strings.Contains(newest, "[Cron: silent]"):
			t.Errorf("a silent result is told: %s", newest)
		case strings.Contains(newest, "[Cron: loud] Complete."):
			for _, part := range strings.Split(newest, "<made ")[1:] {
				told[part]++
			}
		}
	}
	for result, n := range told {
		if n != 1 {
			t.Errorf("<made %s is told %d times", result, n)
		}
	}
	if len(told) == 0 || made == 0 {
		t.Errorf("%d results of %d are told", len(told), made)
	}
}
