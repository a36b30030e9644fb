package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goclaw"
)

const (
	spawnWait = 2 * time.Minute
	fewAim    = 5.0   // ms
	manyAim   = 200.0 // ms
	many      = 50
)

const spawnMeans = "From the moment the model's reply with the sessions_spawn calls has left the model server to the arrival there of the request that " +
	"announces all results to the requester. In it: the reply's record, the calls, the workers' own model calls (they answer at once), " +
	"their ends, the end of the turn that spawned them, and the announcement's turn. Mode `together` has no window to wait for. " +
	"Its own CPU is the gateway's processor time for the whole round, with the turns before and after."

// spawnFew measures one worker, and five of one turn.
func (b *bench) spawnFew(ctx context.Context) ([]Figure, error) {
	g, err := b.gateway(ctx, "")
	if err != nil {
		return nil, err
	}
	defer g.stop()
	how := fmt.Sprintf("%d turns after one for warming up, each in a new session of a running gateway with default limits; both moments are taken by the model server's clock.", b.size.spawns)
	var figures []Figure
	for _, n := range []int{1, 5} {
		var took sample
		var busy time.Duration
		for i := range b.size.spawns + 1 {
			if i == 1 {
				busy = g.worked()
			}
			d, err := b.spawnRound(ctx, g, fmt.Sprintf("few-%d-%d", n, i), n)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				took = append(took, d)
			}
		}
		f := Figure{
			ID: fmt.Sprintf("spawn.%d", n), Name: "Spawn → announcement, 1 worker", Values: append(took.spread(), work(g.worked()-busy, b.size.spawns)), Means: spawnMeans, How: how,
			Aim:       &Aim{Label: "median", Bound: fewAim, Words: "≤ 5 ms"},
			Elsewhere: elsewhere("OpenClaw 480 ms per spawn"),
		}
		if n > 1 {
			f.Name = fmt.Sprintf("Spawn → announcement, %d workers", n)
			f.Aim = &Aim{Label: "median", Bound: fewAim * float64(n), Words: fmt.Sprintf("≤ %d × 5 ms", n)}
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// spawnMany measures a crowd of workers of one turn.
func (b *bench) spawnMany(ctx context.Context) ([]Figure, error) {
	g, err := b.gateway(ctx, raised(many))
	if err != nil {
		return nil, err
	}
	defer g.stop()
	var took sample
	var busy time.Duration
	for i := range b.size.crowds + 1 {
		if i == 1 {
			busy = g.worked()
		}
		d, err := b.spawnRound(ctx, g, fmt.Sprintf("many-%d", i), many)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			took = append(took, d)
		}
	}
	return []Figure{{
		ID: "spawn.50", Name: fmt.Sprintf("%d workers, wall time", many), Values: append(took.spread(), work(g.worked()-busy, b.size.crowds)), Means: spawnMeans,
		How: fmt.Sprintf("As above, %d times; maxChildrenPerAgent (default 5) and maxConcurrent (default 8) are raised to %d by the configuration. "+
			"Gateway, model server and bench share the machine's CPUs.", b.size.crowds, many),
		Aim:       &Aim{Label: "median", Bound: manyAim, Words: "≤ 200 ms"},
		Elsewhere: elsewhere("OpenClaw 23 s"),
	}}, nil
}

// spawnRound has n workers spawned by one turn and returns the time to their
// announcement.
func (b *bench) spawnRound(ctx context.Context, g *gateway, session string, n int) (time.Duration, error) {
	if err := b.reset(ctx); err != nil {
		return 0, err
	}
	_, err := g.api.Receive(ctx, goclaw.Inbound{
		Session: goclaw.APIKey("main", session), Text: fmt.Sprintf("%s%d %s", spawnOrder, n, quickTask),
	})
	if err != nil {
		return 0, err
	}
	if err := b.arrive(ctx, kindAnnounce, 1, spawnWait); err != nil {
		return 0, err
	}
	if err := b.quiet(ctx, g, spawnWait); err != nil {
		return 0, err
	}
	m, err := b.marks(ctx)
	if err != nil {
		return 0, err
	}
	var left, arrived int64
	seen := map[string]int{}
	for _, one := range m.Requests {
		seen[one.Kind]++
		switch one.Kind {
		case kindSpawn:
			left = one.Left
		case kindAnnounce:
			arrived = one.Arrived
		}
	}
	if seen[kindWorker] != n || seen[kindAnnounce] != 1 {
		return 0, fmt.Errorf("%d workers were asked for; the model server saw %d, and %d announcements", n, seen[kindWorker], seen[kindAnnounce])
	}
	return time.Duration(arrived - left), nil
}

// quiet waits until the gateway has nothing to do.
func (b *bench) quiet(ctx context.Context, g *gateway, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the gateway was not done in time"))
	defer cancel()
	for {
		s, err := g.api.Status(ctx)
		if err != nil {
			return err
		}
		if s.Active == 0 && s.Queued == 0 {
			return nil
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
