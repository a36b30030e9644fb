package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// channel is the database's notification channel. Databases have one each;
	// schemas of one database share it, which costs needless looks.
	channel = "goclaw"

	maxPayload   = 512              // bytes of a run id in a notification
	maxPulled    = 64               // ids in one notifying statement
	checkEvery   = 20 * time.Second // how long the listening connection may be silent
	shortestWait = 100 * time.Millisecond
	longestWait  = 5 * time.Second
)

// Changes tells what may have become ready, or have changed in a way that its
// owner must know, in any process that uses the database: a run's id, or "" for
// "look at everything", which also comes whenever notifications may have been
// missed. It is best effort: whoever relies on it looks from time to time all
// the same. A reader that is slow misses ids and gets a "" instead. All callers
// share one channel; Close closes it. The first call opens the connection.
func (s *Store) Changes() <-chan string {
	s.asked.Do(func() { close(s.listens) })
	return s.changes
}

// hear listens until ctx ends, and connects anew as often as it must.
func (s *Store) hear(ctx context.Context) {
	defer close(s.changes)
	select {
	case <-ctx.Done():
		return
	case <-s.listens:
	}
	wait := shortestWait
	for {
		began := time.Now()
		err := s.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestWait {
			wait = shortestWait
		}
		s.log.WarnContext(ctx, "the database can't tell of changes; looking for them meanwhile", "error", s.explain(err), "again_in", wait)
		if pause(ctx, wait+rand.N(wait)) != nil {
			return
		}
		wait = min(2*wait, longestWait)
	}
}

// listenOnce listens on one connection until that is lost.
func (s *Store) listenOnce(ctx context.Context) error {
	limited, cancel := bounded(ctx)
	defer cancel()
	conn, err := pgx.ConnectConfig(limited, s.listen)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(end) // there is nothing to lose
	}()
	if _, err := conn.Exec(limited, "LISTEN "+channel); err != nil {
		return err
	}
	s.tell("")
	for {
		quiet, cancel := context.WithTimeout(ctx, checkEvery)
		n, err := conn.WaitForNotification(quiet)
		silent := quiet.Err() != nil
		cancel()
		switch {
		case err == nil:
			s.tell(unescape(n.Payload))
		case ctx.Err() != nil || !silent || conn.IsClosed():
			return err
		default:
			// A connection that is dead on the other side looks silent.
			limited, cancel := bounded(ctx)
			err = conn.Ping(limited)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// tell passes a change on, and lets "" stand for all that find no room.
func (s *Store) tell(run string) {
	select {
	case s.changes <- run:
		return
	default:
	}
	for {
		select {
		case <-s.changes:
			continue
		default:
		}
		break
	}
	select {
	case s.changes <- "":
	default: // only hear sends: there is room
	}
}

// bell collects what is to be told to other processes. Notifications go out
// after the commit, in a transaction of their own: PostgreSQL lets only one
// transaction that notifies commit at a time, so that those which also write to
// disk would queue behind each other's fsync.
type bell struct {
	mu   sync.Mutex
	runs []string
	rung chan struct{} // holds one token while runs is not empty
}

func newBell() *bell { return &bell{rung: make(chan struct{}, 1)} }

// pull asks for the runs to be told of.
func (b *bell) pull(runs []string) {
	if len(runs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, run := range runs {
		if len(run) > maxPayload || len(b.runs) >= maxPulled {
			b.runs, run = b.runs[:0], ""
		}
		if !slices.Contains(b.runs, run) && !slices.Contains(b.runs, "") {
			b.runs = append(b.runs, run)
		}
	}
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// take returns what is to be told now.
func (b *bell) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	runs := b.runs
	b.runs = nil
	return runs
}

// ring tells until ctx ends, and then what is left.
func (s *Store) ring(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			s.notify(context.WithoutCancel(ctx))
			return
		case <-s.bell.rung:
			s.notify(ctx)
		}
	}
}

// notify tells what is to be told. What can't be told is found by those who
// look.
func (s *Store) notify(ctx context.Context) {
	runs := s.bell.take()
	if len(runs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	b := &pgx.Batch{}
	queue(b, `SELECT pg_notify('`+channel+`', run) FROM unnest($1::text[]) AS run`, runs)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		s.log.DebugContext(ctx, "change not told", "error", s.explain(err))
	}
}
