package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener gives the server connections that wait on a bubble's clock.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error { close(l.done); return nil }
func (pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

// Who sends a request's head drop by drop, or nothing after an answer, is let
// go.
func TestSlowClients(t *testing.T) {
	for _, tc := range []struct {
		name, first string
		drip        string
		least, most time.Duration
	}{
		{"a head without end", "GET / HTTP/1.1\r\n", "X-A: b\r\n", headerTime, headerTime + 2*time.Second},
		{"half a line", "GET /", "", headerTime, headerTime + 2*time.Second},
		{"silence from the start", "", "", headerTime, idleTime + time.Second},
		{"silence after an answer", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", idleTime, idleTime + time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := pipeListener{make(chan net.Conn), make(chan struct{})}
			srv := newServer(t.Context(), http.HandlerFunc(fine), slog.New(slog.DiscardHandler))
			go func() { _ = srv.Serve(l) }()
			defer srv.Close()
			near, far := net.Pipe()
			l.conns <- far
			began := time.Now()
			var writing sync.WaitGroup
			writing.Go(func() {
				for text := tc.first; ; text = tc.drip {
					if _, err := io.WriteString(near, text); err != nil || text == "" || tc.drip == "" {
						return
					}
					time.Sleep(time.Second) // of the bubble
				}
			})
			_, _ = io.Copy(io.Discard, near) // until the server hangs up
			if took := time.Since(began); took < tc.least || took > tc.most {
				t.Errorf("%s: let go after %s", tc.name, took)
			}
			near.Close()
			writing.Wait()
		})
	}
}

func TestLargeHeads(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = newServer(t.Context(), http.HandlerFunc(fine), slog.New(slog.DiscardHandler))
	srv.Start()
	defer srv.Close()
	for size, want := range map[int]int{10 << 10: 200, 200 << 10: 431} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-A", strings.Repeat("a", size))
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", size, res.StatusCode, want)
		}
	}
}

// What asks for no path is answered by the handler too, not by net/http.
func TestGeneralOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipeListener{make(chan net.Conn), make(chan struct{})}
		srv := newServer(t.Context(), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		near, far := net.Pipe()
		l.conns <- far
		go func() {
			_, _ = io.WriteString(near, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		}()
		answer, err := io.ReadAll(near)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404") {
			t.Errorf("%q, %v", answer, err)
		}
	})
}
