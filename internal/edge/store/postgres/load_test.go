package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/store/storetest"
)

// TestLoad moves a SQLite store with something of everything into PostgreSQL:
// it looks the same, and its life goes on.
func TestLoad(t *testing.T) {
	ctx := t.Context()
	from := openSQLite(t)
	live(t, from)
	to := open(t, database(t), postgres.Options{})
	counts := move(t, from, to)
	for _, table := range []string{"sessions", "processes", "runs", "events", "inbox", "outbox", "blobs", "artifacts", "calls", "holds", "rates", "control"} {
		if counts[table] == 0 {
			t.Errorf("table %s was empty: nothing is shown of it", table)
		}
	}
	if diff := cmp.Diff(seen(t, from), seen(t, to)); diff != "" {
		t.Fatalf("SQLite and PostgreSQL differ (-from +to):\n%s", diff)
	}
	for _, s := range []storetest.Store{from, to} {
		late := turn("late")
		run, _, err := s.Accept(ctx, goclaw.Acceptance{Run: late})
		if err != nil {
			t.Fatal(err)
		}
		again, created, err := s.Accept(ctx, goclaw.Acceptance{Run: turn("again"), Key: "key"})
		if err != nil || created {
			t.Fatalf("a key is not known any more: run %s, error %v", again.ID, err)
		}
		claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "heir", Now: 1_000_000, Lease: time.Hour, Max: 99})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range claimed {
			if err := s.End(ctx, one.Run.Fence(), goclaw.Ending{State: goclaw.StateCompleted}); err != nil {
				t.Error(err)
			}
		}
		if run.Ordinal == 0 || len(claimed) == 0 {
			t.Errorf("accepted %+v, claimed %d", run, len(claimed))
		}
	}
	if diff := cmp.Diff(seen(t, from), seen(t, to)); diff != "" {
		t.Fatalf("later they differ (-from +to):\n%s", diff)
	}

	if _, err := to.Load(ctx); err == nil || !strings.Contains(err.Error(), "use an empty database") {
		t.Errorf("loading into a store in use: error %v", err)
	}
}

// TestLoadUndone breaks a load off: nothing is there.
func TestLoadUndone(t *testing.T) {
	ctx := t.Context()
	to := open(t, database(t), postgres.Options{})
	l, err := to.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Row(ctx, "control", []string{"key", "value"}, []any{"pause", `{"at":5}`}); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"no such table":  l.Row(ctx, "nowhere", []string{"key"}, []any{"a"}),
		"no such column": l.Row(ctx, "control", []string{"nothing"}, []any{"a"}),
		"a wrong type":   l.Row(ctx, "control", []string{"key"}, []any{5.5}),
	} {
		if err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	l.Close(ctx)
	if p, err := to.Paused(ctx); err != nil || p.At != 0 {
		t.Errorf("paused at %d, error %v", p.At, err)
	}
}

