package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"goclaw"
	"goclaw/internal/edge/store"
)

// record is a run's place in the tables, as a transaction that locked it finds
// it.
type record struct {
	goclaw.Run // ordinal, session, root, parent, state, usage, epoch, owner, cancellation, waiting, recovery, profile
	found      bool
	next       int // the seq of its next event
}

// lock queues the questions for a run, whose row stays locked. The length of
// its log is asked for afterwards: a statement that had to wait for a lock
// sees all other rows as they were before.
func (t *tx) lock(r *record, run string) {
	*r = record{}
	each(t.queue(`SELECT ordinal, id, session_key, root, parent, trigger, state, epoch, owner, coalesce(cancel_at, 0), coalesce(deadline, 0),
			input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
			waits_for, coalesce(wake_at, 0), recovery, profile FROM runs WHERE id = $1 FOR UPDATE`, run), func(rows pgx.Rows) error {
		var session string
		var last, profile []byte
		u := &r.Usage
		err := scan(rows, &r.Ordinal, &r.ID, &session, &r.Root, &r.Parent, &r.Trigger, &r.State, &r.Epoch, &r.Owner, &r.CancelAt, &r.Deadline,
			&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD, &r.WaitsFor, &r.WakeAt, &last, &profile)
		if err != nil {
			return err
		}
		r.found = true
		if r.Recovery, err = recovery(last); err == nil {
			err = json.Unmarshal(profile, &r.Profile)
		}
		return cmp.Or(err, r.Session.UnmarshalText([]byte(session)))
	})
	into(t.queue(`SELECT coalesce(max(seq) + 1, 0) FROM events WHERE run_id = $1`, run), &r.next)
}

// held returns ErrFenced unless f is a claim on the run.
func (r *record) held(f goclaw.Fence) error {
	if !r.found || r.State != goclaw.StateRunning || r.Epoch != f.Epoch || r.Owner != f.Owner {
		return fmt.Errorf("run %s, epoch %d of %s: %w", f.Run, f.Epoch, f.Owner, goclaw.ErrFenced)
	}
	return nil
}

