package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/flow"
)

// byUser is how a worker is told who steers it.
const byUser = "the user"

// Spawn starts a worker for a person, on behalf of a session. A refusal is a
// reply. The same once ("" is none) spawns once.
func (g *Gateway) Spawn(ctx context.Context, key goclaw.SessionKey, q goclaw.SpawnRequest, once string) (goclaw.SpawnReply, error) {
	switch {
	case key.IsZero():
		return goclaw.SpawnReply{}, goclaw.BadRequest("the request names no session")
	case key.IsWorker():
		return goclaw.SpawnReply{}, goclaw.BadRequest(fmt.Sprintf("%s is a worker's session; spawn on behalf of an agent's own, such as %s", key, goclaw.MainKey(key.Agent)))
	}
	if err := g.checkAgent(key); err != nil {
		return goclaw.SpawnReply{}, err
	}
	if !slices.Contains([]string{"", "off", "low", "medium", "high"}, q.Thinking) {
		return goclaw.SpawnReply{}, goclaw.BadRequest(fmt.Sprintf("thinking %q: want off, low, medium or high", q.Thinking))
	}
	if !slices.Contains([]goclaw.Cleanup{"", goclaw.CleanupKeep, goclaw.CleanupDelete}, q.Cleanup) {
		return goclaw.SpawnReply{}, goclaw.BadRequest(fmt.Sprintf("cleanup %q: want keep or delete", q.Cleanup))
	}
	if q.Announce != "" && q.Announce != goclaw.AnnounceNone && q.Announce != goclaw.AnnounceEach {
		return goclaw.SpawnReply{}, goclaw.BadRequest(fmt.Sprintf("announce %q: want each or none", q.Announce))
	}
	reply, err := g.o.Runner.SpawnFor(ctx, key, q, once)
	if err != nil || reply.RunID == "" || q.Digest == "" {
		return reply, err
	}
	run, err := g.o.Record.Run(ctx, reply.RunID)
	if err == nil {
		err = same(run, q.Digest)
	}
	if err != nil {
		return goclaw.SpawnReply{}, err
	}
	return reply, nil
}

// RunFlow starts the flow of a file, named for messages, on behalf of a session.
// What is wrong with it is a goclaw.BadRequest, one line for each problem. The
// same once ("" is none) starts it once.
func (g *Gateway) RunFlow(ctx context.Context, key goclaw.SessionKey, file, text string, input json.RawMessage, once string) (goclaw.SpawnReply, error) {
	if key.IsZero() || key.IsWorker() {
		return goclaw.SpawnReply{}, goclaw.BadRequest("a flow runs on behalf of an agent's own session, such as " + goclaw.MainKey(goclaw.DefaultAgent).String())
	}
	if err := g.checkAgent(key); err != nil {
		return goclaw.SpawnReply{}, err
	}
	f, problems := flow.Parse(file, []byte(text))
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = p.String()
		}
		return goclaw.SpawnReply{}, goclaw.BadRequest(strings.Join(lines, "\n"))
	}
	return g.o.Runner.RunFlow(ctx, key, f, input, once)
}

