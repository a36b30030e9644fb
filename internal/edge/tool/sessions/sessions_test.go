package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/tool/sessions"
)

var mainKey = goclaw.MainKey("main")

// bench is the tools on a memory store. Nothing runs by itself: the test ends
// runs as an engine would.
type bench struct {
	*testing.T
	store *memory.Store
	turn  goclaw.Run // whose calls are made
	since goclaw.Millis
	calls int
	ids   int
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, store: memory.Open()}
	b.turn = b.begin(b.accept(goclaw.Run{Session: mainKey, Trigger: goclaw.TriggerUser, Task: "go"}))
	b.since = now()
	return b
}

func now() goclaw.Millis { return goclaw.At(time.Now()) }

func (b *bench) accept(r goclaw.Run) goclaw.Run {
	b.Helper()
	b.ids++
	r.ID, r.State, r.CreatedAt = fmt.Sprintf("%04d-run", b.ids), goclaw.StateQueued, now()
	run, _, err := b.store.Accept(b.Context(), goclaw.Acceptance{Run: r})
	if err != nil {
		b.Fatal(err)
	}
	return run
}

// begin claims a run.
func (b *bench) begin(r goclaw.Run) goclaw.Run {
	b.Helper()
	if _, err := b.store.Claim(b.Context(), goclaw.ClaimRequest{Owner: "p", Now: now(), Lease: time.Hour, Max: 100}); err != nil {
		b.Fatal(err)
	}
	run, err := b.store.Run(b.Context(), r.ID)
	if err != nil || run.State != goclaw.StateRunning {
		b.Fatalf("%+v, %v", run, err)
	}
	return run
}

// spawn accepts a worker that from asked for.
func (b *bench) spawn(from goclaw.Run, label string, mode goclaw.AnnounceMode) goclaw.Run {
	b.Helper()
	return b.accept(goclaw.Run{
		Session: goclaw.SubagentKey("main", label), Trigger: goclaw.TriggerSpawn, Requester: from.Session,
		Parent: from.ID, Depth: from.Depth + 1, Label: label, Task: "do " + label, Announce: mode,
	})
}

// end closes a worker and announces it.
func (b *bench) end(r goclaw.Run, result string) {
	b.Helper()
	r = b.begin(r)
	e := goclaw.Ending{State: goclaw.StateCompleted, Result: result, Batch: goclaw.Batch{Now: now(), Events: []goclaw.Event{
		{Seq: 0, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: result}},
	}}}
	if r.Announce != goclaw.AnnounceNone {
		e.Announce = &goclaw.InboxItem{
			ID: r.ID, Kind: goclaw.ItemAnnouncement, Session: r.Requester, Source: r.ID, Group: r.Parent,
			Mode: r.Announce, Text: "[Subagent: " + r.Label + "] Complete.\n\n" + result, CreatedAt: now(),
		}
	}
	if err := b.store.End(b.Context(), r.Fence(), e); err != nil {
		b.Fatal(err)
	}
}

// call makes a call for the bench's turn, or makes the last one again.
func (b *bench) call(arguments string) goclaw.ToolResult {
	b.Helper()
	b.calls++
	b.since = now()
	return b.again(arguments)
}

func (b *bench) again(arguments string) goclaw.ToolResult {
	b.Helper()
	return b.tool("subagents").Call(b.Context(), goclaw.Invocation{
		Call: goclaw.ToolCall{ID: fmt.Sprint("call-", b.calls), Name: "subagents", Arguments: arguments}, Fence: b.turn.Fence(),
		Session: b.turn.Session, Depth: b.turn.Depth, Profile: b.turn.Profile, Since: b.since,
	})
}

func (b *bench) tool(name string) goclaw.Tool {
	tools := sessions.Tools(spawner{b.store}, b.store, b.store)
	return tools[slices.IndexFunc(tools, func(t goclaw.Tool) bool { return t.Spec().Name == name })]
}

// consume takes what a result tells of, as recording it would.
func (b *bench) consume(res goclaw.ToolResult, seq int) {
	b.Helper()
	err := b.store.Append(b.Context(), b.turn.Fence(), goclaw.Batch{Now: now(), Consume: res.Consume, Events: []goclaw.Event{
		{Seq: seq, Kind: goclaw.EventResult, Result: &res},
	}})
	if err != nil {
		b.Fatal(err)
	}
}

// says checks parts of a result that is no failure.
func (b *bench) says(res goclaw.ToolResult, want ...string) {
	b.Helper()
	for _, w := range want {
		if res.IsError || res.Suspend != nil || !strings.Contains(res.Content, w) {
			b.Errorf("want %s in %+v", w, res)
		}
	}
}

// refuses checks a failed result.
func (b *bench) refuses(res goclaw.ToolResult, want string) {
	b.Helper()
	if !res.IsError || !strings.Contains(res.Content, want) {
		b.Errorf("want the refusal %q, got %+v", want, res)
	}
}

