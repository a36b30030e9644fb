package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"goclaw"
)

func TestMessagesThatAreRefused(t *testing.T) {
	d := newDesk(t)
	for _, tc := range []struct {
		in   goclaw.Inbound
		want string
	}{
		{goclaw.Inbound{Session: mainKey, Text: " \n\t"}, "the message is empty"},
		{goclaw.Inbound{Text: "hi"}, "the message names no session"},
		{goclaw.Inbound{Session: goclaw.SubagentKey("main", "1"), Text: "hi"}, "agent:main:subagent:1 is a worker's session; talk to the agent that spawned it"},
		{goclaw.Inbound{Session: goclaw.CronKey("main", "nightly"), Text: "/new"}, "agent:main:cron:nightly is a worker's session; talk to the agent that spawned it"},
		{goclaw.Inbound{Session: goclaw.MainKey("third"), Text: "hi"}, `no agent "third" is configured; there are: main, second`},
		{goclaw.Inbound{Session: mainKey, Text: "hi", Model: "gone"}, `unknown model "gone"`},
		{goclaw.Inbound{Session: mainKey, Text: "/model gone"}, `unknown model "gone"`},
		{goclaw.Inbound{Session: mainKey, Text: "/subagents dance"}, "/subagents dance: want list, info, log, kill, steer, wait, resume, spawn, parked, retry or dismiss"},
		{goclaw.Inbound{Session: mainKey, Text: "/subagents info"}, "name a worker: its id, the first characters of it, or its label (/subagents list)"},
	} {
		receipt, err := d.Receive(t.Context(), tc.in)
		if err == nil || err.Error() != tc.want || !goclaw.IsBadRequest(err) || receipt != (goclaw.Receipt{}) {
			t.Errorf("%q: %+v, %v; want the bad request %q", tc.in.Text, receipt, err, tc.want)
		}
	}
	if all, err := d.Runs(t.Context(), goclaw.RunFilter{}); err != nil || len(all) != 0 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

func TestMessagesBecomeRuns(t *testing.T) {
	d := newDesk(t)
	for text, want := range map[string]string{
		"  hello \n":                   "hello",
		"/etc/hosts, what is in it?":   "/etc/hosts, what is in it?",
		"/statusx":                     "/statusx",
		"what does /status tell?":      "what does /status tell?",
		"/subagentslist":               "/subagentslist",
		"two\nlines":                   "two\nlines",
		"/unknown command goes on too": "/unknown command goes on too",
		"/compacted":                   "/compacted",
	} {
		if got := d.say(text); got.Task != want || got.State != goclaw.StateQueued {
			t.Errorf("%q became %+v", text, got)
		}
	}
	in := goclaw.Inbound{Session: mainKey, Text: "once", Key: "k", Model: "big"}
	first, err := d.Receive(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Receive(t.Context(), in)
	if err != nil || again.Run.ID != first.Run.ID {
		t.Errorf("the same key gave %v, then %v, %v", first.Run, again.Run, err)
	}
	d.runner.fail = errors.New("disk full")
	if receipt, err := d.Receive(t.Context(), in); receipt.Run != nil || err == nil || goclaw.IsBadRequest(err) {
		t.Errorf("what was not stored was acknowledged: %+v, %v", receipt, err)
	}
}

func TestCompactBecomesARun(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct{ text, want string }{
		{"/compact", ""}, {"/compact  keep the names ", "keep the names"}, {"/compact\nkeep\nlines", "keep\nlines"},
	} {
		if got := d.say(c.text); got.Trigger != goclaw.TriggerCompact || got.Task != c.want || got.State != goclaw.StateQueued {
			t.Errorf("%q became %+v", c.text, got)
		}
	}
	in := goclaw.Inbound{Session: mainKey, Text: "/compact", Key: "k"}
	first, err := d.Receive(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.Receive(t.Context(), in); err != nil || again.Run.ID != first.Run.ID {
		t.Errorf("the same key gave %+v, %v", again, err)
	}
	in.Session = goclaw.SubagentKey("main", "1")
	if _, err := d.Receive(t.Context(), in); !goclaw.IsBadRequest(err) {
		t.Errorf("a worker's session: %v", err)
	}
	d.runner.fail = errors.New("disk full")
	in.Session, in.Key = mainKey, ""
	if receipt, err := d.Receive(t.Context(), in); err == nil || receipt.Run != nil {
		t.Errorf("what was not stored was acknowledged: %+v", receipt)
	}
}

// People see replies without their tags, and the record keeps them.
func TestHistoryHasNoReplyTags(t *testing.T) {
	d := newDesk(t)
	run := d.say("hello")
	said := goclaw.Text(goclaw.RoleAssistant, "[[reply_to_current]] hi")
	d.append(d.begin(run.ID), goclaw.Batch{Events: []goclaw.Event{
		{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, "hello")}},
		{Seq: 1, Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: said}},
	}})
	logs, err := d.History(t.Context(), mainKey)
	if err != nil {
		t.Fatal(err)
	}
	if got := logs[0].Events[1].Model.Message.PlainText(); got != "hi" {
		t.Errorf("people see %q", got)
	}
	log, err := d.RunLog(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := log.Events[1].Model.Message.PlainText(); got != said.PlainText() {
		t.Errorf("the record says %q", got)
	}
}

func TestCommands(t *testing.T) {
	d := newDesk(t)
	turn := d.say("go")
	d.begin(turn.ID)
	one := d.spawn(turn, "one", goclaw.AnnounceTogether)
	two := d.spawn(turn, "two", goclaw.AnnounceTogether)
	d.end(one.ID, ending{result: "the tides\nare high", state: goclaw.StateFailed, problem: "no network"})
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"/help", []string{"/subagents [list", "/stop"}},
		{"/status", []string{"GoClaw 1.2.3 · model p/small · session agent:main:main", "workers of this chat under way: 1 · runs active 4, queued 5", "exec sandbox: bubblewrap"}},
		{"/context", []string{"identity                  10  no      built-in", "total                     43  tools 3, system 40; model p/small"}},
		{"/help", []string{"/context diff A B"}},
		{"/model", []string{"This chat uses p/small"}},
		{"/model big", []string{"From the next turn on this chat uses p/big."}},
		{"/model default", []string{"the agent's default model"}},
		{"/subagents", []string{"ID        STATUS", "0002-run  failed      one", "0003-run  running     two"}},
		{"/subagents list", []string{"0002-run  failed"}},
		{"/subagents info one", []string{"run        0002-run", "status     failed", "error      no network", "the tides\nare high", "tokens     100 in (0 from cache), 10 out"}},
		{"/subagents  info   0002", []string{"label      one"}},
		{"/subagents log one", []string{"  0 ", "prompt 01234567, input: do one", "  1 ", "end     failed no network"}},
		{"/subagents log two", []string{"Nothing recorded yet."}},
		{"/subagents kill one", []string{"Nothing to cancel: no such worker is under way."}},
		{"/subagents kill two", []string{"Cancelled 1 run."}},
		{"/stop", []string{"Stopped. 1 worker is still under way: two. Stop it too with /stop all, or let it go on."}},
		{"/stop", []string{"Nothing was under way. 1 worker"}},
		{"/new", []string{"New conversation."}},
	} {
		got := d.command(tc.text)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", tc.text, want, got)
			}
		}
	}
	if two, _ := d.store.Run(t.Context(), two.ID); two.CancelAt == 0 || two.CancelWhy != "cancelled by the user" {
		t.Errorf("the killed worker is not marked: %+v", two)
	}
	if turn, _ := d.store.Run(t.Context(), turn.ID); turn.CancelAt == 0 || turn.CancelWhy != "stopped by the user" {
		t.Errorf("the stopped turn is not marked: %+v", turn)
	}
	if s, _ := d.store.Session(t.Context(), mainKey); s.Model != "" || s.ResetAt != turn.Ordinal {
		t.Errorf("session %+v", s)
	}
}

