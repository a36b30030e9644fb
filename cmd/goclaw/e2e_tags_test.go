package main

import (
	"net/http"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// TestReplyTagsAreNotSeen: the tag of an answer reaches nobody, on no way out,
// not even in pieces.
func TestReplyTagsAreNotSeen(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		h := newE2E(t, wire, func(*providertest.Request) providertest.Answer {
			return providertest.Answer{Text: "[[ reply_to_current ]] High tide is at noon.", ChunkSize: 3}
		})
		g := h.gateway()
		see := func(where, text string) {
			t.Helper()
			if !strings.Contains(text, "tide") || strings.Contains(text, "[[") || strings.Contains(text, "reply_to") {
				t.Errorf("%s shows %q", where, text)
			}
		}
		if out := h.run("run", "when is high tide?"); out.stdout != "High tide is at noon.\n" {
			t.Errorf("run prints %q", out.stdout)
		}
		see("sessions show", h.run("sessions", "show", "agent:main:main").stdout)
		run := g.send("agent:main:main", "when is high tide?")
		var outcome goclaw.Outcome
		g.get("/api/messages/"+run+"?timeout=60", &outcome)
		see("the outcome", outcome.Reply)
		_, plain := g.call(http.MethodPost, "/v1/chat/completions", chatBody("plain", "tide?", false))
		see("a completion", plain)
		_, streamed := g.call(http.MethodPost, "/v1/chat/completions", chatBody("streamed", "tide?", true))
		for _, event := range sse(streamed) {
			if strings.Contains(event, "[[") || strings.Contains(event, "reply") {
				t.Errorf("a stream carries %s", event)
			}
		}
		g.stop()
	})
}
