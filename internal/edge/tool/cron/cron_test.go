package cron_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/tool/cron"
)

var (
	main   = goclaw.MainKey("main")
	ann    = goclaw.APIKey("main", "ann")
	other  = goclaw.MainKey("other")
	berlin = time.FixedZone("CET", 3600)
)

// crontab records what it is asked.
type crontab struct {
	jobs  []goclaw.CronReport
	asked []string
	edit  goclaw.CronEdit
	err   error // of the next change
}

func (c *crontab) note(what string, parts ...any) {
	c.asked = append(c.asked, fmt.Sprint(append([]any{what}, parts...)...))
}

func (c *crontab) List(context.Context) ([]goclaw.CronReport, error) { return c.jobs, c.err }

func (c *crontab) Show(_ context.Context, id string) (goclaw.CronReport, error) {
	for _, j := range c.jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return goclaw.CronReport{}, fmt.Errorf("cron job %q: %w", id, goclaw.ErrNotFound)
}

func (c *crontab) AddEdit(_ context.Context, e goclaw.CronEdit, once string) (goclaw.CronReport, error) {
	c.note("add ", once)
	c.edit = e
	return report("added", main), c.err
}

func (c *crontab) ChangeEdit(ctx context.Context, id string, e goclaw.CronEdit) (goclaw.CronReport, error) {
	c.note("change ", id)
	c.edit = e
	return c.one(ctx, id)
}

func (c *crontab) Pause(ctx context.Context, id string) (goclaw.CronReport, error) {
	c.note("pause ", id)
	return c.one(ctx, id)
}

func (c *crontab) Resume(ctx context.Context, id string) (goclaw.CronReport, error) {
	c.note("resume ", id)
	return c.one(ctx, id)
}

func (c *crontab) Remove(_ context.Context, id string) error { c.note("remove ", id); return c.err }

func (c *crontab) RunNow(_ context.Context, id, once string) (goclaw.Run, error) {
	c.note("run ", id, " ", once)
	return goclaw.Run{ID: "r9", Session: goclaw.CronKey("main", id)}, c.err
}

func (c *crontab) History(_ context.Context, id string, limit int) ([]goclaw.Firing, error) {
	c.note("history ", id, " ", limit)
	return []goclaw.Firing{{Job: id, Due: 3_600_000, Run: "r1", State: goclaw.StateCompleted, Result: "done"}, {Job: id, Due: 1000, Skipped: "busy"}}, c.err
}

func (c *crontab) one(ctx context.Context, id string) (goclaw.CronReport, error) {
	r, err := c.Show(ctx, id)
	return r, errors.Join(err, c.err)
}

func report(id string, of goclaw.SessionKey) goclaw.CronReport {
	return goclaw.CronReport{CronJob: goclaw.CronJob{
		ID: id, Name: strings.ToUpper(id), Agent: "main", Session: of, Message: "Look.", Target: goclaw.TargetIsolated, Enabled: true,
		Schedule: goclaw.Schedule{Kind: goclaw.ScheduleEvery, EveryMs: 5_400_000}, Next: 7_200_000,
	}}
}

func call(t *testing.T, c *crontab, from goclaw.SessionKey, arguments string) goclaw.ToolResult {
	t.Helper()
	return cron.New(c, berlin).Call(t.Context(), goclaw.Invocation{
		Call: goclaw.ToolCall{ID: "c1", Name: cron.Name, Arguments: arguments}, Fence: goclaw.Fence{Run: "r1"}, Session: from,
	})
}

func TestActions(t *testing.T) {
	const asJob = `{"id":"tea","name":"TEA","every":"1h30m","next":"1970-01-01T03:00:00+01:00","target":"isolated","deliver":"agent:main:main","message":"Look."}`
	for _, tc := range []struct{ arguments, asked, answer string }{
		{`{"action":"list"}`, "", "[" + asJob + "]"},
		{`{"action":"change","id":"tea","every":"2h"}`, "change tea", asJob},
		{`{"action":"pause","id":"tea"}`, "pause tea", asJob},
		{`{"action":"resume","id":"tea"}`, "resume tea", asJob},
		{`{"action":"run","id":"tea"}`, "run tea tool:r1:c1", `{"runId":"r9","sessionKey":"agent:main:cron:tea","status":"accepted"}`},
		{`{"action":"remove","id":"tea"}`, "remove tea", `{"removed":"tea"}`},
		{
			`{"action":"history","id":"tea"}`, "history tea 20",
			`[{"due":"1970-01-01T02:00:00+01:00","runId":"r1","status":"completed","result":"done"},{"due":"1970-01-01T01:00:01+01:00","skipped":"busy"}]`,
		},
	} {
		c := &crontab{jobs: []goclaw.CronReport{report("tea", main)}}
		res := call(t, c, main, tc.arguments)
		if res.IsError || res.Content != tc.answer || strings.Join(c.asked, ",") != tc.asked {
			t.Errorf("%s\nasked %q, want %q\nanswered %s\nwant     %s", tc.arguments, c.asked, tc.asked, res.Content, tc.answer)
		}
	}
}

