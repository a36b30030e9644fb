package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"goclaw/internal/edge/client"
	"goclaw/internal/edge/config"
)

// need says what a command wants of the gateway it connects to.
type need int

const (
	toRead   need = iota // questions only: nothing is resumed
	toSettle             // as toRead, and cancelled runs are ended
	toRun                // runs shall be executed, here if no gateway is there
	toStay               // toRun, by a process that stays: it fires jobs, too
	toServe              // this process shall be the gateway; it starts it itself
)

const (
	lookAgain    = 50 * time.Millisecond
	tellWaiting  = 300 * time.Millisecond // a command that only reads is done by then
	unreachable  = 3 * time.Second        // a gateway that stops or starts is done by then
	healthAnswer = 5 * time.Second
)

// link is a way to the home's gateway: a running one, or one in this process.
type link struct {
	*client.Client
	app *app // nil when the gateway is another process
}

// close ends the gateway in this process, if there is one.
func (l link) close() error {
	if l.app == nil {
		return nil
	}
	return l.app.close()
}

// connect finds the running gateway of the home, or opens one in this process.
// All commands then use the same API. It waits while a process that can't be
// talked to holds the home.
func (c *cli) connect(ctx context.Context, want need, log *slog.Logger) (link, error) {
	s, cfg, err := c.locate()
	if err != nil {
		return link{}, err
	}
	if err := s.home.prepare(); err != nil {
		return link{}, err
	}
	told := false
	for began := time.Now(); ; {
		l, err := c.tryConnect(ctx, s, cfg, want, log)
		switch {
		case errors.Is(err, client.ErrNoGateway) && time.Since(began) < unreachable:
		case !errors.Is(err, errHeld):
			return l, err
		case want == toSettle && time.Since(began) > tellWaiting:
			// Its holder looks for cancellations by itself.
			return c.embed(ctx, s, cfg, want, nil, log)
		case !told && time.Since(began) > tellWaiting:
			told = true
			fmt.Fprintf(c.Stderr, "goclaw: another goclaw process uses %s; waiting for it to finish\n", s.home)
		}
		select {
		case <-ctx.Done():
			return link{}, context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// tryConnect returns errHeld if the home's lock is held by a process that does
// not listen, and client.ErrNoGateway if it does no longer, or not yet.
func (c *cli) tryConnect(ctx context.Context, s settings, cfg config.Config, want need, log *slog.Logger) (link, error) {
	lock, err := s.home.lock()
	if err == nil {
		return c.embed(ctx, s, cfg, want, lock, log)
	}
	if !errors.Is(err, errHeld) {
		return link{}, err
	}
	l, listening := s.home.findListener()
	switch {
	case listening && want == toServe:
		return link{}, fmt.Errorf("a gateway of this home runs already: %s (process %d); stop it, or set another GOCLAW_HOME", l.URL, l.PID)
	case listening:
		return c.attach(ctx, s, l)
	case want == toRead:
		return c.embed(ctx, s, cfg, want, nil, log)
	}
	return link{}, err
}

// attach talks to the gateway that listens at l.
func (c *cli) attach(ctx context.Context, s settings, l listener) (link, error) {
	if c.workspace != "" {
		return link{}, usagef("--workspace has no effect: the gateway at %s (process %d) runs already with its own; stop it first", l.URL, l.PID)
	}
	token, err := s.presentToken()
	if err != nil {
		return link{}, err
	}
	if token == "" {
		return link{}, fmt.Errorf("token %s is missing or empty, but the gateway at %s wants it; restart that gateway, or set GOCLAW_TOKEN", s.home.path("token"), l.URL)
	}
	remote := client.New(l.URL, token, nil).Renewing(s.presentToken)
	bounded, cancel := context.WithTimeoutCause(ctx, healthAnswer, fmt.Errorf("no answer within %s", healthAnswer))
	defer cancel()
	if err := remote.Health(bounded); err != nil {
		return link{}, fmt.Errorf("gateway at %s (process %d): %w", l.URL, l.PID, err)
	}
	return link{Client: remote}, nil
}

// embed opens the gateway in this process. It owns lock, which may be nil.
func (c *cli) embed(ctx context.Context, s settings, cfg config.Config, want need, lock *homeLock, log *slog.Logger) (link, error) {
	if lock != nil {
		// What a gateway left that was killed must not send anyone to it.
		if err := s.home.withdrawListener(); err != nil {
			return link{}, errors.Join(err, lock.Close())
		}
	}
	if err := c.settle(&s, cfg); err != nil {
		return link{}, errors.Join(err, lock.Close())
	}
	held := lock
	if want == toRead {
		held = nil
	}
	if want != toServe {
		s.drain = 0
	}
	a, err := open(ctx, s, held, log, c.Hook)
	if want == toRead {
		// The lock has kept two processes from making the database at once.
		err = errors.Join(err, lock.Close())
	}
	if err != nil {
		return link{}, err
	}
	switch {
	case want == toRun, want == toStay:
		a.clock = want == toStay
		a.start(ctx)
	case want != toServe:
		a.idle = lock != nil // it was free: nobody executes the home's runs
	}
	return link{Client: a.client(), app: a}, nil
}
