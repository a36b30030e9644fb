package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"goclaw"
	"goclaw/internal/edge/tool"
	"goclaw/internal/edge/tool/exec/sandbox"
)

// What Options mean by zero.
const (
	defaultTimeout   = 2 * time.Minute
	defaultMaxTime   = 10 * time.Minute
	defaultMaxOutput = 20_000
)

// Options configure the tool.
type Options struct {
	// Home is GOCLAW_HOME, which no command sees.
	Home string

	// DefaultTimeout is for calls that name none, MaxTimeout the most that one
	// can have. Zero means two and ten minutes.
	DefaultTimeout, MaxTimeout time.Duration

	// MaxOutput bounds the bytes of output in a result; 0 means 20,000.
	MaxOutput int

	ReadOnly []string // further host files and folders that commands may read
	Network  bool     // commands may use the network
	Env      []string // further variables of commands, KEY=value; never secrets

	// Shelves are the folders that a run's commands may read besides; nil:
	// none.
	Shelves func(goclaw.Profile) []goclaw.Shelf

	// Sandbox confines commands; nil means that the first call finds one.
	Sandbox sandbox.Sandbox
}

// Tool is the tool exec.
type Tool struct {
	options Options

	mu    sync.Mutex
	found sandbox.Sandbox
}

// New returns the tool. It does no I/O.
func New(o Options) *Tool {
	if o.DefaultTimeout <= 0 {
		o.DefaultTimeout = defaultTimeout
	}
	if o.MaxTimeout <= 0 {
		o.MaxTimeout = defaultMaxTime
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultMaxOutput
	}
	return &Tool{options: o, found: o.Sandbox}
}

// Spec implements goclaw.Tool.
func (t *Tool) Spec() goclaw.ToolSpec {
	return goclaw.ToolSpec{
		Name:        "exec",
		Description: "Run bash in a sandbox: workspace writable, system read-only, /tmp new each time. Processes end with the call.",
		Schema:      json.RawMessage(`{"type":"object","required":["command"],"properties":{"command":{"type":"string"},"timeoutSeconds":{"type":"integer"},"cwd":{"type":"string"}}}`),
	}
}

// Sandbox names what confines commands here, or says why they are refused. It
// may take some ten milliseconds, once.
func (t *Tool) Sandbox(ctx context.Context) string {
	s, why := t.sandbox(ctx)
	if s == nil {
		return "exec is refused: " + why
	}
	return s.Name()
}

// sandbox looks for a sandbox until it has found one.
func (t *Tool) sandbox(ctx context.Context) (found sandbox.Sandbox, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.found == nil {
		t.found, why = sandbox.Detect(ctx)
	}
	return t.found, why
}

type arguments struct {
	Command        string `json:"command"`
	TimeoutSeconds int    `json:"timeoutSeconds"`
	Cwd            string `json:"cwd"`
}

// Call implements goclaw.Tool.
func (t *Tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	var a arguments
	if err := json.Unmarshal([]byte(in.Call.Arguments), &a); err != nil {
		return goclaw.ToolError(fmt.Sprintf("exec: arguments: %v", err))
	}
	if a.Command == "" {
		return goclaw.ToolError("exec: command is empty")
	}
	limit := min(t.options.DefaultTimeout, t.options.MaxTimeout)
	if a.TimeoutSeconds > 0 {
		limit = min(time.Duration(min(a.TimeoutSeconds, 1<<20))*time.Second, t.options.MaxTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	box, why := t.sandbox(ctx)
	if box == nil {
		return goclaw.ToolError("exec is refused, for there is no sandbox here: " + why)
	}
	reach, err := tool.Open(tool.Scope{
		Workspace: in.Profile.Workspace, Home: t.options.Home,
		Access: in.Profile.Access(in.Session, in.Fence.Run),
	})
	if err != nil {
		return goclaw.ToolError(fmt.Sprintf("exec: %v", err))
	}
	defer reach.Close()
	store, err := openStore(reach, in.Fence.Run)
	if err != nil {
		return goclaw.ToolError(fmt.Sprintf("exec: %v", err))
	}
	defer store.close()
	job, err := t.job(ctx, reach, store, a)
	if err != nil {
		return goclaw.ToolError(fmt.Sprintf("exec: %v", err))
	}
	out := newCapture(t.options.MaxOutput, store.create)
	t.addShelves(&job, in.Profile)
	job.Output = out
	res, err := box.Run(ctx, job)
	return conclude(ctx, out, res, err, limit)
}

var errTimeout = errors.New("timed out")

// job says what the command may see.
func (t *Tool) job(ctx context.Context, reach *tool.Reach, store *store, a arguments) (sandbox.Job, error) {
	dir, err := reach.Resolve(a.Cwd)
	if err != nil {
		return sandbox.Job{}, fmt.Errorf("cwd: %w", err)
	}
	d, err := reach.Dir(dir)
	if err != nil {
		return sandbox.Job{}, fmt.Errorf("cwd: %w", err)
	}
	d.Close()
	hidden, err := reach.Hidden(ctx)
	if err != nil {
		return sandbox.Job{}, err
	}
	lent := make([]sandbox.Lent, len(hidden.Lent))
	for i, l := range hidden.Lent {
		lent[i] = sandbox.Lent(l)
	}
	return sandbox.Job{
		Command: a.Command, Dir: filepath.Join(reach.Base(), filepath.FromSlash(dir)), Env: t.options.Env,
		Workspace: reach.Base(), Private: hidden.Private, Kept: hidden.Kept, Lent: lent, Rule: hidden.Rule, StageDir: store.stages,
		Hidden: hidden.Paths, Shown: hidden.Shown,
		ReadOnly: slices.Clone(t.options.ReadOnly), Network: t.options.Network,
	}, nil
}

// addShelves lets a command read the shelves that lie on disk, also within what
// is hidden. One that holds the workspace or the home would show what is not
// on it.
func (t *Tool) addShelves(job *sandbox.Job, p goclaw.Profile) {
	if t.options.Shelves == nil {
		return
	}
	for _, s := range t.options.Shelves(p) {
		if s.Dir == "" || holds(s.Dir, job.Workspace) || slices.ContainsFunc(job.Hidden, func(h string) bool { return holds(s.Dir, h) }) {
			continue
		}
		job.ReadOnly = append(job.ReadOnly, s.Dir)
		if slices.ContainsFunc(job.Hidden, func(h string) bool { return holds(h, s.Dir) }) {
			job.Shown = append(job.Shown, s.Dir)
		}
	}
}

// holds reports whether path is dir or lies beneath it.
func holds(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// conclude makes the result of a command that has ended, one way or another.
func conclude(ctx context.Context, out *capture, res sandbox.Result, err error, limit time.Duration) goclaw.ToolResult {
	text := out.finish()
	add := func(format string, args ...any) {
		if text != "" && text[len(text)-1] != '\n' {
			text += "\n"
		}
		text += fmt.Sprintf(format, args...)
	}
	for _, d := range res.Discarded {
		add("[not kept: %s]", d)
	}
	switch {
	case errors.Is(err, errTimeout):
		add("[timed out after %gs; all processes were ended]", limit.Seconds())
	case err != nil && ctx.Err() != nil:
		add("[stopped: %v; all processes were ended]", err)
	case err != nil:
		add("[exec failed: %v]", err)
	case res.ExitCode != 0:
		add("[exit code %d]", res.ExitCode)
	case text == "":
		add("[no output]")
	}
	return goclaw.ToolResult{Content: text, IsError: err != nil || res.ExitCode != 0}
}
