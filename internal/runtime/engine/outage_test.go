package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/runtime/engine"
)

// absent is a store that can't be reached while away is set. Every method that
// a running engine uses fails then.
type absent struct {
	engine.Store
	away *atomic.Bool
}

var errAway = errors.New("database is away")

func (a absent) err() error {
	if a.away.Load() {
		return errAway
	}
	return nil
}

func reach[V any](a absent, f func() (V, error)) (V, error) {
	if err := a.err(); err != nil {
		var none V
		return none, err
	}
	return f()
}

func (a absent) Accept(ctx context.Context, q goclaw.Acceptance) (goclaw.Run, bool, error) {
	if err := a.err(); err != nil {
		return goclaw.Run{}, false, err
	}
	return a.Store.Accept(ctx, q)
}

func (a absent) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	return reach(a, func() ([]goclaw.Claimed, error) { return a.Store.Claim(ctx, c) })
}

func (a absent) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error) {
	return reach(a, func() (goclaw.Pulse, error) { return a.Store.Heartbeat(ctx, h) })
}

func (a absent) Events(ctx context.Context, run string) ([]goclaw.Event, error) {
	return reach(a, func() ([]goclaw.Event, error) { return a.Store.Events(ctx, run) })
}

func (a absent) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	_, err := reach(a, func() (any, error) { return nil, a.Store.Append(ctx, f, b) })
	return err
}

func (a absent) End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error {
	_, err := reach(a, func() (any, error) { return nil, a.Store.End(ctx, f, e) })
	return err
}

func (a absent) Pending(ctx context.Context, key goclaw.SessionKey) ([]goclaw.InboxItem, error) {
	return reach(a, func() ([]goclaw.InboxItem, error) { return a.Store.Pending(ctx, key) })
}

func (a absent) Paused(ctx context.Context) (goclaw.Pause, error) {
	return reach(a, func() (goclaw.Pause, error) { return a.Store.Paused(ctx) })
}

func (a absent) History(ctx context.Context, key goclaw.SessionKey, before int64) ([]goclaw.RunLog, error) {
	return reach(a, func() ([]goclaw.RunLog, error) { return a.Store.History(ctx, key, before) })
}

// A database that is away in the middle of everything ends no run: steps,
// reads, spawns and ends are tried again, and nothing is done twice.
func TestADatabaseThatIsAwayEndsNoRun(t *testing.T) {
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { outage(t, after) })
		})
	}
}

func outage(t *testing.T, after time.Duration) {
	var away atomic.Bool
	ran := 0
	note := newTool("append", false, func(ctx context.Context, _ goclaw.Invocation) goclaw.ToolResult {
		ran++
		_ = sleep(ctx, time.Second)
		return goclaw.ToolOK("done")
	})
	think := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
		if err := sleep(ctx, time.Second); err != nil {
			return goclaw.ModelReply{}, err
		}
		if isWorker(q) && len(q.Messages) == 1 {
			return calls(goclaw.ToolCall{Name: "append", Arguments: `{}`})
		}
		return spawning([]string{"w"}, func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text("result") })(ctx, q)
	}
	base := newRig(t, rigOptions{brain: think}).store
	r := newRig(t, rigOptions{store: absent{base, &away}, brain: think, tools: []goclaw.Tool{note}})
	defer r.start(t.Context())()
	r.say("go")
	<-time.After(after)
	away.Store(true)
	<-time.After(40 * time.Second)
	away.Store(false)
	is(t, r.settle(), "user completed", "spawn completed w: result", "announcement completed")
	if ran != 1 {
		t.Errorf("the tool ran %d times", ran)
	}
	if n := len(r.transcriptTexts(t, goclaw.MainKey("main"), "[Subagent: w] Complete.")); n != 1 {
		t.Errorf("announced %d times", n)
	}
}
