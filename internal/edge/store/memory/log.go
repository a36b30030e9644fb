package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// Events returns the run's events in order; none if there is no such run.
func (s *Store) Events(ctx context.Context, run string) (events []goclaw.Event, err error) {
	err = s.do(ctx, "read events", func() error {
		if r := s.byID[run]; r != nil {
			events, err = r.log()
		}
		return err
	})
	return events, err
}

func (r *record) log() ([]goclaw.Event, error) {
	var events []goclaw.Event
	for i, data := range r.events {
		var e goclaw.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, fmt.Errorf("event %d of run %s: %w", i, r.ID, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// Append writes one batch to the run's record.
func (s *Store) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	return s.do(ctx, "append to run", func() error {
		r, events, err := s.check(f, b)
		if err != nil {
			return err
		}
		s.append(r, b, events)
		return nil
	})
}

// check decides whether b may be appended, and encodes its events. An event
// without a time gets the batch's.
func (s *Store) check(f goclaw.Fence, b goclaw.Batch) (*record, [][]byte, error) {
	if err := store.CheckBatch(b); err != nil {
		return nil, nil, err
	}
	r, err := s.fence(f)
	if err != nil {
		return nil, nil, err
	}
	var events [][]byte
	for i, e := range b.Events {
		if want := len(r.events) + i; e.Seq != want {
			return nil, nil, fmt.Errorf("run %s: event has seq %d, the log continues with %d", r.ID, e.Seq, want)
		}
		if e.At == 0 {
			e.At = b.Now
		}
		data, err := json.Marshal(e)
		if err != nil {
			return nil, nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		events = append(events, data)
	}
	for i, id := range b.Consume {
		item := s.item(id)
		if item == nil {
			return nil, nil, fmt.Errorf("inbox item %s: %w", id, goclaw.ErrNotFound)
		}
		if !pending(item) || slices.Contains(b.Consume[:i], id) {
			return nil, nil, fmt.Errorf("item %s: %w", id, goclaw.ErrConsumed)
		}
	}
	return r, events, nil
}

func (s *Store) item(id string) *goclaw.InboxItem {
	for _, i := range s.inbox {
		if i.ID == id {
			return i
		}
	}
	return nil
}

func (s *Store) append(r *record, b goclaw.Batch, events [][]byte) {
	r.events = append(r.events, events...)
	for _, blob := range b.Blobs {
		s.putBlob(blob.SHA256, blob.Data)
	}
	for _, a := range b.Artifacts {
		s.putArtifact(r, a, b.Now)
	}
	for _, id := range b.Consume {
		item := s.item(id)
		item.ConsumedBy, item.ConsumedAt = r.ID, b.Now
	}
	if store.Resumes(b) {
		r.Recovery = store.Recovered(r.Recovery, b)
	}
	if store.Books(b) {
		for _, call := range store.Calls(r.Run, b) {
			call.Usage = copyUsage(call.Usage)
			s.calls = append(s.calls, call)
		}
		s.giveBack(r.ID)
	}
	if b.Usage != nil {
		r.Usage = copyUsage(*b.Usage)
	}
}

func (s *Store) putBlob(sha string, data []byte) {
	if _, ok := s.blobs[sha]; !ok {
		s.blobs[sha] = slices.Clone(data)
	}
}

// End closes the run.
func (s *Store) End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error {
	return s.do(ctx, "end run", func() error {
		if err := store.CheckEnding(f, e); err != nil {
			return err
		}
		r, events, err := s.check(f, e.Batch)
		if err != nil {
			return err
		}
		if a := e.Announce; a != nil && s.item(a.ID) != nil {
			return fmt.Errorf("there is an inbox item %s already", a.ID)
		}
		if o := e.Outbox; o != nil && s.outbound(o.ID) != nil {
			return fmt.Errorf("there is an outbound %s already", o.ID)
		}
		if e.IfQuiet && (s.pendingFor(r.Session, e.Consume) > 0 || s.hasWorkers(r.Session)) {
			return fmt.Errorf("run %s: %w", r.ID, goclaw.ErrWoken)
		}
		s.append(r, e.Batch, events)
		s.finish(r, e)
		return nil
	})
}

// finish does what an ending does besides its batch.
func (s *Store) finish(r *record, e goclaw.Ending) {
	r.State, r.Result, r.Error, r.FinishedAt, r.Owner = e.State, e.Result, e.Error, e.Now, ""
	s.open = slices.DeleteFunc(s.open, func(o *record) bool { return o == r })
	s.lose(r.ID)
	s.touch(r.Session, e.Now)
	if e.Return != nil {
		for _, i := range s.inbox {
			if i.ConsumedBy == r.ID {
				i.ConsumedBy, i.ConsumedAt = "", 0
				postpone(i, *e.Return, e.Now)
			}
		}
	}
	if e.Announce != nil {
		item := store.Announced(e)
		s.inbox = append(s.inbox, &item)
	}
	if e.Outbox != nil {
		out := *e.Outbox
		out.State, out.Attempts, out.Error = "pending", 0, ""
		if out.CreatedAt == 0 {
			out.CreatedAt = e.Now
		}
		s.outbox = append(s.outbox, &reply{Outbound: out})
	}
	if e.Cascade != "" {
		s.cancel(goclaw.Cancellation{Run: r.ID, Why: e.Cascade, Now: e.Now, Cascade: true})
	}
	if e.Wake == nil {
		return
	}
	for _, waiting := range s.open {
		if waiting.Session != r.Requester || waiting.State != goclaw.StateWaiting || waiting.WaitsFor != goclaw.WaitWorkers {
			continue
		}
		at := e.Wake.Last
		if s.left(r, e.Wake.Together) {
			at = e.Wake.Next
		}
		waiting.WakeAt = store.Sooner(waiting.WakeAt, at)
	}
}

// left reports whether a worker is left that an ended one waits with: of the
// same requester, or with together of the same run and announced together.
func (s *Store) left(ended *record, together bool) bool {
	return slices.ContainsFunc(s.open, func(o *record) bool {
		with := o.Requester == ended.Requester
		if together {
			with = o.Parent == ended.Parent && o.Announce == goclaw.AnnounceTogether
		}
		return with && o.Trigger == goclaw.TriggerSpawn
	})
}

// hasWorkers reports whether a run that the session asked for has not ended.
func (s *Store) hasWorkers(session goclaw.SessionKey) bool {
	return slices.ContainsFunc(s.open, func(o *record) bool { return o.Requester == session && o.Trigger == goclaw.TriggerSpawn })
}

// Suspend appends, and gives the run's slot back.
func (s *Store) Suspend(ctx context.Context, f goclaw.Fence, w goclaw.Suspension) error {
	return s.do(ctx, "suspend run", func() error {
		if err := store.CheckSuspension(w); err != nil {
			return err
		}
		r, events, err := s.check(f, w.Batch)
		if err != nil {
			return err
		}
		left := w.For == goclaw.WaitWorkers && w.Until == 0 && !s.hasWorkers(r.Session)
		if left || s.pendingFor(r.Session, w.Consume) != w.Seen {
			return fmt.Errorf("run %s: %w", r.ID, goclaw.ErrWoken)
		}
		s.append(r, w.Batch, events)
		r.State, r.Owner, r.WaitsFor, r.WakeAt = goclaw.StateWaiting, "", w.For, store.Sooner(w.Until, r.Deadline)
		return nil
	})
}

func (s *Store) putArtifact(r *record, a goclaw.ArtifactData, now goclaw.Millis) {
	sum := store.ContentSHA(a.Data)
	s.putBlob(sum, a.Data)
	if s.artifacts[r.ID] == nil {
		s.artifacts[r.ID] = map[string]goclaw.Artifact{}
	}
	s.artifacts[r.ID][a.Name] = goclaw.Artifact{
		Run: r.ID, Name: a.Name, SHA256: sum, Size: int64(len(a.Data)), MediaType: a.MediaType, CreatedAt: now,
	}
}

// ArtifactsOf returns the artifacts that f selects, newest first.
func (s *Store) ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) (found []goclaw.Artifact, err error) {
	err = s.do(ctx, "list artifacts", func() error {
		for _, r := range s.runs {
			if f.Run != "" && r.ID != f.Run || f.Root != "" && (r.Root != f.Root || r.Trigger != goclaw.TriggerSpawn) ||
				!f.Session.IsZero() && r.Session != f.Session && r.Requester != f.Session {
				continue
			}
			for _, a := range s.artifacts[r.ID] {
				if f.Name == "" || a.Name == f.Name {
					found = append(found, a)
				}
			}
		}
		slices.SortFunc(found, func(a, b goclaw.Artifact) int {
			return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(s.byID[b.Run].Ordinal, s.byID[a.Run].Ordinal), cmp.Compare(a.Name, b.Name))
		})
		if f.Limit > 0 && len(found) > f.Limit {
			found = found[:f.Limit]
		}
		return nil
	})
	return found, err
}
