package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/core/budget"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/store/memory"
)

// spawning is a main agent that starts one worker for each name, and workers
// that do as work says.
func spawning(names []string, work brain) brain {
	return func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
		if isWorker(q) {
			return work(ctx, q)
		}
		if strings.Contains(lastText(q), "go") && len(q.Messages) == 1 {
			var all []goclaw.ToolCall
			for _, n := range names {
				all = append(all, spawnCall(n))
			}
			return calls(all...)
		}
		return text("told")
	}
}

// While the model can't be asked, announcements are put off and in the end
// parked: visible, in no transcript, and delivered once after a retry.
func TestAnnouncementsThatNobodyCanAnswerAreParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		r := newRig(t, rigOptions{brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			switch last := lastText(q); {
			case isWorker(q):
				down.Store(true)
				return text("found it")
			case down.Load() && strings.Contains(last, "[Subagent:"):
				return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: 400, Message: "no"}
			case strings.Contains(last, "go"):
				return calls(spawnCall("w"))
			}
			return text("fine")
		}})
		defer r.start(t.Context())()
		main := r.say("go")
		<-time.After(5 * time.Minute)
		parked, err := r.store.Parked(t.Context())
		if err != nil || len(parked) != 1 {
			t.Fatal(parked, err)
		}
		p := parked[0]
		if w := r.children(main.ID)[0]; p.ID != w.ID || p.Attempts != 3 || !strings.Contains(p.Error, "HTTP 400") || !strings.Contains(p.Text, "found it") {
			t.Errorf("parked: %+v", p)
		}
		attempts := 0
		for _, q := range r.asked(false) {
			if n := strings.Count(lastText(q), "found it"); n > 0 {
				attempts++
			}
			if whole := fmt.Sprint(q.Messages); strings.Count(whole, "found it") > 1 {
				t.Errorf("the model was told twice: %s", whole)
			}
		}
		if attempts != 3 {
			t.Errorf("%d attempts, want 3", attempts)
		}
		r.say("hello")
		r.settle()
		for _, q := range r.asked(false)[len(r.asked(false))-1:] {
			if strings.Contains(fmt.Sprint(q.Messages), "found it") {
				t.Error("a parked result is in the transcript")
			}
		}
		down.Store(false)
		if err := r.engine.Retry(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		r.settle()
		last := r.asked(false)[len(r.asked(false))-1]
		if n := strings.Count(fmt.Sprint(last.Messages), "found it"); n != 1 {
			t.Errorf("after the retry the result is in the request %d times", n)
		}
		if err := r.engine.Dismiss(t.Context(), p.ID); !errors.Is(err, goclaw.ErrNotFound) {
			t.Errorf("dismissing what is delivered: %v", err)
		}
	})
}

// One session whose agent is gone holds up no other; its results go to the
// main agent.
func TestResultsOfAGoneAgentGoToMain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		work := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if err := sleep(ctx, 10*time.Second); err != nil {
				return goclaw.ModelReply{}, err
			}
			return text("found by " + task(q))
		}
		with := newRig(t, rigOptions{store: store, brain: spawning([]string{"w"}, work), rules: func(r *definition.Rules) {
			other := r.Agents["main"]
			other.ID = "other"
			r.Agents["other"] = other
		}})
		stop := with.start(t.Context())
		if _, err := with.engine.Submit(t.Context(), goclaw.Inbound{Session: goclaw.MainKey("other"), Text: "go"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		stop()
		without := newRig(t, rigOptions{store: store, owner: "p2", brain: spawning(nil, work)})
		defer without.start(t.Context())()
		without.settle()
		if got := without.transcriptTexts(t, goclaw.MainKey("main"), "found by w"); len(got) != 1 {
			t.Errorf("main was told %q", got)
		}
	})
}

func TestRestartPolicies(t *testing.T) {
	for policy, want := range map[goclaw.RestartPolicy]string{
		goclaw.RestartResume: "spawn completed w: done after 2", goclaw.RestartFail: "spawn failed w: ", goclaw.RestartAsk: "spawn waiting w: ",
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { restart(t, policy, want) })
		})
	}
}

