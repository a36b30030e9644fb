package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoServer says that this machine has no PostgreSQL server to start.
var ErrNoServer = errors.New("no PostgreSQL server is installed (Debian: apt-get install postgresql)")

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
	retryEvery   = 20 * time.Millisecond
)

// Server is a PostgreSQL server. Its methods are not safe for concurrent use,
// except URL, Port and CreateDatabase.
type Server struct {
	bin      string
	dir      string
	own      bool // dir was made here
	port     int
	settings []string
	process  *process // nil while it is down
}

// Find returns the folder of the newest server's binaries, or ErrNoServer.
func Find() (string, error) {
	if postgres, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(postgres); err == nil && isBin(filepath.Dir(real)) {
			return filepath.Dir(real), nil
		}
	}
	best, newest := "", 0
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, bin := range found {
			name := filepath.Base(filepath.Dir(bin))
			version, err := strconv.Atoi(strings.TrimPrefix(name, "pgsql-"))
			if err == nil && version > newest && isBin(bin) {
				best, newest = bin, version
			}
		}
	}
	if best == "" {
		return "", ErrNoServer
	}
	return best, nil
}

func isBin(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// Start makes a new cluster below dir and starts its server; "" makes a folder
// that Stop removes. settings are lines of a configuration, as fsync=off. Run
// as root the server gets a user without rights (postgres, else nobody), which
// must be able to enter dir.
func Start(ctx context.Context, dir string, settings ...string) (_ *Server, err error) {
	s := &Server{dir: dir, own: dir == "", settings: settings}
	if s.bin, err = Find(); err != nil {
		return nil, err
	}
	if s.own {
		if s.dir, err = os.MkdirTemp("", "goclaw-pg-"); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil && s.own {
			os.RemoveAll(s.dir)
		}
	}()
	who, err := servant()
	if err != nil {
		return nil, err
	}
	if err := who.owns(s.dir); err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(),
		"-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = s.dir, who.attributes()
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb in %s: %w: %s", s.dir, err, bytes.TrimSpace(out))
	}
	// Another process may take a port between its choice and its use.
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = s.Restart(ctx); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("no port: listening on %v", l.Addr())
	}
	return addr.Port, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// Port is where the server listens on 127.0.0.1; it stays the same.
func (s *Server) Port() int { return s.port }

// URL is the connection string of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, url.PathEscape(database))
}

// Restart starts the server if it is down and waits until it answers.
func (s *Server) Restart(ctx context.Context) error {
	if s.process != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		p, err := s.launch()
		if err != nil {
			return err
		}
		err = s.ready(ctx, p)
		if err == nil {
			s.process = p
			return nil
		}
		_ = p.signal(syscall.SIGKILL) // it has ended, or is useless
		<-p.done
		// Children of a killed server hold its memory for a moment.
		text, readErr := os.ReadFile(s.log())
		if readErr != nil || !bytes.Contains(text, []byte("pre-existing shared memory")) {
			return fmt.Errorf("PostgreSQL in %s did not start: %w: %s", s.dir, err, tail(text))
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func (s *Server) launch() (*process, error) {
	who, err := servant()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(s.log())
	if err != nil {
		return nil, err
	}
	defer out.Close() // the server has its own
	args := []string{
		"-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "shared_buffers=64MB",
	}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.dir, out, out, who.attributes()
	return start(cmd)
}

// ready waits until the server answers or has ended.
func (s *Server) ready(ctx context.Context, p *process) error {
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.done:
			return errors.New("it ended at once")
		default:
		}
		if pause(ctx) != nil {
			return err
		}
	}
}

// CreateDatabase makes a database as a copy of another, which nobody may be
// using; "" makes an empty one.
func (s *Server) CreateDatabase(ctx context.Context, name, template string) error {
	if template == "" {
		template = "template0"
	}
	return s.exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s",
		pgx.Identifier{name}.Sanitize(), pgx.Identifier{template}.Sanitize()))
}

// DropDatabase removes a database, and breaks off whoever uses it.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", pgx.Identifier{name}.Sanitize()))
}

func (s *Server) exec(ctx context.Context, text string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, text)
	return errors.Join(err, conn.Close(ctx))
}

// Kill ends the server at once, as a crash: what it had not written is
// recovered from its log by Restart.
func (s *Server) Kill() error { return s.end(syscall.SIGQUIT) }

// Halt ends the server in order: it breaks off what is under way and writes
// everything. Restart starts it again.
func (s *Server) Halt() error { return s.end(syscall.SIGINT) }

// Stop ends the server for good and removes the folder that Start made.
func (s *Server) Stop() error {
	err := s.Halt()
	if s.own {
		os.RemoveAll(s.dir)
	}
	return err
}

func (s *Server) end(signal syscall.Signal) error {
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	if err := p.signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		_ = p.signal(syscall.SIGKILL) // it may just have ended
		<-p.done
		return fmt.Errorf("PostgreSQL in %s did not end within %s and was killed", s.dir, stopTimeout)
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(retryEvery):
		return nil
	}
}

// tail is the end of a log in one line.
func tail(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
