package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"goclaw"
)

// window is announceWindowMs, as the configuration has it by default.
const window = 250 * time.Millisecond

// ends measures what it costs the requester when all workers of one of its
// turns end at once.
func (b *bench) ends(ctx context.Context) ([]Figure, error) {
	n := b.crowd(b.size.ends)
	g, err := b.gateway(ctx, raised(n))
	if err != nil {
		return nil, err
	}
	defer g.stop()
	means := fmt.Sprintf("How often the requester is woken when %d workers of one turn end at the same time, and how long it takes until the last result has reached its model. ", n)
	how := fmt.Sprintf("One turn spawns %d workers with announce: %%s; the model server holds their replies until all have asked, then answers all. "+
		"Turns are the requests there that carry results; the time is from the release to the last of them, by its clock. Gateway, model server and bench share the machine's CPUs.", n)
	together, err := b.endRound(ctx, g, "together", n, holdTask)
	if err != nil {
		return nil, err
	}
	each, err := b.endRound(ctx, g, "each", n, eachMode+holdTask)
	if err != nil {
		return nil, err
	}
	windows := math.Ceil(float64(each.took)/float64(window)) + 1
	return []Figure{{
		ID: "ends.together", Name: fmt.Sprintf("%d workers end at once, together", n), Values: together.values(),
		Means: means + "Mode `together` is the default: one turn takes all results.",
		How:   fmt.Sprintf(how, "together"), Aim: &Aim{Label: "turns", Bound: 1, Words: "1 turn"},
	}, {
		ID: "ends.each", Name: fmt.Sprintf("%d workers end at once, each", n), Values: each.values(),
		Means: means + fmt.Sprintf("Mode `each` wakes it once per window of %s, with all results that have come until then.", window),
		How:   fmt.Sprintf(how, "each"), Aim: &Aim{Label: "turns", Bound: windows, Words: fmt.Sprintf("once per window: ≤ %.0f turns", windows)},
	}}, nil
}

// ended is how one crowd ended.
type ended struct {
	turns int
	took  time.Duration
	busy  time.Duration // the gateway's processor time
	n     int
}

func (e ended) values() []Value {
	return []Value{count("turns", float64(e.turns), ""), count("wall time", float64(e.took.Milliseconds()), "ms"), work(e.busy, e.n)}
}

func (b *bench) endRound(ctx context.Context, g *gateway, session string, n int, task string) (ended, error) {
	e := ended{n: n}
	if _, err := b.gather(ctx, g, goclaw.APIKey("main", session), n, task); err != nil {
		return e, err
	}
	// The turn that spawned ends before its workers do.
	if err := b.arrive(ctx, kindResult, 1, crowdWait); err != nil {
		return e, err
	}
	busy := g.worked()
	if err := b.release(ctx); err != nil {
		return e, err
	}
	if err := b.arrive(ctx, kindAnnounce, 1, crowdWait); err != nil {
		return e, err
	}
	if err := b.quiet(ctx, g, crowdWait); err != nil {
		return e, err
	}
	e.busy = g.worked() - busy
	m, err := b.marks(ctx)
	if err != nil {
		return e, err
	}
	for _, one := range m.Requests {
		if one.Kind == kindAnnounce {
			e.turns++
			e.took = max(e.took, time.Duration(one.Arrived-m.Released))
		}
	}
	return e, nil
}
