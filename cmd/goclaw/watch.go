package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"goclaw"
	"goclaw/internal/core/definition"
)

// watchEvery is how often definition files are looked at: an unchanged folder
// costs a few stats.
const watchEvery = 500 * time.Millisecond

// mostTold are the broken files of one look that are told one by one.
const mostTold = 5

// watcher tells, as it happens, that a definition file was broken, and that it
// is mended again. It parses nothing while no file changes.
type watcher struct {
	agents  map[string]definition.Agent
	library *library
	publish func(goclaw.Notice)
	log     *slog.Logger
}

// run watches until ctx ends. It begins with what is broken already.
func (w watcher) run(ctx context.Context) {
	stamps, broken := map[string]int64{}, map[string][]string{}
	again := map[string]bool{} // a time stamp can hide what came right after a look
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		for id, a := range w.agents {
			stamp := w.library.scanner.Stamp(a.Workspace)
			last, looked := stamps[id]
			changed := !looked || stamp != last
			if !changed && !again[id] {
				continue
			}
			again[id] = changed
			now := w.library.catalog(a.Workspace).Broken()
			w.tell(id, broken[id], now)
			stamps[id], broken[id] = stamp, now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w watcher) tell(agent string, before, now []string) {
	say := func(text string) {
		w.log.Warn("definitions", "agent", agent, "what", text)
		w.publish(goclaw.Notice{Kind: goclaw.NoticeWarning, Session: goclaw.MainKey(agent), Text: text})
	}
	told, fresh := slices.Sorted(slices.Values(before)), 0
	for _, problem := range now {
		if _, old := slices.BinarySearch(told, problem); old {
			continue
		}
		if fresh++; fresh <= mostTold {
			say(problem)
		}
	}
	if fresh > mostTold {
		say(fmt.Sprintf("definitions: %d more files are broken; goclaw agents check lists them", fresh-mostTold))
	}
	if len(before) > 0 && len(now) == 0 {
		say("all definition files are good again")
	}
}
