package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"goclaw"
	"goclaw/internal/core/turn"
)

const (
	maxTries = 8
	// A server that can't be reached at all is more often a wrong address than
	// a passing fault: it gets fewer tries.
	maxUnreached = 5

	firstWait = 500 * time.Millisecond
	longWait  = 60 * time.Second
	// A server that asks for more than this is not waited for: the run fails
	// and says so.
	patience = 15 * time.Minute
)

// callModel makes one model call and records the reply: with the intents of
// its tool calls, or, when it is final, with the run's end.
func (j *job) callModel() error {
	if j.r.Session.IsWorker() {
		if _, err := j.takeInputs(); err != nil {
			return err
		}
	}
	began := time.Now()
	reply, tries, err := j.stream(j.request, true)
	if err != nil {
		return err
	}
	return j.take(&reply, tries, began)
}

// take records a model's reply and what follows from it.
func (j *job) take(reply *goclaw.ModelReply, tries int, began time.Time) error {
	j.e.o.Hook("model.after")
	j.nameCalls(&reply.Message)
	model := goclaw.Event{Kind: goclaw.EventModel, Model: j.paid(*reply, tries, began)}
	if calls := reply.Message.Calls(); len(calls) > 0 {
		events, circling := j.intents(calls)
		if err := j.append(append([]goclaw.Event{model}, events...), goclaw.Batch{}); err != nil || circling == "" {
			return err
		}
		return errors.New(circling)
	}
	after := turn.Apply(j.state, goclaw.Event{Seq: j.state.Next, Kind: model.Kind, Model: model.Model})
	return j.finish(turn.Next(after, 0), model)
}

// paid is the record of a model call.
func (j *job) paid(reply goclaw.ModelReply, tries int, began time.Time) *goclaw.ModelEvent {
	return &goclaw.ModelEvent{
		Message: reply.Message, Stop: reply.Stop, Usage: j.priced(j.counted(reply)),
		Model: reply.Model, TookMs: time.Since(began).Milliseconds(), Tries: tries, MaxTokens: j.maxTokens,
	}
}

// stream asks the model, again if the provider says that it makes sense. live
// shows the reply as it comes.
func (j *job) stream(request func(model string) goclaw.ModelRequest, live bool) (goclaw.ModelReply, int, error) {
	provider, model, err := j.e.o.Models.Provider(j.r.Profile.Model)
	if err != nil {
		return goclaw.ModelReply{}, 0, err
	}
	wanted := request(model)
	for try, billed := 1, false; ; try++ {
		req := wanted
		rate, err := j.admit(&req, billed)
		if err != nil {
			return goclaw.ModelReply{}, try - 1, err
		}
		j.maxTokens = req.MaxTokens
		j.e.o.Hook("model.before")
		var shown bool
		show, rest := j.show(live)
		reply, err := provider.Stream(j.ctx, req, func(d goclaw.Delta) {
			shown = true
			show(d)
		})
		if err == nil {
			rest()
			j.giveRate(rate, reply.Usage)
			return reply, try, nil
		}
		if billed, err = j.again(err, try, shown, live); err != nil {
			return goclaw.ModelReply{}, try, err
		}
	}
}

// show returns what publishes the pieces of a reply, without its reply tag, and
// what publishes the rest once it is complete.
func (j *job) show(live bool) (show func(goclaw.Delta), rest func()) {
	if !live {
		return func(goclaw.Delta) {}, func() {}
	}
	var tag turn.Untagger
	next := j.state.Next
	publish := func(d goclaw.Delta) {
		if d.Text != "" {
			j.e.o.Publish(goclaw.Notice{Kind: d.Kind, Session: j.r.Session, RunID: j.r.ID, Text: d.Text, Seq: next})
		}
	}
	show = func(d goclaw.Delta) {
		if d.Kind == goclaw.NoticeText && !j.r.Session.IsWorker() {
			d.Text = tag.Add(d.Text)
		}
		publish(d)
	}
	return show, func() { publish(goclaw.Delta{Kind: goclaw.NoticeText, Text: tag.Rest()}) }
}

// again waits until a failed call is to be made again, or says why it is not.
// billed tells whether the failed one may have to be paid for.
func (j *job) again(err error, try int, shown, live bool) (billed bool, _ error) {
	var failed *goclaw.ProviderError
	if j.ctx.Err() != nil || !errors.As(err, &failed) || !failed.Retry || try >= tries(failed) || failed.After > patience {
		if j.ctx.Err() == nil && failed != nil && !mayBeBilled(failed, shown) {
			j.unspent()
		}
		return false, giveUp(err, try)
	}
	if shown && live {
		j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeReset, Session: j.r.Session, RunID: j.r.ID})
	}
	wait := backoff(try, failed.After)
	text := fmt.Sprintf("%v; trying again in %s (try %d of %d)", failed, wait.Round(100*time.Millisecond), try+1, tries(failed))
	j.e.o.Log.Warn("model call failed", "run", j.r.ID, "try", try, "err", failed, "wait", wait)
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeRetry, Session: j.r.Session, RunID: j.r.ID, Text: text})
	return mayBeBilled(failed, shown), j.rest(wait, nil)
}

func tries(e *goclaw.ProviderError) int {
	if e.Kind == "network" {
		return maxUnreached
	}
	return maxTries
}

// mayBeBilled reports whether a failed call had begun to be answered.
func mayBeBilled(e *goclaw.ProviderError, shown bool) bool {
	return shown || e.Kind != "network" && e.Status < 300
}

func giveUp(err error, tries int) error {
	if tries > 1 {
		return fmt.Errorf("%w (after %d tries)", err, tries)
	}
	return err
}

// backoff doubles from half a second to a minute with a fifth of jitter; a
// server's own delay is kept, and never undercut.
func backoff(try int, server time.Duration) time.Duration {
	wait := min(firstWait<<(try-1), longWait)
	jitter := time.Duration(rand.Int64N(int64(wait) / 5))
	if server > 0 {
		return server + jitter/4
	}
	return wait + jitter
}

// request renders the recorded prompt and transcript. Equal records give equal
// bytes.
func (j *job) request(model string) goclaw.ModelRequest {
	msgs := make([]goclaw.Message, 0, len(j.history)+2*len(j.state.Steps)+1)
	msgs = append(msgs, j.history...)
	return goclaw.ModelRequest{
		Model: model, System: j.system, Tools: j.prompt.Tools,
		Messages: append(msgs, j.view.Messages(j.r, j.state)...),
		Thinking: j.prompt.Thinking, MaxTokens: j.prompt.MaxTokens, Temperature: j.spec.Temperature,
		Stop: j.stops(), Schema: j.schema(),
		Session: j.r.Session.String(),
	}
}

// nameCalls gives every call an id that no other call of the run has: some
// servers send none, or the same twice.
func (j *job) nameCalls(m *goclaw.Message) {
	seen := map[string]bool{}
	for _, st := range j.state.Steps {
		for _, c := range st.Calls {
			seen[c.ID] = true
		}
	}
	for i, p := range m.Parts {
		if p.Kind != goclaw.PartToolCall {
			continue
		}
		call := *p.Call
		if call.ID == "" || seen[call.ID] {
			call.ID = fmt.Sprintf("call_%d_%d", j.state.Next, i)
			m.Parts[i].Call = &call
		}
		seen[call.ID] = true
	}
}
