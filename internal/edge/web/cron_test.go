package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/web"
)

// crontab has one job, tea, and records what it is asked.
type crontab struct {
	asked []any
	fail  error
}

func (c *crontab) job(id string, asked ...any) (goclaw.CronReport, error) {
	c.asked = append(c.asked, asked...)
	if c.fail == nil && id != "tea" {
		return goclaw.CronReport{}, fmt.Errorf("cron job %q: %w", id, goclaw.ErrNotFound)
	}
	return goclaw.CronReport{CronJob: goclaw.CronJob{
		ID: id, Name: "Tea", Agent: "main", Session: mainKey, Target: goclaw.TargetIsolated, Message: "Make tea.",
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 1000}, Missed: goclaw.MissedOnce, Enabled: true, Next: 5,
	}}, c.fail
}

func (c *crontab) List(context.Context) ([]goclaw.CronReport, error) {
	r, err := c.job("tea", "list")
	return []goclaw.CronReport{r}, err
}

func (c *crontab) Show(_ context.Context, id string) (goclaw.CronReport, error) {
	return c.job(id, "show "+id)
}

func (c *crontab) AddEdit(_ context.Context, e goclaw.CronEdit, once string) (goclaw.CronReport, error) {
	return c.job("tea", "add once "+once, e)
}

func (c *crontab) ChangeEdit(_ context.Context, id string, e goclaw.CronEdit) (goclaw.CronReport, error) {
	return c.job(id, "change "+id, e)
}

func (c *crontab) Pause(_ context.Context, id string) (goclaw.CronReport, error) {
	return c.job(id, "pause "+id)
}

func (c *crontab) Resume(_ context.Context, id string) (goclaw.CronReport, error) {
	return c.job(id, "resume "+id)
}

func (c *crontab) Remove(_ context.Context, id string) error {
	_, err := c.job(id, "remove "+id)
	return err
}

func (c *crontab) RunNow(_ context.Context, id, once string) (goclaw.Run, error) {
	_, err := c.job(id, "run "+id+" once "+once)
	return goclaw.Run{ID: "r1", Session: goclaw.CronKey("main", id), Trigger: goclaw.TriggerCron, State: goclaw.StateQueued}, err
}

func (c *crontab) History(_ context.Context, id string, limit int) ([]goclaw.Firing, error) {
	_, err := c.job(id, fmt.Sprintf("history %s %d", id, limit))
	return []goclaw.Firing{{Job: id, Due: 5, At: 6, Run: "r1", State: goclaw.StateCompleted, Result: "tea"}}, err
}

func cronGateway(c *crontab) http.Handler {
	return gateway(&fake{}, func(o *web.Options) { o.Crontab = c })
}

func TestCronRoutes(t *testing.T) {
	text := func(s string) *string { return &s }
	key := map[string]string{"Idempotency-Key": "k"}
	for _, tc := range []struct {
		method, target, body string
		headers              map[string]string
		status               int
		asked                []any
		says                 string
	}{
		{"GET", "/api/cron", "", nil, 200, []any{"list"}, `[{"id":"tea"`},
		{"GET", "/api/cron/tea", "", nil, 200, []any{"show tea"}, `"id":"tea"`},
		{"GET", "/api/cron/x", "", nil, 404, []any{"show x"}, `cron job \"x\"`},
		{"POST", "/api/cron", `{"name":"Tea","every":"1s"}`, key, 201, []any{"add once k", goclaw.CronEdit{Name: text("Tea"), Every: text("1s")}}, `"id":"tea"`},
		{"POST", "/api/cron", `{"name":"Tea"}`, nil, 201, []any{"add once ", goclaw.CronEdit{Name: text("Tea")}}, `"id":"tea"`},
		{"POST", "/api/cron", `{"colour":"red"}`, nil, 400, nil, "colour"},
		{"POST", "/api/cron", `{"target":"moon"}`, nil, 400, nil, "target"},
		{"POST", "/api/cron", ``, nil, 400, nil, ""},
		{"PATCH", "/api/cron/tea", `{"message":"Now."}`, nil, 200, []any{"change tea", goclaw.CronEdit{Message: text("Now.")}}, `"id":"tea"`},
		{"PATCH", "/api/cron/tea", `{}`, nil, 200, []any{"change tea", goclaw.CronEdit{}}, `"id":"tea"`},
		{"PATCH", "/api/cron/x", `{}`, nil, 404, []any{"change x", goclaw.CronEdit{}}, ""},
		{"DELETE", "/api/cron/tea", "", nil, 204, []any{"remove tea"}, ""},
		{"DELETE", "/api/cron/x", "", nil, 404, []any{"remove x"}, ""},
		{"POST", "/api/cron/tea/run", "", key, 202, []any{"run tea once k"}, `"r1"`},
		{"POST", "/api/cron/x/run", "{}", nil, 404, []any{"run x once "}, ""},
		{"POST", "/api/cron/tea/run", `{"a":1}`, nil, 400, nil, "a"},
		{"POST", "/api/cron/tea/pause", "", nil, 200, []any{"pause tea"}, `"id":"tea"`},
		{"POST", "/api/cron/x/pause", "", nil, 404, []any{"pause x"}, ""},
		{"POST", "/api/cron/tea/resume", "{}", nil, 200, []any{"resume tea"}, `"id":"tea"`},
		{"POST", "/api/cron/x/resume", "{}", nil, 404, []any{"resume x"}, ""},
		{"GET", "/api/cron/tea/history?limit=3", "", nil, 200, []any{"history tea 3"}, `"runId":"r1"`},
		{"GET", "/api/cron/x/history", "", nil, 404, []any{"history x 0"}, ""},
		{"GET", "/api/cron/tea/history?limit=many", "", nil, 400, nil, "limit"},
	} {
		c := &crontab{}
		w := ask(cronGateway(c), tc.method, tc.target, tc.body, tc.headers)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s %s %s: %d %s; want %d with %q", tc.method, tc.target, tc.body, w.Code, w.Body, tc.status, tc.says)
		}
		if diff := cmp.Diff(tc.asked, c.asked); diff != "" {
			t.Errorf("%s %s %s asked:\n%s", tc.method, tc.target, tc.body, diff)
		}
	}
}

