package telemetry

import (
	"context"
	"log/slog"
	"time"

	tracev1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"goclaw"
)

const (
	// queueLen bounds the ended runs that wait to be sent.
	queueLen = 1024
	// batchLen is how many runs go into one request at most.
	batchLen = 32
	// lastWords is how long a process that stops may go on sending.
	lastWords = 3 * time.Second
)

// Record reads a run with its events.
type Record func(ctx context.Context, run string) (goclaw.RunLog, error)

// Options say where traces go, and what they hold. URL is required.
type Options struct {
	URL     string // http(s)://HOST:PORT/v1/traces
	Headers map[string]string

	// Resource describes the process: service.name, service.version and what
	// else a person wants to see of it.
	Resource map[string]string

	// Content also sends what was said: prompts, replies, arguments, results.
	Content bool

	Log *slog.Logger // nil: slog.Default
}

// Exporter sends the traces of ended runs. Use New; Observe is safe for
// concurrent use.
type Exporter struct {
	o      Options
	record Record
	ended  chan string
	sender sender
	lost   bool // it was said that traces are lost
}

// New returns an exporter that sends nothing until Run.
func New(o Options, record Record) *Exporter {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Exporter{o: o, record: record, ended: make(chan string, queueLen), sender: newSender(o)}
}

// Observe takes note of a run that has ended. It never blocks: when too many
// wait, their traces are lost.
func (e *Exporter) Observe(n goclaw.Notice) {
	if n.Kind != goclaw.NoticeRun || n.Run == nil || !n.Run.State.Ended() {
		return
	}
	select {
	case e.ended <- n.Run.ID:
	default:
	}
}

// Run sends until ctx ends, and then, for a moment, what has ended before.
func (e *Exporter) Run(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	defer stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case run := <-e.ended:
			e.send(sending, e.more([]string{run}))
		}
	}
	for batch := e.more(nil); len(batch) > 0 && sending.Err() == nil; batch = e.more(nil) {
		e.send(sending, batch)
	}
}

// more adds the runs that wait already.
func (e *Exporter) more(batch []string) []string {
	for len(batch) < batchLen {
		select {
		case run := <-e.ended:
			batch = append(batch, run)
		default:
			return batch
		}
	}
	return batch
}

// send sends the traces of some runs. The failure of a collector is told once.
func (e *Exporter) send(ctx context.Context, runs []string) {
	var spans []*tracev1.Span
	for _, id := range runs {
		log, err := e.record(ctx, id)
		if err != nil {
			e.o.Log.Debug("a run can't be traced", "run", id, "err", err)
			continue
		}
		spans = append(spans, Spans(log, e.o.Content)...)
	}
	if len(spans) == 0 {
		return
	}
	err := e.sender.send(ctx, spans)
	switch {
	case err != nil && !e.lost:
		e.lost = true
		e.o.Log.Warn("traces are lost: the collector does not take them; runs go on without", "collector", e.sender.where(), "err", err)
	case err == nil && e.lost:
		e.lost = false
		e.o.Log.Info("the collector takes traces again", "collector", e.sender.where())
	}
}
