package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/edge/client"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// answerLimit is when a request must have been answered while the database is
// away: its own patience is 10 s.
const answerLimit = 13 * time.Second

// TestOutage stops PostgreSQL while people talk with gateways and workers work:
// once as a crash, for a while, and once in order, for a moment. Meanwhile
// requests are refused with a reason; nothing that was accepted is lost, and
// afterwards the work goes on by itself, in the same processes.
func TestOutage(t *testing.T) {
	from := stockPostgres(t)
	away := 2 * time.Second
	if os.Getenv("GOCLAW_CRASH_KILLS") != "" {
		away = 10 * time.Second
	}
	top := topology{seats: []string{"gateway", "gateway", "worker", "worker"}, chats: 5}
	dir, err := siteDir(t)
	if err != nil {
		t.Fatal(err)
	}
	s := troubled(t, top, from, dir)
	go s.troubles(func() {
		s.begin(20)
		if err := from.server.Kill(); err != nil {
			t.Error(err)
		}
		asked := refusals{site: s, reason: "PostgreSQL at 127.0.0.1"}
		asked.until(time.Now().Add(away))
		back := time.Now()
		if err := from.server.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		s.begin(10)
		t.Logf("10 model calls were begun within %s of PostgreSQL's start", time.Since(back).Round(time.Millisecond))
		asked.people.Wait()
		if err := from.server.Halt(); err != nil {
			t.Error(err)
		}
		if err := from.server.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		s.begin(10)
	})
	s.endure()
}

// troubled is a site whose processes are left alone, but not the ground that
// they stand on.
func troubled(t *testing.T, top topology, from stock, dir string) *site {
	t.Helper()
	box, why := sandbox.Detect(t.Context())
	if box == nil {
		t.Logf("NO SANDBOX (%s): the workers have no side effects in this run", why)
	}
	d := &dice{rnd: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))}
	s, err := newSite(t, top, dir, from, d, box != nil)
	if err != nil {
		t.Fatal(err)
	}
	s.due = 1
	return s
}

// troubles calls what; people go on talking until it is over.
func (s *site) troubles(what func()) {
	what()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due--
}

// endure lets everything happen and checks what is left.
func (s *site) endure() {
	s.t.Helper()
	defer s.close()
	s.round()
	var sum tally
	s.check(&sum)
	if s.t.Failed() {
		for _, seat := range s.seats {
			s.t.Logf("%s:\n%s", seat.name, s.tail(seat))
		}
		return
	}
	s.t.Logf("%d messages, %d runs, 0 lost, %d announced once each; %d side effects, 0 twice, %d with unknown outcome; %d takeovers",
		sum.chats, sum.runs, sum.announced, sum.effects, sum.unknown, sum.takeovers)
}

// begin waits until so many more model calls have begun.
func (s *site) begin(calls int) {
	limit := time.Now().Add(siteLimit / 3)
	for calls += s.model.Total(); s.model.Total() < calls && !s.t.Failed(); wait(10*time.Millisecond, nil) {
		if time.Now().After(limit) {
			s.t.Errorf("within %s no more than %d of %d model calls were begun", siteLimit/3, s.model.Total(), calls)
		}
	}
}

// refusals are how requests were answered while something was missing.
type refusals struct {
	*site
	reason string         // what each must name
	people sync.WaitGroup // who sent them, until they are answered

	mu      sync.Mutex
	texts   map[string]int
	slowest time.Duration
}

// ask sends a message once, and reports whether it was accepted. It must be
// answered in time; a refusal is one line that names the reason.
func (r *refusals) ask(c *chat, api *client.Client) bool {
	ctx, cancel := context.WithTimeout(r.t.Context(), answerLimit)
	defer cancel()
	began := time.Now()
	_, err := c.send(ctx, api)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowest = max(r.slowest, time.Since(began))
	if err == nil {
		return true
	}
	r.texts[err.Error()]++
	refusal, ok := errors.AsType[*client.Error](err)
	switch {
	case ctx.Err() != nil:
		r.t.Errorf("a gateway did not answer within %s", answerLimit)
	case !ok || refusal.Status < 500 || !strings.Contains(refusal.Detail, r.reason) || strings.Contains(refusal.Detail, "\n"):
		r.t.Errorf("a request was answered: %v; want the reason: %s", err, r.reason)
	}
	return false
}

// until sends messages to every gateway until the time comes, and then until
// they are answered.
func (r *refusals) until(then time.Time) {
	r.texts = map[string]int{}
	var asking sync.WaitGroup
	for _, api := range r.gateways() {
		asking.Go(func() {
			c := r.newChat()
			for time.Now().Before(then) {
				if r.ask(c, api) {
					r.people.Go(func() { r.hear(c) })
					c = r.newChat()
				}
				wait(50*time.Millisecond, nil)
			}
			r.people.Go(func() { r.hear(c) })
		})
	}
	asking.Wait()
	if len(r.texts) == 0 {
		r.t.Errorf("no request was refused; want the reason: %s", r.reason)
	}
	for text, n := range r.texts {
		r.t.Logf("meanwhile %d requests were refused, within %s at most: %s", n, r.slowest.Round(time.Millisecond), text)
	}
}

// TestDiskFull fills the disk that holds the home while people talk and workers
// work. Messages are refused with a reason; nothing that was accepted is lost,
// and once there is room again the work goes on by itself.
func TestDiskFull(t *testing.T) {
	full := 2 * time.Second
	if os.Getenv("GOCLAW_CRASH_KILLS") != "" {
		full = 10 * time.Second
	}
	dir, err := siteDir(t)
	if err != nil {
		t.Fatal(err)
	}
	top := topology{seats: []string{"gateway"}, chats: 5}
	disk := filepath.Join(dir, "gateway1")
	mount(t, disk)
	s := troubled(t, top, stockSQLite(t), dir)
	go s.troubles(func() {
		s.begin(20)
		filler := filepath.Join(disk, "filler")
		if err := fill(filler); err != nil {
			t.Error(err)
		}
		asked := refusals{site: s, reason: "is full"}
		asked.until(time.Now().Add(full))
		back := time.Now()
		if err := os.Remove(filler); err != nil {
			t.Error(err)
		}
		s.begin(10)
		t.Logf("10 model calls were begun within %s of the disk's having room", time.Since(back).Round(time.Millisecond))
		asked.people.Wait()
	})
	s.endure()
}

// mount puts a small file system into a new folder.
func mount(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=12m", "goclaw-test", dir).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: no file system can be mounted here, which takes root: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
}

// fill writes a file until there is no room.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for block := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(block)
	}
	for err = nil; err == nil; {
		_, err = f.Write([]byte{0})
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
