package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"goclaw"
	"goclaw/internal/edge/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func idle(context.Context) (goclaw.Status, error) { return goclaw.Status{}, nil }

func counting(status func(context.Context) (goclaw.Status, error)) *metrics.Metrics {
	return metrics.New(metrics.Options{Version: "1", Tools: []string{"read"}, Status: status, Log: slog.New(slog.DiscardHandler)})
}

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// values are the samples of a scrape, those of Go and of zero left out.
func values(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(scrape(t, m)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			name += "}"
		} else {
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
		}
		n, err := strconv.ParseFloat(value, 64)
		if ok && err == nil && strings.HasPrefix(name, "goclaw_") && n != 0 {
			all[strings.TrimPrefix(name, "goclaw_")] = n
		}
	}
	return all
}

func want(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
}

func notice(kind goclaw.NoticeKind, r goclaw.Run) goclaw.Notice {
	return goclaw.Notice{Kind: kind, RunID: r.ID, Session: r.Session, Run: &r}
}

func TestRuns(t *testing.T) {
	m := counting(idle)
	usd := func(v float64) *float64 { return &v }
	r := goclaw.Run{ID: "a", Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, Session: goclaw.MainKey("main"), Profile: goclaw.Profile{Model: "p/m"}}
	m.Observe(notice(goclaw.NoticeRun, r))
	want(t, values(t, m), map[string]float64{
		`runs_accepted_total{trigger="user"}`: 1, `runs_current{status="queued",trigger="user"}`: 1, `runs_ended_total{status="completed",trigger="user"}`: 0,
	})
	r.State, r.StartedAt = goclaw.StateRunning, 1000
	m.Observe(notice(goclaw.NoticeRun, r))
	r.Usage = goclaw.Usage{Input: 100, Output: 10, CacheRead: 60, CostUSD: usd(0.5)}
	m.Observe(notice(goclaw.NoticeUsage, r))
	m.Observe(notice(goclaw.NoticeUsage, r)) // a tool's step: nothing more was used
	want(t, values(t, m), map[string]float64{
		`runs_current{status="queued",trigger="user"}`: 0, `runs_current{status="running",trigger="user"}`: 1,
		`model_calls_total{model="p/m"}`: 1, `tokens_total{kind="input",model="p/m"}`: 100, `tokens_total{kind="cache_read",model="p/m"}`: 60,
	})
	r.State, r.FinishedAt, r.Usage = goclaw.StateCompleted, 3500, goclaw.Usage{Input: 250, Output: 15, CacheRead: 60, CostUSD: usd(0.75)}
	m.Observe(notice(goclaw.NoticeRun, r))
	m.Observe(notice(goclaw.NoticeUsage, r)) // they come late
	r.State = goclaw.StateRunning
	m.Observe(notice(goclaw.NoticeRun, r))
	want(t, values(t, m), map[string]float64{
		`runs_accepted_total{trigger="user"}`: 1, `runs_ended_total{status="completed",trigger="user"}`: 1, `runs_current{status="running",trigger="user"}`: 0,
		`model_calls_total{model="p/m"}`: 2, `tokens_total{kind="input",model="p/m"}`: 250, `tokens_total{kind="output",model="p/m"}`: 15,
		`cost_usd_total{model="p/m"}`: 0.75, `run_duration_seconds_sum{trigger="user"}`: 2.5, `run_duration_seconds_count{trigger="user"}`: 1,
	})
}

// What another process has counted is not counted again.
func TestRunsThatWereTakenOver(t *testing.T) {
	m := counting(idle)
	r := goclaw.Run{ID: "a", Trigger: goclaw.TriggerCron, State: goclaw.StateRunning, StartedAt: 1, Profile: goclaw.Profile{Model: "p/m"}, Usage: goclaw.Usage{Input: 1000}}
	m.Observe(notice(goclaw.NoticeRun, r))
	r.Usage.Input = 1001
	m.Observe(notice(goclaw.NoticeUsage, r))
	want(t, values(t, m), map[string]float64{
		`runs_accepted_total{trigger="cron"}`: 0, `runs_current{status="running",trigger="cron"}`: 1, `tokens_total{kind="input",model="p/m"}`: 1,
	})
}

