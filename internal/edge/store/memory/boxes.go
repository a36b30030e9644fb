package memory

import (
	"context"
	"fmt"
	"slices"

	"goclaw"
	"goclaw/internal/edge/store"
)

// pending reports whether the item can still be taken.
func pending(i *goclaw.InboxItem) bool { return i.ConsumedAt == 0 && i.ParkedAt == 0 }

// Pending returns the items of a session that are neither consumed nor parked,
// in order of creation; the zero key means of all sessions.
func (s *Store) Pending(ctx context.Context, session goclaw.SessionKey) (items []goclaw.InboxItem, err error) {
	err = s.do(ctx, "read inbox", func() error {
		for _, i := range s.inbox {
			if pending(i) && (session.IsZero() || i.Session == session) {
				item := *i
				item.GroupOpen = s.groupOpen(i.Group)
				items = append(items, item)
			}
		}
		return nil
	})
	return items, err
}

// pendingFor counts the session's pending items, without some.
func (s *Store) pendingFor(session goclaw.SessionKey, without []string) (n int) {
	for _, i := range s.inbox {
		if pending(i) && i.Session == session && !slices.Contains(without, i.ID) {
			n++
		}
	}
	return n
}

// groupOpen reports whether a run that group spawned to be announced together
// has not ended, or group itself has not and is no spawned run.
func (s *Store) groupOpen(group string) bool {
	if group == "" {
		return false
	}
	return slices.ContainsFunc(s.open, func(r *record) bool {
		spawned := r.Trigger == goclaw.TriggerSpawn
		return r.ID == group && !spawned || r.Parent == group && spawned && r.Announce == goclaw.AnnounceTogether
	})
}

// Post adds an item for the run, which it wakes if that waits for such.
// An item without a session or kind gets the run's, and is a message to it.
func (s *Store) Post(ctx context.Context, run string, item goclaw.InboxItem) error {
	return s.do(ctx, "post to run", func() error {
		r := s.byID[run]
		if r == nil {
			return fmt.Errorf("run %s: %w", run, goclaw.ErrNotFound)
		}
		item, err := store.Posted(item, r.Session)
		if err != nil {
			return err
		}
		if s.item(item.ID) != nil {
			return nil
		}
		if r.State.Ended() || r.CancelAt != 0 {
			return fmt.Errorf("run %s: %w", run, goclaw.ErrEnded)
		}
		s.inbox = append(s.inbox, &item)
		if r.State == goclaw.StateWaiting && r.WaitsFor == item.Kind.Wakes() {
			r.WakeAt = store.Sooner(r.WakeAt, item.CreatedAt)
		}
		return nil
	})
}

// Resume wakes a run that waits for a person.
func (s *Store) Resume(ctx context.Context, run string, now goclaw.Millis) (resumed goclaw.Run, err error) {
	err = s.do(ctx, "resume run", func() error {
		r := s.byID[run]
		if r == nil || r.State != goclaw.StateWaiting {
			return fmt.Errorf("no run %s waits: %w", run, goclaw.ErrNotFound)
		}
		r.WakeAt = store.Sooner(r.WakeAt, now)
		resumed = r.copied()
		return nil
	})
	return resumed, err
}

// Redirect gives a pending item to another session.
func (s *Store) Redirect(ctx context.Context, item string, to goclaw.SessionKey) error {
	return s.do(ctx, "redirect item", func() error {
		if err := store.CheckKey(to); err != nil {
			return err
		}
		if i := s.item(item); i != nil && pending(i) {
			i.Session = to
		}
		return nil
	})
}

// Postpone counts a failed delivery of those of the items that are pending.
func (s *Store) Postpone(ctx context.Context, items []string, r goclaw.Return, now goclaw.Millis) error {
	return s.do(ctx, "postpone items", func() error {
		for _, i := range s.inbox {
			if pending(i) && slices.Contains(items, i.ID) {
				postpone(i, r, now)
			}
		}
		return nil
	})
}

func postpone(i *goclaw.InboxItem, r goclaw.Return, now goclaw.Millis) {
	i.Attempts++
	i.NextAt, i.Error = r.NextAt, r.Why
	if r.Parked {
		i.ParkedAt = now
	}
}