func TestStopLeavesWorkersAlone(t *testing.T) {
	d := newDesk(t)
	turn, waiting := d.say("go"), d.say("and then")
	d.begin(turn.ID)
	worker := d.spawn(turn, "one", goclaw.AnnounceTogether)
	d.command("/stop")
	for id, want := range map[string]bool{turn.ID: true, waiting.ID: true, worker.ID: false} {
		if r, err := d.store.Run(t.Context(), id); err != nil || r.CancelAt != 0 != want {
			t.Errorf("%s: cancelled at %d, %v; want %v", id, r.CancelAt, err, want)
		}
	}
}

func TestKillAllIsOfThisChatOnly(t *testing.T) {
	d := newDesk(t)
	mine := d.spawn(d.say("go"), "one", goclaw.AnnounceTogether)
	inner := d.spawn(mine, "inner", goclaw.AnnounceTogether)
	other := d.spawn(goclaw.Run{ID: "x", Session: goclaw.MainKey("second")}, "other", goclaw.AnnounceTogether)
	if got := d.command("/subagents kill all"); got != "Cancelled 2 runs." {
		t.Error(got)
	}
	for id, want := range map[string]bool{mine.ID: true, inner.ID: true, other.ID: false} {
		if r, _ := d.store.Run(t.Context(), id); r.CancelAt != 0 != want {
			t.Errorf("%s: cancelled at %d, want %v", id, r.CancelAt, want)
		}
	}
}

