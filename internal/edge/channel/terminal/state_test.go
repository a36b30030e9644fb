package terminal

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"goclaw"
)

// has fails the test unless the screen shows each text, in this order.
func has(t *testing.T, s *state, texts ...string) {
	t.Helper()
	screen := shot(t, s)
	rest := screen
	for _, want := range texts {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing (or out of order) in\n%s", want, screen)
		}
		rest = after
	}
}

func hasNot(t *testing.T, s *state, texts ...string) {
	t.Helper()
	screen := shot(t, s)
	for _, no := range texts {
		if strings.Contains(screen, no) {
			t.Errorf("%q is in\n%s", no, screen)
		}
	}
}

func TestMessagesAreHandedOverInOrder(t *testing.T) {
	s := newTest(60, 20, Options{})
	first := say(s, "one")
	if todo := say(s, "two"); len(todo) != 0 {
		t.Fatalf("the second message went out before the first was accepted: %v", todo)
	}
	has(t, s, "one (sending)", "two (sending)")
	run := own("run-1", goclaw.StateQueued)
	run.Task = "one"
	next := s.sent(sentMsg{id: first[0].(sendEffect).id, receipt: goclaw.Receipt{Run: &run}})
	if len(next) != 1 || next[0].(sendEffect).text != "two" {
		t.Fatalf("after the first receipt: %v", next)
	}
	run.State = goclaw.StateRunning
	applyAll(s, ran(run), told(run, goclaw.NoticeText, "answer"))
	has(t, s, "› one", "answer", "two (queued)", "1 queued")
}

func TestNoticeFasterThanReceipt(t *testing.T) {
	s := newTest(60, 20, Options{})
	todo := say(s, "one")
	run := own("run-1", goclaw.StateRunning)
	run.Task = "one"
	applyAll(s, ran(run))
	run.State = goclaw.StateQueued
	s.sent(sentMsg{id: todo[0].(sendEffect).id, receipt: goclaw.Receipt{Run: &run}})
	if got := strings.Count(shot(t, s), "one"); got != 1 {
		t.Errorf("the message is shown %d times\n%s", got, shot(t, s))
	}
	if len(s.turns) != 1 || len(s.pending) != 0 {
		t.Errorf("%d turns, %d waiting", len(s.turns), len(s.pending))
	}
}

func TestRefusedMessageIsGivenBack(t *testing.T) {
	s := newTest(60, 20, Options{})
	todo := say(s, "one")
	s.paste("more")
	s.sent(sentMsg{id: todo[0].(sendEffect).id, key: "k1", err: errors.New("gateway down\nreally")})
	if s.editor.text != "one\nmore" {
		t.Errorf("editor holds %q", s.editor.text)
	}
	has(t, s, "✗ not sent: gateway down")
	s.editor.set("one")
	if got := press(s, "enter")[0].(sendEffect); got.key != "k1" {
		t.Errorf("the same message goes out under key %q, want that of the first try", got.key)
	}
}

func TestWarnings(t *testing.T) {
	s := newTest(60, 30, Options{})
	run, w := own("run-1", goclaw.StateRunning), spawned("w1", "tides", goclaw.StateRunning)
	other := own("run-2", goclaw.StateRunning)
	other.Session = goclaw.MainKey("second")
	applyAll(s, told(run, goclaw.NoticeWarning, "SOUL.md was cut: 12 characters dropped"), ran(run), ran(w),
		told(run, goclaw.NoticeWarning, "SOUL.md was cut: 12 characters dropped"),
		told(w, goclaw.NoticeWarning, "AGENTS.md is\x1b[2J not readable"),
		told(other, goclaw.NoticeWarning, "elsewhere"),
		told(run, goclaw.NoticeCompact, "90,000 to 12,000 tokens"), told(run, goclaw.NoticeText, "answer"))
	has(t, s, "! SOUL.md was cut", "! tides: AGENTS.md is", "compacted: 90,000 to 12,000 tokens", "answer")
	hasNot(t, s, "elsewhere")
	if n := strings.Count(shot(t, s), "SOUL.md"); n != 1 {
		t.Errorf("the warning is shown %d times", n)
	}
	if len(s.turns) != 1 {
		t.Errorf("%d turns", len(s.turns))
	}
}