func restart(t *testing.T, policy goclaw.RestartPolicy, want string) {
	store := memory.Open()
	var asked atomic.Int32
	rules := func(r *definition.Rules) {
		a := r.Agents["main"]
		a.Subagents.RestartPolicy = policy
		r.Agents["main"] = a
	}
	work := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
		n := asked.Add(1)
		if n == 1 {
			if err := sleep(ctx, time.Hour); err != nil {
				return goclaw.ModelReply{}, err
			}
		}
		return text(fmt.Sprintf("done after %d", n))
	}
	ctx, kill := context.WithCancel(t.Context())
	first := newRig(t, rigOptions{store: dying{store, ctx}, brain: spawning([]string{"w"}, work), rules: rules})
	stop := first.start(t.Context())
	main := first.say("go")
	<-time.After(time.Second)
	kill() // from here on the first process writes nothing any more
	second := newRig(t, rigOptions{store: store, owner: "p2", sole: true, brain: spawning(nil, work), rules: rules})
	defer second.start(t.Context())()
	<-time.After(30 * time.Second)
	stop()
	w := second.children(main.ID)[0]
	if got := shown([]goclaw.Run{w})[0]; got != want {
		t.Errorf("got %q, want %q (%s)", got, want, w.Error)
	}
	if w.Recovery == nil || w.Recovery.Times != 1 || w.Recovery.Planned {
		t.Errorf("recovery: %+v", w.Recovery)
	}
	if policy != goclaw.RestartAsk {
		return
	}
	if w.WaitsFor != goclaw.WaitPerson {
		t.Errorf("it waits for %q", w.WaitsFor)
	}
	if _, err := second.engine.Resume(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	second.settle()
	if w = second.children(main.ID)[0]; w.State != goclaw.StateCompleted {
		t.Errorf("after the resume it is %s: %s", w.State, w.Error)
	}
	if _, err := second.engine.Resume(t.Context(), w.ID); !goclaw.IsBadRequest(err) {
		t.Errorf("resuming an ended run: %v", err)
	}
}

// dying is a process's store until the process is dead.
type dying struct {
	*memory.Store
	alive context.Context
}

func (d dying) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	if d.alive.Err() != nil {
		return goclaw.ErrFenced
	}
	return d.Store.Append(ctx, f, b)
}

func (d dying) Release(context.Context, string, goclaw.Millis) error { return nil }

func (d dying) Claim(ctx context.Context, c goclaw.ClaimRequest) ([]goclaw.Claimed, error) {
	if d.alive.Err() != nil {
		return nil, nil
	}
	return d.Store.Claim(ctx, c)
}

func (d dying) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (goclaw.Pulse, error) {
	if d.alive.Err() != nil {
		return goclaw.Pulse{}, nil
	}
	return d.Store.Heartbeat(ctx, h)
}

// A planned stop lets the model call under way finish, and hands the run over:
// nothing is interrupted, nothing paid twice.
func TestAPlannedRestartInterruptsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		var asked atomic.Int32
		note := newTool("append", false, func(context.Context, goclaw.Invocation) goclaw.ToolResult { return goclaw.ToolOK("ok") })
		work := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if asked.Add(1) == 1 {
				if err := sleep(ctx, 5*time.Second); err != nil {
					return goclaw.ModelReply{}, err
				}
				return calls(goclaw.ToolCall{Name: "append", Arguments: `{}`})
			}
			return text("done")
		}
		first := newRig(t, rigOptions{store: store, drain: 10 * time.Second, tools: []goclaw.Tool{note}, brain: spawning([]string{"w"}, work), rules: func(r *definition.Rules) {
			a := r.Agents["main"]
			a.Subagents.RestartPolicy = goclaw.RestartFail // is not asked
			r.Agents["main"] = a
		}})
		stop := first.start(t.Context())
		main := first.say("go")
		<-time.After(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("the stop took %s, want the 4 s that the call had left", took)
		}
		if w := first.children(main.ID)[0]; w.State != goclaw.StateInterrupted {
			t.Errorf("after the stop the run is %s", w.State)
		}
		second := newRig(t, rigOptions{store: store, owner: "p2", tools: []goclaw.Tool{note}, brain: spawning(nil, work)})
		defer second.start(t.Context())()
		second.settle()
		w := second.children(main.ID)[0]
		if w.State != goclaw.StateCompleted || w.Recovery == nil || !w.Recovery.Planned || len(w.Recovery.Uncertain) != 0 || asked.Load() != 2 {
			t.Errorf("run %s %s, recovery %+v, %d model calls", w.State, w.Error, w.Recovery, asked.Load())
		}
	})
}

func TestPauseStopsEveryModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text("hi") }})
		defer r.start(t.Context())()
		if _, err := r.engine.SetPause(t.Context(), true, "too dear"); err != nil {
			t.Fatal(err)
		}
		r.say("hello")
		<-time.After(time.Hour)
		if n := len(r.asked(false)); n != 0 {
			t.Fatalf("%d model calls while paused", n)
		}
		if _, err := r.engine.SetPause(t.Context(), false, ""); err != nil {
			t.Fatal(err)
		}
		is(t, r.settle(), "user completed")
	})
}

// Twenty workers draw on one tree's budget: what they spend never passes it,
// those that can't go on say why, and what they did is announced.
func TestATreeNeverSpendsMoreThanItsBudget(t *testing.T) {
	for _, limits := range []goclaw.Limits{{Tokens: 60_000}, {USD: 0.5}, {Steps: 15}} {
		t.Run(fmt.Sprintf("%+v", limits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { spendTree(t, limits) })
		})
	}
}

func spendTree(t *testing.T, limits goclaw.Limits) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	note := newTool("read_note", true, func(context.Context, goclaw.Invocation) goclaw.ToolResult { return goclaw.ToolOK("note") })
	var most atomic.Int64
	work := func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
		if err := sleep(ctx, time.Second); err != nil {
			return goclaw.ModelReply{}, err
		}
		reply, err := calls(goclaw.ToolCall{Name: "read_note", Arguments: fmt.Sprintf(`{"text":"%d"}`, len(q.Messages))})
		reply.Usage = goclaw.Usage{Input: budget.Estimate(q), Output: int64(q.MaxTokens)}
		most.Add(reply.Usage.Input + reply.Usage.Output)
		return reply, err
	}
	r := newRig(t, rigOptions{
		tools: []goclaw.Tool{note}, brain: spawning(names, work),
		prices: func(string) (budget.Price, bool) {
			return budget.Price{Input: 3, Output: 15, CacheRead: 3, CacheWrite: 3}, true
		},
		rules: func(r *definition.Rules) {
			a := r.Agents["main"]
			a.Subagents.MaxChildren = 20
			a.Budget.Tree = limits
			r.Agents["main"] = a
		},
	})
	defer r.start(t.Context())()
	r.say("go")
	runs := r.settle()
	var sum goclaw.Usage
	steps, stopped := 0, 0
	for _, run := range runs {
		sum = sum.Add(run.Usage)
		if run.State == goclaw.StateFailed && strings.HasPrefix(run.Error, "budget: this tree of runs may ") {
			stopped++
		}
		events, err := r.store.Events(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Model != nil {
				steps++
			}
		}
	}
	t.Logf("spent %d tokens, $%.4f, %d steps; %d of %d runs were stopped", sum.Input+sum.Output, *sum.CostUSD, steps, stopped, len(runs))
	if limits.Tokens > 0 && sum.Input+sum.Output > limits.Tokens || limits.USD > 0 && *sum.CostUSD > limits.USD || limits.Steps > 0 && int64(steps) > limits.Steps {
		t.Errorf("spent %d tokens, $%f, %d steps: more than %+v", sum.Input+sum.Output, *sum.CostUSD, steps, limits)
	}
	if last := runs[len(runs)-1]; last.Trigger != goclaw.TriggerAnnouncement || strings.Count(last.Result, "Partial result") != 0 && strings.Count(last.Result, "[Subagent: w") != 20 {
		t.Errorf("the last turn, %s, showed %q", last.Trigger, last.Result)
	}
	if stopped < 15 || steps < 3 {
		t.Errorf("%d runs were stopped after %d steps", stopped, steps)
	}
}

