package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"goclaw"
)

func TestTelling(t *testing.T) {
	on := func(kind goclaw.NoticeKind, text string) goclaw.Notice {
		return goclaw.Notice{Kind: kind, Session: goclaw.MainKey("main"), RunID: "r", Text: text}
	}
	ended := on(goclaw.NoticeRun, "")
	ended.Run = &goclaw.Run{ID: "r", State: goclaw.StateCompleted}
	running := on(goclaw.NoticeRun, "")
	running.Run = &goclaw.Run{ID: "r", State: goclaw.StateRunning}
	all := []goclaw.Notice{
		running, on(goclaw.NoticeWarning, "SOUL.md was cut"), on(goclaw.NoticeText, "hello"), on(goclaw.NoticeWarning, "SOUL.md was cut"),
		on(goclaw.NoticeCompact, "90,000 to 12,000 tokens"), on(goclaw.NoticeRetry, "overloaded"), {Kind: goclaw.NoticeLag}, ended,
	}
	const told = "goclaw: warning: SOUL.md was cut\ngoclaw: compacted: 90,000 to 12,000 tokens\n"
	for name, c := range map[string]struct {
		retries bool
		stopped bool // before the notices come
		want    string
	}{
		"a script":             {false, true, told},
		"a terminal":           {true, true, told + "goclaw: overloaded\n"},
		"the stream has ended": {false, false, told},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				tell := &telling{out: &out, retries: c.retries, last: make(chan string, 1), end: func() {}}
				notices := make(chan goclaw.Notice)
				tell.over.Go(func() { tell.follow(notices) })
				if c.stopped {
					tell.last <- "r"
				}
				for _, n := range all {
					notices <- n
				}
				if !c.stopped {
					close(notices)
				}
				tell.over.Wait()
				if out.String() != c.want {
					t.Errorf("told\n%swant\n%s", out.String(), c.want)
				}
			})
		})
	}
}

// What was told before a run's end is told although nobody waits any more.
func TestTellingStops(t *testing.T) {
	var out strings.Builder
	tell := &telling{out: &out, last: make(chan string, 1), end: func() {}}
	notices := make(chan goclaw.Notice, 2)
	notices <- goclaw.Notice{Kind: goclaw.NoticeWarning, RunID: "r", Text: "late"}
	notices <- goclaw.Notice{Kind: goclaw.NoticeRun, RunID: "r", Run: &goclaw.Run{ID: "r", State: goclaw.StateFailed}}
	tell.over.Go(func() { tell.follow(notices) })
	tell.stop("r")
	if out.String() != "goclaw: warning: late\n" {
		t.Errorf("told %q", out.String())
	}
	idle := &telling{out: &out, last: make(chan string, 1)}
	quiet := make(chan goclaw.Notice)
	idle.end = func() { close(quiet) }
	idle.over.Go(func() { idle.follow(quiet) })
	idle.last <- "" // what stop does for a command that became no run
	idle.end()
	idle.over.Wait()
}
