package main

import (
	"context"
	"log/slog"

	"goclaw"
	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/runtime/cron"
	"goclaw/internal/runtime/engine"
	"goclaw/internal/runtime/gateway"
)

// database is a store, whichever it is.
type database interface {
	engine.Store
	cron.Store
	gateway.Outbox
	AllSessions(ctx context.Context) ([]goclaw.Session, error)
	Counts(ctx context.Context) (active, queued int, err error)
	Close() error
}

// shared reports whether other processes may execute the same runs.
func (s settings) shared() bool { return s.databaseURL != "" }

// batch is how many runs are claimed at a time: few where others share them.
func (s settings) batch() int {
	if s.shared() {
		return 4
	}
	return 0
}

// storeName is what status calls the store.
func (s settings) storeName() string {
	if s.shared() {
		return "postgres"
	}
	return "sqlite"
}

// openDatabase opens PostgreSQL if an address is given, else the home's file.
// changes tells what other processes do; it is nil where there are none.
func openDatabase(ctx context.Context, s settings, hook func(string), log *slog.Logger) (db database, changes <-chan string, err error) {
	if !s.shared() {
		db, err := sqlite.Open(ctx, s.home.path("goclaw.db"), sqlite.Options{Hook: hook, Migrated: s.migrated, Logger: log})
		if err != nil {
			return nil, nil, err
		}
		return db, nil, nil
	}
	pg, err := postgres.Open(ctx, s.databaseURL.Reveal(), postgres.Options{ServerTime: true, Hook: hook, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return pg, pg.Changes(), nil
}
