package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"goclaw"
)

// command answers a slash command. ok is false for text that is none of ours:
// it goes to the agent like any message.
func (g *Gateway) command(ctx context.Context, in goclaw.Inbound) (reply string, ok bool, err error) {
	word, rest, _ := strings.Cut(in.Text, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/help":
		reply = help
	case "/status":
		reply, err = g.status(ctx, in.Session)
	case "/context":
		reply, err = g.context(ctx, in.Session)
	case "/new":
		err = g.o.Record.ChangeSession(ctx, in.Session, goclaw.SessionChange{Reset: true}, now())
		reply = "New conversation. What was said before is kept (goclaw sessions), but I no longer see it."
	case "/model":
		reply, err = g.model(ctx, in.Session, rest)
	case "/stop":
		reply, err = g.stop(ctx, in.Session)
	case "/subagents":
		reply, err = g.subagents(ctx, in.Session, rest)
	default:
		return "", false, nil
	}
	return reply, true, err
}

const help = `/subagents [list | info ID | log ID | kill ID|all | spawn TASK]  workers of this chat
/context   what the agent is shown, section by section
/status    model, runs, sandbox
/model [NAME|default]   show or change this chat's model
/stop      end the turn that is under way
/new       start over; the old transcript is kept`

func now() goclaw.Millis { return goclaw.At(time.Now()) }

func (g *Gateway) status(ctx context.Context, key goclaw.SessionKey) (string, error) {
	s, err := g.o.Status(ctx)
	if err != nil {
		return "", err
	}
	runs, err := g.workers(ctx, key, true)
	if err != nil {
		return "", err
	}
	p, err := g.o.Explainer.Explain(ctx, goclaw.ContextQuery{Session: key})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("GoClaw %s · model %s · session %s\nworkers of this chat under way: %d · runs active %d, queued %d\nexec sandbox: %s",
		s.Version, p.Model, key, len(runs), s.Active, s.Queued, s.Sandbox), nil
}

func (g *Gateway) context(ctx context.Context, key goclaw.SessionKey) (string, error) {
	p, err := g.o.Explainer.Explain(ctx, goclaw.ContextQuery{Session: key})
	if err != nil {
		return "", err
	}
	return PromptTable(p), nil
}

// PromptTable lists a prompt's sections, tools, omissions and warnings.
func PromptTable(p goclaw.Prompt) string {
	var b strings.Builder
	total := 0
	fmt.Fprintf(&b, "%-20s %7s  %s\n", "SECTION", "TOKENS", "SOURCE")
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "%-20s %7d  %s\n", s.ID, s.Tokens, s.Source)
		total += s.Tokens
	}
	tools, names := 0, make([]string, len(p.Tools))
	for i, t := range p.Tools {
		tools += (len(t.Name) + len(t.Description) + len(t.Schema) + 3) / 4
		names[i] = t.Name
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "%-20s %7d  %s\n", "tools", tools, strings.Join(names, " "))
	}
	fmt.Fprintf(&b, "%-20s %7d  model %s", "total", total+tools, p.Model)
	for _, o := range p.Omitted {
		fmt.Fprintf(&b, "\nleft out: %s (%s)", o.Source, o.Why)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s", w)
	}
	return b.String()
}

func (g *Gateway) model(ctx context.Context, key goclaw.SessionKey, name string) (string, error) {
	switch name {
	case "":
		p, err := g.o.Explainer.Explain(ctx, goclaw.ContextQuery{Session: key})
		if err != nil {
			return "", err
		}
		return "This chat uses " + p.Model + ". Change it with /model provider/model, or /model default.", nil
	case "default":
		name = ""
	default:
		full, err := g.o.ResolveModel(name)
		if err != nil {
			return "", goclaw.BadRequest(err.Error())
		}
		name = full
	}
	if err := g.o.Record.ChangeSession(ctx, key, goclaw.SessionChange{Model: &name}, now()); err != nil {
		return "", err
	}
	if name == "" {
		return "From the next turn on this chat uses the agent's default model.", nil
	}
	return "From the next turn on this chat uses " + name + ".", nil
}

// stop ends the turn under way and those that wait; workers go on, and are
// named, so that the person can decide about them.
func (g *Gateway) stop(ctx context.Context, key goclaw.SessionKey) (string, error) {
	turns, err := g.o.Record.Runs(ctx, goclaw.RunFilter{Session: key, Active: true})
	if err != nil {
		return "", err
	}
	stopped := 0
	for _, r := range turns {
		asked, err := g.o.Runner.Cancel(ctx, r.ID, "stopped by the user", false)
		if err != nil {
			return "", err
		}
		stopped += len(asked)
	}
	workers, err := g.workers(ctx, key, true)
	if err != nil {
		return "", err
	}
	reply := "Nothing was under way."
	if stopped > 0 {
		reply = "Stopped."
	}
	if len(workers) > 0 {
		reply += fmt.Sprintf(" %s still under way: end them with /subagents kill all, or let them go on.", count(len(workers), "worker is", "workers are"))
	}
	return reply, nil
}

func (g *Gateway) workers(ctx context.Context, key goclaw.SessionKey, active bool) ([]goclaw.Run, error) {
	return g.o.Record.Runs(ctx, goclaw.RunFilter{
		Requester: key, Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}, Active: active, Limit: 50,
	})
}

func (g *Gateway) subagents(ctx context.Context, key goclaw.SessionKey, args string) (string, error) {
	action, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	switch action {
	case "", "list":
		runs, err := g.workers(ctx, key, false)
		if err != nil {
			return "", err
		}
		return RunTable(runs, time.Now()), nil
	case "info":
		r, err := g.worker(ctx, key, rest)
		if err != nil {
			return "", err
		}
		return RunDetails(r, time.Now()), nil
	case "log":
		r, err := g.worker(ctx, key, rest)
		if err != nil {
			return "", err
		}
		events, err := g.o.Record.Events(ctx, r.ID)
		if err != nil {
			return "", err
		}
		return EventTable(events), nil
	case "kill":
		return g.kill(ctx, key, rest)
	case "spawn":
		reply, err := g.o.Runner.SpawnFor(ctx, key, goclaw.SpawnRequest{Task: rest})
		if err != nil {
			return "", err
		}
		if reply.Error != "" {
			return "", goclaw.BadRequest(reply.Error)
		}
		return "Started " + reply.RunID + "; its result will be announced here.", nil
	}
	return "", goclaw.BadRequest(fmt.Sprintf("/subagents %s: want list, info, log, kill or spawn", action))
}

// worker finds a worker of this chat by id, prefix or label.
func (g *Gateway) worker(ctx context.Context, key goclaw.SessionKey, name string) (goclaw.Run, error) {
	if name == "" {
		return goclaw.Run{}, goclaw.BadRequest("name a worker: its id, the first characters of it, or its label (/subagents list)")
	}
	runs, err := g.workers(ctx, key, false)
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
	targets := []goclaw.Run{}
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
	stopped := 0
	for _, r := range targets {
		asked, err := g.o.Runner.Cancel(ctx, r.ID, "cancelled by the user", true)
		if err != nil {
			return "", err
		}
		stopped += len(asked)
	}
	if stopped == 0 {
		return "Nothing to cancel: no such worker is under way.", nil
	}
	return "Cancelled " + count(stopped, "run", "runs") + ".", nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
