package storetest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/store/storetest"
)

// TestAgree does the same random things to the SQLite store and to the one in
// memory, its model, and compares whatever can be seen of them.
func TestAgree(t *testing.T) {
	dir := t.TempDir()
	files := 0
	rapid.Check(t, func(rt *rapid.T) {
		files++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", files))
		p := &pair{T: rt, ctx: t.Context(), path: path, model: memory.Open(), now: 1000, fences: []goclaw.Fence{{Run: "none", Epoch: 1}}}
		p.open()
		defer func() {
			_ = p.subject.Close()
			_ = os.Remove(path)
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"accept":    p.accept,
			"claim":     p.claim,
			"append":    p.append,
			"end":       p.end,
			"cancel":    p.cancel,
			"heartbeat": p.heartbeat,
			"release":   p.release,
			"tidy":      p.tidy,
			"session":   p.session,
			"outbox":    p.outbox,
			"artifact":  p.artifact,
			"ask":       p.ask,
			"reopen":    p.reopen,
			"wait":      func(rt *rapid.T) { p.now += goclaw.Millis(rapid.IntRange(0, 2000).Draw(rt, "ms")) },
		})
		p.compareAll()
	})
}

// pair is a store and its model, and what was learnt from them.
type pair struct {
	*rapid.T
	ctx     context.Context
	path    string
	model   storetest.Store
	subject storetest.Store

	now    goclaw.Millis
	serial int
	runs   []goclaw.Run
	fences []goclaw.Fence
	items  []string
	posts  []string
}

func (p *pair) open() {
	s, err := sqlite.Open(p.ctx, p.path, sqlite.Options{Sync: "OFF"})
	if err != nil {
		p.Fatal(err)
	}
	p.subject = s
}

// both does f to both stores, compares the answers and returns the model's.
func both[V any](p *pair, what string, f func(storetest.Store) (V, error)) (V, error) {
	p.Helper()
	want, wantErr := f(p.model)
	got, gotErr := f(p.subject)
	if class(wantErr) != class(gotErr) {
		p.Fatalf("%s: got error %v, want %v", what, gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.Fatalf("%s (-model +sqlite):\n%s", what, diff)
	}
	return want, wantErr
}

func bothDo(p *pair, what string, f func(storetest.Store) error) error {
	p.Helper()
	_, err := both(p, what, func(s storetest.Store) (struct{}, error) { return struct{}{}, f(s) })
	return err
}

// class is what a caller can branch on.
func class(err error) string {
	for _, sentinel := range []error{goclaw.ErrNotFound, goclaw.ErrFenced, goclaw.ErrTooManyChildren, goclaw.ErrConsumed} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	if err != nil {
		return "other"
	}
	return "none"
}

func (p *pair) key(rt *rapid.T) goclaw.SessionKey {
	return rapid.SampledFrom([]goclaw.SessionKey{
		goclaw.MainKey("a"), goclaw.MainKey("b"), goclaw.SubagentKey("a", "1"), goclaw.SubagentKey("a", "2"), goclaw.CronKey("b", "j:1"),
	}).Draw(rt, "session")
}

func (p *pair) owner(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"o1", "o2", "o3"}).Draw(rt, "owner")
}

func (p *pair) runID(rt *rapid.T) string {
	if len(p.runs) == 0 {
		return "none"
	}
	return rapid.SampledFrom(p.runs).Draw(rt, "run").ID
}

func (p *pair) fence(rt *rapid.T) goclaw.Fence {
	// Mostly a recent one, which still holds.
	from := 0
	if rapid.IntRange(0, 4).Draw(rt, "recent") > 0 {
		from = max(0, len(p.fences)-3)
	}
	return rapid.SampledFrom(p.fences[from:]).Draw(rt, "fence")
}

func (p *pair) id(kind string) string {
	p.serial++
	return fmt.Sprintf("%s-%04d", kind, p.serial)
}

