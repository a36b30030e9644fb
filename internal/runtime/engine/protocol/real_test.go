package protocol

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"goclaw"
)

// search plays p under every schedule with at most so many deviations, those
// with fewer first, until one breaks something. It returns how many it tried, and how
// many of them could not be followed to their end.
func search(t *testing.T, p play, most int) (count, lost int, broken played) {
	t.Helper()
	level := [][]deviation{nil}
	for d := 0; ; d++ {
		var deeper [][]deviation
		for _, schedule := range level {
			out := perform(t, p, schedule)
			count++
			if out.broken != "" {
				return count, lost, out
			}
			if out.lost {
				lost++
			}
			if d == most || out.lost {
				continue
			}
			first := 0
			if d > 0 {
				first = schedule[d-1].at + 1
			}
			for at := first; at < len(out.others); at++ {
				for _, step := range out.others[at] {
					deeper = append(deeper, append(schedule[:d:d], deviation{at: at, step: step}))
				}
			}
		}
		if level = deeper; len(level) == 0 {
			return count, lost, played{}
		}
	}
}

func acts(c ...goclaw.ToolCall) reply { return reply{calls: c} }

func plays() map[string]play {
	effect := acts(goclaw.ToolCall{ID: "x", Name: toolAppend, Arguments: "{}"})
	worker := map[string][]reply{"": {acts(spawns("c", "w", goclaw.AnnounceTogether))}, "w": {effect}}
	start := acts(spawns("c", "lead", goclaw.AnnounceTogether))
	lead := map[string][]reply{"": {start}, "lead": {acts(spawns("d", "a", goclaw.AnnounceTogether)), {text: "I wait"}, effect}}
	both := map[string][]reply{"": {start}, "lead": {acts(spawns("d", "a", goclaw.AnnounceTogether), spawns("e", "b", goclaw.AnnounceEach))}}
	return map[string]play{
		"worker":       {lines: worker, pauses: 1, kills: 1},
		"orchestrator": {lines: lead, pauses: 1, kills: 1, steer: "lead"},
		"cancel":       {lines: lead, pauses: 1, kills: 1, cancel: "lead"},
		"policy ask":   {lines: worker, kills: 1, steer: "w", policy: goclaw.RestartAsk},
		"mixed modes":  {lines: both, pauses: 1, kills: 1},
	}
}

// The real engine, two of them on one store: every schedule that deviates once
// (or GOCLAW_EXPLORE_DEPTH times) from the one in which each goroutine goes on
// as long as it can.
func TestRealEngine(t *testing.T) {
	most := 1
	if d, err := strconv.Atoi(os.Getenv("GOCLAW_EXPLORE_DEPTH")); err == nil && d > 0 {
		most = d
	}
	for name, p := range plays() {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			n, lost, out := search(t, p, most)
			if out.broken != "" {
				t.Fatalf("schedule %d: %s\n%s", n, out.broken, strings.Join(out.trace, "\n"))
			}
			t.Logf("%d schedules, %d of them lost, in %s", n, lost, time.Since(began).Round(10*time.Millisecond))
		})
	}
}

// Each of these schedules has once broken the engine.
func TestSchedulesThatBrokeTheEngine(t *testing.T) {
	for _, c := range []struct {
		name, play string
		deviations []deviation
	}{
		{"a message between two looks at the inbox", "orchestrator", []deviation{
			{words: "A: read the inbox of agent:main:subagent", nth: 4, step: "a person writes to lead"},
		}},
		{"a zombie reads what another has written", "orchestrator", []deviation{
			{words: "A: read the record of", nth: 1, step: "A falls asleep"}, {words: "B: side effect", nth: 1, step: "A wakes"},
		}},
		{"a message before a person is asked", "policy ask", []deviation{
			{words: "A: side effect", nth: 1, step: "A is killed"}, {words: "B: suspend", nth: 1, step: "a person writes to w"},
		}},
		{"the last of a group wakes late", "mixed modes", nil},
		{"a death between an end and what it cancels", "cancel", []deviation{
			{words: "A: accept spawn a", nth: 1, step: "a person cancels lead"},
			{words: "A: append to a0000004", nth: 1, step: "A: read the record of"},
			{words: "A: append to a0000004", nth: 1, step: "A is killed"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := perform(t, plays()[c.play], c.deviations)
			if out.broken != "" || out.lost {
				t.Errorf("%s (lost: %t)\n%s", out.broken, out.lost, strings.Join(out.trace, "\n"))
			}
		})
	}
}
