package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"goclaw"
	"goclaw/internal/core/announce"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/tool/sessions"
	"goclaw/internal/runtime/engine"
)

func now() goclaw.Millis { return goclaw.At(time.Now()) }

var livePolicy = announce.Policy{Window: time.Second, MaxWait: 10 * time.Minute, Attempts: 3, Backoff: time.Minute}

// live is one process with the real engine.
type live struct {
	engine *engine.Engine
	gate   *gate
	stop   context.CancelFunc
	done   chan error
	dead   bool
	paused bool
	since  time.Time // of the pause
}

// play is what two real engines are made to do: a person says something, and
// what the model answers starts workers.
type play struct {
	lines  map[string][]reply // of workers, by task; "" is the main session
	steer  string             // a worker's label
	cancel string
	policy goclaw.RestartPolicy
	pauses int // processes that sleep over their lease
	kills  int
}

// newLive starts a process on the board's store.
func newLive(t *testing.T, b *board, n int, p play) *live {
	g := &gate{Store: b.store, b: b, process: n}
	owner, serial := string(rune('A'+n)), 0
	models := scripted{b: b, process: n, lines: p.lines}
	agent := definition.Agent{ID: "main", Workspace: "/ws", Model: "fake/m", Subagents: definition.Subagents{
		MaxSpawnDepth: 2, MaxChildren: 5, RestartPolicy: p.policy,
	}}
	own := []string{toolAppend}
	e, err := engine.New(engine.Options{
		Store: g, Models: models, Files: models, Owner: owner, Zone: time.UTC,
		Rules: definition.Rules{
			Agents:      map[string]definition.Agent{"main": agent},
			Tools:       append(sessions.SpawnTools(), own...),
			WorkerTools: own, SpawnTools: sessions.SpawnTools(),
			MainFiles: prompt.MainFiles(), WorkerFiles: prompt.WorkerFiles(),
			ResolveModel: func(m string) (string, error) { return m, nil },
		},
		Announce: livePolicy,
		NewID:    func() string { serial++; return fmt.Sprintf("%s%07d", strings.ToLower(owner), serial) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range append(sessions.Tools(e, g, nil), effect{b, n}) {
		if err := e.AddTool(tool); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	l := &live{engine: e, gate: g, stop: stop, done: make(chan error, 1)}
	go func() { l.done <- e.Run(ctx) }()
	return l
}

// scripted is a model that answers as a play says.
type scripted struct {
	b       *board
	process int
	lines   map[string][]reply
}

func (s scripted) Provider(string) (goclaw.Provider, string, error)     { return s, "m", nil }
func (scripted) Files(string, []string) ([]goclaw.WorkspaceFile, error) { return nil, nil }
func (scripted) Name() string                                           { return "fake" }

// Stream answers the n-th call of a run with its n-th line.
func (s scripted) Stream(ctx context.Context, req goclaw.ModelRequest, _ func(goclaw.Delta)) (goclaw.ModelReply, error) {
	task, n := "", 0
	for _, m := range req.Messages {
		text := m.PlainText()
		if _, after, ok := strings.Cut(text, "[Subagent Task]: "); ok {
			task = after
		}
		if strings.Contains(text, "| via announcement") {
			task, n = "announcement", -1
		}
		if m.Role == goclaw.RoleAssistant {
			n++
		}
	}
	key, err := goclaw.ParseSessionKey(req.Session)
	if err != nil {
		return goclaw.ModelReply{}, err
	}
	if err := s.b.ask(s.process, s.b.running(key), "model call %d of %q", n, task); err != nil {
		return goclaw.ModelReply{}, err
	}
	if err := ctx.Err(); err != nil {
		return goclaw.ModelReply{}, context.Cause(ctx)
	}
	r := reply{text: "done"}
	if n >= 0 && n < len(s.lines[task]) {
		r = s.lines[task][n]
	}
	e := r.event().Model
	return goclaw.ModelReply{Message: e.Message, Stop: e.Stop, Model: "m", Usage: goclaw.Usage{Input: 10, Output: 1}}, nil
}

// effect is the tool with side effects.
type effect struct {
	b       *board
	process int
}

func (effect) Spec() goclaw.ToolSpec {
	return goclaw.ToolSpec{Name: toolAppend, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (e effect) Call(_ context.Context, in goclaw.Invocation) goclaw.ToolResult {
	name := in.Fence.Run + "/" + in.Call.ID
	if err := e.b.ask(e.process, in.Fence.Run, "side effect %s in epoch %d", name, in.Fence.Epoch); err != nil {
		return goclaw.ToolError(err.Error())
	}
	e.b.mu.Lock()
	e.b.effects[name]++
	twice := e.b.effects[name] > 1
	e.b.mu.Unlock()
	if twice {
		e.b.fail("the call " + name + " with side effects is run a second time")
	}
	return goclaw.ToolOK("appended")
}

// spawns is a call of sessions_spawn.
func spawns(id, label string, mode goclaw.AnnounceMode) goclaw.ToolCall {
	args, err := json.Marshal(map[string]string{"task": label, "label": label, "announce": string(mode)})
	if err != nil {
		panic(err)
	}
	return goclaw.ToolCall{ID: id, Name: toolSpawn, Arguments: string(args)}
}

// find returns the worker with that label, if it was accepted.
func (b *board) find(label string) (goclaw.Run, bool) {
	runs, err := b.store.Runs(background, goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	if err != nil {
		b.fail(err.Error())
	}
	for _, r := range runs {
		if r.Label == label {
			return r, true
		}
	}
	return goclaw.Run{}, false
}

// person does what a person asks for, on the store as another process would.
func (b *board) person(label string, do func(goclaw.Run) error) {
	r, ok := b.find(label)
	if !ok {
		return
	}
	if err := do(r); err != nil && !errors.Is(err, goclaw.ErrEnded) {
		b.fail(err.Error())
	}
	b.wrote(goclaw.Fence{})
}

func (b *board) steer(label string) {
	b.person(label, func(r goclaw.Run) error {
		return b.store.Post(background, r.ID, goclaw.InboxItem{
			ID: "steer", Kind: goclaw.ItemSteer, Group: r.ID, Text: announce.Steer("p", "hurry"), CreatedAt: now(),
		})
	})
}

func (b *board) cancel(label string) {
	b.person(label, func(r goclaw.Run) error {
		_, err := b.store.Cancel(background, goclaw.Cancellation{Run: r.ID, Why: "asked", Now: now(), Cascade: true})
		return err
	})
}
