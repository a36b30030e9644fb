package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goclaw"
	"goclaw/internal/edge/client"
)

// worker is a run with every kind of field that travels.
func worker(id string, requester goclaw.SessionKey) goclaw.Run {
	cost := 0.25
	return goclaw.Run{
		ID: id, Ordinal: 7, Session: goclaw.SubagentKey("main", id), Trigger: goclaw.TriggerSpawn,
		Requester: requester, Parent: "p", Depth: 1, Label: "look <here>", Task: "do", Profile: goclaw.Profile{Agent: "main", Tools: []string{"read"}},
		State: goclaw.StateRunning, Usage: goclaw.Usage{Input: 3, CostUSD: &cost}, CreatedAt: 1, Epoch: 2,
	}
}

func TestClientRoundTrip(t *testing.T) {
	// Colons, slashes, per cent signs and spaces must survive the path.
	odd := goclaw.APIKey("main", "a:b/c//d %2F?#")
	run := worker("w/1?", odd)
	log := goclaw.RunLog{Run: run, Events: []goclaw.Event{
		{Seq: 0, Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{PromptSHA: "s", Input: goclaw.Text(goclaw.RoleUser, "hi")}},
		{Seq: 1, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: "ok"}},
	}}
	status := goclaw.Status{Version: "v", Providers: []string{"anthropic"}, Active: 2, Engine: true}

	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		f := &fake{
			logs:    map[string]goclaw.RunLog{run.ID: log},
			history: map[goclaw.SessionKey][]goclaw.RunLog{odd: {log}},
			runs:    func(goclaw.RunFilter) []goclaw.Run { return []goclaw.Run{run} },
			status:  status,
		}
		c, ctx := connect(gateway(f)), t.Context()
		filter := goclaw.RunFilter{Session: odd, Requester: mainKey, Parent: "p/1", Root: "p?0", Active: true, Ended: true, Limit: 9,
			Triggers: []goclaw.Trigger{goclaw.TriggerSpawn, goclaw.TriggerCron}}
		in := goclaw.Inbound{Session: odd, Text: "hi", Sender: "Ann", Key: "k", Model: "m"}
		check := func(name string, want, got any, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(goclaw.Inbound{}, "Digest")); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		receipt, err := c.Receive(ctx, in)
		check("Receive", goclaw.Receipt{Run: &goclaw.Run{ID: "run-1", Session: odd, Task: "hi"}}, receipt, err)
		check("received", []goclaw.Inbound{in}, f.received, nil)
		out, err := c.Await(ctx, "run-1", true)
		check("Await", goclaw.Outcome{Status: goclaw.StateCompleted, Reply: "hello", Replies: []string{"hello"}, Turns: 1, Runs: []goclaw.RunInfo{}}, out, err)
		runs, err := c.Runs(ctx, filter)
		check("Runs", []goclaw.Run{run}, runs, err)
		gotLog, err := c.RunLog(ctx, run.ID)
		check("RunLog", log, gotLog, err)
		cancelled, err := c.Cancel(ctx, run.ID, "enough")
		check("Cancel", []goclaw.Run{run}, cancelled, err)
		sessions, err := c.Sessions(ctx)
		check("Sessions", []goclaw.Session{{Key: odd, Agent: "main"}}, sessions, err)
		history, err := c.History(ctx, odd)
		check("History", []goclaw.RunLog{log}, history, err)
		prompt, err := c.Context(ctx, goclaw.ContextQuery{Session: odd})
		check("Context", goclaw.Prompt{Model: "m", Sections: []goclaw.Section{{ID: "identity", Text: "<you>", Stable: true}}, Tools: []goclaw.ToolSpec{}, Omitted: []goclaw.Omission{}, Warnings: []string{}, Lifted: []string{}}, prompt, err)
		if _, err := c.Context(ctx, goclaw.ContextQuery{}); err != nil {
			t.Error(err)
		}
		gotStatus, err := c.Status(ctx)
		check("Status", status, gotStatus, err)
		check("Health", nil, nil, c.Health(ctx))
		check("asked", []any{filter, [2]string{run.ID, "enough"}, goclaw.ContextQuery{Session: odd}, goclaw.ContextQuery{Agent: "main"}}, f.asked, nil)
	})
}

