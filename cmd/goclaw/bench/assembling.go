package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"goclaw"
	"goclaw/internal/core/definition"
	memstore "goclaw/internal/edge/store/memory"
	"goclaw/internal/edge/tool/file"
	"goclaw/internal/edge/workspace"
	"goclaw/internal/runtime/engine"
)

const (
	assemblingAim = 200    // µs
	heavyFile     = 20_000 // bytes
)

// assembling measures what a turn pays for its prompt while nobody changes a
// file of the workspace.
func (b *bench) assembling(ctx context.Context) (Figure, error) {
	dir := filepath.Join(b.dir, "assembling")
	if err := layHeavy(dir); err != nil {
		return Figure{}, err
	}
	tools := file.Tools(file.Options{Home: filepath.Join(b.dir, "none")})
	rules := definition.Rules{
		Agents:       map[string]definition.Agent{"main": {ID: "main", Workspace: dir, Model: "demo/offline"}},
		MainFiles:    workspace.Names(),
		ResolveModel: func(model string) (string, error) { return model, nil },
	}
	for _, t := range tools {
		rules.Tools = append(rules.Tools, t.Spec().Name)
	}
	loader := workspace.NewLoader(workspace.Options{TotalMaxChars: 10 * heavyFile})
	e, err := engine.New(engine.Options{Store: memstore.Open(), Files: loader, Tools: tools, Rules: rules, NewID: uuid.NewString})
	if err != nil {
		return Figure{}, err
	}
	assemble := func() error {
		_, err := e.Explain(ctx, goclaw.ContextQuery{Session: goclaw.MainKey("main")})
		return err
	}
	began := time.Now()
	if err := assemble(); err != nil {
		return Figure{}, err
	}
	first, reads := time.Since(began), loader.Reads()
	var took sample
	for range b.size.prompts {
		began := time.Now()
		if err := assemble(); err != nil {
			return Figure{}, err
		}
		took = append(took, time.Since(began))
	}
	return Figure{
		ID: "prompt.unchanged", Name: "Prompt: assembling, nothing changed",
		Values: []Value{
			us("p50", took.median()), us("p99", took.quantile(0.99)), us("the first time", first),
			count("files read", float64(loader.Reads()-reads), ""),
		},
		Means: "What a turn pays for its prompt as long as nobody changes a file: the files are looked at, and the prompt of the turn before is taken.",
		How: fmt.Sprintf("In this process, %d times: the main agent's prompt from eight files of %d KB, by the engine and the loader of the gateway. The first time reads %d files.",
			b.size.prompts, heavyFile/1000, reads),
		Aim: &Aim{Label: "p50", Bound: assemblingAim, Words: fmt.Sprintf("≤ %d µs", assemblingAim)},
	}, nil
}

// layHeavy writes eight long files that look as if nobody had touched them for
// a while: what was just written is read twice.
func layHeavy(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	const line = "Work is done as it was agreed upon, and said.\n"
	old := time.Now().Add(-time.Hour)
	for _, name := range workspace.Names() {
		path := filepath.Join(dir, name)
		text := "# " + name + "\n" + strings.Repeat(line, heavyFile/len(line))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path, old, old); err != nil {
			return err
		}
	}
	return nil
}
