package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/edge/web"
)

// site is a gateway with a page, a clock, and a browser's one cookie.
type site struct {
	t      *testing.T
	h      http.Handler
	now    time.Time
	cookie string
}

func newSite(t *testing.T, with ...func(*web.Options)) *site {
	s := &site{t: t, now: time.Unix(1_800_000_000, 0)}
	says := func(status int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text + " " + r.URL.Path))
		})
	}
	s.h = gateway(&fake{}, append([]func(*web.Options){func(o *web.Options) {
		o.Page, o.SignedOut = says(200, "page"), says(401, "signed out")
		o.Now = func() time.Time { return s.now }
	}}, with...)...)
	return s
}

// browse asks as a browser does: with the cookie and without the token.
func (s *site) browse(method, target string, header map[string]string) *httptest.ResponseRecorder {
	all := map[string]string{"Authorization": "", "Cookie": s.cookie}
	for name, value := range header {
		all[name] = value
	}
	return ask(s.h, method, target, "", all)
}

// link makes a login link and returns its path.
func (s *site) link() string {
	s.t.Helper()
	w := ask(s.h, "POST", "/api/login-links", "", nil)
	var link goclaw.LoginLink
	if err := json.Unmarshal(w.Body.Bytes(), &link); err != nil || w.Code != 201 {
		s.t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	u, err := url.Parse(link.URL)
	if err != nil || u.Host != "localhost:8080" || u.Scheme != "http" {
		s.t.Fatalf("link %q: %v", link.URL, err)
	}
	if want := goclaw.At(s.now.Add(2 * time.Minute)); link.ExpiresAt != want {
		s.t.Errorf("it ends at %d, want %d", link.ExpiresAt, want)
	}
	return u.RequestURI()
}

// signIn follows a fresh link.
func (s *site) signIn() {
	s.t.Helper()
	w := s.browse("GET", s.link(), nil)
	got := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || len(got) != 1 {
		s.t.Fatalf("%d %v", w.Code, w.Header())
	}
	s.cookie = got[0].Name + "=" + got[0].Value
}

func (s *site) want(status int, method, target string, header map[string]string) {
	s.t.Helper()
	if w := s.browse(method, target, header); w.Code != status {
		s.t.Errorf("%s %s %v: %d, want %d: %s", method, target, header, w.Code, status, w.Body)
	}
}

func TestSignIn(t *testing.T) {
	s := newSite(t)
	s.want(401, "GET", "/", nil)
	s.want(401, "GET", "/api/status", nil)
	path := s.link()
	w := s.browse("GET", path, nil)
	cookie := w.Header().Get("Set-Cookie")
	for _, part := range []string{"goclaw-8080=", "; Path=/;", "; HttpOnly", "; SameSite=Strict", "; Expires="} {
		if !strings.Contains(cookie, part) {
			t.Errorf("no %q in %q", part, cookie)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Errorf("a secure cookie without TLS: %q", cookie)
	}
	s.cookie, _, _ = strings.Cut(cookie, ";")
	s.want(200, "GET", "/", nil)
	s.want(200, "GET", "/runs/1", nil)
	s.want(200, "HEAD", "/", nil)
	s.want(200, "GET", "/api/status", nil)
	s.want(404, "GET", "/api/nothing", nil)
	s.want(404, "GET", "/v1/nothing", nil)
	s.want(200, "GET", "/", map[string]string{"Authorization": "Bearer " + token})
	s.want(401, "GET", "/api/status", map[string]string{"Authorization": "Bearer wrong"})
	if csp := s.browse("GET", "/", nil).Header().Get("Content-Security-Policy"); csp != "default-src 'self'" {
		t.Errorf("the page's policy is %q", csp)
	}
	if csp := s.browse("GET", "/api/status", nil).Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
		t.Errorf("the API's policy is %q", csp)
	}
}

func TestLoginLinksWorkOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *site, path string) string
	}{
		{"used", func(s *site, path string) string { s.browse("GET", path, nil); return path }},
		{"old", func(s *site, path string) string { s.now = s.now.Add(2 * time.Minute); return path }},
		{"wrong", func(_ *site, path string) string { return path[:len(path)-1] + "_" }},
		{"empty", func(*site, string) string { return "/login?code=" }},
		{"none", func(*site, string) string { return "/login" }},
		{"one of too many", func(s *site, path string) string {
			for range 16 {
				s.now = s.now.Add(time.Second)
				s.link()
			}
			return path
		}},
	} {
		s := newSite(t)
		path := tc.do(s, s.link())
		w := s.browse("GET", path, nil)
		if w.Code != 401 || w.Body.String() != "signed out /login" || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s %v", tc.name, w.Code, w.Body, w.Header())
		}
		s.signIn()
		if w := s.browse("GET", path, nil); w.Code != 303 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s, signed in already: %d %v", tc.name, w.Code, w.Header())
		}
	}
}

// What only looks at a link leaves it to the person.
func TestLookingAtALoginLink(t *testing.T) {
	s := newSite(t)
	path := s.link()
	s.want(204, "HEAD", path, nil)
	s.want(204, "GET", path, map[string]string{"Sec-Purpose": "prefetch;prerender"})
	s.want(303, "GET", path, nil)
}

