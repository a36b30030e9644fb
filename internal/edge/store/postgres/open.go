package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"goclaw/internal/edge/store"
)

const (
	timeout        = 10 * time.Second // of a call, but for its commit
	commitTimeout  = 5 * time.Second  // then its outcome is unknown
	connectTimeout = 5 * time.Second
	pingTimeout    = 2 * time.Second // of a connection that was not used for a second
	maxConns       = 8
	connLifetime   = 10 * time.Minute
	oldestServer   = 120000
)

// Options of Open; the zero value is ready for use.
type Options struct {
	// ServerTime makes leases and allowances go by the database's clock instead
	// of the Now that requests carry, as is right wherever more than one host
	// uses the database.
	ServerTime bool

	// Hook, if set, is called with "commit.before" and "commit.after" around
	// every COMMIT that holds writes, possibly by many goroutines at a time.
	// Crash tests end the process there.
	Hook func(point string)

	// Logger gets migrations and trouble with the connection; nil discards.
	Logger *slog.Logger
}

// Store is the PostgreSQL store. It is safe for concurrent use; Close ends it.
type Store struct {
	pool       *pgxpool.Pool
	listen     *pgx.ConnConfig
	where      string // for errors: never holds a password
	user       string
	serverTime bool
	hook       func(string)
	log        *slog.Logger
	commits    atomic.Int64
	closed     atomic.Bool

	transcripts store.Transcripts

	claiming door
	doubts   doubts // of who is in the door

	bell    *bell
	changes chan string
	listens chan struct{} // closed by the first Changes
	asked   sync.Once

	end       context.CancelFunc // ends the goroutines
	running   sync.WaitGroup
	closeOnce sync.Once
}

// Open connects to the database that url names (a postgres:// URL, or
// key=value words), and brings its schema up to date. The tables are those of
// the connection's search_path. pool_max_conns in the URL bounds the
// connections (8), of which Changes takes one more. The values of ctx accompany
// the store; its end matters to Open only.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, url string, o Options) (*Store, error) {
	config, err := configure(url)
	if err != nil {
		return nil, err
	}
	s := &Store{
		where: place(config.ConnConfig), user: config.ConnConfig.User,
		listen: listening(config.ConnConfig), serverTime: o.ServerTime, hook: o.Hook, log: o.Logger,
		claiming: make(door, 1), doubts: doubts{},
		changes: make(chan string, 64), listens: make(chan struct{}), bell: newBell(),
	}
	if s.hook == nil {
		s.hook = func(string) {}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		s.pool.Close()
		return nil, s.explain(err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	s.running.Go(func() { s.ring(life) })
	s.running.Go(func() { s.hear(life) })
	return s, nil
}

// configure reads the URL and fills in what it leaves open.
func configure(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The driver's error may repeat the password.
		return nil, errors.New("the database URL can't be read; want postgres://user:password@host:5432/database, and after a ? parameters such as sslmode=require or pool_max_conns=8")
	}
	given, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if _, ok := given.RuntimeParams["pool_max_conns"]; !ok {
		config.MaxConns = maxConns
	}
	if _, ok := given.RuntimeParams["pool_max_conn_lifetime"]; !ok {
		// With its connection a plan ends that no longer fits.
		config.MaxConnLifetime, config.MaxConnLifetimeJitter = connLifetime, connLifetime/5
	}
	if config.PingTimeout == 0 {
		config.PingTimeout = pingTimeout
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if len(c.Fallbacks) > 0 && c.ValidateConnect == nil && differ(c) {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	for name, value := range map[string]string{
		"application_name":  "goclaw",
		"statement_timeout": fmt.Sprint(timeout.Milliseconds()),
		// A process that was stopped in the middle of a transaction must not
		// keep its locks from the others for long.
		"idle_in_transaction_session_timeout": "2000",
		// Every statement looks up few rows by an index. To plan it anew for
		// each set of parameters costs more than to run it, and a plan that was
		// made while a table was empty must not walk over it when it is full.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"jit":              "off",
		// A host that is gone is noticed within half a minute.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
	} {
		if _, ok := c.RuntimeParams[name]; !ok {
			c.RuntimeParams[name] = value
		}
	}
	// A context that ends cancels the statement and leaves the connection.
	c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}
	}
	return config, nil
}

// listening is the configuration of the connection that waits for
// notifications: ending that wait is no reason to ask the server for anything.
func listening(c *pgx.ConnConfig) *pgx.ConnConfig {
	c = c.Copy()
	c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
	}
	return c
}

// differ reports whether the URL names more than one host: the fallbacks of one
// are the same host without TLS.
func differ(c *pgx.ConnConfig) bool {
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	return false
}

// place says which database a configuration means.
func place(c *pgx.ConnConfig) string {
	hosts := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if next := fmt.Sprintf("%s:%d", f.Host, f.Port); next != hosts[len(hosts)-1] {
			hosts = append(hosts, next)
		}
	}
	return fmt.Sprintf("PostgreSQL at %s/%s", strings.Join(hosts, ","), c.Database)
}

// Commits returns how many transactions that hold writes were committed.
func (s *Store) Commits() int64 { return s.commits.Load() }

// Close waits for the calls that are under way and closes all connections; if
// the network swallows what it says to the server, that takes 15 s. Closing
// again does nothing.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		s.end()
		s.running.Wait()
		s.pool.Close()
	})
	return nil
}
