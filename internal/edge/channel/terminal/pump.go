package terminal

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw"
)

// What reaches the screen from outside, besides keys.
type (
	// noticesMsg carries what happened, in order.
	noticesMsg []goclaw.Notice
	// loadedMsg carries the record.
	loadedMsg struct {
		logs []goclaw.RunLog
		refreshedMsg
	}
	// refreshedMsg carries that part of it which changes without a notice.
	refreshedMsg struct {
		workers []goclaw.RunInfo
		status  goclaw.Status
		err     error
	}
	// linkMsg tells that the notice stream was lost (err set) or is there.
	linkMsg struct{ err error }
	sentMsg struct {
		id      int
		key     string
		receipt goclaw.Receipt
		err     error
	}
	commandedMsg struct {
		text    string
		receipt goclaw.Receipt
		err     error
	}
	cancelledMsg struct {
		run string
		err error
	}
	tickMsg struct{}
)

const (
	minRetry = 250 * time.Millisecond
	maxRetry = 5 * time.Second
	maxBatch = 256 // notices per frame
)

var errStreamEnded = errors.New("the notice stream ended")

// pump brings the record and the notices to the screen until ctx ends, and
// connects again whenever the stream is lost.
type pump struct {
	backend Backend
	session goclaw.SessionKey
	send    func(tea.Msg)
}

func (p pump) run(ctx context.Context) {
	wait := minRetry
	for ctx.Err() == nil {
		stream, err := p.backend.Notices(ctx, p.session)
		if err == nil {
			// The record is read after subscribing, so that nothing falls
			// between the two; what is in both is told once by its run id.
			p.send(linkMsg{})
			p.load(ctx)
			if p.forward(ctx, stream) {
				wait = minRetry
			}
			err = errStreamEnded
		}
		if ctx.Err() != nil {
			return
		}
		p.send(linkMsg{err: err})
		if !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, maxRetry)
	}
}

// load reads the record.
func (p pump) load(ctx context.Context) {
	logs, err := p.backend.History(ctx, p.session)
	m := loadedMsg{logs: logs, refreshedMsg: p.look(ctx)}
	m.err = errors.Join(err, m.err)
	if ctx.Err() == nil {
		p.send(m)
	}
}

// look reads what changes without a notice.
func (p pump) look(ctx context.Context) refreshedMsg {
	workers, err := p.backend.Workers(ctx, p.session)
	status, err2 := p.backend.Status(ctx)
	return refreshedMsg{workers, status, errors.Join(err, err2)}
}

// forward sends notices, as many at once as are there, until the stream ends.
// It reports whether there was any.
func (p pump) forward(ctx context.Context, stream <-chan goclaw.Notice) bool {
	any := false
	for n := range stream {
		any = true
		batch := noticesMsg{n}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case n, ok := <-stream:
				if more = ok; ok {
					batch = append(batch, n)
				}
			default:
				more = false
			}
		}
		p.send(batch)
		if slices.ContainsFunc(batch, func(n goclaw.Notice) bool { return n.Kind == goclaw.NoticeLag }) {
			p.load(ctx)
		}
	}
	return any
}

// sleep waits for d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
