package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/edge/provider/providertest"
)

// The end-to-end tests drive the real program, in processes of its own,
// against a model server over real HTTP.

// e2eKey is the model key that the program is given. It must not reach a
// prompt, a tool or a log.
const e2eKey = "sk-e2e-9f31c07d5ab24e68"

// e2eLimit ends a process that hangs.
const e2eLimit = 90 * time.Second

// onEachWire runs a test on both wire formats.
func onEachWire(t *testing.T, test func(t *testing.T, wire string)) {
	t.Helper()
	t.Parallel()
	for _, wire := range []string{providertest.WireAnthropic, providertest.WireOpenAI} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			test(t, wire)
		})
	}
}

// e2e is a home, its workspace, and a model server that the program is pointed
// at.
type e2e struct {
	t         *testing.T
	wire      string
	home      string
	workspace string
	env       []string
	server    *providertest.Server
	streams   *streams
	url       string // the model server's
}

func newE2E(t *testing.T, wire string, script providertest.Script, opts ...providertest.Option) *e2e {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &e2e{t: t, wire: wire, home: filepath.Join(base, "home"), streams: &streams{}}
	h.workspace = filepath.Join(h.home, "workspace")
	h.server = providertest.New(script, opts...)
	listener := httptest.NewServer(h.streams.follow(h.server.Handler()))
	t.Cleanup(func() {
		h.server.Close()
		listener.Close()
	})
	h.url = listener.URL
	h.env = []string{"ANTHROPIC_API_KEY=" + e2eKey, "ANTHROPIC_BASE_URL=" + h.url}
	if wire == providertest.WireOpenAI {
		h.env = []string{"OPENAI_API_KEY=" + e2eKey, "OPENAI_BASE_URL=" + h.url + "/v1"}
	}
	// Or a program with the race detector sleeps a second before it exits.
	h.env = append(h.env, "GORACE=atexit_sleep_ms=0")
	t.Cleanup(func() {
		if left := processesWith("GOCLAW_HOME=" + h.home); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
	})
	return h
}

// model is what the program calls its model by default.
func (h *e2e) model() string {
	if h.wire == providertest.WireOpenAI {
		return "openai/gpt-5.5"
	}
	return "anthropic/claude-sonnet-5-5"
}

// config writes goclaw.json with the settings of the wire's provider, beyond
// where it is, and the text of further top-level members.
func (h *e2e) config(provider, members string) {
	h.t.Helper()
	base, kind := h.url, strings.ToUpper(h.wire)
	if h.wire == providertest.WireOpenAI {
		base += "/v1"
	}
	h.file(filepath.Join(h.home, "goclaw.json"), fmt.Sprintf(
		`{"models": {"providers": {%q: {"baseURL": %q, "apiKeyEnv": "%s_API_KEY", %s}}}, %s}`, h.wire, base, kind, provider, members))
}

// file writes a file; a relative path is the workspace's.
func (h *e2e) file(path, content string) {
	h.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.workspace, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// ended is how a command of the program ended.
type ended struct {
	stdout, stderr string
	code           int
}

// run runs a command to its end.
func (h *e2e) run(args ...string) ended {
	h.t.Helper()
	c := h.start(args...)
	return c.wait()
}

// command is a running command of the program.
type command struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
	once           sync.Once
	result         ended
}

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts a command; the test's end kills what is left of it.
func (h *e2e) start(args ...string) *command {
	h.t.Helper()
	c := &command{t: h.t, cmd: program(h.t, h.home, h.env, args...)}
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	if err := c.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill()
			c.wait()
		}
		if h.t.Failed() {
			h.t.Logf("goclaw %s: exit %d\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), c.result.code, c.result.stdout, c.result.stderr)
		}
		if strings.Contains(c.result.stdout+c.result.stderr, e2eKey) {
			h.t.Errorf("goclaw %s printed the key", strings.Join(args, " "))
		}
	})
	return c
}