// A call that the provider refused costs no tokens: the day's are there for
// the next turn. One that may be billed is kept as spent.
func TestRefusedCallsAreGivenBack(t *testing.T) {
	for status, left := range map[int]bool{400: true, 200: false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, rigOptions{
				brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
					if strings.Contains(lastText(q), "refuse") {
						return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: status, Message: "no"}
					}
					return text("fine")
				},
				rules: func(r *definition.Rules) {
					a := r.Agents["main"]
					a.Budget.Day = goclaw.Limits{Tokens: 5000}
					r.Agents["main"] = a
				},
			})
			defer r.start(t.Context())()
			r.say("refuse")
			r.settle()
			r.say("hello")
			last := r.settle()[1]
			if got := last.State == goclaw.StateCompleted; got != left {
				t.Errorf("after HTTP %d the day has tokens left: %t (%s: %s)", status, got, last.State, last.Error)
			}
		})
	}
}

func TestAModelThatGoesRoundInCirclesIsToldAndStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		note := newTool("read_note", true, func(context.Context, goclaw.Invocation) goclaw.ToolResult {
			ran++
			return goclaw.ToolOK("note")
		})
		r := newRig(t, rigOptions{tools: []goclaw.Tool{note}, brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) {
			return calls(goclaw.ToolCall{Name: "read_note", Arguments: `{}`})
		}})
		defer r.start(t.Context())()
		r.say("go")
		runs := r.settle()
		if runs[0].State != goclaw.StateFailed || !strings.Contains(runs[0].Error, "round in circles") || ran != 3 {
			t.Errorf("%s: %s; the tool ran %d times", runs[0].State, runs[0].Error, ran)
		}
	})
}

func TestLongResultsAreCutAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("all the words ", 1000)
		r := newRig(t, rigOptions{brain: spawning([]string{"w"}, func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text(long) }),
			rules: func(r *definition.Rules) {
				a := r.Agents["main"]
				a.Subagents.ResultTokens = 100
				r.Agents["main"] = a
			}})
		defer r.start(t.Context())()
		r.say("go")
		w := r.settle()[1]
		told := r.transcriptTexts(t, goclaw.MainKey("main"), "[Subagent:")[0]
		if len(told) > 1000 || !strings.Contains(told, goclaw.ArtifactHandle(w.ID, "result.md")) {
			t.Errorf("announced %d bytes: %s", len(told), told)
		}
		kept, err := r.store.ArtifactsOf(t.Context(), goclaw.ArtifactFilter{Run: w.ID})
		if err != nil || len(kept) != 1 || kept[0].Size != int64(len(w.Result)) {
			t.Error(kept, err)
		}
	})
}

// One lane with many workers leaves the last slot to the others.
func TestAnotherChatStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("busy%02d", i))
		}
		r := newRig(t, rigOptions{maxWorkers: 8, lane: 7, rules: func(r *definition.Rules) {
			a := r.Agents["main"]
			a.Subagents.MaxChildren = 50
			r.Agents["main"] = a
		}, brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if isWorker(q) {
				return text("done, " + fmt.Sprint(sleep(ctx, time.Hour)))
			}
			if strings.Contains(lastText(q), "single") {
				return calls(spawnCall("single"))
			}
			return spawning(names, nil)(ctx, q)
		}})
		stop := r.start(t.Context())
		defer stop()
		r.say("go")
		<-time.After(time.Minute)
		if n := len(r.asked(true)); n != 7 {
			t.Errorf("%d workers of the busy chat run", n)
		}
		queue, err := r.store.Queue(t.Context())
		if err != nil || len(queue) != 43 {
			t.Error(len(queue), err)
		}
		if _, err := r.engine.Submit(t.Context(), goclaw.Inbound{Session: goclaw.APIKey("main", "anna"), Text: "single"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if n := len(r.asked(true)); n != 8 {
			t.Errorf("the other chat's worker did not start within a second: %d run", n)
		}
	})
}
