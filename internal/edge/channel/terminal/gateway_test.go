package terminal

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw"
)

// notes are the screen's own remarks, in order.
func notes(s *state) []string {
	var out []string
	for _, b := range s.blocks {
		if b.kind == blockNote {
			out = append(out, b.text)
		}
	}
	return out
}

func TestTakeovers(t *testing.T) {
	crash := goclaw.Recovery{Times: 1, Step: 5, Uncertain: []string{"exec"}}
	worker := func(id string, rec goclaw.Recovery) goclaw.Run {
		return takenOver(spawned(id, "researcher", goclaw.StateRunning), rec)
	}
	const once = "resumed after a restart: researcher at step 5; the outcome of exec is unknown, and it was not run again"
	for _, c := range []struct {
		name string
		do   func(*state)
		want []string
	}{
		{"at the opening", func(s *state) {
			w := worker("w-1", crash)
			s.load(loaded(goclaw.Status{Recovered: infos(w)}, nil, w))
		}, []string{once}},
		{"before the gateway started", func(s *state) {
			s.load(loaded(goclaw.Status{}, nil, worker("w-1", crash)))
			applyAll(s, ran(worker("w-1", crash)))
		}, nil},
		{"once, however often it is heard of", func(s *state) {
			w := worker("w-1", crash)
			s.load(loaded(goclaw.Status{Recovered: infos(w)}, nil, w))
			usage := ran(w)
			usage.Kind = goclaw.NoticeUsage
			applyAll(s, ran(w), usage, ran(w))
			s.refreshedBy(refreshedMsg{status: goclaw.Status{Recovered: infos(w)}})
			s.load(loaded(goclaw.Status{Recovered: infos(w)}, nil, w))
		}, []string{once}},
		{"each anew", func(s *state) {
			applyAll(s, ran(spawned("w-1", "researcher", goclaw.StateRunning)), ran(worker("w-1", crash)),
				ran(worker("w-1", goclaw.Recovery{Times: 2, Planned: true})))
		}, []string{once, "handed over: researcher at its start"}},
		{"while the connection was lost", func(s *state) {
			s.load(loaded(goclaw.Status{}, nil, spawned("w-1", "researcher", goclaw.StateRunning)))
			s.load(loaded(goclaw.Status{}, nil, worker("w-1", crash)))
		}, []string{once}},
		{"a turn of this chat", func(s *state) {
			s.load(loadedMsg{})
			applyAll(s, ran(takenOver(own("run-1", goclaw.StateRunning), goclaw.Recovery{Times: 1, Step: 2})))
		}, []string{"resumed after a restart: the turn of this chat at step 2"}},
		{"one that asks", func(s *state) {
			w := waiting(worker("w-1", goclaw.Recovery{Times: 1, Step: 2}), goclaw.WaitPerson)
			applyAll(s, ran(w), ran(w))
		}, []string{"researcher waits for you: /subagents resume w-1, or /subagents kill w-1", "stopped by a restart: researcher at step 2"}},
		{"one that ended", func(s *state) {
			w := worker("w-1", crash)
			w.State = goclaw.StateFailed
			applyAll(s, ran(w))
		}, nil},
		{"many", func(s *state) {
			var runs []goclaw.Run
			for i := range maxTakeovers + 3 {
				runs = append(runs, worker(string(rune('a'+i))+"-1", crash))
			}
			s.load(loaded(goclaw.Status{Recovered: infos(runs...)}, nil, runs...))
		}, append(slices.Repeat([]string{once}, maxTakeovers), "… and 3 runs more: /subagents")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTest(80, 24, Options{})
			c.do(s)
			if got := notes(s); !slices.Equal(got, c.want) {
				t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestParkedIsToldWhenThereIsMore(t *testing.T) {
	s := newTest(80, 20, Options{})
	s.load(loaded(goclaw.Status{Parked: 1}, nil))
	for _, n := range []int{1, 0, 2, 1} {
		s.learn(goclaw.Status{Parked: n})
	}
	want := []string{"1 result could not be delivered: /subagents parked", "2 results could not be delivered: /subagents parked"}
	if got := notes(s); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
}

func TestPause(t *testing.T) {
	for _, c := range []struct {
		name string
		p    goclaw.Pause
		want string
	}{
		{"not paused", goclaw.Pause{}, " ready · main"},
		{"today", goclaw.Pause{At: goclaw.At(start.Add(-time.Hour)), Why: "holidays"}, " PAUSED since 11:00: holidays; /resume goes on · ready"},
		{"no reason", goclaw.Pause{At: goclaw.At(start.Add(-time.Hour))}, " PAUSED since 11:00; /resume goes on · ready"},
		{"last year", goclaw.Pause{At: goclaw.At(start.AddDate(-1, 0, 0))}, " PAUSED since 1 Mar 12:00; /resume goes on · ready"},
		{"long and hostile", goclaw.Pause{At: goclaw.At(start), Why: "\x1b[31m" + strings.Repeat("long ", 20)},
			" PAUSED since 12:00: long long long long long …; /resume goes on · ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTest(80, 10, Options{})
			s.load(loaded(goclaw.Status{Paused: c.p}, nil))
			has(t, s, "\n"+c.want)
		})
	}
}

// refreshes reports whether the screen asks now for what may have changed.
func refreshes(s *state) bool {
	todo := s.refresh()
	return len(todo) == 1 && todo[0] == effect(refreshEffect{})
}

func TestRefresh(t *testing.T) {
	paused := refreshedMsg{status: goclaw.Status{Paused: goclaw.Pause{At: goclaw.At(start)}}}
	opened := func() *state {
		s := newTest(80, 16, Options{})
		s.load(loadedMsg{})
		return s
	}
	s := opened()
	if refreshes(s) || s.busy() {
		t.Error("nothing is going on, yet the gateway is asked")
	}
	applyAll(s, told(elsewhere("o-1"), goclaw.NoticeRetry, "paused"))
	if !s.busy() || !refreshes(s) || refreshes(s) {
		t.Error("one who waits for a model is a reason to ask once")
	}
	s.refreshedBy(paused)
	if refreshes(s) {
		t.Error("asked again at once")
	}
	s.now = s.now.Add(refreshEvery)
	if !s.busy() || !refreshes(s) {
		t.Error("while models are paused, nobody asks for how long")
	}
	s.refreshedBy(refreshedMsg{err: errors.New("no answer")})
	has(t, s, "PAUSED")
	todo := say(s, "/resume")
	s.sent(sentMsg{id: todo[0].(sendEffect).id, receipt: goclaw.Receipt{Reply: "Models are called again."}})
	if !refreshes(s) {
		t.Error("a command is a reason to ask at once")
	}
	s.refreshedBy(refreshedMsg{})
	hasNot(t, s, "PAUSED")

	s = opened()
	s.connection(linkMsg{err: errStreamEnded})
	s.refreshedBy(paused)
	if s.now = s.now.Add(time.Hour); refreshes(s) {
		t.Error("asked a gateway that is not there")
	}
}

func TestPlacesInTheQueue(t *testing.T) {
	s := newTest(80, 16, Options{})
	w := spawned("w-1", "tides", goclaw.StateQueued)
	w.StartedAt = 0
	s.load(loaded(goclaw.Status{}, nil, w))
	at := w.Info()
	at.Position = 7
	if s.now = s.now.Add(refreshEvery); !refreshes(s) {
		t.Fatal("nobody asks for the place of a queued worker")
	}
	s.refreshedBy(refreshedMsg{workers: []goclaw.RunInfo{at}})
	applyAll(s, ran(w))
	has(t, s, "1 queued", "queued, position 7")
	w.State = goclaw.StateRunning
	applyAll(s, ran(w))
	s.refreshedBy(refreshedMsg{workers: []goclaw.RunInfo{at}}) // asked before it ran
	has(t, s, "1 running")
	hasNot(t, s, "queued")
}

func TestFamilyTree(t *testing.T) {
	s := familyTree(100, 30)
	order := func() string {
		var names []string
		for _, p := range s.places() {
			names = append(names, strings.Repeat(">", p.level)+p.run.Label)
		}
		return strings.Join(names, " ")
	}
	if got, want := order(), "orchestrator >tides >>deeper >moon >first migration late"; got != want {
		t.Errorf("the panel shows %s, want %s", got, want)
	}
	lead := spawned("lead-0001", "orchestrator", goclaw.StateCompleted)
	lead.FinishedAt = goclaw.At(s.now)
	applyAll(s, ran(lead))
	if got, want := order(), "migration late orchestrator >tides >>deeper >moon >first"; got != want {
		t.Errorf("after the end of one: %s, want %s", got, want)
	}
	s.now = s.now.Add(linger)
	if got, want := order(), "tides >deeper migration moon late first"; got != want {
		t.Errorf("once that has left: %s, want %s", got, want)
	}
}

func TestSelectedWorkerKeys(t *testing.T) {
	for _, c := range []struct {
		label, key string
		effect     effect
		editor     string
		selected   bool
	}{
		{"tides", "s", nil, "/subagents steer tides-00 ", false},
		{"migration", "s", nil, "/subagents steer asking-0 ", false},
		{"migration", "r", commandEffect("/subagents resume asking-0001"), "", true},
		{"tides", "r", nil, "r", false},
		{"first", "s", nil, "s", false}, // has ended
		{"tides", "q", nil, "q", false},
		{"tides", "esc", nil, "", false},
	} {
		t.Run(c.label+" "+c.key, func(t *testing.T) {
			s := familyTree(100, 30)
			for _, w := range s.workers {
				if w.run.Label == c.label {
					s.selected = w.run.RunID
				}
			}
			todo := press(s, c.key)
			if c.effect == nil && len(todo) != 0 || c.effect != nil && (len(todo) != 1 || todo[0] != c.effect) {
				t.Errorf("does %v", todo)
			}
			if s.editor.text != c.editor || (s.selected != "") != c.selected {
				t.Errorf("editor %q, selected %q", s.editor.text, s.selected)
			}
		})
	}
}

func TestStopAsksAboutWorkers(t *testing.T) {
	const question = "2 workers are still under way. Stop them too? y/n"
	stop, all := effect(commandEffect("/stop")), effect(commandEffect("/stop all"))
	opened := func() *state {
		s := newTest(80, 20, Options{})
		applyAll(s, ran(own("run-1", goclaw.StateRunning)), ran(spawned("w-1", "tides", goclaw.StateRunning)),
			ran(spawned("w-2", "moon", goclaw.StateQueued)))
		return s
	}
	for _, c := range []struct {
		keys   string
		want   []effect
		asked  bool
		editor string
	}{
		{"esc", []effect{stop}, true, ""},
		{"ctrl+c", []effect{stop}, true, ""},
		{"esc y", []effect{stop, all}, false, ""},
		{"esc Y", []effect{stop, all}, false, ""},
		{"esc n", []effect{stop}, false, ""},
		{"esc esc", []effect{stop}, false, ""},
		{"esc w", []effect{stop}, false, "w"}, // who writes on lets them be
		{"ctrl+c ctrl+c", []effect{stop, quitEffect{}}, false, ""},
		{"tab esc esc", []effect{stop}, true, ""}, // the first lets go
	} {
		t.Run(c.keys, func(t *testing.T) {
			s := opened()
			if got := press(s, strings.Fields(c.keys)...); !slices.Equal(got, c.want) {
				t.Errorf("does %v, want %v", got, c.want)
			}
			if strings.Contains(shot(t, s), question) != c.asked || s.editor.text != c.editor {
				t.Errorf("editor %q\n%s", s.editor.text, shot(t, s))
			}
		})
	}
	s := opened()
	press(s, "esc")
	applyAll(s, ran(spawned("w-1", "tides", goclaw.StateCancelled)))
	has(t, s, "1 worker is still under way. Stop it too? y/n")
	applyAll(s, ran(spawned("w-2", "moon", goclaw.StateCancelled)))
	hasNot(t, s, "y/n")
	if todo := press(s, "y"); len(todo) != 0 || s.editor.text != "y" {
		t.Errorf("a question that went away was answered: %v", todo)
	}
	s = newTest(80, 20, Options{})
	applyAll(s, ran(own("run-1", goclaw.StateRunning)))
	press(s, "esc")
	hasNot(t, s, "y/n")
	s.commanded(commandedMsg{text: "/stop", err: errors.New("gateway down")})
	has(t, s, "/stop was not sent: gateway down")
}

// A pause that somebody else ends is noticed by the chat within seconds.
func TestPauseEndsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGateway{status: goclaw.Status{Paused: goclaw.Pause{At: goclaw.At(time.Now()), Why: "lunch"}}}
		in, keys := io.Pipe()
		c := &chat{t: t, more: make(chan struct{}, 1)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- run(ctx, g, Options{Session: session, Input: in, Output: c}, tea.WithWindowSize(80, 24),
				tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		c.saw("lunch")
		g.mu.Lock()
		asked := g.statuses
		g.status = goclaw.Status{}
		g.mu.Unlock()
		if asked < 25 || asked > 35 {
			t.Errorf("the gateway was asked %d times in a minute", asked)
		}
		time.Sleep(2 * refreshEvery)
		synctest.Wait()
		c.saw("ready")
		time.Sleep(time.Minute)
		g.mu.Lock()
		if g.statuses > asked+2 {
			t.Errorf("it was asked %d times more", g.statuses-asked)
		}
		g.mu.Unlock()
		stop()
		if err := errors.Join(<-done, keys.Close()); err != nil {
			t.Error(err)
		}
	})
}
