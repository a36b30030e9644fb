package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/metrics"
	"goclaw/internal/edge/page"
	"goclaw/internal/edge/telemetry"
	"goclaw/internal/edge/tool/artifact"
	crontool "goclaw/internal/edge/tool/cron"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/file"
	"goclaw/internal/edge/tool/memory"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/edge/tool/slice"
	"goclaw/internal/edge/trust"
	"goclaw/internal/edge/web"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/cron"
	"goclaw/internal/runtime/engine"
	"goclaw/internal/runtime/feed"
	"goclaw/internal/runtime/gateway"
	"goclaw/internal/runtime/recall"
)

// app is the gateway in this process: wired, and running once start was called.
type app struct {
	home     home
	settings settings
	token    atomic.Pointer[string]
	log      *slog.Logger
	store    database
	engine   *engine.Engine
	publish  func(goclaw.Notice)
	exec     *exec.Tool
	memory   *recall.Memory
	handler  http.Handler
	url      string // where it serves HTTP; "" until it does
	began    time.Time
	page     http.Handler // the web page; nil in a process that only reads
	metrics  *metrics.Metrics
	traces   *telemetry.Exporter // nil: nobody collects them
	laidOut  []string            // workspaces that were fresh
	lock     *homeLock           // nil in a process that only reads
	idle     bool                // no process executes the home's runs; set before use
	clock    bool                // jobs fire here; set before start
	jobs     *cron.Service

	stop     context.CancelCauseFunc
	done     sync.WaitGroup
	dispatch atomic.Bool
	broken   chan error // gets why serving ended by itself
	server   *http.Server
	hangUp   context.CancelCauseFunc // ends the server's streams
}

// announceBackoff is between the first two tries to announce.
const announceBackoff = 30 * time.Second

// open wires the gateway. With a lock it may run the home's runs; without one
// it only reads and asks.
func open(ctx context.Context, s settings, lock *homeLock, log *slog.Logger, hook func(string)) (*app, error) {
	a := &app{home: s.home, settings: s, log: log, lock: lock, began: time.Now(), broken: make(chan error, 2)}
	if err := a.wire(ctx, hook); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *app) wire(ctx context.Context, hook func(string)) (err error) {
	s := a.settings
	token, err := a.pickToken()
	if err != nil {
		return err
	}
	a.token.Store(&token)
	s.hide.Add(token)
	for _, id := range s.agentIDs() {
		fresh, err := prepareWorkspace(s.rules.Agents[id], s.trust, a.began)
		if err != nil {
			return err
		}
		if fresh {
			a.laidOut = append(a.laidOut, s.rules.Agents[id].Workspace)
		}
	}
	var changes <-chan string
	if a.store, changes, err = openDatabase(ctx, s, hook, a.log); err != nil {
		return err
	}
	a.exec = exec.New(exec.Options{
		Home: string(a.home), DefaultTimeout: time.Duration(s.exec.TimeoutSeconds) * time.Second,
		MaxOutput: s.exec.MaxOutputBytes, Network: s.exec.Network, ReadOnly: s.exec.ReadOnly,
		Shelves: s.skills.Shelves,
	})
	tools := append(file.Tools(file.Options{Home: string(a.home), Shelves: s.skills.Shelves}), a.exec)
	broker := feed.New()
	a.memory = a.newMemory()
	a.watch(broker)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := engine.Options{
		Store: a.store, Models: s.models, Tools: tools, Rules: s.rules, Skills: s.skills,
		Owner:     fmt.Sprintf("%s/%d/%s", host, os.Getpid(), uuid.NewString()[:8]),
		SoleOwner: a.lock != nil && !s.shared(), Lease: s.lease,
		MaxWorkers: s.maxWorkers, MaxPerLane: s.maxPerLane, MaxPerAgent: s.maxPerAgent,
		MaxCalls: s.maxCalls, ArchiveAfter: s.archiveAfter, Drain: s.drain, Batch: s.batch(), TurnsAfter: s.turnsAfter,
		Prices: s.prices.Price, Rates: s.rates, Changes: changes,
		Mentions: file.Mentions{Home: string(a.home)}, Texts: texts{slice.Reader{Home: string(a.home)}},
		Announce: announce.Policy{
			Window: s.announceWindow, MaxWait: s.announceMaxWait, Attempts: s.announceAttempts, Backoff: announceBackoff,
		},
		Publish: a.publish, Hook: hook, NewID: uuid.NewString, Log: a.log,
	}
	s.prompting.into(&o, host, runtime.GOOS+"/"+runtime.GOARCH)
	if a.engine, err = engine.New(o); err != nil {
		return err
	}
	if a.jobs, err = s.clock.service(a.store, a.engine, s, a.log); err != nil {
		return err
	}
	if err := a.addTools(); err != nil {
		return err
	}
	gw := gateway.New(gateway.Options{
		Runner: a.engine, Explainer: a.engine, Record: a.store, Feed: broker, Library: shelf{s},
		ResolveModel: s.models.Resolve, Agents: s.agentIDs(), Status: a.status, Log: a.log,
		Idle:      a.alone,
		Elsewhere: elsewhere(s, o.Owner),
		Memory:    a.memory,
		Jobs:      a.store,
	})
	surface := web.Options{
		Token: token, NewToken: a.newToken, Limits: s.limits, Backend: gw, Crontab: a.jobs, Logger: a.log, Version: version, Ready: a.ready,
		Agents: s.agentIDs(), Hosts: s.hosts(), Redact: s.hide.Text,
	}
	if a.lock != nil { // it may serve
		a.page = page.Handler()
		surface.Page, surface.SignedOut, surface.Metrics = a.page, page.SignedOut(), a.metrics
	}
	a.handler = web.New(surface)
	return nil
}