// suspended checks that the call waits, and until when.
func (b *bench) suspended(res goclaw.ToolResult, until goclaw.Millis) {
	b.Helper()
	if diff := cmp.Diff(&goclaw.WaitingEvent{For: goclaw.WaitWorkers, Until: until}, res.Suspend); diff != "" || res.Consume != nil {
		b.Errorf("%s\n%+v", diff, res)
	}
}

// spawner reaches runs as the engine does.
type spawner struct{ store *memory.Store }

func (spawner) Spawn(context.Context, goclaw.Invocation, goclaw.SpawnRequest) (goclaw.SpawnReply, error) {
	return goclaw.SpawnReply{}, errors.New("not used here")
}

func (s spawner) Cancel(ctx context.Context, id, why string, cascade bool) ([]goclaw.Run, error) {
	return s.store.Cancel(ctx, goclaw.Cancellation{Run: id, Why: why, Now: now(), Cascade: cascade})
}

func (s spawner) Steer(ctx context.Context, id, text, from, once string) (goclaw.Run, error) {
	run, err := s.store.Run(ctx, id)
	if err != nil {
		return run, err
	}
	return run, s.store.Post(ctx, id, goclaw.InboxItem{ID: once, Text: from + ": " + text, CreatedAt: now()})
}

func TestOwnWorkersOnly(t *testing.T) {
	b := newBench(t)
	one := b.begin(b.spawn(b.turn, "one", goclaw.AnnounceTogether))
	inner := b.spawn(one, "inner", goclaw.AnnounceTogether)
	other := b.spawn(goclaw.Run{ID: "x", Session: goclaw.MainKey("second")}, "other", goclaw.AnnounceTogether)
	var list []struct {
		Label    string
		Status   goclaw.RunState
		Position int
	}
	if err := json.Unmarshal([]byte(b.call(`{"action":"list"}`).Content), &list); err != nil || len(list) != 1 || list[0].Label != "one" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, id := range []string{inner.ID, other.ID, "inner", "other", b.turn.ID, "nope-nope"} {
		for _, action := range []string{"info", "log", "steer", "cancel", "wait"} {
			b.refuses(b.call(fmt.Sprintf(`{"action":%q,"id":%q,"message":"hi"}`, action, id)), "none of your workers")
		}
	}
	for _, r := range []goclaw.Run{inner, other} {
		if r, err := b.store.Run(t.Context(), r.ID); err != nil || r.CancelAt != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	// The one in between sees its own, at their places in the queue.
	b.turn = one
	if err := json.Unmarshal([]byte(b.call(`{"action":"list"}`).Content), &list); err != nil || len(list) != 1 || list[0].Label != "inner" || list[0].Position != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	b.says(b.call(`{"action":"cancel","id":"inner"}`), `"cancelled":1`)
	b.refuses(b.call(`{"action":"info"}`), "id is missing")
}

func TestSteerIsTakenOnce(t *testing.T) {
	b := newBench(t)
	one := b.spawn(b.turn, "one", goclaw.AnnounceTogether)
	b.says(b.call(`{"action":"steer","id":"one","message":"mind the gap"}`), `"status":"ok"`)
	b.says(b.again(`{"action":"steer","id":"one","message":"mind the gap"}`), `"status":"ok"`) // after a crash
	b.says(b.call(`{"action":"steer","id":"one","message":"mind the gap"}`), `"status":"ok"`)
	items, err := b.store.Pending(t.Context(), one.Session)
	if err != nil || len(items) != 2 || items[0].ID != "steer:0001-run:call-1" || items[0].Text != "agent:main:main: mind the gap" {
		t.Errorf("%+v, %v", items, err)
	}
	b.refuses(b.call(`{"action":"steer","id":"one","message":" "}`), "message is missing")
	if _, err := b.store.Cancel(t.Context(), goclaw.Cancellation{Run: one.ID, Now: now()}); err != nil {
		t.Fatal(err)
	}
	b.refuses(b.call(`{"action":"steer","id":"one","message":"still there?"}`), "reads nothing any more")
}

func TestInfoInPieces(t *testing.T) {
	b := newBench(t)
	one := b.spawn(b.turn, "one", goclaw.AnnounceTogether)
	long := strings.Repeat("ä", 8000) + "the rest"
	b.end(one, long)
	var info struct {
		Result     string
		NextOffset int
	}
	read := func(offset int) {
		t.Helper()
		res := b.call(fmt.Sprintf(`{"action":"info","id":"one","offset":%d}`, offset))
		info.Result, info.NextOffset = "", 0
		if err := json.Unmarshal([]byte(res.Content), &info); err != nil {
			t.Fatal(err)
		}
	}
	if read(0); info.Result != long[:16000] || info.NextOffset != 8000 {
		t.Errorf("%d characters, next %d", len([]rune(info.Result)), info.NextOffset)
	}
	if read(8000); info.Result != "the rest" || info.NextOffset != 0 {
		t.Errorf("%q, next %d", info.Result, info.NextOffset)
	}
	if read(9000); info.Result != "" || info.NextOffset != 0 {
		t.Errorf("%q, next %d", info.Result, info.NextOffset)
	}
	b.says(b.call(`{"action":"log","id":"one"}`), `"end: completed"`)
}

func TestWaitForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.says(b.call(`{"action":"wait"}`), "no worker under way")
		early := b.spawn(b.turn, "early", goclaw.AnnounceTogether)
		one := b.spawn(b.turn, "one", goclaw.AnnounceEach)
		two := b.spawn(b.turn, "two", goclaw.AnnounceTogether)
		mute := b.spawn(b.turn, "mute", goclaw.AnnounceNone)
		past := b.spawn(b.turn, "past", goclaw.AnnounceNone)
		b.end(early, "r-early")
		b.end(past, "r-past")
		time.Sleep(time.Second)
		b.suspended(b.call(`{"action":"wait"}`), 0)
		b.end(one, "r-one")
		b.end(mute, "r-mute")
		b.suspended(b.again(`{"action":"wait"}`), 0)
		b.end(two, "r-two")
		res := b.again(`{"action":"wait"}`)
		b.says(res, `"status":"ended"`, "[Subagent: early] Complete.", "[Subagent: one] Complete.", "[Subagent: two] Complete.", `"result":"r-mute"`)
		if strings.Contains(res.Content, "r-past") || strings.Contains(res.Content, "active") {
			t.Error(res.Content)
		}
		if diff := cmp.Diff([]string{early.ID, one.ID, two.ID}, res.Consume); diff != "" {
			t.Error(diff)
		}
		b.consume(res, 0)
		if items, err := b.store.Pending(t.Context(), mainKey); err != nil || len(items) != 0 {
			t.Errorf("%+v, %v", items, err)
		}
		time.Sleep(time.Second)
		b.says(b.call(`{"action":"wait"}`), "no worker under way")
		b.says(b.call(`{"action":"wait","id":"one"}`), `"note":"announced already"`)
		b.says(b.call(`{"action":"wait","id":"mute"}`), `"result":"r-mute"`)
	})
}

