package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"goclaw"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	session = goclaw.MainKey("main")
	start   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// newTest returns a screen of w by h cells.
func newTest(w, h int, o Options) *state {
	o.Session = session
	s := newState(o)
	s.now = start
	s.resize(w, h)
	return s
}

// shot is the screen as text: no styles, no trailing spaces. It fails the test
// if the screen has the wrong size.
func shot(t *testing.T, s *state) string {
	t.Helper()
	f := s.view()
	if len(f.lines) != s.height {
		t.Errorf("%d lines on a screen of %d", len(f.lines), s.height)
	}
	if f.cx < 0 || f.cx >= s.width || f.cy < 0 || f.cy >= s.height {
		t.Errorf("cursor at %d,%d is off the screen", f.cx, f.cy)
	}
	var b strings.Builder
	for _, l := range f.lines {
		if w := s.method().StringWidth(l); w > s.width {
			t.Errorf("line of %d cells on a screen of %d: %q", w, s.width, l)
		}
		b.WriteString(strings.TrimRight(ansi.Strip(l), " ") + "\n")
	}
	return b.String()
}

func golden(t *testing.T, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.TrimPrefix(t.Name(), "Test")+".golden")
	path = strings.ReplaceAll(path, "View/", "view-")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update if that is meant)\n got:\n%s\nwant:\n%s", path, got, want)
	}
}

func press(s *state, keys ...string) []effect {
	var todo []effect
	for _, k := range keys {
		text := ""
		if len([]rune(k)) == 1 {
			text = k
		}
		todo = append(todo, s.key(k, text)...)
	}
	return todo
}

// say types text and sends it.
func say(s *state, text string) []effect {
	s.paste(text)
	return press(s, "enter")
}

func own(id string, st goclaw.RunState) goclaw.Run {
	return goclaw.Run{
		ID: id, Session: session, Trigger: goclaw.TriggerUser, Task: "When is high tide?", State: st,
		CreatedAt: goclaw.At(start), StartedAt: goclaw.At(start),
		Profile: goclaw.Profile{Model: "anthropic/claude-sonnet-4-5-20250929"},
	}
}

func spawned(id, label string, st goclaw.RunState) goclaw.Run {
	r := own(id, st)
	r.Session, r.Requester, r.Trigger, r.Label = goclaw.SubagentKey("main", id), session, goclaw.TriggerSpawn, label
	return r
}

func ran(r goclaw.Run) goclaw.Notice {
	return goclaw.Notice{Kind: goclaw.NoticeRun, Session: r.Session, RunID: r.ID, Run: &r}
}

func told(r goclaw.Run, kind goclaw.NoticeKind, text string) goclaw.Notice {
	return goclaw.Notice{Kind: kind, Session: r.Session, RunID: r.ID, Text: text}
}

func called(r goclaw.Run, id, name, args string) goclaw.Notice {
	c := goclaw.ToolCall{ID: id, Name: name, Arguments: args}
	return goclaw.Notice{Kind: goclaw.NoticeToolCall, Session: r.Session, RunID: r.ID, Call: &c}
}

func returned(r goclaw.Run, id, content string, isError bool) goclaw.Notice {
	res := goclaw.ToolResult{CallID: id, Content: content, IsError: isError}
	return goclaw.Notice{Kind: goclaw.NoticeToolResult, Session: r.Session, RunID: r.ID, Result: &res}
}

// loaded is the record: logs of this session, and workers under way.
func loaded(st goclaw.Status, logs []goclaw.RunLog, workers ...goclaw.Run) loadedMsg {
	return loadedMsg{logs: logs, refreshedMsg: refreshedMsg{status: st, workers: infos(workers...)}}
}

func infos(runs ...goclaw.Run) []goclaw.RunInfo {
	var out []goclaw.RunInfo
	for _, r := range runs {
		out = append(out, r.Info())
	}
	return out
}

func applyAll(s *state, ns ...goclaw.Notice) {
	for _, n := range ns {
		s.apply(n)
	}
}

// accepted answers the message under way with a queued run.
func accepted(s *state, todo []effect, r goclaw.Run) {
	send := todo[len(todo)-1].(sendEffect)
	r.State = goclaw.StateQueued
	s.sent(sentMsg{id: send.id, receipt: goclaw.Receipt{Run: &r}})
}

