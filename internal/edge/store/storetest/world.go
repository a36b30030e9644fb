package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

// start is when every test begins.
const start goclaw.Millis = 1_700_000_000_000

const lease = 15 * time.Second

// world is a fresh store and what a test does with it; its methods fail the
// test where an error is not expected.
type world struct {
	*testing.T
	Store
	now goclaw.Millis
}

func newWorld(t *testing.T, open func(*testing.T) Store) *world {
	t.Helper()
	return &world{T: t, Store: open(t), now: start}
}

// turn is an acceptance of a user's turn of the agent's main session.
func (w *world) turn(id, agent string) goclaw.Acceptance {
	return goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: goclaw.MainKey(agent), Trigger: goclaw.TriggerUser, Task: "do " + id,
		State: goclaw.StateQueued, CreatedAt: w.now,
	}}
}

// spawn is an acceptance of a worker that parent spawns.
func (w *world) spawn(id string, parent goclaw.Run) goclaw.Acceptance {
	return goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: goclaw.SubagentKey(parent.Session.Agent, id), Trigger: goclaw.TriggerSpawn,
		Requester: parent.Session, Parent: parent.ID, Depth: parent.Depth + 1, Task: "help with " + id,
		Announce: goclaw.AnnounceTogether, Cleanup: goclaw.CleanupKeep,
		State: goclaw.StateQueued, CreatedAt: w.now,
	}}
}

func (w *world) accept(a goclaw.Acceptance) goclaw.Run {
	w.Helper()
	run, created, err := w.Accept(w.Context(), a)
	if err != nil || !created {
		w.Fatalf("Accept(%s): created %v, error %v; want a new run", a.Run.ID, created, err)
	}
	return run
}

func (w *world) request(owner string, most int) goclaw.ClaimRequest {
	return goclaw.ClaimRequest{Owner: owner, Now: w.now, Lease: lease, Max: most}
}

func (w *world) claim(c goclaw.ClaimRequest) []goclaw.Claimed {
	w.Helper()
	claimed, err := w.Claim(w.Context(), c)
	w.ok(err)
	return claimed
}

// claims fails unless exactly these runs are claimed, in order; an id with a
// + at its end is one that is taken over.
func (w *world) claims(c goclaw.ClaimRequest, ids ...string) []goclaw.Claimed {
	w.Helper()
	claimed := w.claim(c)
	var got []string
	for _, one := range claimed {
		id := one.Run.ID
		if one.TakeOver {
			id += "+"
		}
		got = append(got, id)
	}
	w.same("claimed runs", got, ids)
	return claimed
}

// begin accepts a and claims it for owner.
func (w *world) begin(a goclaw.Acceptance, owner string) goclaw.Run {
	w.Helper()
	w.accept(a)
	for _, one := range w.claim(w.request(owner, 100)) {
		if one.Run.ID == a.Run.ID {
			return one.Run
		}
	}
	w.Fatalf("run %s was not claimed", a.Run.ID)
	return goclaw.Run{}
}

func (w *world) end(r goclaw.Run) {
	w.Helper()
	w.ok(w.End(w.Context(), r.Fence(), goclaw.Ending{
		State: goclaw.StateCompleted, Result: "did " + r.ID, Batch: goclaw.Batch{Now: w.now},
	}))
}

// announce ends r and announces it to its requester as item.
func (w *world) announce(r goclaw.Run, item string) {
	w.Helper()
	w.ok(w.End(w.Context(), r.Fence(), goclaw.Ending{
		State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: w.now}, Announce: &goclaw.InboxItem{
			ID: item, Session: r.Requester, Source: r.ID, Group: r.Parent, Mode: r.Announce, Text: "[Subagent] Complete.",
		},
	}))
}

// find reads a run as it is stored now.
func (w *world) find(id string) goclaw.Run {
	w.Helper()
	r, err := w.Run(w.Context(), id)
	w.ok(err)
	return r
}

// Run is the store's, not testing.T's.
func (w *world) Run(ctx context.Context, id string) (goclaw.Run, error) { return w.Store.Run(ctx, id) }

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected error: %v", err)
	}
}

// fails fails unless err is want.
func (w *world) fails(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("%s: got error %v, want %q", what, err, want)
	}
}

// refused fails unless err is an error.
func (w *world) refused(what string, err error) {
	w.Helper()
	if err == nil {
		w.Fatalf("%s was not refused", what)
	}
}

func (w *world) same(what string, got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// pendingIDs are the ids of the session's unconsumed items.
func (w *world) pendingIDs(session goclaw.SessionKey) []string {
	w.Helper()
	items, err := w.Pending(w.Context(), session)
	w.ok(err)
	var ids []string
	for _, i := range items {
		ids = append(ids, i.ID)
	}
	return ids
}

func (w *world) events(run string) []goclaw.Event {
	w.Helper()
	events, err := w.Events(w.Context(), run)
	w.ok(err)
	return events
}

// batch is a batch of n events from seq on.
func (w *world) batch(seq, n int) goclaw.Batch {
	b := goclaw.Batch{Now: w.now}
	for i := range n {
		b.Events = append(b.Events, result(seq+i, w.now))
	}
	return b
}

func result(seq int, at goclaw.Millis) goclaw.Event {
	return goclaw.Event{Seq: seq, Kind: goclaw.EventResult, At: at, Result: &goclaw.ToolResult{CallID: fmt.Sprintf("call %d", seq), Name: "read"}}
}

func blob(text string) goclaw.Blob {
	sum := sha256.Sum256([]byte(text))
	return goclaw.Blob{SHA256: hex.EncodeToString(sum[:]), Data: []byte(text)}
}

func ids(runs []goclaw.Run) []string {
	var list []string
	for _, r := range runs {
		list = append(list, r.ID)
	}
	return list
}
