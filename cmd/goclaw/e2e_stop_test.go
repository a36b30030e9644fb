package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// The promise is a second. How long it took is logged; a busy machine may take
// longer, though never as long as what is stopped would take by itself.
const stopLimit = 30 * time.Second

// stopCase is a way in which a worker is kept busy and a way to end it.
type stopCase struct {
	*e2e
	marker string // in the command line of the worker's processes; "" if it waits for its model
	spawn  args
}

func newStopCase(t *testing.T, wire, busy string, spawn args) *stopCase {
	c := &stopCase{spawn: args{"task": "work", "label": "busy"}}
	for k, v := range spawn {
		c.spawn[k] = v
	}
	if busy != "stream" {
		if found, why := sandbox.Find(t.Context(), busy); found == nil {
			t.Skipf("NOT TESTED in this sandbox: %s", why)
		}
		// sleep takes any number of seconds; this one is nobody else's.
		c.marker = "300.000" + fmt.Sprint(time.Now().UnixNano()) + strings.Map(digit, rand.Text())
	}
	c.e2e = newE2E(t, wire, c.answer)
	if busy == "landlock" {
		c.env = append(c.env, "PATH="+t.TempDir())
	}
	return c
}

func digit(r rune) rune { return '0' + r%10 }

func (c *stopCase) answer(r *providertest.Request) providertest.Answer {
	newest := r.NewestText()
	switch {
	case r.Worker() && c.marker == "":
		return providertest.Answer{Text: strings.Repeat("so far ", 200), Fault: providertest.StallAfter(1200)}
	case r.Worker():
		command := fmt.Sprintf("sleep %s & setsid sleep %s & (trap '' TERM; sleep %s) & wait", c.marker, c.marker, c.marker)
		return providertest.Answer{Calls: []providertest.Call{{Name: "exec", Arguments: arguments(args{"command": command})}}}
	case strings.Contains(newest, "[Subagent: busy]"):
		return providertest.Answer{Text: "told: " + newest}
	case len(r.NewestResults()) > 0:
		return providertest.Answer{Text: "started"}
	}
	return providertest.Answer{Calls: []providertest.Call{{Name: "sessions_spawn", Arguments: arguments(c.spawn)}}}
}

// awaitBusy waits until the worker is in its model's stream, or in its
// command with all that this starts.
func (c *stopCase) awaitBusy() {
	c.t.Helper()
	eventually(c.t, "the worker is busy", func() bool {
		if c.marker == "" {
			return c.server.Total() == 3 && c.streams.count() == 1 // the main agent's two are answered
		}
		sleeping := 0
		for _, p := range processesWith(c.marker) {
			if strings.HasSuffix(p, " sleep "+c.marker+" ") && len(strings.Fields(p)) == 3 {
				sleeping++
			}
		}
		return sleeping == 3
	})
}

// awaitStopped waits until the server has seen the connection close, or all
// processes are gone, and returns when that was.
func (c *stopCase) awaitStopped() (at time.Time) {
	c.t.Helper()
	eventually(c.t, "the work has stopped", func() bool {
		at = time.Now()
		if c.marker != "" {
			return len(processesWith(c.marker)) == 0
		}
		gone := c.streams.gone()
		if len(gone) > 0 {
			at = gone[0]
		}
		return len(gone) > 0
	})
	return at
}

func (c *stopCase) report(what string, took time.Duration) {
	c.t.Helper()
	c.t.Logf("%s: %v", what, took.Round(time.Millisecond))
	if took > stopLimit {
		c.t.Errorf("%s: %v is more than %v", what, took, stopLimit)
	}
}

// TestStops: timeout, cancel and interrupt reach the model's stream and all
// processes of a command.
func TestStops(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ wire, busy string }{
		{providertest.WireAnthropic, "stream"}, {providertest.WireOpenAI, "stream"},
		{providertest.WireAnthropic, "bubblewrap"}, {providertest.WireOpenAI, "landlock"},
	} {
		t.Run(k.wire+" "+k.busy, func(t *testing.T) {
			t.Parallel()
			t.Run("timeout", func(t *testing.T) { t.Parallel(); stopByTimeout(t, k.wire, k.busy) })
			t.Run("cancel", func(t *testing.T) { t.Parallel(); stopByCancel(t, k.wire, k.busy) })
			t.Run("interrupt", func(t *testing.T) { t.Parallel(); stopByInterrupt(t, k.wire, k.busy) })
		})
	}
}

func stopByTimeout(t *testing.T, wire, busy string) {
	const limit = 4 * time.Second // enough to get busy on a loaded machine
	c := newStopCase(t, wire, busy, args{"timeoutSeconds": int(limit.Seconds())})
	cmd := c.start("run", "--wait", "--json", "go")
	c.awaitBusy()
	stopped := c.awaitStopped()
	end := cmd.wait()
	var out goclaw.Outcome
	end.decode(t, &out)
	if end.code != exitOK || len(out.Runs) != 1 || out.Runs[0].Status != goclaw.StateTimeout || !strings.Contains(out.Reply, "[Subagent: busy] Timed out") {
		t.Fatalf("exit %d, outcome %+v", end.code, out)
	}
	r := out.Runs[0]
	due := r.StartedAt.Time().Add(limit)
	if stopped.Before(due.Add(-time.Millisecond)) || r.FinishedAt.Time().Before(due) {
		t.Errorf("stopped %v before its limit", due.Sub(stopped))
	}
	c.report("from the limit to the end of the work", stopped.Sub(due))
	c.report("from the limit to the run's end", r.FinishedAt.Time().Sub(due))
}

func stopByCancel(t *testing.T, wire, busy string) {
	c := newStopCase(t, wire, busy, nil)
	g := c.gateway()
	run := g.send("agent:main:main", "go")
	c.awaitBusy()
	var active []goclaw.RunInfo
	c.run("subagent", "list", "--json").decode(t, &active)
	if len(active) != 1 || active[0].Status != goclaw.StateRunning {
		t.Fatalf("active %+v", active)
	}
	began := time.Now()
	cancel := c.start("subagent", "cancel", active[0].RunID[:8], "--json")
	c.report("from the start of the command to the end of the work", c.awaitStopped().Sub(began))
	if end := cancel.wait(); end.code != exitOK {
		t.Errorf("cancel: exit %d: %s", end.code, end.stderr)
	}
	var out goclaw.Outcome
	g.get("/api/messages/"+run+"?workers=true&timeout=60", &out)
	if len(out.Runs) != 1 || out.Runs[0].Status != goclaw.StateCancelled || !strings.Contains(out.Reply, "[Subagent: busy] Cancelled: cancelled by the user") {
		t.Errorf("outcome %+v", out)
	}
	g.stop()
}

func stopByInterrupt(t *testing.T, wire, busy string) {
	c := newStopCase(t, wire, busy, nil)
	cmd := c.start("run", "--wait", "go")
	c.awaitBusy()
	began := time.Now()
	cmd.signal(syscall.SIGINT)
	c.report("from the signal to the end of the work", c.awaitStopped().Sub(began))
	if end := cmd.wait(); end.code != exitNotCompleted || !strings.Contains(end.stderr, "interrupted; the run and its workers were cancelled") {
		t.Errorf("exit %d: %s", end.code, end.stderr)
	}
	c.report("from the signal to the end of the program", time.Since(began))
	var history []goclaw.RunInfo
	c.run("subagent", "history", "--json").decode(t, &history)
	if len(history) != 1 || history[0].Status != goclaw.StateCancelled {
		t.Errorf("history %+v", history)
	}
}
