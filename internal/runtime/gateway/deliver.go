package gateway

import (
	"context"
	"log/slog"
	"time"

	"goclaw"
)

// Outbox holds replies on their way to channels.
type Outbox interface {
	Outbox(ctx context.Context, now goclaw.Millis, limit int) ([]goclaw.Outbound, error)
	MarkOutbox(ctx context.Context, id, state string, next goclaw.Millis, problem string) error
}

const (
	deliverEvery = time.Second
	deliverBatch = 32
	parkAfter    = 10 // attempts
	deliverWait  = 30 * time.Second
)

// Deliverer hands replies to channels. A crash between sending and marking may
// send a reply twice: services without idempotency keys allow no better.
type Deliverer struct {
	Outbox   Outbox
	Channels map[string]goclaw.Channel
	Log      *slog.Logger
}

// Run delivers until ctx ends.
func (d Deliverer) Run(ctx context.Context) error {
	tick := time.NewTicker(deliverEvery)
	defer tick.Stop()
	for {
		due, err := d.Outbox.Outbox(ctx, now(), deliverBatch)
		if err != nil && ctx.Err() == nil {
			d.Log.Error("the outbox could not be read; trying again", "err", err)
		}
		more := len(due) > 0
		for _, out := range due {
			if err := d.deliver(ctx, out); err != nil {
				more = false // it would be due again at once
				if ctx.Err() == nil {
					d.Log.Error("a delivery could not be recorded", "session", out.Session.String(), "run", out.Run, "err", err)
				}
			}
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (d Deliverer) deliver(ctx context.Context, out goclaw.Outbound) error {
	ch := d.Channels[out.Session.Channel]
	if ch == nil {
		d.Log.Warn("a reply is parked: its channel is not configured", "session", out.Session.String(), "run", out.Run)
		return d.Outbox.MarkOutbox(ctx, out.ID, "parked", now(), "the channel "+out.Session.Channel+" is not configured")
	}
	if err := d.Outbox.MarkOutbox(ctx, out.ID, "sending", now().Add(deliverWait), ""); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, deliverWait)
	err := ch.Send(bounded, out)
	cancel()
	if err == nil {
		return d.Outbox.MarkOutbox(ctx, out.ID, "sent", 0, "")
	}
	if out.Attempts+1 >= parkAfter {
		d.Log.Error("a reply is parked after too many failures", "session", out.Session.String(), "run", out.Run, "err", err)
		return d.Outbox.MarkOutbox(ctx, out.ID, "parked", now(), err.Error())
	}
	wait := min(time.Second<<out.Attempts, 10*time.Minute)
	return d.Outbox.MarkOutbox(ctx, out.ID, "pending", now().Add(wait), err.Error())
}
