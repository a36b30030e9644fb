package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw/internal/edge/provider/providertest"
)

// faultText is long enough to be cut in its middle, and hard to frame.
var faultText = strings.Repeat("Grüße, мир, 世界, 🙂 and \"quotes\". ", 12) + "END"

// TestFaults: whatever goes wrong between the program and its model server,
// the run completes and its text is right.
func TestFaults(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		type fault = providertest.Fault
		faults := map[string]struct {
			fault fault // of the first request
			calls bool  // the answer that suffers is a tool call
			tries int   // requests until the end of the run
		}{
			"retry-after":  {fault: providertest.Status(http.StatusTooManyRequests, "1", ""), tries: 2},
			"overloaded":   {fault: providertest.Status(529, "", ""), tries: 2},
			"unavailable":  {fault: providertest.Status(http.StatusServiceUnavailable, "", "<html>busy</html>"), tries: 2},
			"error event":  {fault: providertest.ErrorEventAfter(3, ""), tries: 2},
			"cut text":     {fault: providertest.CutAfter(1500), tries: 2},
			"ended text":   {fault: providertest.EndAfter(1500), tries: 2},
			"cut call":     {fault: providertest.CutAfter(700), calls: true, tries: 3},
			"cut at once":  {fault: providertest.CutAfter(0), tries: 2},
			"stall":        {fault: providertest.StallAfter(900), tries: 2},
			"silent":       {fault: providertest.StallAfter(0), tries: 2},
			"crlf":         {fault: fault{CRLF: true}, tries: 1},
			"split utf-8":  {fault: fault{SplitUTF8: true}, tries: 1},
			"both":         {fault: fault{SplitUTF8: true, CRLF: true}, tries: 1},
			"no usage":     {fault: fault{NoUsage: true}, tries: 1},
			"twice done":   {fault: fault{DuplicateDone: true}, tries: 1},
			"malformed":    {fault: fault{MalformedArguments: true}, calls: true, tries: 3},
			"split a call": {fault: fault{SplitUTF8: true, CRLF: true}, calls: true, tries: 2},
		}
		var mu sync.Mutex
		seen := map[string][]time.Time{}
		script := func(r *providertest.Request) providertest.Answer {
			_, name, _ := strings.Cut(r.FirstText(), "fault: ")
			mu.Lock()
			seen[name] = append(seen[name], time.Now())
			n := len(seen[name])
			mu.Unlock()
			f := faults[name]
			if results := r.NewestResults(); len(results) > 0 && !results[0].IsError {
				return providertest.Answer{Text: "read: " + results[0].Content}
			}
			a := providertest.Answer{Text: faultText}
			if f.calls {
				a = providertest.Answer{Text: "Reading.", Calls: []providertest.Call{{Name: "read", Arguments: arguments(args{"path": "fact.txt"})}}}
			}
			if n == 1 {
				a.Fault = f.fault
			}
			return a
		}
		h := newE2E(t, wire, script)
		h.file("fact.txt", faultText)
		h.config(`"idleTimeoutSeconds": 1`, "")
		g := h.gateway()
		var clients sync.WaitGroup
		for name, f := range faults {
			clients.Go(func() {
				status, body := g.call(http.MethodPost, "/v1/chat/completions", chatBody(name, "fault: "+name, false))
				var answer struct {
					Choices []struct {
						Message struct{ Content string }
					}
				}
				if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || len(answer.Choices) != 1 {
					t.Errorf("%s: %d %s", name, status, body)
					return
				}
				want := faultText
				if f.calls {
					want = "read: 1\t" + faultText
				}
				if got := strings.TrimSpace(answer.Choices[0].Message.Content); got != want {
					t.Errorf("%s: got %q", name, got)
				}
			})
		}
		clients.Wait()
		for name, f := range faults {
			if len(seen[name]) != f.tries {
				t.Errorf("%s: %d requests, want %d", name, len(seen[name]), f.tries)
			}
		}
		if at := seen["retry-after"]; len(at) > 1 && at[1].Sub(at[0]) < time.Second {
			t.Errorf("tried again after %v, the server asked for 1s", at[1].Sub(at[0]))
		}
		checkMended(t, h.server.Requests())
		g.stop()
	})
}

// checkMended wants the broken arguments and their error in the second request
// of the run with malformed arguments, where the model can mend them.
func checkMended(t *testing.T, all []providertest.Recorded) {
	t.Helper()
	for _, r := range all {
		if !strings.HasSuffix(r.FirstText(), "fault: malformed") {
			continue
		}
		for _, res := range r.NewestResults() {
			if res.IsError && strings.Contains(res.Content, "read: ") && strings.Contains(res.Content, "JSON") {
				return
			}
			t.Logf("result %+v", res)
		}
	}
	t.Error("the model was not told that its arguments are no JSON")
}
