package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Clone returns a store that holds the same and shares nothing with s.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Open()
	c.closed, c.pause = s.closed, s.pause
	for _, r := range s.runs {
		// The encoded events are never changed, only added to.
		n := len(r.events)
		twin := &record{Run: r.copied(), events: r.events[:n:n], tidied: r.tidied}
		c.runs = append(c.runs, twin)
		c.byID[twin.ID] = twin
		if twin.Idempotent != "" {
			c.byKey[twin.Idempotent] = twin
		}
		if !twin.State.Ended() {
			c.open = append(c.open, twin)
		}
	}
	for key, head := range s.sessions {
		twin := *head
		c.sessions[key] = &twin
	}
	maps.Copy(c.leases, s.leases)
	c.inbox, c.outbox, c.holds = twins(s.inbox), twins(s.outbox), twins(s.holds)
	for run, artifacts := range s.artifacts {
		c.artifacts[run] = maps.Clone(artifacts)
	}
	maps.Copy(c.blobs, s.blobs) // never changed
	maps.Copy(c.buckets, s.buckets)
	c.calls = slices.Clone(s.calls) // their costs are never changed
	maps.Copy(c.jobs, s.jobs)       // never changed, only replaced
	c.firings = slices.Clone(s.firings)
	return c
}

// twins copies what the pointers point to.
func twins[T any](list []*T) []*T {
	var copies []*T
	for _, one := range list {
		twin := *one
		copies = append(copies, &twin)
	}
	return copies
}

// Fingerprint is a hash of all that the store holds: two stores with the same
// one answer every call alike.
func (s *Store) Fingerprint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	type run struct {
		Run    goclaw.Run
		Key    string
		Events [][]byte
		Tidied bool
	}
	type out struct {
		Out      goclaw.Outbound
		ParkedAt goclaw.Millis
	}
	state := struct {
		Closed    bool
		Runs      []run
		Sessions  map[goclaw.SessionKey]*goclaw.Session
		Leases    map[string]goclaw.Millis
		Inbox     []*goclaw.InboxItem
		Outbox    []out
		Artifacts map[string]map[string]goclaw.Artifact
		Blobs     []string
		Calls     []store.Call
		Holds     []string
		Buckets   map[string]store.Bucket
		Pause     goclaw.Pause
		Jobs      map[string]job
		Firings   []goclaw.Firing
	}{
		Closed: s.closed, Sessions: s.sessions, Leases: s.leases, Inbox: s.inbox, Artifacts: s.artifacts,
		Blobs: slices.Sorted(maps.Keys(s.blobs)), Calls: s.calls, Buckets: s.buckets, Pause: s.pause,
		Jobs: s.jobs, Firings: s.firings,
	}
	for _, r := range s.runs {
		state.Runs = append(state.Runs, run{r.Run, r.Idempotent, r.events, r.tidied})
	}
	for _, o := range s.outbox {
		state.Outbox = append(state.Outbox, out{o.Outbound, o.parkedAt})
	}
	for _, h := range s.holds {
		state.Holds = append(state.Holds, fmt.Sprintf("%+v", *h))
	}
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(state); err != nil {
		panic(fmt.Sprintf("the state of a store can always be encoded, but: %v", err))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
