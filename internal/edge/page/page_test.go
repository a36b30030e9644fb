package page_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"goclaw/internal/edge/page"
)

func ask(t *testing.T, h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// linked are the addresses that a document names.
var linked = regexp.MustCompile(`(?:src|href)="([^"]+)"`)

func TestHandler(t *testing.T) {
	h := page.Handler()
	w := ask(t, h, "GET", "/")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("GET /: %d %v", w.Code, w.Header())
	}
	links := linked.FindAllStringSubmatch(w.Body.String(), -1)
	if len(links) < 4 {
		t.Fatalf("the page names too little:\n%s", w.Body)
	}
	for _, link := range links {
		got := ask(t, h, "GET", link[1])
		if got.Code != 200 || got.Body.Len() == 0 {
			t.Errorf("GET %s: %d, %d bytes", link[1], got.Code, got.Body.Len())
		}
		if cache := got.Header().Get("Cache-Control"); !strings.Contains(cache, "immutable") {
			t.Errorf("GET %s: Cache-Control %q", link[1], cache)
		}
	}
	if got := ask(t, h, "GET", "/", "If-None-Match", w.Header().Get("ETag")); got.Code != 304 {
		t.Errorf("an unchanged page: %d, want 304", got.Code)
	}
}

func TestRefusals(t *testing.T) {
	h := page.Handler()
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"POST", "/", 405},
		{"GET", "/nothing", 404},
		{"GET", "/assets/", 404},
		{"GET", "/assets/0000000000000000/js/main.js", 404}, // another version's
		{"GET", "/assets/js/main.js", 404},
		{"GET", "/assets/../page.go", 404},
	} {
		if got := ask(t, h, c.method, c.path); got.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got.Code, c.want)
		}
	}
}

func TestSignedOut(t *testing.T) {
	h := page.SignedOut()
	w := ask(t, h, "GET", "/anywhere")
	body := w.Body.String()
	if w.Code != 401 || !strings.Contains(body, "goclaw page") {
		t.Fatalf("%d\n%s", w.Code, body)
	}
	if strings.Contains(body, "<script") {
		t.Error("it has a script")
	}
	for _, link := range linked.FindAllStringSubmatch(body, -1) {
		if got := ask(t, h, "GET", link[1]); got.Code != 200 {
			t.Errorf("GET %s: %d", link[1], got.Code)
		}
	}
}

func TestPolicy(t *testing.T) {
	for name, h := range map[string]http.Handler{"page": page.Handler(), "signed out": page.SignedOut()} {
		for _, path := range []string{"/", "/assets/x"} {
			policy := ask(t, h, "GET", path).Header().Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s, %s: the policy %q lacks %q", name, path, policy, want)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
				t.Errorf("%s: the policy %q allows too much", name, policy)
			}
		}
	}
}

// asHTML are the ways in which a script would make text into HTML or code.
var asHTML = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function|srcdoc`)

// Text of models, tools and files can't become markup where nothing can.
func TestNoTextBecomesMarkup(t *testing.T) {
	files := os.DirFS("assets")
	err := fs.WalkDir(files, "js", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		for i, line := range strings.Split(string(text), "\n") {
			if asHTML.MatchString(line) || strings.Contains(line, `style="`) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		if n := strings.Count(string(text), "\n"); n > 500 {
			t.Errorf("%s has %d lines", path, n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
