package engine

import (
	"fmt"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/compact"
	"goclaw/internal/core/handoff"
	"goclaw/internal/core/prompt"
	"goclaw/internal/core/turn"
)

const (
	// How much of the room that an attempt begins with a hand-off may take, in
	// percent: the worker's own, and the runtime's from the record.
	ownShare    = 80
	recordShare = 60
	// leastHandoff is what a hand-off may have in any case, in bytes.
	leastHandoff = 4000
	// maxHandoffReply bounds the reply with the hand-off, in tokens.
	maxHandoffReply = 8000
)

// handOff ends the worker's attempt if its context has passed its limit; over
// says that it did, or that the run has ended for it.
func (j *job) handOff() (over bool, err error) {
	h := j.r.Profile.Handoff
	before := j.size()
	if h.Tokens == 0 || before <= int64(h.Tokens) || len(j.state.Steps) == 0 {
		return false, nil
	}
	switch {
	case h.Fail:
		return true, j.tooLongFor(before, "its definition says: onLimit: fail")
	case len(j.state.Handoffs) >= h.Max:
		return true, j.tooLongFor(before, "it was handed over "+times(len(j.state.Handoffs))+" already (maxHandoffs)")
	case len(j.state.Handoffs) == 0 && j.begins() >= h.Tokens:
		return true, j.tooLongFor(before, fmt.Sprintf("what it begins with has %d, so that no hand-off can help; raise limits, or give it less", j.begins()))
	}
	next, err := j.writeHandoff()
	if err != nil {
		return true, err
	}
	next.Attempt, next.Before, next.Steps = j.state.Attempt()+1, before, len(j.state.Steps)
	next.Artifact = handoff.Name(j.state.Attempt())
	err = j.append([]goclaw.Event{{Kind: goclaw.EventHandoff, Handoff: &next}}, goclaw.Batch{
		Artifacts: []goclaw.ArtifactData{{Name: next.Artifact, MediaType: "text/markdown", Data: []byte(next.Text)}},
	})
	if err == nil {
		j.e.o.Log.Info("a worker was handed over", "run", j.r.ID, "attempt", next.Attempt, "tokens", before)
	}
	return true, err
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// begins is how many tokens the worker's first attempt has from the start, and
// so every later one.
func (j *job) begins() int {
	messages := j.view.Messages(j.r, j.state)
	return prompt.Tokens(compact.Bytes(messages[:min(1, len(messages))])) + j.fixed()
}

func (j *job) tooLongFor(tokens int64, why string) error {
	return j.end(turn.Action{
		State: goclaw.StateFailed, Result: j.state.Text(),
		Error: fmt.Sprintf("the worker's context has %d tokens, its limit is %d, and %s", tokens, j.r.Profile.Handoff.Tokens, why),
	})
}

// writeHandoff asks the worker for its state, by a request that repeats the
// prefix of its last one. If it gives none, the record's own words stand in.
func (j *job) writeHandoff() (goclaw.HandoffEvent, error) {
	var next goclaw.HandoffEvent
	began := time.Now()
	reply, tries, err := j.stream(j.handoffRequest, false)
	if err != nil {
		return next, fmt.Errorf("hand the task over: %w", err)
	}
	j.e.o.Hook("handoff.after")
	next.Call = j.paid(reply, tries, began)
	room := 4 * (j.r.Profile.Handoff.Tokens - j.fixed())
	text, ok := handoff.Parse(reply.Message.PlainText())
	if next.By = "worker"; ok {
		text = handoff.Clip(text, max(room*ownShare/100, leastHandoff))
	} else {
		next.By, text = "runtime", handoff.Digest(j.state, max(room*recordShare/100, leastHandoff))
	}
	workers, err := j.unended()
	if err != nil {
		return next, err
	}
	if len(workers) > 0 {
		text += "\n\nWorkers under way, whose results come by themselves: " + strings.Join(workers, ", ")
	}
	next.Text = text
	return next, nil
}

func (j *job) handoffRequest(model string) goclaw.ModelRequest {
	req := j.request(model)
	req.Messages = append(req.Messages, handoff.Request())
	req.MaxTokens = maxHandoffReply
	return req
}