func (p *pair) accept(rt *rapid.T) {
	triggers := []goclaw.Trigger{goclaw.TriggerUser, goclaw.TriggerSpawn, goclaw.TriggerSpawn, goclaw.TriggerAnnouncement, goclaw.TriggerCron}
	a := goclaw.Acceptance{
		Run: goclaw.Run{
			ID: p.id("run"), Session: p.key(rt), Trigger: rapid.SampledFrom(triggers).Draw(rt, "trigger"),
			Task: rapid.String().Draw(rt, "task"), Label: rapid.StringN(0, 3, -1).Draw(rt, "label"),
			Cleanup:  rapid.SampledFrom([]goclaw.Cleanup{"", goclaw.CleanupKeep, goclaw.CleanupDelete}).Draw(rt, "cleanup"),
			Announce: rapid.SampledFrom([]goclaw.AnnounceMode{"", goclaw.AnnounceTogether, goclaw.AnnounceEach}).Draw(rt, "announce"),
			Profile:  goclaw.Profile{TimeoutMs: int64(rapid.IntRange(0, 2).Draw(rt, "timeout"))},
			State:    goclaw.StateQueued, CreatedAt: p.now,
		},
		Key:      rapid.SampledFrom([]string{"", "", "", "k1", "k2"}).Draw(rt, "key"),
		Coalesce: rapid.IntRange(0, 4).Draw(rt, "coalesce") == 0,
	}
	if a.Run.Trigger == goclaw.TriggerSpawn {
		a.Run.Requester, a.Run.Parent = p.key(rt), p.runID(rt)
		a.MaxChildren = rapid.IntRange(0, 4).Draw(rt, "children")
		if rapid.IntRange(0, 2).Draw(rt, "fenced") == 0 {
			f := p.fence(rt)
			a.ParentFence = &f
		}
	}
	if len(p.runs) > 0 && rapid.IntRange(0, 20).Draw(rt, "again") == 0 {
		a.Run.ID = p.runID(rt)
	}
	var created []bool
	run, err := both(p, "Accept", func(s storetest.Store) (goclaw.Run, error) {
		run, isNew, err := s.Accept(p.ctx, a)
		created = append(created, isNew)
		return run, err
	})
	if created[0] != created[1] {
		rt.Fatalf("Accept created %v in the model, %v in SQLite", created[0], created[1])
	}
	if err == nil && created[0] {
		p.runs = append(p.runs, run)
	}
}

func (p *pair) claim(rt *rapid.T) {
	c := goclaw.ClaimRequest{
		Owner: p.owner(rt), Now: p.now, Lease: time.Second, Max: rapid.IntRange(0, 4).Draw(rt, "max"),
		MaxWorkers:    rapid.IntRange(0, 3).Draw(rt, "workers"),
		OnlyCancelled: rapid.IntRange(0, 5).Draw(rt, "cancelled") == 0,
		DeadOwners:    rapid.IntRange(0, 5).Draw(rt, "dead") == 0,
	}
	claimed, _ := both(p, "Claim", func(s storetest.Store) ([]goclaw.Claimed, error) { return s.Claim(p.ctx, c) })
	for _, one := range claimed {
		p.fences = append(p.fences, one.Run.Fence())
	}
}

// batch continues the run's log, or tries something that it must refuse.
func (p *pair) batch(rt *rapid.T, run string) goclaw.Batch {
	events, err := p.model.Events(p.ctx, run)
	if err != nil {
		rt.Fatal(err)
	}
	seq := len(events)
	if rapid.IntRange(0, 9).Draw(rt, "gap") == 0 {
		seq++
	}
	b := goclaw.Batch{Now: p.now}
	for i := range rapid.IntRange(0, 3).Draw(rt, "events") {
		text := rapid.String().Draw(rt, "content")
		b.Events = append(b.Events, goclaw.Event{Seq: seq + i, Kind: goclaw.EventResult, Result: &goclaw.ToolResult{Content: text}})
		sum := sha256.Sum256([]byte(text))
		b.Blobs = append(b.Blobs, goclaw.Blob{SHA256: hex.EncodeToString(sum[:]), Data: []byte(text)})
	}
	if len(p.items) > 0 && rapid.IntRange(0, 2).Draw(rt, "consume") == 0 {
		b.Consume = rapid.SliceOfN(rapid.SampledFrom(append(p.items[max(0, len(p.items)-4):], "none")), 1, 2).Draw(rt, "items")
	}
	if cost := rapid.Float64Range(0, 9).Draw(rt, "cost"); cost > 3 {
		b.Usage = &goclaw.Usage{Input: int64(cost), Output: 1}
		if cost > 6 {
			b.Usage.CostUSD = &cost
		}
	}
	return b
}

