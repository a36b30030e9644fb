package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"goclaw"
	"goclaw/internal/core/prefix"
)

// Context explains a prompt.
func (g *Gateway) Context(ctx context.Context, q goclaw.ContextQuery) (goclaw.Prompt, error) {
	if q.Session.IsZero() && q.Agent != "" {
		q.Session = goclaw.MainKey(q.Agent)
	}
	if q.Session.Kind == goclaw.KindCron && q.Run == "" && q.Definition == "" && g.o.Jobs != nil {
		job, err := g.o.Jobs.CronJob(ctx, q.Session.ID)
		switch {
		case err == nil && job.Key() == q.Session && job.Target == goclaw.TargetIsolated:
			q.Job = &job
		case err != nil && !errors.Is(err, goclaw.ErrNotFound):
			return goclaw.Prompt{}, err
		}
	}
	return g.o.Explainer.Explain(ctx, q)
}

// AsSent rebuilds the request of a run's model call, from 1 (0: the last). With
// 0 it takes all names that ContextDiff takes.
func (g *Gateway) AsSent(ctx context.Context, name string, step int) (goclaw.Sent, error) {
	if step == 0 {
		return g.named(ctx, name)
	}
	return g.o.Explainer.AsSent(ctx, name, step)
}

// ContextDiff compares two requests as they were sent. Each is named by a run,
// by RUN#STEP, or by a session: the last one that it sent, or, before it has
// sent any, what its next turn begins with.
func (g *Gateway) ContextDiff(ctx context.Context, a, b string) (goclaw.SentDiff, error) {
	return g.contextDiff(ctx, a, b, func(goclaw.Sent) error { return nil })
}