func TestEmptyAnswersAreLists(t *testing.T) {
	h := gateway(&fake{})
	for _, path := range []string{"/api/runs", "/api/sessions", "/api/sessions/agent:main:main/history", "/api/parked"} {
		if w := ask(h, "GET", path, "", nil); w.Code != 200 || w.Body.String() != "[]\n" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestMessageStatus(t *testing.T) {
	f := &fake{}
	h := gateway(f)
	const body = `{"session":"agent:main:main","text":"/status"}`
	if w := ask(h, "POST", "/api/messages", body, nil); w.Code != 202 {
		t.Errorf("a run: %d", w.Code)
	}
	f.receive = func(context.Context, goclaw.Inbound) (goclaw.Receipt, error) {
		return goclaw.Receipt{Reply: "fine"}, nil
	}
	if w := ask(h, "POST", "/api/messages", body, nil); w.Code != 200 || w.Body.String() != `{"reply":"fine"}`+"\n" {
		t.Errorf("a command: %d %s", w.Code, w.Body)
	}
}

func TestErrorsReachTheCaller(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		c := connect(gateway(&fake{}))
		_, err := c.RunLog(t.Context(), "abcd")
		if !errors.Is(err, goclaw.ErrNotFound) || err.Error() != `read run abcd: run "abcd": not found` {
			t.Errorf("missing run: %v", err)
		}
		c = connect(gateway(&fake{fail: errBroken}))
		for name, call := range map[string]func() error{
			"Receive": func() error {
				_, err := c.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: "x"})
				return err
			},
			"Await":    func() error { _, err := c.Await(t.Context(), "r", false); return err },
			"Notices":  func() error { _, err := c.Notices(t.Context(), mainKey); return err },
			"Runs":     func() error { _, err := c.Runs(t.Context(), goclaw.RunFilter{}); return err },
			"RunLog":   func() error { _, err := c.RunLog(t.Context(), "r"); return err },
			"Cancel":   func() error { _, err := c.Cancel(t.Context(), "r", ""); return err },
			"Sessions": func() error { _, err := c.Sessions(t.Context()); return err },
			"History":  func() error { _, err := c.History(t.Context(), mainKey); return err },
			"Context":  func() error { _, err := c.Context(t.Context(), goclaw.ContextQuery{}); return err },
			"Status":   func() error { _, err := c.Status(t.Context()); return err },
			"Placed":   func() error { _, err := c.Placed(t.Context(), goclaw.RunFilter{}); return err },
			"Run":      func() error { _, err := c.Run(t.Context(), "r"); return err },
			"WaitRun":  func() error { _, err := c.WaitRun(t.Context(), "r"); return err },
			"Spawn": func() error {
				_, err := c.Spawn(t.Context(), mainKey, goclaw.SpawnRequest{Task: "t"}, "")
				return err
			},
			"Steer":    func() error { _, err := c.Steer(t.Context(), "r", "x", ""); return err },
			"Resume":   func() error { _, err := c.Resume(t.Context(), "r"); return err },
			"Parked":   func() error { _, err := c.Parked(t.Context()); return err },
			"Usage":    func() error { _, err := c.Usage(t.Context(), goclaw.UsageQuery{}); return err },
			"Paused":   func() error { _, err := c.Paused(t.Context()); return err },
			"SetPause": func() error { _, err := c.SetPause(t.Context(), true, ""); return err },
		} {
			err := call()
			if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 500 || e.Detail != errBroken.Error() {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAwaitPollsUntilTheEnd(t *testing.T) {
	synctestRun(t, func(t *testing.T) {
		begun := time.Now()
		polls := 0
		f := &fake{await: func(ctx context.Context, _ string, workers bool) (goclaw.Outcome, error) {
			polls++
			select {
			case <-ctx.Done():
				return goclaw.Outcome{}, ctx.Err()
			case <-time.After(150*time.Second - time.Since(begun)):
				return goclaw.Outcome{Status: goclaw.StateCompleted, Reply: "late", Replies: []string{"late"}, Unfinished: polls}, nil
			}
		}}
		out, err := client.InProcess(gateway(f), token).Await(t.Context(), "run-1", true)
		if err != nil || out.Reply != "late" || out.Unfinished != 3 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	why := errors.New("the person left")
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		entered, left := make(chan struct{}), make(chan struct{})
		f := &fake{await: func(ctx context.Context, _ string, _ bool) (goclaw.Outcome, error) {
			defer close(left)
			close(entered)
			<-ctx.Done()
			return goclaw.Outcome{}, ctx.Err()
		}}
		c := connect(gateway(f))
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-entered
			cancel(why)
		}()
		if _, err := c.Await(ctx, "r", false); !errors.Is(err, why) {
			t.Error(err)
		}
		<-left
	})
}

func TestSentTravelsUnchanged(t *testing.T) {
	run := worker("w/1?", mainKey)
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		f := &fake{logs: map[string]goclaw.RunLog{run.ID: {Run: run}}}
		c, ctx := connect(gateway(f)), t.Context()
		want := goclaw.Sent{Run: goclaw.Run{ID: run.ID}, Session: run.Session, Model: "p/m", Step: 3, Steps: 4, Body: []byte(rawBody)}
		got, err := c.AsSent(ctx, run.ID, 3)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if got, err = c.AsSent(ctx, run.ID, 0); err != nil || got.Step != 1 {
			t.Errorf("the last: %+v, %v", got, err)
		}
		if _, err := c.AsSent(ctx, "nope", 0); !errors.Is(err, goclaw.ErrNotFound) {
			t.Errorf("no run: %v", err)
		}
		diff, err := c.ContextDiff(ctx, "agent:main:main", "w#2")
		if err != nil || diff.Bytes != 5 || diff.Before != "<a>" || diff.A.Part != "tool x" || diff.A.Session != mainKey || diff.Fields == nil {
			t.Errorf("%+v, %v", diff, err)
		}
		if diff := cmp.Diff([]any{[]any{run.ID, 3}, []any{run.ID, 0}, []any{"nope", 0}, [2]string{"agent:main:main", "w#2"}}, f.asked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestContextRequestsAreChecked(t *testing.T) {
	h := gateway(&fake{})
	for path, want := range map[string]string{
		"/api/context/sent":              `"param":"run"`,
		"/api/context/sent?run=a&step=0": `"param":"step"`,
		"/api/context/diff?b=x":          `"param":"a"`,
		"/api/context/diff?a=x":          `"param":"b"`,
	} {
		if w := ask(h, "GET", path, "", nil); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := ask(h, "GET", "/api/context", "", nil)
	for _, want := range []string{`"omitted":[]`, `"warnings":[]`, `"total":0`, `"prefixTokens":0`, `"text":"<you>"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("context lacks %s: %s", want, w.Body)
		}
	}
}