// addTools adds the tools that speak of runs, what they left, what is
// remembered, and jobs, and those that use the web.
func (a *app) addTools() error {
	zone := a.settings.prompting.zone
	for _, t := range slices.Concat(
		sessions.Tools(a.engine, a.store, a.store), artifact.Tools(a.store, announce.ResultArtifact),
		memory.Tools(a.memory, workspace.Notes{}, zone), []goclaw.Tool{crontool.New(a.jobs, zone)}, a.settings.web,
	) {
		if err := a.engine.AddTool(t); err != nil {
			return err
		}
	}
	return nil
}

// watch decides who hears of what happens: whoever follows it live, the memory,
// the metrics of a process that may serve, and a collector of traces.
func (a *app) watch(broker *feed.Broker) {
	watchers := []func(goclaw.Notice){broker.Publish, a.remind}
	if a.lock != nil {
		a.metrics = metrics.New(metrics.Options{Version: version, Tools: mainTools, Status: a.status, Log: a.log})
		watchers = append(watchers, a.metrics.Observe)
	}
	if o := a.settings.traces; o.URL != "" {
		o.Log = a.log
		a.traces = telemetry.New(o, a.runLog)
		watchers = append(watchers, a.traces.Observe)
	}
	a.publish = func(n goclaw.Notice) {
		for _, tell := range watchers {
			tell(n)
		}
	}
}

// runLog reads a run with its events.
func (a *app) runLog(ctx context.Context, id string) (goclaw.RunLog, error) {
	run, err := a.store.Run(ctx, id)
	if err != nil {
		return goclaw.RunLog{}, err
	}
	events, err := a.store.Events(ctx, id)
	return goclaw.RunLog{Run: run, Events: events}, err
}

// alone reports whether no process executes the runs of this store.
func (a *app) alone() bool { return a.idle && !a.settings.shared() }

// elsewhere tells of runs that other processes than owner hold; nil if there
// are no others.
func elsewhere(s settings, owner string) func(goclaw.Run) bool {
	if !s.shared() {
		return nil
	}
	return func(r goclaw.Run) bool { return r.Owner != owner }
}

