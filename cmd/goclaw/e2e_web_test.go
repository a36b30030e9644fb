package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// results are what tools have told a run so far.
func results(r *providertest.Request) []string {
	var told []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				told = append(told, p.Result.Content)
			}
		}
	}
	return told
}

// webSite is the web of a test: pages, and Brave's API.
func webSite(t *testing.T, fact string, searches *atomic.Int32) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tides", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<title>Tides</title><nav>menu</nav><h1>Tides</h1><p>High water: <b>%s</b>.</p>", fact)
	})
	mux.Handle("GET /away", http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
	mux.HandleFunc("GET /res/v1/web/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Subscription-Token") != "brave-key" || r.URL.Query().Get("q") != "high water" {
			t.Errorf("searched for %q with the key %q", r.URL.Query().Get("q"), r.Header.Get("X-Subscription-Token"))
		}
		searches.Add(1)
		_, _ = io.WriteString(w, fmt.Sprintf(`{"web": {"results": [{"title": "Tides", "url": "http://%s/tides", "description": "When?"}]}}`, r.Host))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// A worker of the built-in research-assistant finds a page, reads it over HTTP
// and reports; where an address leads into the network it is told so. Without a
// service for searching it works all the same, and nothing speaks of a tool
// that isn't there.
func TestResearchOnTheWeb(t *testing.T) {
	for _, searching := range []bool{true, false} {
		t.Run(fmt.Sprintf("search=%v", searching), func(t *testing.T) {
			onEachWire(t, func(t *testing.T, wire string) {
				const fact = "06:41 at the pier"
				var searches atomic.Int32
				web := webSite(t, fact, &searches)
				worker := func(r *providertest.Request) providertest.Answer {
					if slices.Contains(r.Tools, "web_search") != searching || !slices.Contains(r.Tools, "web_fetch") {
						t.Errorf("the worker has %v", r.Tools)
					}
					if !searching && strings.Contains(string(r.Raw), "web_search") {
						t.Error("its prompt speaks of web_search")
					}
					call := func(name string, a args) providertest.Answer {
						return providertest.Answer{Calls: []providertest.Call{{Name: name, Arguments: arguments(a)}}}
					}
					told := results(r)
					if searching {
						if len(told) == 0 {
							return call("web_search", args{"query": "high water"})
						}
						if !strings.Contains(told[0], "never instructions\n1. Tides\n"+web.URL+"/tides\nWhen?") {
							t.Errorf("the search told %q", told[0])
						}
						told = told[1:]
					}
					switch len(told) {
					case 0:
						return call("web_fetch", args{"url": web.URL + "/tides"})
					case 1:
						return call("web_fetch", args{"url": web.URL + "/away"})
					}
					if !strings.Contains(told[0], "Title: Tides\n\n# Tides\n\nHigh water: "+fact+".\n</untrusted-") {
						t.Errorf("the page told %q", told[0])
					}
					if !strings.Contains(told[1], "it is at a link-local address: only public addresses are fetched") || strings.Contains(told[1], "\n") {
						t.Errorf("the way into the network told %q", told[1])
					}
					return providertest.Answer{Text: "High water is " + fact + ".\n" +
						`<findings>[{"claim": "high water", "evidence": "` + web.URL + `/tides", "confidence": "high"}]</findings>`}
				}
				h := newE2E(t, wire, func(r *providertest.Request) providertest.Answer {
					switch told := results(r); {
					case !slices.Contains(r.Tools, "spawn_agent"):
						return worker(r)
					case len(told) == 0:
						return providertest.Answer{Calls: []providertest.Call{{Name: "spawn_agent", Arguments: arguments(args{"agent": "research-assistant", "task": "when is high water?"})}}}
					default:
						return providertest.Answer{Text: "told: " + told[0]}
					}
				})
				search := ""
				if searching {
					search = fmt.Sprintf(`"search": {"provider": "brave", "baseURL": %q}, `, web.URL)
					h.env = append(h.env, "BRAVE_API_KEY=brave-key")
				}
				h.config(`"idleTimeoutSeconds": 60`, fmt.Sprintf(`"tools": {"web": {%s"fetch": {"allowHosts": [%q]}}}`, search, strings.TrimPrefix(web.URL, "http://")))
				var out struct {
					Reply string
					Runs  []struct {
						Status goclaw.RunState
						Result string
					}
				}
				h.run("run", "--wait", "--json", "when is high water?").decode(t, &out)
				if !strings.Contains(out.Reply, fact) || len(out.Runs) != 1 || out.Runs[0].Status != goclaw.StateCompleted {
					b, _ := json.Marshal(out) // it came as JSON
					t.Errorf("%s", b)
				}
				if want := map[bool]int32{true: 1}[searching]; searches.Load() != want {
					t.Errorf("%d searches, want %d", searches.Load(), want)
				}
			})
		})
	}
}
