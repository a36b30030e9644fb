package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxTries bounds how often a transaction is made anew after it collided with
// another one.
const maxTries = 8

// tx is one transaction: what is queued goes to the server in one round trip,
// with ask or with the commit. Only what is written after the last ask is a
// write; what the transaction did before is undone unless there is one.
type tx struct {
	ctx   context.Context // the attempt's
	conn  *pgxpool.Conn
	batch *pgx.Batch
	began bool
	wrote bool
	wakes []string // see wake

	// again says that the whole may be done twice, so that a commit of unknown
	// outcome is simply repeated.
	again bool

	// vain, if set, tells after the commit that its writes changed nothing.
	vain func() bool
}

// queue adds a statement to the next round trip.
func (t *tx) queue(query string, args ...any) *pgx.QueuedQuery {
	if !t.began {
		t.began = true
		t.batch.Queue("BEGIN")
	}
	return queue(t.batch, query, args...)
}

// write is queue for a statement that changes something.
func (t *tx) write(query string, args ...any) *pgx.QueuedQuery {
	t.wrote = true
	return t.queue(query, args...)
}

// ask sends what is queued and reads the answers.
func (t *tx) ask() error { return t.send(t.ctx) }

func (t *tx) send(ctx context.Context) error {
	batch := t.batch
	t.batch = &pgx.Batch{}
	return t.conn.SendBatch(ctx, batch).Close()
}

// wake tells other processes of a run, "" of anything, once the transaction is
// committed.
func (t *tx) wake(run string) { t.wakes = append(t.wakes, run) }

// each calls scan for every row of q's answer.
func each(q *pgx.QueuedQuery, scan func(pgx.Rows) error) {
	q.Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// list collects the only column of q's answer.
func list[T any](q *pgx.QueuedQuery, to *[]T) {
	each(q, func(rows pgx.Rows) error {
		var one T
		err := scan(rows, &one)
		*to = append(*to, one)
		return err
	})
}

// into scans the only row of q's answer.
func into(q *pgx.QueuedQuery, dest ...any) {
	q.QueryRow(func(row pgx.Row) error { return scan(row, dest...) })
}

// count is how many rows q changed.
func count(q *pgx.QueuedQuery, n *int64) {
	q.Exec(func(tag pgconn.CommandTag) error {
		*n = tag.RowsAffected()
		return nil
	})
}

// write runs fn as one transaction. It may run fn several times: when the
// transaction was undone because of another one, or the connection was lost
// before the commit.
func (s *Store) write(ctx context.Context, op string, fn func(*tx) error) error {
	if err := s.writing(ctx, fn); err != nil {
		return fmt.Errorf("%s: %w", op, s.explain(err))
	}
	return nil
}

func (s *Store) writing(ctx context.Context, fn func(*tx) error) error {
	return s.trying(ctx, func(ctx context.Context) (bool, error) {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return false, err
		}
		defer conn.Release()
		t := &tx{ctx: ctx, conn: conn, batch: &pgx.Batch{}}
		if err := fn(t); err != nil || !t.wrote {
			gone := conn.Conn().IsClosed()
			t.rollback()
			return gone, err
		}
		if err := s.commit(t); err != nil {
			gone := conn.Conn().IsClosed()
			t.rollback()
			switch {
			case undone(err) || pgconn.SafeToRetry(err) || t.again:
				return gone, err
			case gone:
				return false, fmt.Errorf("%w (%s)", errUnknown, reason(err))
			}
			return false, err
		}
		if t.vain == nil || !t.vain() {
			s.commits.Add(1)
			s.hook("commit.after")
			s.bell.pull(t.wakes)
		}
		return false, nil
	})
}

// commit sends the writes and the commit. It heeds the caller's context no
// more: what has begun is waited for, so that its outcome is known.
func (s *Store) commit(t *tx) error {
	s.hook("commit.before")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	t.queue("COMMIT")
	return t.send(ctx)
}

// rollback undoes what was sent. Without a connection the server does so by
// itself; one that can't roll back is not used again.
func (t *tx) rollback() {
	if t.conn.Conn().IsClosed() || t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 2*time.Second)
	defer cancel()
	_, _ = t.conn.Exec(ctx, "ROLLBACK") // Release looks whether it worked
}

// read runs the statements that fill queues, in one round trip and without a
// transaction. It may run fill twice.
func (s *Store) read(ctx context.Context, op string, fill func(*pgx.Batch)) error {
	err := s.trying(ctx, func(ctx context.Context) (bool, error) {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return false, err
		}
		defer conn.Release()
		batch := &pgx.Batch{}
		fill(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return conn.Conn().IsClosed(), err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", op, s.explain(err))
	}
	return nil
}

// trying calls attempt until it succeeds or fails for good: a lost connection
// is replaced once, a collision is tried again after a moment. attempt returns
// whether its connection is lost.
func (s *Store) trying(ctx context.Context, attempt func(context.Context) (bool, error)) error {
	limited, cancel := bounded(ctx)
	defer cancel()
	replaced := false
	for try := 1; ; try++ {
		gone, err := attempt(limited)
		switch {
		case err == nil || errors.Is(err, errUnknown):
			return err
		case s.closed.Load():
			return errClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			s.pool.Reset() // what is silent may be dead
			return errSlow
		case (gone || code(err) == readOnly) && !replaced:
			// The other connections are as old as this one.
			replaced = true
			s.pool.Reset()
		case collided(err) && try < maxTries:
			if err := pause(limited, time.Duration(rand.IntN(5*try)+1)*time.Millisecond); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
