package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"goclaw"
	"goclaw/internal/edge/provider/providertest"
)

// A browser that follows the link of goclaw page is signed in, until the token
// changes.
func TestTheRealPage(t *testing.T) {
	t.Parallel()
	h := newE2E(t, providertest.WireAnthropic, unasked)
	g := h.gateway()
	defer g.stop()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	open := func(url string) (int, string) {
		t.Helper()
		res, err := browser.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == 200 && !strings.Contains(res.Header.Get("Content-Security-Policy"), "default-src") {
			t.Errorf("%s: no policy: %v", url, res.Header)
		}
		return res.StatusCode, string(body)
	}
	if status, body := open(g.url + "/"); status != 401 || !strings.Contains(body, "goclaw page") {
		t.Errorf("signed out: %d %s", status, body)
	}
	var link goclaw.LoginLink
	h.run("page", "--json").decode(t, &link)
	if status, body := open(link.URL); status != 200 || !strings.Contains(body, "<html") {
		t.Errorf("the link: %d %s", status, body)
	}
	if status, _ := open(g.url + "/api/status"); status != 200 {
		t.Errorf("the page's API: %d", status)
	}
	if status, body := open(g.url + "/metrics"); status != 200 || !strings.Contains(body, "goclaw_info{") {
		t.Errorf("metrics: %d %s", status, body)
	}
	if end := h.run("token", "rotate"); end.code != 0 {
		t.Errorf("rotate: %d %s", end.code, end.stderr)
	}
	if status, _ := open(g.url + "/"); status != 401 {
		t.Errorf("after the token changed: %d", status)
	}
	if out := g.stdout.String(); strings.Count(out, "\n") != 1 {
		t.Errorf("scripts read more than the ready line: %q", out)
	}
	if strings.Contains(g.stderr.String(), "code=") {
		t.Errorf("a login code is in the log: %s", g.stderr.String())
	}
}

// echoing is a model server that refuses all keys and repeats them as vendors
// do: whole, masked in the middle, by their beginning and end, in an error and
// in a stream that began well.
func echoing(t *testing.T) *httptest.Server {
	var mu sync.Mutex
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		way := n
		mu.Unlock()
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
		said := []string{
			"key " + key, "key " + key[:12] + "****" + key[len(key)-4:], "key ending in " + key[len(key)-10:],
			"header Authorization: Bearer " + key, "proxy said " + r.Header.Get("X-Proxy-Key"),
		}[way%5]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader([]int{401, 403, 400, 404, 422}[way%5])
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]string{"type": "authentication_error", "message": said}})
	}))
	t.Cleanup(srv.Close)
	return srv
}

