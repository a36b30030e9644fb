package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"goclaw"
)

const (
	followAim  = 50.0 // ms
	followMem  = 60.0 // MB
	followWait = 2 * time.Minute
	sampleEach = 100 * time.Millisecond

	// apart lie the beginnings of the runs, so that they don't go in step.
	apart = 10 * time.Millisecond
)

// following measures what it takes to show live runs to as many clients.
func (b *bench) following(ctx context.Context) ([]Figure, error) {
	g, err := b.gateway(ctx, "")
	if err != nil {
		return nil, err
	}
	defer g.stop()
	if err := b.reset(ctx); err != nil {
		return nil, err
	}
	n := b.size.followers
	c := newCrowd(g, n)
	defer c.close()
	if err := c.begin(ctx, b.size.followed); err != nil {
		return nil, err
	}
	busy, began := g.worked(), time.Now()
	stop := make(chan struct{})
	peak := make(chan float64)
	go func() { peak <- mostAnonymous(g.process, stop) }()
	err = c.wait(ctx)
	took, used := time.Since(began), g.worked()-busy
	close(stop)
	most := <-peak
	if err != nil {
		return nil, err
	}
	held, err := c.stalled.finish(ctx, c.http, g.url)
	if err != nil {
		return nil, fmt.Errorf("the client that stalled: %w", err)
	}
	return c.figures(held, most, used, took), nil
}

// crowd are the clients, one for each run, and one more that reads nothing.
type crowd struct {
	g       *gateway
	clients []*follower
	stalled *staller
	http    *http.Client
	done    sync.WaitGroup
}

func newCrowd(g *gateway, n int) *crowd {
	c := &crowd{g: g, http: &http.Client{Transport: &http.Transport{MaxIdleConns: -1, DisableKeepAlives: true}}}
	for range n {
		c.clients = append(c.clients, &follower{})
	}
	return c
}

// begin starts the runs and, at once, a client for each; the first run, which
// says much, is also followed by one that stalls.
func (c *crowd) begin(ctx context.Context, steps int) error {
	for i, f := range c.clients {
		order := fmt.Sprintf("%s%d", followOrder, steps)
		if i == 0 {
			order = fmt.Sprintf("%s%d", chatterOrder, steps)
		}
		receipt, err := c.g.api.Receive(ctx, goclaw.Inbound{Session: goclaw.APIKey("main", fmt.Sprintf("follow-%d", i)), Text: order})
		if err != nil {
			return err
		}
		f.run = receipt.Run.ID
		if i == 0 {
			if c.stalled, err = stall(c.g.url, f.run); err != nil {
				return err
			}
		}
		c.done.Go(func() { f.err = f.read(ctx, c.http, c.g.url) })
		if err := pause(ctx, apart); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { c.done.Wait(); close(ended) }()
	limit := time.NewTimer(followWait)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		c.http.CloseIdleConnections()
		return fmt.Errorf("the runs did not end within %s", followWait)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var errs []error
	for i, f := range c.clients {
		if f.err != nil {
			errs = append(errs, fmt.Errorf("client %d: %w", i, f.err))
		}
	}
	return errors.Join(errs...)
}

func (c *crowd) close() {
	if c.stalled != nil {
		_ = c.stalled.conn.Close() // it was only read
	}
	c.http.CloseIdleConnections()
}

// follower is a client that follows one run, and what it saw.
type follower struct {
	run    string
	next   int    // the number of the event that it waits for
	late   sample // of events that were recorded while it was there
	pieces int
	lags   int
	bytes  int
	err    error
}

// read follows the run to its end, from the event that it waits for.
func (f *follower) read(ctx context.Context, hc *http.Client, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/runs/"+f.run+"/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+apiToken)
	if f.next > 0 {
		req.Header.Set("Last-Event-ID", strconv.Itoa(f.next-1))
	}
	res, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", res.StatusCode)
	}
	return f.take(res.Body, goclaw.At(time.Now()))
}

// take reads events; those recorded since count for how late they come.
func (f *follower) take(r io.Reader, since goclaw.Millis) error {
	in := bufio.NewReader(r)
	kind, id := "", ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the stream broke off after event %d: %w", f.next-1, err)
		}
		f.bytes += len(line)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			if kind == "end" {
				return nil
			}
			if err := f.event(kind, id, value, since); err != nil {
				return err
			}
			kind, id = "", ""
		}
	}
}

func (f *follower) event(kind, id, data string, since goclaw.Millis) error {
	switch kind {
	case "text":
		f.pieces++
	case "lag":
		f.lags++
	case "event":
		now := time.Now()
		var e goclaw.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if e.Seq != f.next || id != strconv.Itoa(f.next) {
			return fmt.Errorf("event %d (id %s) came instead of %d", e.Seq, id, f.next)
		}
		f.next++
		if e.At > since {
			f.late = append(f.late, now.Sub(e.At.Time()))
		}
	}
	return nil
}

