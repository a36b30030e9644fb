package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
)

func prefix(t *testing.T, q goclaw.ModelRequest) string {
	t.Helper()
	b, err := json.Marshal(struct{ Tools, System any }{q.Tools, q.System})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Five workers of one turn end at different moments: the requester is woken
// once, each result is in that request once, and tools and system are the same
// bytes in the user's turn, the announcement's and the next user's.
func TestFiveWorkersWakeOnce(t *testing.T) {
	tests := map[string]map[string]time.Duration{
		"at the same moment": {"w1": time.Second, "w2": time.Second, "w3": time.Second, "w4": time.Second, "w5": time.Second},
		"1 to 15 s apart":    {"w1": time.Second, "w2": 2 * time.Second, "w3": 4 * time.Second, "w4": 8 * time.Second, "w5": 15 * time.Second},
	}
	for name, delays := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fiveWorkers(t, delays) })
		})
	}
}

func fiveWorkers(t *testing.T, delays map[string]time.Duration) {
	r := newRig(t, rigOptions{brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
		last := lastText(q)
		for w, d := range delays {
			if isWorker(q) && strings.Contains(last, "[Subagent Task]: "+w) {
				if err := sleep(ctx, d); err != nil {
					return goclaw.ModelReply{}, err
				}
				return text("result of " + w)
			}
		}
		switch {
		case strings.Contains(last, "go"):
			return calls(spawnCall("w1"), spawnCall("w2"), spawnCall("w3"), spawnCall("w4"), spawnCall("w5"))
		case strings.Contains(last, "[Subagent:"):
			return text("combined")
		}
		return text("fine")
	}})
	stop := r.start(t.Context())
	defer stop()
	r.say("go")
	r.settle()
	r.say("and now?")
	runs := r.settle()
	var ends []string
	for _, run := range runs {
		ends = append(ends, fmt.Sprintf("%s %s", run.Trigger, run.State))
	}
	want := []string{"user completed"}
	for range delays {
		want = append(want, "spawn completed")
	}
	want = append(want, "announcement completed", "user completed")
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Fatal(diff)
	}
	main := r.asked(false)
	if len(main) != 4 { // spawning, its confirmation, announcement, next
		t.Fatalf("%d requests of the main session, want 4", len(main))
	}
	for w := range delays {
		if n := strings.Count(lastText(main[2]), "result of "+w); n != 1 {
			t.Errorf("the announcement holds the result of %s %d times", w, n)
		}
	}
	for i, q := range main {
		if prefix(t, q) != prefix(t, main[0]) {
			t.Errorf("request %d has other tools or system bytes than the first", i)
		}
	}
	for i := 1; i < len(main); i++ {
		before, err := json.Marshal(main[i-1].Messages)
		if err != nil {
			t.Fatal(err)
		}
		now, err := json.Marshal(main[i].Messages)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(now), strings.TrimSuffix(string(before), "]")) {
			t.Errorf("request %d does not begin with the messages of request %d", i, i-1)
		}
	}
	workers := r.asked(true)
	for _, q := range workers[1:] {
		if prefix(t, q) != prefix(t, workers[0]) {
			t.Error("sibling workers do not share tools and system bytes")
		}
	}
}

func TestSlowSiblingDoesNotHoldOthersForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case isWorker(q) && strings.Contains(last, "Task]: slow"):
				if err := sleep(ctx, 10*time.Minute); err != nil {
					return goclaw.ModelReply{}, err
				}
				return text("late result")
			case isWorker(q):
				return text("early result")
			case strings.Contains(last, "go"):
				return calls(spawnCall("fast"), spawnCall("slow"))
			case strings.Contains(last, "early result"):
				return text(goclaw.NoReply)
			}
			return text("told")
		}})
		defer r.start(t.Context())()
		began := time.Now()
		r.say("go")
		time.Sleep(30 * time.Second)
		if n := len(r.asked(false)); n != 2 {
			t.Fatalf("%d requests after 30 s: the early result must wait for its sibling", n)
		}
		time.Sleep(35 * time.Second)
		if n := len(r.asked(false)); n != 3 {
			t.Fatalf("%d requests after 65 s: the early result must have been announced", n)
		}
		runs := r.settle()
		if took := time.Since(began); took < 10*time.Minute {
			t.Fatalf("settled after %s", took)
		}
		if n := len(r.asked(false)); n != 4 || !strings.Contains(lastText(r.asked(false)[3]), "late result") {
			t.Fatalf("%d requests in the end", n)
		}
		events, err := r.store.Events(t.Context(), runs[3].ID)
		if err != nil {
			t.Fatal(err)
		}
		if end := events[len(events)-1].End; end == nil || !end.Silent {
			t.Errorf("NO_REPLY must make the turn silent: %+v", end)
		}
	})
}

func TestEachIsAnnouncedWithinItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := map[string]time.Duration{"a": time.Second, "b": 1100 * time.Millisecond, "c": 5 * time.Second}
		r := newRig(t, rigOptions{brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if isWorker(q) {
				for w, d := range delays {
					if strings.HasSuffix(lastText(q), "Task]: "+w) {
						return reply(sleep(ctx, d), "result of "+w)
					}
				}
			}
			if strings.Contains(lastText(q), "go") {
				return calls(spawnCall("a", "announce", "each"), spawnCall("b", "announce", "each"), spawnCall("c", "announce", "each"), spawnCall("d", "announce", "none"))
			}
			return text("ok")
		}})
		defer r.start(t.Context())()
		r.say("go")
		r.settle()
		main := r.asked(false)
		if len(main) != 4 {
			t.Fatalf("%d requests, want 4: a and b share a window, c has its own, d none", len(main))
		}
		if s := lastText(main[2]); !strings.Contains(s, "result of a") || !strings.Contains(s, "result of b") || strings.Contains(s, "result of c") {
			t.Errorf("first announcement: %s", s)
		}
	})
}

func reply(err error, s string) (goclaw.ModelReply, error) {
	if err != nil {
		return goclaw.ModelReply{}, err
	}
	return text(s)
}

func TestSpawnChecks(t *testing.T) {
	tests := []struct {
		name  string
		call  goclaw.ToolCall
		rules func(*definition.Rules)
		want  string
	}{
		{"schema first", goclaw.ToolCall{Name: "sessions_spawn", Arguments: `{"label":"x"}`}, nil, `"status":"error","error":"sessions_spawn: the required argument \"task\" is missing`},
		{"unknown argument", spawnCall("x", "taks", "y"), nil, `unknown argument \"taks\" (did you mean \"task\"?)`},
		{"malformed", goclaw.ToolCall{Name: "sessions_spawn", Arguments: `{"task":`}, nil, `not a JSON object`},
		{"depth", spawnCall("x"), func(r *definition.Rules) { setSub(r, func(s *definition.Subagents) { s.MaxSpawnDepth = 0 }) }, `"status":"forbidden","error":"sessions_spawn is not allowed at this depth (current depth: 0, max: 0)`},
		{"agent", spawnCall("x", "agentId", "other"), nil, `"status":"forbidden","error":"agentId \"other\" is not allowed`},
		{"unknown agent", spawnCall("x", "agentId", "other"), func(r *definition.Rules) {
			setSub(r, func(s *definition.Subagents) { s.AllowAgents = []string{"*"} })
		}, `"status":"error","error":"no agent \"other\" is configured`},
		{"definition", spawnCall("x", "agent", "nope"), nil, `"status":"error","error":"no definition \"nope\" exists`},
		{"model", spawnCall("x", "model", "evil/one"), nil, `"status":"error","error":"unknown model \"evil/one\"`},
		{"thinking", spawnCall("x", "thinking", "huge"), nil, `huge is not one of off, low, medium, high`},
		{"timeout", spawnCall("x", "timeoutSeconds", "-1"), nil, `"status":"error"`},
		{"good", spawnCall("x", "model", "fake/small", "timeoutSeconds", "30"), nil, `"status":"accepted","runId":"`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigOptions{rules: tc.rules, brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
					if !isWorker(q) && len(q.Messages) == 1 {
						return calls(tc.call)
					}
					return text("done")
				}})
				defer r.start(t.Context())()
				r.say("go")
				r.settle()
				got := r.asked(false)[1].Messages[2].Parts[0].Result
				if !strings.Contains(got.Content, tc.want) {
					t.Errorf("got %s\nwant something with %s", got.Content, tc.want)
				}
				if good := strings.Contains(tc.want, "accepted"); got.IsError == good {
					t.Errorf("IsError = %v", got.IsError)
				}
			})
		})
	}
}

