package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/store/memory"
)

// The clock of the process that accepted an announcement turn is ahead of the
// one that executes it: the turn takes what it was accepted for.
func TestAnnouncementUnderClocksThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store, now := t.Context(), memory.Open(), goclaw.At(time.Now())
		r := newRig(t, rigOptions{store: store, brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text("told") }})
		key := goclaw.MainKey("main")
		profile, err := r.engine.Explain(ctx, goclaw.ContextQuery{Session: key})
		if err != nil {
			t.Fatal(err)
		}
		accept := func(run goclaw.Run) {
			t.Helper()
			run.State, run.Profile = goclaw.StateQueued, goclaw.Profile{Agent: "main", Workspace: "/ws", Model: "fake/big", PromptMode: goclaw.PromptFull, Thinking: profile.Thinking}
			if _, _, err := store.Accept(ctx, goclaw.Acceptance{Run: run}); err != nil {
				t.Fatal(err)
			}
		}
		accept(goclaw.Run{ID: "worker", Session: goclaw.SubagentKey("main", "w"), Trigger: goclaw.TriggerSpawn, Requester: key,
			Announce: goclaw.AnnounceEach, Label: "w", Task: "w", CreatedAt: now})
		claimed, err := store.Claim(ctx, goclaw.ClaimRequest{Owner: "other", Now: now, Lease: time.Minute, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.End(ctx, claimed[0].Run.Fence(), goclaw.Ending{
			Batch: goclaw.Batch{Now: now, Events: []goclaw.Event{{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted}}}},
			State: goclaw.StateCompleted, Wake: &goclaw.Wake{Last: now},
			Announce: &goclaw.InboxItem{ID: "item", Kind: goclaw.ItemAnnouncement, Session: key, Source: "worker", Mode: goclaw.AnnounceEach, Text: "[Subagent: w] Complete.", CreatedAt: now},
		}); err != nil {
			t.Fatal(err)
		}
		// Over there the window of 250 ms is over.
		accept(goclaw.Run{ID: "turn", Session: key, Trigger: goclaw.TriggerAnnouncement, CreatedAt: now.Add(time.Second)})
		defer r.start(ctx)()
		turns := 0
		for _, run := range r.settle() {
			if run.Trigger == goclaw.TriggerAnnouncement {
				turns++
				if run.Result != "told" {
					t.Errorf("turn %s ended %s, and said %q", run.ID, run.State, run.Result)
				}
			}
		}
		if turns != 1 {
			t.Errorf("%d turns, want 1", turns)
		}
	})
}

// A result that was on its way to a worker, which is then cancelled, goes one
// level up: it wakes the run there that waits for other workers.
func TestRedirectedResultWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var told time.Duration
		r := newRig(t, rigOptions{
			rules: func(rules *definition.Rules) {
				main := rules.Agents["main"]
				main.Subagents.MaxSpawnDepth = 3
				rules.Agents["main"] = main
			},
			brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
				first, last := q.Messages[0].PlainText(), lastText(q)
				switch {
				case strings.Contains(first, "Task]: leaf"):
					if err := sleep(ctx, time.Second); err != nil {
						return goclaw.ModelReply{}, err
					}
					return text("result of leaf")
				case strings.Contains(first, "Task]: slow"):
					return goclaw.ModelReply{}, sleep(ctx, time.Hour)
				case strings.Contains(first, "Task]: mid") && len(q.Messages) == 1:
					return calls(spawnCall("leaf"))
				case strings.Contains(first, "Task]: mid"):
					return goclaw.ModelReply{}, sleep(ctx, time.Hour)
				case strings.Contains(first, "Task]: lead") && len(q.Messages) == 1:
					return calls(spawnCall("mid"), spawnCall("slow"))
				case strings.Contains(last, "result of leaf"):
					told = time.Since(began)
				case !isWorker(q) && len(q.Messages) == 1:
					return calls(spawnCall("lead"))
				}
				return text("I wait")
			},
		})
		defer r.start(t.Context())()
		r.say("go")
		time.Sleep(5 * time.Second) // leaf has ended, and mid is in a call
		for _, label := range []string{"mid", "slow"} {
			runs, err := r.store.Runs(t.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				if run.Label == label {
					if _, err := r.engine.Cancel(t.Context(), run.ID, "by the test", false); err != nil {
						t.Fatal(err)
					}
				}
			}
			time.Sleep(20 * time.Second)
		}
		r.settle()
		if told == 0 || told > 7*time.Second {
			t.Errorf("the result was told after %s", told)
		}
	})
}

// Of a reply's calls with side effects none is begun once the run's cancellation
// is known.
func TestCancelledRunBeginsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		made := 0
		cancels := newTool("append", false, func(_ context.Context, in goclaw.Invocation) goclaw.ToolResult {
			made++
			if _, err := r.engine.Cancel(context.WithoutCancel(t.Context()), in.Fence.Run, "enough", false); err != nil {
				t.Error(err)
			}
			return goclaw.ToolOK("appended")
		})
		r = newRig(t, rigOptions{tools: []goclaw.Tool{cancels}, brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) {
			return calls(goclaw.ToolCall{Name: "append", Arguments: "{}"}, goclaw.ToolCall{Name: "append", Arguments: "{}"})
		}})
		defer r.start(t.Context())()
		r.say("go")
		run := r.settle()[0]
		if run.State != goclaw.StateCancelled || made != 1 {
			t.Errorf("the run ended %s, %d calls were made", run.State, made)
		}
	})
}
