package memory

import (
	"context"
	"fmt"

	"goclaw"
)

// Pending returns the unconsumed items of a session in order of creation; the
// zero key means of all sessions.
func (s *Store) Pending(ctx context.Context, session goclaw.SessionKey) (items []goclaw.InboxItem, err error) {
	err = s.do(ctx, "read inbox", func() error {
		for _, i := range s.inbox {
			if i.ConsumedAt == 0 && (session.IsZero() || i.Session == session) {
				item := *i
				item.GroupOpen = s.groupOpen(i.Group)
				items = append(items, item)
			}
		}
		return nil
	})
	return items, err
}

// groupOpen reports whether the spawning run, or one that it spawned to be
// announced together, has not ended.
func (s *Store) groupOpen(group string) bool {
	if group == "" {
		return false
	}
	for _, r := range s.open {
		if r.ID == group {
			return true
		}
		if r.Parent == group && r.Trigger == goclaw.TriggerSpawn && r.Announce == goclaw.AnnounceTogether {
			return true
		}
	}
	return false
}

// Outbox returns the replies that are due at now, in order: of each session
// only the oldest that is neither sent nor parked, so that a reply never
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
				due = append(due, *o)
			}
		}
		return nil
	})
	return due, err
}

// MarkOutbox records what became of a reply: pending and sending ones are due
// again at nextAt; sending counts as an attempt.
func (s *Store) MarkOutbox(ctx context.Context, id, state string, nextAt goclaw.Millis, errText string) error {
	return s.do(ctx, "mark outbox", func() error {
		switch state {
		case "pending", "sending", "sent", "parked":
		default:
			return fmt.Errorf("state %q: want pending, sending, sent or parked", state)
		}
		o := s.outbound(id)
		if o == nil {
			return fmt.Errorf("outbound %s: %w", id, goclaw.ErrNotFound)
		}
		o.State, o.NextAt, o.Error = state, nextAt, errText
		if state == "sending" {
			o.Attempts++
		}
		return nil
	})
}

func (s *Store) outbound(id string) *goclaw.Outbound {
	for _, o := range s.outbox {
		if o.ID == id {
			return o
		}
	}
	return nil
}
