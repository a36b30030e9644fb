package web_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goclaw"
	"goclaw/internal/edge/client"
)

// same checks one answer.
func same(t *testing.T, name string, want, got any, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(goclaw.SpawnRequest{}, "Digest")); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestWorkersRoundTrip(t *testing.T) {
	run, done := worker("w/1?", mainKey), worker("done", mainKey)
	done.State = goclaw.StateCompleted
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		f := &fake{
			logs:   map[string]goclaw.RunLog{run.ID: {Run: run}, done.ID: {Run: done}},
			runs:   func(goclaw.RunFilter) []goclaw.Run { return []goclaw.Run{run, done} },
			places: map[string]int{run.ID: 3},
		}
		c, ctx := connect(gateway(f)), t.Context()
		placed, err := c.Placed(ctx, goclaw.RunFilter{})
		same(t, "Placed", []client.Placed{{Run: run, Position: 3}, {Run: done}}, placed, err)
		same(t, "Info", 3, placed[0].Info().Position, nil)
		runs, err := c.Runs(ctx, goclaw.RunFilter{})
		same(t, "Runs", []goclaw.Run{run, done}, runs, err)
		one, err := c.Run(ctx, run.ID)
		same(t, "Run", placed[0], one, err)
		got, err := c.WaitRun(ctx, run.ID)
		same(t, "WaitRun", run, got, err)

		f.asked = nil
		seconds := 5
		q := goclaw.SpawnRequest{
			Task: "t", Context: "c", Label: "l", Model: "m", Thinking: "low", TimeoutSeconds: &seconds,
			Cleanup: goclaw.CleanupDelete, Agent: "a", AgentID: "b",
		}
		reply, err := c.Spawn(ctx, goclaw.SessionKey{}, q, "k1")
		same(t, "Spawn", goclaw.SpawnReply{Status: "accepted", RunID: "w1", SessionKey: "agent:main:subagent:1"}, reply, err)
		got, err = c.Steer(ctx, run.ID, "mind the gap", "k2")
		same(t, "Steer", run, got, err)
		got, err = c.Resume(ctx, run.ID)
		same(t, "Resume", run, got, err)
		same(t, "asked", []any{[]any{mainKey, q, "k1"}, [3]string{run.ID, "mind the gap", "k2"}}, f.asked, nil)

		_, err = c.Steer(ctx, done.ID, "too late", "")
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 409 || !errors.Is(err, goclaw.ErrEnded) {
			t.Error(err)
		}
		f.refusal = goclaw.Forbidden("too many")
		_, err = c.Spawn(ctx, mainKey, q, "")
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 403 || e.Detail != "too many" {
			t.Error(err)
		}
		f.refusal = goclaw.Failed("no such model")
		if _, err = c.Spawn(ctx, mainKey, q, ""); !goclaw.IsBadRequest(err) || err.Error() != "spawn: no such model" {
			t.Error(err)
		}
	})
}

func TestSpawnIsAccepted(t *testing.T) {
	h := gateway(&fake{})
	w := ask(h, "POST", "/api/runs", `{"task":"t"}`, map[string]string{"Idempotency-Key": "k"})
	if w.Code != 202 || w.Body.String() != `{"status":"accepted","runId":"w1","sessionKey":"agent:main:subagent:1"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestWaitRunPollsUntilTheEnd(t *testing.T) {
	synctestRun(t, func(t *testing.T) {
		begun, polls := time.Now(), 0
		f := &fake{wait: func(ctx context.Context, _ string) (goclaw.Run, error) {
			polls++
			select {
			case <-ctx.Done():
				return goclaw.Run{}, ctx.Err()
			case <-time.After(150*time.Second - time.Since(begun)):
				return goclaw.Run{ID: "r", State: goclaw.StateFailed}, nil
			}
		}}
		h := gateway(f)
		run, err := client.InProcess(h, token).WaitRun(t.Context(), "r")
		if err != nil || run.State != goclaw.StateFailed || polls != 3 {
			t.Errorf("%+v, %v after %d", run, err, polls)
		}
		begun = time.Now()
		if w := ask(h, "GET", "/api/runs/r/wait?timeout=5", "", nil); w.Code != 204 || time.Since(begun) != 5*time.Second {
			t.Errorf("%d after %s", w.Code, time.Since(begun))
		}
	})
}

func TestBooksRoundTrip(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		f := &fake{parked: []goclaw.Parked{{ID: "steer:a/b", Kind: "announcement", Session: mainKey, Run: "r", Text: "<hi>", Attempts: 3, Error: "e", ParkedAt: 9}}}
		c, ctx := connect(gateway(f)), t.Context()
		parked, err := c.Parked(ctx)
		same(t, "Parked", f.parked, parked, err)
		one, err := c.RetryParked(ctx, "steer:a/b")
		same(t, "RetryParked", f.parked[0], one, err)
		one, err = c.DismissParked(ctx, "steer:a/b")
		same(t, "DismissParked", f.parked[0], one, err)
		if _, err := c.DismissParked(ctx, "nope"); !errors.Is(err, goclaw.ErrNotFound) {
			t.Error(err)
		}
		q := goclaw.UsageQuery{By: []string{"agent", "model"}, Since: "2026-01-02", Until: "2026-01-03", Agent: "main", Tree: "t"}
		rows, err := c.Usage(ctx, q)
		same(t, "Usage", []goclaw.UsageRow{{Model: "m", Calls: 2, Unpriced: 2}}, rows, err)
		same(t, "asked", []any{[2]string{"retry", "steer:a/b"}, [2]string{"dismiss", "steer:a/b"}, [2]string{"dismiss", "nope"}, q}, f.asked, nil)

		pause, err := c.SetPause(ctx, true, "the bill")
		same(t, "SetPause", goclaw.Pause{At: 7, Why: "the bill"}, pause, err)
		pause, err = c.Paused(ctx)
		same(t, "Paused", goclaw.Pause{At: 7, Why: "the bill"}, pause, err)
		pause, err = c.SetPause(ctx, false, "")
		same(t, "SetPause", goclaw.Pause{}, pause, err)
		same(t, "pause", goclaw.Pause{}, f.pause, nil)
	})
	if w := ask(gateway(&fake{}), "PUT", "/api/pause", "", nil); w.Code != 200 || w.Body.String() != `{"at":7}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