func (g *Gateway) contextDiff(ctx context.Context, a, b string, check func(goclaw.Sent) error) (goclaw.SentDiff, error) {
	var sent [2]goclaw.Sent
	var taken [2]prefix.Request
	for i, name := range []string{a, b} {
		var err error
		if sent[i], err = g.named(ctx, name); err != nil {
			return goclaw.SentDiff{}, err
		}
		if err = check(sent[i]); err != nil {
			return goclaw.SentDiff{}, err
		}
		if taken[i], err = prefix.Parts(sent[i].Body, sent[i].Prompt.Sections); err != nil {
			return goclaw.SentDiff{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	d := prefix.Diff(taken[0], taken[1])
	for i, side := range []*goclaw.SentSide{&d.A, &d.B} {
		side.Session, side.RunID, side.Step, side.Model = sent[i].Session, sent[i].Run.ID, sent[i].Step, sent[i].Model
	}
	return d, nil
}

// named finds the request that a session key, a run or RUN#STEP stands for.
func (g *Gateway) named(ctx context.Context, name string) (goclaw.Sent, error) {
	if strings.Contains(name, ":") {
		key, err := goclaw.ParseSessionKey(name)
		if err != nil {
			return goclaw.Sent{}, goclaw.BadRequest(err.Error())
		}
		return g.latest(ctx, key)
	}
	run, number, given := strings.Cut(name, "#")
	step := 0
	if given {
		var err error
		if step, err = strconv.Atoi(number); err != nil || step < 1 {
			return goclaw.Sent{}, goclaw.BadRequest(fmt.Sprintf("%q: want a session's key, a run's ID, or ID#STEP with a STEP from 1", name))
		}
	}
	return g.o.Explainer.AsSent(ctx, run, step)
}

// latest is the last request of a session.
func (g *Gateway) latest(ctx context.Context, key goclaw.SessionKey) (goclaw.Sent, error) {
	if err := g.checkAgent(key); err != nil {
		return goclaw.Sent{}, err
	}
	const most = 50 // runs without any model call, one after the other
	runs, err := g.o.Record.Runs(ctx, goclaw.RunFilter{Session: key, Limit: most})
	if err != nil {
		return goclaw.Sent{}, err
	}
	for _, r := range runs {
		if sent, err := g.o.Explainer.AsSent(ctx, r.ID, 0); !errors.Is(err, goclaw.ErrNotFound) {
			return sent, err
		}
	}
	return g.o.Explainer.Upcoming(ctx, key)
}

// context answers /context. A diff shows of other sessions only what this one
// may see.
func (g *Gateway) context(ctx context.Context, key goclaw.SessionKey, args string) (string, error) {
	words := strings.Fields(args)
	switch {
	case len(words) == 0:
		p, err := g.o.Explainer.Explain(ctx, goclaw.ContextQuery{Session: key})
		if err != nil {
			return "", err
		}
		return PromptTable(p), nil
	case words[0] != "diff" || len(words) != 3:
		return "", goclaw.BadRequest("/context takes nothing, or diff A B; A and B are session keys, run IDs, or ID#STEP")
	}
	viewer := goclaw.Access{Session: key}
	d, err := g.contextDiff(ctx, words[1], words[2], func(s goclaw.Sent) error {
		if ok, why := viewer.MaySee(goclaw.Thing{Session: s.Session, Requester: s.Run.Requester}); !ok {
			return goclaw.BadRequest("that request can't be shown here: " + why)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return DiffText(d), nil
}

// PromptTable lists what a prompt is made of in the order in which it is sent,
// where the part ends that stays cached, and what was left out.
func PromptTable(p goclaw.Prompt) string {
	r := p.Report()
	width := 20
	for _, s := range r.Sections {
		width = max(width, len(s.ID))
	}
	var b strings.Builder
	line := func(name string, tokens int, stable, source string) {
		fmt.Fprintf(&b, "%-*s %7d  %-6s  %s\n", width, name, tokens, stable, source)
	}
	fmt.Fprintf(&b, "%-*s %7s  %-6s  %s\n", width, "SECTION", "TOKENS", "STABLE", "SOURCE")
	if len(r.Tools) > 0 {
		names := make([]string, len(r.Tools))
		for i, t := range r.Tools {
			names[i] = t.Name
		}
		line("tools", r.ToolTokens, "yes", strings.Join(names, " "))
	}
	cached, stable := true, map[bool]string{true: "yes", false: "no"}
	mark := func() {
		fmt.Fprintf(&b, "%s the cached prefix ends here: %d tokens\n", strings.Repeat("-", width), r.PrefixTokens)
	}
	for _, s := range r.Sections {
		if cached && !s.Stable {
			cached = false
			mark()
		}
		line(s.ID, s.Tokens, stable[s.Stable], s.Source)
	}
	if cached {
		mark()
	}
	fmt.Fprintf(&b, "%-*s %7d  tools %d, system %d; model %s", width, "total", r.Total, r.ToolTokens, r.SystemTokens, r.Model)
	for _, l := range r.Lifted {
		fmt.Fprintf(&b, "\nlifted: %s is private, and was named for this session (subagents.inherit)", l)
	}
	for _, o := range r.Omitted {
		fmt.Fprintf(&b, "\nleft out: %s (%s)", o.Source, o.Why)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s", w)
	}
	return b.String()
}

// DiffText says where two requests begin to differ.
func DiffText(d goclaw.SentDiff) string {
	var b strings.Builder
	if d.Equal {
		fmt.Fprintf(&b, "equal: %d bytes (%d tokens) of tools, system prompt and messages", d.Bytes, d.Tokens)
	} else {
		fmt.Fprintf(&b, "differs: the first %d bytes (%d tokens) are equal", d.Bytes, d.Tokens)
		if d.A.Part == d.B.Part {
			fmt.Fprintf(&b, "; the next one is in %s", d.A.Part)
		}
		fmt.Fprintf(&b, "\nafter %s", quoted(d.Before))
	}
	sides := []goclaw.SentSide{d.A, d.B}
	for i, side := range sides {
		switch {
		case d.Equal:
		case side.Part == "":
			fmt.Fprintf(&b, "\n%c has nothing more", 'A'+i)
		default:
			fmt.Fprintf(&b, "\n%c has %s (%s)", 'A'+i, quoted(side.After), side.Part)
		}
	}
	for i, side := range sides {
		what := "its next turn"
		if side.RunID != "" {
			what = fmt.Sprintf("run %s, model call %d", side.RunID, side.Step)
		}
		fmt.Fprintf(&b, "\n%c: %s, %s; %s; %d bytes", 'A'+i, side.Session, what, side.Model, side.Bytes)
	}
	if len(d.Fields) > 0 {
		fmt.Fprintf(&b, "\nother fields that differ: %s", strings.Join(d.Fields, ", "))
	}
	return b.String()
}

// quoted is text in one line, as plain as it can be.
func quoted(text string) string {
	if strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}