func TestCompactIsShownLikeATurn(t *testing.T) {
	s := newTest(60, 30, Options{})
	todo := say(s, "/compact keep the names")
	run := own("run-1", goclaw.StateQueued)
	run.Trigger, run.Task = goclaw.TriggerCompact, "keep the names"
	applyAll(s, ran(run)) // faster than the receipt
	s.sent(sentMsg{id: todo[0].(sendEffect).id, receipt: goclaw.Receipt{Run: &run}})
	has(t, s, "/compact keep the names (queued)")
	run.State = goclaw.StateRunning
	applyAll(s, ran(run), told(run, goclaw.NoticeCompact, "90,000 to 12,000 tokens"))
	run.State, run.Result = goclaw.StateCompleted, "The conversation is summed up."
	applyAll(s, ran(run))
	has(t, s, "› /compact keep the names", "compacted: 90,000", "The conversation is summed up.")
	if n := strings.Count(shot(t, s), "/compact"); n != 1 || len(s.pending) != 0 {
		t.Errorf("the command is shown %d times, %d wait", n, len(s.pending))
	}
	elsewhere := own("run-2", goclaw.StateQueued)
	elsewhere.Trigger, elsewhere.Task = goclaw.TriggerCompact, ""
	applyAll(s, ran(elsewhere))
	has(t, s, "/compact (queued)")
}

func TestForeignMessagesAreShown(t *testing.T) {
	s := newTest(60, 20, Options{})
	run := own("run-9", goclaw.StateQueued)
	applyAll(s, ran(run))
	has(t, s, run.Task+" (queued)")
	if todo := s.handOver(); len(todo) != 0 {
		t.Errorf("somebody else's message was sent again: %v", todo)
	}
	run.State = goclaw.StateRunning
	applyAll(s, ran(run))
	hasNot(t, s, "(queued)")
}

func TestStreamIsReset(t *testing.T) {
	s := newTest(60, 20, Options{})
	r := own("run-1", goclaw.StateRunning)
	applyAll(s, ran(r), told(r, goclaw.NoticeText, "kept"), called(r, "1", "grep", `{}`), returned(r, "1", "", false),
		told(r, goclaw.NoticeThinking, "void thought"), told(r, goclaw.NoticeText, "void text"),
		told(r, goclaw.NoticeReset, ""), told(r, goclaw.NoticeRetry, "overloaded, again in 2 s"))
	has(t, s, "kept", "grep  done", "overloaded, again in 2 s", "waiting")
	hasNot(t, s, "void")
	applyAll(s, told(r, goclaw.NoticeText, "fresh"))
	has(t, s, "kept", "fresh")
	hasNot(t, s, "overloaded")
}

func TestLateNoticesOfAnEndedTurnAreDropped(t *testing.T) {
	s := newTest(60, 20, Options{})
	r := own("run-1", goclaw.StateCompleted)
	r.Result = "done"
	applyAll(s, ran(r), told(r, goclaw.NoticeText, "late"), ran(own("run-1", goclaw.StateRunning)))
	has(t, s, "done")
	hasNot(t, s, "late", "working")
}

func TestTurnSeenFromTheMiddle(t *testing.T) {
	s := newTest(60, 20, Options{})
	r := own("run-1", goclaw.StateRunning)
	applyAll(s, told(r, goclaw.NoticeText, "half a sen"))
	has(t, s, "half a sen", "writing")
	r.State, r.Result = goclaw.StateCompleted, "half a sentence"
	applyAll(s, ran(r))
	has(t, s, "half a sentence", "ready")
}

func TestRecordHealsWhatWasMissed(t *testing.T) {
	s := newTest(60, 24, Options{})
	s.load(loadedMsg{})
	r := own("run-1", goclaw.StateRunning)
	todo := say(s, "second")
	applyAll(s, ran(r), told(r, goclaw.NoticeText, "par"), ran(spawned("w-1", "gone", goclaw.StateRunning)),
		goclaw.Notice{Kind: goclaw.NoticeLag, Session: session})
	second := own("run-2", goclaw.StateQueued)
	second.Task = "second"
	s.sent(sentMsg{id: todo[0].(sendEffect).id, receipt: goclaw.Receipt{Run: &second}})
	r.State, r.Result = goclaw.StateCompleted, "partial no more"
	second.State, second.Result = goclaw.StateCompleted, "second answer"
	s.load(loaded(goclaw.Status{}, []goclaw.RunLog{{Run: r}, {Run: second}}, spawned("w-2", "found", goclaw.StateRunning)))
	has(t, s, "some live updates were missed", "partial no more", "› second", "second answer", "found")
	hasNot(t, s, "gone", "queued")
	s.load(loadedMsg{logs: []goclaw.RunLog{{Run: r}, {Run: second}}})
	if n := strings.Count(shot(t, s), "second answer"); n != 1 {
		t.Errorf("the answer is shown %d times", n)
	}
}

