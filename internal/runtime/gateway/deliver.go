package gateway

import (
	"context"
	"log/slog"
	"time"

	"goclaw"
	"goclaw/internal/core/turn"
)

// Outbox holds replies on their way to channels.
type Outbox interface {
	Outbox(ctx context.Context, now goclaw.Millis, limit int) ([]goclaw.Outbound, error)
	// TakeOutbox takes a reply that is due, until some time: of several
	// processes that want to send it, one may.
	TakeOutbox(ctx context.Context, id string, now, until goclaw.Millis) (bool, error)
	MarkOutbox(ctx context.Context, id, state string, next goclaw.Millis, problem string) error
}

const (
	deliverEvery = time.Second
	deliverBatch = 32
	parkAfter    = 10 // attempts
	deliverWait  = 30 * time.Second
	deliverSpare = 15 * time.Second // to record what became of it, before another process may take it
)

// Deliverer hands replies to channels, without their reply tags; several
// processes may do so for one store. A crash between sending and marking may
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
	taken, err := d.Outbox.TakeOutbox(ctx, out.ID, now(), now().Add(deliverWait+deliverSpare))
	if err != nil || !taken {
		return err
	}
	answer := turn.ParseReply(out.Text)
	out.Text, out.ReplyTo = answer.Text, answer.To
	bounded, cancel := context.WithTimeout(ctx, deliverWait)
	err = ch.Send(bounded, out)
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