// The time counts from the call's intent, however often it is made again.
func TestWaitEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		one := b.spawn(b.turn, "one", goclaw.AnnounceTogether)
		b.spawn(b.turn, "two", goclaw.AnnounceTogether)
		until := now().Add(30 * time.Second)
		b.suspended(b.call(`{"action":"wait","timeoutSeconds":30}`), until)
		time.Sleep(20 * time.Second)
		b.end(one, "r1")
		b.suspended(b.again(`{"action":"wait","timeoutSeconds":30}`), until)
		time.Sleep(10 * time.Second)
		res := b.again(`{"action":"wait","timeoutSeconds":30}`)
		b.says(res, `"status":"timeout"`, "[Subagent: one]", `"active":[{"runId":"0003-run","label":"two"`)
		if diff := cmp.Diff([]string{one.ID}, res.Consume); diff != "" {
			t.Error(diff)
		}
		b.consume(res, 0)
		// One of them: what was told is told no second time.
		b.suspended(b.call(`{"action":"wait","id":"two"}`), 0)
		b.says(b.call(`{"action":"wait","id":"one"}`), "announced already")
	})
}

// A worker that waits for its own reads what comes for it meanwhile.
func TestWaitEndsWithAMessage(t *testing.T) {
	b := newBench(t)
	b.turn = b.begin(b.spawn(b.turn, "boss", goclaw.AnnounceTogether))
	b.spawn(b.turn, "inner", goclaw.AnnounceTogether)
	b.suspended(b.call(`{"action":"wait"}`), 0)
	if err := b.store.Post(t.Context(), b.turn.ID, goclaw.InboxItem{ID: "m", Text: "hurry", CreatedAt: now()}); err != nil {
		t.Fatal(err)
	}
	res := b.again(`{"action":"wait"}`)
	b.says(res, `"status":"message"`, `"active":[{"runId":"0003-run"`)
	if len(res.Consume) != 0 {
		t.Errorf("the message was taken: %v", res.Consume)
	}
}

func TestToolsReportWhatFails(t *testing.T) {
	b := newBench(t)
	b.spawn(b.turn, "one", goclaw.AnnounceTogether)
	b.refuses(b.call(`{"action":`), "arguments")
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	asksAgain := func(args string) {
		if res := b.call(args); res.Again == nil || !strings.Contains(res.Again.Error(), "store is closed") || res.Content != "" {
			t.Errorf("%s while the store is away: %+v", args, res)
		}
	}
	for _, action := range []string{"list", "info", "wait", "cancel", "steer", "log"} {
		asksAgain(fmt.Sprintf(`{"action":%q,"id":"one","message":"m"}`, action))
	}
	asksAgain(`{"action":"wait"}`)
}

// What a crash left unanswered is called again, and messages keep their order.
func TestSpecs(t *testing.T) {
	for _, tool := range sessions.Tools(nil, nil, nil) {
		spec := tool.Spec()
		if !spec.Idempotent || !json.Valid(spec.Schema) {
			t.Errorf("%+v", spec)
		}
		if spec.Name == "subagents" && !spec.Ordered {
			t.Error("calls of subagents may overtake each other")
		}
	}
}
