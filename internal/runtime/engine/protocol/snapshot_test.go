package protocol

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"

	"goclaw"
	"goclaw/internal/core/turn"
	"goclaw/internal/edge/store/memory"
)

// snapshot is one content that the store can have. It is never changed: a
// write goes to a clone.
type snapshot struct {
	id     int32
	store  *memory.Store
	runs   []goclaw.Run // oldest first
	index  map[string]int
	events map[string][]goclaw.Event
	items  []goclaw.InboxItem // neither consumed nor parked
	parked []goclaw.Parked
	leases map[string]goclaw.Millis // until when, of owners that claimed
}

// newSnapshot reads all that the explorer looks at. Records are read only of
// the run that was written to; of the others they are those of before.
func newSnapshot(s *memory.Store, before *snapshot, wrote string) (*snapshot, error) {
	newest, err := s.Runs(background, goclaw.RunFilter{})
	if err != nil {
		return nil, err
	}
	n := len(newest)
	snap := &snapshot{
		store: s, runs: make([]goclaw.Run, n), index: make(map[string]int, n), events: make(map[string][]goclaw.Event, n),
	}
	if before != nil {
		maps.Copy(snap.events, before.events)
		snap.leases = before.leases
	}
	for i, r := range newest {
		snap.runs[n-1-i], snap.index[r.ID] = r, n-1-i
	}
	if wrote != "" {
		if snap.events[wrote], err = s.Events(background, wrote); err != nil {
			return nil, err
		}
	}
	if snap.items, err = s.Pending(background, goclaw.SessionKey{}); err != nil {
		return nil, err
	}
	snap.parked, err = s.Parked(background)
	return snap, err
}

// digest names what the snapshot holds, but for what no decision depends on:
// when something began and ended, and leases of owners that hold nothing. Two
// snapshots with one digest go on alike.
func (s *snapshot) digest() [sha256.Size]byte {
	b := make([]byte, 0, 2048)
	owners := map[string]bool{}
	for i := range s.runs {
		r := &s.runs[i]
		b = fmt.Appendf(b, "%s %s %s %s %d %d %s %t %d %s %d %q %q\n", r.ID, r.Session, r.Root, r.State, r.CreatedAt, r.Epoch, r.Owner,
			r.CancelAt != 0, r.Deadline, r.WaitsFor, r.WakeAt, r.Result, r.Error)
		if r.State == goclaw.StateRunning && !owners[r.Owner] {
			owners[r.Owner] = true
			b = fmt.Appendf(b, "lease %d\n", s.leases[r.Owner])
		}
		for _, e := range s.events[r.ID] {
			b = digested(b, e)
		}
	}
	for _, it := range s.items {
		b = fmt.Appendf(b, "%s %s %d %d %d\n", it.ID, it.Session, it.CreatedAt, it.NextAt, it.Attempts)
	}
	for _, p := range s.parked {
		b = fmt.Appendf(b, "%s %s\n", p.ID, p.Session)
	}
	return sha256.Sum256(b)
}

func digested(b []byte, e goclaw.Event) []byte {
	b = append(append(b, e.Kind...), ' ')
	switch {
	case e.Prompt != nil:
		b = fmt.Appendf(b, "%q %d %s", e.Prompt.Inbox, e.Prompt.Tried, e.Prompt.Input.PlainText())
	case e.Model != nil:
		b = append(b, e.Model.Message.PlainText()...)
		for _, c := range e.Model.Message.Calls() {
			b = fmt.Appendf(b, "%v", c)
		}
	case e.Result != nil:
		b = append(append(b, e.Result.CallID...), e.Result.Content...)
	case e.Input != nil:
		b = fmt.Appendf(b, "%q", e.Input.Inbox)
	case e.Waiting != nil:
		b = fmt.Appendf(b, "%v", *e.Waiting)
	case e.Resumed != nil:
		b = fmt.Appendf(b, "%v", *e.Resumed)
	case e.End != nil:
		b = fmt.Appendf(b, "%v", *e.End)
	}
	return append(b, '\n')
}

// run returns the run with that id, which must exist.
func (s *snapshot) run(id string) *goclaw.Run {
	i, ok := s.index[id]
	if !ok {
		panic("the model asks for a run that was never accepted: " + id)
	}
	return &s.runs[i]
}

func (s *snapshot) has(id string) bool {
	_, ok := s.index[id]
	return ok
}

// of returns the pending items of a session.
func (s *snapshot) of(key goclaw.SessionKey) []goclaw.InboxItem {
	var own []goclaw.InboxItem
	for _, it := range s.items {
		if it.Session == key {
			own = append(own, it)
		}
	}
	return own
}

// workers returns the unended runs that a session asked for.
func (s *snapshot) workers(key goclaw.SessionKey) []*goclaw.Run {
	var open []*goclaw.Run
	for i := range s.runs {
		if r := &s.runs[i]; r.Trigger == goclaw.TriggerSpawn && r.Requester == key && !r.State.Ended() {
			open = append(open, r)
		}
	}
	return open
}

// newest returns the run that was accepted last for a session, or nil.
func (s *snapshot) newest(key goclaw.SessionKey) *goclaw.Run {
	for i := len(s.runs) - 1; i >= 0; i-- {
		if s.runs[i].Session == key {
			return &s.runs[i]
		}
	}
	return nil
}

// transcript is what a model would see of a session after its last run.
func (s *snapshot) transcript(key goclaw.SessionKey) []goclaw.Message {
	var logs []goclaw.RunLog
	for _, r := range s.runs {
		if r.Session == key {
			logs = append(logs, goclaw.RunLog{Run: r, Events: s.events[r.ID]})
		}
	}
	return turn.View{}.Transcript(logs)
}

// sessions are all sessions that have runs, in order of their first.
func (s *snapshot) sessions() []goclaw.SessionKey {
	var keys []goclaw.SessionKey
	seen := map[goclaw.SessionKey]bool{}
	for _, r := range s.runs {
		if !seen[r.Session] {
			seen[r.Session] = true
			keys = append(keys, r.Session)
		}
	}
	return keys
}

// String describes the content for a trace.
func (s *snapshot) String() string {
	var b strings.Builder
	for _, r := range s.runs {
		fmt.Fprintf(&b, "  %-6s %-12s %-11s epoch %d", r.ID, r.Trigger, r.State, r.Epoch)
		if r.Owner != "" {
			fmt.Fprintf(&b, " of %s", r.Owner)
		}
		if r.CancelAt != 0 {
			b.WriteString(", asked to end")
		}
		if r.State == goclaw.StateWaiting {
			fmt.Fprintf(&b, ", waits for %s until %d", r.WaitsFor, r.WakeAt)
		}
		var kinds []string
		for _, e := range s.events[r.ID] {
			kinds = append(kinds, string(e.Kind))
		}
		fmt.Fprintf(&b, " [%s]\n", strings.Join(kinds, " "))
	}
	for _, it := range s.items {
		fmt.Fprintf(&b, "  pending: %s %s for %s, from %d on\n", it.Kind, it.ID, it.Session, max(it.CreatedAt, it.NextAt))
	}
	for _, p := range s.parked {
		fmt.Fprintf(&b, "  parked: %s for %s\n", p.ID, p.Session)
	}
	return b.String()
}
