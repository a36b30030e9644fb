package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Options say what to measure with.
type Options struct {
	Program string   // the goclaw executable
	Env     []string // of its processes; keys and homes in it are dropped
	Quick   bool     // few repetitions, for CI

	// ModelServer are the arguments that make Program the model server.
	ModelServer []string
	// Progress gets a line before each part; nil discards.
	Progress io.Writer
}

// sizes are how often and how much is measured.
type sizes struct {
	starts, turns, counted, spawns, crowds, waiting, runs, writers, syncs int

	settle time.Duration
}

var (
	fullSize  = sizes{starts: 10, turns: 200, counted: 20, spawns: 20, crowds: 5, waiting: 1000, runs: 2000, writers: 32, syncs: 500, settle: 3 * time.Second}
	quickSize = sizes{starts: 3, turns: 20, counted: 5, spawns: 3, crowds: 1, waiting: 100, runs: 200, writers: 16, syncs: 50, settle: time.Second}
)

// bench is one measurement under way.
type bench struct {
	o      Options
	size   sizes
	dir    string // temporary
	http   *http.Client
	models *process
	fsync  time.Duration // p50, once measured
}

// Run measures everything, one part after another. The first part that fails
// ends it.
func Run(ctx context.Context, o Options) (Report, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	b := &bench{o: o, size: fullSize, http: &http.Client{Transport: transport}}
	if o.Quick {
		b.size = quickSize
	}
	if o.Progress == nil {
		b.o.Progress = io.Discard
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "goclaw-bench-*"); err != nil {
		return Report{}, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(b.dir)
	if b.models, err = b.launch(ctx, b.dir, nil, o.ModelServer...); err != nil {
		return Report{}, fmt.Errorf("bench: %w", err)
	}
	defer b.models.stop()
	r := Report{Machine: machine(), Build: build(), Quick: o.Quick}
	for _, part := range []struct {
		name string
		run  func(context.Context) ([]Figure, error)
	}{
		{"the disk", b.disk}, {"initialisation", b.initialisation}, {"start and idle memory", b.start},
		{"turns", b.turns}, {"spawns", b.spawnFew}, {"many workers", b.spawnMany},
		{"durable runs", b.throughput}, {"the database alone", b.database},
		{"waiting workers", b.waiting}, {"request sizes", b.requests},
	} {
		fmt.Fprintf(b.o.Progress, "measuring %s …\n", part.name)
		figures, err := part.run(ctx)
		if err != nil {
			return r, fmt.Errorf("bench: %s: %w", part.name, err)
		}
		for _, f := range figures {
			r.Figures = append(r.Figures, f.judge())
		}
	}
	return r, nil
}

func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// build says how this program was built, as far as it matters here.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var said []string
	for _, s := range info.Settings {
		if slices.Contains([]string{"-ldflags", "-trimpath", "-race", "CGO_ENABLED", "vcs.revision", "vcs.modified"}, s.Key) {
			said = append(said, s.Key+"="+s.Value)
		}
	}
	return strings.Join(said, " ")
}
