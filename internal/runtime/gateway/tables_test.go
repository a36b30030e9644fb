package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/runtime/gateway"
)

// lines compares a table with what it shall be, a line each.
func lines(t *testing.T, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

// at is the moment on a clock of the person's zone.
func at(clock string) goclaw.Millis {
	when, err := time.ParseInLocation(time.DateTime, "2026-03-04 "+clock, time.Local)
	if err != nil {
		panic(err)
	}
	return goclaw.At(when)
}

func TestRunTable(t *testing.T) {
	start := at("12:00:00")
	info := func(id, parent string, state goclaw.RunState) goclaw.RunInfo {
		return goclaw.RunInfo{RunID: id, Parent: parent, Status: state, Label: "is " + id, Model: "p/m", StartedAt: start}
	}
	boss := info("boss", "turn", goclaw.StateWaiting)
	boss.WaitsFor = goclaw.WaitWorkers
	ask := info("ask", "turn", goclaw.StateWaiting)
	ask.WaitsFor, ask.Recovery = goclaw.WaitPerson, &goclaw.Recovery{Times: 2, Step: 5, Uncertain: []string{"exec", "write"}}
	queued := info("queued", "boss", goclaw.StateQueued)
	queued.StartedAt, queued.Position = 0, 3
	planned := info("planned", "boss", goclaw.StateRunning)
	planned.Recovery = &goclaw.Recovery{Times: 1, Step: 5, Planned: true}
	deep := info("deep", "planned", goclaw.StateCompleted)
	deep.FinishedAt, deep.DurationMs, deep.Recovery = start+1, 1500, planned.Recovery
	deep.Usage = goclaw.Usage{Input: 12, Output: 3}

	newest := []goclaw.RunInfo{deep, planned, queued, ask, boss}
	lines(t, gateway.RunTable(newest[2:4], start.Time()),
		"ID        STATUS      LABEL                    TIME         TOKENS  MODEL",
		"queued    queued #3   is queued                   -     0 in 0 out  p/m",
		"ask       waiting     is ask                     0s     0 in 0 out  p/m · waiting for you: resume or cancel it · resumed 2x, last at step 5; outcome of exec, write unknown",
	)
	lines(t, gateway.RunTable(gateway.Tree(newest), start.Add(2*time.Second).Time()),
		"ID        STATUS      LABEL                    TIME         TOKENS  MODEL",
		"ask       waiting     is ask                     2s     0 in 0 out  p/m · waiting for you: resume or cancel it · resumed 2x, last at step 5; outcome of exec, write unknown",
		"boss      waiting     is boss                    2s     0 in 0 out  p/m · waiting for its workers",
		"queued    queued #3     is queued                 -     0 in 0 out  p/m",
		"planned   running       is planned               2s     0 in 0 out  p/m · handed over at step 5",
		"deep      completed       is deep              1.5s    12 in 3 out  p/m",
	)
	lines(t, gateway.RunTable(nil, start.Time()), "No workers.")
}

func TestRunDetails(t *testing.T) {
	cost := 0.5
	r := goclaw.Run{
		ID: "abcdefgh-1", Session: goclaw.SubagentKey("main", "1"), Trigger: goclaw.TriggerSpawn, Requester: mainKey, Depth: 2, Epoch: 3,
		Root: "root", Label: "one", Task: "do it", State: goclaw.StateWaiting, WaitsFor: goclaw.WaitWorkers, WakeAt: at("12:30:00"),
		Recovery: &goclaw.Recovery{Times: 1, Step: 4, At: at("12:10:00")}, Usage: goclaw.Usage{Input: 10, CacheRead: 5, Output: 2, CostUSD: &cost},
		Profile: goclaw.Profile{Model: "p/m", Thinking: "off", Tools: []string{"read"}}, CreatedAt: at("12:00:00"), StartedAt: at("12:00:01"),
	}
	lines(t, gateway.RunDetails(r, 0, nil, at("12:00:03").Time()),
		"run        abcdefgh-1",
		"label      one",
		"status     waiting",
		"waits      waiting for its workers, until 2026-03-04 12:30:00 at the latest",
		"recovery   resumed 1x, last at step 4 (2026-03-04 12:10:00)",
		"session    agent:main:subagent:1",
		"requester  agent:main:main",
		"trigger    spawn, depth 2, claimed 3 times",
		"tree       root",
		"model      p/m, thinking off",
		"tools      read",
		"created    2026-03-04 12:00:00",
		"time       2s",
		"tokens     10 in (5 from cache), 2 out",
		"cost       $0.5000",
		"task       do it",
	)
}

func TestEventTable(t *testing.T) {
	events := []goclaw.Event{
		{Kind: goclaw.EventInput, Input: &goclaw.InputEvent{Message: goclaw.Text(goclaw.RoleUser, "mind\nthe gap"), Inbox: []string{"a"}}},
		{Kind: goclaw.EventWaiting, Waiting: &goclaw.WaitingEvent{For: goclaw.WaitWorkers, Until: at("12:30:00")}},
		{Kind: goclaw.EventWaiting, Waiting: &goclaw.WaitingEvent{For: goclaw.WaitPerson}},
		{Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{Owner: "p2", Step: 3, Uncertain: []string{"c1"}, ModelCallLost: true}},
		{Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{Owner: "p3", Step: 4, Planned: true}},
		{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateFailed, Error: "HTTP 529", Dropped: 12, Returned: true, Unread: []string{"a", "b"}}},
	}
	for i := range events {
		events[i].Seq, events[i].At = i, at("12:00:00")
	}
	lines(t, gateway.EventTable(events),
		"  0 12:00:00.000 input   1 message between its steps: mind the gap",
		"  1 12:00:00.000 waiting for its workers; its slot is free meanwhile, until 2026-03-04 12:30:00 at the latest",
		"  2 12:00:00.000 waiting for a person to resume or cancel it",
		"  3 12:00:00.000 resumed taken over by p2 at step 3; outcome of 1 call unknown, not repeated; a model call may have to be paid again",
		"  4 12:00:00.000 resumed handed over to p3 at step 4",
		"  5 12:00:00.000 end     failed HTTP 529; 12 bytes around the answer dropped; what it was to tell went back, to be told later; 2 messages came too late",
	)
}

