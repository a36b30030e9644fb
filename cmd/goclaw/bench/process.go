package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"goclaw/internal/edge/client"
)

const (
	startWait = 30 * time.Second
	stopWait  = 10 * time.Second
	apiToken  = "bench"
)

// process is a child that has said where it listens.
type process struct {
	cmd   *exec.Cmd
	url   string
	in    io.Writer     // its standard input
	out   *bufio.Reader // its standard output after the line
	stop  func()        // ends it and waits
	said  time.Duration
	ready time.Duration // from fork to /readyz; a gateway's only
}

// launch starts the program and waits for its line "ready", with a URL if it
// serves.
func (b *bench) launch(ctx context.Context, home string, extra []string, args ...string) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, b.o.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWait
	cmd.Dir = b.dir
	cmd.Env = append(cleanEnv(b.o.Env), append(extra, "GOCLAW_HOME="+home, "GOCLAW_TOKEN="+apiToken)...)
	log, err := os.CreateTemp(b.dir, "stderr-*")
	if err != nil {
		cancel()
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	// Held open: our own helpers end when it closes, however we end.
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", strings.Join(args, " "), err)
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out), stop: func() {
		cancel()
		_ = cmd.Wait() // that it was told to end is no failure
	}}
	late := time.AfterFunc(startWait, cancel)
	line, err := p.out.ReadString('\n')
	late.Stop()
	p.said = time.Since(began)
	word, url, _ := strings.Cut(strings.TrimSpace(line), " ")
	if word != "ready" {
		p.stop()
		words, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("goclaw %s did not start (%w): %s", strings.Join(args, " "), errors.Join(err, ctx.Err()), last(string(words)))
	}
	p.url = url
	return p, nil
}

// last is the last line that says something.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// cleanEnv drops what would change the measured program's behaviour.
func cleanEnv(env []string) []string {
	var out []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case strings.HasSuffix(name, "_API_KEY"), strings.HasSuffix(name, "_BASE_URL"):
		case name == "GOCLAW_HOME", name == "GOCLAW_TOKEN", name == "GOCLAW_MODEL", name == "GOCLAW_DATABASE_URL", name == "OLLAMA_HOST":
		default:
			out = append(out, e)
		}
	}
	return out
}

// gateway is a gateway in a process of its own.
type gateway struct {
	*process
	home string
	api  *client.Client
}

// raised lets one session have n workers at a time.
func raised(n int) string {
	return fmt.Sprintf(`{"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": %[1]d, "maxConcurrent": %[1]d, "maxConcurrentPerSession": %[1]d}}}}`, n)
}

// newHome makes an empty home, with a configuration unless that is "".
func (b *bench) newHome(config string) (string, error) {
	home, err := os.MkdirTemp(b.dir, "home-*")
	if err != nil || config == "" {
		return home, err
	}
	return home, os.WriteFile(filepath.Join(home, "goclaw.json"), []byte(config), 0o600)
}

// gateway starts one on a new home with that configuration.
func (b *bench) gateway(ctx context.Context, config string) (*gateway, error) {
	home, err := b.newHome(config)
	if err != nil {
		return nil, err
	}
	return b.gatewayOn(ctx, home)
}

// modelEnv names the model server to a goclaw process.
func (b *bench) modelEnv() []string {
	return []string{"ANTHROPIC_API_KEY=bench", "ANTHROPIC_BASE_URL=" + b.models.url}
}

func (b *bench) gatewayOn(ctx context.Context, home string, extra ...string) (*gateway, error) {
	began := time.Now()
	p, err := b.launch(ctx, home, append(b.modelEnv(), extra...), "gateway", "--addr", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gateway{process: p, home: home, api: client.New(p.url, apiToken, b.http)}
	for err = g.api.Health(ctx); err != nil; err = g.api.Health(ctx) {
		if ctx.Err() != nil || time.Since(began) > startWait {
			g.stop()
			return nil, err
		}
	}
	g.ready = time.Since(began)
	return g, nil
}

// memory is what a process holds of the machine's, in MB (10^6 bytes).
type memory struct{ rss, anonymous, file, peak float64 }

// memoryOf reads /proc, after the process had time to settle.
func (b *bench) memoryOf(ctx context.Context, p *process) (memory, error) {
	if err := pause(ctx, b.size.settle); err != nil {
		return memory{}, err
	}
	return p.memory()
}

// memory reads /proc as it is now.
func (p *process) memory() (memory, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return memory{}, errNoProc
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(raw), "\n"+name+":")
		kb, err := strconv.ParseFloat(strings.Fields(rest + " -")[0], 64)
		if err != nil {
			return 0
		}
		return kb * 1024 / 1e6
	}
	return memory{field("VmRSS"), field("RssAnon"), field("RssFile") + field("RssShmem"), field("VmHWM")}, nil
}

var errNoProc = errors.New("this system has no /proc to read memory from")

// worked is the processor time that the process has used, to 10 ms; 0 where it
// can't be read.
func (p *process) worked() time.Duration { return workedBy(p.cmd.Process.Pid).own }

// work is the processor time per thing done, as a value.
func work(d time.Duration, n int) Value { return ms("its own CPU", d/time.Duration(n)) }

func (m memory) values() []Value {
	return []Value{count("RSS", m.rss, "MB"), count("anonymous", m.anonymous, "MB"), count("of files", m.file, "MB")}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask calls the model server's side door.
func (b *bench) ask(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.models.url+"/bench/"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := b.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// release has the model server answer the workers that it holds back.
func (b *bench) release(ctx context.Context) error {
	_, err := b.ask(ctx, http.MethodPost, "release")
	return err
}

func (b *bench) reset(ctx context.Context) error {
	_, err := b.ask(ctx, http.MethodPost, "reset")
	return err
}

func (b *bench) marks(ctx context.Context) (m marks, err error) {
	raw, err := b.ask(ctx, http.MethodGet, "marks")
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(raw, &m)
}

// arrive waits until the model server has seen n requests of a kind.
func (b *bench) arrive(ctx context.Context, kind string, n int, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%d requests of kind %s did not come within %s", n, kind, limit))
	defer cancel()
	for {
		raw, err := b.ask(ctx, http.MethodGet, "count/"+kind)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if seen, err := strconv.Atoi(string(raw)); err != nil || seen >= n {
			return err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
