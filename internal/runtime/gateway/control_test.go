package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

func TestSteer(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	turn := d.say("go")
	one := d.spawn(turn, "one", goclaw.AnnounceTogether)
	if got := d.command("/subagents steer one mind the gap"); got != "one reads it before its next step." {
		t.Error(got)
	}
	for range 2 { // the same message by the same key
		if r, err := d.Steer(ctx, one.ID[:4], " also this ", "k"); err != nil || r.ID != one.ID {
			t.Errorf("%+v, %v", r, err)
		}
	}
	items, err := d.store.Pending(ctx, one.Session)
	if err != nil || len(items) != 2 || items[0].Text != "mind the gap" || items[1].Text != "also this" {
		t.Errorf("%+v, %v", items, err)
	}
	if diff := cmp.Diff([]string{"the user: mind the gap", "the user: also this", "the user: also this"}, d.runner.steered); diff != "" {
		t.Error(diff)
	}
	d.end(one.ID, ending{result: "r", takes: []string{items[0].ID, items[1].ID}})
	if _, err := d.Steer(ctx, one.ID, "too late", ""); !errors.Is(err, goclaw.ErrEnded) || err.Error() != "run 0002-run can't be steered: the run has ended" {
		t.Error(err)
	}
	if err := d.refusal("/subagents steer one too late"); !goclaw.IsBadRequest(err) || err.Error() != "one has ended; start another with /subagents spawn" {
		t.Error(err)
	}
	if _, err := d.Steer(ctx, turn.ID, "you", ""); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if _, err := d.Steer(ctx, one.ID, " \n", ""); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if _, err := d.Steer(ctx, "nope-nope", "x", ""); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
	if err := d.refusal("/subagents steer one"); !goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), "the message is empty") {
		t.Error(err)
	}
}

func TestSpawnOnce(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	q := goclaw.SpawnRequest{Task: "look"}
	first, err := d.Spawn(ctx, mainKey, q, "k")
	if err != nil || first.Status != "accepted" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := d.Spawn(ctx, mainKey, q, "k"); err != nil || again.RunID != first.RunID {
		t.Errorf("%+v, %v", again, err)
	}
	for key, want := range map[goclaw.SessionKey]string{
		{}:                              "the request names no session",
		goclaw.SubagentKey("main", "1"): "agent:main:subagent:1 is a worker's session; spawn on behalf of an agent's own, such as agent:main:main",
		goclaw.MainKey("third"):         `no agent "third" is configured; there are: main, second`,
	} {
		if _, err := d.Spawn(ctx, key, q, ""); !goclaw.IsBadRequest(err) || err.Error() != want {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, q := range []goclaw.SpawnRequest{{Task: "t", Thinking: "hard"}, {Task: "t", Cleanup: "burn"}} {
		if _, err := d.Spawn(ctx, mainKey, q, ""); !goclaw.IsBadRequest(err) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	d.runner.refuse = "too many"
	if r, err := d.Spawn(ctx, mainKey, q, ""); err != nil || r.Status != "forbidden" || r.Error != "too many" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWaitRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		one := d.spawn(turn, "one", goclaw.AnnounceTogether)
		two := d.spawn(turn, "two", goclaw.AnnounceTogether)
		var got goclaw.Run
		var all string
		waiters := make(chan error, 2)
		go func() {
			r, err := d.WaitRun(t.Context(), one.ID[:4])
			got = r
			waiters <- err
		}()
		go func() {
			receipt, err := d.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: "/subagents wait"})
			all = receipt.Reply
			waiters <- err
		}()
		synctest.Wait()
		began := time.Now()
		d.end(one.ID, ending{result: "r1"})
		if err := <-waiters; err != nil || got.Result != "r1" || time.Since(began) > 0 {
			t.Errorf("%+v, %v, after %s", got, err, time.Since(began))
		}
		// Another process ends the second one: no notice tells of it.
		fence := d.begin(two.ID).Fence()
		err := d.store.End(t.Context(), fence, goclaw.Ending{State: goclaw.StateFailed, Error: "broken", Batch: goclaw.Batch{
			Now: 1, Events: []goclaw.Event{{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateFailed, Error: "broken"}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-waiters; err != nil || !strings.Contains(all, "completed   one") || !strings.Contains(all, "failed      two") || time.Since(began) > time.Second {
			t.Errorf("%v after %s\n%s", err, time.Since(began), all)
		}
		if got := d.command("/subagents wait one"); !strings.Contains(got, "completed   one") {
			t.Error(got)
		}
		if got := d.command("/subagents wait"); got != "No worker is under way." {
			t.Error(got)
		}
	})
}

func TestWaitRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		turn := d.say("go")
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := d.WaitRun(ctx, turn.ID)
			done <- err
		}()
		synctest.Wait()
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Error(err)
		}
		if _, err := d.WaitRun(t.Context(), "nope-nope"); !errors.Is(err, goclaw.ErrNotFound) {
			t.Error(err)
		}
	})
}