func TestParkedTable(t *testing.T) {
	lines(t, gateway.ParkedTable([]goclaw.Parked{
		{ID: "abcdefgh-1", Kind: "announcement", Session: mainKey, Text: "[Subagent: one] Complete.\n\nhigh", Attempts: 5, Error: "HTTP 529", ParkedAt: at("12:00:00")},
		{ID: "abcdefgh-22", Kind: "reply", Session: mainKey, Text: "hi", ParkedAt: at("12:00:01")},
	}),
		"ID          KIND         SINCE               TRIES  FOR",
		"abcdefgh-1  announcement 2026-03-04 12:00:00     5  agent:main:main: [Subagent: one] Complete. high",
		"            HTTP 529",
		"abcdefgh-2  reply        2026-03-04 12:00:01     0  agent:main:main: hi",
	)
}

func TestUsageTable(t *testing.T) {
	usd := func(v float64) *float64 { return &v }
	rows := []goclaw.UsageRow{
		{Day: "2026-03-03", Model: "p/a", Calls: 2, Usage: goclaw.Usage{Input: 1000, CacheRead: 255, CacheWrite: 700, Output: 20}, Unpriced: 2},
		{Day: "2026-03-04", Model: "p/b", Calls: 5, Usage: goclaw.Usage{Input: 400, Output: 40, CostUSD: usd(0.12)}, Unpriced: 3},
		{Day: "2026-03-04", Model: "p/a", Calls: 1, Usage: goclaw.Usage{Input: 0, Output: 4, CostUSD: usd(1.5)}},
	}
	by := []string{"day", "model"}
	gateway.SortUsage(rows, by)
	lines(t, gateway.UsageTable(rows, by),
		"DAY         MODEL  CALLS  INPUT  CACHED  WRITTEN  OUTPUT  COST",
		"2026-03-04  p/a        1      0       -        -       4  $1.50",
		"2026-03-04  p/b        5    400      0%       0%      40  $0.1200 + 3 calls unknown",
		"2026-03-03  p/a        2   1000     25%      70%      20  unknown",
		"total                  8   1400     18%      50%      64  $1.62 + 5 calls unknown",
	)
	// What a crash lost is shown where there is any; a free call is no unknown one.
	lines(t, gateway.UsageTable([]goclaw.UsageRow{{Lost: 900}, {Calls: 1, Usage: goclaw.Usage{CostUSD: usd(0)}}, {Calls: 1, Usage: goclaw.Usage{CostUSD: usd(0.00001)}}}, []string{"tree"}),
		"TREE   CALLS  INPUT  CACHED  WRITTEN  OUTPUT  LOST  COST",
		"-          0      0       -        -       0   900  -",
		"-          1      0       -        -       0     0  $0.00",
		"-          1      0       -        -       0     0  <$0.0001",
		"total      2      0       -        -       0   900  <$0.0001",
		"LOST are tokens, as reserved, that calls without a record may have cost: their process died first.",
	)
	lines(t, gateway.UsageTable(rows[:1], nil), "CALLS  INPUT  CACHED  WRITTEN  OUTPUT  COST", "    1      0       -        -       4  $1.50")
	lines(t, gateway.UsageTable(nil, by), "No model calls on record.")
}