// Parked lists the parked items and outbound replies, oldest first.
func (s *Store) Parked(ctx context.Context) (parked []goclaw.Parked, err error) {
	err = s.do(ctx, "list parked deliveries", func() error {
		for _, i := range s.inbox {
			if i.ConsumedAt == 0 && i.ParkedAt != 0 {
				parked = append(parked, goclaw.Parked{
					ID: i.ID, Kind: "announcement", Session: i.Session, Run: i.Source, Text: i.Text,
					Attempts: i.Attempts, Error: i.Error, ParkedAt: i.ParkedAt,
				})
			}
		}
		for _, o := range s.outbox {
			if o.State == "parked" {
				parked = append(parked, goclaw.Parked{
					ID: o.ID, Kind: "reply", Session: o.Session, Run: o.Run, Text: o.Text,
					Attempts: o.Attempts, Error: o.Error, ParkedAt: o.parkedAt,
				})
			}
		}
		slices.SortFunc(parked, store.ByParking)
		return nil
	})
	return parked, err
}

// Unpark makes a parked delivery pending again, with no attempt counted.
func (s *Store) Unpark(ctx context.Context, id string, now goclaw.Millis) error {
	return s.decide(ctx, "unpark", id, func(i *goclaw.InboxItem) {
		i.Attempts, i.NextAt, i.ParkedAt, i.Error = 0, now, 0, ""
	}, func(o *reply) {
		o.State, o.Attempts, o.NextAt, o.Error, o.parkedAt = "pending", 0, now, "", 0
	})
}

// Dismiss gives a parked delivery up for good.
func (s *Store) Dismiss(ctx context.Context, id string, now goclaw.Millis) error {
	return s.decide(ctx, "dismiss", id, func(i *goclaw.InboxItem) {
		i.ConsumedBy, i.ConsumedAt = store.Dismissed, now
	}, func(o *reply) {
		o.State = store.Dismissed
	})
}

// decide changes the parked delivery with that id.
func (s *Store) decide(ctx context.Context, op, id string, item func(*goclaw.InboxItem), out func(*reply)) error {
	return s.do(ctx, op, func() error {
		if i := s.item(id); i != nil && i.ConsumedAt == 0 && i.ParkedAt != 0 {
			item(i)
			return nil
		}
		if o := s.outbound(id); o != nil && o.State == "parked" {
			out(o)
			return nil
		}
		return fmt.Errorf("nothing parked is named %s: %w", id, goclaw.ErrNotFound)
	})
}

// Outbox returns the replies that are due at now, in order: of each session
// only the oldest that is pending or being sent, so that a reply never
// overtakes another. limit 0 means all.
func (s *Store) Outbox(ctx context.Context, now goclaw.Millis, limit int) (due []goclaw.Outbound, err error) {
	err = s.do(ctx, "read outbox", func() error {
		seen := map[goclaw.SessionKey]bool{}
		for _, o := range s.outbox {
			if seen[o.Session] || o.State != "pending" && o.State != "sending" {
				continue
			}
			seen[o.Session] = true
			if o.NextAt <= now && (limit <= 0 || len(due) < limit) {
				due = append(due, o.Outbound)
			}
		}
		return nil
	})
	return due, err
}

// TakeOutbox takes a reply that is due at now, for whoever is to send it: it is
// being sent, which counts as an attempt, and is due again at until if nobody
// says what became of it. It returns false if the reply is not due any more:
// of several takers one gets it.
func (s *Store) TakeOutbox(ctx context.Context, id string, now, until goclaw.Millis) (taken bool, err error) {
	err = s.do(ctx, "take from outbox", func() error {
		o := s.outbound(id)
		if o == nil || o.State != "pending" && o.State != "sending" || o.NextAt > now {
			return nil
		}
		o.State, o.NextAt, o.Error = "sending", until, ""
		o.Attempts++
		taken = true
		return nil
	})
	return taken, err
}

// MarkOutbox records what became of a reply: a pending one is due again at the
// given time, a parked one is parked since then.
func (s *Store) MarkOutbox(ctx context.Context, id, state string, at goclaw.Millis, errText string) error {
	return s.do(ctx, "mark outbox", func() error {
		if err := store.CheckMark(state); err != nil {
			return err
		}
		o := s.outbound(id)
		if o == nil || o.State == store.Dismissed {
			return fmt.Errorf("outbound %s: %w", id, goclaw.ErrNotFound)
		}
		o.State, o.NextAt, o.Error, o.parkedAt = state, at, errText, 0
		if state == "parked" {
			o.parkedAt = at
		}
		return nil
	})
}

func (s *Store) outbound(id string) *reply {
	for _, o := range s.outbox {
		if o.ID == id {
			return o
		}
	}
	return nil
}
