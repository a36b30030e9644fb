package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/core/definition"
)

// deep lets workers have workers.
func deep(r *definition.Rules) {
	a := r.Agents["main"]
	a.Subagents.MaxSpawnDepth = 2
	r.Agents["main"] = a
	r.WorkerTools = append(r.WorkerTools, "read_note")
}

// many lets a session have any number of workers.
func many(r *definition.Rules) {
	a := r.Agents["main"]
	a.Subagents.MaxChildren = 10_000
	r.Agents["main"] = a
}

func task(q goclaw.ModelRequest) string {
	_, t, _ := strings.Cut(q.Messages[0].PlainText(), "[Subagent Task]: ")
	return t
}

func shown(runs []goclaw.Run) []string {
	var all []string
	for _, r := range runs {
		line := string(r.Trigger) + " " + string(r.State)
		if r.Trigger == goclaw.TriggerSpawn {
			line += " " + r.Label + ": " + r.Result
		}
		all = append(all, line)
	}
	return all
}

func is(t *testing.T, got []goclaw.Run, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, shown(got)); diff != "" {
		t.Error(diff)
	}
}

// An orchestrator gives its only slot back while it waits for its own workers,
// takes both results in one message, and only its own result goes up.
func TestOrchestratorWaitsWithoutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{rules: deep, maxWorkers: 1, brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case !isWorker(q) && strings.Contains(last, "go"):
				return calls(spawnCall("lead"))
			case !isWorker(q):
				return text("told")
			case task(q) == "lead" && strings.Contains(last, "[Subagent:"):
				return text("sum of " + last)
			case task(q) == "lead" && len(q.Messages) == 1:
				return calls(spawnCall("a"), spawnCall("b"))
			case task(q) == "lead":
				return text("waiting for a and b")
			}
			if err := sleep(ctx, 3*time.Second); err != nil {
				return goclaw.ModelReply{}, err
			}
			return text("result of " + task(q))
		}})
		defer r.start(t.Context())()
		r.say("go")
		runs := r.settle()
		if len(runs) != 5 {
			t.Fatalf("runs: %q", shown(runs))
		}
		lead := runs[1].Result
		for _, w := range []string{"result of a", "result of b"} {
			if strings.Count(lead, w) != 1 {
				t.Errorf("%q is not once in %q", w, lead)
			}
		}
		is(t, runs, "user completed", "spawn completed lead: "+lead, "spawn completed a: result of a", "spawn completed b: result of b", "announcement completed")
		var told string
		for _, q := range r.asked(false) {
			told = lastText(q)
		}
		if strings.Count(told, "[Subagent: lead] Complete.") != 1 || strings.Contains(told, "[Subagent: a] Complete.\n\nresult of a\n\n(3s") && !strings.Contains(told, "sum of") {
			t.Errorf("the main agent was told %q", told)
		}
		for _, run := range runs {
			if run.Root != runs[0].ID || run.Lane != goclaw.MainKey("main") {
				t.Errorf("%s %s is of tree %s, lane %s", run.Trigger, run.Label, run.Root, run.Lane)
			}
		}
	})
}

// What an orchestrator's workers bring while it still works reaches it between
// its steps; it never has to wait for it.
func TestResultsReachAWorkingOrchestrator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := newTool("read_note", true, func(ctx context.Context, _ goclaw.Invocation) goclaw.ToolResult {
			_ = sleep(ctx, 10*time.Second)
			return goclaw.ToolOK("note")
		})
		r := newRig(t, rigOptions{rules: deep, tools: []goclaw.Tool{note}, brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case !isWorker(q) && strings.Contains(last, "go"):
				return calls(spawnCall("lead"))
			case !isWorker(q):
				return text("told")
			case task(q) == "lead" && len(q.Messages) == 1:
				return calls(spawnCall("a"))
			case task(q) == "lead" && len(q.Messages) == 3:
				return calls(goclaw.ToolCall{Name: "read_note", Arguments: `{}`})
			case task(q) == "lead":
				return text("final after " + last)
			}
			return text("result of a")
		}})
		defer r.start(t.Context())()
		r.say("go")
		runs := r.settle()
		if got := runs[1].Result; !strings.Contains(got, "final after [Subagent: a] Complete.") {
			t.Errorf("lead said %q", got)
		}
	})
}

func TestSteerReachesAWorkerBetweenItsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := newTool("read_note", true, func(ctx context.Context, _ goclaw.Invocation) goclaw.ToolResult {
			_ = sleep(ctx, 10*time.Second)
			return goclaw.ToolOK("note")
		})
		r := newRig(t, rigOptions{tools: []goclaw.Tool{note}, brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			switch last := lastText(q); {
			case !isWorker(q) && strings.Contains(last, "go"):
				return calls(spawnCall("w"))
			case !isWorker(q):
				return text("told")
			case len(q.Messages) == 1:
				return calls(goclaw.ToolCall{Name: "read_note", Arguments: `{}`})
			default:
				return text("heard: " + last)
			}
		}})
		defer r.start(t.Context())()
		main := r.say("go")
		<-time.After(2 * time.Second)
		workers, err := r.store.Runs(t.Context(), goclaw.RunFilter{Parent: main.ID})
		if err != nil || len(workers) != 1 {
			t.Fatal(workers, err)
		}
		for range 2 { // the same message twice, as after a crash of the sender
			if _, err := r.engine.Steer(t.Context(), workers[0].ID, "only the south", "the user", "key"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.engine.Steer(t.Context(), main.ID, "x", "the user", ""); !goclaw.IsBadRequest(err) {
			t.Errorf("steering a turn: %v", err)
		}
		runs := r.settle()
		if got, want := runs[1].Result, "heard: [Message from the user]: only the south"; got != want {
			t.Errorf("the worker answered %q, want %q", got, want)
		}
		if _, err := r.engine.Steer(t.Context(), workers[0].ID, "late", "the user", ""); !errors.Is(err, goclaw.ErrEnded) {
			t.Errorf("steering an ended worker: %v", err)
		}
	})
}