func setSub(r *definition.Rules, change func(*definition.Subagents)) {
	a := r.Agents["main"]
	change(&a.Subagents)
	r.Agents["main"] = a
}

func TestChildrenLimitHoldsForParallelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if isWorker(q) {
				return reply(sleep(ctx, time.Second), "ok")
			}
			if len(q.Messages) == 1 {
				var all []goclaw.ToolCall
				for i := range 8 {
					all = append(all, spawnCall(fmt.Sprintf("w%d", i)))
				}
				return calls(all...)
			}
			return text("done")
		}})
		defer r.start(t.Context())()
		r.say("go")
		r.settle()
		accepted, forbidden := 0, 0
		for _, p := range r.asked(false)[1].Messages[2].Parts {
			if strings.Contains(p.Result.Content, "accepted") {
				accepted++
			}
			if strings.Contains(p.Result.Content, "max active children for this session (5/5)") {
				forbidden++
			}
		}
		if accepted != 5 || forbidden != 3 {
			t.Errorf("%d accepted, %d forbidden", accepted, forbidden)
		}
	})
}

func TestTimeoutAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			last := lastText(q)
			switch {
			case isWorker(q):
				return reply(sleep(ctx, time.Hour), "never")
			case len(q.Messages) == 1:
				return calls(spawnCall("timed", "timeoutSeconds", "2"), spawnCall("killed", "timeoutSeconds", "0"))
			case strings.Contains(last, "[Subagent:"):
				return text("heard")
			}
			return text("started")
		}})
		defer r.start(t.Context())()
		r.say("go")
		time.Sleep(5 * time.Second)
		began := time.Now()
		asked, err := r.engine.Cancel(t.Context(), workerNamed(t, r, "killed").ID, "by the test", true)
		if err != nil || len(asked) != 1 {
			t.Fatalf("cancel: %v, %d runs", err, len(asked))
		}
		r.settle()
		if took := time.Since(began); took > time.Second {
			t.Errorf("cancel took %s", took)
		}
		timed, killed := workerNamed(t, r, "timed"), workerNamed(t, r, "killed")
		if timed.State != goclaw.StateTimeout || timed.DurationMs() != 2000 {
			t.Errorf("timed: %s after %d ms", timed.State, timed.DurationMs())
		}
		if killed.State != goclaw.StateCancelled || killed.Error != "by the test" {
			t.Errorf("killed: %s %q", killed.State, killed.Error)
		}
		said := lastText(r.asked(false)[2])
		if !strings.Contains(said, "[Subagent: timed] Timed out: ") || !strings.Contains(said, "[Subagent: killed] Cancelled: by the test") {
			t.Errorf("announced: %s", said)
		}
		if again, err := r.engine.Cancel(t.Context(), killed.ID, "again", true); err != nil || len(again) != 0 {
			t.Errorf("cancelling an ended run: %v, %d runs", err, len(again))
		}
	})
}

func workerNamed(t *testing.T, r *rig, name string) goclaw.Run {
	t.Helper()
	runs, err := r.store.Runs(t.Context(), goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if run.Name() == name {
			return run
		}
	}
	t.Fatalf("no worker %q", name)
	return goclaw.Run{}
}

func TestQueuedRunsCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{maxWorkers: 1, brain: func(ctx context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if isWorker(q) {
				return reply(sleep(ctx, time.Minute), "ok")
			}
			if len(q.Messages) == 1 {
				return calls(spawnCall("a"), spawnCall("b"))
			}
			return text("done")
		}})
		defer r.start(t.Context())()
		r.say("go")
		time.Sleep(time.Second)
		b := workerNamed(t, r, "b")
		if b.State == goclaw.StateRunning {
			b = workerNamed(t, r, "a")
		}
		if b.State != goclaw.StateQueued {
			t.Fatalf("with one slot, one of two workers must wait; it is %s", b.State)
		}
		if _, err := r.engine.Cancel(t.Context(), b.ID, "not needed", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if got := workerNamed(t, r, b.Name()); got.State != goclaw.StateCancelled {
			t.Errorf("a queued run that was cancelled is %s", got.State)
		}
		r.settle()
	})
}

func TestRetriesHonourTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		began := time.Now()
		r := newRig(t, rigOptions{brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) {
			times = append(times, time.Since(began))
			switch len(times) {
			case 1:
				return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: 429, Retry: true, After: 20 * time.Second}
			case 2:
				return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Kind: "cut", Retry: true}
			}
			return text("at last")
		}})
		defer r.start(t.Context())()
		r.say("go")
		runs := r.settle()
		if runs[0].Result != "at last" || len(times) != 3 {
			t.Fatalf("%q after %d tries", runs[0].Result, len(times))
		}
		if wait := times[1] - times[0]; wait < 20*time.Second || wait > 21*time.Second {
			t.Errorf("waited %s, the server asked for 20 s", wait)
		}
		if events, err := r.store.Events(t.Context(), runs[0].ID); err != nil || events[1].Model.Tries != 3 {
			t.Errorf("%v: the tries are not on record", err)
		}
	})
}

func TestFinalErrorsEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newRig(t, rigOptions{brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) {
			n++
			return goclaw.ModelReply{}, &goclaw.ProviderError{Provider: "fake", Status: 401, Message: "bad key"}
		}})
		defer r.start(t.Context())()
		r.say("go")
		runs := r.settle()
		if runs[0].State != goclaw.StateFailed || !strings.Contains(runs[0].Error, "bad key") || n != 1 {
			t.Errorf("%s %q after %d tries", runs[0].State, runs[0].Error, n)
		}
	})
}

func TestWorkersNeverSeePrivateFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{brain: func(_ context.Context, q goclaw.ModelRequest) (goclaw.ModelReply, error) {
			if !isWorker(q) && len(q.Messages) == 1 {
				return calls(spawnCall("x"))
			}
			return text("done")
		}})
		defer r.start(t.Context())()
		r.say("go")
		r.settle()
		main, worker := prefix(t, r.asked(false)[0]), prefix(t, r.asked(true)[0])
		for _, f := range prompt.MainFiles() {
			shared := f == "AGENTS.md" || f == "TOOLS.md"
			if !strings.Contains(main, "content of "+f) {
				t.Errorf("the main agent does not see %s", f)
			}
			if strings.Contains(worker, "content of "+f) != shared {
				t.Errorf("a worker sees %s: %v", f, !shared)
			}
		}
		if strings.Contains(worker, "sessions_spawn") {
			t.Error("a worker at the deepest level is offered sessions_spawn")
		}
	})
}

// A prompt is assembled anew as soon as a file has changed, and only then.
func TestPromptFollowsTheFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soul := &changing{text: "one"}
		r := newRig(t, rigOptions{files: soul, brain: func(context.Context, goclaw.ModelRequest) (goclaw.ModelReply, error) { return text("ok") }})
		defer r.start(t.Context())()
		for _, s := range []string{"one", "one", "two", "one"} {
			soul.text = s
			r.say("hi")
			r.settle()
		}
		asked := r.asked(false)
		for i, want := range []string{"one", "one", "two", "one"} {
			if got := prefix(t, asked[i]); !strings.Contains(got, "soul is "+want) {
				t.Errorf("request %d does not hold %q", i, want)
			}
		}
		if prefix(t, asked[0]) != prefix(t, asked[1]) || prefix(t, asked[0]) != prefix(t, asked[3]) {
			t.Error("equal files give unequal prompts")
		}
	})
}

type changing struct{ text string }

func (c *changing) Files(dir string, _ []string) ([]goclaw.WorkspaceFile, error) {
	return []goclaw.WorkspaceFile{{Name: "SOUL.md", Path: dir + "/SOUL.md", Content: "soul is " + c.text}}, nil
}
