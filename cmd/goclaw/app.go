package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/tool/exec"
	"goclaw/internal/edge/tool/exec/sandbox"
	"goclaw/internal/edge/tool/file"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/edge/web"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/engine"
	"goclaw/internal/runtime/feed"
	"goclaw/internal/runtime/gateway"
)

// app is the gateway in this process: wired, and running once start was called.
type app struct {
	home     home
	settings settings
	token    string
	log      *slog.Logger
	store    *sqlite.Store
	engine   *engine.Engine
	handler  http.Handler
	began    time.Time
	lock     io.Closer // nil in a process that only reads

	stop     context.CancelCauseFunc
	done     sync.WaitGroup
	dispatch bool
	failure  error
	server   *http.Server
}

// open wires the gateway. With a lock it may run the home's runs; without one
// it only reads and asks.
func open(ctx context.Context, s settings, lock io.Closer, log *slog.Logger, hook func(string)) (*app, error) {
	a := &app{home: s.home, settings: s, log: log, lock: lock, began: time.Now()}
	if err := a.wire(ctx, hook); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *app) wire(ctx context.Context, hook func(string)) (err error) {
	s := a.settings
	if a.token, err = a.home.token(s.token...); err != nil {
		return err
	}
	for _, agent := range s.rules.Agents {
		if _, err := workspace.Prepare(agent.Workspace); err != nil {
			return err
		}
	}
	if a.store, err = sqlite.Open(ctx, a.home.path("goclaw.db"), sqlite.Options{Hook: hook, Logger: a.log}); err != nil {
		return err
	}
	tools := append(file.Tools(file.Options{Home: string(a.home)}), exec.New(exec.Options{
		Home: string(a.home), Timeout: time.Duration(s.exec.TimeoutSeconds) * time.Second,
		MaxOutput: s.exec.MaxOutputBytes, Network: s.exec.Network, ReadOnly: s.exec.ReadOnly,
	}))
	broker := feed.New()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	a.engine, err = engine.New(engine.Options{
		Store: a.store, Models: s.models, Files: workspace.NewLoader(s.files), Tools: tools, Rules: s.rules,
		Owner: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), uuid.NewString()[:8]), SoleOwner: a.lock != nil,
		MaxWorkers: s.maxWorkers, MaxCalls: s.maxCalls, ArchiveAfter: s.archiveAfter,
		Announce: announce.Policy{Window: s.announceWindow, MaxWait: s.announceMaxWait},
		Publish:  broker.Publish, Hook: hook, NewID: uuid.NewString, Host: host, OS: runtime.GOOS + "/" + runtime.GOARCH, Log: a.log,
	})
	if err != nil {
		return err
	}
	for _, t := range sessions.Tools(a.engine, a.store, a.store) {
		if err := a.engine.AddTool(t); err != nil {
			return err
		}
	}
	gw := gateway.New(gateway.Options{
		Runner: a.engine, Explainer: a.engine, Record: a.store, Pending: a.store, Feed: broker,
		ResolveModel: s.models.Resolve, Agents: s.agentIDs(), Status: a.status, Log: a.log,
	})
	a.handler = web.New(web.Options{
		Token: a.token, Backend: gw, Logger: a.log, Version: version, Ready: a.ready,
		Agents: s.agentIDs(), Hosts: s.hosts(),
	})
	return nil
}

// start dispatches runs until close.
func (a *app) start(ctx context.Context) {
	ctx, a.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	a.dispatch = true
	a.done.Go(func() {
		if err := a.engine.Run(ctx); err != nil {
			a.log.Error("the engine stopped", "err", err)
		}
	})
	a.done.Go(func() { rest(ctx) })
}

// listen serves HTTP on addr and tells the home's other commands where.
func (a *app) listen(addr string) (url string, err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("can't listen on %s: %w; choose another with --addr HOST:PORT", addr, listenReason(err))
	}
	url = "http://" + l.Addr().String()
	a.server = &http.Server{
		Handler: a.handler, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	a.done.Go(func() {
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("the HTTP server stopped", "err", err)
		}
	})
	if err := a.home.announceListener(listener{URL: url, PID: os.Getpid()}); err != nil {
		return "", fmt.Errorf("state folder %s: %w", a.home, err)
	}
	return url, nil
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
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := a.server.Shutdown(ctx); err != nil {
			a.server.Close()
		}
		cancel()
		errs = append(errs, a.home.withdrawListener())
	}
	if a.stop != nil {
		a.stop(errors.New("closing"))
	}
	a.done.Wait()
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	if a.lock != nil {
		errs = append(errs, a.lock.Close())
	}
	return errors.Join(errs...)
}

// client speaks with this gateway in memory, by the same API as from outside.
func (a *app) client() *client.Client { return client.InProcess(a.handler, a.token) }

func (a *app) ready() error {
	if !a.dispatch {
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
	box, why := sandbox.Detect(ctx)
	if box != nil {
		why = box.Name()
	} else {
		why = "none, exec is refused: " + why
	}
	return goclaw.Status{
		Version: version, Home: string(a.home), Workspace: main.Workspace, Model: main.Model,
		Demo: a.settings.demo(), Providers: a.settings.models.names(), Sandbox: why,
		StartedAt: goclaw.At(a.began), Active: active, Queued: queued, Resumed: a.engine.Resumed(),
		Engine: a.dispatch, Warnings: a.settings.notes,
	}, nil
}
