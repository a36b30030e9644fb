package gateway

import (
	"context"
	"slices"
	"strings"

	"goclaw"
)

// same fails with goclaw.ErrReused if the run was accepted for a request with
// the same key and another digest.
func same(run goclaw.Run, asked string) error {
	if asked != "" && run.Profile.Asked != "" && run.Profile.Asked != asked {
		return goclaw.ErrReused
	}
	return nil
}

// sameMessage fails with goclaw.ErrReused if the worker was sent another text
// under this id.
func (g *Gateway) sameMessage(ctx context.Context, run goclaw.Run, id, text string) error {
	pending, err := g.o.Record.Pending(ctx, run.Session)
	if err != nil {
		return err
	}
	for _, item := range pending {
		if item.ID == id && !strings.Contains(item.Text, text) {
			return goclaw.ErrReused
		}
	}
	events, err := g.o.Record.Events(ctx, run.ID)
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Input != nil && slices.Contains(e.Input.Inbox, id) && !strings.Contains(e.Input.Message.PlainText(), text) {
			return goclaw.ErrReused
		}
	}
	return nil
}