// pickToken is the token that clients must bring. A process without the lock
// must not make one: a gateway may be running with it.
func (a *app) pickToken() (string, error) {
	switch {
	case a.settings.token != "":
		return a.settings.token, nil
	case a.lock != nil:
		if open := a.home.open(); open != "" {
			a.log.Warn("the token is no secret", "what", open)
		}
		return a.home.makeToken()
	}
	return newToken(), nil
}

// newToken replaces the home's token.
func (a *app) newToken(context.Context) (string, error) {
	switch {
	case a.settings.token != "":
		return "", goclaw.BadRequest(namedToken(a.settings.tokenFrom).Error())
	case a.lock == nil:
		return "", goclaw.BadRequest("this process does not hold the home")
	}
	token := newToken()
	a.settings.hide.Add(token)
	if err := a.home.writeToken(token); err != nil {
		return "", err
	}
	a.token.Store(&token)
	return token, nil
}

// prepareWorkspace lays out an agent's folder if it is fresh, and says so. One
// in which there was nothing at all is trusted from then on: nothing came with
// it.
func prepareWorkspace(a definition.Agent, trusted *trust.Store, now time.Time) (fresh bool, err error) {
	if info, err := os.Stat(a.Workspace); err == nil && !info.IsDir() {
		return false, usagef("workspace of agent %s: %s is a file; choose a folder with --workspace, or workspace in the configuration", a.ID, a.Workspace)
	}
	before, err := os.ReadDir(a.Workspace)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("workspace of agent %s: %w", a.ID, err)
	}
	created, err := workspace.Prepare(a.Workspace)
	if err != nil {
		return false, fmt.Errorf("agent %s: %w", a.ID, err)
	}
	if len(created) > 0 && len(before) == 0 && !trusted.Inherent(a.Workspace) {
		if _, err := trusted.Trust(a.Workspace, now); err != nil {
			return false, fmt.Errorf("agent %s: %w", a.ID, err)
		}
	}
	return len(created) > 0, nil
}

// start dispatches runs until close.
func (a *app) start(ctx context.Context) {
	ctx, a.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	a.dispatch.Store(true)
	working, finished := context.WithCancel(context.WithoutCancel(ctx))
	if a.traces != nil {
		a.done.Go(func() { a.traces.Run(working) }) // until the last run has ended
	}
	a.done.Go(func() {
		defer finished()
		if err := a.engine.Run(ctx); err != nil {
			a.log.Error("the engine stopped", "err", err)
			a.broken <- fmt.Errorf("the engine stopped: %w", err)
		}
	})
	a.done.Go(func() {
		// No channel is built yet: replies to their sessions are parked, not lost.
		out := gateway.Deliverer{Outbox: a.store, Log: a.log}
		if err := out.Run(ctx); err != nil {
			a.log.Error("deliveries stopped", "err", err)
		}
	})
	a.done.Go(func() {
		watcher{agents: a.settings.rules.Agents, library: a.settings.definitions, publish: a.publish, log: a.log}.run(ctx)
	})
	if a.clock {
		a.done.Go(func() {
			if err := a.jobs.Run(ctx); err != nil {
				a.log.Error("the clock stopped: no job fires any more", "err", err)
			}
		})
	}
	a.done.Go(func() { a.memory.Run(ctx) })
	a.done.Go(func() { rest(ctx) })
}

// bind takes an address before anything is done that a refusal would undo.
func bind(addr string) (net.Listener, error) {
	if err := checkAddr(addr); err != nil {
		return nil, usage(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("can't listen on %s: %w; choose another with --addr HOST:PORT", addr, listenReason(err))
	}
	return l, nil
}

// bindNear listens on addr's port of this machine only, or, if that is taken,
// on a free one: a chat is no server for others.
func bindNear(addr string) (net.Listener, error) {
	if err := checkAddr(addr); err != nil {
		return nil, usage(err)
	}
	host, port, _ := net.SplitHostPort(addr) // it was checked
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		host = "127.0.0.1"
	}
	if l, err := net.Listen("tcp", net.JoinHostPort(host, port)); err == nil {
		return l, nil
	}
	return bind("127.0.0.1:0")
}

