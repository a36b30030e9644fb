package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// TestRestart: a gateway that is stopped in good order while its workers wait
// for their model. After the next start they go on where they were, and are
// announced once.
func TestRestart(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		const workers = 3
		var mu sync.Mutex
		down := true // the model doesn't answer a worker's second call
		script := func(r *providertest.Request) providertest.Answer {
			newest := r.NewestText()
			switch {
			case r.Worker() && len(r.Messages) == 1:
				return providertest.Answer{Text: "First.", Calls: []providertest.Call{{Name: "read", Arguments: arguments(args{"path": "fact.txt"})}}}
			case r.Worker():
				mu.Lock()
				defer mu.Unlock()
				if down {
					return providertest.Answer{Text: "lost words", Fault: providertest.StallAfter(300)}
				}
				return providertest.Answer{Text: "RESULT-" + r.Task() + " is " + r.NewestResults()[0].Content}
			case strings.Contains(newest, "[Subagent: "):
				return providertest.Answer{Text: "Told."}
			case len(r.NewestResults()) > 0:
				return providertest.Answer{Text: "Started."}
			}
			var a providertest.Answer
			for i := range workers {
				a.Calls = append(a.Calls, providertest.Call{Name: "sessions_spawn", Arguments: arguments(args{"task": fmt.Sprintf("T%d", i), "label": fmt.Sprintf("w%d", i)})})
			}
			return a
		}
		key := func(r *providertest.Request) string {
			return fmt.Sprintf("%v %s %d", r.Worker(), r.Task(), len(r.Messages))
		}
		h := newE2E(t, wire, script, providertest.WithKey(key))
		h.file("fact.txt", "FACT")
		g := h.gateway()
		run := g.send("agent:main:main", "go")
		eventually(t, "all workers wait for their model", func() bool { return h.streams.count() == workers && h.server.Total() == 2+2*workers })
		began := time.Now()
		g.stop()
		t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
		eventually(t, "all streams have ended", func() bool { return len(h.streams.gone()) == workers })
		var paused []goclaw.RunInfo
		h.run("subagent", "list", "--json").decode(t, &paused)
		if len(paused) != workers {
			t.Errorf("paused %+v", paused)
		}

		mu.Lock()
		down = false
		mu.Unlock()
		g = h.gateway()
		var out goclaw.Outcome
		g.get("/api/messages/"+run+"?workers=true&timeout=60", &out)
		if len(out.Runs) != workers || out.Turns != 2 || out.Reply != "Told." || out.Status != goclaw.StateCompleted {
			t.Fatalf("outcome %+v", out)
		}
		g.stop()
		checkPaidOnce(t, h.server.Requests(), workers)
	})
}

// checkPaidOnce wants each answered call made once, each that was broken off
// made again once, and each result announced once.
func checkPaidOnce(t *testing.T, all []providertest.Recorded, workers int) {
	t.Helper()
	counts := map[string]int{}
	var announcements []providertest.Recorded
	for _, r := range all {
		counts[r.Key]++
		if !r.Worker() && strings.Contains(r.NewestText(), "[Subagent: ") {
			announcements = append(announcements, r)
		}
	}
	for i := range workers {
		for messages, want := range map[int]int{1: 1, 3: 2} {
			if k := fmt.Sprintf("true T%d %d", i, messages); counts[k] != want {
				t.Errorf("%d requests of worker %d with %d messages, want %d", counts[k], i, messages, want)
			}
		}
	}
	if len(announcements) != 1 || len(all) != 2+3*workers+1 {
		t.Fatalf("%d announcements in %d requests: %v", len(announcements), len(all), counts)
	}
	body := string(announcements[0].Raw)
	for i := range workers {
		if n := strings.Count(body, fmt.Sprintf("RESULT-T%d is", i)); n != 1 {
			t.Errorf("the result of w%d is announced %d times", i, n)
		}
	}
	if strings.Contains(body, "lost words") {
		t.Error("an unfinished reply is part of the record")
	}
}
