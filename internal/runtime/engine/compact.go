package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/compact"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/turn"
)

const (
	// maxSummary bounds the reply with the summary, in tokens.
	maxSummary = 8000
	// squeezePercent is the share of a refused request that the next may have.
	squeezePercent = 60
	// The least and the most that the record's own words may take where a
	// summary is missing, in bytes.
	leastDigest, mostDigest = 4000, 4 * maxSummary
)

// converse makes the next model call, once there is room for it.
func (j *job) converse() error {
	if j.r.Trigger == goclaw.TriggerCompact {
		return j.compactAsAsked()
	}
	if j.r.Session.IsWorker() {
		if over, err := j.handOff(); err != nil || over {
			return err
		}
	}
	if made, err := j.makeRoom(int64(j.r.Profile.Compaction.Tokens)); err != nil || made {
		return err
	}
	err := j.callModel()
	if !tooLong(err) || j.squeezed {
		return err
	}
	j.squeezed = true // the window is smaller than was known
	if made, problem := j.makeRoom(j.size() * squeezePercent / 100); made || problem != nil {
		return problem
	}
	return err
}

// tooLong reports whether a provider refused a request for its length.
func tooLong(err error) bool {
	var failed *goclaw.ProviderError
	switch {
	case !errors.As(err, &failed):
		return false
	case failed.Kind == "context_length", failed.Status == 413:
		return true // whatever the status: some servers find out while they answer
	case failed.Status != 400:
		return false
	}
	said := strings.ToLower(failed.Kind + " " + failed.Message)
	for _, sign := range []string{"context_length", "context length", "prompt is too long", "context window", "too many tokens"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return false
}

// compactAsAsked is all that a run of /compact does.
func (j *job) compactAsAsked() error {
	if n := len(j.state.Compacted); n > 0 {
		return j.end(turn.Action{State: goclaw.StateCompleted, Result: "Compacted " + told(j.state.Compacted[n-1])})
	}
	plan := j.plan(int64(j.r.Profile.Compaction.Tokens), true)
	if plan.IsZero() {
		return j.end(turn.Action{State: goclaw.StateCompleted, Result: "Nothing to compact: the conversation is short."})
	}
	return j.compact(plan)
}

// makeRoom compacts the session if its next request would pass limit tokens (0:
// none); made says that it did.
func (j *job) makeRoom(limit int64) (made bool, err error) {
	if j.r.Session.IsWorker() || j.asItIs || limit == 0 || j.size() <= limit {
		return false, nil
	}
	plan := j.plan(limit, false)
	if plan.IsZero() {
		return false, nil // the turn itself is what is long
	}
	if err = j.compact(plan); !refused(err) {
		return true, err
	}
	// There is room in the window yet: the turn goes on without.
	j.asItIs = true
	j.e.o.Log.Warn("the session could not be compacted", "run", j.r.ID, "err", err)
	j.e.o.Publish(goclaw.Notice{
		Kind: goclaw.NoticeWarning, Session: j.r.Session, RunID: j.r.ID,
		Text: fmt.Sprintf("the conversation was not shortened, and goes on as it is: %v", err),
	})
	return false, nil
}

// refused reports whether the provider will never answer the request, for what
// may lie in this one alone.
func refused(err error) bool {
	var failed *goclaw.ProviderError
	return errors.As(err, &failed) && !failed.Retry && (failed.Status == 400 || failed.Status == 422)
}

func (j *job) plan(limit int64, summarise bool) compact.Plan {
	return compact.Make(compact.Want{
		Total: j.size(), Logs: j.logs, View: j.view, Run: j.r, State: j.state,
		Limit: limit, KeepRecent: int64(j.r.Profile.Compaction.KeepRecent), Summarise: summarise,
	})
}

// size is how many tokens the next request has: as the provider counted the
// last one, with what came since, or by its bytes if that is more.
func (j *job) size() int64 {
	n := compact.Bytes(j.history) + compact.Bytes(j.view.Messages(j.r, j.state))
	return max(int64(prompt.Tokens(n)+j.fixed()), j.countedSize())
}

// fixed is how many tokens tools and system prompt have.
func (j *job) fixed() int {
	n := 0
	for _, b := range j.system {
		n += len(b.Text)
	}
	for _, t := range j.prompt.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return prompt.Tokens(n)
}

// countedSize is 0 if the provider has counted nothing since the session was
// compacted last.
func (j *job) countedSize() int64 {
	if n := len(j.state.Steps); n > 0 && len(j.state.Compacted) == 0 {
		last := j.state.Steps[n-1]
		return used(last.Reply) + int64(compact.Bytes(turn.View{}.Messages(j.r, after(j.state)))/4)
	}
	if len(j.state.Steps) > 0 || len(j.state.Compacted) > 0 || len(j.logs) == 0 {
		return 0
	}
	events := j.logs[len(j.logs)-1].Events
	for i := len(events) - 1; i >= 0; i-- {
		switch {
		case events[i].Compact != nil:
			return 0
		case events[i].Model != nil:
			return used(*events[i].Model) + int64(compact.Bytes(j.state.Messages())/4)
		}
	}
	return 0
}

func used(m goclaw.ModelEvent) int64 { return m.Usage.Input + m.Usage.Output }

// after is the state without all that came before the last reply.
func after(s turn.State) turn.State {
	last := s.Steps[len(s.Steps)-1]
	last.Reply.Message.Parts = nil
	return turn.State{Prompt: &goclaw.PromptEvent{}, Steps: []turn.Step{last}}
}

// compact shortens what the model sees and records that. A summary is a model
// call like any other; if none comes of it, the record's own words stand there.
func (j *job) compact(plan compact.Plan) error {
	done := goclaw.CompactEvent{Through: plan.Through, Trimmed: plan.Trimmed, Before: j.size(), Day: j.e.day()}
	if plan.Through > 0 {
		if err := j.summarise(&done); err != nil {
			return err
		}
	}
	done.After = plan.Total + int64(prompt.Tokens(len(done.Summary)))
	if err := j.append([]goclaw.Event{{Kind: goclaw.EventCompact, Compact: &done}}, goclaw.Batch{}); err != nil {
		return err
	}
	j.look()
	j.flush()
	j.e.o.Log.Info("the session was compacted", "session", j.r.Session.String(), "run", j.r.ID, "before", done.Before, "after", done.After)
	j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeCompact, Session: j.r.Session, RunID: j.r.ID, Text: told(done)})
	return nil
}

