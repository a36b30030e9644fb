package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"goclaw"
	"goclaw/internal/edge/store"
)

// errClosed answers every call after Close.
var errClosed = errors.New("store is closed")

// Store is the in-memory store. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex
	closed bool

	runs      []*record // by ordinal, which starts at 1
	open      []*record // those that have not ended, by ordinal
	byID      map[string]*record
	byKey     map[string]*record
	sessions  map[goclaw.SessionKey]*goclaw.Session
	leases    map[string]goclaw.Millis
	inbox     []*goclaw.InboxItem
	outbox    []*reply
	artifacts map[string]map[string]goclaw.Artifact
	blobs     map[string][]byte
	calls     []store.Call
	holds     []*hold
	buckets   map[string]store.Bucket
	pause     goclaw.Pause
	jobs      map[string]job
	firings   []goclaw.Firing
}

// reply is an outbound with what the gateway does not see of it.
type reply struct {
	goclaw.Outbound
	parkedAt goclaw.Millis
}

// hold is what a run's model call may spend, or may have spent.
type hold struct {
	run    string
	root   string
	agent  string
	day    string
	tokens int64
	usd    float64
	spent  bool
}

// record is a run with its log. Events are kept encoded, so that neither side
// can change what the other sees.
type record struct {
	goclaw.Run
	events [][]byte
	tidied bool
}

// Open returns an empty store.
func Open() *Store {
	return &Store{
		byID:      map[string]*record{},
		byKey:     map[string]*record{},
		sessions:  map[goclaw.SessionKey]*goclaw.Session{},
		leases:    map[string]goclaw.Millis{},
		artifacts: map[string]map[string]goclaw.Artifact{},
		blobs:     map[string][]byte{},
		buckets:   map[string]store.Bucket{},
		jobs:      map[string]job{},
	}
}

// Close makes every later call fail. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// do runs fn under the lock, unless ctx or the store has ended.
func (s *Store) do(ctx context.Context, op string, fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := ctx.Err()
	if err == nil && s.closed {
		err = errClosed
	}
	if err == nil {
		err = fn()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// copied returns the run without anything shared.
func (r *record) copied() goclaw.Run {
	run := r.Run
	run.Profile.Tools = slices.Clone(run.Profile.Tools)
	run.Profile.Inherit = slices.Clone(run.Profile.Inherit)
	run.Usage = copyUsage(run.Usage)
	if run.Recovery != nil {
		last := *run.Recovery
		last.Uncertain = slices.Clone(last.Uncertain)
		run.Recovery = &last
	}
	return run
}

func copyUsage(u goclaw.Usage) goclaw.Usage {
	if u.CostUSD != nil {
		cost := *u.CostUSD
		u.CostUSD = &cost
	}
	return u
}

// fence finds the run that f claims, or ErrFenced if the claim does not hold.
func (s *Store) fence(f goclaw.Fence) (*record, error) {
	r := s.byID[f.Run]
	if r == nil || r.State != goclaw.StateRunning || r.Epoch != f.Epoch || r.Owner != f.Owner {
		return nil, fmt.Errorf("run %s, epoch %d of %s: %w", f.Run, f.Epoch, f.Owner, goclaw.ErrFenced)
	}
	return r, nil
}

// touch returns the session, created if need be, as updated at now.
func (s *Store) touch(key goclaw.SessionKey, now goclaw.Millis) *goclaw.Session {
	head := s.sessions[key]
	if head == nil {
		head = &goclaw.Session{Key: key, Agent: key.Agent, CreatedAt: now, UpdatedAt: now}
		s.sessions[key] = head
	}
	head.UpdatedAt = max(head.UpdatedAt, now)
	return head
}

// Session returns ErrNotFound for a session that never had a run or change.
func (s *Store) Session(ctx context.Context, key goclaw.SessionKey) (head goclaw.Session, err error) {
	err = s.do(ctx, "find session", func() error {
		found := s.sessions[key]
		if found == nil {
			return fmt.Errorf("%s: %w", key, goclaw.ErrNotFound)
		}
		head = *found
		return nil
	})
	return head, err
}

// AllSessions returns all sessions, the most recently updated first.
func (s *Store) AllSessions(ctx context.Context) (heads []goclaw.Session, err error) {
	err = s.do(ctx, "list sessions", func() error {
		for _, head := range s.sessions {
			heads = append(heads, *head)
		}
		return nil
	})
	slices.SortFunc(heads, func(a, b goclaw.Session) int {
		if a.UpdatedAt != b.UpdatedAt {
			return int(b.UpdatedAt - a.UpdatedAt)
		}
		return strings.Compare(a.Key.String(), b.Key.String())
	})
	return heads, err
}

// ChangeSession changes the session's head; it creates the session if need be.
func (s *Store) ChangeSession(ctx context.Context, key goclaw.SessionKey, c goclaw.SessionChange, now goclaw.Millis) error {
	return s.do(ctx, "change session", func() error {
		if err := store.CheckKey(key); err != nil {
			return err
		}
		head := s.touch(key, now)
		if c.Model != nil {
			head.Model = *c.Model
		}
		if c.Thinking != nil {
			head.Thinking = *c.Thinking
		}
		if !c.Reset {
			return nil
		}
		head.ResetAt = 0
		for _, r := range s.runs {
			if r.Session == key {
				head.ResetAt = r.Ordinal
			}
		}
		return nil
	})
}

// Tidy applies the cleanup policies and returns how many sessions it changed.
// A session counts as deleted once its transcript was removed while none of
// its runs was unended; one that waits for its deletion is not archived.
func (s *Store) Tidy(ctx context.Context, now, archiveBefore goclaw.Millis) (changed int, err error) {
	err = s.do(ctx, "tidy", func() error {
		busy := map[goclaw.SessionKey]bool{}
		for _, r := range s.open {
			busy[r.Session] = true
		}
		waiting := map[goclaw.SessionKey]bool{}
		for _, r := range s.runs {
			if r.Cleanup != goclaw.CleanupDelete || r.tidied {
				continue
			}
			if !r.State.Ended() || s.unannounced(r.ID) {
				waiting[r.Session] = true
				continue
			}
			r.events, r.tidied = nil, true
			if head := s.sessions[r.Session]; !busy[r.Session] && head.DeletedAt == 0 {
				head.DeletedAt = now
				changed++
			}
		}
		for key, head := range s.sessions {
			old := key.IsWorker() && head.UpdatedAt < archiveBefore && head.Turns > 0
			if old && head.ArchivedAt == 0 && head.DeletedAt == 0 && !busy[key] && !waiting[key] {
				head.ArchivedAt = now
				changed++
			}
		}
		return nil
	})
	return changed, err
}

// unannounced reports whether nobody has consumed the run's announcement yet.
func (s *Store) unannounced(run string) bool {
	return slices.ContainsFunc(s.inbox, func(i *goclaw.InboxItem) bool { return i.Source == run && i.ConsumedAt == 0 })
}
