package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"goclaw"
	"goclaw/internal/edge/web"
)

func TestRotatingTheToken(t *testing.T) {
	next := "second-token"
	s := newSite(t, func(o *web.Options) {
		o.NewToken = func(context.Context) (string, error) {
			if next == "" {
				return "", goclaw.BadRequest("it is named elsewhere")
			}
			return next, nil
		}
	})
	s.signIn()
	link := s.link()
	s.want(403, "POST", "/api/token/rotate", map[string]string{"X-GoClaw-Page": "1"})
	s.want(401, "POST", "/api/token/rotate", map[string]string{"Cookie": ""})
	bring := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
	s.want(204, "POST", "/api/token/rotate", bring(token))
	s.want(401, "GET", "/api/status", bring(token))
	s.want(200, "GET", "/api/status", bring("second-token"))
	s.want(401, "GET", "/", nil)
	s.want(401, "GET", link, nil)
	next = ""
	s.want(400, "POST", "/api/token/rotate", bring("second-token"))
	s.want(200, "GET", "/api/status", bring("second-token"))
}

// A stream that the old token opened ends with it.
func TestRotationEndsStreams(t *testing.T) {
	h := gateway(&fake{}, func(o *web.Options) {
		o.NewToken = func(context.Context) (string, error) { return "second", nil }
	})
	srv := httptest.NewServer(h)
	defer srv.Close()
	res := get(t, srv, "/api/events", token)
	defer res.Body.Close()
	if w := ask(h, "POST", "/api/token/rotate", "", nil); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if _, err := io.ReadAll(res.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func get(t *testing.T, srv *httptest.Server, path, token string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestGuessing(t *testing.T) {
	const far = "203.0.113.9:1000"
	wrong := func(from string) map[string]string {
		return map[string]string{"Authorization": "Bearer guess", "RemoteAddr": from}
	}
	right := func(from string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "RemoteAddr": from}
	}
	t.Run("locks an address out, and nobody else", func(t *testing.T) {
		s := newSite(t)
		s.signIn()
		for range 10 {
			s.want(401, "GET", "/api/status", wrong(far))
		}
		for _, header := range []map[string]string{wrong(far), right(far), right("203.0.113.9:2000"), right("[::ffff:203.0.113.9]:1")} {
			w := s.browse("GET", "/api/status", header)
			if w.Code != 429 || w.Header().Get("Retry-After") != "30" {
				t.Errorf("%v: %d %v", header, w.Code, w.Header())
			}
			checkErrorShape(t, "/api/status", w)
		}
		s.want(429, "GET", "/login?code=guess", map[string]string{"RemoteAddr": far})
		s.want(200, "GET", "/api/status", right("203.0.113.10:1000"))
		s.want(200, "GET", "/api/status", right("127.0.0.1:1000"))
		s.want(200, "GET", "/api/status", map[string]string{"RemoteAddr": far}) // its browser is signed in
		s.now = s.now.Add(30 * time.Second)
		s.want(200, "GET", "/api/status", right(far))
		s.want(401, "GET", "/api/status", wrong(far))
	})
	t.Run("slowly is allowed", func(t *testing.T) {
		s := newSite(t)
		for range 30 {
			s.want(401, "GET", "/api/status", wrong(far))
			s.now = s.now.Add(7 * time.Second)
		}
	})
	t.Run("locks nobody of this machine out", func(t *testing.T) {
		for _, here := range []string{"127.0.0.1:1", "[::1]:1", "[::1%lo]:1", "[::ffff:127.0.0.1]:1", "in-process"} {
			s := newSite(t)
			for range 30 {
				s.want(401, "GET", "/api/status", wrong(here))
			}
			s.want(200, "GET", "/api/status", right(here))
		}
	})
	t.Run("needs a guess", func(t *testing.T) {
		// Any page can make a browser ask without credentials.
		s := newSite(t)
		for range 30 {
			s.want(401, "GET", "/api/status", map[string]string{"RemoteAddr": far})
		}
		s.want(200, "GET", "/api/status", right(far))
	})
	t.Run("counts a network of IPv6 as one", func(t *testing.T) {
		s := newSite(t)
		for i := range 10 {
			s.want(401, "GET", "/api/status", wrong(fmt.Sprintf("[2001:db8:1:2::%x]:1", i+1)))
		}
		s.want(429, "GET", "/api/status", right("[2001:db8:1:2::ffff]:1"))
		s.want(200, "GET", "/api/status", right("[2001:db8:1:3::1]:1"))
	})
	t.Run("is remembered of many, within bounds", func(t *testing.T) {
		s := newSite(t)
		for range 10 {
			s.want(401, "GET", "/api/status", wrong(far))
		}
		for i := range 1023 {
			s.want(401, "GET", "/api/status", wrong(fmt.Sprintf("198.51.%d.%d:1", i/256, i%256)))
		}
		s.want(429, "GET", "/api/status", right(far))
		for i := range 1024 {
			s.want(401, "GET", "/api/status", wrong(fmt.Sprintf("198.18.%d.%d:1", i/256, i%256)))
		}
		s.want(429, "GET", "/api/status", right(far)) // who is locked out is forgotten last
	})
}

func TestRequestsPerSecond(t *testing.T) {
	s := newSite(t, func(o *web.Options) { o.Limits.PerSecond = 5 })
	s.signIn() // one of the token's
	bearer := map[string]string{"Authorization": "Bearer " + token}
	for range 9 {
		s.want(200, "GET", "/api/status", bearer)
	}
	w := s.browse("GET", "/api/status", bearer)
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	w = s.browse("GET", "/v1/models", bearer)
	if w.Code != 429 {
		t.Errorf("%d", w.Code)
	}
	checkErrorShape(t, "/v1/models", w)
	s.want(200, "GET", "/api/status", nil) // a browser has an allowance of its own
	s.want(200, "GET", "/healthz", nil)
	s.now = s.now.Add(time.Second)
	for range 5 {
		s.want(200, "GET", "/api/status", bearer)
	}
	s.want(429, "GET", "/api/status", bearer)
}

func TestRequestsAtOnce(t *testing.T) {
	h := gateway(&fake{}, func(o *web.Options) { o.Limits.AtOnce = 2 })
	srv := httptest.NewServer(h)
	defer srv.Close()
	one, two := get(t, srv, "/api/events", token), get(t, srv, "/api/events", token)
	defer one.Body.Close()
	if w := ask(h, "GET", "/api/status", "", nil); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/healthz", "", nil); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	two.Body.Close()
	for range 1000 { // the handler ends a moment after its client is gone
		if w := ask(h, "GET", "/api/status", "", nil); w.Code == 200 {
			return
		}
		two, err := srv.Client().Get(srv.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		two.Body.Close()
	}
	t.Error("the place of a stream that ended is not given back")
}

func TestLongAddresses(t *testing.T) {
	h := gateway(&fake{})
	if w := ask(h, "GET", "/api/runs?session="+strings.Repeat("a", 33<<10), "", nil); w.Code != 414 {
		t.Errorf("%d", w.Code)
	}
}

// raw sends bytes as they are and returns the answer.
func raw(t *testing.T, srv *httptest.Server, text string) *http.Response {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// What only shows on a real connection: how net/http reads the request's head.
func TestRawRequests(t *testing.T) {
	srv := httptest.NewUnstartedServer(gateway(&fake{}))
	srv.Config.DisableGeneralOptionsHandler = true // as the gateway has it
	srv.Start()
	defer srv.Close()
	defer srv.CloseClientConnections() // or a stream that should have been refused hangs the test
	auth := "Authorization: Bearer " + token + "\r\nConnection: close\r\n"
	for _, tc := range []struct {
		name, text string
		status     int
	}{
		{"plain", "GET /api/status HTTP/1.1\r\nHost: localhost\r\n" + auth, 200},
		{"X-Forwarded-Host counts for nothing", "GET /api/status HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n" + auth, 403},
		{"nor does it harm", "GET /api/status HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example\r\n" + auth, 200},
		{"the target's host is the one that is asked", "GET http://evil.example/api/status HTTP/1.1\r\nHost: localhost\r\n" + auth, 403},
		{"two hosts", "GET /api/status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + auth, 400},
		{"no host", "GET /api/status HTTP/1.1\r\n" + auth, 400},
		{"no host, old protocol", "GET /api/status HTTP/1.0\r\n" + auth, 403},
		{"a WebSocket of another page", "GET /api/events HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer " + token + "\r\nConnection: Upgrade\r\n", 403},
		{"two origins", "GET /api/status HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n" + auth, 403},
		{"an empty origin", "GET /api/status HTTP/1.1\r\nHost: localhost\r\nOrigin:\r\n" + auth, 403},
		{"a tunnel", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n" + auth, 404},
		{"no path, without a token", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", 401},
		{"no path", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n" + auth, 404},
		{"two lengths", "POST /api/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n" + auth, 400},
	} {
		res := raw(t, srv, tc.text+"\r\n")
		if res.StatusCode != tc.status {
			t.Errorf("%s: %d, want %d", tc.name, res.StatusCode, tc.status)
		}
	}
}

// pipes is a listener whose connections wait on the bubble's clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A client that never completes its body is cut off; one that only listens is
// not.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		srv := &http.Server{Handler: gateway(&fake{})} //nolint:gosec // the header's time is the caller's
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		open := func(text string) net.Conn {
			near, far := net.Pipe()
			l.conns <- far
			if _, err := io.WriteString(near, text); err != nil {
				t.Fatal(err)
			}
			return near
		}
		head := " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n"
		began := time.Now()
		slow := open("POST /api/messages" + head + "Content-Length: 100\r\n\r\n{\"ses")
		answer, _ := io.ReadAll(slow) // ends when the server hangs up
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("it was let go after %s", took)
		}
		if strings.Contains(string(answer), " 202 ") {
			t.Errorf("half a message was taken: %s", answer)
		}

		events := bufio.NewReader(open("GET /api/events" + head + "\r\n"))
		for began := time.Now(); time.Since(began) < 5*time.Minute; {
			if _, err := events.ReadString('\n'); err != nil {
				t.Fatalf("a stream ended after %s: %v", time.Since(began), err)
			}
		}
	})
}
