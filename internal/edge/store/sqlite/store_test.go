package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/store/storetest"
)

func open(t *testing.T, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		return open(t, filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{})
	})
}

// TestStoreWithoutGuards drops every unique index that could hide a double:
// the store must not need them.
func TestStoreWithoutGuards(t *testing.T) {
	guards := []string{"runs_id ON runs (id)", "runs_idempotent ON runs (idempotent)", "events_seq ON events (run_id, seq)",
		"inbox_id ON inbox (id)", "outbox_id ON outbox (id)", "firings_due ON firings (job, due)"}
	storetest.Run(t, func(t *testing.T) storetest.Store {
		path := filepath.Join(t.TempDir(), "goclaw.db")
		makeEmpty(t, path)
		for _, guard := range guards {
			name, _, _ := strings.Cut(guard, " ")
			query(t, path, "DROP INDEX "+name)
			query(t, path, "CREATE INDEX "+guard)
		}
		if got := query(t, path, `SELECT name FROM sqlite_schema WHERE sql LIKE '%UNIQUE%'`); got != "name\n" {
			t.Fatalf("these are left:\n%s", got)
		}
		return open(t, path, sqlite.Options{})
	})
}

func makeEmpty(t *testing.T, path string) {
	t.Helper()
	if err := open(t, path, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCloseWritesTheLogBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "goclaw.db")
	s := open(t, path, sqlite.Options{})
	queued(t, s, goclaw.MainKey("main"), "one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the write-ahead log is still there (%v)", err)
	}
}

// A conversation is read again and again while it grows, is reset, and is
// forced out by others: what is kept of it must never show.
func TestHistoryOfAGrowingSession(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "goclaw.db"), sqlite.Options{})
	key := goclaw.MainKey("main")
	want := []string{}
	for i := range 12 {
		if i == 7 {
			if err := s.ChangeSession(t.Context(), key, goclaw.SessionChange{Reset: true}, 1); err != nil {
				t.Fatal(err)
			}
			want = nil
		}
		id := string(rune('a' + i))
		first := queued(t, s, key, id)
		check(t, s, key, first.Ordinal, want)
		check(t, s, key, 0, append(slices.Clone(want), id+" queued 0"))
		// Large enough that a few of them push each other out.
		finish(t, s, first, strings.Repeat("x", 300<<10))
		want = append(want, id+" completed 2")
		check(t, s, key, 0, want)
		check(t, s, key, first.Ordinal, want[:len(want)-1])
	}
}

func queued(t *testing.T, s *sqlite.Store, key goclaw.SessionKey, id string) goclaw.Run {
	t.Helper()
	run, _, err := s.Accept(t.Context(), goclaw.Acceptance{Run: goclaw.Run{
		ID: id, Session: key, Trigger: goclaw.TriggerUser, State: goclaw.StateQueued,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func finish(t *testing.T, s *sqlite.Store, run goclaw.Run, text string) {
	t.Helper()
	claimed, err := s.Claim(t.Context(), goclaw.ClaimRequest{Owner: "me", Now: 1, Lease: time.Hour, Max: 1})
	if err != nil || len(claimed) != 1 || claimed[0].Run.ID != run.ID {
		t.Fatalf("claimed %v (%v); want %s", claimed, err, run.ID)
	}
	err = s.End(t.Context(), claimed[0].Run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 2, Events: []goclaw.Event{
		{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, text)}},
		{Seq: 1, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

// check compares id, state and number of events of every run of a history.
func check(t *testing.T, s *sqlite.Store, key goclaw.SessionKey, before int64, want []string) {
	t.Helper()
	logs, err := s.History(t.Context(), key, before)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, l := range logs {
		got = append(got, fmt.Sprintf("%s %s %d", l.Run.ID, l.Run.State, len(l.Events)))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("history before %d is %v; want %v", before, got, want)
	}
}