func (p *pair) append(rt *rapid.T) {
	f := p.fence(rt)
	b := p.batch(rt, f.Run)
	_ = bothDo(p, "Append", func(s storetest.Store) error { return s.Append(p.ctx, f, b) })
}

func (p *pair) end(rt *rapid.T) {
	f := p.fence(rt)
	states := []goclaw.RunState{goclaw.StateCompleted, goclaw.StateFailed, goclaw.StateTimeout, goclaw.StateCancelled, goclaw.StateRunning}
	e := goclaw.Ending{
		Batch: p.batch(rt, f.Run), State: rapid.SampledFrom(states).Draw(rt, "state"),
		Result: rapid.String().Draw(rt, "result"), Error: rapid.String().Draw(rt, "error"),
	}
	if rapid.Bool().Draw(rt, "announced") {
		e.Announce = &goclaw.InboxItem{ID: p.id("item"), Session: p.key(rt), Source: f.Run, Group: p.runID(rt), Text: "text"}
	}
	if rapid.Bool().Draw(rt, "posted") {
		e.Outbox = &goclaw.Outbound{ID: p.id("post"), Session: p.key(rt), Run: f.Run, NextAt: p.now + goclaw.Millis(rapid.IntRange(-1, 1).Draw(rt, "next"))}
	}
	if err := bothDo(p, "End", func(s storetest.Store) error { return s.End(p.ctx, f, e) }); err != nil {
		return
	}
	if e.Announce != nil {
		p.items = append(p.items, e.Announce.ID)
	}
	if e.Outbox != nil {
		p.posts = append(p.posts, e.Outbox.ID)
	}
}

func (p *pair) cancel(rt *rapid.T) {
	c := goclaw.Cancellation{Run: p.runID(rt), Why: "why", Now: p.now, Cascade: rapid.Bool().Draw(rt, "cascade")}
	_, _ = both(p, "Cancel", func(s storetest.Store) ([]goclaw.Run, error) { return s.Cancel(p.ctx, c) })
}

func (p *pair) heartbeat(rt *rapid.T) {
	h := goclaw.Heartbeat{Owner: p.owner(rt), Now: p.now, Lease: time.Second}
	_, _ = both(p, "Heartbeat", func(s storetest.Store) (goclaw.Pulse, error) { return s.Heartbeat(p.ctx, h) })
}

func (p *pair) release(rt *rapid.T) {
	owner := p.owner(rt)
	_ = bothDo(p, "Release", func(s storetest.Store) error { return s.Release(p.ctx, owner, p.now) })
}

func (p *pair) tidy(rt *rapid.T) {
	before := p.now - goclaw.Millis(rapid.IntRange(-1, 2000).Draw(rt, "age"))
	_, _ = both(p, "Tidy", func(s storetest.Store) (int, error) { return s.Tidy(p.ctx, p.now, before) })
}

func (p *pair) session(rt *rapid.T) {
	key := p.key(rt)
	c := goclaw.SessionChange{Reset: rapid.Bool().Draw(rt, "reset")}
	if rapid.Bool().Draw(rt, "model") {
		model := rapid.StringN(0, 2, -1).Draw(rt, "name")
		c.Model = &model
	}
	_ = bothDo(p, "ChangeSession", func(s storetest.Store) error { return s.ChangeSession(p.ctx, key, c, p.now) })
}

func (p *pair) outbox(rt *rapid.T) {
	limit := rapid.IntRange(0, 2).Draw(rt, "limit")
	_, _ = both(p, "Outbox", func(s storetest.Store) ([]goclaw.Outbound, error) { return s.Outbox(p.ctx, p.now, limit) })
	id := rapid.SampledFrom(append([]string{"none"}, p.posts...)).Draw(rt, "post")
	state := rapid.SampledFrom([]string{"pending", "sending", "sent", "parked", "odd"}).Draw(rt, "state")
	_ = bothDo(p, "MarkOutbox", func(s storetest.Store) error { return s.MarkOutbox(p.ctx, id, state, p.now+1, "why") })
}