// Events returns the run's events in order; none if there is no such run.
func (s *Store) Events(ctx context.Context, run string) ([]goclaw.Event, error) {
	var events []goclaw.Event
	err := s.read(ctx, "read events", func(b *pgx.Batch) {
		events = nil
		each(queue(b, `SELECT data FROM events WHERE run_id = $1 ORDER BY seq`, run), func(rows pgx.Rows) error {
			var data []byte
			if err := scan(rows, &data); err != nil {
				return err
			}
			var e goclaw.Event
			if err := json.Unmarshal(data, &e); err != nil {
				return fmt.Errorf("event %d of run %s: %w", len(events), run, err)
			}
			events = append(events, e)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// page is a batch on its way into a run's record.
type page struct {
	goclaw.Batch          // the artifacts' content is among its blobs
	data         []string // the events, encoded
	sums         []string // the hashes of the artifacts

	known []string // the hashes of the blobs that are stored
	items []item   // those of Consume that there are
}

// item is an inbox item as a transaction that locked it finds it.
type item struct {
	id, takenBy string
	pending     bool
}

// encode does outside the transaction what can be done there. An event without
// a time gets the batch's.
func encode(b goclaw.Batch) (*page, error) {
	p := &page{Batch: b}
	for _, e := range b.Events {
		if e.At == 0 {
			e.At = b.Now
		}
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		p.data = append(p.data, string(data))
	}
	if err := store.CheckBatch(b); err != nil {
		return nil, err
	}
	p.Blobs = slices.Clone(b.Blobs)
	for _, a := range b.Artifacts {
		sum := store.ContentSHA(a.Data)
		p.sums = append(p.sums, sum)
		p.Blobs = append(p.Blobs, goclaw.Blob{SHA256: sum, Data: a.Data})
	}
	return p, nil
}

// inquire queues what must be known before the page is written. The run is
// locked.
func (p *page) inquire(t *tx) {
	p.known, p.items = nil, nil
	if len(p.Blobs) > 0 {
		sums := make([]string, len(p.Blobs))
		for i, b := range p.Blobs {
			sums[i] = b.SHA256
		}
		list(t.queue(`SELECT sha256 FROM blobs WHERE sha256 = ANY($1)`, sums), &p.known)
	}
	if len(p.Consume) > 0 {
		each(t.queue(`SELECT id, consumed_by, coalesce(consumed_at, parked_at) IS NULL FROM inbox WHERE id = ANY($1) ORDER BY n FOR UPDATE`,
			p.Consume), func(rows pgx.Rows) error {
			var i item
			err := scan(rows, &i.id, &i.takenBy, &i.pending)
			p.items = append(p.items, i)
			return err
		})
	}
}

// repeats reports whether the page is on the run's record already: all that it
// would write is there, and its events end the log. A page without events is
// never taken for a repetition.
func (p *page) repeats(t *tx, r *record) (bool, error) {
	n := len(p.Events)
	if n == 0 || p.Events[n-1].Seq != r.next-1 || p.Usage != nil && !same(*p.Usage, r.Usage) {
		return false, nil
	}
	for _, b := range p.Blobs {
		if !slices.Contains(p.known, b.SHA256) {
			return false, nil
		}
	}
	for _, id := range p.Consume {
		if !slices.ContainsFunc(p.items, func(i item) bool { return i.id == id && i.takenBy == r.ID }) {
			return false, nil
		}
	}
	var stored []string
	list(t.queue(`SELECT data FROM events WHERE run_id = $1 AND seq >= $2 ORDER BY seq`, r.ID, r.next-n), &stored)
	if err := t.ask(); err != nil {
		return false, err
	}
	return slices.Equal(stored, p.data), nil
}

func same(a, b goclaw.Usage) bool {
	if (a.CostUSD == nil) != (b.CostUSD == nil) || a.CostUSD != nil && *a.CostUSD != *b.CostUSD {
		return false
	}
	a.CostUSD, b.CostUSD = nil, nil
	return a == b
}

// check returns why the page can't be written, if it can't.
func (p *page) check(r *record) error {
	for i, e := range p.Events {
		if e.Seq != r.next+i {
			return fmt.Errorf("run %s: event has seq %d, the log continues with %d", r.ID, e.Seq, r.next+i)
		}
	}
	for i, id := range p.Consume {
		at := slices.IndexFunc(p.items, func(i item) bool { return i.id == id })
		if at < 0 {
			return fmt.Errorf("inbox item %s: %w", id, goclaw.ErrNotFound)
		}
		if !p.items[at].pending || slices.Contains(p.Consume[:i], id) {
			return fmt.Errorf("item %s: %w", id, goclaw.ErrConsumed)
		}
	}
	return nil
}

// put queues the page's writes, except those to the run's row, which it adds to
// c.
func (p *page) put(t *tx, r *record, c *change) error {
	if n := len(p.Events); n > 0 {
		seqs, kinds, times := make([]int64, n), make([]string, n), make([]int64, n)
		for i, e := range p.Events {
			seqs[i], kinds[i], times[i] = int64(e.Seq), string(e.Kind), int64(cmp.Or(e.At, p.Now))
		}
		t.write(`INSERT INTO events (run_id, seq, kind, at, data)
			SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[])`, r.ID, seqs, kinds, times, p.data)
	}
	blobs := slices.DeleteFunc(slices.Clone(p.Blobs), func(b goclaw.Blob) bool { return slices.Contains(p.known, b.SHA256) })
	t.putBlobs(blobs)
	for i, a := range p.Artifacts {
		t.write(`INSERT INTO artifacts (run_id, name, sha256, size, media_type, created_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (run_id, name) DO UPDATE SET sha256 = excluded.sha256, size = excluded.size,
				media_type = excluded.media_type, created_at = excluded.created_at`,
			r.ID, a.Name, p.sums[i], len(a.Data), a.MediaType, p.Now)
	}
	if len(p.Consume) > 0 {
		t.write(`UPDATE inbox SET consumed_by = $2, consumed_at = $3 WHERE id = ANY($1)`, p.Consume, r.ID, p.Now)
	}
	if u := p.Usage; u != nil {
		c.to("input_tokens", u.Input)
		c.to("output_tokens", u.Output)
		c.to("cache_read_tokens", u.CacheRead)
		c.to("cache_write_tokens", u.CacheWrite)
		c.to("cost_usd", u.CostUSD)
	}
	if store.Resumes(p.Batch) {
		text, err := json.Marshal(store.Recovered(r.Recovery, p.Batch))
		if err != nil {
			return err
		}
		c.to("recovery", string(text))
	}
	if store.Books(p.Batch) {
		for _, call := range store.Calls(r.Run, p.Batch) {
			t.book(call)
		}
		t.giveBack(r.ID)
	}
	return nil
}

// putBlobs queues blobs in the order of their hashes, so that two transactions
// with the same ones never wait for each other.
func (t *tx) putBlobs(blobs []goclaw.Blob) {
	slices.SortFunc(blobs, func(a, b goclaw.Blob) int { return cmp.Compare(a.SHA256, b.SHA256) })
	for _, b := range blobs {
		data := bytes.Clone(b.Data)
		if data == nil {
			data = []byte{} // nil would be NULL
		}
		t.write(`INSERT INTO blobs (sha256, data) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING`, b.SHA256, data)
	}
}

// Append writes one batch to the run's record. A batch that is there already,
// under the same claim and to the letter, is answered as written.
func (s *Store) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	const op = "append to run"
	p, err := encode(b)
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, f.Run, err)
	}
	return s.write(ctx, op, func(t *tx) error {
		var r record
		t.lock(&r, f.Run)
		p.inquire(t)
		if err := t.ask(); err != nil {
			return err
		}
		if err := r.held(f); err != nil {
			return err
		}
		if done, err := p.repeats(t, &r); done || err != nil {
			return err
		}
		if err := p.check(&r); err != nil {
			return err
		}
		c := &change{}
		if err := p.put(t, &r, c); err != nil {
			return err
		}
		c.run(t, r.Ordinal)
		return nil
	})
}
