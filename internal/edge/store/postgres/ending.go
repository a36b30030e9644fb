package postgres

import (
	"context"
	"fmt"

	"goclaw"
	"goclaw/internal/edge/store"
)

// closing is what must be known before a run ends, besides its own row.
type closing struct {
	others  bool // workers are left that its requester waits with
	pending int
	workers bool
	next    int64 // ordinal of the run that follows in the session, else 0
	holds   bool  // it holds a reservation
	item    bool  // there is an inbox item of the announcement's id
	reply   bool
}

// ask queues the questions. Two sessions stay locked: the requester's, so that
// of two workers that end at once the second knows of the first, and whoever
// begins to wait for them knows of both; and its own, at whose head another run
// is put. What depends on them is asked last.
func (n *closing) ask(t *tx, run string, e goclaw.Ending) {
	*n = closing{}
	t.queue(`SELECT 1 FROM sessions WHERE key = (SELECT requester_key FROM runs WHERE id = $1) FOR NO KEY UPDATE`, run)
	t.queue(`UPDATE sessions SET updated_at = greatest(updated_at, $2) WHERE key = (SELECT session_key FROM runs WHERE id = $1)`, run, e.Now)
	var item, reply string
	if e.Announce != nil {
		item = e.Announce.ID
	}
	if e.Outbox != nil {
		reply = e.Outbox.ID
	}
	into(t.queue(`SELECT CASE WHEN $5 THEN
				EXISTS (SELECT 1 FROM runs WHERE parent = (SELECT nullif(parent, '') FROM runs WHERE id = $1)
					AND id <> $1 AND trigger = 'spawn' AND announce = 'together' AND coalesce(finished_at, -1) = -1)
			ELSE
				EXISTS (SELECT 1 FROM runs WHERE requester_key = (SELECT nullif(requester_key, '') FROM runs WHERE id = $1) AND requester_key <> ''
					AND id <> $1 AND trigger = 'spawn' AND coalesce(finished_at, -1) = -1)
			END,
			coalesce((SELECT ordinal FROM runs WHERE session_key = (SELECT session_key FROM runs WHERE id = $1)
				AND finished_at IS NULL AND id <> $1 ORDER BY ordinal LIMIT 1), 0),
			EXISTS (SELECT 1 FROM holds WHERE run_id = $1 AND NOT spent),
			EXISTS (SELECT 1 FROM inbox WHERE id = $2), EXISTS (SELECT 1 FROM outbox WHERE id = $3), `+newsOf("$1", "$4"),
		run, item, reply, notNil(e.Consume), e.Wake != nil && e.Wake.Together),
		&n.others, &n.next, &n.holds, &n.item, &n.reply, &n.pending, &n.workers)
}

// newsOf are the columns that tell how much is pending for a run's session,
// without some items, and whether that has unended workers.
func newsOf(run, without string) string {
	return `(SELECT count(*) FROM inbox WHERE session_key = (SELECT session_key FROM runs WHERE id = ` + run + `)
			AND consumed_at IS NULL AND parked_at IS NULL AND id <> ALL (` + without + `::text[])),
		EXISTS (SELECT 1 FROM runs WHERE requester_key = (SELECT session_key FROM runs WHERE id = ` + run + `) AND requester_key <> ''
			AND coalesce(finished_at, -1) = -1 AND trigger = 'spawn')`
}

// notNil is an empty list instead of none, which would be NULL.
func notNil(list []string) []string { return append([]string{}, list...) }

// End closes the run; the next run of its session becomes ready with it. An
// end that is on record already, by the same claim and to the letter, is
// answered as done.
func (s *Store) End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error {
	const op = "end run"
	p, err := encode(e.Batch)
	if err == nil {
		err = store.CheckEnding(f, e)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, f.Run, err)
	}
	return s.write(ctx, op, func(t *tx) error {
		var r record
		var n closing
		if e.Cascade != "" {
			t.queue(oneCascade, f.Run)
			t.queue(lockTree, f.Run, true) // workers before their parent, as always
		}
		t.lock(&r, f.Run)
		p.inquire(t)
		n.ask(t, f.Run, e)
		if err := t.ask(); err != nil {
			return err
		}
		if r.ended(f, e, n) {
			if done, err := p.repeats(t, &r); done || err != nil {
				return err
			}
		}
		if err := r.held(f); err != nil {
			return err
		}
		if err := p.check(&r); err != nil {
			return err
		}
		switch {
		case e.Announce != nil && n.item:
			return fmt.Errorf("there is an inbox item %s already", e.Announce.ID)
		case e.Outbox != nil && n.reply:
			return fmt.Errorf("there is an outbound %s already", e.Outbox.ID)
		case e.IfQuiet && (n.pending > 0 || n.workers):
			return fmt.Errorf("run %s: %w", f.Run, goclaw.ErrWoken)
		}
		return t.close(&r, p, e, n)
	})
}