// staller is a client that asks, and reads nothing until it is told to.
type staller struct {
	conn net.Conn
	out  follower
}

func stall(base, run string) (*staller, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	s := &staller{conn: conn, out: follower{run: run}}
	_ = conn.(*net.TCPConn).SetReadBuffer(1) // the system takes its least
	_, err = fmt.Fprintf(conn, "GET /api/runs/%s/events HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", run, u.Host, apiToken)
	return s, err
}

// finish tells how much waits for the client in the system, and has it read all
// that there is. If the gateway has given it up it asks again from where it got
// to: it must have missed no event either.
func (s *staller) finish(ctx context.Context, hc *http.Client, base string) (held float64, err error) {
	held = unsent(s.conn.LocalAddr().(*net.TCPAddr).Port)
	_ = s.conn.(*net.TCPConn).SetReadBuffer(4 << 20)
	_ = s.conn.SetReadDeadline(time.Now().Add(followWait / 4))
	if s.out.take(s.conn, 0) == nil {
		return held, nil
	}
	return held, s.out.read(ctx, hc, base)
}

// unsent is what the other side of a local connection has written and not got
// rid of, in KB; 0 where it can't be read.
func unsent(port int) float64 {
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			fields := strings.Fields(line)
			if len(fields) < 5 || !strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) {
				continue
			}
			queue, _, _ := strings.Cut(fields[4], ":")
			if n, err := strconv.ParseInt(queue, 16, 64); err == nil && n > 0 {
				return float64(n) / 1000
			}
		}
	}
	return 0
}

// mostAnonymous is the most anonymous memory that a process had until stop, in
// MB; 0 where it can't be read.
func mostAnonymous(p *process, stop <-chan struct{}) (most float64) {
	tick := time.NewTicker(sampleEach)
	defer tick.Stop()
	for {
		if m, err := p.memory(); err == nil {
			most = max(most, m.anonymous)
		}
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
	}
}

func (c *crowd) figures(held, most float64, used, took time.Duration) []Figure {
	var late sample
	events, pieces, lags := 0, 0, 0
	for _, f := range c.clients {
		late = append(late, f.late...)
		events, pieces, lags = events+f.next, pieces+f.pieces, lags+f.lags
	}
	n := len(c.clients)
	how := fmt.Sprintf("%d clients follow as many runs by GET /api/runs/{id}/events, each from its beginning to its end, while these, begun 10 ms apart, stream and use tools: %d events and %d pieces of text in %.1f s. "+
		"Each client got each event once and in order, or this would have failed. One more client follows the first run, which says much, and reads nothing until all is over; then it got every event, too. "+
		"Clients, gateway and model server share the machine's CPUs.", n, events, pieces, took.Seconds())
	return []Figure{{
		ID: "follow", Name: fmt.Sprintf("Event → client, %d clients of %d live runs", n, n),
		Values: append(late.tail(), ms("max", late.quantile(1)), work(used, max(1, events))),
		Means: "From the moment that an event carries, which is before its commit, until a client has read it: the commit, the feed, the encoding and the sockets. " +
			"The moment has no fractions of a millisecond, so that the figures are up to 1 ms too long. Its own CPU is the gateway's processor time for each event, with all that the runs do.",
		How: how, Aim: &Aim{Label: "p99", Bound: followAim, Words: fmt.Sprintf("≤ %.0f ms", followAim)},
	}, {
		ID: "follow.stalled", Name: "  the same, beside the client that stalls",
		Values: append(c.clients[0].late.tail(), count("unsent to that one", held, "KB"), count("lags of the others", float64(lags), "")),
		Means: "The other client of the run whose second client reads nothing: a slow client must not slow another. Unsent is what the system holds for the stalled one " +
			"when all is over; what comes after that waits in its bounded queue or is read from the record. A lag is a loss of pieces of text that have no number.",
		How: "As above.",
	}, memoryFigure(most, how)}
}

func memoryFigure(most float64, how string) Figure {
	f := Figure{
		ID: "follow.memory", Name: "  the gateway's memory meanwhile", Values: []Value{count("anonymous, most", most, "MB")},
		Means: "The memory that the gateway needs for itself while it runs these turns and shows them: without the pages of its executable, which the system can drop.",
		How:   "RssAnon of /proc/PID/status, every 100 ms; the most. " + how,
		Aim:   &Aim{Label: "anonymous, most", Bound: followMem, Words: fmt.Sprintf("≤ %.0f MB", followMem)},
	}
	if most == 0 {
		f.Values, f.Aim, f.Missing = nil, nil, errNoProc.Error()
	}
	return f
}
