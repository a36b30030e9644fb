package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed schema.sql
var schema string

const (
	version  = 2          // of schema.sql and of how terms are made; another one begins anew
	lock     = 0x476f436d // of whoever makes the tables
	maxConns = 2
)

// Index is the index in one database.
type Index struct {
	url string
	log *slog.Logger

	mu       sync.Mutex
	pool     *pgxpool.Pool // nil until it is needed
	pgvector bool
}

// New returns the index in the database that url names. log may be nil.
func New(url string, log *slog.Logger) *Index {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Index{url: url, log: log}
}

// Vectors says who compares vectors.
func (x *Index) Vectors() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pgvector {
		return "pgvector"
	}
	return "goclaw, one by one: the database has no extension pgvector"
}

// Close ends the connections.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pool != nil {
		x.pool.Close()
		x.pool = nil
	}
	return nil
}

// open returns the connections, opening them and making the tables if need be.
func (x *Index) open(ctx context.Context) (*pgxpool.Pool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pool != nil {
		return x.pool, nil
	}
	config, err := pgxpool.ParseConfig(x.url)
	if err != nil {
		return nil, errors.New("index of memory: the database URL can't be read") // its error may repeat the password
	}
	config.MaxConns = maxConns
	if _, ok := config.ConnConfig.RuntimeParams["application_name"]; !ok {
		config.ConnConfig.RuntimeParams["application_name"] = "goclaw memory"
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("index of memory: %w", err)
	}
	if err := x.settle(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("index of memory: %w", err)
	}
	x.pool = pool
	return pool, nil
}

// settle makes the tables, unless they are there in the form of this version,
// and looks whether vectors can be compared in the database.
func (x *Index) settle(ctx context.Context, pool *pgxpool.Pool) error {
	// Without the right to add an extension, or where there is none, it is done
	// without.
	_, err := pool.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector`)
	x.pgvector = err == nil
	if err != nil {
		x.log.Debug("no pgvector", "err", err)
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lock); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('memory_mark') IS NOT NULL`).Scan(&there); err != nil {
			return err
		}
		if there {
			var have int64
			err := tx.QueryRow(ctx, `SELECT value FROM memory_mark WHERE name = 'version'`).Scan(&have)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) || have == version {
				return err
			}
		}
		if _, err := tx.Exec(ctx, schema); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO memory_mark (name, value) VALUES ('version', $1)`, version)
		return err
	})
}