// A link that is followed in another site's page, such as a terminal in the
// browser: the page loads itself again, from here.
func TestLoginFromAnotherSite(t *testing.T) {
	s := newSite(t)
	w := s.browse("GET", s.link(), map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
	if w.Code != 200 || !strings.Contains(w.Body.String(), `content="0;url=/"`) || w.Header().Get("Set-Cookie") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestCookiesBehindTLS(t *testing.T) {
	s := newSite(t)
	w := s.browse("GET", s.link(), map[string]string{"X-Forwarded-Proto": "https"})
	if !strings.Contains(w.Header().Get("Set-Cookie"), "; Secure") {
		t.Errorf("not secure: %v", w.Header())
	}
}

func TestSessionsEnd(t *testing.T) {
	own := map[string]string{"X-GoClaw-Page": "1"}
	t.Run("with time", func(t *testing.T) {
		s := newSite(t)
		s.signIn()
		s.now = s.now.Add(30*24*time.Hour - time.Second)
		s.want(200, "GET", "/", nil)
		s.now = s.now.Add(time.Second)
		s.want(401, "GET", "/", nil)
	})
	t.Run("by signing out", func(t *testing.T) {
		s := newSite(t)
		s.signIn()
		s.want(403, "POST", "/api/logout", nil)
		s.want(200, "GET", "/", nil)
		w := s.browse("POST", "/api/logout", own)
		if w.Code != 204 || !strings.Contains(w.Header().Get("Set-Cookie"), "goclaw-8080=; Path=/; Expires=Thu, 01 Jan 1970") {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		s.want(401, "GET", "/", nil)
	})
	t.Run("not with a restart", func(t *testing.T) {
		s := newSite(t)
		s.signIn()
		again := newSite(t)
		again.cookie = s.cookie
		again.want(200, "GET", "/", nil)
	})
	t.Run("with the token", func(t *testing.T) {
		s := newSite(t)
		s.signIn()
		other := newSite(t, func(o *web.Options) { o.Token = "another" })
		other.cookie = s.cookie
		other.want(401, "GET", "/", nil)
	})
}

func TestForgedCookies(t *testing.T) {
	s := newSite(t)
	s.signIn()
	good := strings.TrimPrefix(s.cookie, "goclaw-8080=")
	flipped := []byte(good)
	flipped[3] ^= 1
	for name, cookie := range map[string]string{
		"another port's name": "goclaw-8081=" + good,
		"one bit":             "goclaw-8080=" + string(flipped),
		"cut":                 "goclaw-8080=" + good[:40],
		"empty":               "goclaw-8080=",
		"longer":              "goclaw-8080=" + good + "A",
		"the token":           "goclaw-8080=" + token,
	} {
		s.cookie = cookie
		if w := s.browse("GET", "/api/status", nil); w.Code != 401 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	none := newSite(t, func(o *web.Options) { o.Token = "" })
	none.cookie = "goclaw-8080=" + good
	none.want(401, "GET", "/", nil)
}

// What a page of another origin can make a browser send does nothing.
func TestForgedRequestsOfABrowser(t *testing.T) {
	s := newSite(t)
	s.signIn()
	const change, read = "PUT /api/pause", "GET /api/status"
	for _, tc := range []struct {
		name, ask string
		header    map[string]string
		status    int
	}{
		{"the page", change, map[string]string{"X-GoClaw-Page": "1", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}, 200},
		{"an old browser", change, map[string]string{"X-GoClaw-Page": "1"}, 200},
		{"the address line", read, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"a form", change, nil, 403},
		{"a form of this host", change, map[string]string{"Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}, 403},
		{"another site", change, map[string]string{"X-GoClaw-Page": "1", "Sec-Fetch-Site": "cross-site"}, 403},
		{"another port", change, map[string]string{"X-GoClaw-Page": "1", "Sec-Fetch-Site": "same-site"}, 403},
		{"another port reads", read, map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"another site's origin", change, map[string]string{"X-GoClaw-Page": "1", "Origin": "https://evil.example"}, 403},
		{"another port's origin", change, map[string]string{"X-GoClaw-Page": "1", "Origin": "http://localhost:9999"}, 403},
		{"no origin to speak of", change, map[string]string{"X-GoClaw-Page": "1", "Origin": "null"}, 403},
		{"a link to the API", read, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403},
		{"a link to the page", "GET /", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 200},
		{"an image of the page", "GET /", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"a preflight", "OPTIONS /api/pause", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}, 403},
	} {
		method, path, _ := strings.Cut(tc.ask, " ")
		w := s.browse(method, path, tc.header)
		if w.Code != tc.status {
			t.Errorf("%s: %d, want %d: %s", tc.name, w.Code, tc.status, w.Body)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: CORS: %v", tc.name, w.Header())
		}
	}
}

// A stolen cookie makes no further session.
func TestLoginLinksWantTheToken(t *testing.T) {
	s := newSite(t)
	s.signIn()
	s.want(403, "POST", "/api/login-links", map[string]string{"X-GoClaw-Page": "1"})
}

func TestNoPage(t *testing.T) {
	h := gateway(&fake{})
	for _, path := range []string{"POST /api/login-links", "GET /login", "GET /"} {
		method, path, _ := strings.Cut(path, " ")
		if w := ask(h, method, path, "", nil); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