// A message that comes while the worker's last reply is on its way is answered
// before it ends; a waiting orchestrator is woken by one.
func TestSteerDuringTheLastReplyAndWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{rules: deep, brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case !isWorker(q) && strings.Contains(last, "go"):
				return calls(spawnCall("lead"))
			case !isWorker(q):
				return text("told")
			case task(q) == "lead" && len(q.Messages) == 1:
				return calls(spawnCall("a"))
			case task(q) == "lead" && strings.Contains(last, "[Message"), task(q) == "lead" && strings.Contains(last, "[Subagent:"):
				return text("heard " + last)
			case task(q) == "lead":
				return text("waiting")
			}
			if err := sleep(ctx, 20*time.Second); err != nil {
				return goclaw.ModelReply{}, err
			}
			return text("a, after " + last)
		}})
		defer r.start(t.Context())()
		main := r.say("go")
		<-time.After(5 * time.Second)
		lead := r.children(main.ID)[0]
		if lead.State != goclaw.StateWaiting || lead.WaitsFor != goclaw.WaitWorkers || lead.Owner != "" {
			t.Errorf("lead is %s for %q, owner %q", lead.State, lead.WaitsFor, lead.Owner)
		}
		a := r.children(lead.ID)[0]
		for _, id := range []string{lead.ID, a.ID} {
			if _, err := r.engine.Steer(t.Context(), id, "to "+id, "the user", ""); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Second)
		var heard bool
		for _, q := range r.asked(true) {
			heard = heard || task(q) == "lead" && strings.Contains(lastText(q), "to "+lead.ID)
		}
		if !heard {
			t.Error("the waiting orchestrator did not hear the message")
		}
		runs := r.settle()
		if got := runs[2].Result; !strings.Contains(got, "to "+a.ID) {
			t.Errorf("a said %q", got)
		}
		if n := len(r.transcriptTexts(t, lead.Session, "[Subagent: a]")); n != 1 {
			t.Errorf("a was announced to lead %d times", n)
		}
	})
}

// A cancelled run never wakes again, whatever is queued for it: its workers
// end with it, their results and its own go up, once each.
func TestCancelledOrchestratorStaysCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{rules: deep, brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case !isWorker(q) && strings.Contains(last, "go"):
				return calls(spawnCall("lead"))
			case !isWorker(q):
				return text("told")
			case task(q) == "lead" && len(q.Messages) == 1:
				return calls(spawnCall("quick"), spawnCall("slow"))
			case task(q) == "lead":
				return text("waiting")
			case task(q) == "quick":
				return text("quick result")
			}
			if err := sleep(ctx, time.Hour); err != nil {
				return goclaw.ModelReply{}, err
			}
			return text("never")
		}})
		defer r.start(t.Context())()
		main := r.say("go")
		<-time.After(5 * time.Second)
		lead := r.children(main.ID)[0]
		before := len(r.asked(true))
		if _, err := r.engine.Cancel(t.Context(), lead.ID, "enough", true); err != nil {
			t.Fatal(err)
		}
		runs := r.settle()
		is(t, runs[:4], "user completed", "spawn cancelled lead: waiting", "spawn completed quick: quick result", "spawn cancelled slow: ")
		if after := len(r.asked(true)); after != before {
			t.Errorf("%d model calls of workers after the cancellation", after-before)
		}
		told := strings.Join(r.transcriptTexts(t, goclaw.MainKey("main"), "[Subagent:"), "\n")
		for _, w := range []string{"[Subagent: lead] Cancelled", "[Subagent: slow] Cancelled", "[Subagent: quick] Complete."} {
			if strings.Count(told, w) != 1 {
				t.Errorf("%q is %d times in %q", w, strings.Count(told, w), told)
			}
		}
	})
}

// children are the runs that a run spawned, oldest first.
func (r *rig) children(parent string) []goclaw.Run {
	r.t.Helper()
	runs, err := r.store.Runs(r.t.Context(), goclaw.RunFilter{Parent: parent})
	if err != nil {
		r.t.Fatal(err)
	}
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	return runs
}

// transcriptTexts are the user messages of a session's transcript that hold a
// text, in order.
func (r *rig) transcriptTexts(t *testing.T, key goclaw.SessionKey, holds string) []string {
	t.Helper()
	logs, err := r.store.History(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range logs {
		for _, e := range l.Events {
			var text string
			switch {
			case e.Prompt != nil:
				text = e.Prompt.Input.PlainText()
			case e.Input != nil:
				text = e.Input.Message.PlainText()
			}
			if strings.Contains(text, holds) {
				all = append(all, text)
			}
		}
	}
	return all
}
