package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/budget"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/runtime/engine"
)

// brain is a model that a test writes: it sees the request and answers.
type brain func(ctx context.Context, req goclaw.ModelRequest) (goclaw.ModelReply, error)

// rig is an engine on a memory store with a scripted model.
type rig struct {
	t      *testing.T
	store  engine.Store
	engine *engine.Engine

	mu       sync.Mutex
	requests []goclaw.ModelRequest
	notices  []goclaw.Notice
	ids      int
}

type rigOptions struct {
	store      engine.Store
	files      engine.Files
	brain      brain
	models     engine.Models // instead of brain
	tools      []goclaw.Tool
	rules      func(*definition.Rules)
	maxWorkers int
	lane       int
	owner      string
	sole       bool
	hook       func(string)
	drain      time.Duration
	prices     func(string) (budget.Price, bool)
	rates      map[string]goclaw.RateRequest
	notes      engine.Notes
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, store: o.store}
	if r.store == nil {
		r.store = memory.Open()
	}
	if o.owner == "" {
		o.owner = "p1"
	}
	if o.files == nil {
		o.files = files{}
	}
	if o.models == nil {
		o.models = r.models(o.brain)
	}
	e, err := engine.New(engine.Options{
		Store: r.store, Models: o.models, Files: o.files, Tools: o.tools, Rules: rules(o),
		Owner: o.owner, SoleOwner: o.sole, MaxWorkers: o.maxWorkers, Zone: time.UTC,
		MaxPerLane: o.lane, Drain: o.drain, Prices: o.prices, Rates: o.rates,
		Announce: announce.Policy{Window: 250 * time.Millisecond, MaxWait: time.Minute, Attempts: 3, Backoff: 10 * time.Second},
		Notes:    o.notes, Publish: r.publish, Hook: o.hook, Facts: prompt.Facts{Host: "box", OS: "linux"},
		NewID: func() string { return r.id(o.owner) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.engine = e
	for _, tool := range sessions.Tools(e, r.store, transcripts{r.store}) {
		if err := e.AddTool(tool); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func rules(o rigOptions) definition.Rules {
	own := []string{"read_note", "append"}
	rules := definition.Rules{
		Agents: map[string]definition.Agent{"main": {
			ID: "main", Workspace: "/ws", Model: "fake/big",
			Subagents: definition.Subagents{MaxSpawnDepth: 1, MaxChildren: 5},
		}},
		Tools:       append(slices.Clone(own), "sessions_spawn", "subagents", "sessions_list", "sessions_history", "session_status"),
		WorkerTools: own, SpawnTools: sessions.SpawnTools(),
		MainFiles: prompt.MainFiles(), WorkerFiles: prompt.WorkerFiles(),
		ResolveModel: func(m string) (string, error) {
			if !strings.HasPrefix(m, "fake/") {
				return "", fmt.Errorf("unknown model %q", m)
			}
			return m, nil
		},
	}
	if o.rules != nil {
		o.rules(&rules)
	}
	return rules
}

// start runs the engine; the returned function stops it and waits.
func (r *rig) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.engine.Run(ctx); err != nil {
			r.t.Errorf("engine: %v", err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (r *rig) id(owner string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return fmt.Sprintf("%08d-%s", r.ids, owner)
}

func (r *rig) publish(n goclaw.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
}

func (r *rig) say(text string) goclaw.Run {
	r.t.Helper()
	run, err := r.engine.Submit(r.t.Context(), goclaw.Inbound{Session: goclaw.MainKey("main"), Text: text})
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// heard returns the notices so far.
func (r *rig) heard() []goclaw.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notices)
}

// settle waits until no run is unended and no announcement is on its way.
func (r *rig) settle() []goclaw.Run {
	r.t.Helper()
	for range 100_000 {
		active, err := r.store.Runs(r.t.Context(), goclaw.RunFilter{Active: true})
		if err != nil {
			r.t.Fatal(err)
		}
		pending, err := r.store.Pending(r.t.Context(), goclaw.SessionKey{})
		if err != nil {
			r.t.Fatal(err)
		}
		if len(active)+len(pending) == 0 {
			runs, err := r.store.Runs(r.t.Context(), goclaw.RunFilter{})
			if err != nil {
				r.t.Fatal(err)
			}
			slices.Reverse(runs)
			return runs
		}
		<-time.After(10 * time.Millisecond)
	}
	r.t.Fatal("the runs did not settle")
	return nil
}

// asked returns the requests of main sessions, or of workers.
func (r *rig) asked(workers bool) []goclaw.ModelRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.requests), func(q goclaw.ModelRequest) bool { return isWorker(q) != workers })
}

func isWorker(q goclaw.ModelRequest) bool {
	return strings.HasPrefix(q.Messages[0].PlainText(), "[Subagent Context]")
}

func lastText(q goclaw.ModelRequest) string { return q.Messages[len(q.Messages)-1].PlainText() }

func (r *rig) models(b brain) engine.Models { return fakeModels{r, b} }

type fakeModels struct {
	r *rig
	b brain
}

func (m fakeModels) Provider(name string) (goclaw.Provider, string, error) {
	return fakeProvider(m), strings.TrimPrefix(name, "fake/"), nil
}

type fakeProvider struct {
	r *rig
	b brain
}

func (fakeProvider) Name() string { return "fake" }

func (p fakeProvider) Stream(ctx context.Context, req goclaw.ModelRequest, emit func(goclaw.Delta)) (goclaw.ModelReply, error) {
	p.r.mu.Lock()
	p.r.requests = append(p.r.requests, req)
	p.r.mu.Unlock()
	reply, err := p.b(ctx, req)
	if err == nil && emit != nil {
		emit(goclaw.Delta{Kind: goclaw.NoticeText, Text: reply.Message.PlainText()})
	}
	return reply, err
}

func text(s string) (goclaw.ModelReply, error) {
	return goclaw.ModelReply{
		Message: goclaw.Text(goclaw.RoleAssistant, s), Stop: goclaw.StopEnd,
		Usage: goclaw.Usage{Input: 100, Output: 10}, Model: "fake",
	}, nil
}

func calls(c ...goclaw.ToolCall) (goclaw.ModelReply, error) {
	m := goclaw.Message{Role: goclaw.RoleAssistant}
	for i := range c {
		if c[i].ID == "" {
			c[i].ID = fmt.Sprintf("call%d", i)
		}
		m.Parts = append(m.Parts, goclaw.Part{Kind: goclaw.PartToolCall, Call: &c[i]})
	}
	return goclaw.ModelReply{Message: m, Stop: goclaw.StopTools, Usage: goclaw.Usage{Input: 100, Output: 10}, Model: "fake"}, nil
}

func spawnCall(task string, more ...string) goclaw.ToolCall {
	args := map[string]any{"task": task, "label": task}
	for i := 0; i+1 < len(more); i += 2 {
		var v any = more[i+1]
		if json.Valid([]byte(more[i+1])) {
			v = json.RawMessage(more[i+1])
		}
		args[more[i]] = v
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return goclaw.ToolCall{Name: "sessions_spawn", Arguments: string(b), ID: "spawn-" + task}
}

// sleep is a model's thinking time, ended by ctx as a provider ends it.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type files struct{}

func (files) Files(dir string, _ []string) ([]goclaw.WorkspaceFile, error) {
	var out []goclaw.WorkspaceFile
	for _, n := range prompt.MainFiles() {
		out = append(out, goclaw.WorkspaceFile{Name: n, Path: dir + "/" + n, Content: "content of " + n})
	}
	return out, nil
}

// transcripts gives the session tools what they read.
type transcripts struct{ engine.Store }

func (transcripts) AllSessions(context.Context) ([]goclaw.Session, error) {
	return nil, errors.New("not in this test")
}

// tool is a tool that a test writes.
type tool struct {
	spec goclaw.ToolSpec
	call func(context.Context, goclaw.Invocation) goclaw.ToolResult
}

func newTool(name string, idempotent bool, call func(context.Context, goclaw.Invocation) goclaw.ToolResult) goclaw.Tool {
	return tool{goclaw.ToolSpec{Name: name, Idempotent: idempotent, Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}, call}
}

func (t tool) Spec() goclaw.ToolSpec { return t.spec }
func (t tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	return t.call(ctx, in)
}
