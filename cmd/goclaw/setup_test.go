package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"goclaw/internal/edge/provider/providertest"
)

// screen is a program in a terminal of its own.
type screen struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	over sync.WaitGroup

	mu   sync.Mutex
	text string
	came chan struct{} // something was written
}

func onTerminal(t *testing.T, home string, extra []string, args ...string) *screen {
	t.Helper()
	s := &screen{t: t, cmd: program(t, home, extra, args...), came: make(chan struct{}, 1)}
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s.tty = tty
	s.over.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text += string(buf[:n])
			s.mu.Unlock()
			select {
			case s.came <- struct{}{}:
			default:
			}
			if err != nil {
				return // the program has ended
			}
		}
	})
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		s.over.Wait()
		_ = tty.Close()
	})
	return s
}

func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// answer waits for a question that comes after all before it, and types.
func (s *screen) answer(question, keys string) {
	s.t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		_, rest, ok := strings.Cut(s.text, question)
		if ok {
			s.text = rest
		}
		s.mu.Unlock()
		if ok {
			break
		}
		select {
		case <-s.came:
		case <-limit:
			s.t.Fatalf("%q was never asked:\n%s", question, s.shown())
		}
	}
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the program's end.
func (s *screen) ends(code int) {
	s.t.Helper()
	err := s.cmd.Wait()
	s.over.Wait()
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	}
	if got != code {
		s.t.Errorf("exit code %d, want %d: %v\n%s", got, code, err, s.shown())
	}
}

// keyed is a model server that takes one key only.
func keyed(t *testing.T, key string) (url string) {
	t.Helper()
	script, err := providertest.ParseScript([]byte(`[{"answer": {"text": "OK"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	models := providertest.New(script)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != key {
			http.Error(w, `{"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}`, http.StatusUnauthorized)
			return
		}
		models.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		srv.Close()
		models.Close()
	})
	return srv.URL
}

const (
	wrongKey = "sk-wrong-0123456789"
	rightKey = "sk-right-0123456789"
)

// steps are the questions of a first setup, and what a person types. The last
// one does what was planned.
func steps() [][2]string {
	return [][2]string{
		{"Number [1]: ", "1\r"},
		{"while you type or paste it): ", wrongKey + "\x7f\r"},
		{"Model [claude-sonnet-5-5]: ", "\r"},
		{"Number [1]: ", "1\r"},                                                   // another key
		{"while you type or paste it): ", "\x1b[200~" + rightKey + "\x1b[201~\r"}, // pasted
		{"The agent's folder", "\r"},
		{"by itself, every 30m? (An empty file costs nothing) [y/N]: ", "y\r"},
		{"Do that? [Y/n]: ", "\r"},
	}
}

func TestSetupOnATerminal(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	extra := []string{"ANTHROPIC_BASE_URL=" + keyed(t, rightKey), "TERM=dumb"}
	s := onTerminal(t, home, extra, "setup")
	var all strings.Builder
	for _, step := range steps() {
		s.answer(step[0], step[1])
		all.WriteString(s.shown())
	}
	s.answer("Begin it now? [Y/n]: ", "n\r")
	s.ends(0)
	all.WriteString(s.shown())
	for _, key := range []string{wrongKey, rightKey, "sk-"} {
		if strings.Contains(all.String(), key) {
			t.Errorf("a key is shown:\n%s", all.String())
		}
	}
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), rightKey) || strings.Contains(string(text), wrongKey) {
			t.Errorf("%s holds a key", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	every, err := program(t, home, nil, "config", "get", "agents.defaults.heartbeat.every").Output()
	if string(every) != "30m\n" || err != nil {
		t.Errorf("a heartbeat every %q, %v", every, err)
	}
	// The key that was typed is the one that is sent from then on.
	out, err := program(t, home, nil, "run", "hi").CombinedOutput()
	if string(out) != "OK\n" || err != nil {
		t.Errorf("%s%v", out, err)
	}
}

// Ctrl-C at any question leaves everything as it was. What the program says of
// it is not looked at: a terminal drops what is written while it interrupts.
func TestSetupInterrupted(t *testing.T) {
	extra := []string{"ANTHROPIC_BASE_URL=" + keyed(t, rightKey), "TERM=dumb"}
	for n := range steps() {
		home := filepath.Join(t.TempDir(), "home")
		s := onTerminal(t, home, extra, "setup")
		for _, step := range steps()[:n] {
			s.answer(step[0], step[1])
		}
		s.answer(steps()[n][0], "half\x03")
		s.ends(exitFailed)
		if _, err := os.Lstat(home); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("at %q something was made: %v", steps()[n][0], err)
		}
	}
}

// A secret is typed unseen, and so is the passphrase of the age file.
func TestSecretsOnATerminal(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := onTerminal(t, home, []string{"GOCLAW_PASSPHRASE=sesame"}, "secrets", "set", "work")
	s.answer("Secret work: ", rightKey+"\r")
	s.ends(0)
	if strings.Contains(s.shown(), rightKey) {
		t.Errorf("it is shown:\n%s", s.shown())
	}
	if err := os.WriteFile(filepath.Join(home, "goclaw.json"), []byte(`{"models": {"providers": {"anthropic": {"apiKey": {"secret": "work"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s = onTerminal(t, home, nil, "doctor")
	s.answer("Passphrase of secrets.age: ", "sesame\r")
	s.ends(0)
	if shown := s.shown(); strings.Contains(shown, "sesame") || !strings.Contains(shown, `secrets.age, secret "work"`) {
		t.Errorf("doctor says:\n%s", shown)
	}
}
