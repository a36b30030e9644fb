package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw"
)

// actions are what /subagents can do, in the order in which people are told.
const actions = "list, info, log, kill, steer, wait, resume, spawn, parked, retry or dismiss"

// subagents answers /subagents: what a person may know of the workers of a
// chat, and do with them.
func (g *Gateway) subagents(ctx context.Context, in goclaw.Inbound, args string) (string, error) {
	action, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	switch action {
	case "", "list":
		return g.listWorkers(ctx, in.Session)
	case "info", "log":
		return g.showWorker(ctx, in.Session, rest, action == "log")
	case "kill":
		return g.kill(ctx, in.Session, rest)
	case "steer":
		return g.steerWorker(ctx, in, rest)
	case "wait":
		return g.waitWorkers(ctx, in.Session, rest)
	case "resume":
		r, err := g.worker(ctx, in.Session, rest)
		if err != nil {
			return "", err
		}
		if r, err = g.Resume(ctx, r.ID); err != nil {
			return "", err
		}
		return oneLine(r.Name()) + " goes on.", nil
	case "spawn":
		return g.spawnWorker(ctx, in, rest)
	case "parked":
		parked, err := g.parkedFor(ctx, in.Session)
		if err != nil {
			return "", err
		}
		return ParkedTable(parked), nil
	case "retry", "dismiss":
		return g.unpark(ctx, in.Session, rest, action == "retry")
	}
	return "", goclaw.BadRequest(fmt.Sprintf("/subagents %s: want %s", action, actions))
}

// workers are the newest that the session itself asked for.
func (g *Gateway) workers(ctx context.Context, key goclaw.SessionKey, active bool) ([]goclaw.Run, error) {
	const most = 50
	limit := most
	if active {
		limit = 0 // to stop some of them is to stop all
	}
	return g.o.Record.Runs(ctx, goclaw.RunFilter{
		Requester: key, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: active, Limit: limit,
	})
}

// allWorkers are a session's workers, ended ones too, and theirs.
func (g *Gateway) allWorkers(ctx context.Context, key goclaw.SessionKey) ([]goclaw.Run, error) {
	runs, err := g.workers(ctx, key, false)
	if err != nil {
		return nil, err
	}
	all := runs
	for _, r := range runs {
		if r.Depth >= r.Profile.MaxSpawnDepth {
			continue
		}
		deeper, err := g.allWorkers(ctx, r.Session)
		if err != nil {
			return nil, err
		}
		all = append(all, deeper...)
	}
	return all, nil
}

func (g *Gateway) listWorkers(ctx context.Context, key goclaw.SessionKey) (string, error) {
	runs, err := g.allWorkers(ctx, key)
	if err != nil {
		return "", err
	}
	infos, err := g.infos(ctx, runs)
	if err != nil {
		return "", err
	}
	parked, err := g.parkedFor(ctx, key)
	if err != nil {
		return "", err
	}
	text := RunTable(Tree(infos), time.Now())
	if len(parked) > 0 {
		text += "\n" + count(len(parked), "result could not be told and is", "results could not be told and are") + " parked: /subagents parked"
	}
	return text, nil
}

func (g *Gateway) showWorker(ctx context.Context, key goclaw.SessionKey, name string, log bool) (string, error) {
	r, err := g.worker(ctx, key, name)
	if err != nil {
		return "", err
	}
	if log {
		events, err := g.o.Record.Events(ctx, r.ID)
		if err != nil {
			return "", err
		}
		return EventTable(events), nil
	}
	places, err := g.Positions(ctx, []goclaw.Run{r})
	if err != nil {
		return "", err
	}
	left, err := g.o.Record.ArtifactsOf(ctx, goclaw.ArtifactFilter{Run: r.ID})
	if err != nil {
		return "", err
	}
	g.seen(&r)
	return RunDetails(r, places[r.ID], left, time.Now()), nil
}

