package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"goclaw"
)

const (
	crowdWait  = 5 * time.Minute // until a crowd of workers has begun or ended
	waitingAim = 120.0           // KB
	enough     = 1000            // workers for a figure that is compared with the aim: what comes first weighs little then
	spareFiles = 500             // open files that are not a worker's connection
)

// waiting measures what workers cost that wait for their models, and what of
// that the SDK alone would hold.
func (b *bench) waiting(ctx context.Context) ([]Figure, error) {
	n := b.crowd(b.size.waiting)
	f := Figure{
		ID: "waiting", Name: fmt.Sprintf("Memory with %d waiting workers", n),
		Means: "What a gateway holds while that many workers all wait in the middle of a streamed reply: the usual state of a busy gateway. " +
			"Per worker is what the workers added; in all, the whole process shared out among them. The most is what it took while they all began.",
		How: fmt.Sprintf("One turn spawns %d workers, whose replies stall after %d bytes in a model server that is a process of its own; memory %s after the last has "+
			"begun, less that of the same gateway after one turn before. VmRSS and VmHWM of /proc/PID/status. maxChildrenPerAgent and maxConcurrent are raised to %d by the configuration.",
			n, stallBytes, b.size.settle, n),
	}
	if n >= enough {
		f.Aim = &Aim{Label: "in all", Bound: waitingAim, Words: fmt.Sprintf("≤ %.0f KB each", waitingAim)}
	}
	if n < b.size.waiting {
		f.How += fmt.Sprintf(" This system lets a process open too few files for %d workers (ulimit -n).", b.size.waiting)
	}
	g, err := b.gateway(ctx, raised(n))
	if err != nil {
		return nil, err
	}
	defer g.stop()
	talk := goclaw.APIKey("main", "waiting")
	if _, _, err := b.chat(ctx, g, talk, "Hello."); err != nil {
		return nil, err
	}
	before, err := b.memoryOf(ctx, g.process)
	if errors.Is(err, errNoProc) {
		f.Missing = err.Error()
		return []Figure{f}, nil
	}
	if err != nil {
		return nil, err
	}
	took, err := b.gather(ctx, g, talk, n, stallTask)
	if err != nil {
		return nil, err
	}
	after, err := b.memoryOf(ctx, g.process)
	if err != nil {
		return nil, err
	}
	each := func(mb float64) float64 { return mb * 1000 / float64(n) }
	f.Values = []Value{
		count("per worker", each(after.rss-before.rss), "KB"), count("in all", each(after.rss), "KB"), count("most", each(after.peak), "KB"),
		count("RSS", after.rss, "MB"), count("until all wait", took.Seconds(), "s"),
	}
	m, err := b.marks(ctx)
	if err != nil {
		return nil, err
	}
	g.stop()
	alone, err := b.alone(ctx, n, m.Bodies[kindWorker])
	return []Figure{f, alone}, err
}

// crowd is n, or fewer if a process can't open a connection for each.
func (b *bench) crowd(n int) int {
	raw, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return n
	}
	_, line, _ := strings.Cut(string(raw), "Max open files")
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return n
	}
	most, err := strconv.Atoi(fields[1]) // the hard limit, which Go programs raise theirs to
	if err != nil {
		return n // unlimited
	}
	return min(n, max(1, most-spareFiles))
}

// gather has one turn of a session spawn n workers, and waits until all have
// asked the model.
func (b *bench) gather(ctx context.Context, g *gateway, talk goclaw.SessionKey, n int, task string) (time.Duration, error) {
	if err := b.reset(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := g.api.Receive(ctx, goclaw.Inbound{Session: talk, Text: fmt.Sprintf("%s%d %s", spawnOrder, n, task)}); err != nil {
		return 0, err
	}
	err := b.arrive(ctx, kindWorker, n, crowdWait)
	return time.Since(began), err
}

// alone measures the same calls made by the official SDK and nothing else.
func (b *bench) alone(ctx context.Context, n int, body []byte) (Figure, error) {
	n = min(n, b.size.alone)
	f := Figure{
		ID: "waiting.sdk", Name: "  the SDK's call alone",
		Means: "What the official SDK and the HTTP client hold for one waiting call in a program that does nothing else: the loop of the SDK's own README. " +
			"goclaw waits on the same SDK calls, but holds neither the SDK's event type nor the request's bytes while nothing comes, and uses smaller buffers; " +
			"its own share is the run, its transcript and its context.",
		How: fmt.Sprintf("%d calls with a worker's request in a process of its own, against the same model server; its memory after it was collected three times, as "+
			"a gateway does when it has become quiet, less that before the calls. Stacks and live objects are the Go runtime's own count.", n),
	}
	path := filepath.Join(b.dir, "request.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return f, err
	}
	if err := b.reset(ctx); err != nil {
		return f, err
	}
	p, err := b.launch(ctx, b.dir, nil, append(b.o.SDKCalls, b.models.url, strconv.Itoa(n), path)...)
	if err != nil {
		return f, err
	}
	defer p.stop()
	before, err := b.memoryOf(ctx, p)
	if err != nil {
		return f, err
	}
	if _, err := fmt.Fprintln(p.in, "go"); err != nil {
		return f, err
	}
	var held held
	if _, err := fmt.Fscanln(p.out, &held.stacks, &held.objects); err != nil {
		return f, fmt.Errorf("the process of the SDK's calls: %w", err)
	}
	after, err := b.memoryOf(ctx, p)
	if err != nil {
		return f, err
	}
	each := func(bytes float64) float64 { return math.Round(bytes/float64(n)) / 1000 }
	f.Values = []Value{
		count("per call", each((after.rss-before.rss)*1e6), "KB"),
		count("stacks", each(float64(held.stacks)), "KB"), count("live objects", each(float64(held.objects)), "KB"),
	}
	return f, b.reset(ctx)
}