func (p *pair) artifact(rt *rapid.T) {
	f := p.fence(rt)
	a := goclaw.Artifact{Name: rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "name")}
	data := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "data")
	_ = bothDo(p, "PutArtifact", func(s storetest.Store) error { return s.PutArtifact(p.ctx, f, a, data, p.now) })
}

func (p *pair) ask(rt *rapid.T) {
	filter := goclaw.RunFilter{
		Active: rapid.Bool().Draw(rt, "active"), Ended: rapid.Bool().Draw(rt, "ended"), Limit: rapid.IntRange(0, 3).Draw(rt, "limit"),
	}
	switch rapid.IntRange(0, 3).Draw(rt, "by") {
	case 0:
		filter.Session = p.key(rt)
	case 1:
		filter.Requester = p.key(rt)
	case 2:
		filter.Parent, filter.Triggers = p.runID(rt), []goclaw.Trigger{goclaw.TriggerSpawn, goclaw.TriggerUser}
	}
	_, _ = both(p, "Runs", func(s storetest.Store) ([]goclaw.Run, error) { return s.Runs(p.ctx, filter) })
	id := p.runID(rt)
	id = id[:rapid.IntRange(0, len(id)).Draw(rt, "prefix")]
	_, _ = both(p, "Run", func(s storetest.Store) (goclaw.Run, error) { return s.Run(p.ctx, id) })
	key, before := p.key(rt), int64(rapid.IntRange(0, len(p.runs)+1).Draw(rt, "before"))
	_, _ = both(p, "History", func(s storetest.Store) ([]goclaw.RunLog, error) { return s.History(p.ctx, key, before) })
	_, _ = both(p, "Pending", func(s storetest.Store) ([]goclaw.InboxItem, error) { return s.Pending(p.ctx, key) })
	_, _ = both(p, "Session", func(s storetest.Store) (goclaw.Session, error) { return s.Session(p.ctx, key) })
}

func (p *pair) reopen(*rapid.T) {
	if err := p.subject.Close(); err != nil {
		p.Fatal(err)
	}
	p.open()
}

func (p *pair) compareAll() {
	runs, _ := both(p, "all runs", func(s storetest.Store) ([]goclaw.Run, error) { return s.Runs(p.ctx, goclaw.RunFilter{}) })
	_, _ = both(p, "all sessions", func(s storetest.Store) ([]goclaw.Session, error) { return s.AllSessions(p.ctx) })
	_, _ = both(p, "all items", func(s storetest.Store) ([]goclaw.InboxItem, error) { return s.Pending(p.ctx, goclaw.SessionKey{}) })
	_, _ = both(p, "the outbox", func(s storetest.Store) ([]goclaw.Outbound, error) { return s.Outbox(p.ctx, p.now*2, 0) })
	_, _ = both(p, "counts", func(s storetest.Store) ([2]int, error) {
		active, queued, err := s.Counts(p.ctx)
		return [2]int{active, queued}, err
	})
	for _, r := range runs {
		events, _ := both(p, "events", func(s storetest.Store) ([]goclaw.Event, error) { return s.Events(p.ctx, r.ID) })
		for _, e := range events {
			sum := sha256.Sum256([]byte(e.Result.Content))
			_, _ = both(p, "blob", func(s storetest.Store) (string, error) {
				data, err := s.Blob(p.ctx, hex.EncodeToString(sum[:]))
				return string(data), err
			})
		}
		artifacts, _ := both(p, "artifacts", func(s storetest.Store) ([]goclaw.Artifact, error) { return s.Artifacts(p.ctx, r.ID) })
		for _, a := range artifacts {
			_, _ = both(p, "blob", func(s storetest.Store) (string, error) {
				data, err := s.Blob(p.ctx, a.SHA256)
				return string(data), err
			})
		}
	}
}
