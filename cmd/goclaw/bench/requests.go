package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"goclaw"
	"goclaw/internal/core/prompt"
)

const (
	helloAim  = 4000 // tokens
	workerAim = 1200
)

// prompt measures what goclaw sends to a model before anything was said, and
// what it takes to put it together.
func (b *bench) prompt(ctx context.Context) ([]Figure, error) {
	assembling, err := b.assembling(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := b.requests(ctx)
	return append([]Figure{assembling}, sent...), err
}

// requests measures the requests.
func (b *bench) requests(ctx context.Context) ([]Figure, error) {
	g, err := b.gateway(ctx, "")
	if err != nil {
		return nil, err
	}
	defer g.stop()
	if err := b.reset(ctx); err != nil {
		return nil, err
	}
	if _, _, err := b.chat(ctx, g, goclaw.MainKey("main"), "hello"); err != nil {
		return nil, err
	}
	if _, err := g.api.Receive(ctx, goclaw.Inbound{Session: goclaw.MainKey("main"), Text: spawnOrder + "1 " + quickTask}); err != nil {
		return nil, err
	}
	if err := b.arrive(ctx, kindAnnounce, 1, spawnWait); err != nil {
		return nil, err
	}
	if err := b.quiet(ctx, g, spawnWait); err != nil {
		return nil, err
	}
	m, err := b.marks(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := g.api.Runs(ctx, goclaw.RunFilter{Triggers: []goclaw.Trigger{goclaw.TriggerSpawn}})
	if err != nil || len(workers) != 1 {
		return nil, fmt.Errorf("%d workers ran instead of 1 (%w)", len(workers), err)
	}
	p, err := g.api.Context(ctx, goclaw.ContextQuery{Run: workers[0].ID})
	if err != nil {
		return nil, err
	}
	return sizesOf(m, p, workers[0].Task)
}

func sizesOf(m marks, worker goclaw.Prompt, task string) ([]Figure, error) {
	hello, small := m.Bodies[kindTurn], m.Bodies[kindWorker]
	helloTools, err := toolsOf(hello)
	if err != nil {
		return nil, err
	}
	smallTools, err := toolsOf(small)
	if err != nil {
		return nil, err
	}
	fixed := len(small) - encoded(task)
	files := 0
	for _, s := range worker.Sections {
		if strings.HasPrefix(s.ID, "file:") {
			files += encoded("\n\n## " + s.Title + "\n" + s.Text)
		}
	}
	fixed -= files
	both := func(bytes int) []Value {
		return []Value{count("", float64(bytes), "bytes"), count("", float64(prompt.Tokens(bytes)), "tokens")}
	}
	labelled := func(name string, bytes int) []Value {
		v := both(bytes)
		v[0].Label = name
		return v
	}
	aim := func(bound float64) *Aim {
		return &Aim{Label: "tokens", Bound: bound, Words: fmt.Sprintf("≤ %.0f tokens", bound)}
	}
	const how = "The body of the request as the model server received it, with the files of a fresh workspace. A token is four bytes."
	figures := []Figure{{
		ID: "request.hello", Name: "Request: main agent's first hello", Values: both(len(hello)),
		Means: "Everything that is sent when a new person says hello: tools, fixed prompt, all workspace files, the message.", How: how,
		Aim: aim(helloAim), Elsewhere: elsewhere("OpenClaw 13,000 tokens"),
	}, {
		ID: "request.worker", Name: "Request: worker's fixed part", Values: both(fixed),
		Means: "What every worker costs before its own task: tools, fixed prompt, envelope.",
		How:   how + fmt.Sprintf(" Without the task and the workspace files that a worker sees (AGENTS.md and TOOLS.md, %d bytes).", files),
		Aim:   aim(workerAim), Elsewhere: elsewhere("OpenClaw 9,700 tokens"),
	}, {
		ID: "request.tools", Name: "Request: tools alone", Values: append(labelled("main", helloTools), labelled("worker", smallTools)...),
		Means: "The share of the two lines above that the tools' names, descriptions and schemas take.", How: how,
	}}
	for i := range figures[:2] {
		figures[i].Values[1].Label = "tokens"
		figures[i].Values[1].Unit = ""
	}
	return figures, nil
}

// toolsOf is the size of a request's tools.
func toolsOf(body json.RawMessage) (int, error) {
	if len(body) == 0 {
		return 0, errors.New("the model server saw no such request")
	}
	var parts struct {
		Tools json.RawMessage `json:"tools"`
	}
	err := json.Unmarshal(body, &parts)
	return len(parts.Tools), err
}

// encoded is how many bytes text takes within a JSON string.
func encoded(text string) int {
	raw, err := json.Marshal(text)
	if err != nil {
		return 0 // a string always encodes
	}
	return len(raw) - 2
}
