package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"go.uber.org/goleak"

	"goclaw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeGateway answers every message with one turn.
type fakeGateway struct {
	mu        sync.Mutex
	stream    chan goclaw.Notice
	received  []goclaw.Inbound
	cancelled []string
	asked     int // subscriptions
	refuse    int // how many of these fail
	logs      []goclaw.RunLog
	workers   []goclaw.RunInfo
	status    goclaw.Status
	statuses  int           // how often it was asked for
	hang      chan struct{} // Receive waits for it, if set
}

func (g *fakeGateway) Notices(ctx context.Context, _ goclaw.SessionKey) (<-chan goclaw.Notice, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if g.refuse > 0 {
		g.refuse--
		return nil, errors.New("refused")
	}
	stream := make(chan goclaw.Notice, 64)
	g.stream = stream
	context.AfterFunc(ctx, func() { g.cut(stream) })
	return stream, nil
}

// cut ends a stream.
func (g *fakeGateway) cut(stream chan goclaw.Notice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stream == stream && stream != nil {
		g.stream = nil
		close(stream)
	}
}

func (g *fakeGateway) lose() {
	g.mu.Lock()
	stream := g.stream
	g.mu.Unlock()
	g.cut(stream)
}

func (g *fakeGateway) tell(ns ...goclaw.Notice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range ns {
		if g.stream != nil {
			g.stream <- n
		}
	}
}

func (g *fakeGateway) Receive(ctx context.Context, in goclaw.Inbound) (goclaw.Receipt, error) {
	g.mu.Lock()
	g.received = append(g.received, in)
	hang := g.hang
	g.mu.Unlock()
	if hang != nil {
		select {
		case <-ctx.Done():
			return goclaw.Receipt{}, ctx.Err()
		case <-hang:
		}
	}
	if strings.HasPrefix(in.Text, "/") {
		return goclaw.Receipt{Reply: "answer to " + in.Text}, nil
	}
	r := own("run-"+in.Key, goclaw.StateQueued)
	r.Task = in.Text
	running, done := r, r
	running.State = goclaw.StateRunning
	done.State, done.Result = goclaw.StateCompleted, "you said **"+in.Text+"**"
	g.tell(ran(r), ran(running), told(r, goclaw.NoticeText, "you said **"), ran(done),
		ran(spawned("w-1", "tides", goclaw.StateRunning)))
	return goclaw.Receipt{Run: &r}, nil
}

func (g *fakeGateway) Cancel(_ context.Context, run string) error {
	g.mu.Lock()
	g.cancelled = append(g.cancelled, run)
	g.mu.Unlock()
	r := spawned(run, "tides", goclaw.StateCancelled)
	r.Error = "by its user"
	g.tell(ran(r))
	return nil
}

func (g *fakeGateway) History(context.Context, goclaw.SessionKey) ([]goclaw.RunLog, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logs, nil
}

func (g *fakeGateway) Workers(context.Context, goclaw.SessionKey) ([]goclaw.RunInfo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.workers, nil
}

func (g *fakeGateway) Status(context.Context) (goclaw.Status, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.statuses++
	return g.status, nil
}

// chat is a screen that runs on pipes.
type chat struct {
	t    *testing.T
	keys io.Writer
	done chan error
	stop context.CancelFunc

	mu   sync.Mutex
	out  strings.Builder
	more chan struct{} // something was written
}

func (c *chat) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
	return c.out.Write(p)
}

// await waits until the screen has written text since the last call.
func (c *chat) await(text string) {
	c.t.Helper()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		got := c.out.String()
		i := strings.Index(got, text)
		if i >= 0 {
			c.out.Reset()
			c.out.WriteString(got[i+len(text):])
		}
		c.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-c.more:
		case err := <-c.done:
			c.t.Fatalf("the screen ended (%v) before %q; it wrote %q", err, text, got)
		case <-timeout.C:
			c.t.Fatalf("%q never appeared; the screen wrote %q", text, got)
		}
	}
}

// saw fails the test unless the screen has written text since the last call.
func (c *chat) saw(text string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.out.String(); !strings.Contains(got, text) {
		c.t.Errorf("%q is not in what the screen wrote: %q", text, got)
	}
	c.out.Reset()
}

func (c *chat) press(keys string) {
	c.t.Helper()
	if _, err := io.WriteString(c.keys, keys); err != nil {
		c.t.Fatal(err)
	}
}

// leave waits for the screen to end.
func (c *chat) leave() {
	c.t.Helper()
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Errorf("Run: %v", err)
		}
	case <-time.After(10 * time.Second):
		c.t.Fatal("the screen does not end")
	}
}

