package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/edge/web"
)

// ask sends one request to h in memory.
func ask(h http.Handler, method, target, body string, header map[string]string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(method, target, body, header))
	return w
}

func request(method, target, body string, header map[string]string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost:8080"
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("Authorization", "Bearer "+token)
	for name, value := range header {
		switch {
		case name == "Host":
			r.Host = value
		case name == "RemoteAddr":
			r.RemoteAddr = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	return r
}

func TestEveryRouteIsGuarded(t *testing.T) {
	h := gateway(&fake{})
	all := endpoints(t, h)
	if len(all) != len(web.Patterns()) {
		t.Errorf("the document has %d operations, there are %d routes", len(all), len(web.Patterns()))
	}
	for _, e := range all {
		for _, tc := range []struct {
			name   string
			header map[string]string
			status int // 0: not refused by the guard
		}{
			{"no token", map[string]string{"Authorization": ""}, 401},
			{"wrong token", map[string]string{"Authorization": "Bearer the-tokem"}, 401},
			{"token's beginning", map[string]string{"Authorization": "Bearer the-toke"}, 401},
			{"empty token", map[string]string{"Authorization": "Bearer "}, 401},
			{"wrong scheme", map[string]string{"Authorization": "Basic " + token}, 401},
			{"bare token", map[string]string{"Authorization": token}, 401},
			{"rebound name", map[string]string{"Host": "evil.example"}, 403},
			{"rebound name and port", map[string]string{"Host": "evil.example:8080"}, 403},
			{"no host", map[string]string{"Host": ""}, 403},
			{"outer address", map[string]string{"Host": "192.0.2.1:8080"}, 403},
			{"localhost as a part", map[string]string{"Host": "localhost.evil.example"}, 403},
			{"foreign origin", map[string]string{"Origin": "https://evil.example"}, 403},
			{"other port's origin", map[string]string{"Origin": "http://localhost:9999"}, 403},
			{"opaque origin", map[string]string{"Origin": "null"}, 403},
		} {
			w := ask(h, e.method, e.path, "", tc.header)
			want := tc.status
			if want == 401 && e.open {
				want = 200
				if e.path == "/login" {
					want = 404 // this gateway has no page
				}
			}
			if w.Code != want {
				t.Errorf("%s, %s: %d, want %d", e.id, tc.name, w.Code, want)
			}
			checkProtection(t, e.id+", "+tc.name, w.Header())
			if want >= 400 {
				checkErrorShape(t, e.path, w)
			}
		}
	}
}

// checkProtection fails unless an answer carries what keeps browsers from doing
// anything with it but for the page.
func checkProtection(t *testing.T, what string, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", what, name, got, want)
		}
	}
}

// checkErrorShape fails unless the error has the form that its path promises.
func checkErrorShape(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	var v struct {
		Error struct {
			Message string
			Type    string
		}
		Detail string
		Status int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
	if strings.HasPrefix(path, "/v1/") {
		if v.Error.Message == "" || v.Error.Type == "" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: not OpenAI's error: %s", path, w.Body)
		}
	} else if v.Detail == "" || v.Status != w.Code || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: no problem details: %s", path, w.Body)
	}
}