// Steer hands a person's message to an unended worker, which reads it between
// its steps. The same once ("" is none) is taken once.
func (g *Gateway) Steer(ctx context.Context, id, text, once string) (goclaw.Run, error) {
	if text = strings.TrimSpace(text); text == "" {
		return goclaw.Run{}, goclaw.BadRequest("the message is empty; write what the worker shall know or do")
	}
	run, err := g.o.Record.Run(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if once != "" {
		once = "steer:user:" + run.ID + ":" + once
		if err := g.sameMessage(ctx, run, once, text); err != nil {
			return goclaw.Run{}, err
		}
	}
	run, err = g.o.Runner.Steer(ctx, run.ID, text, byUser, once)
	if errors.Is(err, goclaw.ErrEnded) {
		return goclaw.Run{}, fmt.Errorf("run %s can't be steered: %w", id, goclaw.ErrEnded)
	}
	return run, err
}

// Resume lets a run go on that waits for a person.
func (g *Gateway) Resume(ctx context.Context, id string) (goclaw.Run, error) {
	run, err := g.o.Record.Run(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	resumed, err := g.o.Runner.Resume(ctx, run.ID)
	if errors.Is(err, goclaw.ErrNotFound) {
		return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("run %s does not wait for you: it is %s", id, run.State))
	}
	return resumed, err
}

// WaitRun blocks until the run, found by id or prefix, has ended. Its error is
// ctx's, which comes with the run as it is, or the store's.
func (g *Gateway) WaitRun(ctx context.Context, id string) (goclaw.Run, error) {
	run, err := g.o.Record.Run(ctx, id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	sub, stop := context.WithCancel(ctx)
	defer stop()
	whole := run.ID // run changes below
	notices := g.o.Feed.Subscribe(sub, func(n goclaw.Notice) bool {
		return n.Kind == goclaw.NoticeRun && n.RunID == whole && n.Run != nil && n.Run.State.Ended()
	})
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		now, err := g.o.Record.Run(ctx, run.ID)
		switch {
		case ctx.Err() != nil:
			return run, context.Cause(ctx)
		case err != nil || now.State.Ended():
			return now, err
		}
		run = now
		g.seen(&run)
		select {
		case <-ctx.Done():
			return run, context.Cause(ctx)
		case <-notices:
		case <-tick.C:
		}
	}
}

// Parked lists the deliveries that wait for a person, oldest first.
func (g *Gateway) Parked(ctx context.Context) ([]goclaw.Parked, error) {
	return g.o.Record.Parked(ctx)
}

// RetryParked makes a parked delivery, named by its id or a beginning of it,
// pending again.
func (g *Gateway) RetryParked(ctx context.Context, id string) (goclaw.Parked, error) {
	return g.decideAny(ctx, id, g.o.Runner.Retry)
}

// DismissParked gives a parked delivery up for good.
func (g *Gateway) DismissParked(ctx context.Context, id string) (goclaw.Parked, error) {
	return g.decideAny(ctx, id, g.o.Runner.Dismiss)
}

func (g *Gateway) decideAny(ctx context.Context, id string, do func(context.Context, string) error) (goclaw.Parked, error) {
	all, err := g.o.Record.Parked(ctx)
	if err != nil {
		return goclaw.Parked{}, err
	}
	return decide(ctx, all, id, do)
}

// decide finds one of the parked deliveries and does something about it.
func decide(ctx context.Context, all []goclaw.Parked, id string, do func(context.Context, string) error) (goclaw.Parked, error) {
	var found []goclaw.Parked
	for _, p := range all {
		if p.ID == id {
			return p, do(ctx, p.ID)
		}
		if len(id) >= minPrefix && strings.HasPrefix(p.ID, id) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], do(ctx, found[0].ID)
	case 0:
		return goclaw.Parked{}, fmt.Errorf("parked delivery %q: %w", id, goclaw.ErrNotFound)
	}
	return goclaw.Parked{}, goclaw.BadRequest(fmt.Sprintf("%d parked deliveries begin with %q; give more of the id", len(found), id))
}

// minPrefix is how much of an id may stand for it.
const minPrefix = 4

// Usage sums recorded model calls. Any run of a tree names it, also by the
// beginning of its id.
func (g *Gateway) Usage(ctx context.Context, q goclaw.UsageQuery) ([]goclaw.UsageRow, error) {
	for _, day := range []string{q.Since, q.Until} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return nil, goclaw.BadRequest(fmt.Sprintf("day %q: want a date such as 2006-01-02", day))
		}
	}
	if q.Tree != "" {
		run, err := g.o.Record.Run(ctx, q.Tree)
		if err != nil {
			return nil, err
		}
		if q.Tree = run.Root; q.Tree == "" {
			q.Tree = run.ID
		}
	}
	rows, err := g.o.Record.Usage(ctx, q)
	for i, r := range rows {
		if r.Usage.Input > 0 {
			read, write := float64(r.Usage.CacheRead)/float64(r.Usage.Input), float64(r.Usage.CacheWrite)/float64(r.Usage.Input)
			rows[i].CacheReadShare, rows[i].CacheWriteShare = &read, &write
		}
	}
	return rows, err
}

// Paused tells whether models may be called.
func (g *Gateway) Paused(ctx context.Context) (goclaw.Pause, error) { return g.o.Record.Paused(ctx) }

// SetPause stops all model calls everywhere, or lets them go on.
func (g *Gateway) SetPause(ctx context.Context, on bool, why string) (goclaw.Pause, error) {
	return g.o.Runner.SetPause(ctx, on, strings.TrimSpace(why))
}
