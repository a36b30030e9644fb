package web

import (
	_ "embed"
	"net"
	"net/http"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

// pageHeader is what a page's request must carry to change anything. Another
// site's page can't send it: its browser would ask first, and be refused.
const pageHeader = "X-GoClaw-Page"

//go:embed signedin.html
var signedIn []byte

func (s *server) loginRoutes() []route {
	return []route{
		{pattern: "POST /api/login-links", handle: s.newLoginLink, op: openapi.Operation{
			ID: "newLoginLink", Tag: "login", Summary: "Make a link that signs a browser in, once",
			About:   "It takes the token itself, not a browser's session.",
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "the link", Body: goclaw.LoginLink{}}},
			Errors:  []int{http.StatusNotFound},
		}},
		{pattern: "GET /login", open: true, handle: s.login, op: openapi.Operation{
			ID: "login", Tag: "login", Summary: "Sign a browser in by a link",
			Query: []openapi.Param{{Name: "code", About: "of a link that POST /api/login-links made"}},
			Answers: []openapi.Answer{
				{Status: http.StatusSeeOther, About: "signed in: go to the page"},
				{Status: http.StatusOK, About: "signed in, for a browser that came from another site", Media: "text/html"},
				{Status: http.StatusNoContent, About: "the link was only looked at"},
				{Status: http.StatusUnauthorized, About: "the link was used already or is too old", Media: "text/html"},
			},
			Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests},
		}},
		{pattern: "POST /api/logout", handle: s.logout, op: openapi.Operation{
			ID: "logout", Tag: "login", Summary: "End the session of the browser that asks",
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "signed out"}},
		}},
		{pattern: "POST /api/token/rotate", handle: s.rotateToken, op: openapi.Operation{
			ID: "rotateToken", Tag: "login", Summary: "Put another token in place of this one",
			About:   "All that came from the old one ends: sessions of browsers, login links, requests under way.",
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "done; the new one is in the home's file token"}},
			Errors:  []int{http.StatusNotFound},
		}},
	}
}

// newLoginLink makes a link that signs a browser in, once. It wants the token
// itself: a stolen cookie makes no second one.
func (s *server) newLoginLink(w http.ResponseWriter, r *http.Request) {
	keys := s.keys.Load()
	if !keys.opensBearer(r) {
		s.fail(w, r, tokenNeeded("goclaw page"))
		return
	}
	if s.Page == nil {
		s.fail(w, r, failure{Status: http.StatusNotFound, Detail: "this gateway serves no web page"})
		return
	}
	scheme := "http://"
	if overTLS(r) {
		scheme = "https://"
	}
	code, ends := keys.newCode(s.Now())
	writeJSON(w, http.StatusCreated, goclaw.LoginLink{URL: scheme + r.Host + "/login?code=" + code, ExpiresAt: goclaw.At(ends)})
}

// tokenNeeded refuses a browser's session.
func tokenNeeded(command string) failure {
	return failure{Status: http.StatusForbidden, Code: "token_needed", Detail: "this is for the holder of the token only; in a terminal: " + command}
}

// rotateToken ends the present token and all that came from it: sessions of
// browsers, login links, and the requests under way.
func (s *server) rotateToken(w http.ResponseWriter, r *http.Request) {
	if !s.keys.Load().opensBearer(r) {
		s.fail(w, r, tokenNeeded("goclaw token rotate"))
		return
	}
	if s.NewToken == nil {
		s.fail(w, r, failure{Status: http.StatusNotFound, Detail: "this gateway's token can't be changed"})
		return
	}
	s.rotating.Lock()
	defer s.rotating.Unlock()
	token, err := s.NewToken(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.keys.Store(newKeys(token))
	w.WriteHeader(http.StatusNoContent)
	s.flights.end(errRotated)
}

// login takes a link's code and gives a cookie for it.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	keys := s.keys.Load()
	if s.Page == nil {
		s.fail(w, r, failure{Status: http.StatusNotFound, Detail: "this gateway serves no web page"})
		return
	}
	now := s.Now()
	// What only looks at a link ahead of the person must not use it up.
	if r.Method == http.MethodHead || strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	right := keys.redeem(given(r).Text("code"), now)
	if wait := s.guesses.judge(r.RemoteAddr, right, now); wait > 0 {
		writeFailure(w, r, *locked(wait))
		return
	}
	if right {
		value, ends := keys.newSession(now)
		setCookie(w, r, value, ends)
	} else if s.callerOf(r, keys) == nobody {
		s.signedOut(w, r)
		return
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// The browser came from another site's page, such as a terminal in the
		// browser: it would not show a strict cookie after a redirect.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(signedIn)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the session of the browser that asks.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	keys := s.keys.Load()
	if c, err := r.Cookie(cookieName(r)); err == nil {
		if id, ends, ok := keys.session(c.Value, s.Now()); ok {
			keys.signOut(id, ends, s.Now())
		}
	}
	setCookie(w, r, "", time.Unix(0, 0))
	w.WriteHeader(http.StatusNoContent)
}

// signedOut answers a browser that is not signed in: the page says how to be.
func (s *server) signedOut(w http.ResponseWriter, r *http.Request) {
	if s.SignedOut != nil {
		s.SignedOut.ServeHTTP(w, r)
		return
	}
	detail := "not signed in; goclaw page prints a link that signs a browser in"
	if r.URL.Path == "/login" {
		detail = "this link was used already, or is older than two minutes; goclaw page prints a fresh one"
	}
	s.fail(w, r, failure{Status: http.StatusUnauthorized, Detail: detail})
}

// setCookie gives the browser its session; an end in the past takes it away.
func setCookie(w http.ResponseWriter, r *http.Request, value string, ends time.Time) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", Expires: ends,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: overTLS(r),
	})
}

// cookieName has the port in it: browsers give a host's cookies to all of its
// ports, and gateways side by side must not sign each other's person out.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || port == "" {
		return "goclaw"
	}
	return "goclaw-" + port
}

// overTLS believes a proxy: who lies to it gets a stricter cookie, no more.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// caller is how a request showed that it may ask.
type caller int

const (
	nobody caller = iota
	byCookie
	byToken
)

// callerOf judges what r brings. A request with an Authorization header is
// judged by it alone.
func (s *server) callerOf(r *http.Request, keys *keys) caller {
	if r.Header.Get("Authorization") != "" {
		if keys.opensBearer(r) {
			return byToken
		}
		return nobody
	}
	if c, err := r.Cookie(cookieName(r)); err == nil {
		if _, _, ok := keys.session(c.Value, s.Now()); ok {
			return byCookie
		}
	}
	return nobody
}

// forged reports whether a request that a cookie lets in may come from a page
// of somebody else, which browsers send with the cookie too: of another site,
// or of another port of this host, which browsers take for the same site.
func forged(r *http.Request, page bool) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		// Who follows a link to the page itself sees it; nothing else does.
		if !page || r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return true
		}
	}
	return !isSafe(r.Method) && r.Header.Get(pageHeader) != "1"
}

func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead
}

// isPage reports whether r is for the web page: what no route answers and no
// program would ask for.
func (s *server) isPage(r *http.Request, pattern string) bool {
	if s.Page == nil || pattern != "" || !isSafe(r.Method) {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return first != "api" && first != "v1"
}
