package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"goclaw/internal/edge/client"
)

// need says what a command wants of the gateway it connects to.
type need int

const (
	toRead   need = iota // questions only: nothing is resumed
	toSettle             // as toRead, and cancelled runs are ended
	toRun                // runs shall be executed, here if no gateway is there
	toServe              // this process shall be the gateway
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
// All commands then use the same API.
func (c *cli) connect(ctx context.Context, want need, log *slog.Logger) (link, error) {
	s, err := c.settle()
	if err != nil {
		return link{}, err
	}
	if err := s.home.prepare(); err != nil {
		return link{}, err
	}
	for waited := false; ; {
		lock, err := s.home.lock()
		switch {
		case err == nil && want == toRead:
			a, err := open(ctx, s, nil, log, c.Hook)
			return embedded(a, errors.Join(err, lock.Close()))
		case err == nil:
			a, err := open(ctx, s, lock, log, c.Hook)
			if err == nil && want != toSettle {
				a.start(ctx)
			}
			return embedded(a, err)
		case !errors.Is(err, errHeld):
			return link{}, err
		}
		l, listening := s.home.findListener()
		switch {
		case want == toServe && listening:
			return link{}, fmt.Errorf("a gateway of this home runs already: %s (process %d); stop it, or set another GOCLAW_HOME", l.URL, l.PID)
		case listening:
			token, err := s.home.token(s.token...)
			if err != nil {
				return link{}, err
			}
			remote := client.New(l.URL, token, nil)
			return link{Client: remote}, remote.Health(ctx)
		case want == toRead, want == toSettle:
			a, err := open(ctx, s, nil, log, c.Hook)
			return embedded(a, err)
		}
		if !waited {
			waited = true
			fmt.Fprintf(c.Stderr, "goclaw: another goclaw process uses %s; waiting for it to finish\n", s.home)
		}
		select {
		case <-ctx.Done():
			return link{}, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func embedded(a *app, err error) (link, error) {
	if err != nil {
		return link{}, err
	}
	return link{Client: a.client(), app: a}, nil
}