// wait waits for the command's end, and kills it when it takes too long.
func (c *command) wait() ended {
	c.once.Do(func() {
		timer := time.AfterFunc(e2eLimit, func() { _ = c.cmd.Process.Kill() })
		defer timer.Stop()
		err := c.cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
			c.t.Errorf("wait: %v", err)
		}
		c.result = ended{c.stdout.String(), c.stderr.String(), c.cmd.ProcessState.ExitCode()}
	})
	return c.result
}

func (c *command) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// decode reads the command's JSON.
func (e ended) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.stdout), into); err != nil {
		t.Fatalf("exit %d, no JSON (%v) in %q; stderr %q", e.code, err, e.stdout, e.stderr)
	}
}

// gatewayProcess is a running `goclaw gateway`.
type gatewayProcess struct {
	*command
	url, token string
}

// gateway starts one and waits until it is ready.
func (h *e2e) gateway() *gatewayProcess {
	h.t.Helper()
	g := &gatewayProcess{command: h.start("gateway", "--addr", "127.0.0.1:0")}
	eventually(h.t, "the gateway is ready", func() bool {
		line, _, whole := strings.Cut(g.stdout.String(), "\n")
		url, ok := strings.CutPrefix(line, "ready ")
		g.url = url
		return ok && whole
	})
	token, err := os.ReadFile(filepath.Join(h.home, "token"))
	if err != nil {
		h.t.Fatal(err)
	}
	g.token = strings.TrimSpace(string(token))
	return g
}

// stop ends the gateway as a service manager does.
func (g *gatewayProcess) stop() {
	g.t.Helper()
	g.signal(syscall.SIGTERM)
	if end := g.wait(); end.code != 0 {
		g.t.Errorf("the gateway ended with exit code %d: %s", end.code, end.stderr)
	}
}

// call makes a request and returns status and body.
func (g *gatewayProcess) call(method, path, body string, headers ...string) (int, string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), e2eLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	req.Close = true // no connection of ours keeps the gateway from ending
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// get reads a JSON answer.
func (g *gatewayProcess) get(path string, into any) {
	g.t.Helper()
	status, body := g.call(http.MethodGet, path, "")
	if status != http.StatusOK {
		g.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		g.t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

// send posts a message to a session and returns its run.
func (g *gatewayProcess) send(session, text string) (run string) {
	g.t.Helper()
	body, err := json.Marshal(map[string]string{"session": session, "text": text})
	if err != nil {
		g.t.Fatal(err)
	}
	status, answer := g.call(http.MethodPost, "/api/messages", string(body))
	var receipt struct {
		Run struct {
			RunID string `json:"runId"`
		} `json:"run"`
	}
	if err := json.Unmarshal([]byte(answer), &receipt); err != nil || status != http.StatusAccepted || receipt.Run.RunID == "" {
		g.t.Fatalf("POST /api/messages: %d %s", status, answer)
	}
	return receipt.Run.RunID
}

// sse lists the data of the events in an event stream.
func sse(body string) []string {
	var out []string
	for sc := bufio.NewScanner(strings.NewReader(body)); sc.Scan(); {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(e2eLimit / 3)
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("not within %v: %s", e2eLimit/3, what)
		}
	}
}

// processesWith lists the processes, zombies aside, whose command line or
// environment holds the text.
func processesWith(text string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if filepath.Base(dir) != fmt.Sprint(os.Getpid()) && bytes.Contains(append(line, environ...), []byte(text)) {
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// streams follows the requests that the model server is answering.
type streams struct {
	mu   sync.Mutex
	open int
	left []time.Time // when the client went away before the answer was complete
}

func (s *streams) follow(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.open++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open--
			if r.Context().Err() != nil {
				s.left = append(s.left, time.Now())
			}
		}()
		h.ServeHTTP(w, r)
	})
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *streams) gone() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.left)
}

// arguments encodes a tool call's arguments.
func arguments(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return string(raw)
}

type args = map[string]any
