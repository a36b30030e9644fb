package contexthook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"goclaw"
)

// The bounds of what a command may write, in bytes.
const (
	maxOutput = 1 << 20
	maxStderr = 64 << 10
)

// drainTime is how long what a command wrote is waited for once it has ended
// and its process group with it: only a process that left the group can hold
// its output open then.
const drainTime = time.Second

// Options say what to run.
type Options struct {
	Command []string      // the program, and its arguments
	Timeout time.Duration // of one run
	Home    string        // GOCLAW_HOME
	Getenv  func(string) string
}

// Hook is a command that rewrites prompts. It is safe for concurrent use.
type Hook struct {
	command []string
	timeout time.Duration
	env     []string
}

// New returns the hook of a command, which must not be empty.
func New(o Options) *Hook {
	h := &Hook{command: o.Command, timeout: o.Timeout, env: []string{"GOCLAW_HOME=" + o.Home}}
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if value := o.Getenv(name); value != "" {
			h.env = append(h.env, name+"="+value)
		}
	}
	return h
}

// request is what the command reads.
type request struct {
	Session   string             `json:"session"`
	Agent     string             `json:"agent"`
	Kind      goclaw.SessionKind `json:"kind"`
	Workspace string             `json:"workspace"`
	Model     string             `json:"model"`
	Sections  []goclaw.Section   `json:"sections"`
}

// Rewrite runs the command in the session's workspace and returns the sections
// that it answers with. The error is one line, which names the command.
func (h *Hook) Rewrite(ctx context.Context, session goclaw.SessionKey, p goclaw.Profile, sections []goclaw.Section) ([]goclaw.Section, error) {
	if sections == nil {
		sections = []goclaw.Section{}
	}
	body, err := json.Marshal(request{
		Session: session.String(), Agent: p.Agent, Kind: session.Kind, Workspace: p.Workspace, Model: p.Model, Sections: sections,
	})
	if err != nil {
		return nil, h.failed(err)
	}
	out, err := h.run(ctx, p.Workspace, body)
	if err != nil {
		return nil, h.failed(err)
	}
	answer, err := parse(out)
	if err != nil {
		return nil, h.failed(fmt.Errorf("its answer is not valid: %w", err))
	}
	return h.settle(sections, answer), nil
}

func (h *Hook) name() string { return strings.Join(h.command, " ") }

func (h *Hook) failed(err error) error { return fmt.Errorf("context.hook: %s: %w", h.name(), err) }

var (
	errTooLate = errors.New("out of time")
	errTooMuch = fmt.Errorf("it wrote more than %d KB; it has to return the sections and nothing else", maxOutput>>10)
)

// run gives the command its input and collects its output. When it returns the
// command's process group is gone.
func (h *Hook) run(ctx context.Context, dir string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(h.timeout, func() { cancel(errTooLate) })
	defer timer.Stop()
	cmd := exec.CommandContext(ctx, h.command[0], h.command[1:]...)
	cmd.Dir, cmd.Env = dir, h.env
	inGroup(cmd)
	cmd.Cancel = func() error { return endGroup(cmd) }
	p, err := openPipes(cmd)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := cmd.Start(); err != nil {
		return nil, startError(err)
	}
	p.closeTheirs()
	var said, complaint []byte
	var wg sync.WaitGroup
	wg.Go(func() {
		// A command need not read what it gets.
		_, _ = p.stdin.Write(body)
		_ = p.stdin.Close()
	})
	wg.Go(func() {
		if said, _ = io.ReadAll(io.LimitReader(p.stdout, maxOutput+1)); len(said) > maxOutput {
			cancel(errTooMuch)
		}
	})
	wg.Go(func() {
		complaint, _ = io.ReadAll(io.LimitReader(p.stderr, maxStderr))
		_, _ = io.Copy(io.Discard, p.stderr)
	})
	err = cmd.Wait()
	// What it has left behind must neither live on nor hold its output open.
	_ = endGroup(cmd)
	escaped := time.AfterFunc(drainTime, p.close)
	wg.Wait()
	held := !escaped.Stop()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTooLate):
		return nil, fmt.Errorf("it took longer than %s and was ended; mend it, or raise context.hook.timeoutSeconds", h.timeout)
	case cause != nil:
		return nil, cause
	case err != nil:
		return nil, exitError(err, complaint)
	case held:
		return nil, errors.New("a process that it left behind holds its output open")
	}
	return said, nil
}

func startError(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("it can't be started: %w; mend context.hook.command", err)
}

// exitError adds the first line that the command complained with.
func exitError(err error, complaint []byte) error {
	const longest = 300
	for line := range bytes.Lines(complaint) {
		if text := strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD")); text != "" {
			if r := []rune(text); len(r) > longest {
				text = string(r[:longest]) + "…"
			}
			return fmt.Errorf("%w: %s", err, text)
		}
	}
	return fmt.Errorf("%w, and it says nothing on standard error", err)
}

// pipes are a command's standard files. They are the program's own, so that
// waiting for the command is not waiting for who else holds them.
type pipes struct {
	stdin, stdout, stderr *os.File
	theirs                []*os.File
}

func openPipes(cmd *exec.Cmd) (p *pipes, err error) {
	p = &pipes{}
	open := func(r, w **os.File) {
		if err == nil {
			*r, *w, err = os.Pipe()
		}
	}
	var in, out, complaints *os.File
	open(&in, &p.stdin)
	open(&p.stdout, &out)
	open(&p.stderr, &complaints)
	p.theirs = []*os.File{in, out, complaints}
	if err != nil {
		p.close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, complaints
	return p, nil
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close() // nil, or closed already: nothing is lost
	}
}

func (p *pipes) close() {
	p.closeTheirs()
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close()
	}
}

// tokens is what a text counts as: four bytes each.
func tokens(text string) int { return (len(text) + 3) / 4 }

// settle completes the sections that a command answered with.
func (h *Hook) settle(before []goclaw.Section, answer []answered) []goclaw.Section {
	was := map[string]goclaw.Section{}
	for _, s := range before {
		was[s.ID] = s
	}
	after := make([]goclaw.Section, len(answer))
	for i, a := range answer {
		s := goclaw.Section{ID: *a.ID, Title: a.Title, Text: *a.Text, Stable: true, Tokens: tokens(*a.Text), Source: "hook: " + h.name()}
		if old, ok := was[s.ID]; ok && old.Text == s.Text && old.Title == s.Title {
			s.Source = old.Source
		}
		after[i] = s
	}
	return after
}