// What is wrong with a job is a 400, a store that fails a 500; both say what.
func TestCronFailures(t *testing.T) {
	for err, want := range map[error]struct {
		status int
		says   string
	}{
		goclaw.BadRequest("hour 25"): {400, "hour 25"}, errors.New("the disk is full"): {500, "the disk is full"},
		goclaw.ErrReused: {422, "belongs to another request"},
	} {
		h := cronGateway(&crontab{fail: err})
		for _, call := range [][3]string{
			{"POST", "/api/cron", `{}`}, {"PATCH", "/api/cron/tea", `{}`}, {"POST", "/api/cron/tea/run", ``},
			{"POST", "/api/cron/tea/pause", ``}, {"POST", "/api/cron/tea/resume", ``}, {"DELETE", "/api/cron/tea", ``},
		} {
			w := ask(h, call[0], call[1], call[2], nil)
			if w.Code != want.status || !strings.Contains(w.Body.String(), want.says) {
				t.Errorf("%s %s: %d %s; want %d", call[0], call[1], w.Code, w.Body, want.status)
			}
		}
	}
}

// The client says what it is told to, and gives back what the gateway says.
func TestCronClient(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		c := &crontab{}
		api, ctx := connect(cronGateway(c)), t.Context()
		want, err := c.job("tea")
		name := "Tea"
		e := goclaw.CronEdit{Name: &name}
		report := func(what string, got goclaw.CronReport, gerr error) {
			t.Helper()
			if diff := cmp.Diff(want, got); gerr != nil || diff != "" {
				t.Errorf("%s: %v\n%s", what, gerr, diff)
			}
		}
		jobs, lerr := api.CronJobs(ctx)
		if err != nil || lerr != nil || len(jobs) != 1 {
			t.Fatalf("%v %v %+v", err, lerr, jobs)
		}
		report("list", jobs[0], nil)
		got, err := api.CronJob(ctx, "tea")
		report("show", got, err)
		got, err = api.AddCronJob(ctx, e)
		report("add", got, err)
		got, err = api.ChangeCronJob(ctx, "tea", e)
		report("change", got, err)
		got, err = api.PauseCronJob(ctx, "tea")
		report("pause", got, err)
		got, err = api.ResumeCronJob(ctx, "tea")
		report("resume", got, err)
		run, err := api.RunCronJob(ctx, "tea")
		if err != nil || run.ID != "r1" || run.Session != goclaw.CronKey("main", "tea") {
			t.Errorf("run: %+v %v", run, err)
		}
		firings, err := api.CronHistory(ctx, "tea", 7)
		if err != nil || len(firings) != 1 || firings[0].Result != "tea" {
			t.Errorf("history: %+v %v", firings, err)
		}
		if err := api.RemoveCronJob(ctx, "tea"); err != nil {
			t.Error(err)
		}
		asked := []any{
			"list", "show tea", "add once ", e, "change tea", e, "pause tea", "resume tea", "run tea once ", "history tea 7", "remove tea",
		}
		if diff := cmp.Diff(asked, c.asked); diff != "" {
			t.Error(diff)
		}
		if _, err := api.CronJob(ctx, "a/b"); !errors.Is(err, goclaw.ErrNotFound) || c.asked[len(c.asked)-1] != "show a/b" {
			t.Errorf("%v, asked %v", err, c.asked[len(c.asked)-1])
		}
	})
}