const reply = "# Tides\n\nHigh water is at **12:03**, *roughly*. See `tides.md` and [the table](https://example.org/t).\n\n" +
	"1. first\n2. second, with 日本語 and an emoji 🌊 in a line that has to be wrapped somewhere\n   - nested\n\n" +
	"> quoted\n\n```go\nfunc main() {}\n```\n\n| port | time |\n|---|---|\n| Brest | 12:03 |\n| **St. Malo** | 14:10 |\n"

func toolTurn(s *state) goclaw.Run {
	r := own("run-1", goclaw.StateRunning)
	accepted(s, say(s, r.Task), r)
	applyAll(s, ran(r), told(r, goclaw.NoticeThinking, "The user wants\nthe tide table."),
		told(r, goclaw.NoticeText, "Let me look."),
		called(r, "1", "grep", `{"pattern":"tide","path":"notes"}`),
		called(r, "2", "read", `{"path":"notes/tides.md"}`),
		called(r, "3", "exec", `{"command":"make tides"}`),
		called(r, "4", "sessions_spawn", `{"task":"look","label":"tides","timeoutSeconds":5}`),
		returned(r, "1", strings.Repeat("a line\n", 12), false),
		returned(r, "2", "High water at 12:03", false),
		returned(r, "3", "make: *** No rule to make target 'tides'.\nStop.", true))
	return r
}