func TestAllowedHostsAndOrigins(t *testing.T) {
	for _, tc := range []struct {
		hosts        []string
		host, origin string
		status       int
	}{
		{nil, "localhost", "", 200},
		{nil, "LOCALHOST.:80", "", 200},
		{nil, "127.0.0.1:1", "", 200},
		{nil, "127.9.9.9", "", 200},
		{nil, "[::1]:8080", "", 200},
		{nil, "[::ffff:127.0.0.1]", "", 200},
		{nil, "localhost:1", "http://localhost:1", 200},
		{nil, "localhost:1", "https://LOCALHOST:1", 200},
		{nil, "localhost:1", "file://localhost:1", 403},
		{nil, "localhost:1", "http://127.0.0.1:1", 403},
		{[]string{"claw.example:443"}, "claw.example", "https://claw.example", 200},
		{[]string{"claw.example:443"}, "other.example", "", 403},
		{[]string{"192.0.2.7:80"}, "192.0.2.7:80", "", 200},
		{[]string{"192.0.2.7:80"}, "192.0.2.8:80", "", 403},
		{[]string{"[2001:db8::1]:80"}, "[2001:db8::1]", "", 200},
		{[]string{"0.0.0.0:80"}, "192.0.2.8:80", "", 200},
		{[]string{"[::]:80"}, "[2001:db8::1]:80", "", 200},
		{[]string{"0.0.0.0:80"}, "evil.example", "", 403},
		// Spellings that look like this machine
		{nil, "localhost.", "", 200},
		{nil, "localhost..", "", 403},
		{nil, "localhost:", "", 200},
		{nil, "localhost:80a", "", 403},
		{nil, "localhost:80:80", "", 403},
		{nil, "localhost@evil.example", "", 403},
		{nil, "evil.example#localhost", "", 403},
		{nil, "localhost, evil.example", "", 403},
		{nil, "127.0.0.1.nip.io", "", 403},
		{nil, "127.0.0.1.", "", 200},
		{nil, "127.1", "", 403},
		{nil, "2130706433", "", 403},
		{nil, "0x7f.0.0.1", "", 403},
		{nil, "0177.0.0.1", "", 403},
		{nil, "0.0.0.0:80", "", 403},
		{nil, "[::]:80", "", 403},
		{nil, "[::1%25eth0]:80", "", 403},
		{nil, "[::1%eth0]:80", "", 403},
		{nil, "[fe80::1%lo]:80", "", 403},
		{nil, "[::ffff:7f00:1]:80", "", 200},
		{nil, "xn--localhost", "", 403},
		{[]string{"claw.example:443"}, "claw.example.", "", 200},
		{[]string{"claw.example:443"}, "CLAW.example:1", "", 200},
		{[]string{"claw.example:443"}, "xclaw.example", "", 403},
		{[]string{"claw.example:443"}, "claw.example.evil.example", "", 403},
		{[]string{""}, "", "", 403},
		{[]string{":80"}, "192.0.2.8:80", "", 200},
		{[]string{":80"}, "evil.example", "", 403},
		// Origins
		{nil, "localhost:1", "null", 403},
		{nil, "localhost:1", "http://localhost:1/", 403},
		{nil, "localhost:1", "http://evil@localhost:1", 403},
		{nil, "localhost:1", "http://localhost:1.evil.example", 403},
		{nil, "localhost:1", "http://localhost", 403},
		{nil, "localhost:1", "localhost:1", 403},
		{nil, "localhost:1", "HTTP://localhost:1", 403},
		{nil, "localhost:1", "chrome-extension://localhost:1", 403},
	} {
		h := gateway(&fake{}, func(o *web.Options) { o.Hosts = tc.hosts })
		w := ask(h, "GET", "/api/status", "", map[string]string{"Host": tc.host, "Origin": tc.origin})
		if w.Code != tc.status {
			t.Errorf("%q host %s origin %s: %d, want %d", tc.hosts, tc.host, tc.origin, w.Code, tc.status)
		}
	}
}