func TestAnnouncementDelays(t *testing.T) {
	m := counting(idle)
	requester := goclaw.MainKey("main")
	worker := func(id string, announce goclaw.AnnounceMode, end goclaw.Millis) {
		m.Observe(notice(goclaw.NoticeRun, goclaw.Run{
			ID: id, Trigger: goclaw.TriggerSpawn, Requester: requester, Announce: announce, State: goclaw.StateCompleted, StartedAt: 1, FinishedAt: end,
		}))
	}
	worker("a", goclaw.AnnounceTogether, 1000)
	worker("b", goclaw.AnnounceEach, 1500)
	worker("silent", goclaw.AnnounceNone, 1600)
	turn := goclaw.Run{ID: "t", Trigger: goclaw.TriggerAnnouncement, Session: requester, State: goclaw.StateRunning, StartedAt: 2000}
	m.Observe(notice(goclaw.NoticeRun, turn))
	m.Observe(notice(goclaw.NoticeRun, turn))
	want(t, values(t, m), map[string]float64{`announcement_delay_seconds_count`: 2, `announcement_delay_seconds_sum`: 1.5})
}

func TestToolsAndRetries(t *testing.T) {
	m := counting(idle)
	for _, r := range []goclaw.ToolResult{{Name: "read"}, {Name: "read", IsError: true}, {Name: "made-up-by-a-model"}, {Name: "another"}} {
		m.Observe(goclaw.Notice{Kind: goclaw.NoticeToolResult, Result: &r})
	}
	m.Observe(goclaw.Notice{Kind: goclaw.NoticeRetry})
	m.Observe(goclaw.Notice{Kind: goclaw.NoticeText, Text: "x"})
	want(t, values(t, m), map[string]float64{
		`tool_calls_total{outcome="ok",tool="read"}`: 1, `tool_calls_total{outcome="error",tool="read"}`: 1,
		`tool_calls_total{outcome="ok",tool="other"}`: 2, `model_retries_total`: 1,
	})
}

// Labels are bounded, whatever people and models write.
func TestCardinality(t *testing.T) {
	m := counting(idle)
	for i := range 500 {
		r := goclaw.Run{ID: fmt.Sprint(i), Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, Profile: goclaw.Profile{Model: fmt.Sprint("p/", i)}, Session: goclaw.MainKey("main")}
		m.Observe(notice(goclaw.NoticeRun, r))
		r.State, r.Usage.Input = goclaw.StateFailed, 1
		m.Observe(notice(goclaw.NoticeRun, r))
		m.Observe(goclaw.Notice{Kind: goclaw.NoticeToolResult, Result: &goclaw.ToolResult{Name: fmt.Sprint("tool", i)}})
	}
	got := values(t, m)
	if got[`model_calls_total{model="other"}`] != 450 {
		t.Errorf("%v calls of other models, want 450", got[`model_calls_total{model="other"}`])
	}
	if len(got) > 200 {
		t.Errorf("%d samples", len(got))
	}
}

func TestStatusAndRequests(t *testing.T) {
	m := counting(func(context.Context) (goclaw.Status, error) {
		return goclaw.Status{Active: 3, Queued: 2, Parked: 1, Paused: goclaw.Pause{At: 5}}, nil
	})
	end := m.Request("GET /api/events")
	m.Request("")(404)
	want(t, values(t, m), map[string]float64{
		"runs_active": 3, "queue_length": 2, "parked": 1, "paused": 1, `info{version="1"}`: 1,
		`http_requests_in_flight{route="GET /api/events"}`: 1, `http_requests_total{route="other",status="404"}`: 1,
	})
	end(200)
	want(t, values(t, m), map[string]float64{
		`http_requests_in_flight{route="GET /api/events"}`: 0, `http_requests_total{route="GET /api/events",status="200"}`: 1,
	})
	broken := counting(func(context.Context) (goclaw.Status, error) { return goclaw.Status{}, errors.New("no") })
	if !strings.Contains(scrape(t, broken), "go_goroutines ") {
		t.Error("without a status nothing is told")
	}
}

// Prometheus's own linter on all names and helps.
func TestConventions(t *testing.T) {
	m := counting(idle)
	m.Request("x")(200)
	r := goclaw.Run{ID: "a", Trigger: goclaw.TriggerUser, State: goclaw.StateQueued, Profile: goclaw.Profile{Model: "p/m"}}
	m.Observe(notice(goclaw.NoticeRun, r))
	cost := 1.0
	r.State, r.StartedAt, r.Usage = goclaw.StateFailed, 1, goclaw.Usage{Input: 1, Output: 1, CostUSD: &cost}
	m.Observe(notice(goclaw.NoticeRun, r))
	m.Observe(goclaw.Notice{Kind: goclaw.NoticeToolResult, Result: &goclaw.ToolResult{Name: "read"}})
	problems, err := promlint.New(bytes.NewReader([]byte(scrape(t, m)))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "goclaw_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