// What is said of a job arrives, all of it; the session is the caller's unless
// another is named.
func TestAdd(t *testing.T) {
	for _, tc := range []struct {
		name, more string
		from, to   goclaw.SessionKey
	}{
		{"here", ``, main, main},
		{"a chat's", ``, ann, ann},
		{"another's", `,"deliver":"agent:main:api:user:ann"`, main, ann},
		{"nobody's", `,"deliver":""`, main, goclaw.SessionKey{}},
	} {
		c := &crontab{}
		res := call(t, c, tc.from, `{"action":"add","name":"Tea","message":"Make tea.","cron":"0 9 * * *","timezone":"Europe/Berlin","target":"isolated",
			"model":"fast","thinking":"low","timeoutSeconds":60,"agent":"maker","missed":"skip"`+tc.more+`}`)
		agent := "main"
		target, missed, seconds := goclaw.TargetIsolated, goclaw.MissedSkip, 60
		want := goclaw.CronEdit{
			Name: text("Tea"), Message: text("Make tea."), Cron: text("0 9 * * *"), Timezone: text("Europe/Berlin"), Target: &target,
			Model: text("fast"), Thinking: text("low"), TimeoutSeconds: &seconds, Definition: text("maker"), Missed: &missed,
			Agent: &agent, Session: &tc.to,
		}
		if diff := cmp.Diff(want, c.edit); res.IsError || diff != "" || c.asked[0] != "add tool:r1:c1" {
			t.Errorf("%s: %s %q\n%s", tc.name, res.Content, c.asked, diff)
		}
	}
}

func text(s string) *string { return &s }

func TestRefused(t *testing.T) {
	jobs := []goclaw.CronReport{report("mine", main), report("anns", ann), report("silent", goclaw.SessionKey{})}
	theirs := report("theirs", other)
	theirs.Agent = "other"
	jobs = append(jobs, theirs)
	for _, tc := range []struct {
		from            goclaw.SessionKey
		arguments, says string
	}{
		{goclaw.SubagentKey("main", "w"), `{"action":"list"}`, "only the main agent"},
		{goclaw.CronKey("main", "mine"), `{"action":"add","name":"Again","message":"x","every":"1s"}`, "only the main agent"},
		{main, `{"action":"pause"}`, "id is missing"},
		{main, `{"action":"pause","id":"none"}`, `no job "none"`},
		{main, `{"action":"remove","id":"theirs"}`, `no job "theirs"`},
		{ann, `{"action":"run","id":"mine"}`, `no job "mine"`},
		{ann, `{"action":"history","id":"silent"}`, `no job "silent"`},
		{main, `{"action":"change","id":"mine"}`, "nothing to change"},
		{main, `{"action":"fly","id":"mine"}`, `no action "fly"`},
		{main, `{"action":1}`, "arguments"},
		{ann, `{"action":"add","name":"x","message":"x","every":"1h","deliver":"agent:main:main"}`, "deliver: only the agent's main session"},
		{ann, `{"action":"change","id":"anns","deliver":"agent:main:main"}`, "deliver: only the agent's main session"},
		{ann, `{"action":"add","name":"x","message":"x","every":"1h","deliver":""}`, "deliver: only the agent's main session"},
		{main, `{"action":"add","name":"x","message":"x","every":"1h","deliver":"agent:other:main"}`, "another agent"},
		{main, `{"action":"add","name":"x","message":"x","every":"1h","deliver":"here"}`, "deliver: "},
	} {
		c := &crontab{jobs: jobs}
		res := call(t, c, tc.from, tc.arguments)
		if !res.IsError || !strings.Contains(res.Content, tc.says) || len(c.asked) > 0 {
			t.Errorf("%s asks %s: %v %q, asked %q; want an error with %q", tc.from, tc.arguments, res.IsError, res.Content, c.asked, tc.says)
		}
	}
}

// A session is listed the jobs that it may keep.
func TestListed(t *testing.T) {
	theirs := report("theirs", other)
	theirs.Agent = "other"
	c := &crontab{jobs: []goclaw.CronReport{report("mine", main), report("anns", ann), report("silent", goclaw.SessionKey{}), theirs}}
	for from, want := range map[goclaw.SessionKey][]string{main: {"mine", "anns", "silent"}, ann: {"anns"}, other: {"theirs"}} {
		var jobs []struct{ ID string }
		if err := json.Unmarshal([]byte(call(t, c, from, `{"action":"list"}`).Content), &jobs); err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(jobs))
		for i, j := range jobs {
			ids[i] = j.ID
		}
		if !reflect.DeepEqual(ids, want) {
			t.Errorf("%s is listed %v, want %v", from, ids, want)
		}
	}
}

// What is wrong with a job the model may mend; that the store can't be asked,
// it may not.
func TestFailures(t *testing.T) {
	jobs := []goclaw.CronReport{report("tea", main)}
	add := `{"action":"add","name":"x","message":"x","every":"1h"}`
	if res := call(t, &crontab{err: goclaw.BadRequest("hour 25")}, main, add); !res.IsError || res.Content != "hour 25" {
		t.Errorf("%+v", res)
	}
	broken := errors.New("disk")
	for _, arguments := range []string{add, `{"action":"list"}`, `{"action":"run","id":"tea"}`, `{"action":"remove","id":"tea"}`, `{"action":"history","id":"tea"}`} {
		if res := call(t, &crontab{jobs: jobs, err: broken}, main, arguments); !errors.Is(res.Again, broken) {
			t.Errorf("%s: %+v", arguments, res)
		}
	}
}

func TestSpec(t *testing.T) {
	s := cron.New(nil, time.UTC).Spec()
	if !s.Idempotent || !s.Ordered || !json.Valid(s.Schema) {
		t.Errorf("%+v", s)
	}
	if n := s.Tokens(); n > 330 {
		t.Errorf("it takes %d tokens of each request", n)
	}
}
