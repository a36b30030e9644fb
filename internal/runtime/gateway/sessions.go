package gateway

import (
	"context"
	"fmt"

	"goclaw"
)

// ResetSession is /new: what was said before is kept, and no longer shown to
// the model.
func (g *Gateway) ResetSession(ctx context.Context, key goclaw.SessionKey) (goclaw.Session, error) {
	if key.IsWorker() {
		return goclaw.Session{}, goclaw.BadRequest(fmt.Sprintf("%s is a worker's session, which has one turn; there is nothing to start over", key))
	}
	if err := g.checkAgent(key); err != nil {
		return goclaw.Session{}, err
	}
	if err := g.o.Record.ChangeSession(ctx, key, goclaw.SessionChange{Reset: true}, now()); err != nil {
		return goclaw.Session{}, err
	}
	all, err := g.o.Record.AllSessions(ctx)
	if err != nil {
		return goclaw.Session{}, err
	}
	for _, s := range all {
		if s.Key == key {
			return s, nil
		}
	}
	return goclaw.Session{}, fmt.Errorf("session %s: %w", key, goclaw.ErrNotFound)
}

// Definitions lists what an agent's workspace and the scopes around it define.
func (g *Gateway) Definitions(_ context.Context, agent string) ([]goclaw.DefinitionReport, error) {
	return g.o.Library.Definitions(agent)
}

// Definition is one of them, with its text.
func (g *Gateway) Definition(_ context.Context, agent, name string) (goclaw.DefinitionReport, error) {
	return g.o.Library.Definition(agent, name)
}
