package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

func waitCall(args string) goclaw.ToolCall {
	return goclaw.ToolCall{ID: "wait", Name: "subagents", Arguments: args}
}

// lastResult is the newest tool result of a request.
func lastResult(q goclaw.ModelRequest) string {
	for _, p := range q.Messages[len(q.Messages)-1].Parts {
		if p.Result != nil && p.Result.Name == "subagents" {
			return p.Result.Content
		}
	}
	return ""
}

// A turn that waits for its workers holds nothing meanwhile, is told all of
// them in the call's result, and they are not announced again.
func TestWaitReturnsWhatIsThenNotAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			switch {
			case isWorker(q):
				d := 10 * time.Second
				if task(q) == "b" {
					d = 40 * time.Second
				}
				if err := sleep(ctx, d); err != nil {
					return goclaw.ModelReply{}, err
				}
				return text("result of " + task(q))
			case len(q.Messages) == 1:
				return calls(spawnCall("a"), spawnCall("b"), waitCall(`{"action":"wait"}`))
			}
			return text("waited: " + lastResult(q))
		}})
		defer r.start(t.Context())()
		main := r.say("go")
		<-time.After(20 * time.Second)
		now, err := r.store.Run(t.Context(), main.ID)
		if err != nil || now.State != goclaw.StateWaiting || now.Owner != "" {
			t.Errorf("the turn is %s of %q: %v", now.State, now.Owner, err)
		}
		for _, run := range r.settle() {
			if run.Trigger == goclaw.TriggerAnnouncement && run.Result != "" {
				t.Errorf("an announcement turn said %q", run.Result)
			}
			if run.ID == main.ID {
				for _, w := range []string{"result of a", "result of b"} {
					if strings.Count(run.Result, w) != 1 {
						t.Errorf("%q is not once in %q", w, run.Result)
					}
				}
				if took := run.FinishedAt - run.StartedAt; took > 41_000 {
					t.Errorf("the turn took %d ms, the slower worker 40 s", took)
				}
			}
		}
	})
}

// The next turn can wait for the workers of an earlier one, up to a limit, and
// a restart neither loses the wait nor puts the limit off.
func TestWaitAcrossTurnsAndRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		b := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case isWorker(q):
				if err := sleep(ctx, time.Hour); err != nil {
					return goclaw.ModelReply{}, err
				}
				return text("result")
			case lastResult(q) != "":
				return text("waited: " + lastResult(q))
			case strings.Contains(last, "go"):
				return calls(spawnCall("slow"))
			case strings.Contains(last, "wait"):
				return calls(waitCall(`{"action":"wait","id":"slow","timeoutSeconds":100}`))
			}
			return text("fine")
		}
		first := newRig(t, rigOptions{store: store, brain: b})
		stop := first.start(t.Context())
		first.say("go")
		<-time.After(time.Second)
		asked := time.Now()
		turn := first.say("please wait")
		<-time.After(30 * time.Second)
		stop()
		<-time.After(20 * time.Second)
		second := newRig(t, rigOptions{store: store, owner: "p2", brain: b})
		defer second.start(t.Context())()
		for {
			now, err := store.Run(t.Context(), turn.ID)
			if err != nil {
				t.Fatal(err)
			}
			if now.State.Ended() {
				if took := now.FinishedAt.Time().Sub(asked); took < 100*time.Second || took > 102*time.Second {
					t.Errorf("the wait took %s, want 100 s", took)
				}
				if !strings.Contains(now.Result, `"status":"timeout"`) || now.Recovery != nil {
					t.Errorf("result %q, recovery %+v", now.Result, now.Recovery)
				}
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	})
}

// Hundreds of workers of one turn that end at the same moment wake their
// requester once.
func TestHundredsOfEndsWakeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 120 {
			names = append(names, fmt.Sprintf("w%03d", i))
		}
		r := newRig(t, rigOptions{rules: many, brain: spawning(names, func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if err := sleep(ctx, time.Minute); err != nil {
				return goclaw.ModelReply{}, err
			}
			return text("done " + task(q))
		})})
		defer r.start(t.Context())()
		r.say("go")
		turns := 0
		for _, run := range r.settle() {
			if run.Trigger == goclaw.TriggerAnnouncement {
				turns++
			}
		}
		if turns != 1 {
			t.Errorf("the requester was woken %d times", turns)
		}
	})
}
