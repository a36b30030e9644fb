package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/edge/provider/providertest"
)

// site is a gateway of its own home, whose models are a script.
type site struct {
	t         *testing.T
	home      string
	workspace string
	env       []string
	url       string

	gateway *exec.Cmd
	stderr  bytes.Buffer
	gate    gate
}

// newSite starts a gateway; with no script it has no provider but the demo.
func newSite(t *testing.T, script string) *site {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, home: filepath.Join(base, "home")}
	s.workspace = filepath.Join(s.home, "workspace")
	s.env = []string{
		"GOCLAW_HOME=" + s.home, "HOME=" + base, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + base, "TZ=UTC", "NO_COLOR=1",
		"OLLAMA_HOST=127.0.0.1:1", // nobody's: a real one on this machine must not answer
	}
	if script != "" {
		parsed, err := providertest.ParseScript([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		models := providertest.New(parsed, providertest.WithCache())
		server := httptest.NewServer(s.gate.hold(models.Handler()))
		t.Cleanup(func() {
			models.Close()
			server.Close()
		})
		s.env = append(s.env, "ANTHROPIC_API_KEY=test", "ANTHROPIC_BASE_URL="+server.URL)
	}
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

// start starts the gateway and waits until it serves.
func (s *site) start(addr string) {
	s.t.Helper()
	// The address that a killed gateway had may be some other connection's for
	// a moment.
	for try := 1; !s.starts(addr); try++ {
		if try == 30 || !strings.Contains(s.stderr.String(), "address already in use") {
			s.t.Fatalf("the gateway did not start:\n%s", s.stderr.String())
		}
	}
}

func (s *site) starts(addr string) bool {
	s.t.Helper()
	s.gateway = s.command("gateway", "--addr", addr)
	s.gateway.Stderr = &s.stderr
	out, err := s.gateway.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.gateway.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			s.url = url
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return true
		}
	}
	_ = s.gateway.Wait()
	s.gateway = nil
	return false
}

// stop ends the gateway in order.
func (s *site) stop() {
	if s.gateway == nil {
		return
	}
	_ = s.gateway.Process.Signal(syscall.SIGTERM)
	s.reap()
}

// kill ends it as a crash would.
func (s *site) kill() {
	_ = s.gateway.Process.Kill()
	s.reap()
}

func (s *site) reap() {
	timer := time.AfterFunc(30*time.Second, func() { _ = s.gateway.Process.Kill() })
	defer timer.Stop()
	_ = s.gateway.Wait()
	s.gateway = nil
	if s.t.Failed() {
		s.t.Logf("the gateway said:\n%s", s.stderr.String())
	}
}

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = s.env, filepath.Dir(s.home), 5*time.Second
	return cmd
}

// run runs a command of the program, and returns what it prints.
func (s *site) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("goclaw %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// file writes a file of the workspace.
func (s *site) file(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.workspace, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// api asks the API as a program does, and decodes the answer.
func (s *site) api(method, path string, body, into any) {
	s.t.Helper()
	token, err := os.ReadFile(filepath.Join(s.home, "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 400 {
		s.t.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

// say sends a message as another client would.
func (s *site) say(session, text string) {
	s.t.Helper()
	s.api("POST", "/api/messages", map[string]string{"session": session, "text": text}, nil)
}
