package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 4 << 20

// recovered turns a panic into one log line and a 500 that says nothing of it.
// If the answer has begun already the connection is cut instead, so that
// nobody takes what was sent for the whole.
func (s *server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &trackedWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); !ok || err != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
				s.Logger.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			}
			if tracked.begun {
				panic(http.ErrAbortHandler)
			}
			writeFailure(tracked, r, failure{Status: http.StatusInternalServerError, Detail: "internal error; the gateway's log has the details"})
		}()
		next.ServeHTTP(tracked, r)
	})
}

// trackedWriter knows whether the answer has begun.
type trackedWriter struct {
	http.ResponseWriter
	begun  bool
	status int
}

func (w *trackedWriter) WriteHeader(status int) {
	if !w.begun {
		w.status = status
	}
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun, w.status = true, http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach what w wraps.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// guarded refuses who may not ask, then hands on to the mux or the page. open
// says which patterns need no token.
func (s *server) guarded(open map[string]bool) http.Handler {
	hosts := newHostList(s.Hosts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")

		if f := foreign(r, hosts); f != nil {
			writeFailure(w, r, *f)
			return
		}
		fallback, pattern := s.mux.Handler(r)
		page := s.isPage(r, pattern)
		defer s.counted(w, pattern, page)()
		if !open[pattern] {
			who, f := s.admit(r, page)
			switch {
			case f != nil:
				writeFailure(w, r, *f)
				return
			case who == nobody:
				s.signedOut(w, r)
				return
			}
			if s.Version != "" {
				h.Set("X-GoClaw-Version", s.Version)
			}
			ctx, done, ok := s.flights.take(r.Context())
			if !ok {
				writeFailure(w, r, failure{Status: http.StatusServiceUnavailable, Code: "too_many_requests", RetryAfter: time.Second,
					Detail: fmt.Sprintf("%d requests are under way; try again later (gateway.maxRequests is the limit)", s.Limits.AtOnce)})
				return
			}
			defer done()
			r = r.WithContext(ctx)
		}
		r.Body = timedBody(w, r)
		switch {
		case page:
			s.Page.ServeHTTP(w, r)
		case pattern == "":
			writeFailure(w, r, unrouted(fallback, w, r))
		default:
			s.mux.ServeHTTP(w, r)
		}
	})
}

// admit judges who asks. Nobody may still be told by the page how to sign in.
func (s *server) admit(r *http.Request, page bool) (caller, *failure) {
	who := s.callerOf(r, s.keys.Load())
	if r.Header.Get("Authorization") != "" {
		if wait := s.guesses.judge(r.RemoteAddr, who == byToken, s.Now()); wait > 0 {
			return nobody, locked(wait)
		}
	}
	switch {
	case who == nobody && page:
		return nobody, nil
	case who == nobody:
		return nobody, &failure{Status: http.StatusUnauthorized, Code: "invalid_api_key",
			Detail: "this needs the header Authorization: Bearer TOKEN with the gateway's token"}
	case who == byCookie && forged(r, page):
		return who, &failure{Status: http.StatusForbidden, Code: "not_from_the_page",
			Detail: "a browser's session may be used by the gateway's own page only, which sends " + pageHeader + ": 1"}
	}
	return who, s.overloaded(who)
}

// foreign judges by what name the gateway was called, and from whose page.
func foreign(r *http.Request, hosts hostList) *failure {
	if len(r.RequestURI) > maxURL {
		return &failure{Status: http.StatusRequestURITooLong, Detail: fmt.Sprintf("the address is longer than %d bytes", maxURL)}
	}
	if !hosts.allow(r.Host) {
		return &failure{Status: http.StatusForbidden, Code: "host_not_allowed",
			Detail: fmt.Sprintf("host %q is not allowed: call the gateway by localhost or its configured address", r.Host)}
	}
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !sameOrigin(origins[0], r.Host) {
		return &failure{Status: http.StatusForbidden, Code: "origin_not_allowed",
			Detail: "requests from other origins are not allowed"}
	}
	return nil
}

// unrouted learns from the mux's own answer whether path or method is wrong.
func unrouted(fallback http.Handler, w http.ResponseWriter, r *http.Request) failure {
	probe := &probeWriter{header: http.Header{}}
	fallback.ServeHTTP(probe, r)
	if allow := probe.header.Get("Allow"); probe.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow)
		return failure{Status: probe.status, Detail: fmt.Sprintf("%s does not take %s, only %s", r.URL.Path, r.Method, allow)}
	}
	return failure{Status: http.StatusNotFound, Detail: "there is nothing at " + r.URL.Path}
}

// probeWriter keeps an answer's head and drops its body.
type probeWriter struct {
	header http.Header
	status int
}

func (p *probeWriter) Header() http.Header         { return p.header }
func (p *probeWriter) WriteHeader(status int)      { p.status = status }
func (p *probeWriter) Write(b []byte) (int, error) { return len(b), nil }

// hostList says by which names the gateway may be called.
type hostList struct {
	names   []string
	literal bool // every literal address is allowed
}

func newHostList(hosts []string) hostList {
	var l hostList
	for _, h := range hosts {
		name := hostName(h)
		if addr, err := netip.ParseAddr(name); err == nil && addr.IsUnspecified() || strings.HasPrefix(h, ":") {
			l.literal = true
		}
		l.names = append(l.names, name)
	}
	return l
}

// allow judges a Host header. A rebinding page can't forge a literal address
// or localhost: its requests carry the name that its own page was loaded from.
func (l hostList) allow(host string) bool {
	name := hostName(host)
	if name == "" {
		return false
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" && (l.literal || addr.Unmap().IsLoopback()) {
		return true
	}
	return name == "localhost" || slices.Contains(l.names, name)
}

// hostName is the lower-case name or address in a Host header or a listen
// address, without port, brackets or final dot; "" if it is no such thing.
func hostName(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) {
			return ""
		}
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// sameOrigin reports whether a page of origin was served under host. The
// scheme may differ: a proxy may speak TLS for the gateway.
func sameOrigin(origin, host string) bool {
	scheme, name, ok := strings.Cut(origin, "://")
	return ok && (scheme == "http" || scheme == "https") && strings.EqualFold(name, host)
}