func openSQLite(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{Sync: "OFF"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func move(t *testing.T, from *sqlite.Store, to *postgres.Store) map[string]int64 {
	t.Helper()
	ctx := t.Context()
	l, err := to.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.WithoutCancel(ctx))
	err = from.Dump(ctx, func(table string, columns []string, row []any) error { return l.Row(ctx, table, columns, row) })
	if err != nil {
		t.Fatal(err)
	}
	counts, err := l.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// live does something of everything.
func live(t *testing.T, s storetest.Store) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	accept := func(a goclaw.Acceptance) {
		t.Helper()
		_, _, err := s.Accept(ctx, a)
		must(err)
	}
	parent := turn("parent")
	parent.Label, parent.Context, parent.Profile = "né\x00w\x1a00", "\xff is no UTF-8", goclaw.Profile{Tools: []string{"read"}, TimeoutMs: 7, Definition: "d"}
	accept(goclaw.Acceptance{Run: parent, Key: "key"})
	for i := range 5 {
		r := turn(fmt.Sprintf("worker-%d", i))
		r.Trigger, r.Parent, r.Requester, r.Session = goclaw.TriggerSpawn, "parent", parent.Session, goclaw.SubagentKey("a", r.ID)
		r.Root, r.Announce = "parent", goclaw.AnnounceTogether
		accept(goclaw.Acceptance{Run: r})
	}
	claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "o", Now: 5, Lease: time.Second, Max: 4})
	must(err)
	cost := 0.25
	_, err = s.Reserve(ctx, claimed[0].Run.Fence(), goclaw.Reservation{Tokens: 9, USD: 1, Date: "2026-01-02", Now: 6})
	must(err)
	for i, one := range claimed {
		sum := sha256.Sum256([]byte("\x00\xffblob"))
		must(s.Append(ctx, one.Run.Fence(), goclaw.Batch{Now: 7, Day: "2026-01-02",
			Blobs: []goclaw.Blob{{SHA256: hex.EncodeToString(sum[:]), Data: []byte("\x00\xffblob")}},
			Usage: &goclaw.Usage{Input: 4, CostUSD: &cost}, Events: []goclaw.Event{
				{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Usage: goclaw.Usage{Input: 4, CostUSD: &cost}, Message: goclaw.Text(goclaw.RoleUser, "a\x00b")}},
				{Seq: 1, Kind: goclaw.EventResumed, Resumed: &goclaw.ResumedEvent{Owner: "x"}},
			}}))
		must(s.Append(ctx, one.Run.Fence(), goclaw.Batch{Now: 8, Artifacts: []goclaw.ArtifactData{{Name: "a", Data: []byte("content")}}}))
		if i > 0 {
			must(s.End(ctx, one.Run.Fence(), goclaw.Ending{State: goclaw.StateFailed, Error: "e\x00", Batch: goclaw.Batch{Now: 9},
				Announce: &goclaw.InboxItem{ID: fmt.Sprint("item", i), Session: parent.Session, Source: one.Run.ID, Group: "parent"},
				Outbox:   &goclaw.Outbound{ID: fmt.Sprint("out", i), Session: parent.Session, Run: one.Run.ID, Text: "t"}}))
		}
	}
	_, err = s.Reserve(ctx, claimed[0].Run.Fence(), goclaw.Reservation{Tokens: 9, USD: 1, Date: "2026-01-02", Now: 6})
	must(err)
	must(s.Append(ctx, claimed[0].Run.Fence(), goclaw.Batch{Now: 7, Consume: []string{"item1"}}))
	must(s.Postpone(ctx, []string{"item2"}, goclaw.Return{Why: "no", Parked: true}, 10))
	must(s.MarkOutbox(ctx, "out1", "parked", 11, "gone"))
	must(s.ChangeSession(ctx, goclaw.MainKey("b"), goclaw.SessionChange{Reset: true}, 12))
	_, err = s.TakeRate(ctx, goclaw.RateRequest{Name: "p", RequestsPerMinute: 3, Now: 13})
	must(err)
	must(s.SetPause(ctx, goclaw.Pause{At: 14, Why: "why"}))
	_, err = s.Cancel(ctx, goclaw.Cancellation{Run: "worker-4", Why: "enough", Now: 15})
	must(err)
	_, err = s.Tidy(ctx, 16, 0)
	must(err)
}

// seen is what a store shows.
func seen(t *testing.T, s storetest.Store) map[string]any {
	t.Helper()
	ctx := t.Context()
	all := map[string]any{}
	keep := func(what string, value any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all[what] = value
	}
	runs, err := s.Runs(ctx, goclaw.RunFilter{})
	keep("runs", runs, err)
	for _, r := range runs {
		events, err := s.Events(ctx, r.ID)
		keep("events of "+r.ID, events, err)
		artifacts, err := s.ArtifactsOf(ctx, goclaw.ArtifactFilter{Run: r.ID})
		keep("artifacts of "+r.ID, artifacts, err)
		for _, a := range artifacts {
			data, err := s.Blob(ctx, a.SHA256)
			keep("blob "+a.SHA256, data, err)
		}
		history, err := s.History(ctx, r.Session, 0)
		keep("history of "+r.Session.String(), history, err)
	}
	sum := sha256.Sum256([]byte("\x00\xffblob"))
	blob, err := s.Blob(ctx, hex.EncodeToString(sum[:]))
	keep("blob", blob, err)
	sessions, err := s.AllSessions(ctx)
	keep("sessions", sessions, err)
	items, err := s.Pending(ctx, goclaw.SessionKey{})
	keep("pending", items, err)
	parked, err := s.Parked(ctx)
	keep("parked", parked, err)
	due, err := s.Outbox(ctx, 1_000_000, 0)
	keep("outbox", due, err)
	usage, err := s.Usage(ctx, goclaw.UsageQuery{By: []string{"run", "day", "model", "definition"}})
	keep("usage", usage, err)
	pause, err := s.Paused(ctx)
	keep("pause", pause, err)
	queue, err := s.Queue(ctx)
	keep("queue", queue, err)
	again, err := s.TakeRate(ctx, goclaw.RateRequest{Name: "p", RequestsPerMinute: 3, Now: 13})
	keep("rate", again, err)
	return all
}
