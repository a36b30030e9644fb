package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
)

// Steer sends a message to a worker that is under way; it reads it before its
// next model call. The same key is sent once. goclaw.ErrEnded if the worker has
// ended or was asked to.
func (e *Engine) Steer(ctx context.Context, id, text, from, key string) (goclaw.Run, error) {
	if strings.TrimSpace(text) == "" {
		return goclaw.Run{}, goclaw.BadRequest("the message is empty; say what the worker shall do")
	}
	run, err := e.o.Store.Run(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if !run.Session.IsWorker() {
		return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("run %.8s is a turn of %s, no worker; write to that session instead", run.ID, run.Session))
	}
	if key == "" {
		key = e.o.NewID()
	}
	err = e.o.Store.Post(ctx, run.ID, goclaw.InboxItem{
		ID: key, Kind: goclaw.ItemSteer, Session: run.Session, Group: run.ID,
		Text: announce.Steer(from, text), CreatedAt: goclaw.At(time.Now()),
	})
	if err != nil {
		return goclaw.Run{}, fmt.Errorf("message to %s: %w", run.Name(), err)
	}
	e.Wake()
	return run, nil
}

// Resume lets a run go on that waits for a person. ErrNotFound if it does not.
func (e *Engine) Resume(ctx context.Context, id string) (goclaw.Run, error) {
	run, err := e.o.Store.Run(ctx, id)
	if err != nil {
		return goclaw.Run{}, err
	}
	if run.State != goclaw.StateWaiting || run.WaitsFor != goclaw.WaitPerson {
		return goclaw.Run{}, goclaw.BadRequest(fmt.Sprintf("run %.8s does not wait for anyone: it is %s", run.ID, run.State))
	}
	run, err = e.o.Store.Resume(ctx, run.ID, goclaw.At(time.Now()))
	if err != nil {
		return goclaw.Run{}, fmt.Errorf("resume run: %w", err)
	}
	e.Wake()
	return run, nil
}

// SetPause sets the kill switch: while it is on, no process of this store
// begins a model call.
func (e *Engine) SetPause(ctx context.Context, on bool, why string) (goclaw.Pause, error) {
	var p goclaw.Pause
	if on {
		p = goclaw.Pause{At: goclaw.At(time.Now()), Why: why}
	}
	if err := e.o.Store.SetPause(ctx, p); err != nil {
		return goclaw.Pause{}, fmt.Errorf("set pause: %w", err)
	}
	e.bell.ring()
	return p, nil
}

// Retry makes a parked delivery pending again.
func (e *Engine) Retry(ctx context.Context, id string) error {
	if err := e.o.Store.Unpark(ctx, id, goclaw.At(time.Now())); err != nil {
		return fmt.Errorf("retry delivery: %w", err)
	}
	e.ended.Store(true)
	e.Wake()
	return nil
}

// Dismiss gives a parked delivery up for good.
func (e *Engine) Dismiss(ctx context.Context, id string) error {
	if err := e.o.Store.Dismiss(ctx, id, goclaw.At(time.Now())); err != nil {
		return fmt.Errorf("dismiss delivery: %w", err)
	}
	return nil
}
