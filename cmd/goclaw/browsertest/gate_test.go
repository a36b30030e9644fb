package browsertest

import (
	"bytes"
	"net/http"
	"sync"
)

// gate stands between the gateway and its models. While it is shut, a piece of
// an answer that holds its word waits: what a test wants to see under way is
// under way until it has been seen.
type gate struct {
	mu   sync.Mutex
	word string
	open chan struct{} // nil: nothing waits
}

// shut makes what holds the word wait.
func (g *gate) shut(word string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.word, g.open = word, make(chan struct{})
}

// release lets everything go on.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	g.open = nil
}

// wait returns when text may pass, or the client has gone.
func (g *gate) wait(r *http.Request, text []byte) {
	g.mu.Lock()
	open, waits := g.open, g.open != nil && bytes.Contains(text, []byte(g.word))
	g.mu.Unlock()
	if !waits {
		return
	}
	select {
	case <-open:
	case <-r.Context().Done():
	}
}

func (g *gate) hold(models http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		models.ServeHTTP(gated{w, r, g}, r)
	})
}

// gated is an answer whose pieces wait.
type gated struct {
	http.ResponseWriter
	r *http.Request
	g *gate
}

func (w gated) Write(p []byte) (int, error) {
	w.g.wait(w.r, p)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets a response controller reach the connection.
func (w gated) Unwrap() http.ResponseWriter { return w.ResponseWriter }
