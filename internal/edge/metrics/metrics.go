package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"goclaw"
)

// other stands for what has no label of its own.
const other = "other"

// Options say what is counted by name. Status is required.
type Options struct {
	Version string
	Tools   []string // the tools that have a label
	Status  func(context.Context) (goclaw.Status, error)
	Log     *slog.Logger // nil: slog.Default
}

// Metrics counts. Use New; all methods are safe for concurrent use.
type Metrics struct {
	o     Options
	tools map[string]bool
	serve http.Handler
	scrapes

	accepted, ended, calls, tokens, cost, toolCalls, requests *prometheus.CounterVec
	current, inFlight                                         *prometheus.GaugeVec
	took                                                      *prometheus.HistogramVec
	delay                                                     prometheus.Histogram
	retries                                                   prometheus.Counter

	mu   sync.Mutex
	seen book
}

// scrapes are what is read at the moment of a scrape.
type scrapes struct {
	queued, active, parked, paused prometheus.Gauge
}

// New returns metrics of a process that begins.
func New(o Options) *Metrics {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	m := &Metrics{o: o, tools: map[string]bool{}, seen: newBook()}
	for _, t := range o.Tools {
		m.tools[t] = true
	}
	reg := prometheus.NewRegistry()
	m.register(reg)
	m.serve = promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
		ErrorLog:            slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	})
	return m
}

// register makes all metrics.
func (m *Metrics) register(reg *prometheus.Registry) {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "goclaw_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "goclaw_" + name, Help: help}, labels)
		reg.MustRegister(g)
		return g
	}
	gauge := func(name, help string) prometheus.Gauge { return gauges(name, help).WithLabelValues() }

	m.accepted = counters("runs_accepted_total", "Runs that this process accepted, by what started them.", "trigger")
	m.ended = counters("runs_ended_total", "Runs that ended in this process.", "trigger", "status")
	m.current = gauges("runs_current", "Runs that this process knows of and that have not ended.", "trigger", "status")
	m.calls = counters("model_calls_total", "Model calls whose reply was recorded and used tokens.", "model")
	m.tokens = counters("tokens_total", "Tokens used; those read from and written to a cache are input tokens too.", "model", "kind")
	m.cost = counters("cost_usd_total", "Cost of model calls whose price is known.", "model")
	m.retries = counters("model_retries_total", "Times that a model call had to wait or was made again.").WithLabelValues()
	m.toolCalls = counters("tool_calls_total", "Tool calls that have a result.", "tool", "outcome")
	m.requests = counters("http_requests_total", "HTTP requests that were answered.", "route", "status")
	m.inFlight = gauges("http_requests_in_flight", "HTTP requests under way; of a stream's route, its clients.", "route")
	m.queued = gauge("queue_length", "Runs on record that wait for their turn.")
	m.active = gauge("runs_active", "Runs on record that are under way.")
	m.parked = gauge("parked", "Deliveries that wait for a person.")
	m.paused = gauge("paused", "1 while no model is called.")

	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "goclaw_run_duration_seconds", Help: "Time from a run's first claim to its end.",
		Buckets: []float64{.1, .3, 1, 3, 10, 30, 100, 300, 1000, 3600},
	}, []string{"trigger"})
	m.delay = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "goclaw_announcement_delay_seconds", Help: "Time from a worker's end to the start of the turn that tells of it.",
		Buckets: []float64{.1, .25, .5, 1, 3, 10, 30, 60, 120, 600},
	})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "goclaw_info", Help: "The program's version.", ConstLabels: prometheus.Labels{"version": m.o.Version},
	})
	info.Set(1)
	reg.MustRegister(m.took, m.delay, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, err := m.o.Status(r.Context())
	if err != nil {
		// What was counted is told all the same.
		m.o.Log.Warn("metrics without the gateway's status", "err", err)
	} else {
		m.queued.Set(float64(s.Queued))
		m.active.Set(float64(s.Active))
		m.parked.Set(float64(s.Parked))
		m.paused.Set(0)
		if s.Paused.At != 0 {
			m.paused.Set(1)
		}
	}
	m.serve.ServeHTTP(w, r)
}

// Request counts a request of a route; the caller calls end with the status of
// its answer.
func (m *Metrics) Request(route string) (end func(status int)) {
	if route == "" {
		route = other
	}
	g := m.inFlight.WithLabelValues(route)
	g.Inc()
	return func(status int) {
		g.Dec()
		m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	}
}

// Observe counts what a notice tells.
func (m *Metrics) Observe(n goclaw.Notice) {
	switch n.Kind {
	case goclaw.NoticeRun, goclaw.NoticeUsage:
		if n.Run != nil {
			m.run(*n.Run, n.Kind == goclaw.NoticeUsage)
		}
	case goclaw.NoticeRetry:
		m.retries.Inc()
	case goclaw.NoticeToolResult:
		if n.Result == nil {
			return
		}
		name, outcome := n.Result.Name, "ok"
		if !m.tools[name] {
			name = other
		}
		if n.Result.IsError {
			outcome = "error"
		}
		m.toolCalls.WithLabelValues(name, outcome).Inc()
	}
}

// run counts what has changed of a run.
func (m *Metrics) run(r goclaw.Run, step bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.seen.runs[r.ID]
	if m.seen.over(r.ID) || step && !known {
		return // it came late
	}
	trigger, model := string(r.Trigger), m.seen.label(r.Profile.Model)
	if known {
		m.current.WithLabelValues(trigger, string(before.state)).Dec()
	} else if r.State == goclaw.StateQueued && r.StartedAt == 0 {
		m.accepted.WithLabelValues(trigger).Inc()
	}
	if known || r.State == goclaw.StateQueued { // else its earlier calls were counted by another process
		m.used(model, before.usage, r.Usage)
	}
	if r.State == goclaw.StateRunning && r.Trigger == goclaw.TriggerAnnouncement && before.state != goclaw.StateRunning {
		for _, end := range m.seen.told(r.Session) {
			m.delay.Observe(float64(max(0, r.StartedAt-end)) / 1000)
		}
	}
	if !r.State.Ended() {
		m.seen.runs[r.ID] = tracked{r.State, r.Usage}
		m.current.WithLabelValues(trigger, string(r.State)).Inc()
		return
	}
	m.seen.end(r)
	m.ended.WithLabelValues(trigger, string(r.State)).Inc()
	if r.StartedAt != 0 {
		m.took.WithLabelValues(trigger).Observe(float64(r.DurationMs()) / 1000)
	}
}

// used counts what was used since the last notice.
func (m *Metrics) used(model string, before, now goclaw.Usage) {
	if now.Input != before.Input || now.Output != before.Output {
		m.calls.WithLabelValues(model).Inc()
	}
	for kind, n := range map[string]int64{
		"input": now.Input - before.Input, "output": now.Output - before.Output,
		"cache_read": now.CacheRead - before.CacheRead, "cache_write": now.CacheWrite - before.CacheWrite,
	} {
		if n > 0 {
			m.tokens.WithLabelValues(model, kind).Add(float64(n))
		}
	}
	if now.CostUSD != nil {
		cost := *now.CostUSD
		if before.CostUSD != nil {
			cost -= *before.CostUSD
		}
		if cost > 0 {
			m.cost.WithLabelValues(model).Add(cost)
		}
	}
}
