package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/runtime/engine"
)

// frozen is a store as a stopped process sees it: calls made while it is
// frozen go through only when it thaws.
type frozen struct {
	engine.Store
	mu   sync.Mutex
	thaw chan struct{} // nil while it is not frozen
}

func (f *frozen) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.thaw = make(chan struct{})
}

func (f *frozen) melt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.thaw)
	f.thaw = nil
}

func (f *frozen) wait() {
	f.mu.Lock()
	thaw := f.thaw
	f.mu.Unlock()
	if thaw != nil {
		<-thaw
	}
}

func (f *frozen) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	f.wait()
	return f.Store.Claim(ctx, c)
}

func (f *frozen) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error) {
	f.wait()
	return f.Store.Heartbeat(ctx, h)
}

func (f *frozen) Append(ctx context.Context, fe goclaw.Fence, b goclaw.Batch) error {
	f.wait()
	return f.Store.Append(ctx, fe, b)
}

func (f *frozen) End(ctx context.Context, fe goclaw.Fence, e goclaw.Ending) error {
	f.wait()
	return f.Store.End(ctx, fe, e)
}

// A process is frozen longer than its lease while its worker runs a tool with
// side effects. Another takes the run over, tells the model that the outcome is
// unknown, and ends it. What the zombie writes afterwards is refused.
func TestZombieWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		ice := &frozen{Store: store}
		effects := 0
		appendTool := newTool("append", false, func(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
			effects++
			if err := sleep(ctx, 3*time.Second); err != nil {
				return goclaw.ToolError("stopped")
			}
			return goclaw.ToolOK("appended")
		})
		mind := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := q.Messages[len(q.Messages)-1]
			switch {
			case isWorker(q) && len(q.Messages) == 1:
				return calls(goclaw.ToolCall{Name: "append", Arguments: `{"text":"x"}`})
			case isWorker(q):
				return text("the call said: " + last.Parts[0].Result.Content)
			case strings.Contains(lastText(q), "go"):
				return calls(spawnCall("w"))
			}
			return text("ok")
		}
		a := newRig(t, rigOptions{store: ice, owner: "a", brain: mind, tools: []goclaw.Tool{appendTool}})
		stopA := a.start(t.Context())
		a.say("go")
		time.Sleep(time.Second)
		ice.freeze()
		b := newRig(t, rigOptions{store: store, owner: "b", brain: mind, tools: []goclaw.Tool{appendTool}})
		stopB := b.start(t.Context())
		began := time.Now()
		b.settle()
		if took := time.Since(began); took > 17*time.Second {
			t.Errorf("the takeover took %s; the lease is 15 s", took)
		}
		ice.melt()
		time.Sleep(30 * time.Second)
		stopA()
		stopB()
		if effects != 1 {
			t.Errorf("the effect happened %d times", effects)
		}
		w := workerNamed(t, b, "w")
		if !strings.Contains(w.Result, "outcome is unknown") || w.Epoch != 2 {
			t.Errorf("the model was told %q in epoch %d", w.Result, w.Epoch)
		}
		events, err := store.Events(t.Context(), w.ID)
		if err != nil {
			t.Fatal(err)
		}
		ends := 0
		for _, e := range events {
			if e.Kind == goclaw.EventEnd {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("%d ends", ends)
		}
	})
}

// A stop in the middle lets go of the runs at once, and a recorded step is not
// done again.
func TestStopAndStartGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		reads := 0
		read := newTool("read_note", true, func(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
			reads++
			return goclaw.ToolOK("note")
		})
		paid := 0
		mind := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if len(q.Messages) == 1 {
				paid++
				return calls(goclaw.ToolCall{Name: "read_note"})
			}
			return reply(sleep(ctx, 10*time.Second), "done")
		}
		a := newRig(t, rigOptions{store: store, owner: "a", brain: mind, tools: []goclaw.Tool{read}})
		stop := a.start(t.Context())
		a.say("go")
		time.Sleep(3 * time.Second)
		stop()
		runs, err := store.Runs(t.Context(), goclaw.RunFilter{})
		if err != nil || runs[0].State != goclaw.StateInterrupted {
			t.Fatalf("after the stop the run is %s (%v)", runs[0].State, err)
		}
		b := newRig(t, rigOptions{store: store, owner: "b", brain: mind, tools: []goclaw.Tool{read}})
		defer b.start(t.Context())()
		began := time.Now()
		runs = b.settle()
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("going on took %s", took)
		}
		if runs[0].State != goclaw.StateCompleted || paid != 1 || reads != 1 {
			t.Errorf("%s; the first call was paid %d times, the tool ran %d times", runs[0].State, paid, reads)
		}
		if b.engine.Resumed() != 1 {
			t.Errorf("resumed %d", b.engine.Resumed())
		}
	})
}

// hasty calls after for every run that a claim has taken, before the claimer
// gets to know.
type hasty struct {
	engine.Store
	after func(goclaw.Run)
}

func (h *hasty) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	claimed, err := h.Store.Claim(ctx, c)
	for _, one := range claimed {
		h.after(one.Run)
	}
	return claimed, err
}

// A cancellation between a claim and the start of its job reaches the job.
func TestCancelBetweenClaimAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hasty{Store: memory.Open()}
		r := newRig(t, rigOptions{store: store, brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) {
			t.Error("the model was called")
			return text("too late")
		}})
		store.after = func(run goclaw.Run) {
			if _, err := r.engine.Cancel(t.Context(), run.ID, "at once", true); err != nil {
				t.Error(err)
			}
		}
		defer r.start(t.Context())()
		run := r.say("go")
		time.Sleep(10 * time.Millisecond) // not until the next sweep
		got, err := store.Run(t.Context(), run.ID)
		if err != nil || got.State != goclaw.StateCancelled || got.Error != "at once" {
			t.Errorf("the run is %s, %q (%v)", got.State, got.Error, err)
		}
	})
}
