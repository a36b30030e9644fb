package web

import (
	"context"
	"slices"

	"goclaw"
)

// modelReply is one reply of a run's model, as its caller sees it.
type modelReply struct {
	text    string
	cut     bool // the model reached its limit of output
	usage   goclaw.Usage
	calls   []goclaw.ToolCall // that the caller is to run
	results map[string]string // of these calls, by id, as far as they are known
}

// repliesOf reads a run's record. A call that the engine itself refused has no
// intent: the caller never hears of it.
func repliesOf(log goclaw.RunLog) []modelReply {
	offered := map[string]bool{}
	for _, t := range log.Run.Profile.Caller {
		offered[t.Name] = true
	}
	var all []modelReply
	var usage goclaw.Usage // of calls that gave no reply of their own
	var asked []goclaw.ToolCall
	for _, e := range log.Events {
		if paid := e.Paid(); paid != nil {
			usage = usage.Add(paid.Usage)
		}
		if e.Model != nil {
			asked = e.Model.Message.Calls()
			all = append(all, modelReply{text: e.Model.Message.PlainText(), cut: e.Model.Stop == goclaw.StopMaxTokens, usage: usage, results: map[string]string{}})
			usage = goclaw.Usage{}
		}
		if len(all) == 0 {
			continue
		}
		last := &all[len(all)-1]
		if e.Intent != nil {
			last.calls = slices.DeleteFunc(slices.Clone(asked), func(c goclaw.ToolCall) bool {
				meant := func(i goclaw.Intent) bool { return i.CallID == c.ID }
				return !offered[c.Name] || !slices.ContainsFunc(e.Intent.Calls, meant)
			})
		}
		if e.Result != nil {
			last.results[e.Result.CallID] = e.Result.Content
		}
	}
	return all
}

// spent is the usage of replies.
func spent(replies []modelReply) (sum goclaw.Usage) {
	for _, r := range replies {
		sum = sum.Add(r.usage)
	}
	return sum
}

// less takes from u what was told before.
func less(u, before goclaw.Usage) goclaw.Usage {
	u.Input, u.Output = u.Input-before.Input, u.Output-before.Output
	u.CacheRead, u.CacheWrite = u.CacheRead-before.CacheRead, u.CacheWrite-before.CacheWrite
	return u
}

// said is what a request is answered with.
type said struct {
	state   goclaw.RunState
	why     string            // of a run that did not complete
	replies []string          // the texts
	calls   []goclaw.ToolCall // for the caller, by the ids that it gets
	usage   goclaw.Usage
	cut     bool // the model reached its limit of output
}

// failed says why it is no answer, or is nil. The run is over: the same request
// would only do its work again, so clients are told not to.
func (a said) failed() *failure {
	if a.state == goclaw.StateCompleted || len(a.calls) > 0 {
		return nil
	}
	f := failure{Status: 500, Code: "run_" + string(a.state), Detail: "the run ended " + string(a.state)}
	if a.state == goclaw.StateTimeout {
		f.Status = 504
	}
	if a.why != "" {
		f.Detail += ": " + a.why
	}
	return &f
}

// said tells what is to be answered after an outcome. Of a run with several
// requests it tells only what came after those before.
func (s *server) said(ctx context.Context, q question, t turn, out goclaw.Outcome) (said, error) {
	a := said{state: out.Status, why: out.Error, replies: []string{out.Reply}, usage: out.Usage, cut: out.Cut}
	if q.wait {
		a.replies = out.Replies
	}
	if len(out.Calls) == 0 && t.after == 0 {
		return a, nil
	}
	log, err := s.Backend.RunLog(ctx, t.run.ID)
	if err != nil {
		return a, err
	}
	replies := repliesOf(log)
	a.usage = less(out.Usage, spent(replies[:min(t.after, len(replies))]))
	if len(out.Calls) == 0 {
		return a, nil
	}
	for n := len(replies); n > 0; n-- { // it may have gone on since
		if slices.ContainsFunc(replies[n-1].calls, func(c goclaw.ToolCall) bool { return c.ID == out.Calls[0].ID }) {
			a.replies, a.calls = []string{replies[n-1].text}, handed(t.run.ID, n, out.Calls, q.one)
			return a, nil
		}
	}
	return a, failure{Status: 500, Detail: "the run's record lacks the calls that it waits for"}
}

// handed words calls for the client.
func handed(run string, reply int, calls []goclaw.ToolCall, one bool) []goclaw.ToolCall {
	if one {
		calls = calls[:1]
	}
	out := slices.Clone(calls)
	for i := range out {
		out[i].ID = callID(run, reply, out[i].ID)
	}
	return out
}

// recordedAnswer is what a run said and called after so many replies of its
// model, as far as it is on record.
func recordedAnswer(log goclaw.RunLog, after int, one bool) said {
	replies := repliesOf(log)
	after = min(after, len(replies))
	for n, r := range replies[after:] {
		left := log.Run.State.Ended() && len(r.results) < len(r.calls) // and nobody will answer
		if len(r.calls) > 0 && !left {
			n += after + 1
			return said{state: goclaw.StateWaiting, replies: []string{r.text}, usage: spent(replies[after:n]),
				calls: handed(log.Run.ID, n, r.calls, one)}
		}
	}
	a := said{state: log.Run.State, why: log.Run.Error, usage: less(log.Run.Usage, spent(replies[:after]))}
	if n := len(replies); n > 0 && a.state == goclaw.StateCompleted {
		a.cut = replies[n-1].cut
	}
	if log.Run.State.Ended() && !silent(log.Run.Result) {
		a.replies = []string{log.Run.Result}
	}
	return a
}