// A worker that waits for a person does not hold up who waits for all.
func TestWaitForAPerson(t *testing.T) {
	d := newDesk(t)
	turn := d.say("go")
	d.begin(turn.ID)
	ask := d.begin(d.spawn(turn, "ask", goclaw.AnnounceTogether).ID)
	if err := d.refusal("/subagents resume ask"); !goclaw.IsBadRequest(err) || err.Error() != "run 0002-run does not wait for you: it is running" {
		t.Error(err)
	}
	d.suspend(ask, goclaw.WaitPerson)
	if got := d.command("/subagents wait"); !strings.Contains(got, "waiting     ask") || !strings.Contains(got, "waiting for you: resume or cancel it") {
		t.Error(got)
	}
	if got := d.command("/subagents resume ask"); got != "ask goes on." {
		t.Error(got)
	}
	d.begin(ask.ID)
	if _, err := d.Resume(t.Context(), "nope-nope"); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
}

func TestPositions(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	first := d.say("go")
	one := d.spawn(first, "one", goclaw.AnnounceTogether)
	d.begin(first.ID)
	d.begin(one.ID)
	second, third := d.say("second"), d.say("third")
	two, three := d.spawn(first, "two", goclaw.AnnounceTogether), d.spawn(first, "three", goclaw.AnnounceTogether)
	runs, err := d.Runs(ctx, goclaw.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	places, err := d.Positions(ctx, runs)
	want := map[string]int{second.ID: 1, third.ID: 2, two.ID: 1, three.ID: 2}
	if diff := cmp.Diff(want, places); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got := d.command("/subagents"); !strings.Contains(got, "queued #2   three") || !strings.Contains(got, "running     one") {
		t.Error(got)
	}
	if got := d.command("/subagents info two"); !strings.Contains(got, "status     queued #1") {
		t.Error(got)
	}
}

func TestParked(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	turn := d.say("go")
	one, two := d.spawn(turn, "one", goclaw.AnnounceTogether), d.spawn(turn, "two", goclaw.AnnounceTogether)
	other := d.spawn(goclaw.Run{ID: "x", Session: goclaw.MainKey("second")}, "other", goclaw.AnnounceTogether)
	for _, r := range []goclaw.Run{one, two, other} {
		d.end(r.ID, ending{result: "result of " + r.Label})
		d.park(r.ID, "HTTP 529 overloaded")
	}
	if all, err := d.Parked(ctx); err != nil || len(all) != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	got := d.command("/subagents parked")
	if !strings.Contains(got, one.ID) || !strings.Contains(got, "result of one") || !strings.Contains(got, "HTTP 529") || strings.Contains(got, "other") {
		t.Errorf("want this chat's parked results, got\n%s", got)
	}
	if got := d.command("/subagents"); !strings.Contains(got, "\n2 results could not be told and are parked: /subagents parked") {
		t.Error(got)
	}
	if got := d.command("/subagents retry " + one.ID[:4]); got != "It is tried again." {
		t.Error(got)
	}
	if got := d.command("/subagents dismiss " + two.ID); got != "It will not be told." {
		t.Error(got)
	}
	if items, err := d.store.Pending(ctx, mainKey); err != nil || len(items) != 1 || items[0].Source != one.ID {
		t.Errorf("%+v, %v", items, err)
	}
	for _, id := range []string{two.ID, other.ID, "nope-nope", "0"} {
		if err := d.refusal("/subagents retry " + id); !errors.Is(err, goclaw.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := d.refusal("/subagents dismiss"); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if p, err := d.DismissParked(ctx, other.ID); err != nil || p.ID != other.ID {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := d.RetryParked(ctx, other.ID); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
	if got := d.command("/subagents parked"); got != "Nothing is parked." {
		t.Error(got)
	}
}

func TestPauseAndResume(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	if got := d.command("/resume"); got != "Nothing was paused." {
		t.Error(got)
	}
	if got := d.command("/pause the bill\nis high"); !strings.HasPrefix(got, "No model is called since ") || !strings.HasSuffix(got, " (the bill is high); /resume goes on.") {
		t.Error(got)
	}
	p, err := d.Paused(ctx)
	if err != nil || p.At == 0 || p.Why != "the bill\nis high" {
		t.Errorf("%+v, %v", p, err)
	}
	d.state.Paused, d.state.Parked = p, 2
	d.state.Recovered = []goclaw.RunInfo{{Label: "one", Recovery: &goclaw.Recovery{Times: 2, Step: 5, Uncertain: []string{"exec"}}}}
	got := d.command("/status")
	for _, want := range []string{"(the bill is high); /resume goes on", "2 deliveries are parked (goclaw subagent list --parked)", "one: resumed 2x, last at step 5; outcome of exec unknown"} {
		if !strings.Contains(got, want) {
			t.Errorf("/status lacks %q:\n%s", want, got)
		}
	}
	if err := d.refusal("/resume one"); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if got := d.command("/resume"); got != "Going on: models are called again." {
		t.Error(got)
	}
	if p, err := d.Paused(ctx); err != nil || p != (goclaw.Pause{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestStopAll(t *testing.T) {
	d := newDesk(t)
	turn := d.say("go")
	d.begin(turn.ID)
	one := d.spawn(turn, "one", goclaw.AnnounceTogether)
	inner := d.spawn(one, "inner", goclaw.AnnounceTogether)
	two := d.spawn(turn, "two", goclaw.AnnounceTogether)
	if got := d.command("/stop"); got != "Stopped. 2 workers are still under way: one, two. Stop them too with /stop all, or let them go on." {
		t.Error(got)
	}
	if got := d.command("/stop all"); got != "Stopped, with 3 workers." {
		t.Error(got)
	}
	for _, r := range []goclaw.Run{turn, one, inner, two} {
		if r, err := d.store.Run(t.Context(), r.ID); err != nil || r.CancelAt == 0 || r.CancelWhy != "stopped by the user" {
			t.Errorf("%+v, %v", r, err)
		}
		d.end(r.ID, ending{state: goclaw.StateCancelled})
	}
	if got := d.command("/stop all"); got != "Nothing was under way." {
		t.Error(got)
	}
}

func TestUsage(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	if got := d.command("/usage"); got != "No model calls on record." {
		t.Error(got)
	}
	turn := d.say("go")
	r := d.begin(turn.ID)
	cost := 0.5
	d.append(r, goclaw.Batch{Day: time.Now().Format(time.DateOnly), Events: []goclaw.Event{
		{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Model: "small", Usage: goclaw.Usage{Input: 100, Output: 10, CacheRead: 40, CacheWrite: 25, CostUSD: &cost}}},
	}})
	if got := d.command("/usage"); !strings.Contains(got, "40%") || !strings.Contains(got, "25%") || !strings.Contains(got, "$0.5000") {
		t.Error(got)
	}
	// Any run of the tree names it.
	one := d.spawn(r, "one", goclaw.AnnounceTogether)
	for _, id := range []string{turn.ID, one.ID} {
		rows, err := d.Usage(ctx, goclaw.UsageQuery{Tree: id})
		if err != nil || len(rows) != 1 || rows[0].Calls != 1 || *rows[0].CacheReadShare != 0.4 || *rows[0].CacheWriteShare != 0.25 {
			t.Errorf("%s: %+v, %v", id, rows, err)
		}
	}
	if _, err := d.Usage(ctx, goclaw.UsageQuery{Since: "yesterday"}); !goclaw.IsBadRequest(err) {
		t.Error(err)
	}
	if _, err := d.Usage(ctx, goclaw.UsageQuery{Tree: "nope-nope"}); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
}

// A flow with a mistake is answered with its places; a good one is started.
func TestRunFlow(t *testing.T) {
	d := newDesk(t)
	good := "name: two\nsteps:\n  - {id: a, task: first}\n  - {id: b, task: second}\n"
	for _, tc := range []struct {
		key        goclaw.SessionKey
		text, want string
	}{
		{mainKey, good, ""},
		{mainKey, "name: two\nsteps:\n  - {id: a, tusk: first}\n", "two.yaml:3:13: "},
		{goclaw.SubagentKey("main", "1"), good, "on behalf of an agent's own session"},
		{goclaw.MainKey("nobody"), good, `no agent "nobody" is configured`},
	} {
		reply, err := d.Gateway.RunFlow(t.Context(), tc.key, "two.yaml", tc.text, nil, "")
		switch {
		case tc.want == "" && (err != nil || reply.RunID == ""):
			t.Errorf("%+v, %v", reply, err)
		case tc.want != "" && (!goclaw.IsBadRequest(err) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%v; want %q", err, tc.want)
		}
	}
}

func TestAKeyIsOfOneRequest(t *testing.T) {
	d := newDesk(t)
	say := func(text, digest string) error {
		_, err := d.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: text, Key: "k", Digest: digest})
		return err
	}
	if err := errors.Join(say("a", "1"), say("a", "1"), say("a", "")); err != nil {
		t.Error(err)
	}
	if err := say("b", "2"); !errors.Is(err, goclaw.ErrReused) {
		t.Errorf("another message: %v", err)
	}
	spawn := func(digest string) error {
		_, err := d.Spawn(t.Context(), mainKey, goclaw.SpawnRequest{Task: "t", Digest: digest}, "k")
		return err
	}
	if err := errors.Join(spawn("1"), spawn("1")); err != nil {
		t.Error(err)
	}
	if err := spawn("2"); !errors.Is(err, goclaw.ErrReused) {
		t.Errorf("another worker: %v", err)
	}
	d = newDesk(t)
	worker := d.spawn(d.begin(d.say("go").ID), "w", goclaw.AnnounceNone)
	steer := func(text string) error {
		_, err := d.Steer(t.Context(), worker.ID, text, "k")
		return err
	}
	if err := errors.Join(steer("left"), steer("left")); err != nil {
		t.Error(err)
	}
	if err := steer("right"); !errors.Is(err, goclaw.ErrReused) {
		t.Errorf("another word to it, still pending: %v", err)
	}
	run := d.begin(worker.ID)
	item := "steer:user:" + run.ID + ":k"
	d.append(run, goclaw.Batch{Consume: []string{item}, Events: []goclaw.Event{
		{Kind: goclaw.EventInput, Input: &goclaw.InputEvent{Message: goclaw.Text(goclaw.RoleUser, "go left"), Inbox: []string{item}}},
	}})
	if err := steer("left"); err != nil {
		t.Error(err)
	}
	if err := steer("right"); !errors.Is(err, goclaw.ErrReused) {
		t.Errorf("another word to it, read: %v", err)
	}
}

func TestResetSession(t *testing.T) {
	d := newDesk(t)
	run := d.end(d.say("hello").ID, ending{result: "hi"})
	s, err := d.ResetSession(t.Context(), mainKey)
	if err != nil || s.Key != mainKey || s.ResetAt < run.Ordinal {
		t.Errorf("%+v, %v", s, err)
	}
	for _, key := range []goclaw.SessionKey{goclaw.SubagentKey("main", "x"), goclaw.MainKey("nobody")} {
		if _, err := d.ResetSession(t.Context(), key); !goclaw.IsBadRequest(err) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
