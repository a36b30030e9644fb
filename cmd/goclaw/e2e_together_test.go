package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// barrier lets n callers go at the same moment.
type barrier struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{left: n, open: make(chan struct{})} }

func (b *barrier) wait(t *testing.T) {
	b.mu.Lock()
	if b.left--; b.left == 0 {
		close(b.open)
	}
	b.mu.Unlock()
	select {
	case <-b.open:
	case <-t.Context().Done():
	}
}

// wireRequest is a request as the server got it, in pieces of its raw bytes.
type wireRequest struct {
	stable   []byte // tools and system
	messages []json.RawMessage
}

// uncached removes the breakpoints, which move.
func uncached(raw []byte) []byte {
	mark := `"cache_control":{"type":"ephemeral"}`
	raw = bytes.ReplaceAll(raw, []byte(mark+","), nil)
	return bytes.ReplaceAll(raw, []byte(","+mark), nil)
}

func splitRequest(t *testing.T, r providertest.Recorded) wireRequest {
	t.Helper()
	raw := uncached(r.Raw)
	if bytes.Contains(raw, []byte("cache_control")) {
		t.Fatalf("a breakpoint of another form: %s", r.Raw)
	}
	var body struct {
		Tools, System json.RawMessage
		Messages      []json.RawMessage
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	out := wireRequest{stable: slices.Concat(body.Tools, body.System), messages: body.Messages}
	if r.Wire == providertest.WireOpenAI {
		out.stable = append(out.stable, body.Messages[0]...)
		out.messages = body.Messages[1:]
	}
	if len(body.Tools) < 500 || len(out.stable) < len(body.Tools)+1000 {
		t.Fatalf("tools or system are missing in %s", r.Raw)
	}
	return out
}

// checkBreakpoints wants Anthropic's at the ends of the tools, of the stable
// system and of the last two user turns, and nowhere else.
func checkBreakpoints(t *testing.T, r providertest.Recorded) {
	t.Helper()
	type block struct {
		CacheControl json.RawMessage `json:"cache_control"`
	}
	var body struct {
		Tools, System []block
		Messages      []struct {
			Role    string
			Content []block
		}
	}
	if err := json.Unmarshal(r.Raw, &body); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	note := func(where string, blocks []block, marked bool) {
		for i, b := range blocks {
			if b.CacheControl != nil {
				got = append(got, fmt.Sprintf("%s.%d", where, i))
			}
		}
		if marked {
			want = append(want, fmt.Sprintf("%s.%d", where, len(blocks)-1))
		}
	}
	note("tools", body.Tools, true)
	note("system", body.System, true)
	users := 0
	for _, m := range body.Messages {
		if m.Role == "user" {
			users++
		}
	}
	for i, m := range body.Messages {
		last := m.Role == "user" && users <= 2
		if m.Role == "user" {
			users--
		}
		note(fmt.Sprintf("messages.%d", i), m.Content, last)
	}
	if !slices.Equal(got, want) {
		t.Errorf("request %d: breakpoints at %v, want %v", r.N, got, want)
	}
}

// TestTogether: five workers of one turn end at the same moment. Their
// requester is woken once, with each result once, and nothing that a provider
// has cached changes.
func TestTogether(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		const workers = 5
		ends := newBarrier(workers)
		script := func(r *providertest.Request) providertest.Answer {
			newest := r.NewestText()
			switch {
			case r.Worker():
				ends.wait(t)
				return providertest.Answer{Text: "RESULT-" + r.Task() + "-OF-FIVE"}
			case strings.Contains(newest, "[Subagent: "):
				return providertest.Answer{Text: "All five are here."}
			case len(r.NewestResults()) > 0:
				return providertest.Answer{Text: "Five are under way."}
			case strings.Contains(newest, "spawn"):
				var a providertest.Answer
				for i := range workers {
					a.Calls = append(a.Calls, providertest.Call{Name: "sessions_spawn", Arguments: arguments(args{"task": fmt.Sprintf("T%d", i), "label": fmt.Sprintf("w%d", i)})})
				}
				return a
			}
			return providertest.Answer{Text: "You are welcome."}
		}
		h := newE2E(t, wire, script)
		g := h.gateway()
		var first, next goclaw.Outcome
		g.get("/api/messages/"+g.send("agent:main:main", "spawn five")+"?workers=true&timeout=60", &first)
		g.get("/api/messages/"+g.send("agent:main:main", "thank you")+"?workers=true&timeout=60", &next)
		if first.Turns != 2 || len(first.Runs) != workers || first.Reply != "All five are here." || next.Reply != "You are welcome." {
			t.Fatalf("outcomes %+v, %+v", first, next)
		}
		var runs []goclaw.Run
		g.get("/api/runs?session=agent:main:main", &runs)
		if len(runs) != 3 {
			t.Errorf("%d turns of the session, want 3", len(runs))
		}
		checkTogether(t, h.server.Requests(), workers)
		g.stop()
	})
}

func checkTogether(t *testing.T, all []providertest.Recorded, workers int) {
	var main []providertest.Recorded
	var sibling []byte
	for _, r := range all {
		if r.Wire == providertest.WireAnthropic {
			checkBreakpoints(t, r)
		} else if bytes.Contains(r.Raw, []byte("cache_control")) {
			t.Errorf("request %d has breakpoints on OpenAI's wire", r.N)
		}
		if !r.Worker() {
			main = append(main, r)
			continue
		}
		stable := splitRequest(t, r).stable
		if sibling != nil && !bytes.Equal(sibling, stable) {
			t.Error("siblings have different tools or system")
		}
		sibling = stable
	}
	// Spawn, acknowledge, announcement, thanks.
	if len(main) != 4 || len(all) != 4+workers {
		t.Fatalf("%d requests of the main session, %d in all", len(main), len(all))
	}
	for i := range workers {
		result := fmt.Sprintf("RESULT-T%d-OF-FIVE", i)
		for n, want := range []int{0, 0, 1, 1} {
			if got := bytes.Count(main[n].Raw, []byte(result)); got != want {
				t.Errorf("main request %d holds %s %d times, want %d", n+1, result, got, want)
			}
		}
		if text := main[2].NewestText(); !strings.Contains(text, result) || !strings.Contains(text, fmt.Sprintf("[Subagent: w%d] Complete.", i)) {
			t.Errorf("the announcement's turn lacks w%d: %s", i, text)
		}
	}
	before := splitRequest(t, main[0])
	for _, r := range main[1:] {
		now := splitRequest(t, r)
		if !bytes.Equal(now.stable, before.stable) {
			t.Errorf("request %d: tools and system changed:\n%s\n%s", r.N, before.stable, now.stable)
		}
		if len(now.messages) <= len(before.messages) {
			t.Fatalf("request %d: %d messages after %d", r.N, len(now.messages), len(before.messages))
		}
		for i, m := range before.messages {
			if !bytes.Equal(m, now.messages[i]) {
				t.Errorf("request %d: message %d changed from %s to %s", r.N, i, m, now.messages[i])
			}
		}
		before = now
	}
}
