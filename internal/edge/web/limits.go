package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what clients may ask of the gateway. Zero means the default.
type Limits struct {
	// PerSecond are the requests that the holders of the token may make in a
	// second, and as many those of browsers' sessions. Default: 2000.
	PerSecond int
	// AtOnce are the requests under way at a time, streams and long polls
	// included. Default: 2000.
	AtOnce int
}

const (
	defaultPerSecond = 2000
	defaultAtOnce    = 2000
	burst            = 2 // seconds' worth of requests at once

	// maxURL bounds a request's path and query, in bytes.
	maxURL = 32 << 10
	// bodyTime is how long a client may take to send a body.
	bodyTime = time.Minute
)

// flights are the requests under way.
type flights struct {
	most int

	mu  sync.Mutex
	all map[int]context.CancelCauseFunc
	id  int
}

// take notes a request; ok is false if there are too many. The caller calls
// done when the request is over.
func (f *flights) take(ctx context.Context) (_ context.Context, done func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= f.most {
		return nil, nil, false
	}
	f.id++
	id := f.id
	ctx, cancel := context.WithCancelCause(ctx)
	f.all[id] = cancel
	return ctx, func() {
		f.mu.Lock()
		delete(f.all, id)
		f.mu.Unlock()
		cancel(nil)
	}, true
}

// end ends all of them.
func (f *flights) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.all {
		cancel(why)
	}
}

// errRotated is why a request under way ends when the token changes.
var errRotated = errors.New("the gateway's token was changed")

// overloaded reports why there is no place for one more request of the caller.
func (s *server) overloaded(who caller) *failure {
	limiter := s.byToken
	if who == byCookie {
		limiter = s.byCookie
	}
	if limiter.AllowN(s.Now(), 1) {
		return nil
	}
	return &failure{Status: http.StatusTooManyRequests, Code: "rate_limited", RetryAfter: time.Second,
		Detail: fmt.Sprintf("more than %d requests in a second; try again in a second (gateway.requestsPerSecond is the limit)", s.Limits.PerSecond)}
}

func newLimiter(perSecond int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), perSecond*burst)
}

const (
	// maxGuesses are the wrong tokens in guessWindow after which an address has
	// to wait for lockout.
	maxGuesses  = 10
	guessWindow = time.Minute
	lockout     = 30 * time.Second
	// maxAddresses bounds the memory of them.
	maxAddresses = 1024
)

// guesses remembers who brought wrong credentials. Requests without any don't
// count: any page can make a browser send those.
type guesses struct {
	mu sync.Mutex
	by map[netip.Prefix]guess
}

type guess struct {
	wrong int
	since time.Time
	until time.Time // locked out until then
}

// judge takes note of a request with credentials and tells how long its sender
// has to wait, right or wrong. Nobody on this machine has to: all its processes
// have one address, and none of them shall lock the gateway's owner out.
func (g *guesses) judge(remote string, right bool, now time.Time) time.Duration {
	from, here := network(remote)
	if here {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.by[from]
	if wait := seen.until.Sub(now); wait > 0 {
		return wait
	}
	if right {
		return 0
	}
	if now.Sub(seen.since) >= guessWindow {
		seen = guess{since: now}
	}
	if seen.wrong++; seen.wrong >= maxGuesses {
		seen = guess{until: now.Add(lockout)}
	}
	g.makeRoom(from, now)
	g.by[from] = seen
	return 0
}

// makeRoom forgets who need not be remembered; g.mu is held.
func (g *guesses) makeRoom(from netip.Prefix, now time.Time) {
	if _, known := g.by[from]; known || len(g.by) < maxAddresses {
		return
	}
	var first netip.Prefix
	least := time.Time{}
	for p, seen := range g.by {
		last := seen.since
		if seen.until.After(last) {
			last = seen.until
		}
		if now.Sub(last) >= guessWindow {
			delete(g.by, p)
		} else if least.IsZero() || last.Before(least) {
			first, least = p, last
		}
	}
	if len(g.by) >= maxAddresses {
		delete(g.by, first)
	}
}

// network is who an address belongs to: one IPv4 address, or the network that a
// customer of IPv6 gets. here: this machine, or this process.
func network(remote string) (_ netip.Prefix, here bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}, true
	}
	addr := at.Addr().Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	return p, err != nil || addr.IsLoopback()
}

// locked is the answer to who has to wait.
func locked(wait time.Duration) *failure {
	return &failure{Status: http.StatusTooManyRequests, Code: "locked_out", RetryAfter: wait,
		Detail: fmt.Sprintf("too many wrong tokens from this address; try again in %d s", wholeSeconds(wait))}
}

func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

func retryAfter(h http.Header, d time.Duration) {
	if d > 0 {
		h.Set("Retry-After", strconv.Itoa(wholeSeconds(d)))
	}
}

// timedBody bounds a body by size, and by how long the client takes to send it.
func timedBody(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return http.NoBody
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTime)) != nil {
		control = nil // in memory
	}
	return &timed{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody), control: control}
}

type timed struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read lifts the deadline at the body's end: the connection is read on, to
// notice that the client goes away. After another error it stays, for the
// server reads what is left of a body.
func (t *timed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && t.control != nil {
		_ = t.control.SetReadDeadline(time.Time{})
		t.control = nil
	}
	return n, err
}