func TestEmptyTokenLetsNobodyIn(t *testing.T) {
	h := gateway(&fake{}, func(o *web.Options) { o.Token = "" })
	for _, given := range []string{"Bearer ", "Bearer", "Bearer x", ""} {
		if w := ask(h, "GET", "/api/status", "", map[string]string{"Authorization": given}); w.Code != 401 {
			t.Errorf("%q: %d", given, w.Code)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	h := gateway(&fake{})
	for _, tc := range []struct {
		method, target, body string
		status               int
		says                 string
	}{
		{"GET", "/nothing", "", 404, "/nothing"},
		{"GET", "/v1/nothing", "", 404, "/v1/nothing"},
		{"DELETE", "/api/runs", "", 405, "GET"},
		{"GET", "/v1/chat/completions", "", 405, "POST"},
		{"POST", "/api/messages", "", 400, "empty"},
		{"POST", "/api/messages", "[]", 400, "no valid request"},
		{"POST", "/api/messages", `{"session":"agent:main:main","text":"x","sesion":1}`, 400, `unknown field \"sesion\"`},
		{"POST", "/api/messages", `{"session":"main","text":"x"}`, 400, `must start with \"agent:\"`},
		{"POST", "/api/messages", `{"text":"x"}`, 400, `\"session\" is required`},
		{"POST", "/api/messages", `{"session":"agent:main:main"}`, 400, `\"text\" is required`},
		{"POST", "/api/messages", `{"session":"agent:main:main","text":5}`, 400, `\"text\" can't be a number`},
		{"POST", "/api/messages", `{"session":"agent:main:main","text":"x"} {}`, 400, "goes on"},
		{"POST", "/api/messages", `{"text":"` + strings.Repeat("x", 4<<20) + `"}`, 413, "4194304"},
		{"GET", "/api/messages/r1?timeout=0", "", 400, "1 to 600"},
		{"GET", "/api/messages/r1?workers=perhaps", "", 400, "true or false"},
		{"GET", "/api/events?sesion=agent:main:main", "", 400, `unknown parameter \"sesion\"`},
		{"GET", "/api/events?session=x", "", 400, "session"},
		{"GET", "/api/runs?active=1&active=0", "", 400, "given twice"},
		{"GET", "/api/runs?trigger=manual", "", 400, "none of user"},
		{"GET", "/api/runs?limit=-1", "", 400, "limit"},
		{"GET", "/api/runs?a;b", "", 400, "unreadable query"},
		{"GET", "/api/runs/nope", "", 404, "nope"},
		{"POST", "/api/runs/r1/cancel", `{"reason":"x"}`, 400, "reason"},
		{"POST", "/api/runs", "", 400, "empty"},
		{"POST", "/api/runs", `{}`, 400, `\"task\" is required`},
		{"POST", "/api/runs", `{"task":"t","announces":"none"}`, 400, `unknown field \"announces\"`},
		{"POST", "/api/runs", `{"task":"t","session":"main"}`, 400, `must start with`},
		{"POST", "/api/runs", `{"task":"t","timeoutSeconds":"5"}`, 400, `\"timeoutSeconds\" can't be a string`},
		{"GET", "/api/runs/nope/wait", "", 404, "nope"},
		{"GET", "/api/runs/r1/wait?timeout=601", "", 400, "1 to 600"},
		{"GET", "/api/runs/r1/wait?seconds=1", "", 400, "unknown parameter"},
		{"POST", "/api/runs/nope/steer", `{"message":"x"}`, 404, "nope"},
		{"POST", "/api/runs/r1/steer", `{}`, 400, `\"message\" is required`},
		{"POST", "/api/runs/r1/steer", `{"text":"x"}`, 400, "text"},
		{"POST", "/api/runs/nope/resume", "", 404, "nope"},
		{"POST", "/api/runs/r1/resume", `{"why":"x"}`, 400, "why"},
		{"POST", "/api/parked/nope/retry", "", 404, "nope"},
		{"DELETE", "/api/parked/nope", "", 404, "nope"},
		{"GET", "/api/usage?model=m", "", 400, "unknown parameter"},
		{"PUT", "/api/pause", `{"reason":"x"}`, 400, "reason"},
		{"POST", "/api/pause", "", 405, "PUT"},
		{"GET", "/api/sessions/nope/history", "", 400, "nope"},
		{"GET", "/api/context?agent=main&run=r1", "", 400, "one of"},
	} {
		w := ask(h, tc.method, tc.target, tc.body, nil)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s %s %.60s: %d %s; want %d with %q", tc.method, tc.target, tc.body, w.Code, w.Body, tc.status, tc.says)
			continue
		}
		checkErrorShape(t, tc.target, w)
	}
}

func TestPanicIsLoggedAndNotLeaked(t *testing.T) {
	var log bytes.Buffer
	h := gateway(&fake{status: goclaw.Status{Version: "panic"}}, func(o *web.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	w := ask(h, "GET", "/api/status", "", nil)
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	checkErrorShape(t, "/api/status", w)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "secret plan") {
		t.Errorf("log: %s", got)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var why error
	h := gateway(&fake{}, func(o *web.Options) { o.Ready = func() error { return why } })
	bare := map[string]string{"Authorization": ""}
	for _, path := range []string{"/healthz", "/readyz"} {
		if w := ask(h, "GET", path, "", bare); w.Code != 200 || w.Body.String() != "ok" || w.Header().Get("X-GoClaw-Version") != "" {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, w.Header())
		}
	}
	why = errBroken
	if w := ask(h, "GET", "/readyz", "", bare); w.Code != 503 || !strings.Contains(w.Body.String(), why.Error()) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/healthz", "", bare); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	if w := ask(h, "GET", "/api/status", "", nil); w.Header().Get("X-GoClaw-Version") != "1.2.3" {
		t.Errorf("version: %v", w.Header())
	}
}

// TestErrorsAreRedacted: what the gateway says of a failure passes the filter, in
// a stream too.
func TestErrorsAreRedacted(t *testing.T) {
	broken := errors.New("no answer from postgres://ann:hunter22@db")
	f := &fake{fail: broken, await: func(context.Context, string, bool) (goclaw.Outcome, error) { return goclaw.Outcome{}, broken },
		receive: func(_ context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
			return goclaw.Receipt{Run: &goclaw.Run{ID: "run-1", Session: in.Session}}, nil
		}}
	h := gateway(f, func(o *web.Options) {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter22", "[secret]") }
	})
	const body = `{"model":"goclaw","messages":[{"role":"user","content":"x"}]`
	for _, w := range []*httptest.ResponseRecorder{
		ask(h, "GET", "/api/runs", "", nil),
		ask(h, "POST", "/v1/chat/completions", body+`}`, nil),
		ask(h, "POST", "/v1/chat/completions", body+`,"stream":true}`, nil),
	} {
		if text := w.Body.String(); strings.Contains(text, "hunter22") || !strings.Contains(text, "ann:[secret]@db") {
			t.Errorf("%d %s", w.Code, text)
		}
	}
}
