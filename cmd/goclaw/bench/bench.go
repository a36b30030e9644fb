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
	"strconv"
	"strings"
	"time"

	"goclaw"
)

// Options say what to measure with.
type Options struct {
	Program string   // the goclaw executable
	Env     []string // of its processes; keys and homes in it are dropped
	Quick   bool     // few repetitions, for CI
	Only    []string // names of parts; none means all

	// ModelServer are the arguments that make Program the model server.
	ModelServer []string
	// SDKCalls are the arguments, before its own, that make Program the caller
	// of SDKCalls.
	SDKCalls []string
	// Progress gets a line before each part; nil discards.
	Progress io.Writer
}

// sizes are how often and how much is measured.
type sizes struct {
	starts, turns, counted, spawns, crowds, waiting, alone, ends, runs, writers, syncs, prompts, followers, followed int

	settle time.Duration
}

var (
	fullSize  = sizes{starts: 10, turns: 200, counted: 20, spawns: 20, crowds: 5, waiting: 10000, alone: 2000, ends: 1000, runs: 2000, writers: 32, syncs: 500, prompts: 2000, followers: 200, followed: 8, settle: 6 * time.Second}
	quickSize = sizes{starts: 3, turns: 20, counted: 5, spawns: 3, crowds: 1, waiting: 100, alone: 100, ends: 50, runs: 200, writers: 16, syncs: 50, prompts: 100, followers: 20, followed: 2, settle: time.Second}
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
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return Report{}, goclaw.BadRequest(fmt.Sprintf("no part is named %q; there are: %s", name, strings.Join(Parts(), ", ")))
		}
	}
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
	r := Report{Machine: machine(), Build: build(), Quick: o.Quick, Load: loadAverage()}
	for _, part := range allParts() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, part.name) {
			continue
		}
		fmt.Fprintf(b.o.Progress, "measuring %s: %s …\n", part.name, part.what)
		figures, err := part.run(b, ctx)
		if err != nil {
			return r, fmt.Errorf("bench: %s: %w", part.name, err)
		}
		for _, f := range figures {
			r.Figures = append(r.Figures, f.judge())
		}
	}
	return r, nil
}

// part is a group of figures that are measured together.
type part struct {
	name, what string
	run        func(*bench, context.Context) ([]Figure, error)
}

// Parts are the names for Options.Only.
func Parts() []string {
	var names []string
	for _, p := range allParts() {
		names = append(names, p.name)
	}
	return names
}

func allParts() []part {
	return []part{
		{"disk", "what a durable write costs at least", (*bench).disk},
		{"init", "what happens before main", (*bench).initialisation},
		{"start", "cold starts and idle memory", (*bench).start},
		{"turns", "turns of one conversation", (*bench).turns},
		{"spawn", "one worker, and five", (*bench).spawnFew},
		{"many", "fifty workers", (*bench).spawnMany},
		{"runs", "durable runs per second", (*bench).throughput},
		{"database", "the same without engine and model", (*bench).database},
		{"waiting", "many workers that wait", (*bench).waiting},
		{"ends", "many workers that end at once", (*bench).ends},
		{"follow", "many clients that follow live runs", (*bench).following},
		{"prompt", "what is sent to a model, and what it takes to put it together", (*bench).prompt},
	}
}

func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// loadAverage is how many processes wanted to run in the minute before, 0 where
// it can't be read.
func loadAverage() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	minute, _, _ := strings.Cut(string(raw), " ")
	load, err := strconv.ParseFloat(minute, 64)
	if err != nil {
		return 0
	}
	return load
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