func TestView(t *testing.T) {
	at := func(s *state, d time.Duration) *state { s.now = start.Add(d); return s }
	cases := map[string]func() *state{
		"empty": func() *state {
			return newTest(72, 12, Options{Demo: true, Version: "0.1.0", Model: "demo/scripted", Notices: []string{
				"No key was found: the offline demonstration model answers.", "1 run was resumed."}})
		},
		"streaming": func() *state {
			s := newTest(72, 14, Options{})
			r := own("run-1", goclaw.StateRunning)
			accepted(s, say(s, r.Task), r)
			applyAll(s, ran(r), told(r, goclaw.NoticeThinking, "Hmm.\nTides."), told(r, goclaw.NoticeText, "High **water** is"))
			say(s, "And low tide?")
			return at(s, 65*time.Second)
		},
		"finished": func() *state {
			s := newTest(60, 30, Options{})
			r := own("run-1", goclaw.StateRunning)
			accepted(s, say(s, r.Task), r)
			applyAll(s, ran(r), told(r, goclaw.NoticeText, "High **water"))
			r.State, r.Result = goclaw.StateCompleted, reply
			applyAll(s, ran(r))
			return s
		},
		"tools": func() *state {
			s := newTest(72, 16, Options{})
			toolTurn(s)
			return at(s, 3*time.Second)
		},
		"tools-unfolded": func() *state {
			s := newTest(72, 46, Options{})
			toolTurn(s)
			press(s, "ctrl+o")
			return s
		},
		"workers": func() *state { return at(fiveWorkers(100, 20), 75*time.Second) },
		"confirm": func() *state {
			s := at(fiveWorkers(100, 16), 75*time.Second)
			press(s, "tab", "tab", "x")
			return s
		},
		"narrow": func() *state {
			s := at(fiveWorkers(30, 8), 75*time.Second)
			applyAll(s, told(own("run-1", ""), goclaw.NoticeText, "日本語のテキストも折り返す and English too"))
			return s
		},
		"error": func() *state {
			s := newTest(72, 14, Options{})
			r := own("run-1", goclaw.StateRunning)
			accepted(s, say(s, r.Task), r)
			applyAll(s, ran(r), told(r, goclaw.NoticeText, "High water"))
			r.State, r.Error = goclaw.StateFailed, "model: \x1b]0;owned\a401 invalid key"
			applyAll(s, ran(r))
			todo := say(s, "again?")
			s.sent(sentMsg{id: todo[0].(sendEffect).id, err: os.ErrDeadlineExceeded})
			return s
		},
		"announcement": func() *state {
			s := newTest(72, 14, Options{})
			r := own("run-2", goclaw.StateRunning)
			r.Trigger = goclaw.TriggerAnnouncement
			r.Task = "[Subagent: tides] Complete.\nHigh water at 12:03\n\n[Subagent: moon [2]] Timed out after 5s"
			applyAll(s, ran(r))
			r.State, r.Result = goclaw.StateCompleted, "High water is at 12:03."
			applyAll(s, ran(r))
			q := own("run-3", goclaw.StateRunning)
			q.Trigger, q.Task = goclaw.TriggerAnnouncement, "[Subagent: late] Failed: no"
			applyAll(s, ran(q), told(q, goclaw.NoticeText, "NO_RE"))
			q.State, q.Result = goclaw.StateCompleted, "NO_REPLY"
			applyAll(s, ran(q))
			return s
		},
		"history": func() *state {
			s := newTest(72, 24, Options{Version: "0.1.0", Notices: []string{"2 runs were resumed."}})
			s.load(loaded(goclaw.Status{}, pastRuns(), spawned("w-1", "tides", goclaw.StateRunning)))
			return at(s, 5*time.Second)
		},
		"tree": func() *state { return at(familyTree(100, 22), 75*time.Second) },
		"tree-narrow": func() *state {
			s := at(familyTree(44, 20), 75*time.Second)
			press(s, "tab", "tab", "tab")
			return s
		},
		"asking": func() *state {
			s := at(familyTree(100, 20), 75*time.Second)
			press(s, "shift+tab", "shift+tab")
			return s
		},
		"stop": func() *state {
			s := at(familyTree(72, 16), 75*time.Second)
			press(s, "esc")
			return s
		},
		"opening": func() *state {
			s := newTest(84, 16, Options{Version: "0.1.0", Model: "anthropic/claude-sonnet-4-5-20250929"})
			s.load(loaded(goclaw.Status{
				Paused: goclaw.Pause{At: goclaw.At(start.Add(-58 * time.Minute)), Why: "the bill\nof March"}, Parked: 3,
				Recovered: infos(
					takenOver(spawned("w-1", "researcher", goclaw.StateRunning), goclaw.Recovery{Times: 1, Step: 5, Uncertain: []string{"exec", "write", "exec"}}),
					takenOver(spawned("w-2", "writer", goclaw.StateRunning), goclaw.Recovery{Times: 1, Step: 2, Planned: true}),
					takenOver(own("now-1", goclaw.StateRunning), goclaw.Recovery{Times: 2, Step: 1}),
					takenOver(elsewhere("o-1"), goclaw.Recovery{Times: 1}), takenOver(elsewhere("o-2"), goclaw.Recovery{Times: 1})),
			}, nil, spawned("w-1", "researcher", goclaw.StateRunning), spawned("w-2", "writer", goclaw.StateRunning)))
			return s
		},
		"commands": func() *state {
			s := newTest(72, 14, Options{})
			todo := say(s, "/status")
			s.sent(sentMsg{id: todo[0].(sendEffect).id, receipt: goclaw.Receipt{Reply: "model: demo/scripted\nsession: agent:main:main"}})
			s.connection(linkMsg{err: errStreamEnded})
			press(s, "ctrl+c")
			return s
		},
		"editing": func() *state {
			s := newTest(40, 12, Options{})
			s.paste("one\ntwo 日本語\nthree\r\nfour \x1b[31mred\nfive\nsix\nseven " + strings.Repeat("long ", 8))
			return s
		},
	}
	for name, build := range cases {
		t.Run(name, func(t *testing.T) { golden(t, shot(t, build())) })
	}
}

func fiveWorkers(w, h int) *state {
	s := newTest(w, h, Options{Demo: true})
	r := own("run-1", goclaw.StateRunning)
	applyAll(s, ran(r))
	for i, label := range []string{"tides", "moon phases", "翻訳", "a-very-long-label-that-is-cut-somewhere", "last"} {
		wk := spawned(string(rune('a'+i))+"-0001", label, goclaw.StateRunning)
		wk.Usage = goclaw.Usage{Input: 12_000, Output: 345}
		switch i {
		case 2:
			wk.State, wk.StartedAt = goclaw.StateQueued, 0
		case 3:
			wk.State, wk.Error, wk.FinishedAt = goclaw.StateTimeout, "after 1m0s", goclaw.At(start.Add(time.Minute))
		case 4:
			wk.State, wk.Result, wk.FinishedAt = goclaw.StateCompleted, "High water\nat 12:03", goclaw.At(start.Add(61*time.Second))
		}
		applyAll(s, ran(wk), called(wk, "1", "grep", `{"pattern":"tide"}`))
	}
	return s
}