func TestLongHistoryIsTrimmed(t *testing.T) {
	s := newTest(60, 20, Options{})
	var logs []goclaw.RunLog
	for i := range 40 {
		r := own("old-"+string(rune('A'+i)), goclaw.StateCompleted)
		r.Result = "ok"
		logs = append(logs, goclaw.RunLog{Run: r})
	}
	s.load(loadedMsg{logs: logs})
	messages := 0
	for _, b := range s.blocks {
		if b.kind == blockUser || b.kind == blockReply {
			messages++
		}
	}
	if messages != maxReplayed {
		t.Errorf("%d messages are shown, want %d", messages, maxReplayed)
	}
	press(s, "ctrl+home")
	has(t, s, "earlier messages are not shown")
	press(s, "up")
	if s.editor.text != "When is high tide?" {
		t.Errorf("up recalls %q", s.editor.text)
	}
}

func TestConnectionIsOneLine(t *testing.T) {
	s := newTest(60, 12, Options{})
	s.connection(linkMsg{err: errors.New("refused")})
	s.connection(linkMsg{err: errors.New("still refused")})
	has(t, s, "connection lost: still refused; reconnecting…", "offline")
	s.connection(linkMsg{})
	has(t, s, "connected again", "ready")
	hasNot(t, s, "lost")
}

func TestInterrupt(t *testing.T) {
	quits := func(todo []effect) bool { return len(todo) == 1 && todo[0] == effect(quitEffect{}) }
	s := newTest(60, 12, Options{})
	s.paste("draft")
	if todo := press(s, "ctrl+d", "ctrl+c"); len(todo) != 0 || s.editor.text != "" {
		t.Errorf("first Ctrl+C: %v, editor %q", todo, s.editor.text)
	}
	s.now = s.now.Add(again + time.Second)
	if todo := press(s, "ctrl+c"); len(todo) != 0 {
		t.Errorf("a second Ctrl+C that came late: %v", todo)
	}
	if !quits(press(s, "ctrl+c")) {
		t.Error("the second Ctrl+C in time did not leave")
	}
	s = newTest(60, 12, Options{})
	applyAll(s, ran(own("run-1", goclaw.StateRunning)))
	if todo := press(s, "ctrl+c"); len(todo) != 1 || todo[0] != effect(commandEffect("/stop")) {
		t.Errorf("Ctrl+C in a turn: %v", todo)
	}
	if !quits(press(s, "ctrl+c")) || !quits(press(s, "ctrl+d")) || !quits(say(s, "/quit")) || !quits(say(s, "/exit")) {
		t.Error("some way to leave did not work")
	}
}

func TestCancellingAWorker(t *testing.T) {
	s := newTest(80, 20, Options{})
	applyAll(s, ran(spawned("w-1", "tides", goclaw.StateRunning)), ran(spawned("w-2", "moon", goclaw.StateRunning)))
	if press(s, "ctrl+x"); s.confirm != "" || s.selected != "w-1" {
		t.Errorf("Ctrl+X with two workers: confirm %q, selected %q", s.confirm, s.selected)
	}
	press(s, "down", "x")
	has(t, s, "Cancel worker moon? y/n")
	if todo := press(s, "n"); len(todo) != 0 || s.confirm != "" {
		t.Errorf("n: %v", todo)
	}
	todo := press(s, "x", "y")
	if len(todo) != 1 || todo[0] != effect(cancelEffect{run: "w-2"}) {
		t.Fatalf("y: %v", todo)
	}
	has(t, s, "cancelling…")
	s.cancelled(cancelledMsg{run: "w-2", err: errors.New("no such run")})
	has(t, s, "worker moon not cancelled: no such run")
	press(s, "esc")
	s.paste("x")
	if s.confirm != "" || s.editor.text != "x" {
		t.Error("x without a selection is a letter")
	}
}

func TestEndedWorkersLeave(t *testing.T) {
	s := newTest(80, 20, Options{})
	w := spawned("w-1", "tides", goclaw.StateCompleted)
	w.FinishedAt = goclaw.At(s.now)
	applyAll(s, ran(w), ran(spawned("w-1", "tides", goclaw.StateRunning)))
	has(t, s, "1 ended")
	s.now = s.now.Add(linger)
	hasNot(t, s, "workers:")
	if s.busy() {
		t.Error("nothing is going on, yet the screen is drawn all the time")
	}
}

