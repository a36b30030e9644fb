package web

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw"
)

func TestShown(t *testing.T) {
	key := goclaw.MainKey("main")
	on := func(kind goclaw.NoticeKind, run, text string) goclaw.Notice {
		return goclaw.Notice{Kind: kind, Session: key, RunID: run, Text: text}
	}
	say := func(text string) goclaw.Notice { return on(goclaw.NoticeText, "r", text) }
	reset, step, lag := on(goclaw.NoticeReset, "r", ""), on(goclaw.NoticeUsage, "r", ""), goclaw.Notice{Kind: goclaw.NoticeLag}
	run := func(id string, trigger goclaw.Trigger, state goclaw.RunState, result string) goclaw.Notice {
		return goclaw.Notice{Kind: goclaw.NoticeRun, Session: key, RunID: id, Run: &goclaw.Run{ID: id, Trigger: trigger, State: state, Result: result}}
	}
	end := func(result string) goclaw.Notice {
		return run("r", goclaw.TriggerUser, goclaw.StateCompleted, result)
	}
	announcement := []goclaw.Notice{
		run("a", goclaw.TriggerAnnouncement, goclaw.StateRunning, ""),
		on(goclaw.NoticeText, "a", "news"),
		run("a", goclaw.TriggerAnnouncement, goclaw.StateCompleted, "news"),
	}
	for _, tc := range []struct {
		name    string
		wait    bool
		notices []goclaw.Notice
		replies []string // of the outcome
		want    []string // what is carried after each notice, the rest last
	}{
		{"pieces", false, []goclaw.Notice{say("Hel"), say("lo"), step, end("Hello")}, []string{"Hello"}, []string{"Hel", "lo"}},
		{"no pieces", false, nil, []string{"Hello"}, []string{"Hello"}},
		{"an end only", false, []goclaw.Notice{end("Hello")}, []string{"Hello"}, []string{"Hello"}},
		{"the outcome before the last piece", false, []goclaw.Notice{say("Hel")}, []string{"Hello"}, []string{"Hel", "lo"}},
		{"trimmed reply", false, []goclaw.Notice{say("\n"), say("Hello\n"), end("Hello")}, []string{"Hello"}, []string{"\nHello\n"}},
		{"text between tool calls", false, []goclaw.Notice{say("Let me see."), step, say("Done."), step, end("Done.")}, []string{"Done."},
			[]string{"Let me see.", "\n\nDone."}},
		{"same text again after a reset", false, []goclaw.Notice{say("Hel"), reset, say("He"), say("llo"), end("Hello")}, []string{"Hello"},
			[]string{"Hel", "lo"}},
		{"other text after a reset", false, []goclaw.Notice{say("Hel"), reset, say("Good"), say(" day"), end("Good day")}, []string{"Good day"},
			[]string{"Hel", "\n\nGood", " day"}},
		{"reset before a call's first piece", false, []goclaw.Notice{say("One."), step, reset, say("Two."), end("Two.")}, []string{"Two."},
			[]string{"One.", "\n\nTwo."}},
		{"lost pieces", false, []goclaw.Notice{say("Hel"), lag, say("xx"), end("Hello you")}, []string{"Hello you"}, []string{"Hel", "lo you"}},
		{"lost pieces and end", false, []goclaw.Notice{say("Hel"), lag}, []string{"Hello"}, []string{"Hel", "lo"}},
		{"silent", false, []goclaw.Notice{say("NO"), say("_REPLY"), step, end("NO_REPLY")}, nil, nil},
		{"nearly silent", false, []goclaw.Notice{say("NO"), say("BODY"), end("NOBODY")}, []string{"NOBODY"}, []string{"NOBODY"}},
		{"held to the end", false, []goclaw.Notice{say("NO"), end("NO")}, []string{"NO"}, []string{"NO"}},
		{"remarks", false, []goclaw.Notice{on(goclaw.NoticeWarning, "r", "SOUL.md was cut"), say("Hi"), on(goclaw.NoticeCompact, "r", "shorter"),
			on(goclaw.NoticeWarning, "r", "more"), say(" you"), end("Hi you")}, []string{"Hi you"}, []string{"Hi", " you"}},
		{"other runs", false, []goclaw.Notice{on(goclaw.NoticeText, "x", "no"), say("Hi"), end("Hi")}, []string{"Hi"}, []string{"Hi"}},
		{"announcement, not waiting", false, append([]goclaw.Notice{say("Hi"), end("Hi")}, announcement...), []string{"Hi"}, []string{"Hi"}},
		{"announcement, waiting", true, append([]goclaw.Notice{say("Hi"), end("Hi")}, announcement...), []string{"Hi", "news"},
			[]string{"Hi", "\n\nnews"}},
		{"announcement that was not seen", true, []goclaw.Notice{say("Hi"), end("Hi")}, []string{"Hi", "news", "more"},
			[]string{"Hi", "\n\nnews\n\nmore"}},
		{"a silent turn before the answer", true, append([]goclaw.Notice{say("NO_REPLY"), end("NO_REPLY")}, announcement...), []string{"news"},
			[]string{"news"}},
		{"whole", false, []goclaw.Notice{say("not JSON"), step, say("{}"), end("{}")}, []string{"{}"}, []string{"{}"}},
		{"failed", false, []goclaw.Notice{say("Hel"), run("r", goclaw.TriggerUser, goclaw.StateFailed, "")}, nil, []string{"Hel"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &shown{wait: tc.wait, whole: tc.name == "whole", tracked: map[string]bool{"r": true}}
			var got []string
			for _, n := range tc.notices {
				if text := s.see(n); text != "" {
					got = append(got, text)
				}
			}
			if text := s.rest(tc.replies); text != "" {
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