// worker finds a worker of this chat, or of its workers, by id, prefix or
// label.
func (g *Gateway) worker(ctx context.Context, key goclaw.SessionKey, name string) (goclaw.Run, error) {
	if name == "" {
		return goclaw.Run{}, goclaw.BadRequest("name a worker: its id, the first characters of it, or its label (/subagents list)")
	}
	runs, err := g.allWorkers(ctx, key)
	if err != nil {
		return goclaw.Run{}, err
	}
	var found []goclaw.Run
	for _, r := range runs {
		if r.Name() == name || strings.HasPrefix(r.ID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return goclaw.Run{}, fmt.Errorf("worker %q of this chat: %w", name, goclaw.ErrNotFound)
	}
	return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("%d workers of this chat are called %q; use an id", len(found), name))
}

func (g *Gateway) kill(ctx context.Context, key goclaw.SessionKey, name string) (string, error) {
	var targets []goclaw.Run
	if name == "all" {
		runs, err := g.workers(ctx, key, true)
		if err != nil {
			return "", err
		}
		targets = runs
	} else {
		r, err := g.worker(ctx, key, name)
		if err != nil {
			return "", err
		}
		targets = append(targets, r)
	}
	stopped, err := g.cancel(ctx, targets, "cancelled by the user", true)
	if err != nil {
		return "", err
	}
	if stopped == 0 {
		return "Nothing to cancel: no such worker is under way.", nil
	}
	return "Cancelled " + count(stopped, "run", "runs") + ".", nil
}

func (g *Gateway) steerWorker(ctx context.Context, in goclaw.Inbound, args string) (string, error) {
	name, text, _ := strings.Cut(args, " ")
	r, err := g.worker(ctx, in.Session, name)
	if err != nil {
		return "", err
	}
	if _, err = g.Steer(ctx, r.ID, text, in.Key); errors.Is(err, goclaw.ErrEnded) {
		return "", goclaw.BadRequest(oneLine(r.Name()) + " has ended; start another with /subagents spawn")
	} else if err != nil {
		return "", err
	}
	return oneLine(r.Name()) + " reads it before its next step.", nil
}

// waitWorkers blocks until a worker, or all of the chat's that can end by
// themselves, have ended.
func (g *Gateway) waitWorkers(ctx context.Context, key goclaw.SessionKey, name string) (string, error) {
	runs, err := g.workers(ctx, key, true)
	if err != nil {
		return "", err
	}
	if name != "" {
		r, err := g.worker(ctx, key, name)
		if err != nil {
			return "", err
		}
		runs = []goclaw.Run{r}
	}
	if len(runs) == 0 {
		return "No worker is under way.", nil
	}
	for i, r := range runs {
		if r.WaitsFor == goclaw.WaitPerson {
			continue
		}
		if runs[i], err = g.WaitRun(ctx, r.ID); err != nil {
			return "", err
		}
	}
	infos, err := g.infos(ctx, runs)
	if err != nil {
		return "", err
	}
	return RunTable(infos, time.Now()), nil
}

func (g *Gateway) spawnWorker(ctx context.Context, in goclaw.Inbound, task string) (string, error) {
	reply, err := g.Spawn(ctx, in.Session, goclaw.SpawnRequest{Task: task}, in.Key)
	if err != nil {
		return "", err
	}
	if reply.Error != "" {
		return "", goclaw.BadRequest(reply.Error)
	}
	return "Started " + reply.RunID + "; its result will be announced here.", nil
}

// parkedFor lists what could not be told to a chat, or to its workers.
func (g *Gateway) parkedFor(ctx context.Context, key goclaw.SessionKey) ([]goclaw.Parked, error) {
	all, err := g.o.Record.Parked(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	workers, err := g.allWorkers(ctx, key)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p goclaw.Parked) bool {
		return p.Session != key && !slices.ContainsFunc(workers, func(w goclaw.Run) bool { return w.Session == p.Session })
	}), nil
}

func (g *Gateway) unpark(ctx context.Context, key goclaw.SessionKey, id string, retry bool) (string, error) {
	if id == "" {
		return "", goclaw.BadRequest("name a parked delivery by its id (/subagents parked)")
	}
	do, done := g.o.Runner.Dismiss, "It will not be told."
	if retry {
		do, done = g.o.Runner.Retry, "It is tried again."
	}
	parked, err := g.parkedFor(ctx, key)
	if err != nil {
		return "", err
	}
	if _, err := decide(ctx, parked, id, do); err != nil {
		return "", err
	}
	return done, nil
}
