package feed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"goclaw"
)

const (
	// queueLen bounds what waits for one subscriber; one more place is kept
	// for the notice that tells of a loss.
	queueLen = 256
	// joinMax bounds the text of a joined notice, in bytes, so that a reader
	// who stopped costs at most about queueLen times as much.
	joinMax = 4 << 10
)

// Broker passes notices on. Use New; all methods are safe for concurrent use.
type Broker struct {
	mu   sync.Mutex                      // held while subs is replaced
	subs atomic.Pointer[[]*subscription] // never changed in place; nil for none
}

// New returns a broker without subscribers.
func New() *Broker { return &Broker{} }

// Publish hands n to every subscriber that wants it. It never blocks on a
// subscriber. What n points to must not be changed afterwards.
func (b *Broker) Publish(n goclaw.Notice) {
	subs := b.subs.Load()
	if subs == nil {
		return
	}
	for _, s := range *subs {
		s.offer(n)
	}
}

// Subscribe returns the notices for which match says true; a nil match wants
// all. The channel is closed after ctx has ended, and for no other reason.
//
// match is called by publishers, one call at a time: it may keep state, but
// must be quick and must not call the broker. It is not called for a NoticeLag
// that this subscription causes itself.
func (b *Broker) Subscribe(ctx context.Context, match func(goclaw.Notice) bool) <-chan goclaw.Notice {
	s := &subscription{match: match, wake: make(chan struct{}, 1)}
	b.change(func(subs []*subscription) []*subscription { return append(subs, s) })
	out := make(chan goclaw.Notice)
	go func() {
		defer close(out)
		defer b.change(func(subs []*subscription) []*subscription {
			return slices.DeleteFunc(subs, func(other *subscription) bool { return other == s })
		})
		s.pump(ctx, out)
	}()
	return out
}

// change replaces the list of subscribers by what edit makes of a copy of it.
func (b *Broker) change(edit func([]*subscription) []*subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var subs []*subscription
	if old := b.subs.Load(); old != nil {
		subs = slices.Clone(*old)
	}
	if subs = edit(subs); len(subs) == 0 {
		b.subs.Store(nil)
		return
	}
	b.subs.Store(&subs)
}

// subscription is one subscriber's queue.
type subscription struct {
	match func(goclaw.Notice) bool
	wake  chan struct{} // holds a token when the queue may have become non-empty

	mu     sync.Mutex
	queue  []goclaw.Notice
	lagged bool // notices are being lost; the queue's last one says so
}

// offer queues n if it is wanted and there is room.
func (s *subscription) offer(n goclaw.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.match != nil && !s.match(n) {
		return
	}
	if s.lagged {
		if len(s.queue) > queueLen/2 {
			return
		}
		s.lagged = false
	}
	switch last := len(s.queue) - 1; {
	case last >= 0 && joinable(s.queue[last], n):
		s.queue[last].Text += n.Text
		return // whoever queued the last one has woken the reader
	case len(s.queue) == queueLen:
		s.lagged = true
		n = goclaw.Notice{Kind: goclaw.NoticeLag, Session: n.Session}
	}
	s.queue = append(s.queue, n)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// joinable reports whether b only continues the text of a.
func joinable(a, b goclaw.Notice) bool {
	return (a.Kind == goclaw.NoticeText || a.Kind == goclaw.NoticeThinking) &&
		a.Kind == b.Kind && a.RunID == b.RunID && a.Seq == b.Seq && a.Session == b.Session &&
		len(a.Text)+len(b.Text) <= joinMax
}

// pump moves the queue to out until ctx ends.
func (s *subscription) pump(ctx context.Context, out chan<- goclaw.Notice) {
	for ctx.Err() == nil {
		n, ok := s.take()
		if !ok {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		select {
		case out <- n:
		case <-ctx.Done():
		}
	}
}

// take removes the oldest notice.
func (s *subscription) take() (goclaw.Notice, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return goclaw.Notice{}, false
	}
	n := s.queue[0]
	s.queue[0] = goclaw.Notice{} // let go of what it points to
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return n, true
}