func open(t *testing.T, b Backend, o Options) *chat {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c := &chat{t: t, keys: w, done: make(chan error, 1), more: make(chan struct{}, 1), stop: stop}
	o.Session, o.Input, o.Output = session, r, c
	go func() {
		c.done <- run(ctx, b, o, tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm-256color"}),
			tea.WithoutSignalHandler())
	}()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestChat(t *testing.T) {
	g := &fakeGateway{logs: []goclaw.RunLog{{Run: own("old", goclaw.StateQueued)}}}
	c := open(t, g, Options{Demo: true, Version: "0.1.0", Notices: []string{"Hello from the caller."}})
	c.await("Hello from the caller.")
	c.await("(queued)") // the history
	c.press("tides?\r")
	c.await("you said")
	c.await("1 running")
	c.press("/status\r")
	c.await("answer to /status")
	c.press("\t")
	c.press("x")
	c.await("Cancel worker")
	c.press("y")
	c.await("by its user")
	c.press("\x1b[200~pasted\x1b[201~")
	c.await("pasted")
	c.press("\x03") // clears
	c.press("\x03")
	c.leave()
	if len(g.received) != 2 || g.received[0].Text != "tides?" || g.received[0].Session != session ||
		g.received[0].Key == "" || g.received[0].Key == g.received[1].Key {
		t.Errorf("received %+v", g.received)
	}
	if len(g.cancelled) != 1 || g.cancelled[0] != "w-1" {
		t.Errorf("cancelled %q", g.cancelled)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if tail := c.out.String(); !strings.Contains(tail, "\x1b[?1049l") || !strings.Contains(tail, "\x1b[?25h") {
		t.Errorf("the terminal was not restored: %q", tail)
	}
}

func TestChatStops(t *testing.T) {
	const escape = "\x1b"
	g := &fakeGateway{workers: infos(waiting(spawned("w-1", "migration", ""), goclaw.WaitPerson))}
	c := open(t, g, Options{})
	c.await("1 waiting for you")
	c.press("\tr")
	c.await("answer to /subagents resume w-1")
	c.press(escape) // lets go of the worker
	c.await("Tab selects")
	g.tell(ran(own("run-1", goclaw.StateRunning)))
	c.await("Esc stops")
	c.press(escape)
	c.await("Stop it too?")
	c.press("y")
	c.await("answer to /stop all")
	c.press("\x04")
	c.leave()
}

func TestChatConnectsAgain(t *testing.T) {
	g := &fakeGateway{}
	c := open(t, g, Options{NoColor: true})
	c.await("ready")
	c.press("one\r")
	c.await("you said")
	g.lose()
	c.await("connection lost")
	c.await("connected again")
	c.press("\x04")
	c.leave()
}

func TestChatEndsWithItsContext(t *testing.T) {
	g := &fakeGateway{hang: make(chan struct{})}
	c := open(t, g, Options{})
	c.await("ready")
	c.press("never answered\r")
	c.await("(sending)")
	c.stop()
	c.leave()
}

func TestNoColor(t *testing.T) {
	c := open(t, &fakeGateway{}, Options{NoColor: true})
	c.await("ready")
	c.press("tides?\r")
	c.await("1 running")
	c.press("/quit\r")
	c.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, colour := range []style{red, green, yellow, magenta, cyan} {
		if strings.Contains(c.out.String(), "\x1b["+string(colour)+"m") {
			t.Errorf("colour %s in %q", colour, c.out.String())
		}
	}
}

func TestPumpBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGateway{refuse: 1000}
		ctx, stop := context.WithCancel(t.Context())
		lost := 0
		p := pump{backend: g, session: session, send: func(m tea.Msg) {
			if l, ok := m.(linkMsg); ok && l.err != nil {
				lost++
			}
		}}
		done := make(chan struct{})
		go func() { p.run(ctx); close(done) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		<-done
		if lost < 10 || lost > 20 {
			t.Errorf("%d attempts in a minute", lost)
		}
	})
}

func TestPumpReadsTheRecordAfterLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGateway{}
		ctx, stop := context.WithCancel(t.Context())
		loads, batches := 0, 0
		p := pump{backend: g, session: session, send: func(m tea.Msg) {
			switch m.(type) {
			case loadedMsg:
				loads++
			case noticesMsg:
				batches++
			}
		}}
		done := make(chan struct{})
		go func() { p.run(ctx); close(done) }()
		synctest.Wait()
		g.tell(ran(own("run-1", goclaw.StateRunning)), goclaw.Notice{Kind: goclaw.NoticeLag})
		synctest.Wait()
		stop()
		<-done
		if loads != 2 || batches < 1 || batches > 2 {
			t.Errorf("%d loads, %d batches", loads, batches)
		}
	})
}
