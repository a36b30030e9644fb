package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw"
)

// compaction reads "/compact [instructions]". It is no command that is answered
// at once, but a run: it waits for the turn under way, and survives a crash.
func compaction(text string) (instructions string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/compact")
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], " \t\n") {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

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
		reply, err = g.context(ctx, in.Session, rest)
	case "/new":
		err = g.o.Record.ChangeSession(ctx, in.Session, goclaw.SessionChange{Reset: true}, now())
		reply = "New conversation. What was said before is kept (goclaw sessions), but I no longer see it."
	case "/model":
		reply, err = g.model(ctx, in.Session, rest)
	case "/stop":
		reply, err = g.stop(ctx, in.Session, rest == "all")
	case "/subagents":
		reply, err = g.subagents(ctx, in, rest)
	case "/pause":
		reply, err = g.pause(ctx, rest)
	case "/resume":
		reply, err = g.unpause(ctx, rest)
	case "/usage":
		reply, err = g.usage(ctx, in.Session)
	default:
		return "", false, nil
	}
	return reply, true, err
}

const help = `/subagents [list | info ID | log ID | spawn TASK]   workers of this chat; ID: id, its beginning, or label
/subagents kill ID|all | steer ID TEXT | wait [ID] | resume ID
/subagents parked | retry ID | dismiss ID   results that could not be told
/stop [all]          end the turn that is under way; all: its workers, too
/pause [WHY], /resume   no model is called anywhere; go on
/status    model, runs, sandbox
/usage     tokens and cost of the last seven days
/context   what the agent is shown, section by section
/compact [WHAT MATTERS]   sum up what was said, so that less is sent with each turn
/context diff A B   where two requests begin to differ; A, B: session key, run ID or ID#STEP
/model [NAME|default]   show or change this chat's model
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
	text := fmt.Sprintf("GoClaw %s · model %s · session %s\nworkers of this chat under way: %d · runs active %d, queued %d\nexec sandbox: %s",
		s.Version, p.Model, key, len(runs), s.Active, s.Queued, s.Sandbox)
	if s.Paused.At != 0 {
		text += "\n" + PauseText(s.Paused) + "; /resume goes on"
	}
	if s.Parked > 0 {
		text += "\n" + count(s.Parked, "delivery is", "deliveries are") + " parked (goclaw subagent list --parked)"
	}
	for _, r := range s.Recovered {
		text += fmt.Sprintf("\n%s: %s", oneLine(r.Label), Recovered(r.Recovery))
	}
	return text, nil
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

func (g *Gateway) pause(ctx context.Context, why string) (string, error) {
	p, err := g.SetPause(ctx, true, why)
	if err != nil {
		return "", err
	}
	return PauseText(p) + "; /resume goes on.", nil
}

// PauseText says since when and why no model is called.
func PauseText(p goclaw.Pause) string {
	text := "No model is called since " + clock(p.At)
	if p.Why != "" {
		text += " (" + oneLine(p.Why) + ")"
	}
	return text
}

func (g *Gateway) unpause(ctx context.Context, args string) (string, error) {
	if args != "" {
		return "", goclaw.BadRequest("/resume takes nothing: it lifts /pause; a worker that waits for you goes on with /subagents resume ID")
	}
	before, err := g.o.Record.Paused(ctx)
	if err != nil {
		return "", err
	}
	if before.At == 0 {
		return "Nothing was paused.", nil
	}
	if _, err := g.SetPause(ctx, false, ""); err != nil {
		return "", err
	}
	return "Going on: models are called again.", nil
}

// usage sums what the chat's agent has spent lately.
func (g *Gateway) usage(ctx context.Context, key goclaw.SessionKey) (string, error) {
	const days = 7
	by := []string{"day", "model"}
	rows, err := g.o.Record.Usage(ctx, goclaw.UsageQuery{
		By: by, Agent: key.Agent, Since: time.Now().AddDate(0, 0, 1-days).Format(time.DateOnly),
	})
	if err != nil {
		return "", err
	}
	SortUsage(rows, by)
	return UsageTable(rows, by), nil
}

// stop ends the turn under way and those that wait. Workers go on, and are
// named, so that the person can decide about them; with all they end, too.
func (g *Gateway) stop(ctx context.Context, key goclaw.SessionKey, all bool) (string, error) {
	turns, err := g.o.Record.Runs(ctx, goclaw.RunFilter{Session: key, Active: true})
	if err != nil {
		return "", err
	}
	stopped, err := g.cancel(ctx, turns, "stopped by the user", false)
	if err != nil {
		return "", err
	}
	reply := "Nothing was under way."
	if stopped > 0 {
		reply = "Stopped."
	}
	workers, err := g.workers(ctx, key, true)
	if err != nil || len(workers) == 0 {
		return reply, err
	}
	if all {
		ended, err := g.cancel(ctx, workers, "stopped by the user", true)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Stopped, with %s.", count(ended, "worker", "workers")), nil
	}
	var names []string
	for _, w := range slices.Backward(workers) {
		names = append(names, oneLine(w.Name()))
	}
	verb, them := "workers are", "them"
	if len(workers) == 1 {
		verb, them = "worker is", "it"
	}
	return fmt.Sprintf("%s %d %s still under way: %s. Stop %s too with /stop all, or let %s go on.",
		reply, len(workers), verb, strings.Join(names, ", "), them, them), nil
}

// cancel asks for the end of runs and returns how many were asked now.
func (g *Gateway) cancel(ctx context.Context, runs []goclaw.Run, why string, cascade bool) (int, error) {
	asked := 0
	for _, r := range runs {
		now, err := g.o.Runner.Cancel(ctx, r.ID, why, cascade)
		if err != nil {
			return asked, err
		}
		asked += len(now)
	}
	return asked, nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
