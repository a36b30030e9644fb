package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/edge/store/postgres/pgtest"
)

// workerCounts are how many worker processes share the runs of one gateway.
func workerCounts() []int { return []int{1, 2, 4} }

// cluster is a private PostgreSQL server.
type cluster struct {
	server *pgtest.Server
	dir    string
	pid    int
	traced bool // it keeps statistics of statements
}

// onPostgres measures one gateway with several workers on a server of our own.
func (b *bench) onPostgres(ctx context.Context) (_ []Figure, err error) {
	c, err := startCluster(ctx)
	if err != nil {
		return []Figure{{
			ID: "runs.postgres", Name: "Durable runs per second, PostgreSQL",
			Means:   "The same with the runs in PostgreSQL, one gateway and 1, 2 and 4 worker processes.",
			How:     "On a private server that the bench starts.",
			Missing: err.Error(),
		}}, nil
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	var figures []Figure
	for _, n := range workerCounts() {
		more, err := b.scaled(ctx, c, n)
		if err != nil {
			return nil, fmt.Errorf("with %d workers on PostgreSQL: %w", n, err)
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// startCluster starts a server that is as durable as it comes, and counts.
func startCluster(ctx context.Context) (*cluster, error) {
	settings := []string{"track_io_timing=on", "track_wal_io_timing=on"}
	c, err := tryCluster(ctx, append(settings, "shared_preload_libraries=pg_stat_statements")...)
	if err == nil {
		c.traced = true
		return c, nil
	}
	if errors.Is(err, pgtest.ErrNoServer) {
		return nil, err
	}
	return tryCluster(ctx, settings...) // without that extension
}

func tryCluster(ctx context.Context, settings ...string) (_ *cluster, err error) {
	c := &cluster{}
	if c.dir, err = os.MkdirTemp("", "goclaw-bench-pg-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(c.dir)
		}
	}()
	if c.server, err = pgtest.Start(ctx, c.dir, settings...); err != nil {
		return nil, err
	}
	pid, err := os.ReadFile(filepath.Join(c.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, errors.Join(err, c.server.Stop())
	}
	first, _, _ := strings.Cut(string(pid), "\n")
	if c.pid, err = strconv.Atoi(first); err != nil {
		return nil, errors.Join(err, c.server.Stop())
	}
	return c, nil
}

func (c *cluster) stop() error { return errors.Join(c.server.Stop(), os.RemoveAll(c.dir)) }

// spent is what a database has done so far.
type spent struct {
	writes     int64         // transactions that wrote
	statements time.Duration // in which a connection was at work
	syncs      int64         // of the write-ahead log
	syncing    time.Duration
	cpu        time.Duration
}

// spent asks the server. Statistics of connections that are still open may be
// up to ten seconds old, but for the transactions and the processor time.
func (c *cluster) spent(ctx context.Context, database string) (s spent, err error) {
	conn, err := pgx.Connect(ctx, c.server.URL(database))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if c.traced {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
			return s, err
		}
	}
	var version int
	var statements, syncing float64
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_snapshot_xmax(pg_current_snapshot())::text::bigint").
		Scan(&version, &s.writes)
	if err != nil {
		return s, err
	}
	syncs := "SELECT wal_sync, wal_sync_time FROM pg_stat_wal"
	if version >= 18_00_00 {
		syncs = "SELECT sum(fsyncs)::bigint, sum(fsync_time) FROM pg_stat_io WHERE object = 'wal'"
	}
	if err := conn.QueryRow(ctx, syncs).Scan(&s.syncs, &syncing); err != nil {
		return s, err
	}
	if c.traced {
		if err := conn.QueryRow(ctx, "SELECT coalesce(sum(total_exec_time), 0) FROM pg_stat_statements").Scan(&statements); err != nil {
			return s, err
		}
	}
	s.statements, s.syncing = inMilliseconds(statements), inMilliseconds(syncing)
	s.cpu = workedBelow(c.pid)
	return s, nil
}

func inMilliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// scaled measures one gateway with n workers on an empty database.
func (b *bench) scaled(ctx context.Context, c *cluster, n int) (_ []Figure, err error) {
	database := fmt.Sprintf("bench%d", n)
	if err := c.server.CreateDatabase(ctx, database, ""); err != nil {
		return nil, err
	}
	home, err := b.newHome("")
	if err != nil {
		return nil, err
	}
	url := "GOCLAW_DATABASE_URL=" + c.server.URL(database)
	g, err := b.gatewayOn(ctx, home, url)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	var workers []*process
	stop := func() {
		for _, w := range workers {
			w.stop()
		}
	}
	defer stop()
	for range n {
		home, err := b.newHome("")
		if err != nil {
			return nil, err
		}
		w, err := b.launch(ctx, home, append(b.modelEnv(), url), "worker")
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	before, err := c.spent(ctx, database)
	if err != nil {
		return nil, err
	}
	f, err := b.flood(ctx, g, workers...)
	if err != nil {
		return nil, err
	}
	busy, err := c.spent(ctx, database)
	if err != nil {
		return nil, err
	}
	stop()
	g.stop()
	after, err := c.spent(ctx, database) // with what the connections had counted
	if err != nil {
		return nil, err
	}
	per := func(d time.Duration) time.Duration { return d / time.Duration(f.runs) }
	cpu := busy.cpu - before.cpu
	name := "1 worker process"
	if n > 1 {
		name = fmt.Sprintf("%d worker processes", n)
	}
	shares := []Value{
		count("writing transactions per run", f.per(float64(busy.writes-before.writes)), ""),
		count("WAL syncs per run", f.per(float64(after.syncs-before.syncs)), ""), ms("in WAL syncs", per(after.syncing-before.syncing)),
	}
	if c.traced {
		shares = append(shares, ms("in statements", per(after.statements-before.statements)))
	}
	rate := Figure{
		ID: fmt.Sprintf("runs.postgres.%d", n), Name: "Durable runs per second, PostgreSQL, " + name,
		Values: []Value{count("runs", f.rate(f.took), "/s"), count("accepted", f.rate(f.accepted), "/s"), work(f.goclaw, f.runs)},
		Means:  fmt.Sprintf("The same with the runs in PostgreSQL. One gateway takes the messages in; it and %s execute the runs.", name),
		How:    "As with SQLite, on a private PostgreSQL server with its defaults for durability, reached over the loopback interface.",
	}
	share := Figure{
		ID: rate.ID + ".share", Name: "  who is busy meanwhile",
		Values: append(append(shares, share("CPU of PostgreSQL", cpu, f.took)), f.shares()...),
		Means: "The database's own share: transactions that wrote, syncs of its log (transactions that commit together share one), the time in which a connection " +
			"was at work (many are at once), and its processor time. Then as with SQLite.",
		How: "pg_current_snapshot, pg_stat_wal and pg_stat_statements before and after; processor time of the server and all its processes from /proc/PID/stat.",
	}
	return []Figure{rate, share}, nil
}