// familyTree is a screen with workers that have workers.
func familyTree(w, h int) *state {
	s := newTest(w, h, Options{})
	lead := waiting(spawned("lead-0001", "orchestrator", ""), goclaw.WaitWorkers)
	below := func(id, label string, st goclaw.RunState, parent goclaw.Run) goclaw.Run {
		r := spawned(id, label, st)
		r.Requester, r.Parent, r.Depth = parent.Session, parent.ID, parent.Depth+1
		r.Usage = goclaw.Usage{Input: 1200, Output: 34}
		return r
	}
	tides := below("tides-0001", "tides", goclaw.StateRunning, lead)
	moon := below("moon-00001", "moon", goclaw.StateQueued, lead)
	deep := below("deep-00001", "deeper", goclaw.StateRunning, tides)
	done := below("done-00001", "first", goclaw.StateCompleted, lead)
	done.Result, done.FinishedAt = "found", goclaw.At(start.Add(time.Minute))
	asking := waiting(spawned("asking-0001", "migration", ""), goclaw.WaitPerson)
	queued := spawned("queued-0001", "late", goclaw.StateQueued)
	moon.StartedAt, queued.StartedAt = 0, 0
	applyAll(s, ran(own("run-1", goclaw.StateRunning)), ran(lead), ran(done), ran(tides), ran(asking), ran(moon), ran(deep), ran(queued),
		called(tides, "1", "grep", `{"pattern":"tide"}`))
	first, second := moon.Info(), queued.Info()
	first.Position, second.Position = 1, 12
	s.refreshedBy(refreshedMsg{workers: []goclaw.RunInfo{first, second}})
	return s
}

func waiting(r goclaw.Run, why goclaw.WaitReason) goclaw.Run {
	r.State, r.WaitsFor = goclaw.StateWaiting, why
	return r
}

func takenOver(r goclaw.Run, rec goclaw.Recovery) goclaw.Run {
	r.Recovery = &rec
	return r
}

// elsewhere is a run of another chat.
func elsewhere(id string) goclaw.Run {
	r := own(id, goclaw.StateRunning)
	r.Session = goclaw.APIKey("main", "someone")
	return r
}

func pastRuns() []goclaw.RunLog {
	first := own("old-1", goclaw.StateCompleted)
	first.Result = "At **12:03**."
	call := goclaw.ToolCall{ID: "1", Name: "grep", Arguments: `{"pattern":"tide"}`}
	asked := goclaw.Message{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
		{Kind: goclaw.PartText, Text: "Looking."}, {Kind: goclaw.PartToolCall, Call: &call}}}
	events := []goclaw.Event{
		{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: goclaw.Text(goclaw.RoleUser, first.Task)}},
		{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: asked}},
		{Kind: goclaw.EventResult, Result: &goclaw.ToolResult{CallID: "1", Content: "a\nb"}},
		{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, first.Result)}},
		{Kind: goclaw.EventEnd, End: &goclaw.EndEvent{State: goclaw.StateCompleted, Result: first.Result}},
	}
	quiet := own("old-2", goclaw.StateCompleted)
	quiet.Trigger, quiet.Task, quiet.Result = goclaw.TriggerAnnouncement, "", goclaw.NoReply
	input := goclaw.Text(goclaw.RoleUser, "[Subagent: moon] Complete.\nfull")
	failed := own("old-3", goclaw.StateCancelled)
	failed.Task, failed.Error = "Never mind", "stopped by its user"
	return []goclaw.RunLog{
		{Run: first, Events: events},
		{Run: quiet, Events: []goclaw.Event{
			{Kind: goclaw.EventPrompt, Prompt: &goclaw.PromptEvent{Input: input}},
			{Kind: goclaw.EventModel, Model: &goclaw.ModelEvent{Message: goclaw.Text(goclaw.RoleAssistant, " NO_REPLY\n")}}}},
		{Run: failed},
		{Run: own("now-1", goclaw.StateRunning)},
		{Run: own("now-2", goclaw.StateQueued)},
	}
}
