package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var embedded embed.FS

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// forever lets a browser keep a file whose address names its content.
const forever = "private, max-age=31536000, immutable"

// types are the media types of the files, by extension: the system's own table
// is no one's to rely on.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8",
}

// Handler serves the page at / and its files below /assets/.
func Handler() http.Handler { return lazy("index.html", http.StatusOK) }

// SignedOut serves, at any path, a page that says how to sign in, with the
// status 401. It needs /assets/ for its looks: those files need no login.
func SignedOut() http.Handler { return lazy("signedout.html", http.StatusUnauthorized) }

// lazy reads no file before the first request: most processes serve no page.
func lazy(document string, status int) http.Handler {
	handler := sync.OnceValue(func() http.Handler { return newSite().handler(document, status) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) })
}

// site is the embedded files, with their addresses.
type site struct {
	files map[string][]byte // by path below assets
	base  string            // "/assets/HASH/"
}

func newSite() site {
	root, err := fs.Sub(embedded, "assets")
	if err == nil {
		var s site
		if s, err = read(root); err == nil {
			return s
		}
	}
	// Files inside of the program can't fail to be read.
	panic(fmt.Sprintf("page: %v", err))
}

// read takes all files of a folder in, and names them by what they hold.
func read(root fs.FS) (site, error) {
	s := site{files: map[string][]byte{}}
	sum := sha256.New()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		s.files[name] = data
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		return nil
	})
	s.base = "/assets/" + hex.EncodeToString(sum.Sum(nil))[:16] + "/"
	return s, err
}

// handler serves the files, and the document with a status for all else.
func (s site) handler(document string, status int) http.Handler {
	html := bytes.ReplaceAll(s.files[document], []byte("{{base}}"), []byte(s.base))
	sum := sha256.Sum256(html)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the page takes GET only", http.StatusMethodNotAllowed)
		case strings.HasPrefix(r.URL.Path, "/assets/"):
			s.asset(w, r)
		case status != http.StatusOK:
			h.Set("Content-Type", types[".html"])
			h.Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			if r.Method == http.MethodGet {
				_, _ = w.Write(html) // the browser may have left
			}
		case r.URL.Path != "/":
			http.Error(w, "there is nothing at "+r.URL.Path+"; the page is at /", http.StatusNotFound)
		default:
			h.Set("Content-Type", types[".html"])
			h.Set("Cache-Control", "no-cache")
			h.Set("ETag", tag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(html))
		}
	})
}

// asset serves one file at its present address only: an old page must not load
// half of a new one.
func (s site) asset(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, s.base)
	data, found := s.files[name]
	if !ok || !found || path.Ext(name) == ".html" {
		http.Error(w, "there is no such file; load the page again", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", types[path.Ext(name)])
	h.Set("Cache-Control", forever)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
