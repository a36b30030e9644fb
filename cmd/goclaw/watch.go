package main

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
)

// watchEvery is how often definition files are looked at: an unchanged folder
// costs a few stats.
const watchEvery = 500 * time.Millisecond

// watcher tells, as it happens, that a definition file was broken, and that it
// is mended again.
type watcher struct {
	agents  map[string]definition.Agent
	catalog func(workspace string) definition.Catalog
	publish func(goclaw.Notice)
	log     *slog.Logger
}

// run watches until ctx ends. What is broken at the start is told by the first
// prompt that it is missing from.
func (w watcher) run(ctx context.Context) {
	known := map[string][]string{}
	for id, a := range w.agents {
		known[id] = w.catalog(a.Workspace).Broken()
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for id, a := range w.agents {
			now := w.catalog(a.Workspace).Broken()
			w.tell(id, known[id], now)
			known[id] = now
		}
	}
}

func (w watcher) tell(agent string, before, now []string) {
	say := func(text string) {
		w.log.Warn("definitions", "agent", agent, "what", text)
		w.publish(goclaw.Notice{Kind: goclaw.NoticeWarning, Session: goclaw.MainKey(agent), Text: text})
	}
	for _, problem := range now {
		if !slices.Contains(before, problem) {
			say(problem)
		}
	}
	if len(before) > 0 && len(now) == 0 {
		say("all definition files are good again")
	}
}
