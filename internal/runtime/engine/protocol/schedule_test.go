package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/edge/store/memory"
)

// A schedule fixes the order of all steps of two real engines. By default a
// goroutine goes on as long as it can; a deviation takes another step at one
// decision. Faults are steps, too.

// deviation is what is done at one decision instead of the default: at the
// decision with that number or, if words are given, at the nth (from 1 on) at
// which the default begins with them.
type deviation struct {
	at    int
	words string
	nth   int
	step  string
}

// due counts down to the decision that is meant.
func (d *deviation) due(decision int, step string) bool {
	if d.words == "" {
		return d.at == decision
	}
	if strings.HasPrefix(step, d.words) {
		d.nth--
	}
	return d.nth == 0
}

// choice is one thing that can be done at a decision.
type choice struct {
	step string
	do   func()
}

// stage is one play under one schedule.
type stage struct {
	t       *testing.T
	p       play
	b       *board
	lives   [2]*live
	last    string // the thread that went on last
	steered bool
	ended   bool // the cancellation was asked
	pauses  int
	kills   int
	lost    bool
}

// played is what a schedule led to: what else could have been done at each
// decision.
type played struct {
	others [][]string
	broken string
	trace  []string

	// lost: a deviation was not possible when its time came. What is due at
	// one moment in both engines comes in an order that nobody fixes.
	lost bool
}

// perform plays p with these deviations from the default schedule.
func perform(t *testing.T, p play, deviations []deviation) (out played) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open()
		b := &board{store: store, effects: map[string]int{}}
		run := goclaw.Run{
			ID: "u", Session: goclaw.MainKey("main"), Trigger: goclaw.TriggerUser, Task: "go", State: goclaw.StateQueued, CreatedAt: now(),
			Profile: goclaw.Profile{
				Agent: "main", Workspace: "/ws", Model: "fake/m", Tools: []string{toolAppend, toolSpawn, "subagents"},
				MaxSpawnDepth: 2, MaxChildren: 5, PromptMode: goclaw.PromptFull,
			},
		}
		if _, _, err := store.Accept(t.Context(), goclaw.Acceptance{Run: run}); err != nil {
			t.Fatal(err)
		}
		var err error
		if b.snap, err = newSnapshot(store, nil, ""); err != nil {
			t.Fatal(err)
		}
		s := &stage{t: t, p: p, b: b, pauses: p.pauses, kills: p.kills}
		for n := range s.lives {
			s.lives[n] = newLive(t, b, n, p)
		}
		out.others = s.play(deviations)
		if b.broken == "" && !s.lost {
			b.fail(s.checkRest())
		}
		s.strike()
		out.broken, out.trace, out.lost = b.broken, b.trace, s.lost
	})
	return out
}

// play decides until everything has come to rest or something is broken.
func (s *stage) play(deviations []deviation) (others [][]string) {
	const patience = 30 * time.Minute
	began := time.Now()
	deviations = slices.Clone(deviations)
	for s.b.broken == "" {
		synctest.Wait()
		choices := s.choices()
		if len(choices) == 0 {
			switch {
			case s.wake(), s.atRest():
				if s.atRest() {
					return others
				}
			case time.Since(began) > patience:
				s.b.fail("the runs do not come to rest")
			default:
				time.Sleep(500 * time.Millisecond)
			}
			continue
		}
		picked := choices[0]
		if len(deviations) > 0 && deviations[0].due(len(others), picked.step) {
			i := slices.IndexFunc(choices, func(c choice) bool { return strings.HasPrefix(c.step, deviations[0].step) })
			if i < 0 {
				s.lost = true
				return others
			}
			picked, deviations = choices[i], deviations[1:]
		}
		var rest []string
		for _, c := range choices {
			if c.step != picked.step {
				rest = append(rest, c.step)
			}
		}
		s.b.note("%3d. [%s] %s", len(others), time.Since(began), picked.step)
		others = append(others, rest)
		picked.do()
	}
	return others
}

// choices are the steps that can be taken, the default first, then faults.
func (s *stage) choices() []choice {
	s.b.mu.Lock()
	waiting := slices.Clone(s.b.waiting)
	s.b.mu.Unlock()
	slices.SortStableFunc(waiting, func(a, b *request) int {
		if c := cmp.Compare(s.rank(a), s.rank(b)); c != 0 {
			return c
		}
		return cmp.Compare(stepOf(a), stepOf(b))
	})
	var all []choice
	for _, r := range waiting {
		if !s.lives[r.process].paused {
			all = append(all, choice{stepOf(r), func() { s.grant(r, nil) }})
		}
	}
	if len(all) == 0 {
		return nil
	}
	for n, l := range s.lives {
		if l.paused && time.Since(l.since) >= lease {
			all = append(all, choice{fmt.Sprintf("%c wakes", 'A'+n), func() { l.paused, s.last = false, s.asleep(n, waiting) }})
		}
	}
	return append(all, s.faults(waiting)...)
}

