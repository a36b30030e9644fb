package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
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
	s := troubled(t, top, from)
	go s.troubles(func() {
		s.begin(20)
		if err := from.server.Kill(); err != nil {
			t.Error(err)
		}
		asking := s.refused(away, "PostgreSQL at 127.0.0.1")
		wait(away, nil)
		back := time.Now()
		if err := from.server.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		<-asking
		s.begin(10)
		t.Logf("10 model calls were begun within %s of PostgreSQL's start", time.Since(back).Round(time.Millisecond))
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
func troubled(t *testing.T, top topology, from stock) *site {
	t.Helper()
	box, why := sandbox.Detect(t.Context())
	if box == nil {
		t.Logf("NO SANDBOX (%s): the workers have no side effects in this run", why)
	}
	d := &dice{rnd: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))}
	dir, err := siteDir(t)
	if err != nil {
		t.Fatal(err)
	}
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

// refused sends requests to all gateways for a while, which must be answered in
// time with an error of one line that names reason. What it returns is closed
// when all are answered.
func (s *site) refused(long time.Duration, reason string) <-chan struct{} {
	until := time.Now().Add(long)
	var asking sync.WaitGroup
	var mu sync.Mutex
	answers, slowest := map[string]int{}, time.Duration(0)
	ask := func(n int, api *client.Client) {
		ctx, cancel := context.WithTimeout(s.t.Context(), answerLimit)
		defer cancel()
		began := time.Now()
		_, err := api.Receive(ctx, goclaw.Inbound{Session: goclaw.APIKey("main", "nobody"), Text: "/status", Key: fmt.Sprint(n)})
		if n%2 == 1 {
			_, err = api.Sessions(ctx)
		}
		took := time.Since(began)
		refusal, ok := errors.AsType[*client.Error](err)
		switch {
		case ctx.Err() != nil:
			s.t.Errorf("a gateway did not answer within %s", answerLimit)
		case err == nil && began.Add(took).Before(until):
			s.t.Error("a request was answered although the database is away")
		case err != nil && (!ok || refusal.Status < 500 || !strings.Contains(refusal.Detail, reason) || strings.Contains(refusal.Detail, "\n")):
			s.t.Errorf("a request was answered: %v; want a reason: %s", err, reason)
		}
		mu.Lock()
		defer mu.Unlock()
		slowest = max(slowest, took)
		if err != nil {
			answers[err.Error()]++
		}
	}
	for g, api := range s.gateways() {
		asking.Go(func() {
			for n := 2 * g; time.Now().Before(until); n++ {
				ask(n, api)
				wait(100*time.Millisecond, nil)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		asking.Wait()
		var most []string
		for text, n := range answers {
			most = append(most, fmt.Sprintf("%4d × %s", n, text))
		}
		slices.Sort(most)
		s.t.Logf("meanwhile requests were answered within %s:\n%s", slowest.Round(time.Millisecond), strings.Join(most, "\n"))
	}()
	return done
}
