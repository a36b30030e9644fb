package main

import (
	"context"
	"errors"
	"log/slog"

	"goclaw"
	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/runtime/engine"
	"goclaw/internal/runtime/gateway"
)

// database is a store, whichever it is.
type database interface {
	engine.Store
	gateway.Outbox
	AllSessions(ctx context.Context) ([]goclaw.Session, error)
	Counts(ctx context.Context) (active, queued int, err error)
	Close() error
}

// shared reports whether other processes may execute the same runs.
func (s settings) shared() bool { return s.databaseURL != "" }

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
		db, err := sqlite.Open(ctx, s.home.path("goclaw.db"), sqlite.Options{Hook: hook, Logger: log})
		if err != nil {
			return nil, nil, err
		}
		return db, nil, nil
	}
	return nil, nil, errors.New("PostgreSQL is being merged")
}
