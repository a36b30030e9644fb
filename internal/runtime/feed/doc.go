// Package feed hands live notices from whoever makes them to whoever watches:
// an in-memory publish/subscribe broker of goclaw.Notice.
//
// # Delivery guarantee
//
// Best effort, at most once. A subscriber gets the matching notices of one
// publishing goroutine in the order in which they were published; between
// publishers there is no order. Nothing is replayed: a subscriber sees what is
// published after Subscribe has returned.
//
// A publisher never waits for a subscriber. Each subscriber has a queue of its
// own of at most queueLen notices. While streamed text waits in the queue, the
// pieces that follow it directly in the same run are joined to it, so that a
// reader who falls behind gets fewer and longer pieces and the same text. When
// the queue is full all the same, notices are lost: exactly one
// goclaw.NoticeLag then stands in the place of those lost, and delivery goes
// on once half of the queue has been read. After a lag the record (a run's
// events) tells what was missed, which is the reason why nothing durable may
// depend on this package.
//
// # What it refuses
//
// It stores nothing, knows no run and no session, and does not filter: a
// subscriber's match function does.
//
// # Invariants
//
// Publishing to nobody takes one atomic load. A subscription holds one
// goroutine, which ends with the subscriber's context; its channel is closed
// when that goroutine is about to end, and is never closed otherwise.
package feed
