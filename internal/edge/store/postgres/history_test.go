package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
)

// TestHistory reads a conversation again and again while it grows, is reset by
// another process, and is forced out of memory by its own size: what is kept of
// it must never show.
func TestHistory(t *testing.T) {
	at := database(t)
	s, other := open(t, at, postgres.Options{}), open(t, at, postgres.Options{})
	key := goclaw.MainKey("main")
	var want []string
	for i := range 12 {
		if i == 5 || i == 8 {
			if err := other.ChangeSession(t.Context(), key, goclaw.SessionChange{Reset: true}, 1); err != nil {
				t.Fatal(err)
			}
			want = nil
		}
		r := turn(string(rune('a' + i)))
		r.Session = key
		first, _, err := other.Accept(t.Context(), goclaw.Acceptance{Run: r})
		if err != nil {
			t.Fatal(err)
		}
		history(t, s, key, first.Ordinal, want)
		history(t, s, key, 0, append(slices.Clone(want), r.ID+" queued 0"))
		finish(t, other, r.ID, strings.Repeat("x", 300<<10))
		want = append(want, r.ID+" completed 2")
		history(t, s, key, 0, want)
		history(t, s, key, first.Ordinal, want[:len(want)-1])
	}
}

func finish(t *testing.T, s *postgres.Store, id, text string) {
	t.Helper()
	claimed, err := s.Claim(t.Context(), goclaw.ClaimRequest{Owner: "me", Now: 1, Lease: time.Hour, Max: 1})
	if err != nil || len(claimed) != 1 || claimed[0].Run.ID != id {
		t.Fatalf("claimed %v (%v); want %s", claimed, err, id)
	}
	err = s.End(t.Context(), claimed[0].Run.Fence(), goclaw.Ending{State: goclaw.StateCompleted, Batch: goclaw.Batch{Now: 2, Events: []goclaw.Event{
		{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, text)}},
		{Seq: 1, Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

// history compares id, state and number of events of every run of a history.
func history(t *testing.T, s *postgres.Store, key goclaw.SessionKey, before int64, want []string) {
	t.Helper()
	logs, err := s.History(t.Context(), key, before)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range logs {
		got = append(got, fmt.Sprintf("%s %s %d", l.Run.ID, l.Run.State, len(l.Events)))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("history before %d is %v; want %v", before, got, want)
	}
}