// look renders the session's record anew.
func (j *job) look() {
	j.view = turn.ViewOf(j.logs, j.state)
	j.history = j.view.Transcript(j.logs)
}

// summaryRequest asks for a summary of the runs up to an ordinal. It repeats
// what the last request began with, so that most of it is cached.
func (j *job) summaryRequest(model string, through int64) goclaw.ModelRequest {
	var instructions string
	if j.r.Trigger == goclaw.TriggerCompact {
		instructions = j.r.Task
	}
	req := j.request(model)
	req.Messages = append(j.view.Transcript(upTo(j.logs, through)), compact.Request(instructions))
	req.MaxTokens = maxSummary
	return req
}

func upTo(logs []goclaw.RunLog, through int64) []goclaw.RunLog {
	n := 0
	for n < len(logs) && logs[n].Run.Ordinal <= through {
		n++
	}
	return logs[:n]
}

// summarise asks the model for a summary of the runs up to done.Through.
func (j *job) summarise(done *goclaw.CompactEvent) error {
	older := upTo(j.logs, done.Through)
	began := time.Now()
	reply, tries, err := j.stream(func(model string) goclaw.ModelRequest {
		return j.summaryRequest(model, done.Through)
	}, false)
	var summary, notes string
	switch {
	case err == nil:
		j.e.o.Hook("compact.after")
		done.Call = j.paid(reply, tries, began)
		summary, notes, _ = compact.Parse(reply.Message.PlainText())
	case !tooLong(err) && !(j.squeezed && refused(err)): // else it must do without
		return fmt.Errorf("compact the conversation: %w", err)
	}
	if cut := reply.Stop == goclaw.StopMaxTokens; summary == "" || cut {
		j.e.o.Log.Warn("the model wrote no whole summary; the record's own words stand in for it", "run", j.r.ID, "cut", cut, "err", err)
		room := int(min(max(done.Before, leastDigest), mostDigest)) // a quarter of what there was
		summary = strings.TrimSpace(summary + "\n\n" + compact.Digest(older, j.view, done.Through, room))
	}
	done.Summary = summary + compact.Files(older, done.Through)
	if j.r.Profile.Compaction.MemoryFlush {
		done.Notes = notes
	}
	return nil
}

// flush writes what compactions of this run want remembered, before the model
// is asked again. Each is written once, however often this is called.
func (j *job) flush() {
	for i, c := range j.state.Compacted {
		if c.Notes == "" || j.e.o.Notes == nil {
			continue
		}
		mark := fmt.Sprintf("compaction %s/%d", j.r.ID, i)
		if err := j.e.o.Notes.Remember(j.r.Profile.Workspace, c.Day, mark, c.Notes); err != nil {
			text := fmt.Sprintf("what was to be remembered could not be written to memory/%s.md: %v (goclaw subagent log %s has it)", c.Day, err, j.r.ID)
			j.e.o.Log.Error("memory", "run", j.r.ID, "err", err)
			j.e.o.Publish(goclaw.Notice{Kind: goclaw.NoticeWarning, Session: j.r.Session, RunID: j.r.ID, Text: text})
		}
	}
}

// told says in words what a compaction did.
func told(c goclaw.CompactEvent) string {
	var parts []string
	if c.Through > 0 {
		parts = append(parts, "the older turns are summarised")
	}
	if n := len(c.Trimmed); n > 0 {
		parts = append(parts, fmt.Sprintf("%d old tool results are shown cut", n))
	}
	if c.Notes != "" {
		parts = append(parts, "lasting facts are in memory/"+c.Day+".md")
	}
	return fmt.Sprintf("from about %d to %d tokens: %s. The whole record is kept.", c.Before, c.After, strings.Join(parts, "; "))
}
