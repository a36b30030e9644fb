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
// is mended again. It parses nothing while no file changes.
type watcher struct {
	agents  map[string]definition.Agent
	library *library
	publish func(goclaw.Notice)
	log     *slog.Logger
}

// run watches until ctx ends. What was broken before is told with the first
// change, and by the first prompt that it is missing from.
func (w watcher) run(ctx context.Context) {
	stamps, broken := map[string]int64{}, map[string][]string{}
	for id, a := range w.agents {
		stamps[id] = w.library.scanner.Stamp(a.Workspace)
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
			stamp := w.library.scanner.Stamp(a.Workspace)
			if stamp == stamps[id] {
				continue
			}
			now := w.library.catalog(a.Workspace).Broken()
			w.tell(id, broken[id], now)
			stamps[id], broken[id] = stamp, now
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
