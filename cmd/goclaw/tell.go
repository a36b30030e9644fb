package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"goclaw"
)

// telling passes on to a person, on standard error, what happens around a
// message that is no part of its answer: what is wrong with the context, that
// the conversation was compacted and, at a terminal, what is waited for.
type telling struct {
	out     io.Writer
	retries bool
	last    chan string
	end     context.CancelFunc
	over    sync.WaitGroup
}

// tell begins before the message is sent, so that nothing is missed.
func (c *cli) tell(ctx context.Context, l link, key goclaw.SessionKey) *telling {
	ctx, end := context.WithCancel(ctx)
	t := &telling{out: c.Stderr, retries: isTerminal(c.Stderr), last: make(chan string, 1), end: end}
	notices, err := l.Notices(ctx, key)
	if err != nil {
		return t // what is wrong shows with the message itself
	}
	t.over.Go(func() { t.follow(notices) })
	return t
}

// stop ends the telling, once all was told that came before the run's end; ""
// is no run.
func (t *telling) stop(run string) {
	if run == "" {
		t.end()
	}
	t.last <- run
	t.over.Wait()
	t.end()
}

// follow tells until the notices end, or the last run has.
func (t *telling) follow(notices <-chan goclaw.Notice) {
	const patience = time.Second // for the end of a run that the record has already
	ended, told := map[string]bool{}, map[string]bool{}
	var last string
	var late <-chan time.Time
	for !ended[last] {
		select {
		case n, open := <-notices:
			if !open {
				return
			}
			if line := t.line(n); line != "" && (n.Kind != goclaw.NoticeWarning || !told[line]) {
				told[line] = true
				fmt.Fprintln(t.out, line)
			}
			if n.Kind == goclaw.NoticeRun && n.Run != nil && n.Run.State.Ended() {
				ended[n.RunID] = true
			}
		case last = <-t.last:
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		case <-late:
			return
		}
	}
}

// line is what a person is told of a notice; "" is nothing.
func (t *telling) line(n goclaw.Notice) string {
	switch {
	case n.Kind == goclaw.NoticeWarning:
		return "goclaw: warning: " + n.Text
	case n.Kind == goclaw.NoticeCompact:
		return "goclaw: compacted: " + n.Text
	case n.Kind == goclaw.NoticeRetry && t.retries:
		return "goclaw: " + n.Text
	}
	return ""
}