func TestScrolling(t *testing.T) {
	s := newTest(40, 10, Options{})
	for i := range 30 {
		s.note("note " + string(rune('A'+i%26)))
	}
	press(s, "pgup")
	before := shot(t, s)
	s.note("newest")
	if after := shot(t, s); strings.SplitAfter(before, "\n")[0] != strings.SplitAfter(after, "\n")[0] {
		t.Errorf("what is read moved:\n%s\n%s", before, after)
	}
	has(t, s, "more lines · PgDn")
	press(s, "pgdown", "pgdown")
	has(t, s, "newest")
	if !s.follow {
		t.Error("at the end the screen follows")
	}
	s.scroll(-wheelLines)
	s.resize(30, 8)
	shot(t, s)
	press(s, "ctrl+home")
	has(t, s, "GoClaw")
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestNothingSteersTheTerminal(t *testing.T) {
	const evil = "a\x1b[2Jb\x1b]52;c;ZXZpbA==\x07c\x9b31md\u009b31me\x00f\rg\u202eh\x1bPq\x1b\\i\x1b]0;never ends\n&#27;[31m &#x9b;j <b>\x1b[</b> [l\x1b](\x1bx)\n\n```\x1b[31m\n\x1b[31mcode&#27;\n```\n|\x1b[31m|&#27;|\n|-|-|\n|x|\x7f|"
	s := newTest(50, 60, Options{Model: evil, Version: evil, Notices: []string{evil}})
	r := own("run-1", goclaw.StateRunning)
	r.Task, r.Profile.Model = evil, evil
	w := spawned("w-1", evil, goclaw.StateRunning)
	w.Profile.Model = evil
	applyAll(s, ran(r), ran(w), told(w, goclaw.NoticeText, evil), told(r, goclaw.NoticeThinking, evil), told(r, goclaw.NoticeText, evil),
		called(r, "1", evil, evil), called(r, "2", "exec", `{"command":"\u001b[31m\u009b"}`), returned(r, "1", evil, true), returned(r, "2", evil, false),
		told(r, goclaw.NoticeText, evil), told(r, goclaw.NoticeRetry, evil))
	say(s, evil)
	s.sent(sentMsg{id: 1, err: errors.New(evil)})
	s.learn(goclaw.Status{Paused: goclaw.Pause{At: 1, Why: evil}})
	applyAll(s, ran(takenOver(waiting(w, goclaw.WaitPerson), goclaw.Recovery{Times: 1, Uncertain: []string{evil, "exec"}})))
	s.connection(linkMsg{err: errors.New(evil)})
	check := func() {
		t.Helper()
		for _, l := range append(s.conversation(), s.view().lines...) {
			for _, c := range sgr.ReplaceAllString(l, "") {
				if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
					t.Errorf("%U reaches the terminal in %q", c, l)
				}
			}
		}
	}
	check()
	press(s, "ctrl+o", "tab", "x")
	check()
	press(s, "n", "s")
	check()
	r.State, r.Result = goclaw.StateCompleted, evil
	w.State, w.Error = goclaw.StateFailed, evil
	applyAll(s, ran(r), ran(w))
	check()
}

func TestEverySize(t *testing.T) {
	for _, m := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		for w := 1; w <= 60; w += 3 {
			for h := 1; h <= 20; h++ {
				s := fiveWorkers(w, h)
				if h%2 == 0 {
					s = familyTree(w, h)
					s.learn(goclaw.Status{Paused: goclaw.Pause{At: goclaw.At(start), Why: "翻訳 of everything"}})
				}
				s.measure(m)
				toolTurn(s)
				s.note(reply)
				s.add(&block{kind: blockReply, text: reply})
				s.paste("日本語 👩‍👩‍👧 " + strings.Repeat("word\n", h%8))
				for range 2 {
					f := s.view()
					if len(f.lines) > h {
						t.Fatalf("%dx%d: %d lines", w, h, len(f.lines))
					}
					for _, l := range f.lines {
						if got := m.StringWidth(l); got > w && w > 1 {
							t.Fatalf("%dx%d: a line of %d cells: %q", w, h, got, l)
						}
					}
					press(s, "ctrl+o", "tab", "pgup")
				}
			}
		}
	}
}

// An announcement's turn begins before it has taken what it announces.
func TestAnnouncementIsNamedOnceItIsKnown(t *testing.T) {
	s := newTest(60, 20, Options{})
	run := own("run-1", goclaw.StateRunning)
	run.Trigger = goclaw.TriggerAnnouncement
	applyAll(s, ran(run))
	has(t, s, "◂ workers reported")
	run.Task = "[Subagent: tides] Complete.\n\nhigh\n\n[Subagent: ice] Failed: gone\n"
	applyAll(s, ran(run), told(run, goclaw.NoticeText, "both told"))
	has(t, s, "◂ 2 workers reported: tides, ice", "both told")
}
