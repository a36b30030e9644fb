package gateway

import (
	"context"

	"goclaw"
)

// Positions tells the places in the queue, from 1, of those of the runs that
// are in it: of workers among all that wait for a slot, of a session's own
// turns among those that wait for their turn there.
func (g *Gateway) Positions(ctx context.Context, runs []goclaw.Run) (map[string]int, error) {
	places := map[string]int{}
	workers := false
	looked := map[goclaw.SessionKey]bool{}
	for _, r := range runs {
		switch {
		case r.State != goclaw.StateQueued:
		case r.Trigger == goclaw.TriggerSpawn:
			workers = true
		case !looked[r.Session]:
			looked[r.Session] = true
			if err := g.turnPositions(ctx, r.Session, places); err != nil {
				return nil, err
			}
		}
	}
	if !workers {
		return places, nil
	}
	queue, err := g.o.Record.Queue(ctx)
	if err != nil {
		return nil, err
	}
	for i, id := range queue {
		places[id] = i + 1
	}
	return places, nil
}

// turnPositions numbers a session's queued turns, oldest first.
func (g *Gateway) turnPositions(ctx context.Context, key goclaw.SessionKey, places map[string]int) error {
	turns, err := g.o.Record.Runs(ctx, goclaw.RunFilter{Session: key, Active: true})
	if err != nil {
		return err
	}
	place := 0
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].State == goclaw.StateQueued {
			place++
			places[turns[i].ID] = place
		}
	}
	return nil
}

// infos summarises runs, with their places in the queue.
func (g *Gateway) infos(ctx context.Context, runs []goclaw.Run) ([]goclaw.RunInfo, error) {
	places, err := g.Positions(ctx, runs)
	if err != nil {
		return nil, err
	}
	infos := make([]goclaw.RunInfo, len(runs))
	for i, r := range runs {
		g.seen(&r)
		infos[i] = r.Info()
		infos[i].Position = places[r.ID]
	}
	return infos, nil
}
