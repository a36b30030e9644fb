package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"goclaw"
)

const (
	runsAim      = 500.0
	sessionCount = 64
)

// throughput measures how many runs per second are taken from acceptance to
// end, on each database.
func (b *bench) throughput(ctx context.Context) ([]Figure, error) {
	embedded, err := b.onSQLite(ctx)
	if err != nil {
		return nil, err
	}
	scaled, err := b.onPostgres(ctx)
	return append(embedded, scaled...), err
}

// flood is what a number of messages at once took.
type flood struct {
	runs           int
	took, accepted time.Duration
	goclaw         time.Duration // processor time of the gateway and the workers
	models, bench  time.Duration // of the model server and of this process
}

// flood sends the messages to a gateway, which executes them alone or with
// workers, and returns once nothing is left to do.
func (b *bench) flood(ctx context.Context, g *gateway, workers ...*process) (flood, error) {
	f := flood{runs: b.size.runs}
	if _, _, err := b.chat(ctx, g, goclaw.APIKey("main", "first"), "Hello."); err != nil {
		return f, err
	}
	work := func() (mine, models, own time.Duration) {
		mine = g.worked()
		for _, w := range workers {
			mine += w.worked()
		}
		return mine, b.models.worked(), workedBy(os.Getpid()).own
	}
	mine, models, own := work()
	began := time.Now()
	err := b.together(b.size.writers, f.runs, func(i int) error {
		_, err := g.api.Receive(ctx, goclaw.Inbound{
			Session: goclaw.APIKey("main", fmt.Sprintf("s%d", i%sessionCount)), Text: "Hello.",
		})
		return err
	})
	if err != nil {
		return f, err
	}
	f.accepted = time.Since(began)
	if err := b.quiet(ctx, g, crowdWait); err != nil {
		return f, err
	}
	f.took = time.Since(began)
	f.goclaw, f.models, f.bench = work()
	f.goclaw, f.models, f.bench = f.goclaw-mine, f.models-models, f.bench-own
	return f, nil
}

func (f flood) rate(d time.Duration) float64 { return float64(f.runs) / d.Seconds() }

func (f flood) per(n float64) float64 { return n / float64(f.runs) }

// shares are the processor times of all but the database.
func (f flood) shares() []Value {
	return []Value{share("CPU of goclaw", f.goclaw, f.took), share("of the model server", f.models, f.took), share("of the bench", f.bench, f.took)}
}

// onSQLite is one gateway, which owns its database.
func (b *bench) onSQLite(ctx context.Context) (_ []Figure, err error) {
	fsync, err := b.syncTime(ctx)
	if err != nil {
		return nil, err
	}
	g, err := b.gateway(ctx, "")
	if err != nil {
		return nil, err
	}
	defer g.stop()
	log, err := followWAL(filepath.Join(g.home, "goclaw.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	done := b.follow(log)
	f, err := b.flood(ctx, g)
	commits, lerr := done()
	if err := errors.Join(err, lerr); err != nil {
		return nil, err
	}
	return []Figure{{
		ID: "runs", Name: "Durable runs per second, whole path", Values: []Value{
			count("runs", f.rate(f.took), "/s"), count("accepted", f.rate(f.accepted), "/s"), work(f.goclaw, f.runs),
		},
		Means: "How many turns per second are taken all the way, each recorded durably: accept, claim, prompt, model call over HTTP, reply and end. " +
			"Accepted counts the durable receipts while that goes on; its own CPU is goclaw's processor time per run. SQLite has one owner: one process.",
		How: fmt.Sprintf("%d messages by %d clients at once over HTTP to %d sessions (turns of one session follow each other and see what came before), "+
			"until nothing is left to do. goclaw, database, model server and bench share the machine's CPUs.", b.size.runs, b.size.writers, sessionCount),
		Aim: &Aim{Label: "runs", Bound: runsAim, Least: true, Words: "≥ 500/s"},
	}, {
		ID: "runs.share", Name: "  who is busy meanwhile", Values: append([]Value{
			count("commits per run", f.per(float64(commits)), ""), count("time in fsync", 100*float64(commits)*float64(fsync)/float64(f.took), "%"),
		}, f.shares()...),
		Means: "The database's own share: commits (turns that come together share one) and the part of the time in which one of them waits for the disk; " +
			"SQLite's processor time is in goclaw's. Then how much of all processors each process used: what is nearest to the whole limits.",
		How: "Commits are counted in the write-ahead log; the time in fsync is their number times the p50 of one fsync. Processor time from /proc/PID/stat.",
	}}, nil
}

// follow counts the log's commits in the background until done is called, which
// must be.
func (b *bench) follow(log *wal) (done func() (int, error)) {
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			_, err := log.count()
			if err != nil {
				result <- err
				return
			}
			select {
			case <-tick.C:
			case <-stop:
				result <- nil
				return
			}
		}
	}()
	return func() (int, error) {
		close(stop)
		if err := <-result; err != nil {
			return 0, err
		}
		return log.count()
	}
}

// together calls do(0) to do(n-1) from several goroutines and returns the
// first error.
func (b *bench) together(writers, n int, do func(int) error) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range next {
				if errs[w] = do(i); errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