func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
		return fmt.Errorf("address %q: want HOST:PORT, such as %s (port 0 chooses one)", addr, defaultAddr)
	}
	return nil
}

// What a client may take until its request is known. The handler bounds the
// rest: bodies, answers, and how many requests there are.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10
)

// newServer serves h; its requests end with ctx.
func newServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// OPTIONS * is answered by the handler, like all that is asked.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
	}
}

// serve serves HTTP on l, which it owns, and tells the home's other commands
// where. Streams end when close begins, so that they don't hold it up.
func (a *app) serve(ctx context.Context, l net.Listener) (url string, err error) {
	url = "http://" + l.Addr().String()
	a.url = url
	ctx, a.hangUp = context.WithCancelCause(context.WithoutCancel(ctx))
	a.server = newServer(ctx, a.handler, a.log)
	a.done.Go(func() {
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("the HTTP server stopped", "err", err)
			a.broken <- fmt.Errorf("the HTTP server stopped: %w", err)
		}
	})
	return url, a.home.announceListener(listener{URL: url, PID: os.Getpid()})
}

func listenReason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// close stops in order: no new requests, no new runs, the work under way
// (interrupted, to be resumed), the store, the lock.
func (a *app) close() error {
	var errs []error
	if a.server != nil {
		errs = append(errs, a.home.withdrawListener())
		a.hangUp(errClosing)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := a.server.Shutdown(ctx); err != nil {
			errs = append(errs, a.server.Close())
		}
		cancel()
	}
	if a.stop != nil {
		a.stop(errClosing)
	}
	a.done.Wait()
	if a.memory != nil {
		errs = append(errs, a.memory.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	errs = append(errs, a.lock.Close())
	return errors.Join(errs...)
}

// errClosing is why what was under way stops.
var errClosing = errors.New("goclaw is stopping")

// client speaks with this gateway in memory, by the same API as from outside.
func (a *app) client() *client.Client {
	token := func() (string, error) { return *a.token.Load(), nil }
	return client.InProcess(a.handler, *a.token.Load()).Renewing(token)
}

func (a *app) ready() error {
	if !a.dispatch.Load() {
		return errors.New("not dispatching")
	}
	return nil
}

func (a *app) status(ctx context.Context) (goclaw.Status, error) {
	active, queued, err := a.store.Counts(ctx)
	if err != nil {
		return goclaw.Status{}, err
	}
	main, err := a.settings.rules.Main("main", "", "")
	if err != nil {
		return goclaw.Status{}, err
	}
	paused, err := a.store.Paused(ctx)
	if err != nil {
		return goclaw.Status{}, err
	}
	parked, err := a.store.Parked(ctx)
	if err != nil {
		return goclaw.Status{}, err
	}
	recovered, err := a.engine.Recovered(ctx)
	if err != nil {
		return goclaw.Status{}, err
	}
	infos := make([]goclaw.RunInfo, len(recovered))
	for i, r := range recovered {
		infos[i] = r.Info()
	}
	return goclaw.Status{
		Store: a.settings.storeName(), Paused: paused, Parked: len(parked), Recovered: infos,
		Version: version, Home: string(a.home), Workspace: main.Workspace, Model: main.Model,
		Demo: a.settings.demo(), Providers: a.settings.models.names(), Sandbox: a.exec.Sandbox(ctx),
		StartedAt: goclaw.At(a.began), Active: active, Queued: queued, Resumed: a.engine.Resumed(),
		Engine: a.dispatch.Load(), Warnings: a.settings.notes,
	}, nil
}
