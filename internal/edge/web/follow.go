package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"goclaw"
)

// settle is how long a stream waits, after the outcome is known, for notices
// of it that are still on their way, so that the text between tool calls isn't
// left out. The answer itself doesn't depend on them.
const settle = 200 * time.Millisecond

// wording puts an answer into the shape of one of OpenAI's APIs.
type wording interface {
	// whole answers with all at once.
	whole(a said) (status int, body any)
	// The others make a stream: its beginning, text as it comes, what there is
	// besides text and the end, or the end of one that can't be completed.
	begin(st *stream) error
	say(st *stream, text string) error
	end(st *stream, a said) error
	broken(st *stream, f failure) error
}

// answering is one request on its way to its answer.
type answering struct {
	*server
	w       http.ResponseWriter
	r       *http.Request
	q       question
	t       turn
	notices <-chan goclaw.Notice
	stop    func()
}

// ask hands the question in. worded is called once it is known what it became;
// with left, nobody waits for the outcome.
func (s *server) ask(w http.ResponseWriter, r *http.Request, q question, left bool, worded func(turn) wording) {
	a := &answering{server: s, w: w, r: r, q: q, stop: func() {}}
	defer func() { a.stop() }()
	if err := a.enter(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("X-GoClaw-Session", a.q.session.String())
	to := worded(a.t)
	if a.t.run.ID == "" {
		a.known(to, said{state: goclaw.StateCompleted, replies: []string{a.t.command}})
		return
	}
	w.Header().Set("X-GoClaw-Run", a.t.run.ID)
	if q.stream {
		a.follow(to)
		return
	}
	if left {
		a.known(to, said{state: a.t.run.State})
		return
	}
	out, err := s.Backend.Await(r.Context(), a.t.run.ID, q.wait)
	var done said
	if err == nil {
		done, err = s.said(r.Context(), a.q, a.t, out)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	a.known(to, done)
}

// enter lets the run go on that waits for the caller's results, or begins one.
func (a *answering) enter(ctx context.Context) error {
	t := a.q.tail()
	back, err := a.answered(ctx, &a.q, t)
	if err != nil {
		return err
	}
	if back != nil {
		a.listen(ctx, back.run.Session)
		if !back.taken {
			_, err = a.Backend.AnswerCalls(ctx, back.run.ID, back.results)
		}
		if err == nil {
			a.q.session, a.t = back.run.Session, turn{run: back.run, after: back.reply}
			return nil
		}
		if !errors.Is(err, goclaw.ErrEnded) {
			return err
		}
	}
	text, err := a.input(ctx, a.q, t)
	if err != nil {
		return err
	}
	// Listening begins before the message is in, or its first words are lost.
	a.listen(ctx, a.q.session)
	receipt, err := a.Backend.Receive(ctx, goclaw.Inbound{
		Session: a.q.session, Text: text, Sender: a.q.user, Key: a.q.key, Digest: a.q.digest,
		Caller: a.q.tools, MustCall: a.q.must, OutputSchema: a.q.schema,
	})
	if err != nil {
		return err
	}
	if receipt.Run == nil {
		a.t.command = receipt.Reply
		return nil
	}
	a.t.run, a.q.session = *receipt.Run, receipt.Run.Session
	return nil
}

// listen subscribes to a session if its text is to be streamed.
func (a *answering) listen(ctx context.Context, key goclaw.SessionKey) {
	a.stop()
	a.notices, a.stop = nil, func() {}
	if a.q.stream {
		a.notices, a.stop = a.subscribe(ctx, func(n goclaw.Notice) bool { return n.Session == key || n.Kind == goclaw.NoticeLag })
	}
}

// known answers with what is known already.
func (a *answering) known(to wording, done said) {
	if a.q.stream {
		if st, err := newStream(a.w); err == nil && to.begin(st) == nil {
			_ = a.finish(to, st, &shown{}, done) // fails only if the client is gone
		}
		return
	}
	if f := done.failed(); f != nil {
		a.Logger.Warn("run failed", "run", a.t.run.ID, "path", a.r.URL.Path, "error", f.Detail)
		a.w.Header().Set("X-Should-Retry", "false")
	}
	status, body := to.whole(done)
	writeJSON(a.w, status, body)
}

// finish streams what of the answer was not shown yet, and the end.
func (a *answering) finish(to wording, st *stream, sh *shown, done said) error {
	if text := sh.rest(done.replies); text != "" {
		if err := to.say(st, text); err != nil {
			return err
		}
	}
	return to.end(st, done)
}

// ending is what Await returned.
type ending struct {
	out  goclaw.Outcome
	done said
	err  error
}

// await waits for the run beside the handler, until stop has returned.
func (a *answering) await() (end <-chan ending, stop func()) {
	run := a.t.run.ID
	ctx, cancel := context.WithCancel(a.r.Context())
	ch, done := make(chan ending, 1), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { // here a panic would end the process, not the request
			if v := recover(); v != nil {
				a.Logger.Error("await panicked", "run", run, "panic", v, "stack", string(debug.Stack()))
				ch <- ending{err: fmt.Errorf("internal error; the gateway's log has the details")}
			}
		}()
		var e ending
		if e.out, e.err = a.Backend.Await(ctx, run, a.q.wait); e.err == nil {
			e.done, e.err = a.said(ctx, a.q, a.t, e.out)
		}
		ch <- e
	}()
	return ch, func() { cancel(); <-done }
}

// follow streams a run's text as it comes, until its outcome is known.
func (a *answering) follow(to wording) {
	run := a.t.run.ID
	st, err := newStream(a.w)
	if err == nil {
		err = to.begin(st)
	}
	if err != nil {
		return
	}
	awaited, stop := a.await()
	defer stop()
	sh := &shown{wait: a.q.wait, whole: len(a.q.schema) > 0, tracked: map[string]bool{run: true}}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	var end *ending
	var settled <-chan time.Time
	notices := a.notices
	for err == nil && (end == nil || !sh.complete(end.out)) {
		select {
		case n, open := <-notices:
			if !open {
				notices = nil
				continue
			}
			if text := sh.see(n); text != "" {
				err = to.say(st, text)
			}
		case e := <-awaited:
			end, awaited = &e, nil
			if e.err != nil {
				err = e.err
				break
			}
			settled = time.After(settle)
		case <-settled:
			// What has come by now is told first, however late it is looked at.
			select {
			case n, open := <-notices:
				if !open {
					notices = nil
				} else if text := sh.see(n); text != "" {
					err = to.say(st, text)
				}
				settled = time.After(0)
			default:
				sh.settled = true
			}
		case <-ticker.C:
			err = st.alive()
		case <-a.r.Context().Done():
			err = a.r.Context().Err()
		}
	}
	switch {
	case a.r.Context().Err() != nil: // the client has gone, or the gateway stops
		err = to.broken(st, stopping())
	case end != nil && end.err != nil:
		a.Logger.Error("await failed", "run", run, "error", end.err)
		f := asFailure(end.err)
		f.Detail = a.Redact(f.Detail)
		err = to.broken(st, f)
	case err == nil:
		err = a.finish(to, st, sh, end.done)
	}
	if err != nil {
		a.Logger.Debug("stream cut", "run", run, "error", err)
	}
}