// asleep is the thread in which a process fell asleep: it goes on first.
func (s *stage) asleep(n int, waiting []*request) string {
	for _, r := range waiting {
		if r.process == n && r.thread != "dispatcher" && r.thread != "heart" {
			return threadOf(r)
		}
	}
	return s.last
}

// rank puts the thread that went on last first.
func (s *stage) rank(r *request) int {
	if threadOf(r) == s.last {
		return 0
	}
	return 1
}

func threadOf(r *request) string { return fmt.Sprintf("%c %s", 'A'+r.process, r.thread) }
func stepOf(r *request) string   { return fmt.Sprintf("%c: %s", 'A'+r.process, r.label) }

// grant lets a request go on.
func (s *stage) grant(r *request, err error) {
	s.last = threadOf(r)
	s.b.take(r)
	r.granted <- err
}

// faults are what can befall the processes and what a person can do.
func (s *stage) faults(waiting []*request) []choice {
	var all []choice
	for n, l := range s.lives {
		busy := slices.ContainsFunc(waiting, func(r *request) bool { return r.process == n }) && s.owns(n)
		alone := s.lives[1-n].dead || s.lives[1-n].paused
		if !busy || alone || l.dead || l.paused {
			continue
		}
		if s.pauses > 0 {
			all = append(all, choice{fmt.Sprintf("%c falls asleep", 'A'+n), func() {
				s.pauses--
				l.paused, l.since = true, time.Now()
			}})
		}
		if s.kills > 0 {
			all = append(all, choice{fmt.Sprintf("%c is killed", 'A'+n), func() { s.kills--; s.kill(n) }})
		}
	}
	if _, there := s.b.find(s.p.steer); there && !s.steered {
		all = append(all, choice{"a person writes to " + s.p.steer, func() { s.steered = true; s.b.steer(s.p.steer) }})
	}
	if _, there := s.b.find(s.p.cancel); there && !s.ended {
		all = append(all, choice{"a person cancels " + s.p.cancel, func() { s.ended = true; s.b.cancel(s.p.cancel) }})
	}
	return all
}

// owns reports whether a process holds a run.
func (s *stage) owns(n int) bool {
	return slices.ContainsFunc(s.b.snap.runs, func(r goclaw.Run) bool { return r.Owner == string(rune('A'+n)) })
}

// wake ends a pause that nobody waits for any more.
func (s *stage) wake() bool {
	for _, l := range s.lives {
		if l.paused && time.Since(l.since) > 2*lease {
			l.paused = false
			return true
		}
	}
	return false
}

// kill lets a process get errors only from now on, and end.
func (s *stage) kill(n int) {
	l := s.lives[n]
	l.dead = true
	l.stop()
	for {
		s.b.mu.Lock()
		var r *request
		for _, w := range s.b.waiting {
			if w.process == n {
				r = w
			}
		}
		s.b.mu.Unlock()
		if r == nil {
			select {
			case <-l.done:
				return
			default:
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			continue
		}
		s.b.take(r)
		r.granted <- errDead
		synctest.Wait()
	}
}

// strike ends all processes.
func (s *stage) strike() {
	for n, l := range s.lives {
		if !l.dead {
			s.kill(n)
		}
	}
}

// atRest reports whether all has come to its end.
func (s *stage) atRest() bool {
	for _, l := range s.lives {
		if l.paused {
			return false
		}
	}
	asks := map[goclaw.SessionKey]bool{}
	for _, r := range s.b.snap.runs {
		if asks[r.Session] = r.WaitsFor == goclaw.WaitPerson; !r.State.Ended() && !asks[r.Session] {
			return false
		}
	}
	return !slices.ContainsFunc(s.b.snap.items, func(it goclaw.InboxItem) bool { return !asks[it.Session] })
}

// checkRest is the scenario's, on what the engines have left.
func (s *stage) checkRest() string {
	var sc scenario
	x := &explorer{snaps: []*snapshot{s.b.snap}}
	var st state
	if s.kills < s.p.kills {
		st.used[crash] = 1
	}
	return sc.checkRest(x, st)
}