// ended reports whether e is how the run has ended under the claim f.
func (r *record) ended(f goclaw.Fence, e goclaw.Ending, n closing) bool {
	return r.found && r.State == e.State && r.Epoch == f.Epoch &&
		(e.Announce == nil || n.item) && (e.Outbox == nil || n.reply)
}

// close queues all that an ending writes.
func (t *tx) close(r *record, p *page, e goclaw.Ending, n closing) error {
	c := &change{}
	if err := p.put(t, r, c); err != nil {
		return err
	}
	c.to("state", e.State)
	c.to("result", e.Result)
	c.to("error", e.Error)
	c.to("finished_at", e.Now)
	c.to("owner", "")
	c.to("head", false)
	c.run(t, r.Ordinal)
	if n.next != 0 {
		t.write(`UPDATE runs SET head = true WHERE ordinal = $1 AND NOT head`, n.next)
	}
	if n.holds {
		t.lose(r.ID)
	}
	if e.Return != nil {
		t.write(`UPDATE inbox SET consumed_by = '', consumed_at = NULL, attempts = attempts + 1, next_at = $2, error = $3, parked_at = $4
			WHERE consumed_by = $1 AND consumed_by <> ''`, r.ID, e.Return.NextAt, e.Return.Why, parkedAt(*e.Return, e.Now))
	}
	if e.Announce != nil {
		t.putItem(store.Announced(e))
	}
	if e.Outbox != nil {
		t.putReply(*e.Outbox, e.Now)
	}
	if e.Cascade != "" {
		t.write(cancelTree, r.ID, true, e.Now, e.Cascade)
		t.wake("")
	}
	if e.Wake != nil {
		at := e.Wake.Last
		if n.others {
			at = e.Wake.Next
		}
		if at != 0 {
			t.write(`UPDATE runs SET wake_at = $2 WHERE session_key = (SELECT requester_key FROM runs WHERE ordinal = $1)
				AND finished_at IS NULL AND state = 'waiting' AND waits_for = 'workers' AND (wake_at IS NULL OR wake_at > $2)`, r.Ordinal, at)
		}
	}
	t.wake(r.ID)
	return nil
}

// wakeAt makes a waiting run go on at a moment, unless it does so earlier.
func (t *tx) wakeAt(ordinal int64, already, at goclaw.Millis) {
	if sooner := store.Sooner(already, at); sooner != already {
		t.write(`UPDATE runs SET wake_at = $2 WHERE ordinal = $1`, ordinal, sooner)
	}
}

// parkedAt is when a failed delivery was parked, NULL if it was not.
func parkedAt(r goclaw.Return, now goclaw.Millis) *goclaw.Millis {
	if !r.Parked {
		return nil
	}
	return &now
}

// Suspend appends, and gives the run's slot back. A suspension that is on
// record already, by the same claim and to the letter, is answered as done.
func (s *Store) Suspend(ctx context.Context, f goclaw.Fence, w goclaw.Suspension) error {
	const op = "suspend run"
	p, err := encode(w.Batch)
	if err == nil {
		err = store.CheckSuspension(w)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, f.Run, err)
	}
	return s.write(ctx, op, func(t *tx) error {
		var r record
		var pending int
		var workers bool
		t.lock(&r, f.Run)
		p.inquire(t)
		t.queue(`SELECT 1 FROM sessions WHERE key = (SELECT session_key FROM runs WHERE id = $1) FOR NO KEY UPDATE`, f.Run)
		into(t.queue(`SELECT `+newsOf("$1", "$2"), f.Run, notNil(w.Consume)), &pending, &workers)
		if err := t.ask(); err != nil {
			return err
		}
		if r.State == goclaw.StateWaiting && r.Epoch == f.Epoch && r.WaitsFor == w.For {
			if done, err := p.repeats(t, &r); done || err != nil {
				return err
			}
		}
		if err := r.held(f); err != nil {
			return err
		}
		if err := p.check(&r); err != nil {
			return err
		}
		left := w.For == goclaw.WaitWorkers && w.Until == 0 && !workers
		if left || pending != w.Seen {
			return fmt.Errorf("run %s: %w", f.Run, goclaw.ErrWoken)
		}
		c := &change{}
		if err := p.put(t, &r, c); err != nil {
			return err
		}
		c.to("state", goclaw.StateWaiting)
		c.to("owner", "")
		c.to("waits_for", w.For)
		c.to("wake_at", orNull(store.Sooner(w.Until, r.Deadline)))
		c.run(t, r.Ordinal)
		if w.Until != 0 && w.Until <= w.Now {
			t.wake(r.ID)
		}
		return nil
	})
}