// Whatever is said, logged or answered holds no key, no token and no code of a
// login link, in no part that would give it away.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	const proxyKey = "canary-proxy-5d0c2f6be91747a8"
	for _, wire := range []string{providertest.WireAnthropic, providertest.WireOpenAI} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			h := newE2E(t, wire, unasked)
			h.url = echoing(t).URL
			h.config(fmt.Sprintf(`"headers": {"X-Proxy-Key": %q}`, proxyKey), `"agents": {"defaults": {"model": "`+h.model()+`"}}`)
			token := strings.Repeat("canarytoken", 4)
			h.file(filepath.Join(h.home, "token"), token+"\n")
			secrets := []string{e2eKey, e2eKey[:12], e2eKey[len(e2eKey)-10:], proxyKey, proxyKey[:12], token, token[:20]}
			var told strings.Builder
			tell := func(what, text string) {
				fmt.Fprintf(&told, "== %s\n%s\n", what, text)
				for _, s := range secrets {
					if strings.Contains(text, s) {
						t.Errorf("%s tells %q:\n%s", what, s, text)
					}
				}
			}
			commands := func() {
				for range 5 { // the server has as many ways of repeating a key
					end := h.run("run", "--wait", "--verbose", "hello")
					tell("run", end.stdout+end.stderr)
				}
				for _, args := range [][]string{
					{"sessions"}, {"sessions", "show", "agent:main:main"}, {"subagent", "list"}, {"subagent", "history", "--json"}, {"usage"},
					{"doctor"}, {"context"}, {"context", "--json"}, {"agents", "list"}, {"skills"}, {"pause"}, {"resume"}, {"config", "get"}, {"config", "path"},
					{"token", "path"}, {"run", "--session", "nonsense", "hi"}, {"no-such-command"},
				} {
					end := h.run(append(args, "--verbose")...)
					tell(strings.Join(args[:1], " "), end.stdout+end.stderr)
				}
			}
			commands()
			g := h.gateway()
			commands()
			for _, ask := range [][3]string{
				{"POST", "/v1/chat/completions", `{"model": "goclaw", "messages": [{"role": "user", "content": "hello"}]}`},
				{"POST", "/v1/chat/completions", `{"model": "goclaw", "stream": true, "messages": [{"role": "user", "content": "hello"}]}`},
				{"GET", "/api/runs", ""}, {"GET", "/api/status", ""}, {"GET", "/metrics", ""}, {"GET", "/api/runs/" + token, ""},
			} {
				_, body := g.call(ask[0], ask[1], ask[2])
				tell(ask[1][:7], strings.ReplaceAll(body, token, "")) // the last one's own path
			}
			g.stop()
			tell("the gateway's log", g.stderr.String())
			for _, name := range []string{"goclaw.db", "goclaw.db-wal", "goclaw.log"} {
				text, err := os.ReadFile(filepath.Join(h.home, name))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				tell(name, string(text))
			}
			if !strings.Contains(told.String(), "[secret]") && !strings.Contains(told.String(), "[key]") {
				t.Error("nothing was redacted: the server's errors were not seen")
			}
		})
	}
}

// All that a used home holds is its owner's alone.
func TestHomeIsPrivate(t *testing.T) {
	t.Parallel()
	h := newE2E(t, providertest.WireAnthropic, unasked)
	h.env = []string{} // the offline model
	g := h.gateway()
	h.run("run", "--wait", "research tides and glaciers with two workers")
	h.run("page", "--json")
	h.run("token", "rotate")
	seen := 0
	walk := func() {
		err := filepath.WalkDir(h.home, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			seen++
			if path != h.workspace && strings.HasPrefix(path, h.workspace) {
				return nil // the agent's work: its modes are the agent's
			}
			if info.Mode()&0o077 != 0 {
				t.Errorf("%s: mode %v", strings.TrimPrefix(path, h.home), info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	walk()
	g.stop()
	walk()
	if seen < 20 {
		t.Errorf("only %d entries were looked at", seen)
	}
}

// A turn with two workers is three traces, and a fourth for the turn that
// announces them, linked with each other.
func TestTracesOfATree(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	spans := map[string][]string{} // names by trace
	links := map[string][]string{} // traces by trace
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var req collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &req)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
		for _, s := range req.ResourceSpans[0].ScopeSpans[0].Spans {
			id := string(s.TraceId)
			spans[id] = append(spans[id], s.Name)
			for _, l := range s.Links {
				links[id] = append(links[id], string(l.TraceId))
			}
		}
	}))
	defer srv.Close()
	h := newE2E(t, providertest.WireAnthropic, unasked)
	h.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + srv.URL}
	if end := h.run("run", "--wait", "research tides and glaciers with two workers"); end.code != 0 {
		t.Fatalf("%d %s", end.code, end.stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(spans) != 4 {
		t.Fatalf("%d traces, want 4: %q", len(spans), spans)
	}
	for id, names := range spans {
		all := strings.Join(names, ",")
		if !strings.Contains(all, "invoke_agent ") || !strings.Contains(all, "chat offline") {
			t.Errorf("trace %x: %q", id, names)
		}
		if len(links[id]) == 0 {
			t.Errorf("trace %x is linked with none: %q", id, names)
		}
		for _, to := range links[id] {
			if spans[to] == nil {
				t.Errorf("trace %x is linked with one that never came", id)
			}
		}
	}
}

// unasked is the script of a model server that nobody asks.
func unasked(*providertest.Request) providertest.Answer { return providertest.Answer{} }
