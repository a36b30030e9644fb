package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

// errDead is what a process that was killed gets from everything it tries.
var errDead = errors.New("this process is dead")

// request is a step that a goroutine of an engine wants to take. It waits for
// the scheduler's permission.
type request struct {
	process int
	thread  string // the run, or the dispatcher
	label   string
	granted chan error
}

// board holds the requests that wait, and checks every write to the store.
type board struct {
	store *memory.Store

	mu      sync.Mutex
	waiting []*request
	snap    *snapshot
	effects map[string]int
	broken  string
	trace   []string
}

// ask waits for permission.
func (b *board) ask(process int, thread, format string, args ...any) error {
	r := &request{process: process, thread: thread, label: fmt.Sprintf(format, args...), granted: make(chan error)}
	b.mu.Lock()
	b.waiting = append(b.waiting, r)
	b.mu.Unlock()
	return <-r.granted
}

// take removes a request from those that wait.
func (b *board) take(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, o := range b.waiting {
		if o == r {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			return
		}
	}
}

// running names the run of a session that is under way.
func (b *board) running(key goclaw.SessionKey) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.snap.runs {
		if r.Session == key && r.State == goclaw.StateRunning {
			return r.ID
		}
	}
	return key.String()
}

func (b *board) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace = append(b.trace, fmt.Sprintf(format, args...))
}

func (b *board) fail(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == "" && what != "" {
		b.broken = what
	}
}

// wrote checks what a successful write has changed.
func (b *board) wrote(by goclaw.Fence) {
	b.mu.Lock()
	before := b.snap
	b.mu.Unlock()
	after, err := newSnapshot(b.store, before, by.Run)
	if err != nil {
		b.fail(err.Error())
		return
	}
	b.fail(checkWrite(before, after, by))
	b.fail(check(after))
	sc := scenario{policy: livePolicy}
	b.fail(sc.checkSleep(after, now()))
	b.mu.Lock()
	b.snap = after
	b.mu.Unlock()
}

// gate is the store of one process: whatever can make a difference to others,
// or is made a difference to by them, waits for permission first.
type gate struct {
	*memory.Store
	b       *board
	process int
}

func of(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// do asks, acts, and checks.
func (g *gate) do(by goclaw.Fence, thread, label string, write func() error) error {
	if err := g.b.ask(g.process, thread, "%s", label); err != nil {
		return err
	}
	err := write()
	g.b.note("   %s%s", label, of(err))
	if err == nil {
		g.b.wrote(by)
	}
	return err
}

func (g *gate) Accept(ctx context.Context, a goclaw.Acceptance) (run goclaw.Run, created bool, err error) {
	thread := "dispatcher"
	if a.ParentFence != nil {
		thread = a.ParentFence.Run
	}
	err = g.do(goclaw.Fence{}, thread, fmt.Sprintf("accept %s %s", a.Run.Trigger, a.Run.Label), func() error {
		run, created, err = g.Store.Accept(ctx, a)
		return err
	})
	return run, created, err
}

// Claim takes no permission where there is nothing to be claimed: the
// dispatcher comes back.
func (g *gate) Claim(ctx context.Context, c goclaw.ClaimRequest) (claimed []goclaw.Claimed, err error) {
	if none, err := g.Store.Clone().Claim(ctx, c); err == nil && len(none) == 0 {
		return nil, nil
	}
	err = g.do(goclaw.Fence{}, "dispatcher", "claim", func() error {
		c.Now = max(c.Now, now())
		claimed, err = g.Store.Claim(ctx, c)
		return err
	})
	return claimed, err
}

func (g *gate) Heartbeat(ctx context.Context, h goclaw.Heartbeat) (pulse goclaw.Pulse, err error) {
	err = g.do(goclaw.Fence{}, "heart", "heartbeat", func() error {
		pulse, err = g.Store.Heartbeat(ctx, h)
		return err
	})
	return pulse, err
}

func (g *gate) Asked(ctx context.Context, owner string) (ids []string, err error) {
	if ids, err = g.Store.Asked(ctx, owner); err == nil && len(ids) == 0 {
		return nil, nil
	}
	err = g.do(goclaw.Fence{}, "dispatcher", "look for cancellations", func() error {
		ids, err = g.Store.Asked(ctx, owner)
		return err
	})
	return ids, err
}

func (g *gate) Release(ctx context.Context, owner string, at goclaw.Millis) error {
	return g.do(goclaw.Fence{}, "dispatcher", "release", func() error { return g.Store.Release(ctx, owner, at) })
}

func (g *gate) Cancel(ctx context.Context, c goclaw.Cancellation) (asked []goclaw.Run, err error) {
	err = g.do(goclaw.Fence{}, c.Run, "cancel "+c.Run, func() error {
		asked, err = g.Store.Cancel(ctx, c)
		return err
	})
	return asked, err
}

func (g *gate) Events(ctx context.Context, run string) (events []goclaw.Event, err error) {
	err = g.do(goclaw.Fence{}, run, "read the record of "+run, func() error {
		events, err = g.Store.Events(ctx, run)
		return err
	})
	return events, err
}

func kindsOf(events []goclaw.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Kind))
	}
	return strings.Join(all, " ")
}

func (g *gate) Append(ctx context.Context, f goclaw.Fence, b goclaw.Batch) error {
	return g.do(f, f.Run, fmt.Sprintf("append to %s#%d: %s", f.Run, f.Epoch, kindsOf(b.Events)), func() error { return g.Store.Append(ctx, f, b) })
}

func (g *gate) Suspend(ctx context.Context, f goclaw.Fence, s goclaw.Suspension) error {
	return g.do(f, f.Run, fmt.Sprintf("suspend %s#%d, seen %d", f.Run, f.Epoch, s.Seen), func() error { return g.Store.Suspend(ctx, f, s) })
}

func (g *gate) End(ctx context.Context, f goclaw.Fence, e goclaw.Ending) error {
	return g.do(f, f.Run, fmt.Sprintf("end %s#%d as %s, quiet %t", f.Run, f.Epoch, e.State, e.IfQuiet), func() error { return g.Store.End(ctx, f, e) })
}

// Pending takes no permission for a look at all sessions that finds nothing.
func (g *gate) Pending(ctx context.Context, key goclaw.SessionKey) (items []goclaw.InboxItem, err error) {
	if key.IsZero() {
		if items, err = g.Store.Pending(ctx, key); err == nil && len(items) == 0 {
			return nil, nil
		}
	}
	thread, what := g.b.running(key), "read the inbox of "+key.String()
	if key.IsZero() {
		thread, what = "dispatcher", "read all inboxes"
	}
	err = g.do(goclaw.Fence{}, thread, what, func() error {
		items, err = g.Store.Pending(ctx, key)
		return err
	})
	return items, err
}

func (g *gate) Redirect(ctx context.Context, item string, to goclaw.SessionKey) error {
	return g.do(goclaw.Fence{}, "dispatcher", "redirect "+item, func() error { return g.Store.Redirect(ctx, item, to) })
}

func (g *gate) Postpone(ctx context.Context, items []string, r goclaw.Return, at goclaw.Millis) error {
	return g.do(goclaw.Fence{}, "dispatcher", "postpone", func() error { return g.Store.Postpone(ctx, items, r, at) })
}
