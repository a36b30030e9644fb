package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/edge/provider/providertest"
	"goclaw/internal/runtime/engine"
)

// Public definition files are spawned as they are: the body is what the model
// reads first, byte for byte, and it gets those of its tools that there are and
// no others.
func TestSpawnTheCorpus(t *testing.T) {
	root := os.Getenv("GOCLAW_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	root = filepath.Join(root, "agents")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no corpus of definition files: %v (GOCLAW_CORPUS says where it is)", err)
	}
	var mu sync.Mutex
	var current definition.Definition
	var tools []string
	w := newWired(t, providertest.WireAnthropic, func(*providertest.Request) providertest.Answer {
		return providertest.Answer{Text: "done"}
	}, func(o *engine.Options) {
		tools = o.Rules.WorkerTools
		o.Rules.ResolveModel = func(name string) (string, error) {
			if !strings.Contains(name, "/") {
				return "", errors.New("nothing here answers to " + name)
			}
			return "anthropic/m", nil
		}
		o.Rules.Definitions = func(string) definition.Catalog {
			mu.Lock()
			defer mu.Unlock()
			return definition.NewCatalog([]definition.Definition{current}, func(definition.Definition) int { return 0 })
		}
	})
	stop := (&rig{t: t, engine: w.engine}).start(t.Context())
	defer stop()
	spawned, refused := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		def := definition.Parse(path, data, definition.Options{})
		def.Trusted = true
		mu.Lock()
		current = def
		mu.Unlock()
		before := w.server.Total()
		reply, err := w.engine.SpawnFor(t.Context(), goclaw.MainKey("main"), goclaw.SpawnRequest{Agent: def.Name, Task: "look", Announce: goclaw.AnnounceNone}, "")
		if err != nil {
			return err
		}
		if reply.RunID == "" {
			refused++
			if def.Blocked() == "" && def.Visibility != "internal" && def.Mode != "primary" {
				t.Errorf("%s: %s", path, reply.Error)
			}
			return nil
		}
		w.settle()
		spawned++
		run, err := w.store.Run(t.Context(), reply.RunID)
		if err != nil {
			return err
		}
		sent := w.server.Requests()
		if run.State != goclaw.StateCompleted || len(sent) != before+1 {
			t.Errorf("%s: %s %s after %d requests", path, run.State, run.Error, len(sent)-before)
			return nil
		}
		last := sent[len(sent)-1]
		if !strings.HasPrefix(last.System, def.Body) {
			t.Errorf("%s: the system prompt does not begin with the body", path)
		}
		var want []string
		for _, name := range tools {
			if slices.Contains(def.ResolvedTools(), name) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if !slices.Equal(last.Tools, want) {
			t.Errorf("%s: the model got %v, the file comes down to %v", path, last.Tools, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d were spawned, %d refused", spawned, refused)
	if spawned < 200 {
		t.Error("too few were spawned for this to mean anything")
	}
}