func TestWorkersAreNamedClearly(t *testing.T) {
	d := newDesk(t)
	turn := d.say("go")
	d.spawn(turn, "same", goclaw.AnnounceTogether)
	d.spawn(turn, "same", goclaw.AnnounceTogether)
	if err := d.refusal("/subagents log same"); !goclaw.IsBadRequest(err) || err.Error() != `2 workers of this chat are called "same"; use an id` {
		t.Error(err)
	}
	if err := d.refusal("/subagents info nope"); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
	// Another chat's worker is none of this one's.
	other := d.spawn(goclaw.Run{ID: "x", Session: goclaw.MainKey("second")}, "other", goclaw.AnnounceTogether)
	if err := d.refusal("/subagents kill " + other.ID); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
}

func TestSpawnByHand(t *testing.T) {
	d := newDesk(t)
	if got := d.command("/subagents spawn look for tides"); !strings.HasPrefix(got, "Started 0001-run") {
		t.Error(got)
	}
	if len(d.runner.spawned) != 1 || d.runner.spawned[0].Task != "look for tides" {
		t.Errorf("%+v", d.runner.spawned)
	}
	d.runner.refuse = "too many"
	_, err := d.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: "/subagents spawn more"})
	if !goclaw.IsBadRequest(err) || err.Error() != "too many" {
		t.Error(err)
	}
}

func TestCommandsReportWhatFails(t *testing.T) {
	d := newDesk(t)
	d.status = errors.New("the database is locked")
	if _, err := d.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: "/status"}); !errors.Is(err, d.status) {
		t.Error(err)
	}
	for _, text := range []string{"/context", "/model"} {
		if _, err := d.Receive(t.Context(), goclaw.Inbound{Session: goclaw.MainKey("second"), Text: text}); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"/new", "/stop", "/model big", "/subagents", "/subagents kill all", "/subagents log x"} {
		if receipt, err := d.Receive(t.Context(), goclaw.Inbound{Session: mainKey, Text: text}); err == nil {
			t.Errorf("%s answered %q from a closed store", text, receipt.Reply)
		}
	}
}

func TestQuestions(t *testing.T) {
	d, ctx := newDesk(t), t.Context()
	turn := d.say("hello")
	d.end(turn.ID, ending{result: "hi"})
	log, err := d.RunLog(ctx, turn.ID[:4])
	if err != nil || log.Run.ID != turn.ID || len(log.Events) != 2 {
		t.Errorf("%+v, %v", log, err)
	}
	if _, err := d.RunLog(ctx, "nope-nope"); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
	if _, err := d.Cancel(ctx, "nope-nope", "why"); !errors.Is(err, goclaw.ErrNotFound) {
		t.Error(err)
	}
	if logs, err := d.History(ctx, mainKey); err != nil || len(logs) != 1 {
		t.Errorf("%+v, %v", logs, err)
	}
	if all, err := d.Sessions(ctx); err != nil || len(all) != 1 || all[0].Key != mainKey {
		t.Errorf("%+v, %v", all, err)
	}
	if p, err := d.Gateway.Context(ctx, goclaw.ContextQuery{Agent: "main"}); err != nil || p.Model != "p/small" {
		t.Errorf("%+v, %v", p, err)
	}
	if s, err := d.Status(ctx); err != nil || s.Version != "1.2.3" {
		t.Errorf("%+v, %v", s, err)
	}
	watching, stop := context.WithCancel(ctx)
	notices := d.Subscribe(watching, func(n goclaw.Notice) bool { return n.Kind == goclaw.NoticeText })
	d.feed.Publish(goclaw.Notice{Kind: goclaw.NoticeText, Text: "live"})
	if n := <-notices; n.Text != "live" {
		t.Errorf("%+v", n)
	}
	stop()
	for range notices {
		t.Error("a notice after the end")
	}
}
